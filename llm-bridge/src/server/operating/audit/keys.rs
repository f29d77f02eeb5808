//! `GET /api/audit/key` and `POST /api/audit/rotate-key`: the key that signs the audit's heads, and another in its place.

use std::{fmt, sync::Arc};

use axum::{
    Extension, Json,
    extract::State,
    http::{Method, StatusCode},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio::task::spawn_blocking;

use super::reading;
use crate::server::{
    App,
    callers::{
        admin::{self, Admin, NOT_ADMIN, Operator},
        identity::Identity,
    },
    openapi::Operation,
    requests::api_error::ApiError,
};

/// The key of a server that signs the heads of its audit.
pub trait SignAudit: Send + Sync {
    /// Its public key; `None` where it has no key yet.
    ///
    /// # Errors
    /// When its file cannot be read, or is no key.
    fn public_key(&self) -> Result<Option<String>, String>;

    /// Prepares another key.
    ///
    /// # Errors
    /// When there is none yet, or a file cannot be written.
    fn successor(&self) -> Result<KeySuccession, String>;
}

/// A key that is about to take the place of another.
#[derive(derive_more::Debug)]
pub struct KeySuccession {
    /// The public key of the one that signs.
    pub before: String,
    /// The public key of the one that is to sign.
    pub after: String,
    /// Puts it into its place: both sign that one follows the other.
    #[debug(skip)]
    pub put: Box<dyn FnOnce() -> Result<(), String> + Send>,
}

/// The key that signs now.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AuditKey")]
pub(in crate::server) struct Shown {
    /// The public key, as `toolrack audit key` prints it; `null` where this server has no key yet.
    public_key: Option<String>,
}

pub(in crate::server) fn read_operation() -> Operation {
    Operation::new(Method::GET, "Audit", "read_audit_key", "The public key of this server's signed heads")
        .answers::<Shown>(200, "The key.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
}

pub(in crate::server) async fn read(State(app): State<App>, _: Admin) -> Result<Json<Shown>, ApiError> {
    let keys = keys(&app)?;
    let public_key = in_files(move || keys.public_key()).await?;
    Ok(Json(Shown { public_key }))
}

pub(in crate::server) fn rotate_operation() -> Operation {
    Operation::new(Method::POST, "Audit", "rotate_audit_key", "Put another key in place of the one that signs heads")
        .details("As `toolrack audit rotate-key`: both keys sign that one follows the other, so what was signed before stays proven. The next head is signed with the new one.")
        .answers::<Shown>(200, "The new key.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
        .refuses(409, "This server has no key yet (`audit_key_missing`).")
}

pub(in crate::server) async fn rotate(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    _: Operator,
) -> Result<Json<Shown>, ApiError> {
    let keys = keys(&app)?;
    // Two at once would prepare the same key.
    let _one = reading(&app)?.alone().await?;
    let prepared = in_files(move || match keys.public_key()? {
        Some(_) => keys.successor().map(Some),
        None => Ok(None),
    });
    let KeySuccession { before, after, put } = prepared.await?.ok_or_else(|| {
        let message = "this server has no key yet; it makes one when it has something to sign";
        ApiError::new(StatusCode::CONFLICT, "audit_key_missing", message)
    })?;
    let arguments = json!({"before": before, "after": after});
    admin::change(&identity, "toolrack audit rotate-key", arguments, in_files(put)).await?;
    Ok(Json(Shown { public_key: Some(after) }))
}

const NONE: &str = "This server signs no audit (`audit_not_kept`).";

fn keys(app: &App) -> Result<Arc<dyn SignAudit>, ApiError> {
    let none = || ApiError::not_found("audit_not_kept", "this server signs no audit");
    reading(app)?.keys.clone().ok_or_else(none)
}

/// Why a key is not read or replaced, for the log.
struct KeyFault(String);

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<KeyFault> for ApiError {
    fn from(KeyFault(cause): KeyFault) -> Self {
        tracing::error!(cause, "audit_key_not_usable");
        Self::internal("the key that signs the audit cannot be used; see the server's log")
    }
}

/// Reads or writes files beside the runtime.
async fn in_files<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, KeyFault> {
    spawn_blocking(work).await.unwrap_or_else(|fault| Err(fault.to_string())).map_err(KeyFault)
}
