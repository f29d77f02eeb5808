//! Messages of clients.

use super::API;
use crate::{
    BadRequest, Call, CallIds, CallInput, Content, Media, MediaKind, MediaSource, Message, Part, Passing,
    RawJson, Reasoning, Role, ToolResult,
    json::{Field, Object},
};

/// Takes the conversation out of a request.
pub(super) fn read_messages(body: &mut Object<'_>) -> Result<Vec<Message>, BadRequest> {
    let field = body.take("messages").ok_or_else(|| body.bad("messages", "is missing"))?;
    let items = field.items()?;
    if items.is_empty() {
        return Err(field.bad("is empty; send at least one"));
    }
    let mut ids = CallIds::default();
    items.into_iter().map(|item| read_message(item.object()?, &mut ids)).collect()
}

fn read_message(mut message: Object<'_>, ids: &mut CallIds) -> Result<Message, BadRequest> {
    const ROLES: &str = "has to be `system`, `developer`, `user`, `assistant` or `tool`";
    let mut passing = Passing::of(API);
    let role = message.string("role")?.ok_or_else(|| message.bad("role", ROLES))?;
    let (role, parts) = match role.as_str() {
        "system" => (Role::System, read_content(&mut message)?),
        "developer" => (Role::Developer, read_content(&mut message)?),
        "user" => (Role::User, read_content(&mut message)?),
        "assistant" => (Role::Assistant, read_assistant(&mut message, ids, &mut passing)?),
        "tool" | "function" => (Role::Tool, vec![read_result(&mut message, ids)?]),
        _ => return Err(message.bad("role", ROLES)),
    };
    Ok(Message { passing: message.rest_with(passing), ..Message::new(role, parts) })
}

fn read_content(message: &mut Object<'_>) -> Result<Vec<Part>, BadRequest> {
    let Some(content) = message.take("content") else { return Ok(Vec::new()) };
    if content.is_string() {
        return Ok(text_part(content.string()?).into_iter().collect());
    }
    if !content.is_array() {
        return Err(content.bad("has to be a string or an array of parts"));
    }
    let mut parts = Vec::new();
    for item in content.items()? {
        parts.extend(if item.is_string() { text_part(item.string()?) } else { read_part(item)? });
    }
    Ok(parts)
}

fn text_part(text: String) -> Option<Part> {
    (!text.is_empty()).then(|| Content::Text(text).into())
}

/// Reads a part. One of a type that only some server knows is [`Content::Opaque`].
fn read_part(item: Field<'_>) -> Result<Option<Part>, BadRequest> {
    let source = item.source();
    let mut part = item.object()?;
    let mut passing = Passing::of(API);
    let content = match part.string("type")?.as_deref() {
        None => return Err(part.bad("type", "is missing")),
        Some("text") => {
            let text = part.string("text")?.ok_or_else(|| part.bad("text", "is missing"))?;
            if text.is_empty() {
                return Ok(None);
            }
            Content::Text(text)
        }
        Some("image_url") => {
            Content::Media(read_url(&mut part, "image_url", MediaKind::Image, &mut passing)?)
        }
        Some("audio_url") => {
            Content::Media(read_url(&mut part, "audio_url", MediaKind::Audio, &mut passing)?)
        }
        Some("video_url") => {
            Content::Media(read_url(&mut part, "video_url", MediaKind::Video, &mut passing)?)
        }
        Some("input_audio") => {
            let mut audio =
                part.object("input_audio")?.ok_or_else(|| part.bad("input_audio", "is missing"))?;
            let media = read_audio(&mut audio)?;
            audio.leave("input_audio", &mut passing);
            Content::Media(media)
        }
        Some("file") => {
            let mut file = part.object("file")?.ok_or_else(|| part.bad("file", "is missing"))?;
            let (data, id) = (file.string("file_data")?, file.string("file_id")?);
            let mut media = match (data, id) {
                (Some(data), _) => Media::from_url(MediaKind::File, data, MediaSource::Data),
                (None, Some(id)) => Media::new(MediaKind::File, MediaSource::Id(id)),
                (None, None) => return Err(file.bad("file_data", "is missing")),
            };
            media.name = file.string("filename")?;
            file.leave("file", &mut passing);
            Content::Media(media)
        }
        Some(_) => return Ok(Some(Content::Opaque(API, RawJson::from(source)).into())),
    };
    Ok(Some(Part { content, passing: part.rest_with(passing) }))
}

/// Reads `{"url": …}`; some clients send the address alone.
fn read_url(
    part: &mut Object<'_>,
    name: &'static str,
    kind: MediaKind,
    passing: &mut Passing,
) -> Result<Media, BadRequest> {
    let field = part.take(name).ok_or_else(|| part.bad(name, "is missing"))?;
    if field.is_string() {
        return Ok(Media::from_url(kind, field.string()?, MediaSource::Url));
    }
    let mut object = field.object()?;
    let url = object.string("url")?.ok_or_else(|| object.bad("url", "is missing"))?;
    let mut media = Media::from_url(kind, url, MediaSource::Url);
    if kind == MediaKind::Image {
        media.detail = object.string("detail")?;
    }
    object.leave(name, passing);
    Ok(media)
}

/// Reads `{"data": …, "format": …}`.
pub(crate) fn read_audio(audio: &mut Object<'_>) -> Result<Media, BadRequest> {
    let data = audio.string("data")?.ok_or_else(|| audio.bad("data", "is missing"))?;
    let mut media = Media::new(MediaKind::Audio, MediaSource::Data(data));
    media.media_type = audio.string("format")?.map(|format| match format.as_str() {
        "mp3" => "audio/mpeg".to_owned(),
        other => format!("audio/{other}"),
    });
    Ok(media)
}

fn read_assistant(
    message: &mut Object<'_>,
    ids: &mut CallIds,
    passing: &mut Passing,
) -> Result<Vec<Part>, BadRequest> {
    let mut parts = Vec::new();
    // Servers that send both send the same text twice, and clients send it back so.
    let mut reasoning = String::new();
    for name in ["reasoning_content", "reasoning"] {
        let Some(field) = message.take(name) else { continue };
        match field.is_string().then(|| field.string()).transpose()? {
            Some(text) if reasoning.is_empty() => reasoning = text,
            Some(text) if text == reasoning => {}
            _ => passing.push(name, field.source()),
        }
    }
    if !reasoning.is_empty() {
        parts.push(Content::Reasoning(Reasoning { text: reasoning, seal: None }).into());
    }
    parts.extend(read_content(message)?);
    for call in message.items("tool_calls")? {
        parts.push(read_call(call.object()?, ids)?);
    }
    // The deprecated form of a call.
    if let Some(mut function) = message.object("function_call")? {
        let (name, arguments) = read_function(&mut function)?;
        let call = Call::new(ids.call(&name, None), name, arguments);
        function.leave("function_call", passing);
        parts.push(Content::Call(call).into());
    }
    Ok(parts)
}

fn read_call(mut call: Object<'_>, ids: &mut CallIds) -> Result<Part, BadRequest> {
    let mut passing = Passing::of(API);
    let id = call.string("id")?;
    call.take("type");
    let (name, arguments, input) = if let Some(mut custom) = call.object("custom")? {
        let name = custom.string("name")?.ok_or_else(|| custom.bad("name", "is missing"))?;
        let text = custom.string("input")?.unwrap_or_default();
        custom.leave("custom", &mut passing);
        (name, text, CallInput::Text)
    } else {
        let mut function = call.object("function")?.ok_or_else(|| call.bad("function", "is missing"))?;
        let (name, arguments) = read_function(&mut function)?;
        function.leave("function", &mut passing);
        (name, arguments, CallInput::Json)
    };
    let id = ids.call(&name, id);
    let content = Content::Call(Call { id, name, arguments, input });
    Ok(Part { content, passing: call.rest_with(passing) })
}

/// The name and the arguments of a function, which some clients send as an object.
fn read_function(function: &mut Object<'_>) -> Result<(String, String), BadRequest> {
    let name = function.string("name")?.ok_or_else(|| function.bad("name", "is missing"))?;
    let arguments = match function.take("arguments") {
        None => String::new(),
        Some(text) if text.is_string() => text.string()?,
        Some(object) if object.is_object() => object.source().get().to_owned(),
        Some(other) => return Err(other.bad("has to be the JSON of an object, as a string")),
    };
    Ok((name, arguments))
}

fn read_result(message: &mut Object<'_>, ids: &mut CallIds) -> Result<Part, BadRequest> {
    let name = message.string("name")?;
    let own = message.string("tool_call_id")?;
    let call_id = ids.result(name.as_deref(), own);
    let parts = read_content(message)?;
    Ok(Content::Result(ToolResult { call_id, name, parts, is_error: false }).into())
}
