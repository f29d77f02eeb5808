//! What the calls of a turn have read so far.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Reads;
use crate::text::cut;

/// How many sources are named of each kind. That there are more makes no difference to a decision.
const MAX_NAMED: usize = 8;
/// The longest name of a source, in bytes.
const MAX_NAME: usize = 128;

/// What was read so far, and from which tools. Once something is in it, it stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HasRead {
    /// The tools whose results may hold private data, the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    private: Vec<String>,
    /// The tools whose results may hold untrusted text, the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    untrusted: Vec<String>,
}

impl HasRead {
    /// Notes that something was read from a source: a tool's name, or what else a person knows it by.
    pub fn note(&mut self, reads: Reads, source: &str) {
        for (read, sources) in [(reads.private, &mut self.private), (reads.untrusted, &mut self.untrusted)] {
            if read && sources.len() < MAX_NAMED && !sources.iter().any(|known| known == source) {
                sources.push(cut(source.to_owned(), MAX_NAME));
            }
        }
    }

    /// Adds what something else has read.
    pub fn add(&mut self, other: &Self) {
        other.private.iter().for_each(|source| self.note(Reads::PRIVATE, source));
        other.untrusted.iter().for_each(|source| self.note(Reads::UNTRUSTED, source));
    }

    /// What was read, whatever the source.
    pub fn reads(&self) -> Reads {
        Reads { private: !self.private.is_empty(), untrusted: !self.untrusted.is_empty() }
    }

    /// Whether nothing was read that matters.
    pub fn is_empty(&self) -> bool {
        self.reads().is_nothing()
    }

    /// The sources of private data.
    pub fn private(&self) -> &[String] {
        &self.private
    }

    /// The sources of untrusted text.
    pub fn untrusted(&self) -> &[String] {
        &self.untrusted
    }
}

/// Where a call stands in its turn: what was read before it, and what the person has said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnFlow {
    /// What was read before the call was written.
    pub read: HasRead,
    /// All that the person has written in the conversation. A call whose arguments are made of these words carries nothing else.
    pub said: Arc<str>,
}

impl TurnFlow {
    /// A turn in which this was read, and nothing is known of what the person has said.
    pub fn after(read: HasRead) -> Self {
        Self { read, said: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b20_what_was_read_stays_and_has_a_bound() {
        let mut read = HasRead::default();
        assert!(read.is_empty());
        read.note(Reads::NOTHING, "clock");
        assert!(read.is_empty());
        for number in 0..100 {
            read.note(Reads::UNTRUSTED, &format!("{number}{}", "x".repeat(1000)));
        }
        assert_eq!(read.reads(), Reads::UNTRUSTED);
        assert!(serde_json::to_string(&read).unwrap().len() < 2000);
        let mut other = HasRead::default();
        other.note(Reads::PRIVATE, "mail");
        other.add(&read);
        assert_eq!((other.reads(), other.private()), (Reads::BOTH, ["mail".to_owned()].as_slice()));
        let json = serde_json::to_string(&other).unwrap();
        assert_eq!(serde_json::from_str::<HasRead>(&json).unwrap(), other);
    }
}
