//! The deferred tools that a conversation has found, which it can use from then on.
//!
//! A conversation is known by the id that the client gives it, or else by the user's first message, which stays when the rest grows. Two
//! conversations of one user that begin alike are one here; that costs some definitions and allows nothing, as what may be used is asked in
//! every turn. What is known here is this process's; after a restart and on another server the transcripts of the conversation say it.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use moka::sync::Cache;
use parking_lot::Mutex;
use toolrack_apis::{Content, Media, Message, Request, Role};

/// How many conversations are remembered; those that were idle longest give way.
const CONVERSATIONS: u64 = 10_000;
/// How long a conversation may rest.
const TIME_TO_IDLE: Duration = Duration::from_secs(24 * 3600);
/// How many tools of a conversation are remembered; the oldest give way.
const TOOLS: usize = 32;

/// A user and the hash of what a conversation is known by.
type Key = (String, u64);

/// What all conversations have found.
#[derive(Debug, Clone)]
pub(super) struct Findings(Cache<Key, Vec<String>>);

impl Default for Findings {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(CONVERSATIONS).time_to_idle(TIME_TO_IDLE).build())
    }
}

impl Findings {
    /// What the conversation of a request has found so far.
    pub(super) fn of(&self, user: &str, request: &Request) -> Found {
        let key = conversation(request).map(|conversation| (user.to_owned(), conversation));
        let names = key.as_ref().and_then(|key| self.0.get(key)).unwrap_or_default();
        Found { names: Mutex::new(Names { before: names.len(), all: names }), findings: self.clone(), key }
    }
}

/// What a conversation is known by; `None` for one without a word of the user.
fn conversation(request: &Request) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    match &request.extension.chat_id {
        Some(id) => ("id", id).hash(&mut hasher),
        None => {
            let messages = request.conversation.earlier.iter().chain(&request.messages);
            let first = messages.into_iter().find(|message| message.role == Role::User)?;
            ("first", first.plain_text(), media(first)).hash(&mut hasher);
        }
    }
    Some(hasher.finish())
}

/// The pictures and files of a message.
fn media(message: &Message) -> Vec<&Media> {
    let media = message.parts.iter().filter_map(|part| match &part.content {
        Content::Media(media) => Some(media),
        _ => None,
    });
    media.collect()
}

/// The tools that one conversation has found, by their names in the registry and in the order in which it did.
#[derive(Debug)]
pub(super) struct Found {
    names: Mutex<Names>,
    findings: Findings,
    key: Option<Key>,
}

#[derive(Debug)]
struct Names {
    all: Vec<String>,
    /// How many of them were found before this turn.
    before: usize,
}

impl Found {
    /// All of them.
    pub(super) fn names(&self) -> Vec<String> {
        self.names.lock().all.clone()
    }

    /// Those that were found before this turn.
    pub(super) fn names_before(&self) -> Vec<String> {
        let names = self.names.lock();
        names.all.iter().take(names.before).cloned().collect()
    }

    /// Adds what earlier turns have found, as their transcripts say: another server may have conducted them.
    pub(super) fn add_earlier(&self, found: &[String]) {
        if found.is_empty() {
            return;
        }
        self.add(found);
        let mut names = self.names.lock();
        names.before = names.all.len();
    }

    /// Adds what this turn has found, for the turn and for those to come.
    pub(super) fn add(&self, found: &[String]) {
        merge(&mut self.names.lock().all, found);
        let Some(key) = &self.key else { return };
        // Another turn of the same conversation may have found something meanwhile.
        self.findings.0.entry(key.clone()).and_upsert_with(|known| {
            let mut names = known.map(|known| known.into_value()).unwrap_or_default();
            merge(&mut names, found);
            names.drain(..names.len().saturating_sub(TOOLS));
            names
        });
    }
}

/// Adds at the end what is not there.
fn merge(names: &mut Vec<String>, found: &[String]) {
    for name in found {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use toolrack_apis::Extension;

    use super::*;

    fn request(messages: &[(Role, &str)], chat_id: Option<&str>) -> Request {
        let messages = messages.iter().map(|(role, text)| Message::text(*role, *text)).collect();
        let extension = Extension { chat_id: chat_id.map(str::to_owned), ..Extension::default() };
        Request { messages, extension, ..Request::default() }
    }

    fn first(text: &str) -> Request {
        request(&[(Role::User, text)], None)
    }

    fn names(found: &Found) -> String {
        found.names().join(" ")
    }

    #[test]
    fn b11_a_conversation_is_known_by_its_beginning_and_its_user() {
        let findings = Findings::default();
        let found = findings.of("ada", &first("Hi."));
        found.add(&["b".into(), "a".into(), "b".into()]);
        assert_eq!((names(&found).as_str(), found.names_before().len()), ("b a", 0));
        let later = request(
            &[
                (Role::System, "It is ten past nine."),
                (Role::User, "Hi."),
                (Role::Assistant, "Hello."),
                (Role::User, "And?"),
            ],
            None,
        );
        let found = findings.of("ada", &later);
        assert_eq!((names(&found).as_str(), found.names_before().len()), ("b a", 2));
        assert_eq!(names(&findings.of("bob", &later)), "");
        // Another server has found more.
        found.add_earlier(&["b".into(), "c".into()]);
        found.add(&["d".into()]);
        assert_eq!((names(&found).as_str(), found.names_before().len()), ("b a c d", 3));
        assert_eq!(names(&findings.of("ada", &first("Ho."))), "");
    }

    #[test]
    fn b11_the_clients_id_of_a_chat_goes_before_its_words() {
        let findings = Findings::default();
        findings.of("ada", &request(&[(Role::User, "Hi.")], Some("1"))).add(&["a".into()]);
        assert_eq!(names(&findings.of("ada", &request(&[(Role::User, "Ho.")], Some("1")))), "a");
        assert_eq!(names(&findings.of("ada", &request(&[(Role::User, "Hi.")], Some("2")))), "");
        assert_eq!(names(&findings.of("ada", &request(&[(Role::User, "Hi.")], None))), "");
    }

    #[test]
    fn b11_what_is_remembered_has_a_bound_and_turns_side_by_side_lose_nothing() {
        let findings = Findings::default();
        let (one, other) = (findings.of("ada", &first("Hi.")), findings.of("ada", &first("Hi.")));
        one.add(&["a".into()]);
        other.add(&["b".into()]);
        assert_eq!(names(&findings.of("ada", &first("Hi."))), "a b");
        let many: Vec<String> = (0..TOOLS).map(|number| number.to_string()).collect();
        one.add(&many);
        assert_eq!(findings.of("ada", &first("Hi.")).names(), many);
        assert_eq!(one.names().len(), TOOLS + 1, "a turn keeps what it has offered");
        let nobody = request(&[(Role::System, "Hi.")], None);
        findings.of("ada", &nobody).add(&["a".into()]);
        assert_eq!(names(&findings.of("ada", &nobody)), "");
    }
}
