//! The input of a request: a text, or items. What one answer of the model consists of (reasoning, texts, calls) becomes one message.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{API, kept::KeptItems, namespace::read_call_name};
use crate::{
    BadRequest, Call, CallIds, CallInput, Content, Media, MediaKind, MediaSource, Message, Part, Passing,
    RawJson, Reasoning, Role, Seal, SealKind, ToolResult,
    json::{Field, Object},
    openai::read_audio,
};

/// The input of a request.
pub(super) struct ReadInput {
    pub(super) messages: Vec<Message>,
    /// The input with items in place of references to them; `None` where it has no references.
    pub(super) resolved: Option<RawJson>,
    /// The ids of the items that are referred to and not known.
    pub(super) missing: Vec<String>,
}

/// Reads the conversation of a request, which may refer to kept items.
pub(super) fn read_input<'i>(field: &Field<'i>, kept: &'i KeptItems) -> Result<ReadInput, BadRequest> {
    let mut input = Input::new(kept);
    if field.is_string() {
        input.messages.push(Message::text(Role::User, field.string()?));
    } else if field.is_array() {
        for item in field.items()? {
            input.read_item(item)?;
        }
        input.end_answer();
    } else {
        return Err(field.bad("has to be a string or an array of items"));
    }
    let Input { messages, items, references, missing, .. } = input;
    let is_empty = messages.iter().all(|message| message.parts.is_empty());
    if is_empty && missing.is_empty() {
        return Err(field.bad("is empty; send a text or items"));
    }
    let is_resolved = !references.is_empty() && missing.is_empty();
    Ok(ReadInput { messages, resolved: is_resolved.then(|| RawJson::of(&items)), missing })
}

struct Input<'i> {
    kept: &'i KeptItems,
    messages: Vec<Message>,
    ids: CallIds,
    /// The message of the model that is being put together, and the kind of its last item.
    answer: Option<(Message, Kind)>,
    /// The items as they are written; kept ones in place of references.
    items: Vec<&'i RawValue>,
    /// What has been referred to.
    references: HashSet<String>,
    missing: Vec<String>,
}

/// The items of one answer, in the order in which they stand there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Reasoning,
    Message,
    Call,
}

impl<'i> Input<'i> {
    fn new(kept: &'i KeptItems) -> Self {
        let (messages, items, missing) = (Vec::new(), Vec::new(), Vec::new());
        let (ids, answer, references) = (CallIds::default(), None, HashSet::new());
        Self { kept, messages, ids, answer, items, references, missing }
    }

    fn read_item(&mut self, field: Field<'i>) -> Result<(), BadRequest> {
        let source = field.source();
        let path = field.path().to_owned();
        let mut item = field.object()?;
        if is_reference(&item) {
            return self.read_reference(path, item);
        }
        self.items.push(source);
        // How far an item of an answer was says nothing about the conversation.
        item.take("status");
        match item.string("type")?.as_deref() {
            Some("message") | None => self.read_message(item),
            Some("reasoning") => {
                let part = read_reasoning(item)?;
                self.answer(Kind::Reasoning).parts.push(part);
                Ok(())
            }
            Some("function_call") => self.read_call(item, "arguments", CallInput::Json),
            Some("custom_tool_call") => self.read_call(item, "input", CallInput::Text),
            Some("function_call_output" | "custom_tool_call_output") => self.read_output(item),
            // What this server says of its own tools, and OpenAI of the tools that run there, comes back with the conversation.
            Some(kind) if is_of_server(kind) => {
                let kind = self.answer.as_ref().map_or(Kind::Reasoning, |(_, kind)| *kind);
                let part = Content::Opaque(API, RawJson::from(source)).into();
                self.open_answer(kind).parts.push(part);
                Ok(())
            }
            Some(other) => {
                let message = format_args!(
                    "`{other}` is not offered here: send items of type `message`, `reasoning`, `function_call`, \
                     `function_call_output`, `custom_tool_call` and `custom_tool_call_output`"
                );
                Err(item.bad("type", message))
            }
        }
    }

    /// Reads the kept item. SDKs refer to a call once more where they have its result; an item stands once in a conversation.
    fn read_reference(&mut self, path: String, mut item: Object<'i>) -> Result<(), BadRequest> {
        let id = item.string("id")?.ok_or_else(|| item.bad("id", "is missing"))?;
        if !self.references.insert(id.clone()) {
            return Ok(());
        }
        match self.kept.get(&id) {
            Some(kept) => self.read_item(Field::of(path, kept.raw())),
            None => {
                self.missing.push(id);
                Ok(())
            }
        }
    }

    fn read_message(&mut self, mut item: Object<'_>) -> Result<(), BadRequest> {
        let role = match item.string("role")?.as_deref() {
            Some("system") => Role::System,
            Some("developer") => Role::Developer,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Err(item.bad("role", "has to be `system`, `developer`, `user` or `assistant`")),
        };
        let parts = read_content(&mut item, "content")?;
        let passing = item.rest(API);
        if role == Role::Assistant {
            let message = self.answer(Kind::Message);
            message.parts.extend(parts);
            message.passing = passing;
        } else {
            self.end_answer();
            self.messages.push(Message { passing, ..Message::new(role, parts) });
        }
        Ok(())
    }

    fn read_call(&mut self, mut item: Object<'_>, field: &str, input: CallInput) -> Result<(), BadRequest> {
        let name = read_call_name(&mut item)?;
        let own = item.string("call_id")?.ok_or_else(|| item.bad("call_id", "is missing"))?;
        let arguments = item.string(field)?.ok_or_else(|| item.bad(field, "is missing"))?;
        let id = self.ids.call(&name, Some(own));
        let content = Content::Call(Call { id, name, arguments, input });
        self.answer(Kind::Call).parts.push(Part { content, passing: item.rest(API) });
        Ok(())
    }

    fn read_output(&mut self, mut item: Object<'_>) -> Result<(), BadRequest> {
        let own = item.string("call_id")?.ok_or_else(|| item.bad("call_id", "is missing"))?;
        let name = item.string("name")?;
        let call_id = self.ids.result(name.as_deref(), Some(own));
        let parts = read_content(&mut item, "output")?;
        let content = Content::Result(ToolResult { call_id, name, parts, is_error: false });
        self.end_answer();
        let message = Message::new(Role::Tool, vec![content.into()]);
        self.messages.push(Message { passing: item.rest(API), ..message });
        Ok(())
    }

    /// The message of the model that its next item belongs to: another, where the item does not stand behind the last.
    fn answer(&mut self, kind: Kind) -> &mut Message {
        let is_behind = self
            .answer
            .as_ref()
            .is_none_or(|(_, last)| kind > *last || (kind == *last && kind != Kind::Message));
        if !is_behind {
            self.end_answer();
        }
        self.open_answer(kind)
    }

    fn open_answer(&mut self, kind: Kind) -> &mut Message {
        let (message, last) =
            self.answer.get_or_insert_with(|| (Message::new(Role::Assistant, Vec::new()), kind));
        *last = kind;
        message
    }

    fn end_answer(&mut self) {
        self.messages.extend(self.answer.take().map(|(message, _)| message));
    }
}

/// Whether items of a type tell of a tool that is not the client's.
fn is_of_server(kind: &str) -> bool {
    kind.ends_with("_call")
        || kind.ends_with("_call_output")
        || kind == "mcp_list_tools"
        || kind.starts_with("mcp_approval_")
}

/// Whether an item stands for a kept one. Its type may be left out.
fn is_reference(item: &Object<'_>) -> bool {
    match item.get("type") {
        Some(kind) => kind.string().is_ok_and(|kind| kind == "item_reference"),
        None => item.get("id").is_some() && item.get("role").is_none() && item.get("content").is_none(),
    }
}

/// Reads the text, which is in `content`, or where the API does not show it, in `summary`.
fn read_reasoning(mut item: Object<'_>) -> Result<Part, BadRequest> {
    let mut passing = Passing::of(API);
    let mut texts = |name: &'static str| -> Result<(String, Option<RawJson>), BadRequest> {
        let Some(field) = item.take(name) else { return Ok((String::new(), None)) };
        let texts = field.items()?.into_iter().map(|part| {
            let mut part = part.object()?;
            part.string("text")?.ok_or_else(|| part.bad("text", "is missing"))
        });
        Ok((texts.collect::<Result<Vec<_>, _>>()?.join("\n\n"), Some(RawJson::from(field.source()))))
    };
    let (content, _) = texts("content")?;
    let (summary, source) = texts("summary")?;
    let text = if content.is_empty() { summary.clone() } else { content };
    if let Some(source) = source.filter(|_| !summary.is_empty() && text != summary) {
        passing.push("summary", source);
    }
    let sealed = item.string("encrypted_content")?;
    let seal = sealed.map(|data| Seal { api: API, kind: SealKind::Encrypted, data });
    Ok(Part { content: Content::Reasoning(Reasoning { text, seal }), passing: item.rest_with(passing) })
}

/// Reads content: a text, or parts.
fn read_content(item: &mut Object<'_>, name: &str) -> Result<Vec<Part>, BadRequest> {
    let field = item.take(name).ok_or_else(|| item.bad(name, "is missing"))?;
    if field.is_string() {
        let text = field.string()?;
        return Ok((!text.is_empty()).then(|| Content::Text(text).into()).into_iter().collect());
    }
    if !field.is_array() {
        return Err(field.bad("has to be a string or an array of parts"));
    }
    let parts = field.items()?.into_iter().map(|part| read_part(part.object()?));
    Ok(parts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn read_part(mut part: Object<'_>) -> Result<Option<Part>, BadRequest> {
    let mut passing = Passing::of(API);
    let content = match part.string("type")?.as_deref() {
        Some("input_text" | "output_text" | "text") => read_text(&mut part, "text")?,
        Some("refusal") => read_text(&mut part, "refusal")?,
        Some("input_image") => {
            let (url, id) = (part.string("image_url")?, part.string("file_id")?);
            let mut media = match (url, id) {
                (Some(url), _) => Media::from_url(MediaKind::Image, url, MediaSource::Url),
                (None, Some(id)) => Media::new(MediaKind::Image, MediaSource::Id(id)),
                (None, None) => return Err(part.bad("image_url", "is missing")),
            };
            media.detail = part.string("detail")?;
            Some(Content::Media(media))
        }
        Some("input_file") => {
            let (data, url, id) =
                (part.string("file_data")?, part.string("file_url")?, part.string("file_id")?);
            let mut media = match (data, url, id) {
                (Some(data), _, _) => Media::from_url(MediaKind::File, data, MediaSource::Data),
                (None, Some(url), _) => Media::new(MediaKind::File, MediaSource::Url(url)),
                (None, None, Some(id)) => Media::new(MediaKind::File, MediaSource::Id(id)),
                (None, None, None) => return Err(part.bad("file_data", "is missing")),
            };
            media.name = part.string("filename")?;
            Some(Content::Media(media))
        }
        Some("input_audio") => {
            let mut audio =
                part.object("input_audio")?.ok_or_else(|| part.bad("input_audio", "is missing"))?;
            let media = read_audio(&mut audio)?;
            audio.leave("input_audio", &mut passing);
            Some(Content::Media(media))
        }
        _ => {
            let message = "has to be `input_text`, `input_image`, `input_file`, `input_audio`, `output_text` or `refusal`";
            return Err(part.bad("type", message));
        }
    };
    // Without any they say nothing.
    for name in ["annotations", "logprobs"] {
        if let Some(list) = part.take(name)
            && !list.items()?.is_empty()
        {
            passing.push(name, list.source());
        }
    }
    Ok(content.map(|content| Part { content, passing: part.rest_with(passing) }))
}

fn read_text(part: &mut Object<'_>, name: &str) -> Result<Option<Content>, BadRequest> {
    let text = part.string(name)?.ok_or_else(|| part.bad(name, "is missing"))?;
    Ok((!text.is_empty()).then_some(Content::Text(text)))
}
