//! An API that this server speaks to model servers.

use http::response::Parts;
use serde::Serialize;

use crate::{
    Content, Failure, Framing, Message, Part, Passing, Piece, Provider, Request, openai::failure_of,
};

/// An API that this server speaks to model servers: encodes requests and decodes answers.
pub trait Wire: Send + Sync {
    /// Which API it is.
    fn api(&self) -> Provider;

    /// Encodes a request. It always asks for a stream with usage.
    ///
    /// `definitions` are those of the server's tools in this API's form, separated by commas and without brackets; empty for none.
    /// They stand before the client's own tools.
    fn request(&self, request: &Request, definitions: &str) -> Encoded;

    /// A decoder for an answer of that content type. A server may answer with one body though a stream was asked for.
    fn decoder(&self, content_type: &str) -> Box<dyn Decode>;

    /// The failure that a reply with an error status is. All model servers write errors much as OpenAI does.
    fn failure(&self, parts: &Parts, body: &[u8]) -> Failure {
        let mut failure = failure_of(&String::from_utf8_lossy(body), Some(parts.status.as_u16()));
        failure.retry_after = retry_after(parts);
        failure
    }

    /// The header that has the key.
    fn authorization(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }
}

/// A request for a model server.
#[derive(Debug)]
pub struct Encoded {
    /// The request, with the path behind the server's base address as its URI; without its key.
    pub http: http::Request<Vec<u8>>,
    /// What of the request it does not say.
    pub omissions: Vec<Omission>,
}

/// Something of a request that an API cannot say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// Its place in the canonical request, such as `messages[2].parts[0].cache_control`.
    pub path: String,
    /// What was done instead: `left out`, for example.
    pub done: &'static str,
}

impl std::fmt::Display for Omission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` {}", self.path, self.done)
    }
}

/// Decodes one answer.
pub trait Decode: Send + std::fmt::Debug {
    /// Takes bytes of the body, cut anywhere, and appends the pieces that they complete.
    ///
    /// # Errors
    /// When the server reports a failure in its answer, or its answer cannot be read. The pieces before it count.
    fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Failure>;

    /// Takes the end of the body.
    ///
    /// # Errors
    /// As [`push`](Self::push), and when the body ended before the answer did.
    fn finish(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Failure>;

    /// How far the answer is.
    fn progress(&self) -> Progress;
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// The model writes.
    #[default]
    Answering,
    /// The model has finished; usage may follow.
    Finished,
    /// Nothing follows. The server may leave the connection open.
    Done,
}

/// A request with a JSON body, to which the definitions of tools are added as they are: they are JSON already, and many.
pub(crate) fn post(
    path: &'static str,
    body: &impl Serialize,
    definitions: &str,
    tools: impl Iterator<Item = impl Serialize>,
) -> http::Request<Vec<u8>> {
    let mut json = Vec::new();
    Framing::append_json(&mut json, body);
    let mut tools = tools.peekable();
    if !definitions.is_empty() || tools.peek().is_some() {
        json.pop();
        json.extend_from_slice(b",\"tools\":[");
        json.extend_from_slice(definitions.as_bytes());
        for tool in tools {
            if !json.ends_with(b"[") {
                json.push(b',');
            }
            Framing::append_json(&mut json, &tool);
        }
        json.extend_from_slice(b"]}");
    }
    let mut request = http::Request::new(json);
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = http::Uri::from_static(path);
    let json = http::HeaderValue::from_static("application/json");
    request.headers_mut().insert(http::header::CONTENT_TYPE, json);
    request
}

/// When a reply with an error status asks to come again.
fn retry_after(parts: &Parts) -> Option<String> {
    let after = parts.headers.get(http::header::RETRY_AFTER);
    after.and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Lists the passing fields that an API does not take; what else it cannot say its wire adds.
pub(crate) fn passing_omissions(request: &Request, api: Provider) -> Vec<Omission> {
    let mut omissions = Vec::new();
    let mut add = |passing: &Passing, place: &dyn Fn() -> String| {
        for name in passing.not_to(api) {
            let path = place() + name;
            omissions.push(Omission { path, done: "left out: only its own API knows it" });
        }
    };
    add(&request.passing, &String::new);
    for (at, tool) in request.tools.iter().enumerate() {
        add(&tool.passing, &|| format!("tools[{at}]."));
    }
    for (at, Message { parts, passing, .. }) in request.messages.iter().enumerate() {
        add(passing, &|| format!("messages[{at}]."));
        for (part_at, part) in parts.iter().enumerate() {
            add(&part.passing, &|| format!("messages[{at}].parts[{part_at}]."));
            for (inner_at, inner) in inner_parts(part).iter().enumerate() {
                add(&inner.passing, &|| format!("messages[{at}].parts[{part_at}].parts[{inner_at}]."));
            }
        }
    }
    if request.conversation.previous_response_id.is_some() {
        let path = "conversation.previous_response_id".to_owned();
        omissions
            .push(Omission { path, done: "left out: the messages have to have all of the conversation" });
    }
    omissions
}

/// What becomes of a tool that takes free text, and of its calls.
pub(crate) const AS_FUNCTION: &str = "sent as a function with one argument, `input`";

/// What becomes of the media of a result where results are text.
pub(crate) const fn media_omission(is_carried: bool) -> &'static str {
    match is_carried {
        true => "moved: into a message of the user behind the results",
        false => "described: it has no place in a message",
    }
}

/// The parts of a result.
fn inner_parts(part: &Part) -> &[Part] {
    match &part.content {
        Content::Result(result) => &result.parts,
        _ => &[],
    }
}
