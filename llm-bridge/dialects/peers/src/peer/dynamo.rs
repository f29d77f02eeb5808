//! `dynamo-parsers`: functions for whole texts, and a stream that keeps a call back until it is whole.

use dynamo_parsers::tool_calling::{
    ToolDefinition,
    jail::{Annotated, JailedStream},
    parsers::{detect_and_parse_tool_call_with_recovery, get_available_tool_parsers},
};
use dynamo_protocols::types::{
    ChatChoiceStream, ChatCompletionMessageContent, ChatCompletionStreamResponseDelta,
    CreateChatCompletionStreamResponse, FinishReason, Role,
};
use futures_util::{StreamExt, stream};

use super::{Fragments, Mode, PIECE};
use crate::{
    block_on,
    call::Called,
    case::{Case, Tool},
    pieces,
};

/// What its stream is made of.
pub type Chunk = Annotated<CreateChatCompletionStreamResponse>;

/// The names of its parsers.
pub fn parsers() -> Vec<&'static str> {
    get_available_tool_parsers()
}

/// Tools as it takes them.
pub fn tools(tools: &[Tool]) -> Vec<ToolDefinition> {
    let tool = |tool: &Tool| ToolDefinition {
        name: tool.name.clone(),
        parameters: tool.parameters.clone(),
        strict: None,
    };
    tools.iter().map(tool).collect()
}

/// The stream for these pieces; the last chunk is its end.
pub fn chunks<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = pieces.into_iter().map(|piece| chunk(Some(piece))).collect();
    chunks.push(chunk(None));
    chunks
}

fn chunk(text: Option<&str>) -> Chunk {
    #[allow(deprecated)]
    let delta = ChatCompletionStreamResponseDelta {
        role: Some(Role::Assistant),
        content: text.map(|text| ChatCompletionMessageContent::Text(text.into())),
        tool_calls: None,
        function_call: None,
        refusal: None,
        reasoning_content: None,
    };
    let finish_reason = text.is_none().then_some(FinishReason::Stop);
    let choice = ChatChoiceStream { index: 0, delta, finish_reason, logprobs: None };
    Annotated {
        data: Some(CreateChatCompletionStreamResponse {
            id: "1".into(),
            choices: vec![choice],
            created: 0,
            model: "model".into(),
            system_fingerprint: None,
            object: "chat.completion.chunk".into(),
            usage: None,
            service_tier: None,
        }),
        id: None,
        event: None,
        comment: None,
        error: None,
    }
}

/// Runs a stream through it and hands on what comes out.
pub fn stream(parser: &str, tools: &[ToolDefinition], chunks: Vec<Chunk>, mut sink: impl FnMut(Chunk)) {
    let mut builder = JailedStream::builder().tool_call_parser(parser);
    if !tools.is_empty() {
        builder = builder.tool_definitions(tools.to_vec());
    }
    let jail = builder.build();
    block_on(jail.apply(stream::iter(chunks)).for_each(|chunk| {
        sink(chunk);
        std::future::ready(())
    }));
}

pub(super) fn read(parser: &str, case: &Case, mode: Mode) -> Result<Vec<Called>, String> {
    let tools = case.tools.as_deref().map(tools).unwrap_or_default();
    let mut fragments = Fragments::default();
    match mode {
        Mode::Whole => {
            let offered = (!tools.is_empty()).then_some(tools.as_slice());
            let found = detect_and_parse_tool_call_with_recovery(&case.input, Some(parser), offered);
            let (calls, _) = block_on(found).map_err(|error| error.to_string())?;
            for (index, call) in calls.iter().enumerate() {
                fragments.add(index, Some(&call.function.name), &call.function.arguments);
            }
        }
        Mode::Pieces => stream(parser, &tools, chunks(pieces(&case.input, PIECE)), |chunk| {
            let choices = chunk.data.into_iter().flat_map(|data| data.choices);
            for call in choices.flat_map(|choice| choice.delta.tool_calls.unwrap_or_default()) {
                let Some(function) = call.function else { continue };
                let index = usize::try_from(call.index).unwrap_or(usize::MAX);
                fragments.add(
                    index,
                    function.name.as_deref(),
                    function.arguments.as_deref().unwrap_or_default(),
                );
            }
        }),
    }
    Ok(fragments.calls())
}
