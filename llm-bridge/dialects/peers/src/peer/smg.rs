//! `tool-parser`: a function for whole texts and one for pieces. Its futures never wait.

use openai_protocol::common;
use serde_json::json;
use tool_parser::{ParserFactory, ToolParser};

use super::{Fragments, Mode, PIECE};
use crate::{
    block_on,
    call::Called,
    case::{Case, Tool},
    pieces,
};

/// A parser of this name.
pub fn parser(name: &str) -> Option<Box<dyn ToolParser>> {
    ParserFactory::new().registry().create_parser(name)
}

/// Whether it has a parser of this name.
pub fn has(name: &str) -> bool {
    ParserFactory::new().registry().has_parser(name)
}

/// Tools as it takes them.
pub fn tools(tools: &[Tool]) -> Vec<common::Tool> {
    let tool = |tool: &Tool| {
        let parameters = tool.parameters.clone().unwrap_or_else(|| json!({}));
        let function = json!({"name": tool.name, "parameters": parameters});
        serde_json::from_value(json!({"type": "function", "function": function})).ok()
    };
    tools.iter().filter_map(tool).collect()
}

pub(super) fn read(name: &str, case: &Case, mode: Mode) -> Result<Vec<Called>, String> {
    let mut parser = parser(name).ok_or_else(|| format!("there is no parser {name}"))?;
    let offered = tools(&case.tools_or_expected());
    let mut fragments = Fragments::default();
    match mode {
        Mode::Whole => {
            let found = if case.tools.is_some() {
                block_on(parser.parse_complete_with_tools(&case.input, &offered))
            } else {
                block_on(parser.parse_complete(&case.input))
            };
            let (_, calls) = found.map_err(|error| error.to_string())?;
            for (index, call) in calls.iter().enumerate() {
                fragments.add(index, Some(&call.function.name), &call.function.arguments);
            }
        }
        Mode::Pieces => {
            for piece in pieces(&case.input, PIECE) {
                let found = block_on(parser.parse_incremental(piece, &offered));
                for call in found.map_err(|error| error.to_string())?.calls {
                    fragments.add(call.tool_index, call.name.as_deref(), &call.parameters);
                }
            }
            for call in parser.get_unstreamed_tool_args().unwrap_or_default() {
                fragments.add(call.tool_index, call.name.as_deref(), &call.parameters);
            }
        }
    }
    Ok(fragments.calls())
}
