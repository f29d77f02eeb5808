//! Hashes of conversations, of calls and of words, the same on every machine and in every version.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolrack_apis::{Call, Content, Media, MediaSource, Message, Part, Role};

/// So many bytes at the beginning and at the end tell files of one length apart.
const SAMPLE: usize = 4096;

/// A hash of a conversation so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of a conversation with a model that has not begun.
    pub(super) fn beginning(model: &str) -> Self {
        Self(Sha256::digest(format!("toolrack transcript 1\n{model}")).into())
    }

    /// The same, and this behind it.
    pub(super) fn and(self, link: &Link) -> Self {
        let hasher = Sha256::new().chain_update(self.0).chain_update([link.kind]);
        Self(hasher.chain_update(&link.content).finalize().into())
    }

    /// The same, and an answer of which only the beginning is known.
    pub(super) fn and_beginning(self) -> Self {
        self.and(&Link { kind: b'b', content: Vec::new() })
    }

    /// The one of a [key](Self::key).
    pub(super) fn of_key(key: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if key.len() != 2 * bytes.len() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(key.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// What a transcript is kept under.
    pub(super) fn key(self) -> String {
        hex(&self.0)
    }

    /// What is kept of what a conversation has read, apart from its transcripts.
    pub(super) fn flow_key(self) -> String {
        hex(&Sha256::digest(format!("toolrack flow 1\n{}", self.key())))
    }
}

/// What stands behind a conversation so far, as its hash takes it.
pub(super) struct Link {
    kind: u8,
    content: Vec<u8>,
}

impl Link {
    /// A message; `None` of one that does not count.
    pub(super) fn message(message: &Message) -> Option<Self> {
        let kind = match message.role {
            Role::System | Role::Developer => return None,
            Role::Tool => b't',
            Role::User | Role::Assistant => b'u',
        };
        let mut content = Vec::new();
        put_parts(&message.parts, &mut content);
        Some(Self { kind, content })
    }

    /// The text of an answer.
    pub(super) fn text(shown: Words) -> Self {
        Self { kind: b'a', content: shown.hasher.finalize().to_vec() }
    }

    /// An answer with calls of the client's tools, in any order: a stream may have begun the later ones first. The text around them may
    /// have been shortened.
    pub(super) fn calls<'c>(calls: impl Iterator<Item = &'c Call>) -> Self {
        let mut calls: Vec<_> = calls.map(hash_call).collect();
        calls.sort_unstable();
        Self { kind: b'c', content: calls.concat() }
    }
}

/// The id of calls that a transcript is kept under, and what it is kept under for that.
pub(super) fn key_of_calls<'c>(calls: impl Iterator<Item = &'c Call>) -> Option<(String, String)> {
    let id = calls.map(|call| &call.id).min()?;
    Some((id.clone(), hex(&Sha256::digest(format!("toolrack call 1\n{id}")))))
}

/// What is kept under a chat's id of what it has read: its messages may come to another model in other words.
pub(in super::super) fn key_of_chat(id: &str) -> String {
    hex(&Sha256::digest(format!("toolrack flow of chat 1\n{id}")))
}

/// What the whole text of a shortened result is kept under.
pub(super) fn key_of_result(id: &str) -> String {
    hex(&Sha256::digest(format!("toolrack result 1\n{id}")))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether two calls are the same, however their arguments are written.
pub(super) fn is_same_call(one: &Call, other: &Call) -> bool {
    one.name == other.name && (one.arguments == other.arguments || hash_call(one) == hash_call(other))
}

/// A text of so many letters is hardly written a second time.
const TELLING_LETTERS: usize = 24;

/// The words of a text, as they come.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    hasher: Sha256,
    letters: usize,
}

impl Words {
    pub(super) fn push(&mut self, text: &str) {
        for word in text.split_whitespace() {
            self.hasher.update(word);
            self.letters = self.letters.saturating_add(word.chars().count());
        }
    }

    /// Whether they are enough to be known by.
    pub(super) fn are_telling(&self) -> bool {
        self.letters >= TELLING_LETTERS
    }

    pub(super) fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.push(text);
        words
    }
}

fn put_parts(parts: &[Part], content: &mut Vec<u8>) {
    let mut words = Words::default();
    for part in parts {
        match &part.content {
            Content::Text(text) => words.push(text),
            Content::Result(result) => put_parts(&result.parts, content),
            Content::Media(media) => put_media(media, content),
            _ => {}
        }
    }
    content.extend(words.hasher.finalize());
}

fn put_media(media: &Media, content: &mut Vec<u8>) {
    let (MediaSource::Data(data) | MediaSource::Text(data) | MediaSource::Url(data) | MediaSource::Id(data)) =
        &media.source;
    content.extend(data.len().to_le_bytes());
    let bytes = data.as_bytes();
    let (first, last) = (SAMPLE.min(bytes.len()), bytes.len().saturating_sub(SAMPLE));
    [bytes.get(..first), bytes.get(last..)].into_iter().flatten().for_each(|sample| content.extend(sample));
}

/// Clients write arguments anew.
fn hash_call(call: &Call) -> [u8; 32] {
    let arguments = match call.arguments.trim() {
        "" => Ok(Value::Object(Map::new())),
        text => serde_json::from_str(text),
    };
    let arguments = arguments.map(|mut arguments| {
        arguments.sort_all_objects();
        write_whole_numbers(&mut arguments);
        arguments.to_string()
    });
    let arguments = arguments.as_ref().unwrap_or(&call.arguments);
    let hasher = Sha256::new().chain_update(call.name.len().to_le_bytes());
    hasher.chain_update(&call.name).chain_update(arguments).finalize().into()
}

/// JavaScript writes `2.0` as `2`.
fn write_whole_numbers(value: &mut Value) {
    /// Up to here every whole number is a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            let is_whole = |float: &f64| float.trunc() == *float && float.abs() <= EXACT;
            if let Some(whole) = float.filter(is_whole) {
                *value = format!("{whole:.0}").parse::<i64>().map_or(Value::Null, Value::from);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(write_whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(write_whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
