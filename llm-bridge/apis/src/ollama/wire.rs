//! Requests to model servers.

use std::{borrow::Cow, collections::BTreeSet};

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use super::{
    API,
    decode::{read_frame, read_reply},
    message_json::{CallNames, MessageJson, image_of, messages_of},
};
use crate::{
    CallInput, Content, Decode, Effort, Encoded, Framing, MediaSource, Message, Omission, Part, Provider,
    RawJson, Request, ResponseFormat, Role, Sampling, Thinking, ToolChoice, ToolInput, Wire,
    decoder::{StreamDecoder, WholeDecoder},
    openai::client_tools::ToolJson,
    passing::Fields,
    results::in_text_and_functions,
    wire::{AS_FUNCTION, media_omission, passing_omissions, post},
};

/// Ollama's own API, spoken to an Ollama server.
///
/// What is special about such servers: a tool's schema loses what Ollama has no field for; there is no choice of tools; an argument
/// to `think` is refused by models that do not think; and a call that cannot be parsed is a 500 with the model's words in its message.
#[derive(Debug, Clone, Default)]
pub struct OllamaWire {
    /// The size of the context in tokens (`num_ctx`), where the client does not say; `None` for the server's default.
    pub num_ctx: Option<u64>,
    /// How long the model stays loaded (`keep_alive`), where the client does not say; `None` for the server's default.
    pub keep_alive: Option<String>,
    /// Whether the client may say how the model is loaded, which counts for all who ask it: for how long, with which size of the context, on
    /// what. Otherwise nothing of that is sent ([`leave_out_loading`]).
    pub loads: bool,
}

/// The options that say how the model chooses its words. All others have Ollama load the model anew.
const CHOOSING: &[&str] = &[
    "frequency_penalty",
    "min_p",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "num_keep",
    "num_predict",
    "penalize_newline",
    "presence_penalty",
    "repeat_last_n",
    "repeat_penalty",
    "seed",
    "stop",
    "temperature",
    "tfs_z",
    "top_k",
    "top_p",
    "typical_p",
];

/// Leaves out of a request to Ollama what says how the model is loaded.
pub fn leave_out_loading(request: &mut serde_json::Map<String, Value>) {
    request.remove("keep_alive");
    if let Some(Value::Object(options)) = request.get_mut("options") {
        options.retain(|name, _| CHOOSING.contains(&name.as_str()));
    }
}

impl Wire for OllamaWire {
    fn api(&self) -> Provider {
        API
    }

    fn request(&self, request: &Request, definitions: &str) -> Encoded {
        let names: CallNames<'_> = request
            .messages
            .iter()
            .flat_map(Message::calls)
            .map(|call| (call.id.as_str(), call.name.as_str()))
            .collect();
        // That no tool may be called is said by sending none.
        let is_none = request.choice == ToolChoice::None;
        let definitions = if is_none { "" } else { definitions };
        let tools = request.tools.iter().filter(|_| !is_none);
        let messages = in_text_and_functions(&request.messages, |part| image_of(part).is_some());
        let body = self.body(request, &messages, &names);
        let http = post("/api/chat", &body, definitions, tools.map(|tool| ToolJson::new(tool, API)));
        Encoded { http, omissions: omissions(request) }
    }

    fn decoder(&self, content_type: &str) -> Box<dyn Decode> {
        match content_type.starts_with("application/json") || content_type.starts_with("text/html") {
            true => Box::new(WholeDecoder::new(read_reply)),
            false => Box::new(StreamDecoder::new(Framing::Lines, read_frame)),
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    messages: Vec<MessageJson<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u64>,
    #[serde(skip_serializing_if = "Options::is_empty")]
    options: Options<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<&'a str>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

impl OllamaWire {
    fn body<'a>(
        &'a self,
        request: &'a Request,
        messages: &'a [Cow<'_, Message>],
        names: &'a CallNames<'a>,
    ) -> Body<'a> {
        let passing = &request.passing;
        let is_said = self.loads && passing.get(API, "keep_alive").is_some();
        let own = self.keep_alive.as_deref().filter(|_| !is_said);
        Body {
            model: request.model.as_deref(),
            messages: messages.iter().flat_map(|message| messages_of(message, names)).collect(),
            stream: true,
            think: request.thinking.map(|thinking| match thinking {
                Thinking::Off => false.into(),
                Thinking::On => true.into(),
                Thinking::Effort(effort) => effort.nearest_common().as_str().into(),
                Thinking::Budget(tokens) => Effort::from_budget(tokens).as_str().into(),
            }),
            format: request.format.as_ref().map(|format| match format {
                ResponseFormat::JsonObject => "json".into(),
                ResponseFormat::JsonSchema { schema, .. } => schema.clone(),
            }),
            logprobs: request.logprobs.map(|_| true),
            top_logprobs: request.logprobs.filter(|count| *count > 0),
            options: Options {
                sampling: &request.sampling,
                num_ctx: self.num_ctx,
                others: passing.get(API, "options"),
                loads: self.loads,
            },
            keep_alive: own,
            passing: Fields {
                fields: passing.to(API),
                but: if self.loads { &["options"] } else { &["keep_alive", "options"] },
            },
        }
    }
}

/// The field `options`.
struct Options<'a> {
    sampling: &'a Sampling,
    num_ctx: Option<u64>,
    others: Option<&'a RawJson>,
    loads: bool,
}

impl Options<'_> {
    fn is_empty(&self) -> bool {
        *self.sampling == Sampling::default() && self.num_ctx.is_none() && self.others.is_none()
    }
}

impl Serialize for Options<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn entry<M: SerializeMap>(
            map: &mut M,
            name: &str,
            value: Option<impl Serialize>,
        ) -> Result<(), M::Error> {
            value.map_or(Ok(()), |value| map.serialize_entry(name, &value))
        }
        let mut others: serde_json::Map<String, Value> =
            self.others.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default();
        // Nothing is what Ollama has by default.
        others.retain(|name, value| match self.loads {
            true => name != "num_ctx" || !value.is_null(),
            false => CHOOSING.contains(&name.as_str()),
        });
        let own = self.num_ctx.filter(|_| !others.contains_key("num_ctx"));
        let sampling = self.sampling;
        let mut map = serializer.serialize_map(None)?;
        entry(&mut map, "num_predict", sampling.max_tokens)?;
        entry(&mut map, "temperature", sampling.temperature)?;
        entry(&mut map, "top_p", sampling.top_p)?;
        entry(&mut map, "top_k", sampling.top_k)?;
        entry(&mut map, "min_p", sampling.min_p)?;
        entry(&mut map, "presence_penalty", sampling.presence_penalty)?;
        entry(&mut map, "frequency_penalty", sampling.frequency_penalty)?;
        entry(&mut map, "repeat_penalty", sampling.repeat_penalty)?;
        entry(&mut map, "seed", sampling.seed)?;
        entry(&mut map, "stop", Some(&sampling.stop).filter(|stop| !stop.is_empty()))?;
        entry(&mut map, "num_ctx", own)?;
        for (name, value) in &others {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// What of a request this API cannot say.
fn omissions(request: &Request) -> Vec<Omission> {
    let mut all = passing_omissions(request, API);
    let mut add = |path: String, done| all.push(Omission { path, done });
    match request.thinking {
        Some(Thinking::Effort(effort)) if effort.nearest_common() != effort => {
            add("thinking".into(), "sent as the nearest effort");
        }
        Some(Thinking::Budget(_)) => add("thinking".into(), "sent as the nearest effort"),
        _ => {}
    }
    match &request.choice {
        ToolChoice::Auto => {}
        ToolChoice::None => add("choice".into(), "said by leaving all tools out"),
        _ => add("choice".into(), "left out: Ollama lets the model decide"),
    }
    if request.parallel.is_some() {
        add("parallel".into(), "left out: Ollama lets the model decide");
    }
    if let Some(ResponseFormat::JsonSchema { name, description, strict, .. }) = &request.format {
        for (is_said, path) in [
            (name.is_none(), "format.name"),
            (description.is_none(), "format.description"),
            (strict.is_none(), "format.strict"),
        ] {
            if !is_said {
                add(path.into(), "left out: Ollama takes the schema alone");
            }
        }
    }
    for (at, tool) in request.tools.iter().enumerate() {
        if matches!(tool.input, ToolInput::Text { .. }) {
            add(format!("tools[{at}]"), AS_FUNCTION);
        }
    }
    for (at, message) in request.messages.iter().enumerate() {
        message_omissions(message, &format!("messages[{at}]"), &mut add);
    }
    all
}

fn message_omissions(message: &Message, path: &str, add: &mut impl FnMut(String, &'static str)) {
    if message.role == Role::Developer {
        add(format!("{path}.role"), "sent as `system`");
    }
    part_omissions(message.role, message.parts.iter().enumerate(), path, add);
    for (at, part) in message.parts.iter().enumerate() {
        if let Content::Result(result) = &part.content
            && message.role == Role::Tool
        {
            let path = format!("{path}.parts[{at}]");
            if result.is_error {
                add(format!("{path}.is_error"), "said in the text");
            }
            let is_media = |(_, part): &(usize, &Part)| matches!(part.content, Content::Media(_));
            let (media, others): (Vec<_>, Vec<_>) = result.parts.iter().enumerate().partition(is_media);
            for (at, media) in media {
                add(format!("{path}.parts[{at}]"), media_omission(image_of(media).is_some()));
            }
            part_omissions(Role::User, others.into_iter(), &path, add);
        }
    }
}

/// Where a part stands in a message: Ollama has one field for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Thinking,
    Content,
    Images,
    Calls,
}

fn part_omissions<'p>(
    role: Role,
    parts: impl Iterator<Item = (usize, &'p Part)>,
    path: &str,
    add: &mut impl FnMut(String, &'static str),
) {
    let (mut last, mut seen) = (Place::Thinking, BTreeSet::new());
    for (at, part) in parts {
        let path = format!("{path}.parts[{at}]");
        let place = match &part.content {
            Content::Text(_) if role != Role::Tool => Place::Content,
            Content::Reasoning(reasoning) if role == Role::Assistant => {
                if reasoning.seal.is_some() {
                    add(path.clone() + ".seal", "left out: only its own API knows it");
                }
                Place::Thinking
            }
            Content::Media(media) if role != Role::Tool && image_of(part).is_some() => {
                if media.detail.is_some() {
                    add(path.clone() + ".detail", "left out: Ollama takes the picture alone");
                }
                Place::Images
            }
            Content::Media(media) if role != Role::Tool => {
                let is_text = matches!(media.source, MediaSource::Text(_));
                add(path, if is_text { "sent as text" } else { media_omission(false) });
                continue;
            }
            Content::Call(call) if role == Role::Assistant => {
                if call.input == CallInput::Text {
                    add(path.clone(), AS_FUNCTION);
                } else if call.arguments_object().is_none() {
                    add(path.clone() + ".arguments", "sent in a field of an object: Ollama takes no text");
                }
                Place::Calls
            }
            Content::Result(_) if role == Role::Tool => continue,
            _ => {
                add(path, "left out: it has no place in this message");
                continue;
            }
        };
        let is_joined = matches!(place, Place::Thinking | Place::Content) && !seen.insert(place);
        if place < last {
            add(path, "moved: reasoning stands first, then the text, pictures and calls");
        } else if is_joined {
            add(path, "joined with the text before it");
        }
        last = last.max(place);
    }
}
