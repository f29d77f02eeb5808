//! What a model wrote, out of the error of a server that could not read it.
//!
//! Ollama answers 500 `error parsing tool call: raw='…', err=…` and llama.cpp `Failed to parse input at pos N: …` after the whole
//! text was generated. The text is in the message.

/// The model's text in a server's error message.
pub(crate) fn raw_text(message: &str) -> Option<&str> {
    if let Some((_, rest)) = message.split_once("error parsing tool call: raw='") {
        let end = rest.rfind("', err=").or_else(|| rest.rfind('\'')).unwrap_or(rest.len());
        return rest.get(..end);
    }
    let (_, rest) = message.split_once("Failed to parse input at pos ")?;
    let (position, text) = rest.split_once(": ")?;
    position.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

/// Whether an error says that the server could not read what the model has written, without the text: llama.cpp's
/// `The model produced output that does not match the expected peg-native format` (ggml-org/llama.cpp#27733). With the tools in the prompt
/// the server reads nothing.
pub(crate) fn could_not_read(message: &str) -> bool {
    message.contains("output that does not match the expected")
}

/// What errors about constraints have in them: llama.cpp's `failed to parse grammar`, `Failed to initialize samplers` and `JSON schema
/// conversion failed`, Ollama's `invalid format` and `… required for format`, the names of the field in vLLM, SGLang and LM Studio.
const CONSTRAINTS: [&str; 10] = [
    "grammar",
    "sampler",
    "json schema",
    "json_schema",
    "response_format",
    "structured",
    "guided",
    "ebnf",
    "invalid format",
    "required for format",
];

/// Whether an error may be about the constraint of a request.
pub(super) fn refuses_constraint(status: u16, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    matches!(status, 400 | 422 | 500 | 501) && CONSTRAINTS.iter().any(|word| message.contains(word))
}

/// How much of the beginning of a text is kept, at least, in bytes.
const BEGINNING: usize = 1024;

/// The content of an answer as the server has sent it, to tell what of a recovered text is new. By its beginning and its length: all
/// of it would be the answer once more.
#[derive(Debug, Default)]
pub(super) struct Sent {
    beginning: String,
    length: usize,
}

impl Sent {
    pub(super) fn push(&mut self, text: &str) {
        self.length += text.len();
        if self.beginning.len() < BEGINNING {
            self.beginning.push_str(text);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// What comes after it in the whole text; all of that where it is not in there.
    pub(super) fn rest_of<'t>(&self, whole: &'t str) -> &'t str {
        let at = if self.is_empty() { None } else { whole.find(&self.beginning) };
        at.and_then(|at| whole.get(at + self.length..)).unwrap_or(whole)
    }
}

/// How many pictures a server takes in a request, if an error says that it does not take these; 0 for a server or a model without sight. The
/// words are those of llama.cpp and its forks, Ollama, LM Studio, vLLM, mlx-lm, and of what reads requests with serde; a chat template that wants user and
/// assistant to take turns has no place for the message with pictures behind results.
pub(crate) fn most_pictures(message: &str) -> Option<usize> {
    let message = message.to_ascii_lowercase();
    let about = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if let Some((_, rest)) = message.split_once("at most ")
        && let Some((number, _)) = rest.split_once(" image")
        && let Ok(number) = number.trim().parse()
    {
        return Some(number);
    }
    let is_refusal = about(REFUSALS_OF_PICTURES)
        || about(&["image", "vision", "multimodal", "multi-modal"])
            && about(&["not support", "n't support", "unsupported input"]);
    is_refusal.then_some(0)
}

/// What refusals of pictures say.
const REFUSALS_OF_PICTURES: &[&str] = &[
    "image input is not supported",
    "missing data required for image input",
    "is not a multimodal model",
    "only 'text' content type",
    "unsupported content[].type",
    "allowed values: ['text']",
    "unknown variant `image_url`",
    "roles must alternate",
];

/// How many tokens a request has, and how many there is room for, if an error says both: `request (6735 tokens) exceeds the available context size
/// (4096 tokens)` of llama.cpp, `This model's maximum context length is 4096 tokens. However, you requested 5012 tokens` of vLLM and OpenAI,
/// `longer than the model's context length (4096 tokens)` of SGLang.
pub(super) fn tokens_and_room(message: &str) -> Option<(u64, u64)> {
    let numbers = |text: &str| -> Vec<u64> {
        let text = text.replace(',', "");
        text.split(|character: char| !character.is_ascii_digit())
            .filter_map(|digits| digits.parse().ok())
            .collect()
    };
    let (_, behind) = message.split_once("context")?;
    let room = *numbers(behind).first()?;
    let tokens = numbers(message).into_iter().max()?;
    (tokens > room).then_some((tokens, room))
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
    fn b11_the_tokens_of_a_request_and_the_room_for_them_are_found() {
        for (message, found) in [
            (
                "request (6735 tokens) exceeds the available context size (4096 tokens), try increasing it",
                Some((6735, 4096)),
            ),
            (
                "This model's maximum context length is 4,096 tokens. However, you requested 5012 tokens (4500 in the messages, 512 in the completion)",
                Some((5012, 4096)),
            ),
            (
                "The input (6735 tokens) is longer than the model's context length (4096 tokens).",
                Some((6735, 4096)),
            ),
            ("the request exceeds the available context size", None),
            ("the context is 4096 tokens", None),
            ("scripted 400", None),
        ] {
            assert_eq!(tokens_and_room(message), found, "{message}");
        }
    }

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
    fn what_follows_on_what_was_sent_is_found_in_texts_of_any_length() {
        for count in [1, 10, 100_000] {
            let mut sent = Sent::default();
            assert_eq!(sent.rest_of("one"), "one");
            (0..count).for_each(|_| sent.push("é "));
            let text = "é ".repeat(count);
            assert_eq!(sent.rest_of(&format!("<think>\n{text}and on")), "and on");
            assert_eq!(sent.rest_of("another"), "another");
            assert_eq!(sent.rest_of(&text), "");
        }
    }

    #[test]
    fn a_refusal_of_a_constraint_is_told_from_other_errors() {
        assert!(refuses_constraint(400, "Failed to parse grammar"));
        assert!(refuses_constraint(500, "failed to load model vocabulary required for format"));
        assert!(refuses_constraint(400, "'response_format.type' must be 'text'"));
        let unread = "The model produced output that does not match the expected peg-native format";
        assert!(!refuses_constraint(500, unread));
        assert!(!refuses_constraint(400, "unsupported image format"));
        assert!(!refuses_constraint(503, "grammar"));
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

    #[test]
    fn g12_refusals_of_pictures_are_told_from_other_errors() {
        for (message, most) in [
            // llama.cpp, and before 2025-06
            (
                "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
                Some(0),
            ),
            ("image input is not supported by this server", Some(0)),
            // llama.cpp without multimodal support
            ("unsupported content[].type", Some(0)),
            // Ollama
            ("this model is missing data required for image input", Some(0)),
            ("\"qwen3\" does not support vision", Some(0)),
            // LM Studio
            ("Model does not support images. Please use a model that does.", Some(0)),
            // vLLM
            ("Qwen/Qwen3-8B is not a multimodal model None", Some(0)),
            ("At most 0 image(s) may be provided in one prompt. Set `--limit-mm-per-prompt`", Some(0)),
            ("At most 2 image(s) may be provided in one request.", Some(2)),
            // mlx-lm
            ("Only 'text' content type is supported.", Some(0)),
            ("messages[2]: unknown variant `image_url`, expected `text`", Some(0)),
            ("After the optional system message, conversation roles must alternate user/assistant", Some(0)),
            ("Failed to load image or audio file", None),
            ("registry.ollama.ai/library/phi:latest does not support tools", None),
            ("the request exceeds the available context size", None),
            ("at most 4096 tokens", None),
        ] {
            assert_eq!(most_pictures(message), most, "{message}");
        }
    }
}
