//! Changes that a tenant's admins make.

use std::fmt::Display;

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{StatusCode, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use registry_core::{Origin, Permission};
use serde_json::Value;
use tokio::task::JoinError;

use super::identity::Identity;
use crate::{
    recorded::{Change, recorded},
    server::requests::api_error::ApiError,
    turn::Backend,
};

/// Why a route of admins refuses others.
pub(in crate::server) const NOT_ADMIN: &str = "The user is not an admin (`permission_denied`).";

/// The caller of a request that only a tenant's admins may make. Others are refused before its body is read.
pub(in crate::server) struct Admin(pub(in crate::server) Identity);

impl<S: Send + Sync> FromRequestParts<S> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let identity = identified(parts)?;
        identity.require(Permission::Admin, "this request")?;
        Ok(Self(identity))
    }
}

/// Stands for a caller who manages what all tenants share. Others are refused before the body of the request is read.
pub(in crate::server) struct Operator;

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        identified(parts)?.require_operator().map(|()| Self)
    }
}

/// Stands for a caller who may do all that there is, in all tenants. Others are refused before the body of the request is read.
pub(in crate::server) struct Owner;

impl<S: Send + Sync> FromRequestParts<S> for Owner {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let what = "replacing all that is stored";
        identified(parts)?.require_in_default_tenant(Permission::Owner, what).map(|()| Self)
    }
}

fn identified(parts: &Parts) -> Result<Identity, ApiError> {
    let identity = parts.extensions.get::<Identity>().cloned();
    identity.ok_or_else(|| ApiError::internal("the caller of the request is not known"))
}

/// Answers a request that may change something in a task: where its client goes away in the middle, what has begun is done, and audited, to its
/// end.
pub(in crate::server) async fn to_its_end(
    State(backend): State<Backend>,
    request: Request,
    next: Next,
) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let answered = backend.spawn(next.run(request)).await.map_err(JoinError::try_into_panic);
    match answered {
        Ok(response) => response,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => ApiError::internal("the server has stopped").into_response(),
    }
}

/// Makes a change as an admin, recorded in the audit under the name of the command that does the same.
///
/// # Errors
/// When the caller is no admin, the audit cannot be written, or the change fails.
pub(in crate::server) async fn change<T, E: Display + Into<ApiError>>(
    identity: &Identity,
    command: &'static str,
    arguments: Value,
    make: impl Future<Output = Result<T, E>>,
) -> Result<T, ApiError> {
    identity.require(Permission::Admin, &format!("`{command}`"))?;
    let changed = audited(identity, command, arguments, make).await;
    // It may have been about somebody's keys or level.
    identity.forget_all();
    changed
}

/// Makes a change that is the caller's own matter, recorded in the audit.
///
/// # Errors
/// When the audit cannot be written, or the change fails.
pub(in crate::server) async fn audited<T, E: Display + Into<ApiError>>(
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
        Err(cause) => Err(not_audited(&cause)),
    }
}

/// The error where the audit cannot be written.
pub(in crate::server) fn not_audited(cause: &str) -> ApiError {
    tracing::error!(cause, "change_not_audited");
    let message = "the audit could not be written; the server's log says why";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "audit_unavailable", message)
}
