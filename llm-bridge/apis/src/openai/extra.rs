//! Unknown fields of an answer, which are passed on.

use serde_json::{Map, Value, map::Entry};

use super::Object;

/// Unknown fields of an answer, by their place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Extra {
    /// Those of the reply or chunk itself.
    pub(super) reply: Object,
    /// Those of its choice, such as `logprobs`.
    pub(super) choice: Object,
    /// Those of the message or delta, such as `refusal`.
    pub(super) message: Object,
}

impl Extra {
    /// Adds the fields of a later part of the same answer.
    pub(super) fn add(&mut self, later: Self) {
        self.reply.extend(later.reply);
        merge(&mut self.choice, later.choice, false);
        merge(&mut self.message, later.message, true);
    }
}

/// Merges two parts as a client of a stream does: lists are appended, and so are the strings of a message.
fn merge(before: &mut Map<String, Value>, later: Map<String, Value>, join_texts: bool) {
    for (field, value) in later {
        match before.entry(field) {
            Entry::Vacant(place) => drop(place.insert(value)),
            Entry::Occupied(mut place) => {
                // Identifiers are repeated in each part, not continued.
                let join = join_texts && !matches!(place.key().as_str(), "id" | "type" | "name");
                match (place.get_mut(), value) {
                    (_, Value::Null) => {}
                    (Value::Object(fields), Value::Object(more)) => merge(fields, more, join_texts),
                    (Value::Array(list), Value::Array(more)) => list.extend(more),
                    (Value::String(text), Value::String(more)) if join => text.push_str(&more),
                    (old, new) => *old = new,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn parts_are_put_together() {
        let mut extra = Extra {
            reply: object(json!({"timings": {"a": 1}})),
            choice: object(json!({"stop_reason": "x", "logprobs": {"content": [1]}})),
            message: object(json!({"refusal": "I ", "audio": {"id": "a", "data": "12"}, "annotations": [1]})),
        };
        extra.add(Extra {
            reply: object(json!({"timings": {"b": 1}})),
            choice: object(json!({"stop_reason": "y", "logprobs": {"content": [2]}})),
            message: object(
                json!({"refusal": "won't", "audio": {"id": "a", "data": "34"}, "annotations": null}),
            ),
        });
        assert_eq!(Value::Object(extra.reply), json!({"timings": {"b": 1}}));
        assert_eq!(Value::Object(extra.choice), json!({"stop_reason": "y", "logprobs": {"content": [1, 2]}}));
        assert_eq!(
            Value::Object(extra.message),
            json!({"refusal": "I won't", "audio": {"id": "a", "data": "1234"}, "annotations": [1]})
        );
    }
}
