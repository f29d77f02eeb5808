//! Changes that a tenant's admins make.

use std::fmt::Display;

use axum::http::StatusCode;
use registry_core::{Caller, Origin, Permission};
use serde_json::Value;

use super::{identity::Identity, refusal::Refusal};
use crate::recorded::{Change, recorded};

/// Why a route of admins refuses others.
pub(super) const ADMINS_ONLY: &str = "The user is not of the level admin (`permission_denied`).";

/// Lets only admins on. `what` is what needs the level, as the beginning of a sentence.
pub(super) fn require_admin(identity: &Identity, what: &str) -> Result<(), Refusal> {
    let Caller { user, level, .. } = &identity.caller;
    if *level >= Permission::Admin {
        return Ok(());
    }
    let how = identity.how_to_get(Permission::Admin);
    let message = format!("{what} needs the level admin, {user} has {level}; {how}");
    Err(Refusal::denied(message))
}

/// Makes a change as an admin, recorded in the audit under the name of the command that does the same.
///
/// # Errors
/// When the caller is no admin, the audit cannot be written, or the change fails.
pub(super) async fn change<T, E: Display + Into<Refusal>>(
    identity: &Identity,
    command: &'static str,
    arguments: Value,
    make: impl Future<Output = Result<T, E>>,
) -> Result<T, Refusal> {
    require_admin(identity, &format!("`{command}`"))?;
    let tenant = identity.registry.tenant().to_owned();
    let change = Change { command, tenant, arguments };
    let audit = identity.registry.audit().as_ref();
    match recorded(audit, &identity.caller, Origin::Http, change, make).await {
        Ok(made) => made.map_err(Into::into),
        Err(cause) => {
            tracing::error!(cause, "change_not_audited");
            let message = "the audit could not be written; the server's log says why";
            Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "audit_unavailable", message, None))
        }
    }
}
