//! What clients of Ollama send to the addresses of its chats that is no question to a model with tools: to load a model or unload it, and a text that is
//! to be continued without the model's template, as editors do.

use axum::{
    body::{Body as HttpBody, Bytes, to_bytes},
    http::{HeaderMap, HeaderValue, Method, header, request::Parts},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, json};
use toolrack_apis::{
    Decode, Encode, FinishReason, Framing, Front, Piece, TurnEvent, Usage, Wire,
    completion::{CompletionForm, CompletionWire},
    ollama::OllamaFront,
};

use super::{failed, find_model, is_ollama, pass, restricted};
use crate::{
    beside::beside,
    server::{
        App, MAX_BODY,
        api_error::ApiError,
        body::{check_values, decode},
        identity::Identity,
        passed::require_server,
    },
    turn::PLAIN,
    upstream::{UpstreamError, answer::MAX_ANSWER},
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
    let headers =
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let body = completion_of(model, asked).to_string();
    let asking = app.backend.upstream().pass(Method::POST, "/v1/completions", headers, body.into());
    let response = match asking.await {
        Ok(response) => response,
        Err(error) => return Ok(failed(error)),
    };
    let wire = CompletionWire {
        form: CompletionForm::OpenAi,
        prompt: String::new(),
        stop: Vec::new(),
        tokens: Vec::new(),
        num_ctx: None,
        keep_alive: None,
        loads: false,
    };
    let (parts, body) = response.into_parts();
    if !parts.status.is_success() {
        let said = to_bytes(body, MAX_BODY).await.unwrap_or_default();
        return Ok(failed(wire.failure(&parts, &said)));
    }
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let decoder = wire.decoder(kind.unwrap_or("text/event-stream"));
    let mut continuing = Continuing::new(decoder, model, asked.streams())?;
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(continuing.encoder.content_type()))];
    if asked.streams() {
        return Ok((kind, HttpBody::from_stream(continuing.stream(body))).into_response());
    }
    let mut parts = body.into_data_stream();
    let mut out = Vec::new();
    while !continuing.is_over
        && let Some(part) = parts.next().await
    {
        out.extend(continuing.take(part.map_err(|error| error.to_string())));
    }
    // One that is not streamed is read only now.
    let ended = beside(continuing.size, move || continuing.end()).await;
    out.extend(ended.ok_or_else(|| ApiError::internal("this server is being stopped"))?);
    Ok((kind, out).into_response())
}

/// The request in OpenAI's form.
fn completion_of(model: &str, asked: &Asked) -> Value {
    const OPTIONS: [&str; 8] =
        ["temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "seed", "stop"];
    let option = |name: &str| asked.options.as_ref().and_then(|options| options.get(name)).cloned();
    // Without a number the answer ends where the model does, as at Ollama, and not after OpenAI's 16 tokens.
    let most = option("num_predict").filter(|most| most.as_u64().is_some());
    let suffix = asked.suffix.as_deref().filter(|text| !text.is_empty());
    let fields = [
        ("model", json!(model)),
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

/// A completion on its way to the client, in Ollama's form.
struct Continuing {
    decoder: Box<dyn Decode>,
    encoder: Box<dyn Encode>,
    reason: FinishReason,
    usage: Usage,
    /// How many bytes have come.
    size: usize,
    is_over: bool,
}

impl Continuing {
    fn new(decoder: Box<dyn Decode>, model: &str, streams: bool) -> Result<Self, ApiError> {
        // The encoder of any request of this form.
        let request = json!({"model": model, "prompt": "-", "stream": streams}).to_string();
        let parts = axum::http::Request::new(()).into_parts().0;
        let decoded = OllamaFront::Generate.decode(&parts, request.as_bytes());
        let mut encoder = decoded.map_err(|fault| ApiError::internal(fault.to_string()))?.encoder;
        encoder.event(TurnEvent::Model(model.to_owned()), &mut Vec::new());
        Ok(Self {
            decoder,
            encoder,
            reason: FinishReason::Stop,
            usage: Usage::default(),
            size: 0,
            is_over: false,
        })
    }

    /// What the client gets for the next part of the answer.
    fn take(&mut self, part: Result<Bytes, String>) -> Vec<u8> {
        let (mut pieces, mut out) = (Vec::new(), Vec::new());
        if self.is_over {
            return out;
        }
        let read = match part {
            Ok(bytes) => {
                self.size = self.size.saturating_add(bytes.len());
                match self.size {
                    ..=MAX_ANSWER => self.decoder.push(&bytes, &mut pieces),
                    _ => Err(UpstreamError::failed("its answer is over 64 MiB").into()),
                }
            }
            Err(cause) => Err(UpstreamError::failed(cause).into()),
        };
        self.say(pieces, &mut out);
        if let Err(failure) = read {
            self.last(TurnEvent::Failed(failure), &mut out);
        }
        out
    }

    /// What the client gets at the end of the answer.
    fn end(&mut self) -> Vec<u8> {
        let (mut pieces, mut out) = (Vec::new(), Vec::new());
        if self.is_over {
            return out;
        }
        let read = self.decoder.finish(&mut pieces);
        self.say(pieces, &mut out);
        let (reason, usage) = (self.reason.clone(), self.usage.clone());
        let last = read.map_or_else(TurnEvent::Failed, |()| TurnEvent::Finished { reason, usage });
        self.last(last, &mut out);
        out
    }

    fn say(&mut self, pieces: Vec<Piece>, out: &mut Vec<u8>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.encoder.event(TurnEvent::Text(text), out),
                Piece::Finish(reason) => self.reason = reason,
                Piece::Usage(usage) => self.usage = usage,
                Piece::Reasoning { .. } | Piece::Call(_) | Piece::Passing(_) => {}
            }
        }
    }

    fn last(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        self.is_over = true;
        self.encoder.event(event, out);
        self.encoder.finish(out);
    }

    fn stream(
        self,
        body: HttpBody,
    ) -> impl futures_util::Stream<Item = Result<Bytes, std::convert::Infallible>> {
        let parts = body.into_data_stream();
        stream::unfold(Some((self, parts)), async |state| {
            let (mut continuing, mut parts) = state?;
            loop {
                match parts.next().await {
                    Some(part) => {
                        let out = continuing.take(part.map_err(|error| error.to_string()));
                        let is_over = continuing.is_over;
                        if is_over || !out.is_empty() {
                            return Some((Ok(out.into()), (!is_over).then_some((continuing, parts))));
                        }
                    }
                    None => return Some((Ok(continuing.end().into()), None)),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b13_a_text_that_is_continued_comes_to_an_end() {
        let wire = CompletionWire {
            form: CompletionForm::OpenAi,
            prompt: String::new(),
            stop: Vec::new(),
            tokens: Vec::new(),
            num_ctx: None,
            keep_alive: None,
            loads: false,
        };
        let mut continuing = Continuing::new(wire.decoder("text/event-stream"), "m", false).unwrap();
        let ping = || Ok(Bytes::from_static(b": ping\n\n"));
        assert!(continuing.take(ping()).is_empty() && !continuing.is_over);
        continuing.size = MAX_ANSWER;
        let said = String::from_utf8(continuing.take(ping())).unwrap();
        assert!(continuing.is_over && said.contains("over 64 MiB"), "{said}");
        assert!(continuing.end().is_empty());
    }
}
