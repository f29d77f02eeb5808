//! What a server answers to a call, and what it is to the registry.

use std::collections::HashSet;

use registry_core::{
    Content, ErrorKind, ToolError, ToolResult,
    flow::Reads,
    json::{Room, parts},
    text::cut,
};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode, ServerResult},
};
use serde_json::Value;

use super::oauth::Bearer;

/// How large the answer to a call may be without its pictures, in bytes of JSON.
pub const MAX_REPLY: usize = 4 * 1024 * 1024;
/// How large its pictures may be in all, in bytes of Base64: models get them scaled.
pub(super) const MAX_PICTURES: usize = 32 * 1024 * 1024;
/// In the `_meta` of a result with an error: the call was not made, as a person has to approve it on the server's side. The value
/// is the id of the approval there.
pub const APPROVAL_PENDING: &str = "toolrack/approvalPending";
/// In the `_meta` of a call: for how many milliseconds the server may wait for such a person before it answers.
pub const APPROVAL_WAIT: &str = "toolrack/approvalWaitMs";
/// In the `_meta` of a call, what was read before it; in that of a result, what it holds: `private`, `untrusted` or both with a comma.
pub const READS: &str = "toolrack/reads";
/// How much of an error is shown, in bytes.
const MAX_ERROR: usize = 4096;

/// What the result holds, as far as the server says.
pub(super) fn reads(answer: &ServerResult) -> Reads {
    let ServerResult::CallToolResult(CallToolResult { meta: Some(meta), .. }) = answer else {
        return Reads::NOTHING;
    };
    // What is not understood says that both may have been read.
    let of = |said: &Value| said.as_str().and_then(|said| said.parse().ok()).unwrap_or(Reads::BOTH);
    meta.0.get(READS).map(of).unwrap_or_default()
}

/// The result of a call.
pub(super) fn read(answer: ServerResult, bearer: Option<&Bearer>) -> Result<ToolResult, ToolError> {
    if let Some(bearer) = bearer {
        let whole = serde_json::to_string(&answer).unwrap_or_default();
        if bearer.is_in(&whole) {
            return Err(ToolError::failed(
                "the MCP server's answer has the user's token in it, so it is withheld",
            ));
        }
    }
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
    check_size(&result)?;
    let texts = || result.content.iter().filter_map(ContentBlock::as_text).map(|block| block.text.as_str());
    let success = result.is_error != Some(true);
    let is_pending = result.meta.as_ref().is_some_and(|meta| meta.0.contains_key(APPROVAL_PENDING));
    // What failed and says so in words alone is an error; a picture of the page on which it failed is a result all the same.
    let structured = result.structured_content.clone().filter(|value| !value.is_null());
    if !success && (is_pending || result.content.iter().all(|block| block.as_text().is_some())) {
        let more = structured.filter(|value| !texts().any(|text| says(text, value)));
        let text: Vec<String> =
            texts().map(str::to_owned).chain(more.map(|value| value.to_string())).collect();
        let text = match text.join("\n") {
            text if text.is_empty() => "the tool says that it failed, and not why".to_owned(),
            text => text,
        };
        let kind = if is_pending { ErrorKind::ApprovalPending } else { ErrorKind::Failed };
        return Err(ToolError::new(kind, cut(text, MAX_ERROR)));
    }
    // A sole text is the value itself.
    let sole = || texts().next().filter(|_| texts().count() == 1).map(Value::from);
    let value = structured.or_else(sole).unwrap_or_default();
    // For clients that read nothing else, most servers say the value once more in words; some say there what the value has not.
    let all = Some(&value).filter(|value| !value.is_null()).into_iter().flat_map(parts);
    let said: HashSet<&Value> = all.map(|(_, part)| part).collect();
    let is_said = |text: &str| {
        said.contains(&Value::from(text))
            || serde_json::from_str(text).is_ok_and(|value: Value| said.contains(&value))
    };
    let beside =
        result.content.iter().filter(|block| !block.as_text().is_some_and(|block| is_said(&block.text)));
    let content = beside.map(shown_beside).collect();
    Ok(ToolResult { success, content, ..ToolResult::new(value) })
}

/// Whether a text says all of a value.
fn says(text: &str, value: &Value) -> bool {
    value.as_str() == Some(text) || serde_json::from_str(text).is_ok_and(|said: Value| said == *value)
}

fn check_size(result: &CallToolResult) -> Result<(), ToolError> {
    let too_large = |what: &str, most: usize| {
        ToolError::failed(format!("{what} larger than {most} bytes"))
            .with_feedback("The tool's answer is too large. Ask it for less.")
    };
    let pictures = result.content.iter().filter_map(ContentBlock::as_image);
    if pictures.map(|picture| picture.data.len()).sum::<usize>() > MAX_PICTURES {
        return Err(too_large("the pictures of the answer are", MAX_PICTURES));
    }
    let mut room = Room(MAX_REPLY);
    let mut blocks = result.content.iter().filter(|block| block.as_image().is_none());
    let parts = blocks.try_for_each(|block| serde_json::to_writer(&mut room, block));
    let others = parts.and_then(|()| serde_json::to_writer(&mut room, &result.structured_content));
    others.map_err(|_| too_large("the answer is", MAX_REPLY))
}

fn shown_beside(block: &ContentBlock) -> Content {
    let read = serde_json::to_value(block).and_then(serde_json::from_value);
    let mut content = read.unwrap_or_else(|_| Content::text("[something of a kind that is not known here]"));
    if let Content::Image { data, .. } | Content::Audio { data, .. } = &mut content
        && let Some(base64) = behind_data_url(data)
    {
        *data = base64.to_owned();
    }
    content
}

/// Some servers write `data:image/png;base64,` before what should be Base64 alone.
fn behind_data_url(data: &str) -> Option<&str> {
    let (head, base64) = data.strip_prefix("data:")?.split_once(',')?;
    head.ends_with(";base64").then_some(base64)
}

/// The error of the registry for one that the server answers with.
pub(super) fn error_of(error: &ErrorData, bearer: Option<&Bearer>) -> ToolError {
    let text = error.message.to_string();
    let text =
        cut(bearer.map_or_else(|| text.clone(), |bearer| bearer.without_tokens(text.clone())), MAX_ERROR);
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
        read(ServerResult::CallToolResult(serde_json::from_value(answer).unwrap()), None)
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn b20_a_word_for_what_a_result_holds_that_is_not_understood_is_both() {
        let of = |said: Value| {
            let answer = json!({"content": [], "_meta": {READS: said}});
            reads(&ServerResult::CallToolResult(serde_json::from_value(answer).unwrap()))
        };
        assert_eq!((of(json!("private")), of(json!("nothing"))), (Reads::PRIVATE, Reads::NOTHING));
        for unknown in [json!("secret"), json!(["private"]), json!(null)] {
            assert_eq!(of(unknown.clone()), Reads::BOTH, "{unknown}");
        }
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
    fn b3_words_that_say_more_than_the_value_are_kept_beside_it() {
        let both = |texts: &[&str], value: Value| {
            let texts: Vec<_> = texts.iter().map(|words| text(words)).collect();
            result(json!({"content": texts, "structuredContent": value})).unwrap()
        };
        let file = both(&["THE FILE"], json!({"fileName": "a"}));
        assert_eq!(file.content, [Content::text("THE FILE")]);
        assert_eq!(file.value, json!({"fileName": "a"}));
        assert!(file.for_model().contains("THE FILE") && file.for_model().contains("fileName"), "{file:?}");
        for (texts, value) in [
            (&["{\"b\": [1, 2], \"a\": 1}"][..], json!({"a": 1, "b": [1, 2]})),
            (&["words"], json!({"result": "words"})),
            (&["3"], json!({"result": 3})),
            (&["a", "{\"b\": 1}"], json!({"result": ["a", {"b": 1}]})),
        ] {
            let said = both(texts, value.clone());
            assert_eq!((said.value, said.content), (value, Vec::new()), "{texts:?}");
        }
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
        let error = json!({"error": {"code": "RATE_LIMITED"}});
        for (content, said) in [
            (json!([]), error.to_string()),
            (json!([text("Slow down.")]), format!("Slow down.\n{error}")),
            (json!([text(&error.to_string())]), error.to_string()),
        ] {
            let failed = result(json!({"content": content, "structuredContent": error, "isError": true}));
            assert_eq!(failed.unwrap_err().feedback(), said);
        }
        for huge in [
            json!({"content": [text(&"x".repeat(MAX_REPLY))]}),
            json!({"content": [], "structuredContent": {"a": "x".repeat(MAX_REPLY)}}),
            json!({"content": vec![text(&"x".repeat(MAX_REPLY / 4)); 4]}),
        ] {
            assert!(result(huge).unwrap_err().message().contains("4194304"));
        }
    }

    #[test]
    fn g12_an_error_keeps_its_picture() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let failed = result(json!({"content": [text("No such button."), image], "isError": true})).unwrap();
        assert!(!failed.success);
        assert_eq!((failed.value.clone(), failed.content.len()), (json!("No such button."), 1));
        let pending = json!({"content": [text("Ask later."), image], "isError": true, "_meta": {APPROVAL_PENDING: "a1"}});
        assert_eq!(result(pending).unwrap_err().kind(), ErrorKind::ApprovalPending);
    }

    #[test]
    fn g12_pictures_have_a_bound_of_their_own() {
        let picture =
            |size: usize| json!({"type": "image", "data": "A".repeat(size), "mimeType": "image/png"});
        let large = result(json!({"content": [text("a"), picture(3 * MAX_REPLY)]})).unwrap();
        assert!(matches!(&large.content[..], [Content::Image { data, .. }] if data.len() == 3 * MAX_REPLY));
        let half = MAX_PICTURES / 2;
        let huge = result(json!({"content": [picture(half), picture(half), picture(1)]})).unwrap_err();
        assert!(huge.message().contains("pictures") && huge.message().contains("33554432"), "{huge}");
    }

    #[test]
    fn g12_a_picture_that_is_written_as_a_url_is_one() {
        let picture = |data: &str| {
            result(json!({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}))
        };
        for (data, read) in [
            ("data:image/png;base64,AAAA", "AAAA"),
            ("data:;base64,", ""),
            ("data:image/png,AAAA", "data:image/png,AAAA"),
            ("AAAA", "AAAA"),
        ] {
            let shown = picture(data).unwrap();
            assert!(matches!(&shown.content[..], [Content::Image { data, .. }] if data == read), "{shown:?}");
        }
    }

    #[test]
    fn b3_the_protocols_errors_are_distinguished() {
        let kind = |code, message: &'static str| {
            error_of(&ErrorData::new(ErrorCode(code), message, None), None).kind()
        };
        assert_eq!(kind(-32602, "Unknown tool: a"), ErrorKind::ToolNotFound);
        assert_eq!(kind(-32602, "tool not found"), ErrorKind::ToolNotFound);
        assert_eq!(kind(-32602, "city is missing"), ErrorKind::InvalidArguments);
        assert_eq!(kind(-32603, "boom"), ErrorKind::Failed);
    }
}
