//! Spans in the JSON of OTLP: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use jiff::Timestamp;
use registry_core::trace::{SpanData, SpanKind};
use serde_json::{Value, json};

/// The body of a request.
pub(super) fn request(service: &str, spans: &[SpanData]) -> Vec<u8> {
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let resource: [(&str, Value); 2] =
        [("service.name", service.into()), ("service.version", env!("CARGO_PKG_VERSION").into())];
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&resource)},
        "scopeSpans": [{"scope": {"name": "toolrack", "version": env!("CARGO_PKG_VERSION")}, "spans": spans}],
    }]});
    body.to_string().into_bytes()
}

fn span(span: &SpanData) -> Value {
    let kind = match span.kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    };
    let mut json = json!({
        "traceId": format!("{:032x}", span.place.trace_id),
        "spanId": format!("{:016x}", span.place.span_id),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": nanoseconds(span.began),
        "endTimeUnixNano": nanoseconds(span.ended),
        "attributes": attributes(&span.attributes),
        "status": {},
    });
    if let (Some(parent), Some(json)) = (span.parent, json.as_object_mut()) {
        json.insert("parentSpanId".to_owned(), format!("{parent:016x}").into());
    }
    if let (Some(message), Some(json)) = (&span.error, json.as_object_mut()) {
        json.insert("status".to_owned(), json!({"code": 2, "message": message}));
    }
    json
}

/// A text, as numbers of 64 bits are.
fn nanoseconds(at: Timestamp) -> String {
    at.as_nanosecond().to_string()
}

fn attributes(attributes: &[(&str, Value)]) -> Vec<Value> {
    attributes.iter().map(|(name, of)| json!({"key": name, "value": value(of)})).collect()
}

fn value(of: &Value) -> Value {
    match of {
        Value::Bool(is) => json!({"boolValue": is}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        Value::Array(items) => json!({"arrayValue": {"values": items.iter().map(value).collect::<Vec<_>>()}}),
        other => json!({"stringValue": other.to_string()}),
    }
}
