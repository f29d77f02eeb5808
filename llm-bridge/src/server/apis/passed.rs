//! What is passed on to the model server as it is: no tools of this server take part in it.

use std::collections::BTreeMap;

use axum::{
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::Response,
};
use serde_json::value::{RawValue, to_raw_value};
use toolrack_apis::{BadRequest, Front, check_model, json::Object, openai::OpenAiFront};

use super::fronts::{read_bytes, reply};
use crate::{
    server::{
        App,
        openapi::{FORM, JsonObject, Operation},
        requests::{
            api_error::ApiError,
            body::{Sender, decode, is_sent_as},
        },
        routes::Routes,
    },
    turn::PLAIN,
    upstream::Upstream,
};

const JSON: &str = "application/json";

/// An address that is passed on.
#[derive(Clone, Copy)]
struct Passed {
    path: &'static str,
    /// The content type of its requests.
    takes: &'static str,
    /// Its name in generated clients.
    id: &'static str,
    summary: &'static str,
}

const ALL: [Passed; 11] = [
    Passed { path: "/v1/embeddings", takes: JSON, id: "create_embeddings", summary: "Vectors of texts" },
    Passed {
        path: "/v1/completions",
        takes: JSON,
        id: "create_completion",
        summary: "The continuation of a text",
    },
    Passed {
        path: "/v1/rerank",
        takes: JSON,
        id: "rerank_v1",
        summary: "Texts in the order of their relevance",
    },
    Passed {
        path: "/v2/rerank",
        takes: JSON,
        id: "rerank_v2",
        summary: "Texts in the order of their relevance",
    },
    Passed { path: "/rerank", takes: JSON, id: "rerank", summary: "Texts in the order of their relevance" },
    Passed { path: "/v1/audio/speech", takes: JSON, id: "create_speech", summary: "A text, spoken" },
    Passed {
        path: "/v1/audio/transcriptions",
        takes: FORM,
        id: "create_transcription",
        summary: "Speech as text",
    },
    Passed {
        path: "/v1/audio/translations",
        takes: FORM,
        id: "create_translation",
        summary: "Speech as English text",
    },
    Passed {
        path: "/v1/images/generations",
        takes: JSON,
        id: "create_image",
        summary: "A picture of a text",
    },
    Passed { path: "/v1/images/edits", takes: FORM, id: "edit_image", summary: "A picture, changed" },
    Passed { path: "/v1/images/variations", takes: FORM, id: "vary_image", summary: "A picture, varied" },
];

/// The routes of what is passed on.
pub(in crate::server) fn routes() -> Routes {
    ALL.into_iter().fold(Routes::new(), |routes, passed| {
        let handler = move |State(app): State<App>, request: Request| pass(passed, app, request);
        routes.add(passed.path, handler, operation(passed))
    })
}

fn operation(passed: Passed) -> Operation {
    let operation = Operation::new(Method::POST, "Passed on", passed.id, passed.summary);
    let operation = match passed.takes {
        FORM => operation.takes_form(),
        _ => operation.reads::<JsonObject>(),
    };
    operation
        .details(
            "Passed on to the model server as it is, without the client's key; its answer comes back as it is, with its status. No \
             tools take part in it.",
        )
        .answers::<JsonObject>(200, "The answer.")
        .answers_with(200, "*/*", "")
        .refuses("4XX", "What the model server says to the request.")
        .refuses(501, "There is no model server, only the built-in demo model (`not_supported`).")
        .refuses(502, "The model server does not answer (`upstream_error`).")
        .refuses(504, "The model server has fallen silent (`upstream_error`).")
}

/// Refuses what the built-in demo model does not have.
pub(in crate::server) fn require_server(upstream: &Upstream) -> Result<(), ApiError> {
    let message = "the built-in demo model answers chats only; start this server with `--upstream URL` of a model server that has this";
    match upstream.is_demo() {
        true => Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, "not_supported", message)),
        false => Ok(()),
    }
}

/// The request for the model itself, where its name says that it is to have no tools of the server: none have a part in it.
fn without_plain(body: Bytes) -> Result<Bytes, BadRequest> {
    let plain = Object::from_body(&body)?.string("model").ok().flatten();
    let named = plain.map(check_model).transpose()?;
    let Some(model) = named.as_deref().and_then(|model| model.strip_suffix(PLAIN)) else { return Ok(body) };
    let fault = |error: serde_json::Error| BadRequest::new("body", error.to_string());
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(&body).map_err(fault)?;
    fields.insert("model".to_owned(), to_raw_value(model).map_err(fault)?);
    serde_json::to_vec(&fields).map(Bytes::from).map_err(fault)
}

async fn pass(passed: Passed, app: App, request: Request) -> Result<Response, ApiError> {
    let Passed { path, takes, .. } = passed;
    let headers: HeaderMap = [header::CONTENT_TYPE, header::ACCEPT]
        .into_iter()
        .filter_map(|name| request.headers().get(&name).cloned().map(|value| (name, value)))
        .collect();
    // A page can send other types without being asked first.
    if !is_sent_as(&headers, takes) {
        let message = format!("send the request as `Content-Type: {takes}`");
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message));
    }
    let sender = Sender::of(&request);
    let mut body = read_bytes(request).await?;
    if takes == JSON {
        let read = decode(sender, body.len(), move || without_plain(body)).await?;
        body = read.map_err(|fault| {
            let param = if fault.param == "model" { "model" } else { "body" };
            ApiError::invalid(param, fault.message)
        })?;
    }
    let upstream = app.backend.upstream();
    require_server(upstream)?;
    let passed = upstream.pass(Method::POST, path, headers, body).await;
    Ok(passed.unwrap_or_else(|error| reply(OpenAiFront.failure(&error.into()))))
}
