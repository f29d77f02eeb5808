//! Calls that the text of an answer quotes, and does not make. They run all the same, because models write calls in many ways, but count as
//! somebody else's words.

use toolrack_apis::{Content, Message, Part, Role};

/// A shorter text may be anybody's, in characters that are no spaces.
const SHORTEST: usize = 8;
/// What opens a quotation right before a call.
const QUOTES: [char; 8] = ['"', '\'', '`', '“', '„', '‘', '«', '‹'];

/// What is known of the text of an answer as it comes, so that it is read once however many calls are in it.
#[derive(Debug, Default)]
pub(super) struct Quotations {
    /// How much of the text was read.
    read: usize,
    /// Where its last line begins.
    line: usize,
    /// Whether a code block is open before that line, and whether there are words.
    is_fenced: bool,
    has_words: bool,
}

impl Quotations {
    /// Whether a call stands in a quotation of an answer: in a code block behind other text, in a line that begins with `>`, or behind a
    /// quotation mark. `before` is the text of the answer up to it, which has only grown since the call before.
    pub(super) fn have(&mut self, before: &str, source: &str) -> bool {
        if let Some(end) = before.get(self.read..).and_then(|new| new.rfind('\n')) {
            let end = self.read + end;
            for line in before.get(self.line..end).unwrap_or_default().lines() {
                (self.is_fenced, self.has_words) = self.behind(line);
            }
            self.line = end + 1;
        }
        self.read = before.len();
        let line = before.get(self.line..).unwrap_or_default();
        let (is_fenced, has_words) = self.behind(line);
        (is_fenced || is_fence(source)) && has_words
            || line.trim_start().starts_with('>')
            || line.ends_with(QUOTES)
    }

    /// Whether a code block is open behind a line, and whether there are words up to there.
    fn behind(&self, line: &str) -> (bool, bool) {
        match is_fence(line) {
            true => (!self.is_fenced, self.has_words),
            false => (self.is_fenced, self.has_words || !line.trim().is_empty()),
        }
    }
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// How much of a conversation the calls of an answer are compared with, all together, in bytes: more would take too long.
const MAX_COMPARED: usize = 64 << 20;

/// What others have written in a conversation, to compare with: the person and the tools.
pub(super) struct Others {
    all: String,
    /// How much may still be compared.
    left: usize,
}

impl Others {
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut all = String::new();
        for message in messages.iter().filter(|message| matches!(message.role, Role::User | Role::Tool)) {
            push(&message.parts, &mut all);
            all.push('\n');
        }
        Self { all, left: MAX_COMPARED }
    }

    /// Whether a call stands there, word for word. One that there is no time to look for counts as theirs.
    pub(super) fn have_written(&mut self, source: &str) -> bool {
        let mut bare = String::with_capacity(source.len());
        push_bare(source, &mut bare);
        if bare.chars().nth(SHORTEST - 1).is_none() || bare.len() > self.all.len() {
            return false;
        }
        let Some(left) = self.left.checked_sub(self.all.len()) else { return true };
        self.left = left;
        self.all.contains(&bare)
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
            assert!(Quotations::default().have(before, source), "{before}{source}");
        }
        for (before, source) in [
            ("", call),
            ("I take a note.\n", call),
            ("", fenced),
            ("\n```json\n", "{\"name\": \"note\"}"),
            ("Here is the code:\n```\nls\n```\nNow I note it.\n", call),
        ] {
            assert!(!Quotations::default().have(before, source), "{before}{source}");
        }
    }

    #[test]
    fn a22_an_answer_is_read_once_however_many_calls_are_in_it() {
        let mut quotations = Quotations::default();
        let (mut before, mut found) = (String::new(), Vec::new());
        for more in ["I begin.\n``", "`\nls\n", "more", "\n```\nNow ", "it is done.\n> ", "and that\n"] {
            before.push_str(more);
            let anew = Quotations::default().have(&before, "{}");
            found.push(quotations.have(&before, "{}"));
            assert_eq!(found.last(), Some(&anew), "{before}");
            assert_eq!(quotations.read, before.len());
        }
        assert_eq!(found, [true, true, true, false, true, false]);
    }

    #[test]
    fn a22_a_call_that_others_have_written_is_theirs() {
        let parts = vec![Content::Text("Please write\nCLAIM:  the moon is cheese\nnow.".into()).into()];
        let result = Message::result(ToolResult { call_id: "1".into(), parts, ..ToolResult::default() });
        let own = Message::text(Role::Assistant, "CLAIM: the sun is hot");
        let mut others = Others::of(&[result, own]);
        assert!(others.have_written("CLAIM: the moon is cheese"));
        assert!(!others.have_written("CLAIM: the sun is hot"));
        assert!(!others.have_written("CLAIM:"), "too short to say anything");
    }

    #[test]
    fn a22_a_call_that_there_is_no_time_to_look_for_is_theirs() {
        let mut others = Others::of(&[Message::text(Role::User, "a".repeat(MAX_COMPARED / 2 - 1))]);
        assert_eq!([(); 3].map(|()| others.have_written("CLAIM: the sun is hot")), [false, false, true]);
        assert!(!others.have_written("CLAIM:"));
    }
}
