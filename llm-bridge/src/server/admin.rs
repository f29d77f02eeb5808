//! Changes that a tenant's admins make.

use std::fmt::Display;

use axum::http::StatusCode;
use registry_core::{Origin, Permission};
use serde_json::Value;

use super::{api_error::ApiError, identity::Identity};
use crate::recorded::{Change, recorded};

/// Why a route of admins refuses others.
pub(super) const NOT_ADMIN: &str = "The user is not an admin (`permission_denied`).";

/// Makes a change as an admin, recorded in the audit under the name of the command that does the same.
///
/// # Errors
/// When the caller is no admin, the audit cannot be written, or the change fails.
pub(super) async fn change<T, E: Display + Into<ApiError>>(
    identity: &Identity,
    command: &'static str,
    arguments: Value,
    make: impl Future<Output = Result<T, E>>,
) -> Result<T, ApiError> {
    identity.require(Permission::Admin, &format!("`{command}`"))?;
    let tenant = identity.registry.tenant().to_owned();
    let change = Change { command, tenant, arguments };
    let audit = identity.registry.audit().as_ref();
    match recorded(audit, &identity.caller, Origin::Http, change, make).await {
        Ok(made) => made.map_err(Into::into),
        Err(cause) => {
            tracing::error!(cause, "change_not_audited");
            let message = "the audit could not be written; the server's log says why";
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "audit_unavailable", message))
        }
    }
}
