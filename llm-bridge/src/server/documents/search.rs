//! `GET /api/documents/search`: the passages that tools find.

use axum::{Extension, Json, extract::State, http::Method};
use registry_core::Permission;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrack_documents::{DocumentFilter, Passage};

use crate::server::{
    App,
    callers::identity::Identity,
    openapi::Operation,
    requests::{api_error::ApiError, query::QueryParameters},
    routes::Routes,
};

/// So many passages are given where it is not said.
const DEFAULT_PASSAGES: usize = 5;
/// So many are given at most.
const MAX_PASSAGES: usize = 100;
/// The longest question, in bytes.
const MAX_QUERY: usize = 4096;

pub(super) fn routes() -> Routes {
    Routes::new().add("/api/documents/search", search, operation())
}

/// Passages, the best first.
#[derive(Serialize, JsonSchema)]
struct PassageList {
    passages: Vec<Found>,
}

/// A passage that was found.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FoundPassage")]
struct Found {
    #[serde(flatten)]
    passage: Passage,
    /// Where it stands, such as `lines 3-9` or `page 2`.
    place: String,
}

/// What is looked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    query: String,
    limit: Option<usize>,
}

fn operation() -> Operation {
    Operation::new(Method::GET, "Documents", "search_documents", "Searches the documents as the tools do")
        .required_query("query", "A question or words.")
        .query_number("limit", "At most so many passages; 5 where it is not said.", 1, MAX_PASSAGES as i64)
        .answers::<PassageList>(200, "The passages, the best first.")
        .refuses(400, "A query parameter is missing, unknown or too long (`invalid_request_error`).")
        .refuses(403, "The user is a guest (`permission_denied`).")
}

async fn search(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    QueryParameters(Wanted { query, limit }): QueryParameters<Wanted>,
) -> Result<Json<PassageList>, ApiError> {
    identity.require(Permission::User, "searching documents")?;
    let limit = limit.unwrap_or(DEFAULT_PASSAGES);
    if !(1..=MAX_PASSAGES).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("`limit` goes from 1 to {MAX_PASSAGES}")));
    }
    if query.trim().is_empty() || query.len() > MAX_QUERY {
        return Err(ApiError::invalid(
            "query",
            format!("`query` has 1 to {MAX_QUERY} bytes, as in `?query=tea`"),
        ));
    }
    let found = match app.documents.there(&identity) {
        Some(documents) => documents.search(&query, limit, &DocumentFilter::default()).await?,
        None => Vec::new(),
    };
    let found = found.into_iter().map(|passage| Found { place: passage.place(), passage });
    Ok(Json(PassageList { passages: found.collect() }))
}
