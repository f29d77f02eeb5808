//! Headers of messages, as models write them that speak in messages to several recipients: the user, a tool,
//! themselves. `<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>`, and parts of it.

use super::{
    body::{cut, rest},
    named::{Arguments, Head, NamedStyle},
};

/// A longer header is none.
const MAX_HEADER: usize = 512;
/// What ends a header and begins the message, and what the message then is.
const ENDS: &[(&str, Kind)] = &[
    ("<|message|>", Kind::ByFields),
    ("<|content_text|>", Kind::Text),
    ("<|content_thinking|>", Kind::Thinking),
    ("<|content_invoke_tool_json|>", Kind::Call),
];
/// What may stand within a header.
const WITHIN: &[&str] = &["<|channel|>", "<|constrain|>"];
/// The words of headers, beside a name and a recipient.
const WORDS: &[&str] =
    &["assistant", "analysis", "commentary", "final", "thought", "json", "xml", "code", "text"];
/// Channels of thinking.
const THINKING: &[&str] = &["analysis", "thought"];
/// Recipients that are no tools.
const PEOPLE: &[&str] = &["user", "all", "assistant", "commentary"];
/// What a recipient that is a tool begins with in some models.
pub(super) const NAMESPACE: &str = "functions.";

#[derive(Debug, Clone, Copy)]
enum Kind {
    ByFields,
    Text,
    Thinking,
    Call,
}

/// What a possible header is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// More text is needed.
    More,
    /// None, which is known here.
    No(usize),
    /// Of a message for the user, or of thinking; where it ends.
    Message { end: usize, thinking: bool },
    /// Of a call of this tool.
    Call { end: usize, recipient: String },
}

/// Whether this ends a header; it does not end the message.
pub(super) fn is_end(mark: &str) -> bool {
    ENDS.iter().any(|(end, _)| *end == mark)
}

/// Reads the header whose first mark has `mark` bytes.
pub(super) fn read(text: &str, mark: usize) -> Header {
    let area = cut(text, 0..text.floor_char_boundary(MAX_HEADER));
    let mut at = mark;
    let mut words = 0;
    loop {
        let here = rest(area, at);
        if let Some((end, kind)) = ENDS.iter().find(|(end, _)| here.starts_with(end)) {
            return judge(cut(text, 0..at), at + end.len(), *kind);
        }
        let whole = area.len() < MAX_HEADER;
        if let Some(within) = WITHIN.iter().find(|within| here.starts_with(**within)) {
            at += within.len();
            continue;
        }
        let open = ENDS.iter().map(|(end, _)| *end).chain(WITHIN.iter().copied());
        if open.into_iter().any(|mark| mark.starts_with(here)) {
            return if whole { Header::More } else { Header::No(at) };
        }
        if let Some(behind) = here.strip_prefix(' ') {
            at = area.len() - behind.len();
            continue;
        }
        let length = here.find(|char: char| char.is_whitespace() || char == '<').unwrap_or(here.len());
        let word = cut(here, 0..length);
        let ended = length < here.len();
        // The first word may be a name; another that is none of a header's makes this text.
        let known = word.starts_with("to=")
            || WORDS.iter().any(|known| *known == word || !ended && known.starts_with(word))
            || !ended && "to=".starts_with(word);
        if word.is_empty() || !known && words > 0 {
            return Header::No(at);
        }
        words += 1;
        at += length;
        if !ended {
            return if whole { Header::More } else { Header::No(area.len()) };
        }
    }
}

/// The header of a call, for a recipient whose arguments follow as JSON or in tags.
pub(super) fn write(name: &str, style: &NamedStyle) -> Option<String> {
    if name.contains(|char: char| char.is_whitespace() || matches!(char, '<' | '>' | '|')) {
        return None;
    }
    Some(match style.arguments {
        Arguments::Json => {
            format!(
                "<|start|>assistant<|channel|>commentary to={NAMESPACE}{name} <|constrain|>json<|message|>"
            )
        }
        _ if matches!(style.head, Head::Recipient) => {
            format!("<|start|>assistant to={name}<|channel|>analysis <|constrain|>xml<|message|>")
        }
        _ => format!("<|start|>assistant to={name}<|message|>"),
    })
}

fn judge(header: &str, end: usize, kind: Kind) -> Header {
    let fields = || header.split(|char: char| char.is_whitespace() || matches!(char, '<' | '>' | '|'));
    let recipient = fields().find_map(|field| field.strip_prefix("to=")).filter(|name| !name.is_empty());
    let channel = || fields().any(|field| THINKING.contains(&field));
    match (kind, recipient) {
        (Kind::Call, _) => Header::Call { end, recipient: String::new() },
        (Kind::Thinking, _) | (Kind::ByFields, Some("self")) => Header::Message { end, thinking: true },
        (Kind::ByFields, Some(name)) if !PEOPLE.contains(&name) => {
            Header::Call { end, recipient: name.to_owned() }
        }
        (Kind::ByFields, None) => Header::Message { end, thinking: channel() },
        _ => Header::Message { end, thinking: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_calls_from_thinking_and_text() {
        let call = |name: &str, text: &str| Header::Call { end: text.len(), recipient: name.into() };
        let message = |thinking, text: &str| Header::Message { end: text.len(), thinking };
        for (text, expected) in [
            (
                "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
                "functions.f",
            ),
            ("<|start|>assistant to=a.b<|message|>", "a.b"),
            ("to=f<|channel|>analysis <|constrain|>xml<|message|>", "f"),
        ] {
            assert_eq!(read(text, 3), call(expected, text));
            for end in 3..text.len() {
                assert_eq!(read(&text[..end], 3), Header::More, "{}", &text[..end]);
            }
        }
        for (text, thinking) in [
            ("<|channel|>analysis<|message|>", true),
            ("<|channel|>final<|message|>", false),
            ("<|start|>assistant to=self<|message|>", true),
            ("<|start|>assistant to=user<|message|>", false),
            ("<|message_model|>f<|content_thinking|>", true),
        ] {
            assert_eq!(read(text, 3), message(thinking, text));
        }
        assert_eq!(read("<|start|>assistant\n<|message|>", 9), Header::No(18));
        assert_eq!(read("<|start|>assistant <b>", 9), Header::No(19));
        assert_eq!(read("<|channel|> is what I would write", 11), Header::No(15));
        assert_eq!(read("<|start|>, he said", 9), Header::No(11));
        assert!(matches!(read(&"<|start|>".repeat(100), 9), Header::No(9)));
        assert!(matches!(read(&format!("<|start|>{}", "a".repeat(600)), 9), Header::No(512)));
    }
}
