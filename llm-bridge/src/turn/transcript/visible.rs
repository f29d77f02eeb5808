//! A conversation as its client can see it, as a hash: what a transcript is found by.
//!
//! Clients send back what they have seen, each in its own way: trimmed, in more or fewer parts and messages, with calls written anew and
//! other ids. So texts are compared without white space, answers as a whole, calls by names and values. System prompts do not count:
//! some have the time of day in them.

use std::ops::Range;

use toolrack_apis::{Content, EarlierAnswer, Message, Role, SeenAnswer};

use super::{
    fingerprint::{Fingerprint, Link, Words, key_of_calls},
    notice::without_notices,
};

/// Where an answer stands, for what its conversation has read: that is found again where the beginning of the conversation is the same, and
/// where the answer is, whatever a client has left out or worded anew before it. Where it is short, what was asked has to be the same, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    before: Fingerprint,
    /// The same, whichever model is asked.
    of_any_model: Fingerprint,
    /// The last message before the answer.
    asked: Fingerprint,
}

impl Standing {
    fn beginning(model: &str) -> Self {
        let nothing = Fingerprint::beginning("");
        Self { before: Fingerprint::beginning(model), of_any_model: nothing, asked: nothing }
    }

    /// The keys of an answer that has begun: of this model, and of any.
    pub(super) fn begun_keys(self) -> [String; 2] {
        [self.before, self.of_any_model].map(Fingerprint::flow_key)
    }

    /// The place behind this.
    fn after(self, link: &Link) -> Self {
        Self { before: self.before.and(link), of_any_model: self.of_any_model.and(link), ..self }
    }

    /// The key of an answer that is all there.
    pub(super) fn answered_key(self, answer: Words) -> String {
        let before = if answer.are_telling() { Fingerprint::beginning("") } else { self.asked };
        before.and(&Link::text(answer)).flow_key()
    }
}

/// So many messages of an answer are looked at alone, the last ones.
const JOINED: usize = 8;

/// Whether a text begins with the words of another.
pub(super) fn begins_with(text: &str, beginning: &str) -> bool {
    behind(text, beginning).is_some()
}

/// What a text has behind the words of another, if it begins with them.
pub(super) fn behind<'t>(text: &'t str, beginning: &str) -> Option<&'t str> {
    let mut letters = text.char_indices().filter(|(_, letter)| !letter.is_whitespace());
    let mut end = 0;
    for letter in beginning.chars().filter(|letter| !letter.is_whitespace()) {
        let (at, _) = letters.next().filter(|(_, other)| *other == letter)?;
        end = at + letter.len_utf8();
    }
    text.get(end..)
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
    /// Without calls: its text, and what its transcript is kept under if it broke off.
    pub(super) broken: Option<(String, String)>,
    /// What its conversation had read is kept under these.
    pub(super) flow: Vec<String>,
    /// Whether it is there with all that its turn has added.
    pub(super) is_whole: bool,
}

impl VisibleAnswer {
    /// All that its transcript may be kept under.
    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        let others = [&self.call, &self.broken].into_iter().flatten().map(|(_, key)| key);
        [&self.key].into_iter().chain(others)
    }
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
    /// The same place, for what was read.
    pub(super) standing: Standing,
}

impl VisibleConversation {
    /// The conversation of these messages, of which `whole` are answers that the server has kept.
    pub(super) fn of(model: &str, messages: &[Message], whole: &[EarlierAnswer]) -> Self {
        let mut reading = Reading::new(model);
        for answer in whole {
            let Range { start, end } = answer.messages;
            reading.read(messages.get(reading.end..start).unwrap_or_default(), false);
            let after =
                answer.seen.as_ref().and_then(|seen| Some((seen, Fingerprint::of_key(&seen.conversation)?)));
            match after {
                Some((seen, after)) => reading.pass(start..end, seen, after),
                None => reading.read(messages.get(start..end).unwrap_or_default(), true),
            }
        }
        reading.read(messages.get(reading.end..).unwrap_or_default(), false);
        reading.conversation()
    }
}

/// A conversation that is being read.
struct Reading {
    standing: Standing,
    answers: Vec<VisibleAnswer>,
    /// How many messages are read.
    end: usize,
    /// What is before the answer that they end with, if they do, its text, and whether it has calls.
    begun: Option<(Fingerprint, String, bool)>,
}

impl Reading {
    fn new(model: &str) -> Self {
        Self { standing: Standing::beginning(model), answers: Vec::new(), end: 0, begun: None }
    }

    /// Reads the messages that follow, as a client sends them.
    fn read(&mut self, messages: &[Message], is_whole: bool) {
        let is_assistant = |message: &Message| message.role == Role::Assistant;
        for messages in messages.chunk_by(|one, other| is_assistant(one) && is_assistant(other)) {
            let before = self.standing.before;
            let range = self.end..self.end + messages.len();
            self.end = range.end;
            if !messages.iter().all(is_assistant) {
                for message in messages {
                    let Some(link) = Link::message(message) else { continue };
                    self.standing = self.standing.after(&link);
                    self.standing.asked = Fingerprint::beginning("").and(&link);
                }
                self.begun = None;
                continue;
            }
            let calls = || messages.iter().flat_map(Message::calls);
            let call = key_of_calls(calls());
            let text = if call.is_none() { text_of(messages) } else { String::new() };
            let words = Words::of(&text);
            let link = if call.is_some() { Link::calls(calls()) } else { Link::text(words.clone()) };
            let after = self.standing.after(&link);
            // Without the question between them two answers look like one.
            let alone = messages.chunks(1).rev().take(if messages.len() > 1 { JOINED } else { 0 });
            let mut flow: Vec<String> =
                alone.map(|one| self.standing.answered_key(Words::of(&text_of(one)))).collect();
            flow.extend(call.is_none().then(|| self.standing.answered_key(words.clone())));
            flow.extend(self.standing.begun_keys());
            let broken = (!text.is_empty()).then(|| (text.clone(), before.and_beginning().key()));
            self.begun = Some((before, text, call.is_some()));
            self.answers.push(VisibleAnswer {
                messages: range,
                key: after.before.key(),
                call,
                broken,
                flow,
                is_whole,
            });
            self.standing = after;
        }
    }

    /// Passes an answer that is whole, after which the conversation is known as this.
    fn pass(&mut self, range: Range<usize>, seen: &SeenAnswer, after: Fingerprint) {
        self.end = range.end;
        (self.standing.before, self.standing.of_any_model, self.begun) = (after, after, None);
        let (key, flow) = (after.key(), seen.read.clone());
        self.answers.push(VisibleAnswer {
            messages: range,
            key,
            call: None,
            broken: None,
            flow,
            is_whole: true,
        });
    }

    fn conversation(self) -> VisibleConversation {
        let Self { mut standing, answers, begun, .. } = self;
        let (before, begun, is_unanswered) = begun.unwrap_or_else(|| (standing.before, String::new(), false));
        standing.before = before;
        VisibleConversation { answers, before, begun, is_unanswered, standing }
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
    without_notices(text)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use toolrack_apis::{AskedQuestion, Call, Reasoning, ToolResult};

    use super::{
        super::notice::{approval_notice, question_notice},
        *,
    };

    fn text(role: Role, text: &str) -> Message {
        Message::text(role, text)
    }

    fn keys(messages: &[Message]) -> Vec<String> {
        VisibleConversation::of("m", messages, &[]).answers.into_iter().map(|answer| answer.key).collect()
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
        let notice = approval_notice("mail.send", Some(&"Why. ".repeat(400)), "http://[::1]:7331", "ab12");
        let asked = AskedQuestion {
            id: "cd34".into(),
            message: "Which?".into(),
            schema: Value::Null,
            text: format!("Which? 1. [a] 2. {}", "ü".repeat(4000)),
            seconds: 300,
            waits: false,
        };
        let question = question_notice("bank.balance", "http://[::1]:7331", &asked);
        let reasoning = Content::Reasoning(Reasoning { text: "Hm.".into(), seal: None });
        for same in [
            vec![text(Role::Assistant, "First.\n\nIt is  cold.")],
            vec![parts(&["First.", "It is cold."])],
            vec![parts(&["Fir", "st.\n\nIt i"]), parts(&["s cold."])],
            vec![text(Role::Assistant, &format!("First.\n\n{notice}It is cold."))],
            vec![text(Role::Assistant, &format!("First.\n\n{notice}{question}It is {question}cold."))],
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
        let other_model = VisibleConversation::of("n", &[user(), answer()], &[]);
        assert_ne!(other_model.answers[0].key, whole[0]);
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
        assert_eq!(of("1", r#"{"a":1.0,"b":[{"d":2e0,"c":3}]}"#, "rain"), whole, "as JavaScript reads it");
        assert_eq!(of("1", "", "rain"), of("1", "{}", "rain"));
        let both = |ids: [&str; 2]| {
            let calls = ids.map(|id| Content::Call(Call::new(id, format!("f{id}"), "{}")).into());
            let message = Message::new(Role::Assistant, calls.into());
            VisibleConversation::of("m", &[message], &[]).answers.remove(0)
        };
        let [one, other] = [both(["1", "2"]), both(["2", "1"])];
        assert_eq!((one.key, one.call), (other.key, other.call));
        let other = of("1", r#"{"a":2}"#, "rain");
        assert!(other[0] != whole[0] && other[1] != whole[1]);
        let other = of("1", r#"{"a":1,"b":[{"d":2,"c":3}]}"#, "sun");
        assert!(other[0] == whole[0] && other[1] != whole[1]);
    }
}
