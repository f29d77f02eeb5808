//! Requests of clients, and errors as they go to them.

use std::sync::Arc;

use http::request::Parts;
use serde_json::{Value, json};

use super::{
    API,
    config::{Config, read_choice, read_config, read_schema},
    encode::{AnswerEncoder, Form, Shown},
    messages::read_messages,
    object, take_items, take_object,
};
use crate::{
    BadRequest, ClientTool, CountTokens, Decoded, Extension, Failure, FailureKind, Front, Passing, Provider,
    Request, ToolInput,
    front::{check_model, failure_reply, json_reply, read_model, read_name, read_tools},
    json::{Field, Object},
};

/// Gemini's `generateContent`, spoken by clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct GeminiFront;

impl Front for GeminiFront {
    fn api(&self) -> Provider {
        API
    }

    /// Decodes a request. The model and the form of the answer are in its address.
    fn decode(&self, parts: &Parts, body: &[u8]) -> Result<Decoded, BadRequest> {
        let (model, method) = address(parts)?;
        let form = match (method.as_str(), wants_events(parts)) {
            ("generateContent", _) => Form::Whole,
            ("streamGenerateContent", true) => Form::Sse,
            ("streamGenerateContent", false) => Form::Array,
            _ => return Err(bad_address()),
        };
        let body = Object::from_body(body)?.camel_case();
        let (request, shown) = read_request(body, model, form != Form::Whole)?;
        Ok(Decoded { request, encoder: Box::new(AnswerEncoder::new(form, shown)) })
    }

    fn failure(&self, failure: &Failure) -> http::Response<Vec<u8>> {
        failure_reply(failure, &error_body(failure))
    }
}

impl CountTokens for GeminiFront {
    /// Decodes `contents`, or all of a request in `generateContentRequest`.
    fn decode_count(&self, parts: &Parts, body: &[u8]) -> Result<Request, BadRequest> {
        let (model, _) = address(parts)?;
        let mut body = Object::from_body(body)?.camel_case();
        let body = match take_object(&mut body, "generateContentRequest")? {
            Some(_) if body.take("contents").is_some() => {
                return Err(body.bad("contents", "and `generateContentRequest` cannot both be sent"));
            }
            Some(request) => request,
            None => body,
        };
        Ok(read_request(body, model, false)?.0)
    }

    fn count(&self, tokens: u64) -> http::Response<Vec<u8>> {
        json_reply(&json!({ "totalTokens": tokens }))
    }
}

fn bad_address() -> BadRequest {
    let methods = "`generateContent`, `streamGenerateContent` or `countTokens`";
    BadRequest::new(
        "model",
        format!("the address has to end with `/models/MODEL:METHOD`; methods are {methods}"),
    )
}

/// The model and the method in a request's address, such as `/v1beta/models/MODEL:generateContent`.
fn address(parts: &Parts) -> Result<(String, String), BadRequest> {
    let path = percent_encoding::percent_decode_str(parts.uri.path()).decode_utf8_lossy();
    let named = path.split_once("/models/").and_then(|(_, rest)| rest.rsplit_once(':'));
    let (model, method) = named.filter(|(model, _)| !model.is_empty()).ok_or_else(bad_address)?;
    Ok((check_model(model.to_owned())?, method.to_owned()))
}

/// Whether the answer is to be server-sent events.
fn wants_events(parts: &Parts) -> bool {
    let mut fields = parts.uri.query().unwrap_or_default().split('&');
    fields.any(|field| matches!(field, "alt=sse" | "$alt=sse" | "%24alt=sse"))
}

/// Reads a request, and what the client wants to see of the answer.
fn read_request(mut body: Object<'_>, model: String, stream: bool) -> Result<(Request, Shown), BadRequest> {
    let mut passing = Passing::of(API);
    let messages = read_messages(&mut body)?;
    // It repeats the model of the address.
    read_model(&mut body)?;
    if let Some(cached) = body.string("cachedContent")?.filter(|name| !name.is_empty()) {
        let message = format_args!("names `{cached}`, but nothing is cached here; send all contents");
        return Err(body.bad("cachedContent", message));
    }
    let (choice, strict) = read_choice(&mut body, &mut passing)?;
    let strict = strict.then_some(true);
    let declarations = read_declarations(take_items(&mut body, "tools")?)?;
    let Config { sampling, logprobs, thinking, format, shows_thoughts, is_word } =
        read_config(&mut body, &mut passing)?;
    let request = Request {
        model: Some(model),
        logprobs,
        messages,
        tools: read_tools(declarations, |tool| read_tool(tool, strict))?,
        choice,
        parallel: None,
        stream,
        sampling,
        thinking,
        format,
        extension: Extension::take(&mut body, stream)?,
        passing: body.rest_with(passing),
        ..Request::default()
    };
    Ok((request, Shown { thoughts: shows_thoughts, is_word }))
}

/// Takes the declarations of functions out of `tools`; tools of the API's own kinds are refused.
fn read_declarations(tools: Vec<Field<'_>>) -> Result<Vec<Field<'_>>, BadRequest> {
    let mut declarations = Vec::new();
    for tool in tools {
        let place = tool.bad("").param;
        let mut tool = object(tool)?;
        declarations.extend(take_items(&mut tool, "functionDeclarations")?);
        if let Some((kind, _)) = tool.rest(API).to(API).first() {
            let message = format!("`{place}.{kind}` is not offered here; send `functionDeclarations`");
            return Err(BadRequest::new(format!("{place}.{kind}"), message));
        }
    }
    Ok(declarations)
}

fn read_tool(tool: Object<'_>, strict: Option<bool>) -> Result<ClientTool, BadRequest> {
    let mut tool = tool.camel_case();
    let schema = read_schema(&mut tool, "parameters", "parametersJsonSchema")?;
    Ok(ClientTool {
        name: read_name(&mut tool)?,
        description: tool.string("description")?,
        input: ToolInput::Json { schema: schema.map(Arc::new), strict },
        passing: tool.rest(API),
    })
}

/// The body of an error response, and the last of a stream that broke off.
pub(super) fn error_body(failure: &Failure) -> Value {
    let status = match failure.kind {
        FailureKind::InvalidRequest | FailureKind::ContextLength | FailureKind::TooLarge => {
            "INVALID_ARGUMENT"
        }
        FailureKind::Authentication => "UNAUTHENTICATED",
        FailureKind::Permission => "PERMISSION_DENIED",
        FailureKind::NotFound => "NOT_FOUND",
        FailureKind::RateLimit => "RESOURCE_EXHAUSTED",
        FailureKind::Internal => "INTERNAL",
        FailureKind::Upstream | FailureKind::Overloaded | FailureKind::Stopping => "UNAVAILABLE",
        FailureKind::Timeout => "DEADLINE_EXCEEDED",
    };
    let mut details = Vec::new();
    if let Some(param) = &failure.param {
        let violation = json!({"field": param, "description": failure.message});
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation],
        }));
    }
    if let Some(upstream) = failure.upstream.as_deref() {
        let code = upstream.code.as_ref().map(|code| code.get().trim_matches('"'));
        let reason = upstream.error_type.as_deref().or(code);
        let others = upstream.others.iter().map(|(name, value)| (name.to_string(), json!(value.get())));
        let metadata: serde_json::Map<String, Value> = others.collect();
        if reason.is_some() || !metadata.is_empty() {
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "upstream",
                "metadata": metadata,
            }));
        }
    }
    if let Some(seconds) = failure.retry_after.as_deref().and_then(|after| after.parse::<u64>().ok()) {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s"),
        }));
    }
    let mut error = json!({"code": failure.status, "message": failure.message, "status": status});
    if let (Value::Object(error), false) = (&mut error, details.is_empty()) {
        error.insert("details".to_owned(), details.into());
    }
    json!({ "error": error })
}
