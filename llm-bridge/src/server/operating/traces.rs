//! `GET /api/traces` and `GET /api/traces/{id}`: traces that ended lately, for the operator.

use axum::{Extension, Json, extract::State, http::Method};
use jiff::Timestamp;
use registry_core::{Permission, trace::SpanData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    server::{
        App,
        callers::{
            admin::{NOT_ADMIN, Operator},
            identity::Identity,
        },
        openapi::Operation,
        requests::{api_error::ApiError, name::Name},
    },
    traces::TraceSummary,
};

/// So many traces are listed.
const LISTED: usize = 100;

/// The traces that had a span last.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct TraceList {
    /// The last one first, 100 at most.
    traces: Vec<ListedTrace>,
}

/// What is known of a trace.
#[derive(Serialize, JsonSchema)]
struct ListedTrace {
    /// Its id: 32 hexadecimal digits.
    trace_id: String,
    /// The name of the span that began first.
    name: String,
    /// The model that was asked first.
    model: Option<String>,
    /// How many calls of tools it has.
    calls: usize,
    /// When it began (UTC).
    began: Timestamp,
    /// How long it took so far, in milliseconds.
    duration_ms: u64,
    /// Whether something in it has failed.
    failed: bool,
}

impl From<TraceSummary> for ListedTrace {
    fn from(trace: TraceSummary) -> Self {
        let TraceSummary { id, name, model, calls, began, ended, has_failed } = trace;
        let duration_ms = milliseconds(began, ended);
        Self { trace_id: format!("{id:032x}"), name, model, calls, began, duration_ms, failed: has_failed }
    }
}

fn milliseconds(began: Timestamp, ended: Timestamp) -> u64 {
    u64::try_from(ended.duration_since(began).as_millis()).unwrap_or(0)
}

/// A trace.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct TraceReply {
    /// Its id: 32 hexadecimal digits.
    pub(crate) trace_id: String,
    /// Its spans, in the order in which they began.
    pub(crate) spans: Vec<SpanReply>,
}

/// A span of a trace.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Span")]
pub(crate) struct SpanReply {
    /// Its id: 16 hexadecimal digits.
    pub(crate) id: String,
    /// The id of the span that it is in, which may be a client's.
    pub(crate) parent: Option<String>,
    /// Its name, such as `execute_tool calculate`.
    pub(crate) name: String,
    /// When it began (UTC).
    pub(crate) began: Timestamp,
    /// How long it took, in milliseconds.
    pub(crate) duration_ms: u64,
    /// What is known of it, by the names of OpenTelemetry.
    pub(crate) attributes: Map<String, Value>,
    /// What went wrong; empty where only its kind is known.
    pub(crate) error: Option<String>,
}

impl From<SpanData> for SpanReply {
    fn from(span: SpanData) -> Self {
        Self {
            id: format!("{:016x}", span.place.span_id),
            parent: span.parent.map(|parent| format!("{parent:016x}")),
            name: span.name.into_owned(),
            began: span.began,
            duration_ms: milliseconds(span.began, span.ended),
            attributes: span.attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            error: span.error,
        }
    }
}

pub(in crate::server) fn list_operation() -> Operation {
    Operation::new(Method::GET, "Server", "list_traces", "The traces that ended lately")
        .answers::<TraceList>(200, "The traces of this server; none where none are kept.")
        .refuses(403, NOT_ADMIN)
}

/// Traces are of all tenants and for the operator.
pub(in crate::server) async fn list(State(app): State<App>, _: Operator) -> Json<TraceList> {
    let newest = app.settings.traces.as_ref().map(|traces| traces.newest(LISTED)).unwrap_or_default();
    Json(TraceList { traces: newest.into_iter().map(ListedTrace::from).collect() })
}

pub(in crate::server) fn operation() -> Operation {
    Operation::new(Method::GET, "Server", "read_trace", "A trace that ended lately")
        .path("id", "The trace's id, or the id of a call in it.")
        .answers::<TraceReply>(200, "The trace.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "There is no such trace, or nothing is traced (`trace_not_found`).")
}

/// Traces are of all tenants and for the operator.
pub(in crate::server) async fn read(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
) -> Result<Json<TraceReply>, ApiError> {
    identity.require_in_default_tenant(Permission::Admin, "reading traces")?;
    let missing =
        |why: &str| ApiError::not_found("trace_not_found", format!("there is no trace `{id}`: {why}"));
    let Some(traces) = &app.settings.traces else {
        return Err(missing("nothing is traced; set `keep` or `endpoint` under `[traces]`"));
    };
    let spans = traces.recent(&id);
    let Some(first) = spans.first() else {
        return Err(missing("the last 500 traces are kept until the server stops"));
    };
    let trace_id = format!("{:032x}", first.place.trace_id);
    Ok(Json(TraceReply { trace_id, spans: spans.into_iter().map(SpanReply::from).collect() }))
}
