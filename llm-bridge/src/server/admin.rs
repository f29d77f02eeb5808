//! Changes that a tenant's admins make.

use std::fmt::Display;

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
};
use registry_core::{Origin, Permission};
use serde_json::Value;

use super::{api_error::ApiError, identity::Identity};
use crate::recorded::{Change, recorded};

/// Why a route of admins refuses others.
pub(super) const NOT_ADMIN: &str = "The user is not an admin (`permission_denied`).";

/// The caller of a request that only a tenant's admins may make. Others are refused before its body is read.
pub(super) struct Admin(pub(super) Identity);

impl<S: Send + Sync> FromRequestParts<S> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let identity = identified(parts)?;
        identity.require(Permission::Admin, "this request")?;
        Ok(Self(identity))
    }
}

/// Stands for a caller who manages what all tenants share. Others are refused before the body of the request is read.
pub(super) struct Operator;

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        identified(parts)?.require_operator().map(|()| Self)
    }
}

fn identified(parts: &Parts) -> Result<Identity, ApiError> {
    let identity = parts.extensions.get::<Identity>().cloned();
    identity.ok_or_else(|| ApiError::internal("the caller of the request is not known"))
}

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
    audited(identity, command, arguments, make).await
}

/// Makes a change that is the caller's own matter, recorded in the audit.
///
/// # Errors
/// When the audit cannot be written, or the change fails.
pub(super) async fn audited<T, E: Display + Into<ApiError>>(
    identity: &Identity,
    command: &'static str,
    arguments: Value,
    make: impl Future<Output = Result<T, E>>,
) -> Result<T, ApiError> {
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
