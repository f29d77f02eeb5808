//! `GET`, `POST` and `DELETE /api/documents`: lists, adds and removes the documents that tools search.
//!
//! Uploaded files are not written to disk. A document is stored as `uploads/USER/NAME` and belongs to that user.

mod intake;
mod of_chats;
mod processing;
mod reading;
mod search;
mod shares;
mod upload;
mod upload_path;

use std::sync::Arc;

use axum::{
    Extension, Json,
    body::Body,
    extract::State,
    http::{HeaderMap, Method, StatusCode},
};
use jiff::Timestamp;
use registry_core::{Caller, Permission};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
pub use toolrack_documents::Documents;
use toolrack_documents::{Added, ChatDocuments, DocumentFilter, DocumentKind, Quota, StoredDocument, read};

use super::{
    App, ServerSettings,
    callers::{admin, identity::Identity},
    openapi::Operation,
    requests::{api_error::ApiError, query::QueryParameters},
    routes::Routes,
};
use crate::turn::Backend;
use intake::{Intake, Read, Taken};
use processing::Extractor;
use reading::{DocumentReading, Work};
pub use upload::{Upload, UploadLimits};
pub(crate) use upload_path::uploads_of;
use upload_path::{check_name, is_below, upload_path};

/// The limit of listed documents.
const LISTED: usize = 1000;

impl UploadLimits {
    fn of(self, user: &str) -> Quota {
        self.in_folder(uploads_of(user))
    }

    fn in_folder(self, folder: String) -> Quota {
        Quota { folder, documents: self.documents, bytes: self.mebibytes.saturating_mul(1 << 20) }
    }

    fn exceeded(self) -> ApiError {
        let message = format!(
            "a user may add {} documents with {} MiB in all, index included; remove some, or have them added with `toolrack documents add`",
            self.documents, self.mebibytes
        );
        ApiError::new(StatusCode::CONFLICT, "too_many_documents", message)
    }
}

/// The documents as HTTP clients reach them.
#[derive(Debug, Clone)]
pub(super) struct DocumentAccess {
    documents: Option<Documents>,
    upload: Upload,
    limits: UploadLimits,
    intake: Intake,
    /// Notified of each document that is added.
    added: Arc<Notify>,
    extractor: Extractor,
}

impl DocumentAccess {
    /// Starts the background tasks, which run until `stopping` is cancelled; another server, or the next start, goes on with them.
    pub(super) fn new(backend: &Backend, settings: &ServerSettings, stopping: &CancellationToken) -> Self {
        let (documents, added) = (settings.documents.clone(), Arc::<Notify>::default());
        let asked = settings.extractor.clone().filter(|model| model.missing().is_none());
        let extractor = Extractor::new(asked, settings.extracts);
        if let Some(documents) = documents.clone() {
            let extracting = extractor.model.clone().filter(|_| settings.extracts);
            let added = Arc::clone(&added);
            for work in [Some(Work::Embed), extracting.map(Work::Extract)].into_iter().flatten() {
                let reading =
                    DocumentReading { documents: documents.clone(), work, added: Arc::clone(&added) };
                backend.spawn(reading.run(stopping.clone()));
            }
        }
        let upload = if documents.is_some() { settings.upload } else { Upload::Off };
        Self {
            documents,
            upload,
            limits: settings.upload_limits,
            intake: Intake::default(),
            added,
            extractor,
        }
    }

    /// The documents of the request's tenant.
    fn of(&self, identity: &Identity) -> Option<Documents> {
        let user = (identity.registry.tenant(), identity.caller.user.as_str());
        self.documents.as_ref().map(|documents| documents.for_user(user))
    }

    /// Those of a chat of the caller; `None` where this server keeps none.
    fn of_chat(&self, identity: &Identity, chat: &str) -> Option<ChatDocuments> {
        let owner = (identity.registry.tenant(), identity.caller.user.as_str());
        self.documents.as_ref()?.of_chat(owner, chat)
    }

    /// Reads those of a chat whose turn begins, so that its tools know of them; without, they find what all share.
    pub(super) async fn learn_of_chat(&self, identity: &Identity, chat: &str) {
        if let Some(documents) = self.of_chat(identity, chat)
            && let Err(cause) = documents.list().await
        {
            tracing::warn!(chat, %cause, "documents_of_chat_not_read");
        }
    }

    /// Removes those of a chat that is deleted.
    pub(super) async fn forget_chat(&self, identity: &Identity, chat: &str) {
        if let Some(documents) = self.of_chat(identity, chat)
            && let Err(cause) = documents.remove(None).await
        {
            tracing::error!(chat, %cause, "documents_of_chat_not_removed");
        }
    }

    /// Removes those of all chats of a user who is gone.
    pub(super) async fn forget_chats_of(&self, identity: &Identity, user: &str) {
        let Some(documents) = &self.documents else { return };
        if let Err(cause) = documents.remove_of_chats((identity.registry.tenant(), user)).await {
            tracing::error!(user, %cause, "documents_of_chats_not_removed");
        }
    }

    /// The same if there are any: listing creates no file.
    fn there(&self, identity: &Identity) -> Option<Documents> {
        self.of(identity).filter(|documents| documents.are_there())
    }

    /// The documents of the request's tenant, if the user may add to them.
    fn to_add_to(&self, identity: &Identity) -> Result<Documents, ApiError> {
        let least = match self.upload {
            Upload::User => Permission::User,
            Upload::Admin => Permission::Admin,
            Upload::Off => {
                let message = "uploads are turned off; see `upload` under [documents]";
                return Err(ApiError::denied(message));
            }
        };
        identity.require(least, "adding documents")?;
        self.of(identity).ok_or_else(|| ApiError::denied("this server keeps no documents"))
    }
}

pub(super) fn routes() -> Routes {
    Routes::new()
        .add("/api/documents", list, list_operation())
        .add("/api/documents", add, add_operation())
        .add("/api/documents", remove, remove_operation())
        .merge(search::routes())
        .merge(processing::routes())
        .merge(of_chats::routes())
}

fn may_remove(caller: &Caller, path: &str) -> bool {
    caller.level >= Permission::Admin || is_below(&uploads_of(&caller.user), path)
}

/// The document of a path and those in the folder of that path.
async fn below(documents: &Documents, path: Option<String>) -> Result<Vec<StoredDocument>, ApiError> {
    let filter = DocumentFilter { below: path, ..DocumentFilter::default() };
    Ok(documents.list(&filter).await?)
}

/// Documents, and which files can be added.
#[derive(Serialize, JsonSchema)]
struct DocumentList {
    /// At most 1000: first those that the user has added, then by path.
    documents: Vec<ListedDocument>,
    /// How many there are.
    total: usize,
    /// Whether the user may add documents.
    may_add: bool,
    /// The extensions of files that can be read.
    extensions: Vec<&'static str>,
    /// The maximum size of a file, in bytes.
    max_bytes: u64,
}

/// A document.
#[derive(Serialize, JsonSchema)]
struct ListedDocument {
    /// The path of a file, or `uploads/USER/NAME`.
    path: String,
    title: String,
    kind: DocumentKind,
    /// The size of the file.
    bytes: u64,
    /// The number of its passages.
    passages: u64,
    /// The time of its last change, if known.
    modified: Option<Timestamp>,
    added: Timestamp,
    /// Whether the user may remove it.
    removable: bool,
}

impl ListedDocument {
    fn new(document: StoredDocument, caller: &Caller) -> Self {
        let removable = may_remove(caller, &document.path);
        let StoredDocument { path, title, kind, bytes, passages, modified, added, .. } = document;
        Self { path, title, kind, bytes, passages, modified, added, removable }
    }
}

fn list_operation() -> Operation {
    Operation::new(Method::GET, "Documents", "list_documents", "The documents that tools search")
        .query("below", "The path of a folder, or of one document.")
        .answers::<DocumentList>(200, "The documents.")
        .refuses(400, "A query parameter is unknown or repeated (`invalid_request_error`).")
        .refuses(403, "The user is a guest (`permission_denied`).")
}

/// What the list is limited to.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    below: Option<String>,
}

impl ListQuery {
    fn filter(self) -> DocumentFilter {
        DocumentFilter { below: self.below.filter(|path| !path.is_empty()), ..DocumentFilter::default() }
    }
}

async fn list(
    State(App { documents: access, .. }): State<App>,
    Extension(identity): Extension<Identity>,
    QueryParameters(query): QueryParameters<ListQuery>,
) -> Result<Json<DocumentList>, ApiError> {
    let caller = &identity.caller;
    identity.require(Permission::User, "listing documents")?;
    let filter = query.filter();
    let (documents, total) = match access.there(&identity) {
        Some(documents) => documents.first(&uploads_of(&caller.user), LISTED, &filter).await?,
        None => (Vec::new(), 0),
    };
    Ok(Json(DocumentList {
        documents: documents.into_iter().map(|document| ListedDocument::new(document, caller)).collect(),
        total,
        may_add: access.to_add_to(&identity).is_ok(),
        extensions: DocumentKind::ALL.into_iter().flat_map(DocumentKind::extensions).copied().collect(),
        max_bytes: read::MAX_BYTES,
    }))
}

/// The outcome of adding a document.
#[derive(Serialize, JsonSchema)]
struct AddedDocument {
    /// The path under which it is cited, listed and removed.
    path: String,
    outcome: Added,
    /// The number of its passages.
    passages: u64,
}

fn add_operation() -> Operation {
    Operation::new(Method::POST, "Documents", "add_document", "Adds a document, or updates the one of that name")
        .details("The extension determines the kind. `upload` in the configuration sets who may add documents.")
        .required_query("name", "The name of the file, with folders before it as in `notes/tea.md`.")
        .query("modified", "When the file was changed last, such as `2026-01-31T08:00:00Z`.")
        .takes_bytes()
        .answers::<AddedDocument>(200, "The document is stored and can be found.")
        .refuses(400, "The name is missing or invalid, or the file is incomplete (`invalid_request_error`).")
        .refuses(403, "The user may not add documents (`permission_denied`).")
        .refuses(408, "The upload was too slow (`timeout`).")
        .refuses(409, "The user has reached the limit of documents (`too_many_documents`).")
        .refuses(413, "The file is larger than 50 MiB (`invalid_request_error`).")
        .refuses(415, "The extension is of no supported kind (`unknown_kind`), or the file was not sent as `application/octet-stream` (`invalid_request_error`).")
        .refuses(422, "The file cannot be read (`unreadable`).")
        .refuses(429, "The user has used up the day's share of the audit (`tool_rate_limited`).")
        .refuses(503, "Too many documents are being added at once (`busy`).")
        .retry_after(503)
}

/// What is said of a file beside its bytes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddQuery {
    name: String,
    modified: Option<String>,
}

/// Fails where the caller, who is no admin, has used up the day's share of the audit. Asked where somebody could change things without end.
fn audit_room(identity: &Identity) -> Result<(), ApiError> {
    match identity.registry.audit_room(&identity.caller.user) {
        Err(full) if identity.caller.level < Permission::Admin => {
            Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, full.kind().as_str(), full.message()))
        }
        _ => Ok(()),
    }
}

async fn add(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    query: Result<QueryParameters<AddQuery>, ApiError>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<AddedDocument>, ApiError> {
    intake::check_bytes(&headers)?;
    let access = &app.documents;
    let documents = access.to_add_to(&identity)?;
    let user = &identity.caller.user;
    audit_room(&identity)?;
    let QueryParameters(AddQuery { name, modified }) = query?;
    let path = upload_path(user, &name).map_err(|message| ApiError::invalid("name", message))?;
    let place = Destination { quota: access.limits.of(user), path: path.clone(), documents };
    let receive = receive(access, &identity, place, AddQuery { name, modified }, &headers, body);
    let arguments = json!({"paths": [path]});
    let (outcome, passages) = admin::audited(&identity, "toolrack documents add", arguments, receive).await?;
    tracing::info!(tenant = identity.registry.tenant(), user, path, ?outcome, "document_added");
    Ok(Json(AddedDocument { path, outcome, passages }))
}

/// Where a file that is sent becomes a document.
struct Destination {
    documents: Documents,
    path: String,
    quota: Quota,
}

/// Takes a file and adds it. Gives how many passages it has.
async fn receive(
    access: &DocumentAccess,
    identity: &Identity,
    Destination { documents, path, quota }: Destination,
    AddQuery { name, modified }: AddQuery,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Added, u64), ApiError> {
    let modified = modified.filter(|at| !at.is_empty()).map(|at| at.parse::<Timestamp>());
    let modified = modified.transpose().map_err(|fault| {
        ApiError::invalid("modified", format!("not a time such as 2026-01-31T08:00:00Z: {fault}"))
    })?;
    let kind = intake::kind_of(&name)?;
    let kept_under = path.clone();
    let file = move |bytes| read::File::new(&kept_under, kind, bytes, modified);
    let sender = (identity.registry.tenant().to_owned(), identity.caller.user.clone());
    let taken = access.intake.take(sender, headers, body, file).await?;
    let is_there = documents.has(&path, taken.file.hash()).await?;
    let outcome = if is_there {
        Added::Unchanged
    } else {
        let limits = access.limits;
        if !documents.has_room(&quota, &path, taken.size).await? {
            return Err(limits.exceeded());
        }
        let Taken { file, place, .. } = taken;
        let Read { document, permits } = access.intake.read(file, &place).await?;
        // What it has become counts, and not how well it was packed.
        let added = documents.add_within(document, Some(&quota)).await?.ok_or_else(|| limits.exceeded())?;
        drop(permits);
        access.added.notify_waiters();
        added
    };
    let kept = below(&documents, Some(path.clone())).await?;
    let passages = kept.into_iter().find(|document| document.path == path).map_or(0, |kept| kept.passages);
    Ok((outcome, passages))
}

/// The removed documents.
#[derive(Serialize, JsonSchema)]
struct RemovedDocuments {
    /// The paths of the documents.
    removed: Vec<String>,
}

fn remove_operation() -> Operation {
    Operation::new(Method::DELETE, "Documents", "remove_documents", "Removes a document, or all in a folder")
        .required_query("path", "The path of the document, or of the folder.")
        .answers::<RemovedDocuments>(200, "The removed documents.")
        .refuses(400, "The path is missing (`invalid_request_error`).")
        .refuses(403, "It is not the user's, and the user is not an admin (`permission_denied`).")
        .refuses(404, "There is no such document (`document_not_found`).")
}

/// Which document is removed, or those of which folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoveQuery {
    path: String,
}

async fn remove(
    State(App { documents: access, .. }): State<App>,
    Extension(identity): Extension<Identity>,
    QueryParameters(RemoveQuery { path }): QueryParameters<RemoveQuery>,
) -> Result<Json<RemovedDocuments>, ApiError> {
    identity.require(Permission::User, "removing documents")?;
    if path.is_empty() {
        return Err(ApiError::invalid("path", "name a document, as in `?path=uploads/ada/notes/tea.md`"));
    }
    let Caller { user, level, .. } = &identity.caller;
    if !may_remove(&identity.caller, &path) {
        let message = format!(
            "{user} has not added `{path}`; others remove it with the level admin, {user} has {level}"
        );
        return Err(ApiError::denied(message));
    }
    audit_room(&identity)?;
    let remove = async {
        let removed = match access.there(&identity) {
            Some(documents) => documents.remove(&path).await?,
            None => Vec::new(),
        };
        let message = || format!("there is no document `{path}`");
        match removed.is_empty() {
            true => Err(ApiError::not_found("document_not_found", message()).param("path")),
            false => Ok(removed),
        }
    };
    let arguments = json!({"paths": [path]});
    let removed = admin::audited(&identity, "toolrack documents remove", arguments, remove).await?;
    let documents = removed.len();
    tracing::info!(tenant = identity.registry.tenant(), user, path, documents, "document_removed");
    Ok(Json(RemovedDocuments { removed }))
}
