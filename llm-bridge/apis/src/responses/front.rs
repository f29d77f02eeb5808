//! Requests of clients, and errors as they go to them.

use http::{HeaderMap, request::Parts};
use serde_json::{Map, Value, json};

use super::{
    API,
    encode::ResponseEncoder,
    input::{ReadInput, read_input},
    kept::KeptItems,
    namespace::{ReadTools, read_tools},
};
use crate::{
    BadRequest, ClientTool, Conversation, CountTokens, Decoded, Effort, Extension, Failure, Front, Message,
    Passing, Provider, RawJson, Request, ResponseFormat, Role, Sampling, Thinking, ToolChoice,
    front::{failure_reply, json_reply, read_count, read_model},
    json::{Field, Object},
    openai::{
        client_tools::{read_custom, read_function, read_tool_choice},
        error_body, read_repeat_penalty,
    },
};

/// The header by which a client asks for calls of the server's tools as items.
pub const ITEMS_HEADER: &str = "x-toolrack-items";

/// OpenAI's Responses API, spoken by clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResponsesFront;

impl Front for ResponsesFront {
    fn api(&self) -> Provider {
        API
    }

    fn decode(&self, parts: &Parts, body: &[u8]) -> Result<Decoded, BadRequest> {
        self.decode_with(&parts.headers, body, &KeptItems::new())
    }

    fn failure(&self, failure: &Failure) -> http::Response<Vec<u8>> {
        failure_reply(failure, &error_body(failure))
    }
}

impl CountTokens for ResponsesFront {
    fn decode_count(&self, parts: &Parts, body: &[u8]) -> Result<Request, BadRequest> {
        Ok(self.decode(parts, body)?.request)
    }

    fn count(&self, tokens: u64) -> http::Response<Vec<u8>> {
        json_reply(&json!({ "object": "response.input_tokens", "input_tokens": tokens }))
    }
}

impl ResponsesFront {
    /// Decodes a request that refers to kept items.
    ///
    /// # Errors
    /// As [`decode`](Front::decode).
    pub fn decode_with(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        kept: &KeptItems,
    ) -> Result<Decoded, BadRequest> {
        let mut body = Object::from_body(body)?;
        let mut passing = Passing::of(API);
        refuse(&mut body)?;
        let echo = echo(&body)?;
        let instructions = body.string("instructions")?.filter(|text| !text.is_empty());
        let input = body.take("input").ok_or_else(|| body.bad("input", "is missing"))?;
        let is_kept = body.bool("store")?.unwrap_or(true);
        let ReadInput { messages, resolved, missing } = read_input(&input, kept)?;
        let conversation = Conversation {
            previous_response_id: body.string("previous_response_id")?,
            has_instructions: instructions.is_some(),
            begins_anew: false,
            goes_on: false,
            input: is_kept.then(|| resolved.unwrap_or_else(|| RawJson::from(input.source()))),
            missing_items: missing,
            earlier: Vec::new(),
            answers: Vec::new(),
            found: Vec::new(),
            read: Vec::new(),
        };
        let instructions = instructions.map(|text| Message::text(Role::System, text));
        let messages = instructions.into_iter().chain(messages).collect();
        let stream = body.bool("stream")?.unwrap_or(false);
        let (thinking, has_summary) = read_reasoning(&mut body, &mut passing)?;
        let ReadTools { tools, namespaces, has_server } = read_tools(body.items("tools")?)?;
        let has_server_items = wants_items(headers)? || has_server;
        let logprobs = read_logprobs(&mut body, &mut passing)?;
        let request = Request {
            logprobs,
            model: read_model(&mut body)?,
            messages,
            conversation,
            tools,
            choice: read_choice(body.take("tool_choice"))?,
            parallel: body.bool("parallel_tool_calls")?,
            stream,
            sampling: Sampling {
                max_tokens: match body.integer("max_output_tokens")?.map(u64::try_from) {
                    Some(Err(_)) => return Err(body.bad("max_output_tokens", "has to be from 0 on")),
                    tokens => tokens.transpose().ok().flatten(),
                },
                temperature: body.float("temperature")?,
                top_p: body.float("top_p")?,
                // Local servers take these here too.
                top_k: body.integer("top_k")?,
                min_p: body.float("min_p")?,
                presence_penalty: body.float("presence_penalty")?,
                frequency_penalty: body.float("frequency_penalty")?,
                repeat_penalty: read_repeat_penalty(&mut body)?,
                seed: body.integer("seed")?,
                stop: Vec::new(),
            },
            thinking,
            format: read_text(&mut body, &mut passing)?,
            has_grammar: false,
            extension: Extension::take(&mut body, stream)?,
            passing: body.rest_with(passing),
        };
        let encoder = ResponseEncoder::new(stream, has_summary, echo, namespaces, has_server_items);
        Ok(Decoded { request, encoder: Box::new(encoder) })
    }
}

/// Whether the header asks for calls of the server's tools as items.
fn wants_items(headers: &HeaderMap) -> Result<bool, BadRequest> {
    match headers.get(ITEMS_HEADER) {
        None => Ok(false),
        Some(value) if value.as_bytes() == b"mcp_call" => Ok(true),
        Some(_) => Err(BadRequest::new(
            ITEMS_HEADER,
            "`x-toolrack-items` has to be `mcp_call`; leave it out for answers without such items",
        )),
    }
}

/// Reads how many likely tokens are wanted at each place. What else is to be included passes.
fn read_logprobs(body: &mut Object<'_>, passing: &mut Passing) -> Result<Option<u64>, BadRequest> {
    let Some(include) = body.take("include") else { return Ok(None) };
    let mut others = if include.is_array() { include.items()? } else { Vec::new() };
    let is_other = |item: &Field<'_>| item.source().get() != "\"message.output_text.logprobs\"";
    let count = others.len();
    others.retain(is_other);
    let is_wanted = others.len() < count;
    if !is_wanted {
        passing.push("include", include.source());
    } else if !others.is_empty() {
        let others: Vec<_> = others.iter().map(Field::source).collect();
        passing.push("include", RawJson::of(&others));
    }
    if is_wanted { Ok(Some(read_count(body, "top_logprobs")?.unwrap_or(0))) } else { Ok(None) }
}

/// Refuses what OpenAI keeps or does elsewhere.
fn refuse(body: &mut Object<'_>) -> Result<(), BadRequest> {
    if body.bool("background")?.unwrap_or(false) {
        return Err(body.bad("background", "is not offered here: leave it out and wait for the answer"));
    }
    for (name, message) in [
        ("conversation", "is not offered here: send `previous_response_id`, or all items in `input`"),
        ("prompt", "is not offered here: send its text in `instructions`"),
    ] {
        if body.take(name).is_some() {
            return Err(body.bad(name, message));
        }
    }
    Ok(())
}

/// The fields of a request that its answer repeats; some are there in any case, because SDKs require them.
fn echo(body: &Object<'_>) -> Result<Map<String, Value>, BadRequest> {
    const REPEATED: [(&str, Option<&str>); 18] = [
        ("instructions", Some("null")),
        ("max_output_tokens", Some("null")),
        ("metadata", Some("{}")),
        ("parallel_tool_calls", Some("true")),
        ("previous_response_id", Some("null")),
        ("reasoning", Some("{\"effort\":null,\"summary\":null}")),
        ("store", None),
        ("temperature", Some("null")),
        ("text", Some("{\"format\":{\"type\":\"text\"}}")),
        ("tool_choice", Some("\"auto\"")),
        ("tools", Some("[]")),
        ("top_p", Some("null")),
        ("top_logprobs", None),
        ("truncation", Some("\"disabled\"")),
        ("max_tool_calls", None),
        ("prompt_cache_key", None),
        ("safety_identifier", None),
        ("user", None),
    ];
    let mut echo = Map::new();
    for (name, usual) in REPEATED {
        let given = body.get(name).as_ref().map(Field::value).transpose()?;
        let usual = usual.and_then(|json| serde_json::from_str(json).ok());
        echo.extend(given.or(usual).map(|value| (name.to_owned(), value)));
    }
    Ok(echo)
}

/// Reads a tool of this type.
pub(super) fn read_tool(kind: Option<&str>, tool: Object<'_>) -> Result<ClientTool, BadRequest> {
    match kind {
        Some("function") => read_function(tool, API),
        Some("custom") => read_custom(tool, API),
        None => Err(tool.bad("type", "is missing; send `function` or `custom`")),
        Some(other) => {
            let message = format_args!(
                "`{other}` is not offered here: send tools of type `function` or `custom`. Tools of the server \
                 are offered without being sent"
            );
            Err(tool.bad("type", message))
        }
    }
}

/// Reads `tool_choice`. A built-in tool cannot be chosen, as it cannot be sent.
fn read_choice(field: Option<Field<'_>>) -> Result<ToolChoice, BadRequest> {
    const CHOICES: &str = "has to be \"auto\", \"none\", \"required\", {\"type\": \"function\", \"name\": …}, \
                           {\"type\": \"custom\", \"name\": …} or {\"type\": \"allowed_tools\", …}";
    let bad = field.as_ref().map(|field| field.bad(CHOICES));
    if let Some((field, bad)) = field.as_ref().filter(|field| field.is_object()).zip(bad.clone()) {
        let kind = field.value()?.get("type").and_then(Value::as_str).map(str::to_owned);
        if !matches!(kind.as_deref(), Some("function" | "custom" | "allowed_tools")) {
            return Err(bad);
        }
    }
    let param = bad.as_ref().map(|bad| bad.param.clone());
    read_tool_choice(field).map_err(|error| match bad {
        Some(bad) if Some(&error.param) == param.as_ref() => bad,
        _ => error,
    })
}

/// Reads `reasoning`: how much the model thinks, and whether the client wants to read a summary.
fn read_reasoning(
    body: &mut Object<'_>,
    passing: &mut Passing,
) -> Result<(Option<Thinking>, bool), BadRequest> {
    let Some(mut reasoning) = body.object("reasoning")? else { return Ok((None, false)) };
    let thinking = match reasoning.string("effort")?.as_deref() {
        None => None,
        Some("none") => Some(Thinking::Off),
        Some(word) => match Effort::from_word(word) {
            Some(effort) => Some(Thinking::Effort(effort)),
            None => {
                let words = Effort::ALL.map(Effort::as_str).join(", ");
                return Err(reasoning.bad("effort", format_args!("has to be one of none, {words}")));
            }
        },
    };
    let has_summary = reasoning.get("summary").or(reasoning.get("generate_summary")).is_some();
    reasoning.leave("reasoning", passing);
    Ok((thinking, has_summary))
}

/// Reads `text.format`.
fn read_text(body: &mut Object<'_>, passing: &mut Passing) -> Result<Option<ResponseFormat>, BadRequest> {
    let Some(mut text) = body.object("text")? else { return Ok(None) };
    let read = match text.object("format")? {
        None => None,
        Some(mut format) => {
            let read = match format.string("type")?.as_deref() {
                Some("text") => None,
                Some("json_object") => Some(ResponseFormat::JsonObject),
                Some("json_schema") => Some(ResponseFormat::JsonSchema {
                    name: format.string("name")?,
                    description: format.string("description")?,
                    schema: format.value("schema")?.ok_or_else(|| format.bad("schema", "is missing"))?,
                    strict: format.bool("strict")?,
                }),
                _ => return Err(format.bad("type", "has to be `text`, `json_object` or `json_schema`")),
            };
            format.leave("format", passing);
            read
        }
    };
    text.leave("text", passing);
    Ok(read)
}

/// The error of a response that failed, in a word that clients know.
pub(super) fn response_error(failure: &Failure) -> Value {
    use crate::FailureKind as Kind;
    let code = match failure.kind {
        Kind::RateLimit => "rate_limit_exceeded",
        Kind::ContextLength => "context_length_exceeded",
        Kind::InvalidRequest | Kind::TooLarge | Kind::NotFound => "invalid_prompt",
        _ => "server_error",
    };
    json!({"code": code, "message": failure.message})
}
