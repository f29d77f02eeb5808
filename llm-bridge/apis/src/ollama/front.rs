//! Requests of clients, and errors as they go to them.

use http::request::Parts;
use serde_json::json;

use super::{
    API,
    encode::{Endpoint, StreamEncoder, WholeEncoder},
    messages::{read_messages, read_prompt},
};
use crate::{
    BadRequest, Decoded, Effort, Encode, Extension, Failure, Front, Passing, Provider, Request,
    ResponseFormat, Sampling, Thinking, ToolInput,
    front::{failure_reply, read_model, read_tools},
    json::{Field, Object},
    logprobs,
    openai::client_tools::read_tool,
};

/// Ollama's own API, spoken by clients. A key comes as `Authorization: Bearer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OllamaFront {
    /// `POST /api/chat`
    Chat,
    /// `POST /api/generate`: one prompt, and an answer without calls of the client's tools.
    Generate,
}

impl Front for OllamaFront {
    fn api(&self) -> Provider {
        API
    }

    fn decode(&self, _: &Parts, body: &[u8]) -> Result<Decoded, BadRequest> {
        let mut body = Object::from_body(body)?;
        let mut passing = Passing::of(API);
        let model = read_model(&mut body)?;
        let (messages, tools, endpoint) = match self {
            Self::Chat => {
                let tools = read_tools(body.items("tools")?, |tool| {
                    let kind = tool.bad("type", "has to be `function`: Ollama has no other tools");
                    let tool = read_tool(tool, API)?;
                    if matches!(tool.input, ToolInput::Text { .. }) { Err(kind) } else { Ok(tool) }
                })?;
                (read_messages(&mut body)?, tools, Endpoint::Chat)
            }
            Self::Generate => (read_prompt(&mut body)?, Vec::new(), Endpoint::Generate),
        };
        // A stream is what Ollama sends by default.
        let stream = body.bool("stream")?.unwrap_or(true);
        let extension = Extension::take(&mut body, stream)?;
        if let Some(keep_alive) = body.take("keep_alive") {
            if !keep_alive.is_string() {
                keep_alive
                    .float()
                    .map_err(|_| keep_alive.bad("has to be seconds or a text such as \"5m\""))?;
            }
            passing.push("keep_alive", keep_alive.source());
        }
        let request = Request {
            model,
            messages,
            tools,
            stream,
            sampling: read_options(&mut body, &mut passing)?,
            logprobs: logprobs::read_wanted(&mut body, "logprobs", "top_logprobs")?,
            thinking: read_think(&mut body)?,
            format: read_format(&mut body)?,
            extension,
            passing: body.rest_with(passing),
            ..Request::default()
        };
        let encoder: Box<dyn Encode> = match stream {
            true => Box::new(StreamEncoder::new(endpoint)),
            false => Box::new(WholeEncoder::new(endpoint)),
        };
        Ok(Decoded { request, encoder })
    }

    fn failure(&self, failure: &Failure) -> http::Response<Vec<u8>> {
        failure_reply(failure, &json!({ "error": failure.message }))
    }
}

/// Reads `options`. Those that only Ollama knows pass.
fn read_options(body: &mut Object<'_>, passing: &mut Passing) -> Result<Sampling, BadRequest> {
    let Some(mut options) = body.object("options")? else { return Ok(Sampling::default()) };
    let sampling = Sampling {
        // A negative number says that there is no maximum.
        max_tokens: options.integer("num_predict")?.and_then(|tokens| u64::try_from(tokens).ok()),
        temperature: options.float("temperature")?,
        top_p: options.float("top_p")?,
        top_k: options.integer("top_k")?,
        min_p: options.float("min_p")?,
        presence_penalty: options.float("presence_penalty")?,
        frequency_penalty: options.float("frequency_penalty")?,
        repeat_penalty: options.float("repeat_penalty")?,
        seed: options.integer("seed")?,
        stop: options.items("stop")?.iter().map(Field::string).collect::<Result<_, _>>()?,
    };
    options.leave("options", passing);
    Ok(sampling)
}

fn read_think(body: &mut Object<'_>) -> Result<Option<Thinking>, BadRequest> {
    const WORDS: &str = "has to be true, false, \"low\", \"medium\" or \"high\"";
    let Some(field) = body.take("think") else { return Ok(None) };
    let thinking = match field.is_string() {
        true => Effort::from_word(&field.string()?).map(Thinking::Effort),
        false => field.bool().ok().map(|on| if on { Thinking::On } else { Thinking::Off }),
    };
    thinking.map(Some).ok_or_else(|| field.bad(WORDS))
}

fn read_format(body: &mut Object<'_>) -> Result<Option<ResponseFormat>, BadRequest> {
    let Some(field) = body.take("format") else { return Ok(None) };
    if field.is_object() {
        let schema = field.value()?;
        return Ok(Some(ResponseFormat::JsonSchema { name: None, description: None, schema, strict: None }));
    }
    match field.string().as_deref() {
        Ok("") => Ok(None),
        Ok("json") => Ok(Some(ResponseFormat::JsonObject)),
        _ => Err(field.bad("has to be \"json\" or a JSON Schema")),
    }
}
