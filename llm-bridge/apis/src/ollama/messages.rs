//! Conversations and prompts of clients.

use super::API;
use crate::{
    BadRequest, Call, CallIds, CallInput, Content, Media, MediaKind, MediaSource, Message, Part, Passing,
    Reasoning, Role, ToolResult,
    json::{Field, Object},
};

/// Takes the conversation out of a request.
pub(super) fn read_messages(body: &mut Object<'_>) -> Result<Vec<Message>, BadRequest> {
    let field = body.take("messages").ok_or_else(|| body.bad("messages", "is missing"))?;
    let items = field.items()?;
    if items.is_empty() {
        return Err(field.bad("is empty; send at least one. Models are loaded when they are first used"));
    }
    let mut ids = CallIds::default();
    items.into_iter().map(|item| read_message(item.object()?, &mut ids)).collect()
}

fn read_message(mut message: Object<'_>, ids: &mut CallIds) -> Result<Message, BadRequest> {
    const ROLES: &str = "has to be `system`, `user`, `assistant` or `tool`";
    let role = match message.string("role")?.as_deref() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => return Err(message.bad("role", ROLES)),
    };
    let mut parts = Vec::new();
    if role == Role::Assistant
        && let Some(text) = message.string("thinking")?.filter(|text| !text.is_empty())
    {
        parts.push(Content::Reasoning(Reasoning { text, seal: None }).into());
    }
    parts.extend(text_part(message.string("content")?));
    parts.extend(read_images(&mut message)?);
    if role == Role::Assistant {
        for call in message.items("tool_calls")? {
            parts.push(read_call(call.object()?, ids)?);
        }
    }
    if role == Role::Tool {
        let name = message.string("tool_name")?;
        let own = message.string("tool_call_id")?;
        let call_id = ids.result(name.as_deref(), own);
        let result = ToolResult { call_id, name, parts: std::mem::take(&mut parts), is_error: false };
        parts.push(Content::Result(result).into());
    }
    Ok(Message { passing: message.rest(API), ..Message::new(role, parts) })
}

fn text_part(text: Option<String>) -> Option<Part> {
    text.filter(|text| !text.is_empty()).map(|text| Content::Text(text).into())
}

/// Pictures in Base64; the API does not say of which type they are.
fn read_images(object: &mut Object<'_>) -> Result<Vec<Part>, BadRequest> {
    let image = |field: &Field<'_>| {
        Ok(Content::Media(Media::new(MediaKind::Image, MediaSource::Data(field.string()?))).into())
    };
    object.items("images")?.iter().map(image).collect()
}

fn read_call(mut call: Object<'_>, ids: &mut CallIds) -> Result<Part, BadRequest> {
    let mut passing = Passing::of(API);
    let id = call.string("id")?;
    call.take("type");
    let mut function = call.object("function")?.ok_or_else(|| call.bad("function", "is missing"))?;
    let name = function.string("name")?.ok_or_else(|| function.bad("name", "is missing"))?;
    // The calls stand in their order.
    function.take("index");
    let arguments = match function.take("arguments") {
        None => String::new(),
        Some(object) if object.is_object() => object.source().get().to_owned(),
        Some(other) => return Err(other.bad("has to be an object")),
    };
    function.leave("function", &mut passing);
    let id = ids.call(&name, id);
    let content = Content::Call(Call { id, name, arguments, input: CallInput::Json });
    Ok(Part { content, passing: call.rest_with(passing) })
}

/// Takes the prompt out of a request to `/api/generate`: what the user says, behind what the system says.
pub(super) fn read_prompt(body: &mut Object<'_>) -> Result<Vec<Message>, BadRequest> {
    if let Some(raw) = body.take("raw")
        && raw.bool()?
    {
        return Err(raw.bad("is not offered here: tools need the model's own template. Leave it out"));
    }
    for (name, message) in [
        ("template", "is not offered here: tools need the model's own template. Leave it out"),
        ("suffix", "is not offered here: nothing is inserted into a text. Send only `prompt`"),
    ] {
        if !body.string(name)?.unwrap_or_default().is_empty() {
            return Err(body.bad(name, message));
        }
    }
    for (name, message) in [
        ("context", "is not offered here: send the conversation to /api/chat instead"),
        ("tools", "has no place here: send the request to /api/chat instead"),
    ] {
        if !body.items(name)?.is_empty() {
            return Err(body.bad(name, message));
        }
    }
    for name in ["width", "height", "steps"] {
        if body.take(name).is_some() {
            return Err(body.bad(name, "is not offered here: no pictures are made. Leave it out"));
        }
    }
    let system = body.string("system")?.filter(|text| !text.is_empty());
    let mut parts: Vec<Part> = text_part(body.string("prompt")?).into_iter().collect();
    parts.extend(read_images(body)?);
    if parts.is_empty() {
        return Err(body.bad("prompt", "is empty; send a text. Models are loaded when they are first used"));
    }
    let system = system.map(|text| Message::text(Role::System, text));
    Ok(system.into_iter().chain([Message::new(Role::User, parts)]).collect())
}
