//! Toolrack's scanner, which never knows the dialect.

use std::sync::Arc;

use toolrack_dialects::{Event, Offered, OfferedTool, ScanOptions, Scanner};

use crate::{
    call::Called,
    case::{Case, Tool},
    peer::{Mode, PIECE},
    pieces,
};

/// The tools of a case as the scanner takes them.
pub fn offered(tools: Option<&[Tool]>) -> Arc<Offered> {
    let Some(tools) = tools else { return Arc::new(Offered::any()) };
    Arc::new(Offered::new(tools.iter().map(|tool| {
        let mut offered = OfferedTool::new(&tool.name);
        offered.schema = tool.parameters.clone().map(Arc::new);
        offered
    })))
}

/// The calls that the scanner finds in a case; in pieces also with deltas.
pub fn read(case: &Case, mode: Mode) -> Vec<Called> {
    let deltas = mode == Mode::Pieces;
    let options = ScanOptions::default().thinking(case.thinking).deltas(deltas);
    let mut scanner = Scanner::new(offered(case.tools.as_deref()), options);
    let mut calls = Vec::new();
    let mut sink = |event: Event<'_>| {
        if let Event::Call(call) = event {
            calls.push(Called::from_text(&call.name, &call.arguments));
        }
    };
    match mode {
        Mode::Whole => scanner.push(&case.input, &mut sink),
        Mode::Pieces => {
            for piece in pieces(&case.input, PIECE) {
                scanner.push(piece, &mut sink);
            }
        }
    }
    scanner.finish(&mut sink);
    calls
}
