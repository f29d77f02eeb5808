//! The schemas of what goes over the wire as JSON that passes fields on which this server does not know, and so is of no type here.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::provider::openai::Extension;

macro_rules! shapes {
    ($($(#[doc = $about:literal])* $name:ident($schemas:ident): $schema:tt)*) => {$(
        $(#[doc = $about])*
        pub(in crate::server) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema($schemas: &mut SchemaGenerator) -> Schema {
                let mut schema = json_schema!($schema);
                schema.insert("description".into(), concat!($($about, "\n"),*).trim().into());
                schema
            }
        }
    )*};
}

/// `{"type": KIND, KIND: {"name": …}}`.
fn named_in(kind: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "type": {"const": kind},
            kind: {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
        "required": ["type", kind],
    })
}

shapes! {
    /// An error: <https://platform.openai.com/docs/guides/error-codes>.
    Error(_schemas): {
        "type": "object",
        "properties": {"error": {
            "type": "object",
            "properties": {
                "message": {"type": "string", "description": "What is wrong and what to do."},
                "type": {"type": "string", "description": "The kind of error, such as `invalid_request_error`."},
                "param": {"type": ["string", "null"], "description": "The field at fault."},
                "code": {"type": "null"},
            },
            "required": ["message", "type", "param", "code"],
        }},
        "required": ["error"],
    }

    /// A request: <https://platform.openai.com/docs/api-reference/chat/create>. What is not named here goes to the model server
    /// untouched.
    ChatCompletionRequest(schemas): {
        "type": "object",
        "properties": {
            "messages": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {"role": {"type": "string", "minLength": 1}},
                    "required": ["role"],
                },
            },
            "model": {"type": ["string", "null"], "description": "Where it is left out, the server's own."},
            "n": {"description": "Only one answer is given.", "enum": [1, null]},
            "stream": {"type": ["boolean", "null"]},
            "tools": {
                "type": ["array", "null"],
                "description": "The client's own tools, no two of one name. Calls of them come back as `tool_calls`.",
                "items": {"anyOf": [named_in("function"), named_in("custom")]},
            },
            "tool_choice": {"anyOf": [
                {"enum": ["auto", "none", "required", "any", null]},
                named_in("function"),
                named_in("custom"),
                {
                    "type": "object",
                    "properties": {
                        "type": {"const": "allowed_tools"},
                        "allowed_tools": {
                            "type": "object",
                            "properties": {
                                "mode": {"enum": ["auto", "required"]},
                                "tools": {"type": "array", "items": {"type": "object"}},
                            },
                            "required": ["tools"],
                        },
                    },
                    "required": ["type", "allowed_tools"],
                },
            ]},
            "toolrack": {"anyOf": [schemas.subschema_for::<Extension>(), {"type": "null"}]},
        },
        "required": ["messages"],
    }

    /// A whole answer: <https://platform.openai.com/docs/api-reference/chat/object>. What the model server has put beside comes along.
    ChatCompletion(_schemas): {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "object": {"const": "chat.completion"},
            "created": {"type": "integer", "description": "Seconds since 1970."},
            "model": {"type": "string"},
            "choices": {
                "type": "array",
                "minItems": 1,
                "maxItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "index": {"const": 0},
                        "message": {
                            "type": "object",
                            "properties": {
                                "role": {"const": "assistant"},
                                "content": {"type": ["string", "null"]},
                                "tool_calls": {"type": "array", "items": {"type": "object"}},
                            },
                            "required": ["role", "content"],
                        },
                        "finish_reason": {"type": "string"},
                    },
                    "required": ["index", "message", "finish_reason"],
                },
            },
            "usage": {"type": "object", "description": "The sum over all rounds of the turn."},
            "x_toolrack": {
                "type": "array",
                "description": "What was called on the way.",
                "items": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
            },
        },
        "required": ["id", "object", "created", "model", "choices", "usage"],
    }

    /// The models: <https://platform.openai.com/docs/api-reference/models/list>.
    ModelList(_schemas): {
        "type": "object",
        "properties": {
            "object": {"const": "list"},
            "data": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["object", "data"],
    }

    /// A message of JSON-RPC 2.0: <https://www.jsonrpc.org/specification>.
    JsonRpc(_schemas): {
        "type": "object",
        "properties": {"jsonrpc": {"const": "2.0"}},
        "required": ["jsonrpc"],
    }
}
