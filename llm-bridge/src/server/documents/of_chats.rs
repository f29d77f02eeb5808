//! `GET`, `POST` and `DELETE /api/chats/{id}/documents`: documents that the tools of one chat find, and nobody else.
//!
//! They count by themselves towards the limits of a user's documents, and are deleted with their chat.

use axum::{
    Extension, Json,
    body::Body,
    extract::State,
    http::{HeaderMap, Method, StatusCode},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrack_documents::{Added, ChatDocuments, DocumentKind, StoredDocument};

use super::{AddQuery, Destination, check_name, intake, receive};
use crate::server::{
    App,
    callers::identity::Identity,
    chats,
    openapi::Operation,
    requests::{api_error::ApiError, name::Name, query::QueryParameters},
    routes::Routes,
};

/// Why a chat or its documents are not found.
const NOT_FOUND: &str = "The user has no such chat (`chat_not_found`), or this server keeps no documents of chats (`chat_documents_disabled`).";

pub(super) fn routes() -> Routes {
    Routes::new()
        .add("/api/chats/{id}/documents", list, list_operation())
        .add("/api/chats/{id}/documents", add, add_operation())
        .add("/api/chats/{id}/documents", remove, remove_operation())
}

/// The documents of a chat of the caller, which is there.
async fn of_chat(app: &App, identity: &Identity, chat: &str) -> Result<ChatDocuments, ApiError> {
    let documents = app.documents.of_chat(identity, chat).ok_or_else(|| {
        ApiError::not_found("chat_documents_disabled", "this server keeps no documents of chats")
    })?;
    if chats::is_kept(app, identity, chat).await? {
        return Ok(documents);
    }
    Err(unknown(chat))
}

fn unknown(chat: &str) -> ApiError {
    ApiError::not_found("chat_not_found", format!("there is no chat `{chat}`"))
}

/// The documents of a chat.
#[derive(Serialize, JsonSchema)]
struct ChatDocumentList {
    documents: Vec<ListedChatDocument>,
    /// Whether the user may add documents.
    may_add: bool,
}

/// A document of a chat.
#[derive(Serialize, JsonSchema)]
struct ListedChatDocument {
    /// The name under which it was added. Tools find it as `this chat/NAME`.
    name: String,
    title: String,
    kind: DocumentKind,
    /// The size of the file.
    bytes: u64,
    /// The number of its passages.
    passages: u64,
    added: Timestamp,
}

impl From<StoredDocument> for ListedChatDocument {
    fn from(document: StoredDocument) -> Self {
        let StoredDocument { path: name, title, kind, bytes, passages, added, .. } = document;
        Self { name, title, kind, bytes, passages, added }
    }
}

fn list_operation() -> Operation {
    Operation::new(Method::GET, "Chats", "list_chat_documents", "The documents of a chat")
        .path("id", "The chat's id.")
        .answers::<ChatDocumentList>(200, "The documents, by name.")
        .refuses(404, NOT_FOUND)
}

async fn list(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
) -> Result<Json<ChatDocumentList>, ApiError> {
    let documents = of_chat(&app, &identity, &id).await?.list().await?;
    let may_add = app.documents.to_add_to(&identity).is_ok();
    Ok(Json(ChatDocumentList { documents: documents.into_iter().map(Into::into).collect(), may_add }))
}

/// The outcome of adding a document to a chat.
#[derive(Serialize, JsonSchema)]
struct AddedChatDocument {
    /// The name under which it is listed and removed.
    name: String,
    outcome: Added,
    /// The number of its passages.
    passages: u64,
}

fn add_operation() -> Operation {
    Operation::new(
        Method::POST,
        "Chats",
        "add_chat_document",
        "Adds a document to a chat, or updates the one of that name",
    )
    .details("The tools of this chat find it, and nobody else. The extension determines the kind.")
    .path("id", "The chat's id.")
    .required_query("name", "The name of the file, with folders before it as in `notes/tea.md`.")
    .query("modified", "When the file was changed last, such as `2026-01-31T08:00:00Z`.")
    .takes_bytes()
    .answers::<AddedChatDocument>(200, "The document is stored and can be found.")
    .refuses(400, "The name is missing or invalid, or the file is incomplete (`invalid_request_error`).")
    .refuses(403, "The user may not add documents (`permission_denied`).")
    .refuses(404, NOT_FOUND)
    .refuses(408, "The upload was too slow (`timeout`).")
    .refuses(409, "The documents of the user's chats have reached the limit (`too_many_documents`).")
    .refuses(413, "The file is larger than 50 MiB (`invalid_request_error`).")
    .refuses(415, "The extension is of no supported kind (`unknown_kind`), or the file was not sent as `application/octet-stream` (`invalid_request_error`).")
    .refuses(422, "The file cannot be read (`unreadable`).")
    .refuses(503, "Too many documents are being added at once (`busy`).")
    .retry_after(503)
}

async fn add(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
    query: Result<QueryParameters<AddQuery>, ApiError>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<AddedChatDocument>, ApiError> {
    intake::check_bytes(&headers)?;
    app.documents.to_add_to(&identity)?;
    let QueryParameters(about) = query?;
    let name = about.name.clone();
    check_name(&name).map_err(|message| ApiError::invalid("name", message))?;
    let documents = of_chat(&app, &identity, &id).await?;
    let quota = app.documents.limits.in_folder(documents.of_user().to_owned());
    let place = Destination { documents: documents.all().clone(), path: documents.path(&name), quota };
    let (outcome, passages) = receive(&app.documents, &identity, place, about, &headers, body).await?;
    // A chat that was deleted while its document came leaves none.
    if !chats::is_kept(&app, &identity, &id).await? {
        documents.remove(None).await?;
        return Err(unknown(&id));
    }
    documents.list().await?;
    let (tenant, user) = (identity.registry.tenant(), &identity.caller.user);
    tracing::info!(tenant, user, chat = id, name, ?outcome, "chat_document_added");
    Ok(Json(AddedChatDocument { name, outcome, passages }))
}

fn remove_operation() -> Operation {
    Operation::new(Method::DELETE, "Chats", "remove_chat_document", "Removes a document of a chat, or all in a folder")
        .path("id", "The chat's id.")
        .required_query("name", "The name of the document, or of the folder.")
        .answers_nothing(204, "It is gone.")
        .refuses(400, "The name is missing (`invalid_request_error`).")
        .refuses(404, "There is no such document (`document_not_found`) or chat (`chat_not_found`), or this server keeps no documents of chats (`chat_documents_disabled`).")
}

/// Which document is removed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoveQuery {
    name: String,
}

async fn remove(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
    QueryParameters(RemoveQuery { name }): QueryParameters<RemoveQuery>,
) -> Result<StatusCode, ApiError> {
    check_name(&name).map_err(|message| ApiError::invalid("name", message))?;
    let documents = of_chat(&app, &identity, &id).await?;
    if documents.remove(Some(&name)).await? == 0 {
        let message = format!("the chat has no document `{name}`");
        return Err(ApiError::not_found("document_not_found", message).param("name"));
    }
    Ok(StatusCode::NO_CONTENT)
}
