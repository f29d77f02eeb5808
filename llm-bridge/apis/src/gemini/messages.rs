//! Messages of clients.

use super::{API, object, take_items, take_object};
use crate::{
    BadRequest, Call, CallIds, Content, Media, MediaKind, MediaSource, Message, Part, Passing, RawJson,
    Reasoning, Role, Seal, SealKind, ToolResult,
    json::{Field, Object},
    message::push_taken_apart,
};

/// Takes the conversation out of a request, with its system prompt.
pub(super) fn read_messages(body: &mut Object<'_>) -> Result<Vec<Message>, BadRequest> {
    let mut messages = Vec::new();
    let mut ids = CallIds::default();
    if let Some(mut system) = take_object(body, "systemInstruction")? {
        system.take("role");
        let parts = read_parts(&mut system, Role::System, &mut ids)?;
        let passing = system.rest(API);
        if !parts.is_empty() {
            messages.push(Message { passing, ..Message::new(Role::System, parts) });
        }
    }
    let contents = take_items(body, "contents")?;
    if contents.is_empty() {
        return Err(body.bad("contents", "is missing or empty; send at least one content"));
    }
    for content in contents {
        let mut content = object(content)?;
        let said = content.string("role")?;
        let role = match said.as_deref() {
            // Beside the API's own words those of others, which its SDKs' examples send, too.
            None | Some("user" | "function" | "tool") => Role::User,
            Some("model" | "assistant") => Role::Assistant,
            Some("system") => Role::System,
            Some("developer") => Role::Developer,
            Some(_) => return Err(content.bad("role", "has to be `user` or `model`")),
        };
        let mut parts = read_parts(&mut content, role, &mut ids)?;
        if matches!(said.as_deref(), Some("function" | "tool")) {
            parts.iter_mut().for_each(quote);
        }
        push_taken_apart(&mut messages, role, parts, content.rest(API));
    }
    Ok(messages)
}

/// What a tool says beside its results is not the person's word.
fn quote(part: &mut Part) {
    if let Content::Text(text) = &mut part.content {
        let text = MediaSource::Text(std::mem::take(text));
        part.content = Content::Media(Media::new(MediaKind::File, text));
    }
}

fn read_parts(content: &mut Object<'_>, role: Role, ids: &mut CallIds) -> Result<Vec<Part>, BadRequest> {
    let parts = take_items(content, "parts")?.into_iter().map(|item| read_part(item, role, ids));
    parts.filter_map(Result::transpose).collect()
}

/// Reads a part. One that only this API knows is [`Content::Opaque`]; an empty text is none.
fn read_part(item: Field<'_>, role: Role, ids: &mut CallIds) -> Result<Option<Part>, BadRequest> {
    let (source, empty) = (item.source(), item.bad("is empty; send a part with `text`, for example"));
    let mut part = object(item)?;
    let mut passing = Passing::of(API);
    let (text, thought) = (part.string("text")?, part.bool("thought")?.unwrap_or(false));
    let signature = part.string("thoughtSignature")?;
    if let (Some(text), true) = (&text, thought) {
        if role != Role::Assistant {
            return Err(part.bad("thought", "goes with the role `model` only"));
        }
        let seal = signature.map(|data| Seal { api: API, kind: SealKind::Signature, data });
        if text.is_empty() && seal.is_none() {
            return Ok(None);
        }
        let content = Content::Reasoning(Reasoning { text: text.clone(), seal });
        return Ok(Some(Part { content, passing: part.rest_with(passing) }));
    }
    let content = if let Some(text) = text {
        match (text.is_empty(), &signature) {
            (false, _) => Content::Text(text),
            (true, Some(_)) => Content::Opaque(API, RawJson::from(source)),
            (true, None) => return Ok(None),
        }
    } else if let Some(media) = read_media(&mut part, &mut passing)? {
        Content::Media(media)
    } else if let Some(call) = take_object(&mut part, "functionCall")? {
        if role != Role::Assistant {
            return Err(part.bad("functionCall", "goes with the role `model` only"));
        }
        Content::Call(read_call(call, ids, &mut passing)?)
    } else if let Some(response) = take_object(&mut part, "functionResponse")? {
        if role != Role::User {
            return Err(part.bad("functionResponse", "goes with the role `user` only"));
        }
        Content::Result(read_result(response, ids, &mut passing)?)
    } else if part.rest(API).is_empty() {
        return Err(empty);
    } else {
        return Ok(Some(Content::Opaque(API, RawJson::from(source)).into()));
    };
    if matches!(content, Content::Opaque(..)) {
        return Ok(Some(content.into()));
    }
    if let Some(signature) = signature {
        passing.push("thoughtSignature", RawJson::of(&signature));
    }
    if thought {
        passing.push("thought", RawJson::of(&true));
    }
    Ok(Some(Part { content, passing: part.rest_with(passing) }))
}

/// Takes `inlineData` or `fileData` out of a part.
fn read_media(part: &mut Object<'_>, passing: &mut Passing) -> Result<Option<Media>, BadRequest> {
    let (inline, file) = ("inlineData", "fileData");
    let (name, mut object, source) = if let Some(mut object) = take_object(part, inline)? {
        let data = required(&mut object, "data")?;
        (inline, object, MediaSource::Data(standard_base64(data)))
    } else if let Some(mut object) = take_object(part, file)? {
        let uri = required(&mut object, "fileUri")?;
        (file, object, MediaSource::Url(uri))
    } else {
        return Ok(None);
    };
    let media_type = object.string("mimeType")?;
    let kind = match media_type.as_deref().and_then(|name| name.split('/').next()) {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        Some("video") => MediaKind::Video,
        _ => MediaKind::File,
    };
    let media = Media { media_type, name: object.string("displayName")?, ..Media::new(kind, source) };
    object.leave(name, passing);
    Ok(Some(media))
}

/// Base64 in the usual alphabet and padded. Google's SDK for Python sends the one for URLs, which other servers refuse.
fn standard_base64(data: String) -> String {
    if !data.contains(['-', '_']) {
        return data;
    }
    let digits = data.trim_end_matches('=');
    let padding = digits.len().wrapping_neg() % 4;
    let digits = digits.chars().map(|digit| match digit {
        '-' => '+',
        '_' => '/',
        digit => digit,
    });
    digits.chain(std::iter::repeat_n('=', padding)).collect()
}

fn read_call(mut call: Object<'_>, ids: &mut CallIds, passing: &mut Passing) -> Result<Call, BadRequest> {
    let name = required(&mut call, "name")?;
    let id = ids.call(&name, call.string("id")?);
    let arguments = match call.take("args") {
        None => "{}".to_owned(),
        Some(args) if args.is_object() => args.source().get().to_owned(),
        Some(other) => return Err(other.bad("has to be an object")),
    };
    call.leave("functionCall", passing);
    Ok(Call::new(id, name, arguments))
}

fn read_result(
    mut response: Object<'_>,
    ids: &mut CallIds,
    passing: &mut Passing,
) -> Result<ToolResult, BadRequest> {
    let name = required(&mut response, "name")?;
    let call_id = ids.result(Some(&name), response.string("id")?);
    let (text, is_error) = match response.take("response") {
        None => (String::new(), false),
        Some(output) => read_output(output)?,
    };
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(Content::Text(text).into());
    }
    for item in take_items(&mut response, "parts")? {
        let source = item.source();
        let (mut part, mut passing) = (object(item)?, Passing::of(API));
        parts.push(match read_media(&mut part, &mut passing)? {
            Some(media) => Part { content: Content::Media(media), passing: part.rest_with(passing) },
            None => Content::Opaque(API, RawJson::from(source)).into(),
        });
    }
    response.leave("functionResponse", passing);
    Ok(ToolResult { call_id, name: Some(name), parts, is_error })
}

/// The text of `response`, and whether the tool failed: `output` or `error` where there is nothing else, otherwise all of it.
fn read_output(field: Field<'_>) -> Result<(String, bool), BadRequest> {
    let whole = field.source();
    let mut response = field.object()?;
    let (output, error) = (response.take("output"), response.take("error"));
    let is_error = error.is_some();
    let is_alone = response.rest(API).is_empty();
    let text = match (output, error) {
        (Some(only), None) | (None, Some(only)) if is_alone => match only.is_string() {
            true => only.string()?,
            false => only.source().get().to_owned(),
        },
        _ => whole.get().to_owned(),
    };
    Ok((text, is_error))
}

fn required(object: &mut Object<'_>, name: &str) -> Result<String, BadRequest> {
    object.string(name)?.filter(|text| !text.is_empty()).ok_or_else(|| object.bad(name, "is missing"))
}
