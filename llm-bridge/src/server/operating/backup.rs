//! `POST /api/backup`: a backup of all that is stored, made while the server runs and sent as a file, for the operator.

use std::{any::Any, sync::Arc};

use async_trait::async_trait;
use axum::{
    BoxError, Extension,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{Stream, stream};
use registry_core::clock::{Clock, SystemClock};
use serde_json::json;
use tokio::{
    fs::File,
    io::AsyncReadExt,
    sync::{OwnedSemaphorePermit, Semaphore},
};

use crate::server::{
    App,
    callers::{
        admin::{self, Operator},
        identity::Identity,
    },
    calls::modules::NOT_ADMIN,
    openapi::Operation,
    requests::api_error::ApiError,
};

pub(in crate::server) const GZIP: &str = "application/gzip";

/// How many backups there are at once: each takes room on the disk until it is sent.
const AT_ONCE: usize = 1;
/// How much is read at a time, in bytes.
const PIECE: usize = 64 * 1024;

/// Makes backups.
#[async_trait]
pub trait MakeBackup: Send + Sync {
    /// Makes a backup of all that is stored, without the key that signs the audit.
    async fn make(&self) -> Result<BackupFile, BackupFault>;
}

/// A backup, which is deleted with this.
#[derive(derive_more::Debug)]
pub struct BackupFile {
    /// The file, to be read from its beginning.
    pub file: std::fs::File,
    /// Its size.
    pub bytes: u64,
    /// What deletes it. After the file, which is closed before.
    #[debug(skip)]
    pub place: Box<dyn Any + Send>,
}

/// Why there is no backup; the texts are for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackupFault {
    /// The disk has too little room to make it beside the data.
    #[error("{0}")]
    NoRoom(String),
    /// Something cannot be read or written.
    #[error("{0}")]
    Failed(String),
}

/// The backups of a server. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
pub(in crate::server) struct Backups {
    #[debug(skip)]
    make: Arc<dyn MakeBackup>,
    one: Arc<Semaphore>,
}

impl Backups {
    pub(in crate::server) fn new(make: Arc<dyn MakeBackup>) -> Self {
        Self { make, one: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

pub(in crate::server) fn operation() -> Operation {
    Operation::new(Method::POST, "Server", "make_backup", "A backup of all that is stored")
        .details(
            "Of all tenants, as `toolrack backup` makes it, while the server runs; the key that signs the audit is not in it. It is \
             made in the data folder before it is sent, and deleted then. `toolrack restore` puts it in place, and so does the server's next start where it is uploaded.",
        )
        .answers_with(200, GZIP, "The backup, a tar archive compressed by gzip.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "This server cannot make backups (`backup_not_found`).")
        .refuses(409, "Another backup is being made or sent (`backup_busy`).")
        .refuses(507, "The disk has too little room for a backup (`no_room`).")
}

pub(in crate::server) async fn make(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    _: Operator,
) -> Result<Response, ApiError> {
    let backups = app.backup.as_ref().ok_or_else(|| {
        ApiError::not_found("backup_not_found", "this server cannot make backups of what it stores")
    })?;
    let permit = Arc::clone(&backups.one).try_acquire_owned().map_err(|_| {
        let message = "another backup is being made or sent; try again when it is there";
        ApiError::new(StatusCode::CONFLICT, "backup_busy", message)
    })?;
    let arguments = json!({"with_key": false, "sent": true});
    let made = admin::change(&identity, "toolrack backup", arguments, backups.make.make()).await?;
    let time = SystemClock.now().strftime("%Y-%m-%d-%H%M%S");
    let name = format!("attachment; filename=\"toolrack-{time}.tar.gz\"");
    let name = HeaderValue::from_str(&name).map_err(|fault| ApiError::internal(fault.to_string()))?;
    let headers: [(HeaderName, HeaderValue); 5] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(GZIP)),
        (header::CONTENT_DISPOSITION, name),
        (header::CONTENT_LENGTH, made.bytes.into()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, Body::from_stream(pieces(made, permit))).into_response())
}

/// What is in a backup; the next one may be made when this is gone.
fn pieces(
    backup: BackupFile,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
    let BackupFile { file, bytes: _, place } = backup;
    stream::unfold((File::from_std(file), place, permit), |(mut file, place, permit)| async {
        let mut piece = vec![0; PIECE];
        match file.read(&mut piece).await {
            Ok(0) => None,
            Ok(length) => {
                piece.truncate(length);
                Some((Ok(piece.into()), (file, place, permit)))
            }
            Err(cause) => {
                tracing::error!(%cause, "backup_not_sent");
                Some((Err(cause.into()), (file, place, permit)))
            }
        }
    })
}

impl From<BackupFault> for ApiError {
    fn from(fault: BackupFault) -> Self {
        match fault {
            BackupFault::NoRoom(message) => Self::new(StatusCode::INSUFFICIENT_STORAGE, "no_room", message),
            BackupFault::Failed(cause) => {
                tracing::error!(cause, "backup_not_made");
                Self::internal("the backup could not be made; the server's log says why")
            }
        }
    }
}
