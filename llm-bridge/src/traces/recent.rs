//! The traces that ended last, in memory, for `toolrack trace`.

use std::collections::VecDeque;

use parking_lot::Mutex;
use registry_core::trace::SpanData;
use serde_json::Value;

/// So many traces are kept, with so many spans each, and so many bytes of all.
const MAX_TRACES: usize = 500;
const MAX_SPANS: usize = 500;
const MAX_BYTES: usize = 16 << 20;

/// The attribute by which a call is found.
const CALL_ID: &str = "gen_ai.tool.call.id";

#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The one that had a span last is at the end.
    traces: VecDeque<KeptTrace>,
    bytes: usize,
}

#[derive(Debug)]
struct KeptTrace {
    id: u128,
    spans: Vec<SpanData>,
    bytes: usize,
}

impl Recent {
    pub(super) fn add(&self, span: SpanData) {
        let (id, bytes) = (span.place.trace_id, size(&span));
        let mut kept = self.0.lock();
        let known = kept.traces.iter().rposition(|trace| trace.id == id);
        let known = known.and_then(|place| kept.traces.remove(place));
        let mut trace = known.unwrap_or(KeptTrace { id, spans: Vec::new(), bytes: 0 });
        if trace.spans.len() < MAX_SPANS {
            trace.spans.push(span);
            trace.bytes += bytes;
            kept.bytes += bytes;
        }
        kept.traces.push_back(trace);
        while kept.traces.len() > MAX_TRACES || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.traces.pop_front() else { break };
            kept.bytes -= oldest.bytes;
        }
    }

    /// The spans of the trace of that id, or of the one with the call of that id, in the order in which they began.
    pub(super) fn find(&self, id: &str) -> Vec<SpanData> {
        let trace_id = (id.len() == 32).then(|| u128::from_str_radix(id, 16).ok()).flatten();
        let is_call = |span: &SpanData| {
            span.attributes.iter().any(|(name, value)| *name == CALL_ID && value.as_str() == Some(id))
        };
        let kept = self.0.lock();
        let is_it = |trace: &&KeptTrace| Some(trace.id) == trace_id || trace.spans.iter().any(is_call);
        let mut spans = kept.traces.iter().rfind(is_it).map(|trace| trace.spans.clone()).unwrap_or_default();
        drop(kept);
        spans.sort_by_key(|span| span.began);
        spans
    }
}

/// About how much room a span takes, in bytes.
pub(super) fn size(span: &SpanData) -> usize {
    let of_value = |value: &Value| value.as_str().map_or(64, str::len) + 64;
    let attributes: usize = span.attributes.iter().map(|(_, value)| of_value(value)).sum();
    256 + span.name.len() + span.error.as_ref().map_or(0, String::len) + attributes
}

#[cfg(test)]
mod tests {
    use registry_core::trace::{SpanKind, TraceParent};

    use super::*;

    fn span(trace_id: u128, call: &str) -> SpanData {
        let now = jiff::Timestamp::now();
        SpanData {
            name: "execute_tool add".into(),
            kind: SpanKind::Internal,
            place: TraceParent { trace_id, span_id: 1, is_sampled: true },
            parent: None,
            began: now,
            ended: now,
            attributes: vec![(CALL_ID, call.into())],
            error: None,
        }
    }

    #[test]
    fn b21_the_traces_that_had_a_span_last_are_kept_within_bounds() {
        let recent = Recent::default();
        for trace in 1..=600 {
            recent.add(span(trace, &format!("call-{trace}")));
        }
        assert!(recent.find(&format!("{:032x}", 100)).is_empty() && recent.find("call-100").is_empty());
        assert_eq!(recent.find(&format!("{:032x}", 101)).len(), 1);
        for _ in 0..600 {
            recent.add(span(101, "again"));
        }
        assert_eq!(recent.find("again").len(), MAX_SPANS);
        for trace in 1000..1400 {
            recent.add(span(trace, &"x".repeat(100_000)));
        }
        assert!(recent.find("again").is_empty());
        let kept = recent.0.lock();
        assert!(kept.bytes <= MAX_BYTES && kept.traces.len() > 100, "{}", kept.bytes);
        assert_eq!(kept.bytes, kept.traces.iter().map(|trace| trace.bytes).sum::<usize>());
    }
}
