//! What a server answers to a call, and what it is to the registry.

use registry_core::{Content, ErrorKind, ToolError, ToolResult, text::cut};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode, ServerResult},
};
use serde_json::Value;

/// How large the answer to a call may be, in bytes of JSON.
pub const MAX_REPLY: usize = 4 * 1024 * 1024;
/// In the `_meta` of a result with an error: the call was not made, as a person has to approve it on the server's side. The value
/// is the id of the approval there.
pub const APPROVAL_PENDING: &str = "toolrack/approvalPending";
/// In the `_meta` of a call: for how many milliseconds the server may wait for such a person before it answers.
pub const APPROVAL_WAIT: &str = "toolrack/approvalWaitMs";
/// How much of an error is shown, in bytes.
const MAX_ERROR: usize = 4096;

/// The result of a call.
pub(super) fn read(answer: ServerResult) -> Result<ToolResult, ToolError> {
    match answer {
        ServerResult::CallToolResult(result) => read_result(result),
        ServerResult::InputRequiredResult(_) => Err(ToolError::failed(
            "the tool asks for a person's input while it runs, which cannot be given through this server",
        )
        .with_feedback("The tool needs a person's input that cannot be given here. Do without it.")),
        _ => Err(ToolError::failed("the MCP server's answer to the call is none")),
    }
}

fn read_result(result: CallToolResult) -> Result<ToolResult, ToolError> {
    let json = serde_json::to_string(&result).map_err(|error| ToolError::failed(error.to_string()))?;
    if json.len() > MAX_REPLY {
        return Err(ToolError::failed(format!("the answer is larger than {MAX_REPLY} bytes"))
            .with_feedback("The tool's answer is too large. Ask it for less."));
    }
    let texts = || result.content.iter().filter_map(ContentBlock::as_text).map(|block| block.text.as_str());
    if result.is_error == Some(true) {
        let is_pending = result.meta.as_ref().is_some_and(|meta| meta.0.contains_key(APPROVAL_PENDING));
        let text = texts().collect::<Vec<_>>().join("\n");
        let text =
            if text.is_empty() { "the tool says that it failed, and not why".to_owned() } else { text };
        let kind = if is_pending { ErrorKind::ApprovalPending } else { ErrorKind::Failed };
        return Err(ToolError::new(kind, cut(text, MAX_ERROR)));
    }
    let structured = result.structured_content.clone().filter(|value| !value.is_null());
    // The words are the same for clients that read nothing else; a sole text is the value itself.
    let is_value = structured.is_some() || texts().count() == 1;
    let value =
        structured.or_else(|| texts().next().filter(|_| is_value).map(Value::from)).unwrap_or_default();
    let beside =
        result.content.iter().filter(|block| !is_value || block.as_text().is_none()).map(shown_beside);
    Ok(ToolResult { content: beside.collect(), ..ToolResult::new(value) })
}

fn shown_beside(block: &ContentBlock) -> Content {
    let read = serde_json::to_value(block).and_then(serde_json::from_value);
    read.unwrap_or_else(|_| Content::text("[something of a kind that is not known here]"))
}

/// The error of the registry for one that the server answers with.
pub(super) fn error_of(error: &ErrorData) -> ToolError {
    let text = cut(error.message.to_string(), MAX_ERROR);
    if error.code == ErrorCode::INVALID_PARAMS {
        return if is_about_the_tool(&text) {
            ToolError::new(
                ErrorKind::ToolNotFound,
                format!("the MCP server has no such tool any more: {text}"),
            )
            .with_feedback("The tool is no longer there. Do without it.")
        } else {
            ToolError::invalid(text)
        };
    }
    ToolError::failed(format!("MCP error {}: {text}", error.code.0)).with_feedback(text)
}

/// The protocol has one code for wrong arguments and for an unknown tool.
fn is_about_the_tool(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("unknown tool") || (text.contains("tool") && text.contains("not found"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(answer: Value) -> Result<ToolResult, ToolError> {
        read(ServerResult::CallToolResult(serde_json::from_value(answer).unwrap()))
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn b3_an_answer_becomes_a_result() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
        assert_eq!(result(json!({"content": [text("a")]})).unwrap(), ToolResult::new("a"));
        assert_eq!(result(json!({"content": []})).unwrap(), ToolResult::new(Value::Null));
        let shown = result(json!({"content": [image, text("a"), link]})).unwrap();
        assert_eq!((shown.value.clone(), shown.content.len()), (json!("a"), 2));
        assert!(shown.for_model().contains("image/png"), "{shown:?}");
        let two = result(json!({"content": [text("a"), text("b")]})).unwrap();
        assert_eq!(two.for_model(), "a\nb");
        let structured = json!({"content": [text("{\"a\":1}")], "structuredContent": {"a": 1}});
        assert_eq!(result(structured).unwrap(), ToolResult::new(json!({"a": 1})));
        let list = json!({"content": [text("[1]")], "structuredContent": [1]});
        assert_eq!(result(list).unwrap().value, json!([1]));
    }

    #[test]
    fn b3_a_call_that_waits_for_the_servers_own_person_is_recognised() {
        let waits =
            json!({"content": [text("Ask later.")], "isError": true, "_meta": {APPROVAL_PENDING: "a1"}});
        let error = result(waits).unwrap_err();
        assert_eq!((error.kind(), error.feedback()), (ErrorKind::ApprovalPending, "Ask later."));
        let ran = json!({"content": [text("ok")], "_meta": {APPROVAL_PENDING: "a1"}});
        assert_eq!(result(ran).unwrap().value, json!("ok"), "a result is one");
    }

    #[test]
    fn b3_an_error_is_reported_and_bounded() {
        let failed = result(json!({"content": [text("No such file."), text("Try a.txt.")], "isError": true}));
        assert_eq!(failed.unwrap_err().feedback(), "No such file.\nTry a.txt.");
        let long = result(json!({"content": [text(&"ü".repeat(10_000))], "isError": true})).unwrap_err();
        assert!(long.message().len() < MAX_ERROR + 8);
        assert!(result(json!({"content": [], "isError": true})).unwrap_err().message().contains("not why"));
        let huge = result(json!({"content": [text(&"x".repeat(MAX_REPLY))]})).unwrap_err();
        assert!(huge.message().contains("4194304"), "{huge}");
    }

    #[test]
    fn b3_the_protocols_errors_are_distinguished() {
        let kind =
            |code, message: &'static str| error_of(&ErrorData::new(ErrorCode(code), message, None)).kind();
        assert_eq!(kind(-32602, "Unknown tool: a"), ErrorKind::ToolNotFound);
        assert_eq!(kind(-32602, "tool not found"), ErrorKind::ToolNotFound);
        assert_eq!(kind(-32602, "city is missing"), ErrorKind::InvalidArguments);
        assert_eq!(kind(-32603, "boom"), ErrorKind::Failed);
    }
}
