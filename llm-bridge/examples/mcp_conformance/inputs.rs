//! What the fixture's own tools ask of the client, and what they make of the answers.

use serde_json::{Map, Value, json};

/// A tool of 2026-07-28 that answers once it has been answered.
pub(super) struct Asking {
    pub(super) name: &'static str,
    /// What it asks for, round by round, by key.
    pub(super) rounds: Vec<Vec<(&'static str, Value)>>,
    pub(super) has_state: bool,
    /// Whether it leaves out what the client has not said that it can do.
    pub(super) only_what_is_declared: bool,
}

impl Asking {
    fn new(name: &'static str, rounds: Vec<Vec<(&'static str, Value)>>) -> Self {
        let has_state = rounds.len() > 1;
        Self { name, rounds, has_state, only_what_is_declared: false }
    }
}

pub(super) fn asking() -> Vec<Asking> {
    let name = || form("What is your name?", "name", "string");
    let roots = || json!({"method": "roots/list", "params": {}});
    let confirm = || vec![vec![("confirm", form("Please confirm", "ok", "boolean"))]];
    vec![
        Asking::new("test_input_required_result_elicitation", vec![vec![("user_name", name())]]),
        Asking::new("test_streaming_elicitation", vec![vec![("user_name", name())]]),
        Asking::new(
            "test_input_required_result_sampling",
            vec![vec![("capital_question", sample("What is the capital of France?", 100))]],
        ),
        Asking::new("test_input_required_result_list_roots", vec![vec![("client_roots", roots())]]),
        Asking { has_state: true, ..Asking::new("test_input_required_result_request_state", confirm()) },
        Asking { has_state: true, ..Asking::new("test_input_required_result_tampered_state", confirm()) },
        Asking {
            has_state: true,
            ..Asking::new(
                "test_input_required_result_multiple_inputs",
                vec![vec![
                    ("user_name", name()),
                    ("greeting", sample("Generate a greeting", 50)),
                    ("client_roots", roots()),
                ]],
            )
        },
        Asking::new(
            "test_input_required_result_multi_round",
            vec![
                vec![("step1", form("Step 1: What is your name?", "name", "string"))],
                vec![("step2", form("Step 2: What is your favorite color?", "color", "string"))],
            ],
        ),
        Asking {
            only_what_is_declared: true,
            ..Asking::new(
                "test_input_required_result_capabilities",
                vec![vec![
                    ("user_name", name()),
                    ("greeting", sample("Generate a greeting", 50)),
                    ("client_roots", roots()),
                ]],
            )
        },
    ]
}

/// What the prompt asks for.
pub(super) fn prompt_asks() -> Value {
    json!({"user_context": form("What context should the prompt use?", "context", "string")})
}

/// What is said when all was answered.
pub(super) fn reported(answers: &Map<String, Value>) -> String {
    let name = answers.get("user_name").and_then(|answer| answer.pointer("/content/name"));
    match name.and_then(Value::as_str) {
        Some(name) => format!("Hello, {name}! state-ok"),
        None => format!("state-ok: {}", Value::Object(answers.clone())),
    }
}

/// Whether an answer can be one to what was asked.
pub(super) fn fits(asked: &Value, answer: &Value) -> bool {
    match asked.get("method").and_then(Value::as_str) {
        Some("elicitation/create") => {
            let wanted = asked.pointer("/params/requestedSchema/required/0").and_then(Value::as_str);
            let given = answer.get("content").and_then(Value::as_object);
            let action = answer.get("action").and_then(Value::as_str);
            match action {
                Some("accept") => wanted.zip(given).is_some_and(|(wanted, given)| given.contains_key(wanted)),
                other => matches!(other, Some("decline" | "cancel")),
            }
        }
        Some("sampling/createMessage") => answer.get("content").is_some(),
        _ => answer.get("roots").is_some_and(Value::is_array),
    }
}

fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "message": message,
        "requestedSchema": {"type": "object", "properties": {field: {"type": kind}}, "required": [field]},
    }})
}

fn sample(prompt: &str, most: u32) -> Value {
    json!({"method": "sampling/createMessage", "params": asked_of_model(prompt, most)})
}

pub(super) fn asked_of_model(prompt: &str, most: u32) -> Value {
    json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
        "maxTokens": most,
    })
}

/// The forms of the tools of the earlier revisions.
pub(super) fn form_of(tool: &str, message: &str) -> Option<Value> {
    let text = |about: &str| json!({"type": "string", "description": about});
    let (message, properties, required) = match tool {
        "test_elicitation" => (
            message,
            json!({"username": text("User's response"), "email": text("User's email address")}),
            json!(["username", "email"]),
        ),
        "test_elicitation_sep1034_defaults" => (
            "Please say who you are",
            json!({
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            }),
            json!([]),
        ),
        "test_elicitation_sep1330_enums" => {
            let titled = |prefix: &str, ordinals: &str| {
                let options = ordinals.split(' ').enumerate();
                let options = options.map(|(at, title)| json!({"const": format!("value{}", at + 1), "title": format!("{title} {prefix}")}));
                options.collect::<Vec<_>>()
            };
            let plain = json!(["option1", "option2", "option3"]);
            (
                "Please choose",
                json!({
                    "untitledSingle": {"type": "string", "enum": plain},
                    "titledSingle": {"type": "string", "oneOf": titled("Option", "First Second Third")},
                    "legacyEnum": {
                        "type": "string",
                        "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"],
                    },
                    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
                    "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice", "First Second Third")}},
                }),
                json!([]),
            )
        }
        _ => return None,
    };
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Some(json!({"mode": "form", "message": message, "requestedSchema": schema}))
}
