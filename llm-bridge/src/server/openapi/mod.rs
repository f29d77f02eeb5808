//! `GET /openapi.json`: all routes in the form of OpenAPI 3.1, <https://spec.openapis.org/oas/v3.1.1.html>.
//!
//! What a route says of itself stands beside its handler, as an [`Operation`]; the schemas are those of the types that go over
//! the wire, as `schemars` reads them.

mod operation;
mod shapes;

use axum::{
    Extension,
    body::Bytes,
    http::{Method, header},
    response::{IntoResponse, Response},
};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

pub(super) use operation::{BYTES, Operation};
pub(super) use shapes::{ChatCompletion, ChatCompletionRequest, JsonRpc, ModelList};

/// What keys are called in the document.
const KEY: &str = "key";
/// Where schemas lie in the document.
const SCHEMAS: &str = "/components/schemas";

const ABOUT: &str = "A registry of tools, and a chat backend that lets a local model call them.\n\n\
    Errors are `{\"error\": {\"message\", \"type\", \"param\", \"code\"}}` everywhere, with a message that says what to do: also \
    the 404 of an address that there is not, and the 405 of a method that an address does not take.\n\n\
    `Host` has to be `localhost`, a plain address or one of the names in the configuration (else 421), and an `Origin` has to be \
    this server's own (else 403).";

const ABOUT_KEYS: &str = "A user's key, which begins with `trk_`, or the `api_key` of the configuration. On a loopback address \
    none is needed unless the configuration asks for one.";

const TAGS: [(&str, &str); 8] = [
    ("Chat", "Chat completions in the form of OpenAI's API."),
    ("Tools", "The tools, and calls of them."),
    ("MCP", "The tools for clients of the Model Context Protocol."),
    ("Modules", "Tools that live elsewhere, and this server as a module of another."),
    ("Documents", "What the tools search."),
    ("Approvals", "Calls that wait for a person."),
    ("Webhooks", "Messages that could not be delivered."),
    ("Server", "The page and the server itself."),
];

/// The whole document, as it is sent.
#[derive(Clone)]
pub(super) struct Document(Bytes);

impl Document {
    /// # Errors
    /// When the document cannot be written as JSON.
    pub(super) fn new(operations: Vec<(&'static str, Operation)>) -> Result<Self, serde_json::Error> {
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
            let methods = paths.entry(path).or_insert_with(|| json!({}));
            if let Some(methods) = methods.as_object_mut() {
                methods.insert(method, operation.describe(&mut requests, &mut answers));
            }
        }
        let mut schemas = requests.take_definitions(true);
        schemas.append(&mut answers.take_definitions(true));
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
                "securitySchemes": {KEY: {"type": "http", "scheme": "bearer", "description": ABOUT_KEYS}},
            },
            "tags": TAGS.map(|(name, about)| json!({"name": name, "description": about})),
        });
        serde_json::to_vec(&document).map(|json| Self(json.into()))
    }
}

/// The document needs no key: it says what the program can do, which is no secret, and nothing of this server's tools or users. And
/// what reads it, such as a generator of clients, seldom has a way to send one.
pub(super) async fn serve(Extension(Document(json)): Extension<Document>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

pub(super) fn serve_operation() -> Operation {
    Operation::new(Method::GET, "Server", "openapi", "This document").answers_with(
        200,
        "application/json",
        "The document, in OpenAPI 3.1.",
    )
}
