//! The events of a stream.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json};

use super::item::{Place, TextKind};
use crate::Usage;

pub(super) fn usage_json(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached.unwrap_or(0), "cache_write_tokens": usage.cache_written.unwrap_or(0),
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning.unwrap_or(0)},
        "total_tokens": usage.total(),
    })
}

/// The body of an event about an item.
pub(super) fn of_item(place: &Place, field: &str, value: Value) -> Value {
    json!({"item_id": place.id, "output_index": place.index, field: value})
}

/// The body of an event about the one part of an item.
pub(super) fn of_part(place: &Place, index: &str, field: &str, value: Value) -> Value {
    json!({"item_id": place.id, "output_index": place.index, index: 0, field: value})
}

#[derive(Serialize)]
pub(super) struct Event<B> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) sequence_number: u64,
    #[serde(flatten)]
    pub(super) body: B,
}

/// The next piece of a text, which is written without a value in between: there is one for each token.
pub(super) struct Delta<'a> {
    pub(super) kind: TextKind,
    pub(super) place: &'a Place,
    pub(super) delta: &'a str,
    /// How likely its tokens were.
    pub(super) logprobs: &'a [Value],
}

impl Serialize for Delta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("item_id", &self.place.id)?;
        map.serialize_entry("output_index", &self.place.index)?;
        map.serialize_entry(self.kind.events().index, &0)?;
        map.serialize_entry("delta", self.delta)?;
        if self.kind == TextKind::Message {
            map.serialize_entry("logprobs", self.logprobs)?;
        }
        map.end()
    }
}
