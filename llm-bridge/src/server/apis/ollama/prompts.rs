//! What clients of Ollama send to the addresses of its chats that is no question to a model with tools: to load a model or unload it, and a text that is
//! to be continued without the model's template, as editors do.

use axum::{
    body::Bytes,
    http::{HeaderValue, Method, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, json};
use toolrack_apis::{Framing, Front, ollama::OllamaFront};

use super::{failed, find_model, is_ollama, pass, restricted};
use crate::{
    server::{
        App,
        apis::{
            answering::{Answering, streamed, whole},
            passed::require_server,
        },
        callers::identity::Identity,
        requests::{
            api_error::ApiError,
            body::{check_values, decode},
        },
    },
    turn::{PLAIN, Turn},
    upstream::UpstreamError,
};

/// What of a request says what it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    model: Option<String>,
    messages: Option<Vec<IgnoredAny>>,
    prompt: Option<String>,
    suffix: Option<String>,
    images: Option<Vec<IgnoredAny>>,
    raw: Option<bool>,
    stream: Option<bool>,
    keep_alive: Option<Value>,
    format: Option<Value>,
    options: Option<Map<String, Value>>,
}

impl Asked {
    /// Whether a text is to be continued.
    fn continues(&self) -> bool {
        self.raw == Some(true) || self.suffix.as_deref().is_some_and(|text| !text.is_empty())
    }

    /// Whether there is nothing to answer.
    fn is_empty(&self, is_chat: bool) -> bool {
        let is_none = |items: &Option<Vec<IgnoredAny>>| items.as_ref().is_none_or(Vec::is_empty);
        match is_chat {
            true => is_none(&self.messages),
            false => is_none(&self.images) && self.prompt.as_deref().unwrap_or_default().is_empty(),
        }
    }

    fn unloads(&self) -> bool {
        match &self.keep_alive {
            Some(Value::Number(seconds)) => seconds.as_f64() == Some(0.0),
            Some(Value::String(time)) => time.trim_end_matches(char::is_alphabetic).parse() == Ok(0.0),
            _ => false,
        }
    }

    fn streams(&self) -> bool {
        self.stream.unwrap_or(true)
    }
}

/// The answer to such a request; `None` for one that is a question.
///
/// # Errors
/// When it cannot be served.
pub(in crate::server) async fn answer(
    app: &App,
    identity: &Identity,
    parts: &Parts,
    body: &Bytes,
) -> Result<Option<Response>, ApiError> {
    let sent = body.clone();
    let read = move || check_values(&sent).map(|_| serde_json::from_slice::<Asked>(&sent).ok());
    // What cannot be read the front says of it.
    let Some(asked) = decode(identity.sender(), body.len(), read).await?? else { return Ok(None) };
    let Some(model) = asked.model.as_deref().filter(|name| !name.is_empty()) else { return Ok(None) };
    let is_chat = !parts.uri.path().trim_end_matches('/').ends_with("/generate");
    let continues = !is_chat && asked.continues();
    if !continues && !asked.is_empty(is_chat) {
        return Ok(None);
    }
    let name = model.strip_suffix(PLAIN).unwrap_or(model);
    if is_ollama(app).await {
        let path = if is_chat { "/api/chat" } else { "/api/generate" };
        let body = if name == model { body.clone() } else { named(name, body)? };
        let body = restricted(app, &parts.extensions, body).await?;
        return Ok(Some(pass(app, Method::POST, path, body).await.unwrap_or_else(failed)));
    }
    if continues {
        return continued(app, name, &asked).await.map(Some);
    }
    // Other servers load their models themselves.
    Ok(Some(match find_model(app, model).await {
        Ok(_) => loaded(model, is_chat, &asked),
        Err(failure) => failed(failure),
    }))
}

/// The same request for a model of that name.
fn named(model: &str, body: &Bytes) -> Result<Bytes, ApiError> {
    let read = serde_json::from_slice::<Map<String, Value>>(body);
    let mut fields = read.map_err(|fault| ApiError::invalid("body", fault.to_string()))?;
    fields.insert("model".to_owned(), model.into());
    Ok(Value::Object(fields).to_string().into())
}

fn loaded(model: &str, is_chat: bool, asked: &Asked) -> Response {
    let (said, nothing) = match is_chat {
        true => ("message", json!({"role": "assistant", "content": ""})),
        false => ("response", json!("")),
    };
    let line = json!({
        "model": model,
        "created_at": jiff::Timestamp::now().to_string(),
        said: nothing,
        "done": true,
        "done_reason": if asked.unloads() { "unload" } else { "load" },
    });
    let kind = if asked.streams() { Framing::Lines.content_type() } else { "application/json" };
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], format!("{line}\n")).into_response()
}

/// Has a server that speaks OpenAI's API continue a text.
async fn continued(app: &App, model: &str, asked: &Asked) -> Result<Response, ApiError> {
    require_server(app.backend.upstream())?;
    if asked.images.as_ref().is_some_and(|images| !images.is_empty()) {
        return Err(ApiError::invalid("images", "`images` have no place in a text that is continued"));
    }
    if asked.format.is_some() {
        return Err(ApiError::invalid(
            "format",
            "`format` is not offered for a text that is continued; leave it out",
        ));
    }
    let answer = match app.backend.upstream().complete(model, completion_of(asked)).await {
        Ok(answer) => answer,
        // What the server says to the request is the client's to read. That it refuses this server is not.
        Err(UpstreamError::Refused { status, failure }) if !matches!(status, 401 | 403 | 407) => {
            return Ok(failed(*failure));
        }
        Err(error) => return Ok(failed(error)),
    };
    // The encoder of any request of this form.
    let request = json!({"model": model, "prompt": "-", "stream": asked.streams()}).to_string();
    let (parts, ()) = axum::http::Request::new(()).into_parts();
    let decoded = OllamaFront::Generate.decode(&parts, request.as_bytes());
    let encoder = decoded.map_err(|fault| ApiError::internal(fault.to_string()))?.encoder;
    let answering = Answering::new(Turn::continuing(model.to_owned(), answer), encoder, None, None);
    Ok(match asked.streams() {
        true => streamed(&OllamaFront::Generate, answering, app.closing.clone()).await,
        false => whole(&OllamaFront::Generate, answering, app.closing.clone()).await,
    })
}

/// The request in OpenAI's form, without the model.
fn completion_of(asked: &Asked) -> Map<String, Value> {
    const OPTIONS: [&str; 9] = [
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "repeat_penalty",
        "seed",
        "stop",
    ];
    let option = |name: &str| asked.options.as_ref().and_then(|options| options.get(name)).cloned();
    // Without a number the answer ends where the model does, as at Ollama, and not after OpenAI's 16 tokens.
    let most = option("num_predict").filter(|most| most.as_u64().is_some());
    let suffix = asked.suffix.as_deref().filter(|text| !text.is_empty());
    let fields = [
        ("prompt", json!(asked.prompt.as_deref().unwrap_or_default())),
        ("max_tokens", json!(most)),
        ("stream", json!(asked.streams())),
    ];
    let usage = asked.streams().then(|| json!({"include_usage": true}));
    let others = [("suffix", suffix.map(Value::from)), ("stream_options", usage)];
    let options = OPTIONS.map(|name| (name, option(name)));
    let given = others.into_iter().chain(options).filter_map(|(name, value)| Some((name, value?)));
    fields.into_iter().chain(given).map(|(name, value)| (name.to_owned(), value)).collect()
}
