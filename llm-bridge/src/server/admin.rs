//! Changes that a tenant's admins make.

use std::fmt::Display;

use axum::{http::StatusCode, response::Response};
use registry_core::{Caller, Origin, Permission};
use serde_json::Value;

use super::{error, identity::Identity};
use crate::recorded::{Change, recorded};

/// Why a route of admins refuses others.
pub(super) const ADMINS_ONLY: &str = "The user is not of the level admin (`permission_denied`).";

/// Lets only admins on. `what` is what needs the level, as the beginning of a sentence.
pub(super) fn require_admin(identity: &Identity, what: &str) -> Result<(), Response> {
    let Caller { user, level, .. } = &identity.caller;
    if *level >= Permission::Admin {
        return Ok(());
    }
    let how = identity.how_to_get(Permission::Admin);
    let message = format!("{what} needs the level admin, {user} has {level}; {how}");
    Err(error(StatusCode::FORBIDDEN, "permission_denied", &message, None))
}

/// Makes a change as an admin, recorded in the audit under the name of the command that does the same.
///
/// # Errors
/// The refusal of somebody who is no admin, or that the audit could not be written; inside, what the change fails with.
pub(super) async fn change<T, E: Display>(
    identity: &Identity,
    command: &'static str,
    arguments: Value,
    make: impl Future<Output = Result<T, E>>,
) -> Result<Result<T, E>, Response> {
    require_admin(identity, &format!("`{command}`"))?;
    let tenant = identity.registry.tenant().to_owned();
    let change = Change { command, tenant, arguments };
    let audit = identity.registry.audit().as_ref();
    recorded(audit, &identity.caller, Origin::Http, change, make).await.map_err(|cause| {
        tracing::error!(cause, "change_not_audited");
        let message = "nothing was changed, as the audit could not be written; the server's log says why";
        error(StatusCode::SERVICE_UNAVAILABLE, "audit_unavailable", message, None)
    })
}
