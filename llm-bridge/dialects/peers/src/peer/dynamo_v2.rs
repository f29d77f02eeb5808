//! `dynamo-parsers-v2`: parsers of tool calls, and unified parsers that read thinking as well. Both take pieces.

use dynamo_parsers_v2::{
    Tool as Offered, ToolParseResult, UnifiedParser, UnifiedParserEvent, UnifiedParserInit,
    UnifiedParserOutput, UnifiedParserStartingState, create_tool_parser_for_family,
    create_unified_parser_for_family,
};
use serde_json::json;

use super::{Fragments, Mode, PIECE};
use crate::{
    call::Called,
    case::{Case, Tool},
    pieces,
};

/// Tools as it takes them.
pub fn tools(tools: &[Tool]) -> Vec<Offered> {
    let tool = |tool: &Tool| Offered {
        name: tool.name.clone(),
        description: None,
        parameters: tool.parameters.clone().unwrap_or_else(|| json!({})),
        strict: None,
    };
    tools.iter().map(tool).collect()
}

fn offered(case: &Case) -> Vec<Offered> {
    case.tools.as_deref().map(tools).unwrap_or_default()
}

pub(super) fn read(parser: &str, case: &Case, mode: Mode) -> Result<Vec<Called>, String> {
    let read = || -> dynamo_parsers_v2::tool_calling::traits::Result<ToolParseResult> {
        let mut parser = create_tool_parser_for_family(parser, &offered(case))?;
        if mode == Mode::Whole {
            return parser.parse_complete(&case.input);
        }
        let mut result = ToolParseResult::default();
        for piece in pieces(&case.input, PIECE) {
            result.append(parser.push(piece)?);
        }
        result.append(parser.finish()?);
        Ok(result.coalesce_calls())
    };
    let result = read().map_err(|error| error.to_string())?;
    let call = |call: &dynamo_parsers_v2::ToolCallDelta| {
        Called::from_text(call.name.clone().unwrap_or_default(), &call.arguments)
    };
    Ok(result.calls.iter().map(call).collect())
}

/// A unified parser at the start of an answer.
///
/// # Errors
/// There is none of this name, or it cannot begin in thinking.
pub fn unified(parser: &str, tools: &[Offered], thinking: bool) -> Result<Box<dyn UnifiedParser>, String> {
    let mut parser = create_unified_parser_for_family(parser, tools).map_err(|error| error.to_string())?;
    let starting_state =
        if thinking { UnifiedParserStartingState::Reasoning } else { UnifiedParserStartingState::None };
    let init = UnifiedParserInit { starting_state, ..UnifiedParserInit::default() };
    parser.initialize_request(init).map_err(|error| error.to_string())?;
    Ok(parser)
}

pub(super) fn read_unified(parser: &str, case: &Case, mode: Mode) -> Result<Vec<Called>, String> {
    let mut parser = unified(parser, &offered(case), case.thinking)?;
    let mut output = UnifiedParserOutput::default();
    let pieces = match mode {
        Mode::Whole => vec![case.input.as_str()],
        Mode::Pieces => pieces(&case.input, PIECE),
    };
    for piece in pieces {
        parser.parse_into(piece, &mut output).map_err(|error| error.to_string())?;
    }
    output.append(&mut parser.finish().map_err(|error| error.to_string())?);
    let mut fragments = Fragments::default();
    let mut complete = Vec::new();
    for event in &output.events {
        if let UnifiedParserEvent::ToolCall(call) = event {
            fragments.add(call.tool_index, call.name.as_deref(), &call.arguments);
            if call.complete {
                complete.push(call.tool_index);
            }
        }
    }
    fragments.0.retain(|(index, ..)| complete.contains(index));
    Ok(fragments.calls())
}
