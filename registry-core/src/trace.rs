//! Traces: how long the parts of a request took, as spans that are within each other.
//!
//! A host that traces gives a [`Trace`] to the context of a request. Each call then leaves a span `execute_tool NAME`, with the attributes of
//! OpenTelemetry's conventions for generative AI, and tools that ask other servers send them the [`TraceParent`] of their call.

use std::{borrow::Cow, fmt, str::FromStr, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

/// The place of a span, as the header `traceparent` has it: <https://www.w3.org/TR/trace-context/>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// Names the trace; never 0.
    pub trace_id: u128,
    /// Names the span in it; never 0.
    pub span_id: u64,
    /// Whether whoever began the trace keeps it.
    pub is_sampled: bool,
}

impl TraceParent {
    /// The header, and the member of `_meta` in MCP.
    pub const HEADER: &str = "traceparent";
    /// The header beside it, with what others have put into the trace.
    pub const STATE: &str = "tracestate";

    /// The beginning of a trace. There is no span of this name: it stands for whoever has asked.
    pub fn begin(is_sampled: bool) -> Self {
        let trace_id = u128::from(random()) << 64 | u128::from(random());
        Self { trace_id, span_id: 0, is_sampled }
    }
}

/// A random number that is not 0.
fn random() -> u64 {
    // Without randomness the time still tells spans apart.
    getrandom::u64().unwrap_or_else(|_| Timestamp::now().as_nanosecond() as u64).max(1)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.is_sampled))
    }
}

/// A text is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no `traceparent`")]
pub struct InvalidTraceParent;

impl FromStr for TraceParent {
    type Err = InvalidTraceParent;

    fn from_str(text: &str) -> Result<Self, InvalidTraceParent> {
        fn hex(text: &str, digits: usize) -> Option<u128> {
            let is_hex =
                text.len() == digits && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
            is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
        }
        let read = || {
            let mut parts = text.trim().splitn(5, '-');
            let version = hex(parts.next()?, 2)?;
            let (trace_id, span_id) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?);
            let flags = hex(parts.next()?, 2)?;
            // A later version may say more behind; this one does not.
            let is_whole = version != 0xff && (version > 0 || parts.next().is_none());
            let span_id = u64::try_from(span_id).ok()?;
            (is_whole && trace_id != 0 && span_id != 0).then_some(Self {
                trace_id,
                span_id,
                is_sampled: flags & 1 == 1,
            })
        };
        read().ok_or(InvalidTraceParent)
    }
}

/// A longer `tracestate` is not passed on, in bytes; the standard asks for that much.
const MAX_STATE: usize = 512;

/// Takes spans that have ended. It waits for nothing.
pub trait TraceSink: Send + Sync {
    /// Takes a span. It may drop it.
    fn ended(&self, span: SpanData);

    /// Whether spans have what was said: arguments, results, messages.
    fn has_content(&self) -> bool;

    /// Whether spans stay on this machine. Others are then told where the client is, and nothing where it is in no trace: a span that nobody
    /// else ever sees is not one that theirs could stand in.
    fn stays_here(&self) -> bool {
        false
    }
}

/// Whether a span is of something here, or of a request to another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Here.
    Internal,
    /// A request to another server.
    Client,
    /// A request to this one.
    Server,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanData {
    /// Its name, such as `execute_tool calculate`.
    pub name: Cow<'static, str>,
    /// What it is of.
    pub kind: SpanKind,
    /// Its place.
    pub place: TraceParent,
    /// The span that it is in; `None` for the first of a trace.
    pub parent: Option<u64>,
    /// When it began (UTC).
    pub began: Timestamp,
    /// When it ended (UTC).
    pub ended: Timestamp,
    /// What is known of it, by the names of OpenTelemetry.
    pub attributes: Vec<(&'static str, Value)>,
    /// What went wrong; empty where only its kind is known, which is the attribute `error.type`.
    pub error: Option<String>,
}

/// Where in a trace new spans are put. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
#[debug("Trace({place})")]
pub struct Trace {
    place: TraceParent,
    /// What other servers are told.
    told: Option<TraceParent>,
    /// What others have put into the trace, by the header `tracestate`. It is passed on as it is.
    state: Option<Arc<str>>,
    /// `None` where nobody keeps spans, and the place is only passed on.
    sink: Option<Arc<dyn TraceSink>>,
}

impl Trace {
    /// Spans within this place go to the sink, where there is one and the trace is sampled.
    pub fn new(place: TraceParent, sink: Option<Arc<dyn TraceSink>>) -> Self {
        let sink = sink.filter(|_| place.is_sampled);
        let is_of_client = place.span_id != 0;
        let stays_here = sink.as_ref().is_some_and(|sink| sink.stays_here());
        Self { place, told: Some(place).filter(|_| is_of_client || !stays_here), state: None, sink }
    }

    /// The same elsewhere: with what keeps spans here, where somebody does.
    #[must_use]
    pub fn at(&self, place: TraceParent) -> Self {
        Self::new(place, self.sink.clone())
    }

    /// With the `tracestate` that came with the place; one that no header can have, or that is too long, is left out.
    #[must_use]
    pub fn with_state(self, state: Option<&str>) -> Self {
        let is_sound = |state: &&str| {
            let is_visible = state.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
            !state.is_empty() && state.len() <= MAX_STATE && is_visible
        };
        Self { state: state.map(str::trim).filter(is_sound).map(Into::into), ..self }
    }

    /// What other servers are told: headers by their names, which are the members of `_meta` in MCP too.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let state = self.state.as_ref().map(|state| (TraceParent::STATE, state.to_string()));
        let told = self.told.map(|place| (TraceParent::HEADER, place.to_string()));
        told.into_iter().chain(state)
    }

    /// The place in which new spans are.
    pub fn place(&self) -> TraceParent {
        self.place
    }

    /// Whether spans have what was said.
    pub fn has_content(&self) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.has_content())
    }

    /// Begins a span here; `None` where nobody keeps it. It ends when it is dropped.
    pub fn span(&self, kind: SpanKind, name: impl Into<Cow<'static, str>>) -> Option<Span> {
        let sink = self.sink.clone()?;
        let now = Timestamp::now();
        let data = SpanData {
            name: name.into(),
            kind,
            place: TraceParent { span_id: random(), ..self.place },
            parent: Some(self.place.span_id).filter(|id| *id != 0),
            began: now,
            ended: now,
            attributes: Vec::new(),
            error: None,
        };
        Some(Span { data: Some(data), told: self.told, state: self.state.clone(), sink })
    }
}

/// A span that has not ended.
#[derive(derive_more::Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Span {
    /// Taken at the end.
    data: Option<SpanData>,
    /// What other servers are told where spans stay here.
    told: Option<TraceParent>,
    state: Option<Arc<str>>,
    #[debug(skip)]
    sink: Arc<dyn TraceSink>,
}

impl Span {
    /// The trace within this span; `None` once it has ended.
    pub fn within(&self) -> Option<Trace> {
        let place = self.data.as_ref()?.place;
        let told = if self.sink.stays_here() { self.told } else { Some(place) };
        Some(Trace { place, told, state: self.state.clone(), sink: Some(Arc::clone(&self.sink)) })
    }

    /// Sets an attribute.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        if let Some(data) = &mut self.data {
            data.attributes.push((name, value.into()));
        }
    }

    /// Says that it failed: the kind of the error, in one word, and what happened.
    pub fn fail(&mut self, kind: &'static str, message: impl Into<String>) {
        self.set("error.type", kind);
        if let Some(data) = &mut self.data {
            data.error = Some(message.into());
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(data) = self.data.take() {
            self.sink.ended(SpanData { ended: Timestamp::now(), ..data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_a_traceparent_is_read_as_the_standard_says() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let read: TraceParent = text.parse().unwrap();
        assert_eq!((read.span_id, read.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(read.to_string(), text);
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more";
        assert!(!later.parse::<TraceParent>().unwrap().is_sampled);
        for bad in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-+bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(bad.parse::<TraceParent>(), Err(InvalidTraceParent), "{bad}");
        }
        let headers =
            |state: &str| Trace::new(read, None).with_state(Some(state)).headers().collect::<Vec<_>>();
        assert_eq!(headers(" a=1,b=2 ")[1], ("tracestate", "a=1,b=2".to_owned()));
        for wrong in ["", "a=1\nb: 2", "ä=1", &"a".repeat(MAX_STATE + 1)] {
            assert_eq!(headers(wrong), [("traceparent", text.to_owned())], "{wrong}");
        }
        assert_ne!(TraceParent::begin(true).trace_id, TraceParent::begin(true).trace_id);
    }
}
