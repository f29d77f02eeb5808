//! Messages in the shape that chat templates expect, as `apply_chat_template` of `transformers` hands them on.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use toolrack_apis::{Content, Media, MediaSource, Message, Part, Role};

use super::shape::Shape;

/// How many characters an id has that every template takes.
const SHORT_ID: usize = 9;

/// The messages of a conversation; `None` where there is more than text in them. Templates of Mistral refuse ids of more than 9 digits.
pub(super) fn template_messages(messages: &[Message], shape: Shape) -> Option<Vec<Value>> {
    let mut calls = Calls { names: HashMap::new(), ids: HashMap::new(), shape };
    messages.iter().map(|message| template_message(message, &mut calls)).collect()
}

/// What the results refer to.
struct Calls {
    names: HashMap<String, String>,
    ids: HashMap<String, String>,
    shape: Shape,
}

impl Calls {
    fn id(&mut self, id: &str) -> String {
        if !self.shape.has_short_ids() {
            return id.to_owned();
        }
        let next = self.ids.len() + 1;
        self.ids.entry(id.to_owned()).or_insert_with(|| format!("{next:0SHORT_ID$}")).clone()
    }
}

fn template_message(message: &Message, calls: &mut Calls) -> Option<Value> {
    if let Some(result) = message.tool_result() {
        let text = text_of(&result.parts)?;
        let name = calls.names.get(&result.call_id).or(result.name.as_ref()).cloned().unwrap_or_default();
        let id = calls.id(&result.call_id);
        return Some(json!({"role": "tool", "tool_call_id": id, "name": name, "content": text}));
    }
    let role = match message.role {
        // Few templates know developers.
        Role::System | Role::Developer => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut fields = Map::new();
    let thoughts: Vec<&str> = message.parts.iter().filter_map(thought_of).collect();
    let thoughts = thoughts.concat();
    if !thoughts.is_empty() {
        // The name that templates of gpt-oss read.
        fields.insert("thinking".to_owned(), json!(thoughts));
    }
    fields.insert("role".to_owned(), json!(role));
    fields.insert("content".to_owned(), json!(text_of(&message.parts)?));
    let made: Vec<Value> = message
        .calls()
        .map(|call| {
            calls.names.insert(call.id.clone(), call.name.clone());
            let written = call.function_arguments();
            let object = serde_json::from_str::<Map<String, Value>>(&written).ok();
            let object = object.filter(|_| !calls.shape.has_text_arguments());
            let arguments = object.map_or_else(|| Value::String(written.into()), Value::Object);
            let function = json!({"name": call.name, "arguments": arguments});
            json!({"id": calls.id(&call.id), "type": "function", "function": function})
        })
        .collect();
    if !made.is_empty() {
        fields.insert("tool_calls".to_owned(), Value::Array(made));
    }
    if !thoughts.is_empty() {
        fields.insert("reasoning_content".to_owned(), json!(thoughts));
    }
    Some(Value::Object(fields))
}

fn thought_of(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Reasoning(reasoning) => Some(&reasoning.text),
        _ => None,
    }
}

/// The text of parts; `None` where there is something in them that is no text.
fn text_of(parts: &[Part]) -> Option<String> {
    let mut texts = Vec::new();
    for part in parts {
        match &part.content {
            Content::Text(text) => texts.push(text.as_str()),
            Content::Media(Media { source: MediaSource::Text(text), .. }) => texts.push(text.as_str()),
            Content::Media(_) | Content::Opaque(..) => return None,
            Content::Reasoning(_) | Content::Call(_) | Content::Result(_) => {}
        }
    }
    Some(texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use toolrack_apis::{Call, CallInput, MediaKind, Reasoning, ToolResult};

    use super::*;

    fn messages() -> Vec<Message> {
        let thought = Reasoning { text: "Hm.".into(), seal: None };
        let result = |id: &str| {
            let parts = vec![Content::Text("rain".into()).into()];
            Message::result(ToolResult { call_id: id.into(), parts, ..ToolResult::default() })
        };
        vec![
            Message::text(Role::Developer, "Be brief."),
            Message::new(
                Role::User,
                vec![Content::Text("Oslo?".into()).into(), Content::Text("Now?".into()).into()],
            ),
            Message::new(
                Role::Assistant,
                vec![
                    Content::Reasoning(thought).into(),
                    Content::Call(Call::new("call_1", "weather", "{\"b\": 1, \"a\": 2}")).into(),
                    Content::Call(Call::new("call_2", "note", "not JSON")).into(),
                    Content::Call(Call { input: CallInput::Text, ..Call::new("call_3", "shell", "ls") })
                        .into(),
                ],
            ),
            result("call_2"),
            result("call_1"),
        ]
    }

    #[test]
    fn b14_messages_have_the_shape_of_templates() {
        let shaped = template_messages(&messages(), Shape::default()).unwrap();
        let expected = json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Oslo?\nNow?"},
            {
                "thinking": "Hm.",
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": {"b": 1, "a": 2}}},
                    {"id": "call_2", "type": "function", "function": {"name": "note", "arguments": "not JSON"}},
                    {"id": "call_3", "type": "function", "function": {"name": "shell", "arguments": {"input": "ls"}}},
                ],
                "reasoning_content": "Hm.",
            },
            {"role": "tool", "tool_call_id": "call_2", "name": "note", "content": "rain"},
            {"role": "tool", "tool_call_id": "call_1", "name": "weather", "content": "rain"},
        ]);
        // As text, since the order of the names is in prompts.
        assert_eq!(Value::Array(shaped).to_string(), expected.to_string());
    }

    #[test]
    fn b14_short_ids_refer_to_their_calls() {
        let shaped = template_messages(&messages(), Shape::default().with_short_ids()).unwrap();
        assert_eq!(shaped[2]["tool_calls"][0]["id"], "000000001");
        assert_eq!(shaped[2]["tool_calls"][1]["id"], "000000002");
        assert_eq!(shaped[3]["tool_call_id"], "000000002");
        assert_eq!(shaped[4]["tool_call_id"], "000000001");
    }

    #[test]
    fn b14_pictures_are_not_for_templates() {
        let media = Media::new(MediaKind::Image, MediaSource::Url("https://example.com/x".into()));
        let message = Message::new(Role::User, vec![Content::Media(media).into()]);
        assert_eq!(template_messages(&[message], Shape::default()), None);
    }
}
