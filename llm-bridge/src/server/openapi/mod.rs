//! `GET /openapi.json`: all routes in the form of OpenAPI 3.1, <https://spec.openapis.org/oas/v3.1.1.html>.
//!
//! Each route has its [`Operation`] beside its handler; `schemars` derives the schemas from the types of requests and responses.

pub(super) mod operation;
mod shapes;

use std::sync::{Arc, LazyLock};

use axum::{
    Extension,
    body::Bytes,
    http::{Method, header},
    response::{IntoResponse, Response},
};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

pub(super) use operation::{FORM, Operation};
pub(super) use shapes::{ChatCompletion, ChatCompletionRequest, JsonObject, JsonRpc, ModelList};

use super::requests::{api_error::ApiError, key::PLACES};

/// The place of schemas in the document.
const SCHEMAS: &str = "/components/schemas";

const ABOUT: &str = "A registry of tools, and a chat backend that lets a local model call them.\n\n\
    Errors are `{\"error\": {\"message\", \"type\", \"param\", \"code\"}}` everywhere, with a message that says what to do. That includes \
    the 404 of an unknown path and the 405 of an unsupported method.\n\n\
    Without a valid key `Host` has to be `localhost`, an IP address or one of `allowed_hosts` (else 421). An `Origin` has to be this \
    server's own or one of `allowed_origins` (else 403). A path may end with a slash.";

const TAGS: [(&str, &str); 16] = [
    ("Chat", "Chats with a model and its tools, in the forms of several APIs."),
    ("Ollama", "The addresses of Ollama's API beside its chat."),
    ("Passed on", "What the model server answers by itself."),
    ("Tools", "Tools and tool calls."),
    ("MCP", "The Model Context Protocol."),
    ("Modules", "Tools of other services, and this server as a module."),
    ("Documents", "Documents that tools search."),
    ("Personas", "Named sets of modules that users may use."),
    ("Chats", "Chats that the server keeps, with turns that go on without a client."),
    ("Users", "Users and their keys."),
    ("Approvals", "Human approval of calls."),
    ("Questions", "What tools ask their users."),
    ("Schedule", "Calls that are made later."),
    ("Audit", "The records of calls and changes."),
    ("Webhooks", "Messages that could not be delivered."),
    ("Server", "The chat page and the server itself."),
];

/// The serialized document, which is made for the first who asks.
#[derive(Clone)]
pub(super) struct Document(Arc<LazyLock<Written, Make>>);

type Written = Result<Bytes, serde_json::Error>;
type Make = Box<dyn FnOnce() -> Written + Send>;

impl Document {
    pub(super) fn new(operations: Vec<(&'static str, Operation)>) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(|| Self::write(operations)))))
    }

    fn write(operations: Vec<(&'static str, Operation)>) -> Written {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = SCHEMAS.into();
            settings.meta_schema = None;
        });
        // A field with a default may be left out of a request, and is always there in a response.
        let mut requests = settings.clone().for_deserialize().into_generator();
        let mut answers = settings.for_serialize().into_generator();
        let mut paths: Map<String, Value> = Map::new();
        for (path, operation) in operations {
            let method = operation.method.as_str().to_ascii_lowercase();
            // A parameter that takes the rest of a path is written as any other.
            let methods = paths.entry(path.replace("{*", "{")).or_insert_with(|| json!({}));
            if let Some(methods) = methods.as_object_mut() {
                methods.insert(method, operation.describe(path, &mut requests, &mut answers));
            }
        }
        let mut schemas = requests.take_definitions(true);
        schemas.append(&mut answers.take_definitions(true));
        let schemes: Value = PLACES.into_iter().map(|place| (place.scheme_name(), place.scheme())).collect();
        let license = env!("CARGO_PKG_LICENSE");
        let document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Toolrack",
                "description": ABOUT,
                "license": {"name": license, "identifier": license},
                "version": env!("CARGO_PKG_VERSION"),
            },
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": schemes,
            },
            "tags": TAGS.map(|(name, about)| json!({"name": name, "description": about})),
        });
        serde_json::to_vec(&document).map(Bytes::from)
    }
}

/// Needs no key: the document describes the program, not this server's tools or users, and many code generators cannot send one.
pub(super) async fn serve(Extension(Document(written)): Extension<Document>) -> Result<Response, ApiError> {
    let json = (**written).as_ref().map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json.clone()).into_response())
}

pub(super) fn serve_operation() -> Operation {
    Operation::new(Method::GET, "Server", "openapi", "This document").answers_with(
        200,
        "application/json",
        "The document, in OpenAPI 3.1.",
    )
}
