//! Toolrack's scanner, which is never told the dialect.

use std::sync::Arc;

use toolrack_dialects::{Abort, Call, Event, Offered, OfferedTool, ScanOptions, Scanner};

use crate::{
    call::Called,
    case::{Case, Tool},
    peer::{Mode, PIECE},
    pieces,
};

/// What the scanner finds in a case.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The calls, to compare.
    pub calls: Vec<Called>,
    /// The same calls as the scanner gives them.
    pub raw: Vec<Call>,
    /// There was thinking.
    pub thought: bool,
    /// Why what had begun as calls was none.
    pub aborted: Vec<Abort>,
}

/// The tools of a case as the scanner takes them.
pub fn offered(tools: Option<&[Tool]>) -> Arc<Offered> {
    let Some(tools) = tools else { return Arc::new(Offered::any()) };
    Arc::new(Offered::new(tools.iter().map(|tool| OfferedTool {
        name: tool.name.clone(),
        schema: tool.parameters.clone().map(Arc::new),
        tag: None,
    })))
}

/// Reads a case; in pieces also with deltas.
pub fn read(case: &Case, mode: Mode) -> Reading {
    let deltas = mode == Mode::Pieces;
    let options = ScanOptions { thinking: case.thinking, deltas, ..ScanOptions::default() };
    let mut scanner = Scanner::new(offered(case.tools.as_deref()), options);
    let mut reading = Reading::default();
    let mut sink = |event: Event<'_>| match event {
        Event::Call(call) => {
            reading.calls.push(Called::from_text(&call.name, &call.arguments));
            reading.raw.push(call);
        }
        Event::Reasoning(text) => reading.thought |= !text.trim().is_empty(),
        Event::Aborted { reason, .. } => reading.aborted.push(reason),
        _ => {}
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
    reading
}
