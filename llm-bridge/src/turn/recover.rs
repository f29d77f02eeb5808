//! What a model wrote, out of the error of a server that could not read it.
//!
//! Ollama answers 500 `error parsing tool call: raw='…', err=…` and llama.cpp `Failed to parse input at pos N: …` after the whole
//! text was generated. The text is in the message.

/// The model's text in a server's error message.
pub(super) fn raw_text(message: &str) -> Option<&str> {
    if let Some((_, rest)) = message.split_once("error parsing tool call: raw='") {
        let end = rest.rfind("', err=").or_else(|| rest.rfind('\'')).unwrap_or(rest.len());
        return rest.get(..end);
    }
    let (_, rest) = message.split_once("Failed to parse input at pos ")?;
    let (position, text) = rest.split_once(": ")?;
    position.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

/// Whether an error may mean that the server does not support tools, so that describing them in the prompt is worth a try.
pub(super) fn refuses_tools(status: u16, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    matches!(status, 400 | 422 | 500 | 501)
        && message.contains("tool")
        && ["support", "enable", "jinja", "template", "unsupported", "not allowed"]
            .iter()
            .any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_found() {
        for (message, text) in [
            (
                "error parsing tool call: raw='{\"a\": it's}', err=invalid character 'i' looking for beginning of value",
                Some("{\"a\": it's}"),
            ),
            (
                "Failed to parse input at pos 12: <tool_call>{\"name\": \"f\"",
                Some("<tool_call>{\"name\": \"f\""),
            ),
            ("Failed to parse input at pos twelve", None),
            ("out of memory", None),
        ] {
            assert_eq!(raw_text(message), text, "{message}");
        }
    }

    #[test]
    fn a_refusal_of_tools_is_told_from_other_errors() {
        assert!(refuses_tools(400, "registry.ollama.ai/library/phi:latest does not support tools"));
        assert!(refuses_tools(500, "tools param requires --jinja flag"));
        assert!(refuses_tools(
            400,
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set. tool support"
        ));
        assert!(!refuses_tools(400, "context length exceeded"));
        assert!(!refuses_tools(503, "tools are not supported while the model is loading"));
    }
}
