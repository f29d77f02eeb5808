//! What is kept of a response: what continues the conversation, and the response as it was given.
//!
//! The id of an item repeats that of its response, so that the id alone leads to the item.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

use super::input::read_input;
use crate::{EarlierAnswer, Message, RawJson, SeenAnswer, json::Field};

const RESPONSE: &str = "resp";
/// How many characters of its response's id an item's id repeats.
const UNIQUE: usize = 32;

/// Items that are kept, by their ids.
pub type KeptItems = HashMap<String, RawJson>;

pub(super) fn new_response_id() -> String {
    format!("{RESPONSE}_{:0UNIQUE$x}", fastrand::u128(..))
}

/// A new id of an item in the output of a response.
pub(super) fn new_item_id(response_id: &str, prefix: &str) -> String {
    item_id(response_id, prefix, fastrand::u64(..))
}

fn item_id(response_id: &str, prefix: &str, number: u64) -> String {
    let unique = response_id.split_once('_').map_or(response_id, |(_, unique)| unique);
    format!("{prefix}_{unique}{number:016x}")
}

/// The id of the response in which an item of this id would be.
pub fn response_of_item(item_id: &str) -> Option<String> {
    let (_, unique) = item_id.split_once('_')?;
    Some(format!("{RESPONSE}_{}", unique.get(..UNIQUE)?))
}

/// What a request and its answer add to a conversation, as it is kept.
#[derive(Debug, Serialize)]
pub struct Addition<'a> {
    /// The input of the request.
    pub input: &'a RawJson,
    /// What the answer has added, with the calls of the server's tools.
    pub answer: &'a [Message],
    /// The deferred tools that the conversation has found so far.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub found: &'a [String],
    /// What the client has seen, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<&'a SeenAnswer>,
}

/// What an [`Addition`] has added.
#[derive(Debug, Clone, PartialEq)]
pub struct Added {
    /// The messages of the input and of the answer.
    pub messages: Vec<Message>,
    /// Which of them are the answer.
    pub answer: EarlierAnswer,
    /// The deferred tools that the conversation has found so far.
    pub found: Vec<String>,
}

/// Reads an [`Addition`] from its JSON.
///
/// # Errors
/// When it cannot be read.
pub fn read_addition(addition: &str) -> Result<Added, serde_json::Error> {
    #[derive(Deserialize)]
    struct Kept<'a> {
        #[serde(borrow)]
        input: &'a RawValue,
        answer: Vec<Message>,
        #[serde(default)]
        found: Vec<String>,
        #[serde(default)]
        seen: Option<SeenAnswer>,
    }

    if is_of_messages(addition) {
        let messages: Vec<Message> = serde_json::from_str(addition)?;
        // Nobody knows where the answer begins.
        let answer = EarlierAnswer { messages: 0..messages.len(), seen: None };
        return Ok(Added { messages, answer, found: Vec::new() });
    }
    let Kept { input, answer, found, seen } = serde_json::from_str(addition)?;
    let input = read_input(&Field::of("input", input), &KeptItems::new());
    let mut messages = input.map_err(serde::de::Error::custom)?.messages;
    let begin = messages.len();
    messages.extend(answer);
    let answer = EarlierAnswer { messages: begin..messages.len(), seen };
    Ok(Added { messages, answer, found })
}

/// Whether it was kept before inputs were: as an array of the messages alone.
fn is_of_messages(addition: &str) -> bool {
    addition.starts_with('[')
}

/// A response that is kept.
#[derive(Debug, Clone, Copy)]
pub struct KeptResponse<'a> {
    /// Its id.
    pub id: &'a str,
    /// The JSON of its [`Addition`].
    pub addition: &'a str,
    /// The response as it was given; empty for one of which only the addition was kept.
    pub given: &'a str,
}

impl KeptResponse<'_> {
    /// What its conversation had read is kept under these.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self) -> Result<Vec<String>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Kept {
            seen: Option<SeenAnswer>,
        }

        if is_of_messages(self.addition) {
            return Ok(Vec::new());
        }
        let Kept { seen } = serde_json::from_str(self.addition)?;
        Ok(seen.map(|seen| seen.read).unwrap_or_default())
    }

    /// The items of the input of its request, with their ids.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn input(&self) -> Result<Vec<Value>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Kept {
            input: Value,
        }

        if is_of_messages(self.addition) {
            return Ok(Vec::new());
        }
        let items = match serde_json::from_str::<Kept>(self.addition)?.input {
            Value::Array(items) => items,
            text => vec![json!({"role": "user", "content": text})],
        };
        let items = (0_u64..).zip(items);
        Ok(items.map(|(number, item)| self.listed(number, item)).collect())
    }

    /// The items of its output.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn output(&self) -> Result<Vec<Value>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Given {
            output: Vec<Value>,
        }

        if self.given.is_empty() {
            return Ok(Vec::new());
        }
        Ok(serde_json::from_str::<Given>(self.given)?.output)
    }

    /// An item of an input in the form of lists, with all that clients may leave out.
    fn listed(&self, number: u64, item: Value) -> Value {
        let Value::Object(fields) = item else { return item };
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let (kind, is_answer) =
            (text("type").unwrap_or("message").to_owned(), text("role") == Some("assistant"));
        let prefix = match kind.as_str() {
            "message" => "msg",
            "reasoning" => "rs",
            "function_call" => "fc",
            "function_call_output" => "fco",
            "custom_tool_call" => "ctc",
            "custom_tool_call_output" => "ctco",
            "mcp_call" => "mcp",
            _ => "item",
        };
        let id = text("id").map_or_else(|| item_id(self.id, prefix, number), str::to_owned);
        let is_message = kind == "message";
        let mut listed = Map::from_iter([("id".to_owned(), id.into()), ("type".to_owned(), kind.into())]);
        listed.extend(fields.into_iter().filter(|(name, _)| name != "id" && name != "type"));
        if is_message {
            if let Some(content @ Value::String(_)) = listed.get_mut("content") {
                *content = match (is_answer, content.take()) {
                    (true, text) => json!([{"type": "output_text", "text": text, "annotations": []}]),
                    (false, text) => json!([{"type": "input_text", "text": text}]),
                };
            }
            listed.entry("status").or_insert_with(|| "completed".into());
        }
        listed.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_item_leads_to_its_response() {
        let response = new_response_id();
        for item in [new_item_id(&response, "msg"), item_id(&response, "fc", 0)] {
            assert_eq!(response_of_item(&item).as_ref(), Some(&response), "{item}");
            assert!(item.len() <= 64, "SDKs take no longer ids: {item}");
        }
        for other in ["", "msg", "msg_", "msg_1", "msg_äääääääääääääääääääääääääääääääääää"]
        {
            assert!(response_of_item(other).is_none_or(|id| id != response), "{other}");
        }
    }
}
