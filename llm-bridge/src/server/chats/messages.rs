//! Single messages of a chat: to be deleted, and the files in them.

use axum::{
    Json,
    http::{HeaderName, HeaderValue, Method},
};
use registry_core::store::ChatError;

use super::{
    Access, ChatShown, NOT_FOUND,
    kept_message::{Kept, file as file_of},
    reading,
    tree::Tree,
};
use crate::server::{
    calls::files::served,
    openapi::Operation,
    requests::{api_error::ApiError, body::decode, name::Names},
};

pub(super) fn unknown() -> ApiError {
    ApiError::not_found(
        "message_not_found",
        "there is no such message in this chat: it was deleted, or belongs to another one",
    )
}

pub(super) fn delete_operation() -> Operation {
    Operation::new(Method::DELETE, "Chats", "delete_chat_message", "Delete a message with all that follow it")
        .path("id", "The chat's id.")
        .path("message", "The message's id.")
        .answers::<ChatShown>(200, "The chat as it is now.")
        .refuses(404, NOT_FOUND)
        .refuses(409, "A turn of the chat runs (`turn_running`).")
}

pub(super) async fn delete(
    access: Access,
    Names((id, message)): Names<(String, String)>,
) -> Result<Json<ChatShown>, ApiError> {
    let chat = access.chat(&id).await?;
    if chat.running(access.since()).is_some() {
        return Err(ChatError::TurnRunning.into());
    }
    let all = access.messages(&id).await?;
    let tree = Tree::of(&all);
    let gone = tree.get(&message).ok_or_else(unknown)?;
    let below = tree.below(&message);
    let leaf = match below.contains(&chat.leaf) {
        true => tree.leaf_without(gone).map(|leaf| leaf.id.clone()).unwrap_or_default(),
        false => chat.leaf,
    };
    access.store.delete_chat_messages(access.key(&id), &below, &leaf).await?;
    Ok(Json(ChatShown::of(&access.chat(&id).await?, access.since())?))
}

pub(super) fn file_operation() -> Operation {
    Operation::new(Method::GET, "Chats", "read_chat_file", "A picture or file of a message, as it came")
        .path("id", "The chat's id.")
        .path("message", "The message's id.")
        .path("number", "Which part of the message it is, from 0 on.")
        .answers_with(200, "application/octet-stream", "The file, with its own media type.")
        .refuses(404, "There is no such chat, message or file (`chat_not_found`, `message_not_found`, `file_not_found`).")
}

pub(super) async fn file(
    access: Access,
    Names((id, message, number)): Names<(String, String, usize)>,
) -> Result<([(HeaderName, HeaderValue); 7], Vec<u8>), ApiError> {
    access.chat(&id).await?;
    let message = access.message(&id, message).await?.ok_or_else(unknown)?;
    let size = reading::bytes(&message);
    let read = move || Kept::of(&message).map(|kept| file_of(&kept, number));
    let found = decode(access.identity.sender(), size, read).await??;
    let (name, media_type, bytes) =
        found.ok_or_else(|| ApiError::not_found("file_not_found", "the message has no such file"))?;
    Ok((served(&name, &media_type), bytes))
}
