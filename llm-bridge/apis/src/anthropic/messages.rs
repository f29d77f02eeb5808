//! Messages of clients.

use super::{API, UNSIGNED};
use crate::{
    BadRequest, Call, Content, Media, MediaKind, MediaSource, Message, Part, Passing, RawJson, Reasoning,
    Role, Seal, SealKind, ToolResult,
    json::{Field, Object},
    message::push_taken_apart,
};

/// Where blocks stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Message(Role),
    Result,
}

/// Takes the conversation out of a request, with its system prompt.
pub(super) fn read_messages(body: &mut Object<'_>) -> Result<Vec<Message>, BadRequest> {
    let mut messages = Vec::new();
    let system = read_blocks(body, "system", Place::Message(Role::System))?;
    if !system.is_empty() {
        messages.push(Message::new(Role::System, system));
    }
    let field = body.take("messages").ok_or_else(|| body.bad("messages", "is missing"))?;
    let items = field.items()?;
    if items.is_empty() {
        return Err(field.bad("is empty; send at least one"));
    }
    for item in items {
        read_message(item.object()?, &mut messages)?;
    }
    Ok(messages)
}

fn read_message(mut message: Object<'_>, messages: &mut Vec<Message>) -> Result<(), BadRequest> {
    let role = match message.string("role")?.as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return Err(message.bad("role", "has to be `user`, `assistant` or `system`")),
    };
    let blocks = read_blocks(&mut message, "content", Place::Message(role))?;
    push_taken_apart(messages, role, blocks, message.rest(API));
    Ok(())
}

fn read_blocks(object: &mut Object<'_>, name: &str, place: Place) -> Result<Vec<Part>, BadRequest> {
    let Some(field) = object.take(name) else { return Ok(Vec::new()) };
    if field.is_string() {
        let text = field.string()?;
        return Ok(if text.is_empty() { Vec::new() } else { vec![Content::Text(text).into()] });
    }
    if !field.is_array() {
        return Err(field.bad("has to be a string or an array of blocks"));
    }
    let blocks = field.items()?.into_iter().map(|item| read_block(item, place));
    Ok(blocks.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Reads a block: mostly one part. One of a type that only this API knows is [`Content::Opaque`]; an empty text is none.
fn read_block(item: Field<'_>, place: Place) -> Result<Vec<Part>, BadRequest> {
    let source = item.source();
    let mut block = item.object()?;
    let mut passing = Passing::of(API);
    let Some(kind) = block.string("type")? else { return Err(block.bad("type", "is missing")) };
    let belongs = match kind.as_str() {
        "thinking" | "redacted_thinking" | "tool_use" => place == Place::Message(Role::Assistant),
        "tool_result" => place == Place::Message(Role::User),
        _ => true,
    };
    if !belongs {
        return Err(block.bad("type", format_args!("`{kind}` has no place in this message")));
    }
    let content = match kind.as_str() {
        "text" => match required(&mut block, "text")? {
            text if text.is_empty() => return Ok(Vec::new()),
            text => Content::Text(text),
        },
        "thinking" => {
            let text = required(&mut block, "thinking")?;
            let signature = block.string("signature")?;
            let signature = signature.filter(|signature| !matches!(signature.as_str(), "" | UNSIGNED));
            let seal = signature.map(|data| Seal { api: API, kind: SealKind::Signature, data });
            Content::Reasoning(Reasoning { text, seal })
        }
        "redacted_thinking" => {
            let data = required(&mut block, "data")?;
            let seal = Some(Seal { api: API, kind: SealKind::Encrypted, data });
            Content::Reasoning(Reasoning { text: String::new(), seal })
        }
        "image" | "document" => {
            let mut from = block.object("source")?.ok_or_else(|| block.bad("source", "is missing"))?;
            let of = from.string("type")?;
            if (kind.as_str(), of.as_deref()) == ("document", Some("content")) {
                let inner = read_blocks(&mut from, "content", Place::Result)?;
                let (title, about) = (block.string("title")?, block.string("context")?);
                return Ok(as_document(title, about, inner, block.rest_with(passing)));
            }
            let kind = if kind == "image" { MediaKind::Image } else { MediaKind::File };
            Content::Media(read_media(&mut block, kind, from, of.as_deref(), &mut passing)?)
        }
        "search_result" => {
            let inner = read_blocks(&mut block, "content", Place::Result)?;
            let (title, about) = (block.string("title")?, block.string("source")?);
            return Ok(as_document(title, about, inner, block.rest_with(passing)));
        }
        "tool_use" => {
            let (id, name) = (required(&mut block, "id")?, required(&mut block, "name")?);
            let arguments = match block.take("input") {
                None => "{}".to_owned(),
                Some(input) if input.is_object() => input.source().get().to_owned(),
                Some(other) => return Err(other.bad("has to be an object")),
            };
            Content::Call(Call::new(id, name, arguments))
        }
        "tool_result" => Content::Result(ToolResult {
            call_id: required(&mut block, "tool_use_id")?,
            name: None,
            parts: read_blocks(&mut block, "content", Place::Result)?,
            is_error: block.bool("is_error")?.unwrap_or(false),
        }),
        // What a client's search of tools has found. All tools are offered, so that the model needs no more than to hear of it.
        "tool_reference" if place == Place::Result => {
            Content::Text(format!("The tool `{}` is available.", required(&mut block, "tool_name")?))
        }
        _ => Content::Opaque(API, RawJson::from(source)),
    };
    let passing = match content {
        Content::Opaque(..) => Passing::none(),
        _ => block.rest_with(passing),
    };
    Ok(vec![Part { content, passing }])
}

/// The parts of a block that quotes what others have written: its texts are a document, so that they are not taken for the person's words.
fn as_document(
    title: Option<String>,
    about: Option<String>,
    inner: Vec<Part>,
    mut passing: Passing,
) -> Vec<Part> {
    let (mut texts, mut others): (Vec<String>, _) = (about.into_iter().collect(), Vec::new());
    for part in inner {
        match part.content {
            Content::Text(text) => texts.push(text),
            content => others.push(Part { content, passing: part.passing }),
        }
    }
    texts.retain(|text| !text.is_empty());
    if !texts.is_empty() || title.is_some() {
        let mut document = Media::new(MediaKind::File, MediaSource::Text(texts.join("\n\n")));
        document.name = title.filter(|title| !title.is_empty());
        others.insert(0, Part { content: Content::Media(document), passing: std::mem::take(&mut passing) });
    } else if let Some(first) = others.first_mut() {
        first.passing.extend(&passing, API);
    }
    others
}

/// Reads a picture or document from its source of that type.
fn read_media(
    block: &mut Object<'_>,
    kind: MediaKind,
    mut source: Object<'_>,
    of: Option<&str>,
    passing: &mut Passing,
) -> Result<Media, BadRequest> {
    const TYPES: &str = "has to be `base64`, `url`, `file`, or, in a document, `text` or `content`";
    let read = match (of, kind) {
        (Some("base64"), _) => MediaSource::Data(required(&mut source, "data")?),
        (Some("url"), _) => MediaSource::Url(required(&mut source, "url")?),
        (Some("file"), _) => MediaSource::Id(required(&mut source, "file_id")?),
        (Some("text"), MediaKind::File) => MediaSource::Text(required(&mut source, "data")?),
        _ => return Err(source.bad("type", TYPES)),
    };
    let mut media = Media { media_type: source.string("media_type")?, ..Media::new(kind, read) };
    if kind == MediaKind::File {
        media.name = block.string("title")?;
    }
    source.leave("source", passing);
    Ok(media)
}

fn required(object: &mut Object<'_>, name: &str) -> Result<String, BadRequest> {
    object.string(name)?.ok_or_else(|| object.bad(name, "is missing"))
}
