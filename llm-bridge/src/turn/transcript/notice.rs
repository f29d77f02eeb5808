//! What is shown in an answer while a call waits for a person: it is not the model's, and does not count in the conversation.

use registry_core::text::cut;
use toolrack_apis::AskedQuestion;

/// How the text begins that is shown while a call waits for a person.
const NOTICE: &str = "[Waiting: a person has to allow `";
const NOTICE_PATH: &str = "/api/approvals/";
/// The same for a question of a tool.
const QUESTION: &str = "[Question from the tool `";
const QUESTION_PATH: &str = "/api/questions/";
/// How much of a question is shown, in bytes.
const LONGEST_QUESTION: usize = 512;
/// How long the rest of it may be, in bytes.
const LONGEST_NOTICE: usize = 1024;

/// What a client that knows nothing of approvals shows while a call waits.
pub(crate) fn approval_notice(tool: &str, reason: Option<&str>, base: &str, approval: &str) -> String {
    let reason = reason.map(|reason| format!(" {}", cut(reason.to_owned(), LONGEST_QUESTION)));
    let reason = reason.unwrap_or_default();
    format!(
        "{NOTICE}{tool}`.{reason} To answer: POST {{\"approve\": true}} to {base}{NOTICE_PATH}{approval}]\n\n"
    )
}

/// The same while a call asks the user, or when it has to be made again with the answer.
pub(crate) fn question_notice(tool: &str, base: &str, asked: &AskedQuestion) -> String {
    let AskedQuestion { id, text, waits, .. } = asked;
    let text = cut(text.clone(), LONGEST_QUESTION);
    let how = if *waits { "To answer" } else { "Answer in your next message, or" };
    let body = "{\"answer\": …}";
    format!("{QUESTION}{tool}`: {text} — {how} POST {body} to {base}{QUESTION_PATH}{id}]\n\n")
}

/// The text without them.
pub(super) fn without_notices(text: String) -> String {
    if !text.contains(NOTICE) && !text.contains(QUESTION) {
        return text;
    }
    without(&without(&text, NOTICE, NOTICE_PATH), QUESTION, QUESTION_PATH)
}

/// In one pass, however many there are.
fn without(text: &str, begin: &str, path: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, notice)) = rest.split_once(begin) {
        kept.push_str(before);
        let near = notice.get(..notice.floor_char_boundary(LONGEST_NOTICE)).unwrap_or_default();
        let end = near.find(path).and_then(|at| Some(at + near.get(at..)?.find(']')? + 1));
        if end.is_none() {
            kept.push_str(begin);
        }
        rest = notice.get(end.unwrap_or_default()..).unwrap_or_default();
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a2_notices_are_left_out_in_one_pass() {
        let notice = approval_notice("mail.send", None, "http://127.0.0.1:7331", "ab12");
        let many = format!("One{notice}").repeat(20_000);
        assert_eq!(without_notices(many).replace('\n', ""), "One".repeat(20_000));
        let broken = format!("{NOTICE}ü").repeat(20_000);
        assert_eq!(without_notices(broken.clone()), broken);
    }
}
