//! `GET /api/audit/figures`: how the calls of each tool went, counted in the audit.

use axum::{Json, extract::State, http::Method};
use jiff::Timestamp;
use registry_core::guard::audit::log::{CallFigures, ToolFigures};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading;
use crate::server::{
    App,
    callers::admin::{Admin, NOT_ADMIN},
    openapi::Operation,
    requests::{api_error::ApiError, query::QueryParameters},
};

/// Which calls.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Span {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// How calls went.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditFigures {
    /// The tools that were called, those that were called most often first.
    tools: Vec<AuditedTool>,
    /// Only the last records are counted, from this time on; null where all were.
    counted_since: Option<Timestamp>,
}

/// How the calls of a tool went. One that waits for a person counts when that has answered.
#[derive(Serialize, JsonSchema)]
struct AuditedTool {
    /// Its name, or that of a change by an admin, such as `toolrack user add`.
    tool: String,
    /// How often it was called.
    calls: u64,
    /// How many of the calls failed.
    failed: u64,
    /// The median of what they have taken, in milliseconds; null where that is not known.
    median_ms: Option<u64>,
}

impl From<ToolFigures> for AuditedTool {
    fn from(figures: ToolFigures) -> Self {
        let ToolFigures { tool, calls, failed, median_ms } = figures;
        Self { tool, calls, failed, median_ms }
    }
}

pub(crate) fn operation() -> Operation {
    Operation::new(Method::GET, "Audit", "count_calls", "How the calls of each tool went")
        .details("Counted in the tenant's audit: at most the last 100,000 records, and at most 1000 tools.")
        .query_time("since", "Only calls that ended from this time on, such as `2026-03-01T12:00:00Z`.")
        .query_time("until", "Only calls that ended before this time.")
        .answers::<AuditFigures>(200, "The figures.")
        .refuses(400, "A query parameter is unknown or not valid (`invalid_request_error`).")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "The server keeps no audit that can be read (`audit_not_kept`).")
}

pub(crate) async fn figures(
    State(app): State<App>,
    Admin(identity): Admin,
    QueryParameters(Span { since, until }): QueryParameters<Span>,
) -> Result<Json<AuditFigures>, ApiError> {
    let reading = reading(&app)?;
    let _one = reading.alone().await?;
    let CallFigures { tools, counted_since } =
        reading.log.figures(identity.registry.tenant(), since, until).await?;
    Ok(Json(AuditFigures { tools: tools.into_iter().map(Into::into).collect(), counted_since }))
}
