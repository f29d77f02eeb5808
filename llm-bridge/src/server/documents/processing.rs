//! What models do with the documents beside answering, on an admin's word: `/api/documents/processing`, `/api/documents/embed-again` and
//! `/api/documents/extract`. Vectors are computed by the background task; names are extracted in a task of their own, one at a time.

use std::{panic::AssertUnwindSafe, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::{Method, StatusCode},
};
use futures_util::FutureExt;
use parking_lot::Mutex;
use registry_core::{ToolError, model::Model, store::StoreError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolrack_documents::{DocumentFilter, Documents, Extraction, Forgotten};

use super::{DocumentAccess, ListQuery};
use crate::{
    server::{
        App,
        callers::{
            admin::{self, Admin, NOT_ADMIN},
            identity::Identity,
        },
        openapi::Operation,
        requests::{api_error::ApiError, query::QueryParameters},
        routes::Routes,
    },
    turn::Backend,
};

pub(super) fn routes() -> Routes {
    Routes::new()
        .add("/api/documents/processing", read, read_operation())
        .add("/api/documents/embed-again", embed_again, embed_again_operation())
        .add("/api/documents/extract", extract, extract_operation())
        .add("/api/documents/extract", stop, stop_operation())
}

/// Has a model extract names and relations, for one tenant at a time. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Extractor {
    /// `None` where there is no model.
    pub(super) model: Option<Model>,
    /// Whether it happens without being asked for.
    pub(super) is_automatic: bool,
    run: Arc<Mutex<Option<Run>>>,
}

/// What was begun last.
#[derive(Debug)]
struct Run {
    tenant: String,
    /// `None` where it is over.
    stop: Option<CancellationToken>,
    done: Extraction,
    error: Option<String>,
}

impl Extractor {
    pub(super) fn new(model: Option<Model>, is_automatic: bool) -> Self {
        Self { model, is_automatic, run: Arc::default() }
    }

    /// Begins to extract in a task; false while that is done.
    fn begin(
        &self,
        tenant: String,
        (documents, filter): (Documents, DocumentFilter),
        model: Model,
        backend: &Backend,
        closing: &CancellationToken,
    ) -> bool {
        let mut run = self.run.lock();
        if run.as_ref().is_some_and(|run| run.stop.is_some()) {
            return false;
        }
        let stop = closing.child_token();
        *run = Some(Run { tenant, stop: Some(stop.clone()), done: Extraction::default(), error: None });
        let shared = Arc::clone(&self.run);
        backend.spawn(async move {
            let extract = documents.extract_unread(&model, &filter, |done| {
                if let Some(run) = &mut *shared.lock() {
                    run.done = *done;
                }
            });
            let ended = stop.run_until_cancelled(AssertUnwindSafe(extract).catch_unwind()).await;
            let error = match ended {
                Some(Ok(Ok(_))) => None,
                Some(Ok(Err(error))) => Some(error.message().to_owned()),
                Some(Err(_)) => Some("it failed; the server's log says why".to_owned()),
                None => Some("it was stopped".to_owned()),
            };
            if let Some(run) = &mut *shared.lock() {
                (run.stop, run.error) = (None, error);
            }
        });
        true
    }
}

/// What models have done with the documents.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DocumentProcessing")]
struct Processing {
    /// The model whose vectors a search compares, beside the words; `null` where there is none.
    embedding_model: Option<String>,
    /// Of how many passages no names are known yet; `null` where there is no model to extract them.
    unextracted: Option<usize>,
    /// Whether names are extracted without being asked for: `extract` under `[documents]`.
    extracts: bool,
    /// What an admin of the tenant has begun on this server.
    extraction: Option<ExtractionState>,
}

/// An extraction of names and relations.
#[derive(Serialize, JsonSchema)]
struct ExtractionState {
    running: bool,
    /// How many passages were read.
    passages: usize,
    /// How many the model failed at; they are left for another time.
    failed: usize,
    names: usize,
    relations: usize,
    /// Of questions and answers.
    tokens: u64,
    /// Why it ended before its end.
    error: Option<String>,
}

impl From<&Run> for ExtractionState {
    fn from(run: &Run) -> Self {
        let Extraction { passages, failed, names, relations, tokens, .. } = run.done;
        let (running, error) = (run.stop.is_some(), run.error.clone());
        Self { running, passages, failed, names, relations, tokens, error }
    }
}

/// With what is to be done for the documents that pass the filter.
async fn state(
    access: &DocumentAccess,
    identity: &Identity,
    filter: &DocumentFilter,
) -> Result<Processing, ToolError> {
    let (documents, extractor) = (access.there(identity), &access.extractor);
    let unextracted = match (&documents, &extractor.model) {
        (Some(documents), Some(_)) => Some(documents.count_unextracted(filter).await?),
        _ => None,
    };
    let run = extractor.run.lock();
    let own = run.as_ref().filter(|run| run.tenant == identity.registry.tenant());
    Ok(Processing {
        embedding_model: documents.and_then(|documents| documents.embedding_model().map(str::to_owned)),
        unextracted,
        extracts: extractor.is_automatic,
        extraction: own.map(ExtractionState::from),
    })
}

fn there(access: &DocumentAccess, identity: &Identity) -> Result<Documents, ApiError> {
    let none = || ApiError::not_found("documents_not_found", "there are no documents yet");
    access.there(identity).ok_or_else(none)
}

/// What the audit has of it; an error where there is nothing below the path.
async fn named(documents: &Documents, filter: &DocumentFilter) -> Result<Value, ApiError> {
    let Some(path) = &filter.below else { return Ok(json!({})) };
    match documents.first("", 1, filter).await? {
        (_, 0) => {
            let message = format!("there is no document {path}, and no such folder");
            Err(ApiError::not_found("documents_not_found", message))
        }
        _ => Ok(json!({"paths": [path]})),
    }
}

const BELOW: &str = "Only the documents in this folder, or the one at this path.";

fn read_operation() -> Operation {
    Operation::new(
        Method::GET,
        "Documents",
        "read_document_processing",
        "What models do with the documents beside answering",
    )
    .query("below", BELOW)
    .answers::<Processing>(200, "What can be done, and how far it is.")
    .refuses(400, "A query parameter is unknown or repeated (`invalid_request_error`).")
    .refuses(403, NOT_ADMIN)
}

async fn read(
    State(app): State<App>,
    Admin(identity): Admin,
    QueryParameters(query): QueryParameters<ListQuery>,
) -> Result<Json<Processing>, ApiError> {
    Ok(Json(state(&app.documents, &identity, &query.filter()).await?))
}

/// Vectors that are computed again.
#[derive(Serialize, JsonSchema)]
struct ForgottenVectors {
    /// How many.
    vectors: u64,
}

fn embed_again_operation() -> Operation {
    Operation::new(Method::POST, "Documents", "embed_documents_again", "Compute all vectors again, or those of some documents")
        .details("For a model that was replaced by one of the same name. Until they are computed, passages are found by their words.")
        .query("below", BELOW)
        .answers::<ForgottenVectors>(202, "They are being computed.")
        .refuses(400, "A query parameter is unknown or repeated (`invalid_request_error`).")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "There are no such documents (`documents_not_found`), or no embedding model (`embedding_not_found`).")
}

async fn embed_again(
    State(app): State<App>,
    Admin(identity): Admin,
    QueryParameters(query): QueryParameters<ListQuery>,
) -> Result<(StatusCode, Json<ForgottenVectors>), ApiError> {
    let documents = there(&app.documents, &identity)?;
    let none = || {
        let message = "there is no embedding model; name one under [documents.embeddings] in toolrack.toml";
        ApiError::not_found("embedding_not_found", message)
    };
    let model = documents.embedding_model().ok_or_else(none)?;
    let filter = query.filter();
    let arguments = named(&documents, &filter).await?;
    let forget = documents.forget_vectors(model, Forgotten::All, &filter);
    let forgotten = admin::change(&identity, "toolrack documents embed --again", arguments, forget).await?;
    app.documents.added.notify_waiters();
    let vectors = u64::try_from(forgotten).unwrap_or(u64::MAX);
    Ok((StatusCode::ACCEPTED, Json(ForgottenVectors { vectors })))
}

fn extract_operation() -> Operation {
    Operation::new(Method::POST, "Documents", "extract_names", "Extract names and relations from the documents")
        .details("With a request to the model for each passage that was not read before. What was done before it is stopped stays.")
        .query("below", BELOW)
        .answers::<Processing>(202, "It has begun.")
        .refuses(400, "A query parameter is unknown or repeated (`invalid_request_error`).")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "There are no such documents (`documents_not_found`), or no model (`extraction_not_found`).")
        .refuses(409, "It is done already, perhaps for another tenant (`extraction_busy`).")
}

async fn extract(
    State(app): State<App>,
    Admin(identity): Admin,
    QueryParameters(query): QueryParameters<ListQuery>,
) -> Result<(StatusCode, Json<Processing>), ApiError> {
    let access = &app.documents;
    let documents = there(access, &identity)?;
    let none = || ApiError::not_found("extraction_not_found", "there is no model that could be asked");
    let model = access.extractor.model.clone().ok_or_else(none)?;
    let tenant = identity.registry.tenant().to_owned();
    let filter = query.filter();
    let arguments = named(&documents, &filter).await?;
    let begin = async {
        let some = (documents, filter.clone());
        let is_begun = access.extractor.begin(tenant, some, model, &app.backend, &app.closing);
        Ok::<_, StoreError>(is_begun)
    };
    if !admin::change(&identity, "toolrack documents extract", arguments, begin).await? {
        let message = "names are being extracted, perhaps of another tenant's documents; wait, or stop it";
        return Err(ApiError::new(StatusCode::CONFLICT, "extraction_busy", message));
    }
    Ok((StatusCode::ACCEPTED, Json(state(access, &identity, &filter).await?)))
}

fn stop_operation() -> Operation {
    Operation::new(Method::DELETE, "Documents", "stop_extraction", "Extract no further")
        .details("Without an extraction of the tenant there is nothing to do.")
        .answers_nothing(204, "None runs any more.")
        .refuses(403, NOT_ADMIN)
}

async fn stop(State(app): State<App>, Admin(identity): Admin) -> StatusCode {
    let run = app.documents.extractor.run.lock();
    let own = run.as_ref().filter(|run| run.tenant == identity.registry.tenant());
    if let Some(stop) = own.and_then(|run| run.stop.as_ref()) {
        stop.cancel();
    }
    StatusCode::NO_CONTENT
}
