//! An API that clients speak to this server.

use std::collections::HashMap;

use http::request::Parts;
use serde::Serialize;
use serde_json::Value;

use crate::{
    BadRequest, ClientTool, Failure, Framing, Provider, Request, TurnEvent,
    json::{Field, Object},
};

/// An API that clients speak to this server: decodes their requests and encodes what happens in the turn.
pub trait Front: Send + Sync {
    /// Which API it is.
    fn api(&self) -> Provider;

    /// Decodes a request. The body's size is bounded by the caller, its depth and counts here. Never panics, and takes linear time.
    ///
    /// # Errors
    /// The field that is wrong, and what to send.
    fn decode(&self, parts: &Parts, body: &[u8]) -> Result<Decoded, BadRequest>;

    /// The reply where none of an answer has been sent, in the API's own shape.
    fn failure(&self, failure: &Failure) -> http::Response<Vec<u8>>;
}

/// A front whose API tells how many tokens a request has.
pub trait CountTokens: Front {
    /// Decodes a request for a count: the conversation whose tokens are counted.
    ///
    /// # Errors
    /// The field that is wrong, and what to send.
    fn decode_count(&self, parts: &Parts, body: &[u8]) -> Result<Request, BadRequest>;

    /// The reply with the count.
    fn count(&self, tokens: u64) -> http::Response<Vec<u8>>;
}

/// A decoded request.
#[derive(Debug)]
pub struct Decoded {
    /// The request.
    pub request: Request,
    /// Encodes the answer. It knows from the request what the client expects.
    pub encoder: Box<dyn Encode>,
}

/// Encodes the events of one turn for the client: as frames of a stream, or as one body.
///
/// The last event is [`TurnEvent::Finished`] or [`TurnEvent::Failed`]; [`finish`](Self::finish) follows it. Everything is appended to
/// `out`, which the caller sends and clears.
pub trait Encode: Send + std::fmt::Debug {
    /// The content type of the reply.
    fn content_type(&self) -> &'static str;

    /// Appends the frames of an event; nothing yet where the answer is one body.
    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>);

    /// Appends the end of the stream, or the one body.
    fn finish(&mut self, out: &mut Vec<u8>);

    /// The answer as it was given, where the client can ask for it later by its `id`. It is there once the turn has
    /// [finished](TurnEvent::Finished), and is given once.
    fn take_response(&mut self) -> Option<Value> {
        None
    }

    /// Appends what keeps a silent stream alive; nothing where the API has no such thing.
    fn keep_alive(&mut self, out: &mut Vec<u8>);
}

/// A JSON reply.
pub(crate) fn json_reply(body: &impl Serialize) -> http::Response<Vec<u8>> {
    let mut json = Vec::new();
    Framing::append_json(&mut json, body);
    let mut reply = http::Response::new(json);
    let json = http::HeaderValue::from_static("application/json");
    reply.headers_mut().insert(http::header::CONTENT_TYPE, json);
    reply
}

/// A JSON reply of a failure's status, with the headers that say when and whether to ask again.
pub(crate) fn failure_reply(failure: &Failure, body: &impl Serialize) -> http::Response<Vec<u8>> {
    let mut reply = json_reply(body);
    *reply.status_mut() =
        http::StatusCode::from_u16(failure.status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = reply.headers_mut();
    if let Some(value) = failure.retry_after.as_deref().and_then(|after| after.parse().ok()) {
        headers.insert(http::header::RETRY_AFTER, value);
    }
    if let Some(retry) = failure.should_retry {
        let value = http::HeaderValue::from_static(if retry { "true" } else { "false" });
        headers.insert("x-should-retry", value);
    }
    reply
}

/// The maximum size of a request's tools together, in bytes. No model reads as much.
const MAX_TOOLS: usize = 4 << 20;

/// Reads the tools of a request; two different ones of one name are refused.
pub(crate) fn read_tools(
    items: Vec<Field<'_>>,
    read: impl Fn(Object<'_>) -> Result<ClientTool, BadRequest>,
) -> Result<Vec<ClientTool>, BadRequest> {
    let mut tools = ToolList::of(&items)?;
    for item in items {
        let place = item.bad("");
        tools.push_once(read(item.object()?)?, place)?;
    }
    Ok(tools.into_tools())
}

/// The tools of a request, no two of one name.
#[derive(Default)]
pub(crate) struct ToolList {
    /// Where those of each name are.
    places: HashMap<String, usize>,
    tools: Vec<ClientTool>,
}

impl ToolList {
    /// An empty list for these items, whose size is bounded.
    pub(crate) fn of(items: &[Field<'_>]) -> Result<Self, BadRequest> {
        let size: usize = items.iter().map(|item| item.source().get().len()).sum();
        match items.last() {
            Some(last) if size > MAX_TOOLS => Err(last.bad(format_args!(
                "and the tools before it are larger than {} MiB together",
                MAX_TOOLS >> 20
            ))),
            _ => Ok(Self::default()),
        }
    }

    /// Adds a tool; `place` is where it stands in the request.
    pub(crate) fn push(&mut self, tool: ClientTool, place: BadRequest) -> Result<(), BadRequest> {
        if self.places.insert(tool.name.clone(), self.tools.len()).is_some() {
            return Err(BadRequest { message: format!("two tools are named `{}`", tool.name), ..place });
        }
        self.tools.push(tool);
        Ok(())
    }

    /// The same, but for one that is there: clients that put several lists together send it twice.
    pub(crate) fn push_once(&mut self, tool: ClientTool, place: BadRequest) -> Result<(), BadRequest> {
        let same = self.places.get(&tool.name).and_then(|at| self.tools.get(*at));
        if same == Some(&tool) { Ok(()) } else { self.push(tool, place) }
    }

    pub(crate) fn into_tools(self) -> Vec<ClientTool> {
        self.tools
    }
}

/// The maximum length of a model's name, in bytes: it stands in each chunk of an answer, and is remembered.
pub const MAX_MODEL: usize = 512;

/// Reads the name of the model; an empty one is none.
pub(crate) fn read_model(body: &mut Object<'_>) -> Result<Option<String>, BadRequest> {
    let name = body.string("model")?.filter(|name| !name.is_empty());
    name.map(check_model).transpose()
}

/// The name of a model as it was given.
///
/// # Errors
/// If it is too long.
pub fn check_model(name: String) -> Result<String, BadRequest> {
    if name.len() > MAX_MODEL {
        let message = format!("`model` is longer than {MAX_MODEL} bytes; send a name of the list of models");
        return Err(BadRequest::new("model", message));
    }
    Ok(name)
}

/// Reads the name of a tool.
pub(crate) fn read_name(object: &mut Object<'_>) -> Result<String, BadRequest> {
    match object.string("name")? {
        Some(name) if !name.is_empty() => Ok(name),
        Some(_) => Err(object.bad("name", "is empty")),
        None => Err(object.bad("name", "is missing")),
    }
}

/// Takes a number from 0 on.
pub(crate) fn read_count(object: &mut Object<'_>, name: &str) -> Result<Option<u64>, BadRequest> {
    let Some(field) = object.take(name) else { return Ok(None) };
    let number = u64::try_from(field.integer()?);
    number.map(Some).map_err(|_| field.bad("has to be a whole number from 0 on"))
}
