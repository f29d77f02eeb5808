//! Requests of clients, and errors as they go to them.

use http::request::Parts;
use serde_json::{Value, json};

use super::{
    API, FORMAT_REST, SCHEMA_REST,
    client_tools::{read_function, read_function_choice, read_tool, read_tool_choice},
    encode::{StreamEncoder, WholeEncoder},
    messages::read_messages,
};
use crate::{
    BadRequest, Decoded, Effort, Encode, Extension, Failure, FailureKind, Front, Passing, Provider, Request,
    ResponseFormat, Sampling, Thinking,
    front::{failure_reply, read_model, read_tools},
    json::{Field, Object},
    logprobs,
};

/// Fields by which llama.cpp, vLLM and SGLang take a grammar for the answer.
const GRAMMARS: [&str; 8] = [
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "structured_outputs",
    "regex",
    "ebnf",
];

/// OpenAI's chat completions, spoken by clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiFront;

impl Front for OpenAiFront {
    fn api(&self) -> Provider {
        API
    }

    fn decode(&self, _: &Parts, body: &[u8]) -> Result<Decoded, BadRequest> {
        let mut body = Object::from_body(body)?;
        let mut passing = Passing::of(API);
        let messages = read_messages(&mut body)?;
        let model = read_model(&mut body)?;
        if let Some(n) = body.take("n")
            && n.source().get() != "1"
        {
            return Err(n.bad("has to be 1: a turn with tools has one answer. Ask several times instead; many clients have a setting for it, such as `bypass_n=True` of ragas"));
        }
        let stream = body.bool("stream")?.unwrap_or(false);
        let mut include_usage = false;
        if let Some(mut options) = body.object("stream_options")? {
            include_usage = options.bool("include_usage")?.unwrap_or(false);
            options.leave("stream_options", &mut passing);
        }
        let extension = Extension::take(&mut body, stream)?;
        let (functions, function_choice) = (body.take("functions"), body.take("function_call"));
        let is_legacy = functions.is_some();
        let (tools, choice) = match functions {
            Some(_) if body.take("tools").is_some() => {
                return Err(body.bad("functions", "and `tools` cannot both be sent; send `tools`"));
            }
            Some(functions) => (
                read_tools(functions.items()?, |function| read_function(function, API))?,
                read_function_choice(function_choice)?,
            ),
            None => (
                read_tools(body.items("tools")?, |tool| read_tool(tool, API))?,
                read_tool_choice(body.take("tool_choice"))?,
            ),
        };
        let request = Request {
            model,
            messages,
            tools,
            choice,
            // An answer has room for one call of a function.
            parallel: if is_legacy { Some(false) } else { body.bool("parallel_tool_calls")? },
            stream,
            sampling: read_sampling(&mut body)?,
            logprobs: logprobs::read_wanted(&mut body, "logprobs", "top_logprobs")?,
            thinking: read_thinking(&mut body, &mut passing)?,
            format: read_format(&mut body, &mut passing)?,
            has_grammar: GRAMMARS.iter().any(|name| body.get(name).is_some()),
            extension,
            passing: body.rest_with(passing),
            ..Request::default()
        };
        let encoder: Box<dyn Encode> = match stream {
            true => Box::new(StreamEncoder::new(include_usage, is_legacy)),
            false => Box::new(WholeEncoder::new(is_legacy)),
        };
        Ok(Decoded { request, encoder })
    }

    fn failure(&self, failure: &Failure) -> http::Response<Vec<u8>> {
        failure_reply(failure, &error_body(failure))
    }
}

/// The body of an error response, and the data of an event of a stream that broke off.
pub(crate) fn error_body(failure: &Failure) -> Value {
    let usual = match failure.kind {
        FailureKind::Stopping => "server_stopping",
        FailureKind::Authentication => "authentication_error",
        FailureKind::Permission => "permission_error",
        FailureKind::Internal => "internal_error",
        _ if failure.upstream.is_some() => "upstream_error",
        FailureKind::RateLimit => "rate_limit_error",
        FailureKind::Upstream | FailureKind::Overloaded | FailureKind::Timeout => "upstream_error",
        FailureKind::InvalidRequest
        | FailureKind::ContextLength
        | FailureKind::NotFound
        | FailureKind::TooLarge => "invalid_request_error",
    };
    let upstream = failure.upstream.as_deref();
    let code = match (upstream.and_then(|upstream| upstream.code.as_ref()), failure.kind) {
        (Some(code), _) => json!(code),
        (None, FailureKind::ContextLength) => json!("context_length_exceeded"),
        (None, _) => json!(failure.code),
    };
    let mut error = json!({
        "message": failure.message,
        "type": upstream.and_then(|upstream| upstream.error_type.as_deref()).unwrap_or(usual),
        "param": failure.param,
        "code": code,
    });
    if let Value::Object(fields) = &mut error {
        for (name, value) in upstream.iter().flat_map(|upstream| &upstream.others) {
            fields.entry(&**name).or_insert_with(|| json!(value));
        }
    }
    json!({ "error": error })
}

/// Reads the penalty that llama.cpp, Ollama and LM Studio call one thing and vLLM and SGLang another. Two have to say the same.
pub(crate) fn read_repeat_penalty(body: &mut Object<'_>) -> Result<Option<f64>, BadRequest> {
    let [one, other] = [body.float("repeat_penalty")?, body.float("repetition_penalty")?];
    match (one, other) {
        (Some(one), Some(other)) if one != other => {
            Err(body.bad("repetition_penalty", "says another number than `repeat_penalty`"))
        }
        _ => Ok(one.or(other)),
    }
}

fn read_sampling(body: &mut Object<'_>) -> Result<Sampling, BadRequest> {
    // Some clients say with a negative number that there is no maximum. Of two maxima both hold.
    let mut max_tokens = None;
    for name in ["max_tokens", "max_completion_tokens"] {
        let given = body.integer(name)?.and_then(|tokens| u64::try_from(tokens).ok());
        max_tokens = match (max_tokens, given) {
            (Some(one), Some(other)) => Some(u64::min(one, other)),
            (one, other) => one.or(other),
        };
    }
    let stop = match body.take("stop") {
        None => Vec::new(),
        Some(text) if text.is_string() => vec![text.string()?],
        Some(list) if list.is_array() => {
            list.items()?.iter().map(Field::string).collect::<Result<Vec<_>, _>>()?
        }
        Some(other) => return Err(other.bad("has to be a string or an array of strings")),
    };
    Ok(Sampling {
        max_tokens,
        temperature: body.float("temperature")?,
        top_p: body.float("top_p")?,
        top_k: body.integer("top_k")?,
        min_p: body.float("min_p")?,
        presence_penalty: body.float("presence_penalty")?,
        frequency_penalty: body.float("frequency_penalty")?,
        repeat_penalty: read_repeat_penalty(body)?,
        seed: body.integer("seed")?,
        stop: stop.into_iter().filter(|text| !text.is_empty()).collect(),
    })
}

/// Reads `reasoning_effort`. A word that only some server knows passes.
fn read_thinking(body: &mut Object<'_>, passing: &mut Passing) -> Result<Option<Thinking>, BadRequest> {
    let Some(field) = body.take("reasoning_effort") else { return Ok(None) };
    let word = field.string()?;
    if word == "none" {
        return Ok(Some(Thinking::Off));
    }
    let effort = Effort::from_word(&word).map(Thinking::Effort);
    if effort.is_none() {
        passing.push("reasoning_effort", field.source());
    }
    Ok(effort)
}

/// Reads `response_format`, or `json_schema` as llama.cpp knows it. A type that only some server knows passes.
fn read_format(body: &mut Object<'_>, passing: &mut Passing) -> Result<Option<ResponseFormat>, BadRequest> {
    let only_schema =
        |schema| ResponseFormat::JsonSchema { name: None, description: None, schema, strict: None };
    let (field, schema) = (body.take("response_format"), body.value("json_schema")?);
    let Some(field) = field else { return Ok(schema.map(only_schema)) };
    if schema.is_some() {
        return Err(body.bad("json_schema", "and `response_format` cannot both be sent"));
    }
    let source = field.source();
    let mut format = field.object()?;
    let read = match format.string("type")?.as_deref() {
        None => return Err(format.bad("type", "is missing")),
        Some("text") => None,
        // llama.cpp takes a schema here, too.
        Some("json_object") => Some(match format.value("schema")? {
            Some(schema) => only_schema(schema),
            None => ResponseFormat::JsonObject,
        }),
        Some("json_schema") => {
            let mut inner =
                format.object("json_schema")?.ok_or_else(|| format.bad("json_schema", "is missing"))?;
            let read = ResponseFormat::JsonSchema {
                name: inner.string("name")?,
                description: inner.string("description")?,
                schema: inner.value("schema")?.ok_or_else(|| inner.bad("schema", "is missing"))?,
                strict: inner.bool("strict")?,
            };
            inner.leave(SCHEMA_REST, passing);
            Some(read)
        }
        Some(_) => {
            passing.push("response_format", source);
            return Ok(None);
        }
    };
    format.leave(FORMAT_REST, passing);
    Ok(read)
}
