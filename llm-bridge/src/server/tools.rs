//! `GET /api/tools`: the tools there are and whether they can be used; `POST /api/tools/{name}`: on and off.

use axum::{
    Extension, Json,
    extract::Path,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use registry_core::{ChangeError, Permission, RegistryError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{body::JsonBody, error, identity::Identity, store_failed};
use crate::listing;

pub(super) async fn list(Extension(identity): Extension<Identity>) -> Json<Value> {
    let Identity { registry, caller, .. } = identity;
    let context = registry.context(caller);
    Json(json!({"tools": listing::rows(&registry, &context, false)}))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    enabled: bool,
}

pub(super) async fn switch(
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    JsonBody(body): JsonBody,
) -> Response {
    let Identity { stored, caller, .. } = identity;
    if caller.level < Permission::Admin {
        let message = format!("switching tools needs the level admin, {} has {}", caller.user, caller.level);
        return error(StatusCode::FORBIDDEN, "permission_denied", &message, None);
    }
    let Switch { enabled } = match serde_json::from_value(body) {
        Ok(switch) => switch,
        Err(fault) => {
            let message =
                format!("not understood: {fault}; send `{{\"enabled\": true}}` or `{{\"enabled\": false}}`");
            return error(StatusCode::BAD_REQUEST, "invalid_request_error", &message, Some("enabled"));
        }
    };
    match stored.set_enabled(&name, enabled).await {
        Ok(()) => Json(json!({"name": name, "enabled": enabled})).into_response(),
        Err(ChangeError::Rule(fault @ RegistryError::Unknown { .. })) => {
            error(StatusCode::NOT_FOUND, "tool_not_found", &fault.to_string(), None)
        }
        Err(ChangeError::Store(cause)) => store_failed(&cause),
        Err(fault) => error(StatusCode::CONFLICT, "tool_not_changed", &fault.to_string(), None),
    }
}
