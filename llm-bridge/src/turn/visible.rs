//! A conversation as its client can see it, as a hash: what a transcript is found by.
//!
//! Clients send back what they have seen, each in its own way: trimmed, in more or fewer parts and messages, with calls written anew and
//! other ids. So texts are compared without white space, answers as a whole, calls by names and values. System prompts do not count:
//! some have the time of day in them. The hash is the same on every machine and in every version.

use std::ops::Range;

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolrack_apis::{Call, Content, Media, MediaSource, Message, Part, Role};

/// How the text begins that is shown while a call waits for a person.
const NOTICE: &str = "[Waiting: a person has to allow `";
const NOTICE_PATH: &str = "/api/approvals/";
/// How long the rest of it may be, in bytes.
const LONGEST_NOTICE: usize = 1024;
/// So many bytes at the beginning and at the end tell files of one length apart.
const SAMPLE: usize = 4096;

/// What a client that knows nothing of approvals shows while a call waits. It is not the model's, and does not count.
pub(crate) fn approval_notice(tool: &str, base: &str, approval: &str) -> String {
    format!("{NOTICE}{tool}`. To answer: POST {{\"approve\": true}} to {base}{NOTICE_PATH}{approval}]\n\n")
}

/// In one pass, however many there are.
fn without_notices(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, notice)) = rest.split_once(NOTICE) {
        kept.push_str(before);
        let near = notice.get(..notice.floor_char_boundary(LONGEST_NOTICE)).unwrap_or_default();
        let end = near.find(NOTICE_PATH).and_then(|at| Some(at + near.get(at..)?.find(']')? + 1));
        if end.is_none() {
            kept.push_str(NOTICE);
        }
        rest = notice.get(end.unwrap_or_default()..).unwrap_or_default();
    }
    kept + rest
}

/// A hash of a conversation so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of a conversation with a model that has not begun.
    fn beginning(model: &str) -> Self {
        Self(Sha256::digest(format!("toolrack transcript 1\n{model}")).into())
    }

    /// The same, and something behind it.
    fn and(self, kind: u8, write: impl FnOnce(&mut Sha256)) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update([kind]);
        write(&mut hasher);
        Self(hasher.finalize().into())
    }

    fn and_message(self, message: &Message) -> Self {
        let kind = match message.role {
            Role::System | Role::Developer => return self,
            Role::Tool => b't',
            Role::User | Role::Assistant => b'u',
        };
        self.and(kind, |hasher| hash_parts(&message.parts, hasher))
    }

    /// The same, and the text of an answer.
    pub(super) fn and_text(self, shown: Words) -> Self {
        self.and(b'a', |hasher| hasher.update(shown.0.finalize()))
    }

    /// The same, and an answer with calls of the client's tools, in any order: a stream may have begun the later ones first. The text
    /// around them may have been shortened.
    pub(super) fn and_calls<'c>(self, calls: impl Iterator<Item = &'c Call>) -> Self {
        let mut calls: Vec<_> = calls.map(hash_call).collect();
        calls.sort_unstable();
        self.and(b'c', |hasher| calls.iter().for_each(|call| hasher.update(call)))
    }

    /// What a transcript is kept under.
    pub(super) fn key(self) -> String {
        hex(&self.0)
    }
}

/// The id of calls that a transcript is kept under, and what it is kept under for that.
pub(super) fn key_of_calls<'c>(calls: impl Iterator<Item = &'c Call>) -> Option<(String, String)> {
    let id = calls.map(|call| &call.id).min()?;
    Some((id.clone(), hex(&Sha256::digest(format!("toolrack call 1\n{id}")))))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The words of a text, as they come.
#[derive(Debug, Clone, Default)]
pub(super) struct Words(Sha256);

impl Words {
    pub(super) fn push(&mut self, text: &str) {
        text.split_whitespace().for_each(|word| self.0.update(word));
    }

    pub(super) fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.push(text);
        words
    }
}

fn hash_parts(parts: &[Part], hasher: &mut Sha256) {
    let mut words = Words::default();
    for part in parts {
        match &part.content {
            Content::Text(text) => words.push(text),
            Content::Result(result) => hash_parts(&result.parts, hasher),
            Content::Media(media) => hash_media(media, hasher),
            _ => {}
        }
    }
    hasher.update(words.0.finalize());
}

fn hash_media(media: &Media, hasher: &mut Sha256) {
    let (MediaSource::Data(data) | MediaSource::Text(data) | MediaSource::Url(data) | MediaSource::Id(data)) =
        &media.source;
    hasher.update(data.len().to_le_bytes());
    let bytes = data.as_bytes();
    let (first, last) = (SAMPLE.min(bytes.len()), bytes.len().saturating_sub(SAMPLE));
    [bytes.get(..first), bytes.get(last..)].into_iter().flatten().for_each(|sample| hasher.update(sample));
}

/// Clients write arguments anew.
fn hash_call(call: &Call) -> [u8; 32] {
    let arguments = serde_json::from_str::<Value>(&call.arguments).map(|mut arguments| {
        arguments.sort_all_objects();
        arguments.to_string()
    });
    let arguments = arguments.as_ref().unwrap_or(&call.arguments);
    let hasher = Sha256::new().chain_update(call.name.len().to_le_bytes());
    hasher.chain_update(&call.name).chain_update(arguments).finalize().into()
}

/// An answer in a conversation: messages of the assistant that follow each other.
#[derive(Debug)]
pub(super) struct VisibleAnswer {
    /// Which messages.
    pub(super) messages: Range<usize>,
    /// What its transcript is kept under.
    pub(super) key: String,
    /// The same for the id of one of its calls, if it has any, and that id.
    pub(super) call: Option<(String, String)>,
}

/// A conversation as its client can see it.
#[derive(Debug)]
pub(super) struct VisibleConversation {
    pub(super) answers: Vec<VisibleAnswer>,
    /// All before the next answer.
    pub(super) before: Fingerprint,
    /// The text that the next answer goes on with, where the conversation ends with an answer.
    pub(super) begun: String,
    /// Whether it ends with calls that have no results.
    pub(super) is_unanswered: bool,
}

impl VisibleConversation {
    pub(super) fn of(model: &str, messages: &[Message]) -> Self {
        let mut before = Fingerprint::beginning(model);
        let (mut answers, mut begin, mut begun) = (Vec::new(), 0, None);
        let is_assistant = |message: &Message| message.role == Role::Assistant;
        for messages in messages.chunk_by(|one, other| is_assistant(one) && is_assistant(other)) {
            let range = begin..begin + messages.len();
            begin = range.end;
            if !messages.iter().all(is_assistant) {
                before = messages.iter().fold(before, |before, message| before.and_message(message));
                begun = None;
                continue;
            }
            let calls = || messages.iter().flat_map(Message::calls);
            let call = key_of_calls(calls());
            let text = if call.is_none() { text_of(messages) } else { String::new() };
            let after = match call {
                Some(_) => before.and_calls(calls()),
                None => before.and_text(Words::of(&text)),
            };
            begun = Some((before, text, call.is_some()));
            answers.push(VisibleAnswer { messages: range, key: after.key(), call });
            before = after;
        }
        match begun {
            Some((before, begun, is_unanswered)) => Self { answers, before, begun, is_unanswered },
            None => Self { answers, before, begun: String::new(), is_unanswered: false },
        }
    }
}

/// What the model wrote in an answer that has no calls.
fn text_of(messages: &[Message]) -> String {
    let texts = messages.iter().flat_map(|message| &message.parts).filter_map(|part| match &part.content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    });
    // One text may be cut into several parts.
    let text: String = texts.collect();
    if text.contains(NOTICE) { without_notices(&text) } else { text }
}

#[cfg(test)]
mod tests {
    use toolrack_apis::{Reasoning, ToolResult};

    use super::*;

    fn text(role: Role, text: &str) -> Message {
        Message::text(role, text)
    }

    fn keys(messages: &[Message]) -> Vec<String> {
        VisibleConversation::of("m", messages).answers.into_iter().map(|answer| answer.key).collect()
    }

    fn parts(texts: &[&str]) -> Message {
        let parts = texts.iter().map(|text| Content::Text((*text).to_owned()).into());
        Message::new(Role::Assistant, parts.collect())
    }

    #[test]
    fn b15_a_conversation_has_the_same_hash_on_every_machine() {
        let said = [text(Role::User, "Hi."), text(Role::Assistant, "Hello.")];
        assert_eq!(keys(&said), ["b0bf34d1f40ae65c51e536c9375222dd9e69a4b8300547440f7493696450df07"]);
    }

    #[test]
    fn g8_an_answer_has_one_hash_however_clients_send_it_back() {
        let user = || text(Role::User, "Is it\n cold?");
        let of = |answer: Vec<Message>| {
            let messages: Vec<Message> = [user()].into_iter().chain(answer).collect();
            keys(&messages)
        };
        let whole = of(vec![text(Role::Assistant, "First.\n\nIt is  cold.\n")]);
        assert_eq!(whole.len(), 1);
        let notice = approval_notice("mail.send", "http://[::1]:7331", "ab12");
        let reasoning = Content::Reasoning(Reasoning { text: "Hm.".into(), seal: None });
        for same in [
            vec![text(Role::Assistant, "First.\n\nIt is  cold.")],
            vec![parts(&["First.", "It is cold."])],
            vec![parts(&["Fir", "st.\n\nIt i"]), parts(&["s cold."])],
            vec![text(Role::Assistant, &format!("First.\n\n{notice}It is cold."))],
            vec![Message::new(Role::Assistant, vec![reasoning.into()]), parts(&["First. It is cold."])],
        ] {
            assert_eq!(of(same.clone()), whole, "{same:?}");
        }
        for other in ["First.\n\nIt is old.", "It is cold.", ""] {
            assert_ne!(of(vec![text(Role::Assistant, other)]), whole, "{other}");
        }
        // A system prompt may change, and what the user says may not.
        let answer = || text(Role::Assistant, "First. It is cold.");
        assert_eq!(keys(&[text(Role::System, "It is ten."), user(), answer()]), whole);
        assert_ne!(keys(&[text(Role::User, "Is it warm?"), answer()]), whole);
        let other_model = VisibleConversation::of("n", &[user(), answer()]);
        assert_ne!(other_model.answers[0].key, whole[0]);
    }

    #[test]
    fn a2_notices_are_left_out_in_one_pass() {
        let notice = approval_notice("mail.send", "http://127.0.0.1:7331", "ab12");
        let many = format!("One{notice}").repeat(20_000);
        assert_eq!(without_notices(&many).replace('\n', ""), "One".repeat(20_000));
        let broken = format!("{NOTICE}ü").repeat(20_000);
        assert_eq!(without_notices(&broken), broken);
    }

    #[test]
    fn g8_calls_have_one_hash_whatever_their_ids_and_spaces() {
        let call = |id: &str, arguments: &str| {
            let call = Content::Call(Call::new(id, "f", arguments));
            Message::new(Role::Assistant, vec![Content::Text("I look.".into()).into(), call.into()])
        };
        let result = |id: &str, said: &str| {
            let parts = vec![Content::Text(said.into()).into()];
            Message::result(ToolResult { call_id: id.into(), parts, ..ToolResult::default() })
        };
        let of = |id: &str, arguments: &str, said: &str| {
            keys(&[
                text(Role::User, "Go."),
                call(id, arguments),
                result(id, said),
                text(Role::Assistant, "Ok."),
            ])
        };
        let whole = of("1", r#"{"a":1,"b":[{"d":2,"c":3}]}"#, "rain");
        assert_eq!(of("2", r#"{"b": [{"c": 3, "d": 2}], "a": 1}"#, "rain\n"), whole);
        let both = |ids: [&str; 2]| {
            let calls = ids.map(|id| Content::Call(Call::new(id, format!("f{id}"), "{}")).into());
            let message = Message::new(Role::Assistant, calls.into());
            VisibleConversation::of("m", &[message]).answers.remove(0)
        };
        let [one, other] = [both(["1", "2"]), both(["2", "1"])];
        assert_eq!((one.key, one.call), (other.key, other.call));
        let other = of("1", r#"{"a":2}"#, "rain");
        assert!(other[0] != whole[0] && other[1] != whole[1]);
        let other = of("1", r#"{"a":1,"b":[{"d":2,"c":3}]}"#, "sun");
        assert!(other[0] == whole[0] && other[1] != whole[1]);
    }
}
