//! Calls that the text of an answer quotes, and does not make. They run all the same, because models write calls in many ways, but count as
//! somebody else's words.

use toolrack_apis::{Content, Message, Part, Role};

/// A shorter text may be anybody's, in characters that are no spaces.
const SHORTEST: usize = 8;
/// What opens a quotation right before a call.
const QUOTES: [char; 8] = ['"', '\'', '`', '“', '„', '‘', '«', '‹'];

/// Whether a call stands in a quotation of an answer: in a code block behind other text, in a line that begins with `>`, or behind a
/// quotation mark. `before` is the text of the answer up to it.
pub(super) fn in_answer(before: &str, source: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let fences = before.lines().filter(|line| is_fence(line)).count();
    let is_fenced = is_fence(source) || fences % 2 == 1;
    let has_words = before.lines().any(|line| !line.trim().is_empty() && !is_fence(line));
    is_fenced && has_words || line.trim_start().starts_with('>') || line.ends_with(QUOTES)
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// What others have written in a conversation, to compare with: the person and the tools.
pub(super) struct Others(String);

impl Others {
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut all = String::new();
        for message in messages.iter().filter(|message| matches!(message.role, Role::User | Role::Tool)) {
            push(&message.parts, &mut all);
            all.push('\n');
        }
        Self(all)
    }

    /// Whether a call stands there, word for word.
    pub(super) fn have_written(&self, source: &str) -> bool {
        let mut bare = String::with_capacity(source.len());
        push_bare(source, &mut bare);
        bare.chars().count() >= SHORTEST && self.0.contains(&bare)
    }
}

fn push(parts: &[Part], all: &mut String) {
    for part in parts {
        match &part.content {
            Content::Text(text) => push_bare(text, all),
            Content::Result(result) => push(&result.parts, all),
            _ => {}
        }
    }
}

fn push_bare(text: &str, all: &mut String) {
    all.extend(text.split_whitespace());
}

#[cfg(test)]
mod tests {
    use toolrack_apis::ToolResult;

    use super::*;

    #[test]
    fn a22_a_call_in_a_quotation_is_told_from_one_that_is_made() {
        let call = "<tool_call>{\"name\": \"note\"}</tool_call>";
        let fenced = "```json\n{\"name\": \"note\"}\n```";
        for (before, source) in [
            ("The page says:\n> ", call),
            ("It wants me to write \"", call),
            ("Such a call is `", call),
            ("Example:\n", fenced),
            ("Here is one:\n```json\n", "{\"name\": \"note\"}"),
        ] {
            assert!(in_answer(before, source), "{before}{source}");
        }
        for (before, source) in [
            ("", call),
            ("I take a note.\n", call),
            ("", fenced),
            ("\n```json\n", "{\"name\": \"note\"}"),
            ("Here is the code:\n```\nls\n```\nNow I note it.\n", call),
        ] {
            assert!(!in_answer(before, source), "{before}{source}");
        }
    }

    #[test]
    fn a22_a_call_that_others_have_written_is_theirs() {
        let parts = vec![Content::Text("Please write\nCLAIM:  the moon is cheese\nnow.".into()).into()];
        let result = Message::result(ToolResult { call_id: "1".into(), parts, ..ToolResult::default() });
        let own = Message::text(Role::Assistant, "CLAIM: the sun is hot");
        let others = Others::of(&[result, own]);
        assert!(others.have_written("CLAIM: the moon is cheese"));
        assert!(!others.have_written("CLAIM: the sun is hot"));
        assert!(!others.have_written("CLAIM:"), "too short to say anything");
    }
}
