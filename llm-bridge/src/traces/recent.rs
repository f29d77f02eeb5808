//! The traces that ended last, in memory, for `toolrack trace`.

use std::collections::VecDeque;

use jiff::Timestamp;
use parking_lot::Mutex;
use registry_core::trace::SpanData;
use serde_json::Value;

/// So many traces are kept, with so many spans each, and so many bytes of all.
const MAX_TRACES: usize = 500;
const MAX_SPANS: usize = 500;
const MAX_BYTES: usize = 16 << 20;

/// The attribute by which a call is found.
const CALL_ID: &str = "gen_ai.tool.call.id";
/// The attribute with the model that was asked.
const MODEL: &str = "gen_ai.request.model";

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

/// What is known of a trace.
#[derive(Debug, PartialEq)]
pub(crate) struct TraceSummary {
    pub(crate) id: u128,
    /// The name of the span that began first.
    pub(crate) name: String,
    /// The model that was asked first.
    pub(crate) model: Option<String>,
    /// How many calls it has.
    pub(crate) calls: usize,
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
    /// Whether something in it has failed.
    pub(crate) has_failed: bool,
}

impl TraceSummary {
    /// `None` for a trace without spans.
    fn of(KeptTrace { id, spans, .. }: &KeptTrace) -> Option<Self> {
        let first = spans.iter().min_by_key(|span| span.began)?;
        let asked = spans.iter().filter_map(|span| Some((span.began, attribute(span, MODEL)?)));
        let model = asked.min_by_key(|(began, _)| *began).and_then(|(_, model)| model.as_str());
        Some(Self {
            id: *id,
            name: first.name.clone().into_owned(),
            model: model.map(str::to_owned),
            calls: spans.iter().filter(|span| attribute(span, CALL_ID).is_some()).count(),
            began: first.began,
            ended: spans.iter().map(|span| span.ended).max()?,
            has_failed: spans.iter().any(|span| span.error.is_some()),
        })
    }
}

impl Recent {
    /// What is known of the traces that had a span last, the last one first, so many at most.
    pub(super) fn newest(&self, most: usize) -> Vec<TraceSummary> {
        self.0.lock().traces.iter().rev().take(most).filter_map(TraceSummary::of).collect()
    }

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

    /// Forgets all of them.
    pub(super) fn forget(&self) {
        *self.0.lock() = Kept::default();
    }

    /// The spans of the trace of that id, or of the one with the call of that id, in the order in which they began.
    pub(super) fn find(&self, id: &str) -> Vec<SpanData> {
        let trace_id = (id.len() == 32).then(|| u128::from_str_radix(id, 16).ok()).flatten();
        let is_call = |span: &SpanData| attribute(span, CALL_ID).and_then(Value::as_str) == Some(id);
        let kept = self.0.lock();
        let is_it = |trace: &&KeptTrace| Some(trace.id) == trace_id || trace.spans.iter().any(is_call);
        let mut spans = kept.traces.iter().rfind(is_it).map(|trace| trace.spans.clone()).unwrap_or_default();
        drop(kept);
        spans.sort_by_key(|span| span.began);
        spans
    }
}

fn attribute<'s>(span: &'s SpanData, wanted: &str) -> Option<&'s Value> {
    span.attributes.iter().find_map(|(name, value)| (*name == wanted).then_some(value))
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
    fn b21_the_newest_traces_are_told_by_what_began_first() {
        let recent = Recent::default();
        recent.add(span(1, "one"));
        let call = span(2, "two");
        let asked = |name: &'static str, model: &str, second| SpanData {
            name: name.into(),
            began: Timestamp::from_second(second).unwrap(),
            attributes: vec![(MODEL, model.into())],
            ..call.clone()
        };
        recent.add(SpanData { error: Some(String::new()), ..call.clone() });
        // A span ends after those in it.
        recent.add(asked("chat m", "m", 8));
        recent.add(asked("invoke_agent toolrack", "wanted", 7));
        let [newest, older] = &recent.newest(9)[..] else { panic!("{:?}", recent.newest(9)) };
        let expected = TraceSummary {
            id: 2,
            name: "invoke_agent toolrack".to_owned(),
            model: Some("wanted".to_owned()),
            calls: 1,
            began: Timestamp::from_second(7).unwrap(),
            ended: call.ended,
            has_failed: true,
        };
        assert_eq!(*newest, expected);
        assert_eq!((older.id, &older.model, older.has_failed), (1, &None, false));
        assert_eq!(recent.newest(1).len(), 1);
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
