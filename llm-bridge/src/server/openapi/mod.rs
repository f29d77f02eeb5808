//! `GET /openapi.json`: all routes in the form of OpenAPI 3.1, <https://spec.openapis.org/oas/v3.1.1.html>.
//!
//! What a route says of itself stands beside its handler, as an [`Operation`]; the schemas are those of the types that go over
//! the wire, as `schemars` reads them.

mod operation;
mod shapes;

use axum::{
    Extension,
    body::Bytes,
    http::header,
    response::{IntoResponse, Response},
};
use schemars::generate::SchemaSettings;
use serde_json::Value;
use utoipa::openapi::{
    ComponentsBuilder, HttpMethod, InfoBuilder, LicenseBuilder, OpenApiBuilder, Paths,
    security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    tag::TagBuilder,
};

pub(super) use operation::BYTES;
pub(super) use operation::Operation;
pub(super) use shapes::JsonRpc;
pub(super) use shapes::{ChatCompletion, ChatCompletionRequest, ModelList};

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

const TAGS: [(&str, &str); 9] = [
    ("Chat", "Chat completions in the form of OpenAI's API."),
    ("Tools", "The tools, and calls of them."),
    ("MCP", "The tools for clients of the Model Context Protocol."),
    ("Modules", "Tools that live elsewhere, and this server as a module of another."),
    ("Documents", "What the tools search."),
    ("Personas", "Named sets of modules that users may use."),
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
    pub(super) fn new(
        operations: Vec<(&'static str, HttpMethod, Operation)>,
    ) -> Result<Self, serde_json::Error> {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = SCHEMAS.into();
            settings.meta_schema = None;
        });
        // A field with a default may be left out of what is sent, and is always there in what comes back.
        let mut requests = settings.clone().for_deserialize().into_generator();
        let mut answers = settings.for_serialize().into_generator();
        let mut paths = Paths::new();
        for (path, method, operation) in operations {
            let operation = operation.describe(&mut requests, &mut answers);
            paths.add_path_operation(path, vec![method], operation);
        }
        let license =
            LicenseBuilder::new().name(env!("CARGO_PKG_LICENSE")).identifier(Some(env!("CARGO_PKG_LICENSE")));
        let info = InfoBuilder::new()
            .title("Toolrack")
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some(ABOUT))
            .license(Some(license.build()));
        let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(ABOUT_KEYS)).build();
        let tag = |(name, about): (&str, &str)| TagBuilder::new().name(name).description(Some(about)).build();
        let document = OpenApiBuilder::new()
            .info(info.build())
            .paths(paths)
            .tags(Some(TAGS.map(tag)))
            .components(Some(
                ComponentsBuilder::new().security_scheme(KEY, SecurityScheme::Http(key)).build(),
            ))
            .build();
        let mut document = serde_json::to_value(document)?;
        // `utoipa` has types for some of JSON Schema only, so that these go in as they are.
        let mut schemas = requests.take_definitions(true);
        schemas.append(&mut answers.take_definitions(true));
        if let Some(components) = document.get_mut("components").and_then(Value::as_object_mut) {
            components.insert("schemas".into(), schemas.into());
        }
        serde_json::to_vec(&document).map(|json| Self(json.into()))
    }
}

/// The document needs no key: it says what the program can do, which is no secret, and nothing of this server's tools or users. And
/// what reads it, such as a generator of clients, seldom has a way to send one.
pub(super) async fn serve(Extension(Document(json)): Extension<Document>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

pub(super) fn serve_operation() -> Operation {
    Operation::new("Server", "openapi", "This document").answers_with(
        200,
        "application/json",
        "The document, in OpenAPI 3.1.",
    )
}
