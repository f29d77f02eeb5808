//! Requests of clients, and errors as they go to them.

use std::sync::Arc;

use http::request::Parts;
use serde_json::{Value, json};

use super::{API, client_side, encode::StreamEncoder, messages::read_messages, whole::WholeEncoder};
use crate::{
    BadRequest, ClientTool, CountTokens, Decoded, Effort, Encode, Extension, Failure, FailureKind, Front,
    Passing, Provider, Request, ResponseFormat, Sampling, Thinking, ToolChoice, ToolInput,
    front::{failure_reply, json_reply, read_count, read_model, read_name, read_tools},
    json::{Field, Object},
};

/// The field by which a client has the server keep its conversation, and sends what is new. The tool runners of the SDKs try it first, and send
/// whole conversations once it is refused as the API itself refuses it.
const THREAD: &str = "thread";

/// Anthropic's Messages, spoken by clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnthropicFront;

impl Front for AnthropicFront {
    fn api(&self) -> Provider {
        API
    }

    fn decode(&self, _: &Parts, body: &[u8]) -> Result<Decoded, BadRequest> {
        let (request, shows_thinking) = read_request(body)?;
        let stops = request.sampling.stop.clone();
        let encoder: Box<dyn Encode> = match request.stream {
            true => Box::new(StreamEncoder::new(shows_thinking, stops)),
            false => Box::new(WholeEncoder::new(shows_thinking, stops)),
        };
        Ok(Decoded { request, encoder })
    }

    fn failure(&self, failure: &Failure) -> http::Response<Vec<u8>> {
        let mut reply = failure_reply(failure, &error_body(failure));
        // The API's own status of an overload, which its clients know.
        if failure.status == 503
            && let Ok(overloaded) = http::StatusCode::from_u16(529)
        {
            *reply.status_mut() = overloaded;
        }
        reply
    }
}

impl CountTokens for AnthropicFront {
    fn decode_count(&self, _: &Parts, body: &[u8]) -> Result<Request, BadRequest> {
        Ok(read_request(body)?.0)
    }

    fn count(&self, tokens: u64) -> http::Response<Vec<u8>> {
        json_reply(&json!({ "input_tokens": tokens }))
    }
}

/// The body of an error response, and the data of the event that ends a broken stream.
pub(super) fn error_body(failure: &Failure) -> Value {
    const TOO_LONG: &str = "prompt is too long";
    let kind = match failure.kind {
        FailureKind::InvalidRequest | FailureKind::ContextLength => "invalid_request_error",
        FailureKind::Authentication => "authentication_error",
        FailureKind::Permission => "permission_error",
        FailureKind::NotFound => "not_found_error",
        FailureKind::TooLarge => "request_too_large",
        FailureKind::RateLimit => "rate_limit_error",
        FailureKind::Internal | FailureKind::Upstream => "api_error",
        FailureKind::Overloaded | FailureKind::Stopping => "overloaded_error",
        FailureKind::Timeout => "timeout_error",
    };
    // Coding agents shorten the conversation when they read these words.
    let message = match failure.kind {
        FailureKind::ContextLength if !failure.message.contains(TOO_LONG) => {
            format!("{TOO_LONG}: {}", failure.message)
        }
        _ => failure.message.clone(),
    };
    let mut error = json!({ "type": kind, "message": message });
    if let Value::Object(fields) = &mut error {
        fields.extend(failure.param.as_ref().map(|param| ("param".to_owned(), json!(param))));
        if failure.param.as_deref() == Some(THREAD) {
            let details = json!({"error_code": "thread_unsupported_request", "unsupported": [THREAD]});
            fields.insert("details".to_owned(), details);
        }
        if let Some(upstream) = failure.upstream.as_deref() {
            fields.extend(upstream.code.as_ref().map(|code| ("code".to_owned(), json!(code))));
            for (name, value) in &upstream.others {
                fields.entry(&**name).or_insert_with(|| json!(value));
            }
        }
    }
    json!({ "type": "error", "error": error })
}

/// Reads a request, and whether the client wants to see what the model thinks.
fn read_request(body: &[u8]) -> Result<(Request, bool), BadRequest> {
    let mut body = Object::from_body(body)?;
    let mut passing = Passing::of(API);
    let messages = read_messages(&mut body)?;
    if body.take(THREAD).is_some() {
        return Err(body.bad(THREAD, "is not offered here: no conversation is kept; send all messages"));
    }
    let stream = body.bool("stream")?.unwrap_or(false);
    let (choice, parallel) = read_choice(&mut body, &mut passing)?;
    if let Some(servers) = body.take("mcp_servers")
        && !servers.items()?.is_empty()
    {
        return Err(servers.bad("is not offered here; connect MCP servers in this server's settings"));
    }
    let mut config = body.object("output_config")?;
    let (thinking, shows_thinking) = read_thinking(&mut body, config.as_mut(), &mut passing)?;
    // The second place is that of the API's earlier versions.
    let format = match (config.as_mut().and_then(|config| config.take("format")), body.take("output_format"))
    {
        (Some(_), Some(old)) => return Err(old.bad("and `output_config.format` cannot both be sent")),
        (new, old) => new.or(old).map(|field| read_format(field, &mut passing)).transpose()?,
    };
    if let Some(config) = config {
        config.leave("output_config", &mut passing);
    }
    let stop = body.items("stop_sequences")?.iter().map(Field::string).collect::<Result<Vec<_>, _>>()?;
    let request = Request {
        model: read_model(&mut body)?,
        messages,
        tools: read_tools(body.items("tools")?, read_tool)?,
        choice,
        parallel,
        stream,
        sampling: Sampling {
            // The API requires it; here the model's own maximum holds without it.
            max_tokens: read_count(&mut body, "max_tokens")?,
            temperature: body.float("temperature")?,
            top_p: body.float("top_p")?,
            top_k: body.integer("top_k")?,
            stop: stop.into_iter().filter(|text| !text.is_empty()).collect(),
            ..Sampling::default()
        },
        thinking,
        format,
        extension: Extension::take(&mut body, stream)?,
        passing: body.rest_with(passing),
        ..Request::default()
    };
    Ok((request, shows_thinking))
}

fn read_tool(mut tool: Object<'_>) -> Result<ClientTool, BadRequest> {
    if let Some(kind) = tool.string("type")?.filter(|kind| kind != "custom") {
        let Some((description, schema)) = client_side::defined(&kind, &tool) else {
            let message = format_args!(
                "`{kind}` runs at Anthropic and is not offered here. This server's own tools, such as its `web_search` where that is set, are \
                 offered without being sent; send tools with an `input_schema`, or those of the client: `bash_…`, `text_editor_…`, `memory_…`, \
                 `computer_…`"
            );
            return Err(tool.bad("type", message));
        };
        return Ok(ClientTool {
            name: read_name(&mut tool)?,
            description: Some(description),
            input: ToolInput::Json { schema: Some(Arc::new(schema)), strict: None },
            passing: tool.rest(API),
        });
    }
    let schema = tool.value("input_schema")?.ok_or_else(|| tool.bad("input_schema", "is missing"))?;
    if !schema.is_object() && !schema.is_boolean() {
        return Err(tool.bad("input_schema", "has to be a JSON Schema: an object"));
    }
    Ok(ClientTool {
        name: read_name(&mut tool)?,
        description: tool.string("description")?,
        input: ToolInput::Json { schema: Some(Arc::new(schema)), strict: tool.bool("strict")? },
        passing: tool.rest(API),
    })
}

/// Reads `tool_choice`: which tools may be called, and whether several at once.
fn read_choice(
    body: &mut Object<'_>,
    passing: &mut Passing,
) -> Result<(ToolChoice, Option<bool>), BadRequest> {
    const TYPES: &str = "has to be `auto`, `any`, `tool` or `none`";
    let Some(mut object) = body.object("tool_choice")? else { return Ok((ToolChoice::Auto, None)) };
    let choice = match object.string("type")?.as_deref() {
        Some("auto") => ToolChoice::Auto,
        Some("any") => ToolChoice::Required,
        Some("none") => ToolChoice::None,
        Some("tool") => ToolChoice::Named(read_name(&mut object)?),
        _ => return Err(object.bad("type", TYPES)),
    };
    let parallel = object.bool("disable_parallel_tool_use")?.map(|disabled| !disabled);
    object.leave("tool_choice", passing);
    Ok((choice, parallel))
}

/// Reads `thinking` and `output_config.effort`, and whether what the model thinks is shown. A type or an effort that is unknown
/// here passes; an effort beside a budget does, too.
fn read_thinking(
    body: &mut Object<'_>,
    config: Option<&mut Object<'_>>,
    passing: &mut Passing,
) -> Result<(Option<Thinking>, bool), BadRequest> {
    let (mut thinking, mut shown) = (None, false);
    if let Some(field) = body.take("thinking") {
        let source = field.source();
        let mut object = field.object()?;
        thinking = match object.string("type")?.as_deref() {
            Some("disabled") => Some(Thinking::Off),
            Some("adaptive") => Some(Thinking::On),
            Some("enabled") => {
                let budget = read_count(&mut object, "budget_tokens")?;
                Some(Thinking::Budget(budget.ok_or_else(|| object.bad("budget_tokens", "is missing"))?))
            }
            None => return Err(object.bad("type", "is missing")),
            Some(_) => None,
        };
        shown = thinking != Some(Thinking::Off) && object.string("display")?.as_deref() != Some("omitted");
        match thinking {
            None => passing.push("thinking", source),
            Some(_) => object.leave("thinking", passing),
        }
    }
    if matches!(thinking, None | Some(Thinking::On))
        && let Some(config) = config
        && let Some(field) = config.take("effort")
    {
        let word = field.string()?;
        match Effort::from_word(&word) {
            Some(effort) => thinking = Some(Thinking::Effort(effort)),
            None => return Err(field.bad("has to be `low`, `medium`, `high`, `xhigh` or `max`")),
        }
    }
    Ok((thinking, shown))
}

fn read_format(field: Field<'_>, passing: &mut Passing) -> Result<ResponseFormat, BadRequest> {
    let mut format = field.object()?;
    if format.string("type")?.as_deref() != Some("json_schema") {
        return Err(format.bad("type", "has to be `json_schema`"));
    }
    let schema = format.value("schema")?.ok_or_else(|| format.bad("schema", "is missing"))?;
    format.leave("output_format", passing);
    Ok(ResponseFormat::JsonSchema { name: None, description: None, schema, strict: None })
}
