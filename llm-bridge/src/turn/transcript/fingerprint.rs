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

    /// The same, and something behind it.
    fn and(self, kind: u8, write: impl FnOnce(&mut Sha256)) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update([kind]);
        write(&mut hasher);
        Self(hasher.finalize().into())
    }

    pub(super) fn and_message(self, message: &Message) -> Self {
        let kind = match message.role {
            Role::System | Role::Developer => return self,
            Role::Tool => b't',
            Role::User | Role::Assistant => b'u',
        };
        self.and(kind, |hasher| hash_parts(&message.parts, hasher))
    }

    /// The same, and the text of an answer.
    pub(super) fn and_text(self, shown: Words) -> Self {
        self.and(b'a', |hasher| hasher.update(shown.hasher.finalize()))
    }

    /// The same, and an answer with calls of the client's tools, in any order: a stream may have begun the later ones first. The text
    /// around them may have been shortened.
    pub(super) fn and_calls<'c>(self, calls: impl Iterator<Item = &'c Call>) -> Self {
        let mut calls: Vec<_> = calls.map(hash_call).collect();
        calls.sort_unstable();
        self.and(b'c', |hasher| calls.iter().for_each(|call| hasher.update(call)))
    }

    /// The same, and an answer of which only the beginning is known.
    pub(super) fn and_beginning(self) -> Self {
        self.and(b'b', |_| {})
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

/// The id of calls that a transcript is kept under, and what it is kept under for that.
pub(super) fn key_of_calls<'c>(calls: impl Iterator<Item = &'c Call>) -> Option<(String, String)> {
    let id = calls.map(|call| &call.id).min()?;
    Some((id.clone(), hex(&Sha256::digest(format!("toolrack call 1\n{id}")))))
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
    hasher.update(words.hasher.finalize());
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
