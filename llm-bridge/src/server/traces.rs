//! `GET /api/traces/{id}`: a trace that ended lately, for the operator.

use axum::{Extension, Json, extract::State, http::Method};
use jiff::Timestamp;
use registry_core::{Permission, trace::SpanData};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{App, admin::NOT_ADMIN, api_error::ApiError, identity::Identity, name::Name, openapi::Operation};

/// A trace.
#[derive(Serialize, JsonSchema)]
pub(super) struct TraceReply {
    /// Its id: 32 hexadecimal digits.
    trace_id: String,
    /// Its spans, in the order in which they began.
    spans: Vec<SpanReply>,
}

/// A span of a trace.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Span")]
struct SpanReply {
    /// Its id: 16 hexadecimal digits.
    id: String,
    /// The id of the span that it is in, which may be a client's.
    parent: Option<String>,
    /// Its name, such as `execute_tool calculate`.
    name: String,
    /// When it began (UTC).
    began: Timestamp,
    /// How long it took, in milliseconds.
    duration_ms: u64,
    /// What is known of it, by the names of OpenTelemetry.
    attributes: Map<String, Value>,
    /// What went wrong; empty where only its kind is known.
    error: Option<String>,
}

impl From<SpanData> for SpanReply {
    fn from(span: SpanData) -> Self {
        let took = span.ended.duration_since(span.began).as_millis();
        Self {
            id: format!("{:016x}", span.place.span_id),
            parent: span.parent.map(|parent| format!("{parent:016x}")),
            name: span.name.into_owned(),
            began: span.began,
            duration_ms: u64::try_from(took).unwrap_or(0),
            attributes: span.attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            error: span.error,
        }
    }
}

pub(super) fn operation() -> Operation {
    Operation::new(Method::GET, "Server", "read_trace", "A trace that ended lately")
        .path("id", "The trace's id, or the id of a call in it.")
        .answers::<TraceReply>(200, "The trace.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "There is no such trace, or nothing is traced (`trace_not_found`).")
}

/// Traces are of all tenants and for the operator.
pub(super) async fn read(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
) -> Result<Json<TraceReply>, ApiError> {
    identity.require_in_default_tenant(Permission::Admin, "reading traces")?;
    let missing =
        |why: &str| ApiError::not_found("trace_not_found", format!("there is no trace `{id}`: {why}"));
    let Some(traces) = &app.settings.traces else {
        return Err(missing("nothing is traced; set `endpoint` under `[traces]`"));
    };
    let spans = traces.recent(&id);
    let Some(first) = spans.first() else {
        return Err(missing("the last 500 traces are kept until the server stops"));
    };
    let trace_id = format!("{:032x}", first.place.trace_id);
    Ok(Json(TraceReply { trace_id, spans: spans.into_iter().map(SpanReply::from).collect() }))
}
