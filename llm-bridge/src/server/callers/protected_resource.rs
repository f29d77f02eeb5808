//! `GET /.well-known/oauth-protected-resource`: where tokens for this server are had (RFC 9728).

use axum::{
    Json,
    http::{Method, header},
    response::IntoResponse,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    server::{openapi::Operation, routes::Routes},
    sign_in::SignIn,
};

const PLACE: &str = "/.well-known/oauth-protected-resource";
const PLACE_OF_MCP: &str = "/.well-known/oauth-protected-resource/mcp";

/// This server as a resource that tokens are for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Metadata {
    /// What tokens have to be asked for (`resource`, RFC 8707).
    resource: String,
    /// Where they are asked for.
    authorization_servers: Vec<String>,
    /// The scopes that they have to have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<String>,
    /// How they are sent.
    bearer_methods_supported: [&'static str; 1],
    /// The name of this server.
    resource_name: &'static str,
}

/// Where the metadata is for a path of this server.
pub(in crate::server) fn metadata_url(sign_in: &SignIn, path: &str) -> String {
    let is_mcp = path == "/mcp" || path.starts_with("/mcp/");
    format!("{}{}", sign_in.public_url(), if is_mcp { PLACE_OF_MCP } else { PLACE })
}

/// None without sign-in.
pub(in crate::server) fn routes(sign_in: Option<&SignIn>) -> Routes {
    let Some(sign_in) = sign_in else { return Routes::new() };
    let url = sign_in.public_url();
    let all = [
        (PLACE, "protected_resource", "Where tokens for this server are had", url.to_owned()),
        (PLACE_OF_MCP, "protected_resource_mcp", "Where tokens for `/mcp` are had", format!("{url}/mcp")),
    ];
    all.into_iter().fold(Routes::new(), |routes, (path, id, summary, resource)| {
        let metadata = Metadata {
            resource,
            authorization_servers: vec![sign_in.issuer().to_owned()],
            scopes_supported: sign_in.required_scopes().to_vec(),
            bearer_methods_supported: ["header"],
            resource_name: "Toolrack",
        };
        // The same for everybody, so pages of every origin may read it: clients in browsers do.
        let headers = [(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (header::CACHE_CONTROL, "max-age=3600")];
        let serve = move || async move { (headers, Json(metadata)).into_response() };
        let operation = Operation::new(Method::GET, "Server", id, summary)
            .details("<https://www.rfc-editor.org/rfc/rfc9728>")
            .answers::<Metadata>(200, "The metadata.");
        routes.add(path, serve, operation)
    })
}
