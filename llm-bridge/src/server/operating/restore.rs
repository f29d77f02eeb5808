//! `/api/restore`: a backup is uploaded, and put in place when the server starts the next time, for owners: it says who is one.

use std::sync::Arc;

use async_trait::async_trait;
use axum::{
    Extension, Json,
    body::{Body, BodyDataStream},
    extract::State,
    http::{HeaderMap, Method, StatusCode, header},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Semaphore;

use super::backup::GZIP;
use crate::server::{
    App,
    callers::{
        admin::{self, NOT_ADMIN, Operator, Owner},
        identity::Identity,
    },
    openapi::Operation,
    requests::{api_error::ApiError, body::is_sent_as},
    routes::Routes,
};

/// How many backups are taken in at once: each is unpacked beside the data.
const AT_ONCE: usize = 1;

/// Takes uploaded backups.
#[async_trait]
pub trait UploadBackup: Send + Sync {
    /// Takes the backup that a user uploads, checks it whole, and lets it wait for the next start.
    async fn upload(&self, by: String, body: BodyDataStream) -> Result<UploadedBackup, UploadFault>;
    /// What was uploaded and is not in place.
    ///
    /// # Errors
    /// When it cannot be read.
    fn uploaded(&self) -> Result<Option<UploadedBackup>, UploadFault>;
    /// Deletes it.
    async fn delete_uploaded(&self) -> Result<(), UploadFault>;
}

/// A backup that was uploaded.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UploadedBackup {
    /// Whether the next start puts it in place. One that could not be put in place is kept, and not tried again.
    pub waits: bool,
    /// When it was made.
    pub made_at: Timestamp,
    /// The version of Toolrack that has made it.
    pub toolrack: String,
    /// The name of the server that has made it.
    pub server: String,
    /// What is in it: `store`, `documents`, `files`, `audit-key`.
    pub parts: Vec<String>,
    /// Its size.
    pub bytes: u64,
    /// The user who has handed it in.
    pub by: String,
    /// When it was uploaded.
    pub at: Timestamp,
    /// Why the last start has not put it in place.
    pub error: Option<String>,
}

/// Why a backup is not taken in; the texts are for the operator.
#[derive(Debug, thiserror::Error)]
pub enum UploadFault {
    /// Another one waits.
    #[error("another backup waits for the next start; take that one back first")]
    Waits,
    /// It did not come to its end.
    #[error("the backup did not come whole: {0}")]
    NotWhole(String),
    /// The disk has too little room.
    #[error("{0}")]
    NoRoom(String),
    /// It is no backup, or cannot be put in place here.
    #[error("{0}")]
    Refused(String),
    /// Something cannot be read or written.
    #[error("{0}")]
    Failed(String),
}

impl From<std::io::Error> for UploadFault {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<String> for UploadFault {
    fn from(cause: String) -> Self {
        Self::Failed(cause)
    }
}

impl From<UploadFault> for ApiError {
    fn from(fault: UploadFault) -> Self {
        let message = fault.to_string();
        match fault {
            UploadFault::Waits => Self::new(StatusCode::CONFLICT, "restore_waits", message),
            UploadFault::NotWhole(_) => Self::invalid("body", message),
            UploadFault::NoRoom(_) => Self::new(StatusCode::INSUFFICIENT_STORAGE, "no_room", message),
            UploadFault::Refused(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "backup_refused", message).param("body")
            }
            UploadFault::Failed(cause) => {
                tracing::error!(cause, "backup_not_uploaded");
                Self::internal("the backup could not be taken in or back; the server's log says why")
            }
        }
    }
}

/// The backups that are uploaded to a server. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
pub(in crate::server) struct Restores {
    #[debug(skip)]
    take: Arc<dyn UploadBackup>,
    one: Arc<Semaphore>,
}

impl Restores {
    pub(in crate::server) fn new(take: Arc<dyn UploadBackup>) -> Self {
        Self { take, one: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

/// What waits.
#[derive(Serialize, JsonSchema)]
struct Waiting {
    /// The backup that was uploaded and is not in place; `null` where there is none.
    uploaded: Option<UploadedBackup>,
}

/// Why others may not upload one.
const NOT_OWNER: &str = "The user is no owner of the tenant `default` (`permission_denied`).";
const NONE: &str = "This server takes no backups (`restore_not_found`).";

pub(in crate::server) fn routes() -> Routes {
    let read = Operation::new(Method::GET, "Server", "read_restore", "The backup that was uploaded")
        .answers::<Waiting>(200, "What waits, or could not be put in place.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE);
    let upload = Operation::new(Method::POST, "Server", "upload_backup", "Uploads a backup for the next start")
        .details(
            "It is checked whole, as `toolrack restore` does, and kept in the data folder. When the server starts the next time it is put in \
             place of what is there, before anything opens that: files are moved aside, tables of PostgreSQL are replaced.",
        )
        .takes_gzip()
        .answers::<UploadedBackup>(200, "What was uploaded.")
        .refuses(400, "It did not come whole (`invalid_request_error`).")
        .refuses(403, NOT_OWNER)
        .refuses(404, NONE)
        .refuses(409, "Another one is being uploaded (`restore_busy`), or waits (`restore_waits`).")
        .refuses(415, "It was not sent as `application/gzip` (`invalid_request_error`).")
        .refuses(422, "It is no backup, or cannot be put in place here (`backup_refused`).")
        .refuses(507, "The disk has too little room for it (`no_room`).");
    let delete_uploaded =
        Operation::new(Method::DELETE, "Server", "delete_uploaded_backup", "Deletes the uploaded backup")
            .details("It is deleted here.")
            .answers_nothing(204, "Nothing waits any more.")
            .refuses(403, NOT_OWNER)
            .refuses(404, "Nothing was uploaded, or this server takes no backups (`restore_not_found`).")
            .refuses(409, "One is being uploaded (`restore_busy`).");
    Routes::new().add("/api/restore", self::read, read).add("/api/restore", self::upload, upload).add(
        "/api/restore",
        self::delete_uploaded,
        delete_uploaded,
    )
}

fn restores(app: &App) -> Result<&Restores, ApiError> {
    let none = || ApiError::not_found("restore_not_found", "this server takes no backups");
    app.restore.as_ref().ok_or_else(none)
}

fn alone(restores: &Restores) -> Result<tokio::sync::SemaphorePermit<'_>, ApiError> {
    restores.one.try_acquire().map_err(|_| {
        let message = "a backup is being uploaded; try again when it is there";
        ApiError::new(StatusCode::CONFLICT, "restore_busy", message)
    })
}

async fn read(State(app): State<App>, _: Operator) -> Result<Json<Waiting>, ApiError> {
    Ok(Json(Waiting { uploaded: restores(&app)?.take.uploaded()? }))
}

async fn upload(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    _: Owner,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<UploadedBackup>, ApiError> {
    // A form of another page cannot send it so without a preflight request.
    if !is_sent_as(&headers, GZIP) {
        let message = format!("send the backup as it is, as `Content-Type: {GZIP}`");
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message));
    }
    let restores = restores(&app)?;
    let _one = alone(restores)?;
    let bytes = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let arguments = json!({"bytes": bytes.and_then(|bytes| bytes.parse::<u64>().ok())});
    let uploaded = restores.take.upload(identity.caller.user.to_string(), body.into_data_stream());
    admin::change(&identity, "restore upload", arguments, uploaded).await.map(Json)
}

async fn delete_uploaded(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    _: Owner,
) -> Result<StatusCode, ApiError> {
    let restores = restores(&app)?;
    let _one = alone(restores)?;
    let none = || ApiError::not_found("restore_not_found", "no backup was uploaded");
    let waiting = restores.take.uploaded()?.ok_or_else(none)?;
    let arguments = json!({"made_at": waiting.made_at, "by": waiting.by});
    admin::change(&identity, "restore delete", arguments, restores.take.delete_uploaded()).await?;
    Ok(StatusCode::NO_CONTENT)
}
