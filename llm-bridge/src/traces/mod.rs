//! Traces for OpenTelemetry, with its conventions for generative AI: `docs/traces.md` lists the spans.
//!
//! A turn is a span `invoke_agent`, each request to a model a span `chat`, and each call of a tool a span `execute_tool`.

mod export;
mod otlp;
mod recent;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::http::{HeaderMap, HeaderValue};
use registry_core::trace::{SpanData, Trace, TraceParent, TraceSink};
use serde_json::Value;
use tokio::sync::mpsc;

use export::Message;
use recent::Recent;
pub(crate) use recent::TraceSummary;

/// The header of answers with the id of their trace.
pub(crate) const TRACE_HEADER: &str = "x-toolrack-trace";

tokio::task_local! {
    /// The span of the request to a model server that is being made.
    static ASKING: Trace;
}

/// Longer texts in spans are cut, in bytes, before they wait anywhere.
const MAX_TEXT: usize = 16 << 10;
/// A name of a span is not longer, in bytes: models are named by clients.
const MAX_NAME: usize = 256;
/// So many spans may wait for the collector; others are dropped.
const MAX_WAITING: usize = 4096;
/// So much may they take, in bytes.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// Where spans go, and which.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSettings {
    /// Where the collector takes spans, such as `http://127.0.0.1:4318/v1/traces`.
    pub endpoint: String,
    /// Headers of each request to it, such as a key.
    pub headers: Vec<(String, String)>,
    /// How long it may take for a request.
    pub timeout: Duration,
    /// The attribute `service.name`.
    pub service: String,
    /// Whether spans have arguments, results and messages.
    pub content: bool,
    /// Which part of the traces that begin here is kept, from 0 to 1.
    pub sample: f64,
}

/// Traces the requests of a server. Cheap to clone.
#[derive(Clone)]
pub struct Traces {
    shared: Arc<Shared>,
}

struct Shared {
    content: bool,
    sample: f64,
    /// `None` where spans stay here.
    export: Option<Export>,
    recent: Recent,
}

/// The way to the collector.
struct Export {
    endpoint: String,
    waiting: mpsc::Sender<Message>,
    backlog: Arc<Backlog>,
}

/// What waits for the collector, and what could not.
#[derive(Default)]
struct Backlog {
    bytes: AtomicUsize,
    dropped: AtomicU64,
}

impl Backlog {
    /// Whether there is room for so many bytes more, which wait from then on.
    fn admits(&self, bytes: usize) -> bool {
        let sum = |waiting: usize| waiting.checked_add(bytes).filter(|sum| *sum <= MAX_WAITING_BYTES);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }

    /// So many bytes wait no more.
    fn left(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = self.shared.export.as_ref().map_or("in memory", |export| &export.endpoint);
        write!(f, "Traces({endpoint})")
    }
}

impl TraceSink for Shared {
    fn ended(&self, mut span: SpanData) {
        let texts = span.attributes.iter_mut().filter_map(|(_, value)| match value {
            Value::String(text) => Some(text),
            _ => None,
        });
        texts.chain(&mut span.error).for_each(cut);
        if span.name.len() > MAX_NAME {
            let end = span.name.floor_char_boundary(MAX_NAME);
            span.name.to_mut().truncate(end);
        }
        match &self.export {
            Some(export) => {
                self.recent.add(span.clone());
                export.send(span);
            }
            None => self.recent.add(span),
        }
    }

    fn has_content(&self) -> bool {
        self.content
    }

    fn stays_here(&self) -> bool {
        self.export.is_none()
    }
}

impl Export {
    fn send(&self, span: SpanData) {
        let bytes = recent::size(&span);
        let admitted = self.backlog.admits(bytes);
        if admitted && self.waiting.try_send(Message::Span(Box::new(span), bytes)).is_ok() {
            return;
        }
        self.backlog.dropped.fetch_add(1, Ordering::Relaxed);
        if admitted {
            self.backlog.left(bytes);
        }
    }
}

fn cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(MAX_TEXT));
}

impl Traces {
    /// Sends spans to a collector, in a task of the tokio runtime.
    ///
    /// # Errors
    /// When the endpoint is no HTTP address, a header is none, or the system's TLS cannot be set up.
    pub fn start(settings: TraceSettings) -> Result<Self, String> {
        let (waiting, spans) = mpsc::channel(MAX_WAITING);
        let backlog = Arc::<Backlog>::default();
        let exporter = export::Exporter::new(&settings, Arc::clone(&backlog))?;
        tokio::spawn(exporter.run(spans));
        let TraceSettings { endpoint, content, sample, .. } = settings;
        Ok(Self::new(content, sample, Some(Export { endpoint, waiting, backlog })))
    }

    /// Only keeps the last ones in memory, and sends nothing. `content` and `sample` are those of [`TraceSettings`].
    pub fn in_memory(content: bool, sample: f64) -> Self {
        Self::new(content, sample, None)
    }

    fn new(content: bool, sample: f64, export: Option<Export>) -> Self {
        Self { shared: Arc::new(Shared { content, sample, export, recent: Recent::default() }) }
    }

    /// The trace of a request to this server; `None` where it is not kept.
    fn begin(&self, from: Option<TraceParent>) -> Option<Trace> {
        let place = from.or_else(|| {
            let is_sampled = fastrand::f64() < self.shared.sample;
            is_sampled.then(|| TraceParent::begin(true))
        })?;
        Some(Trace::new(place, Some(Arc::clone(&self.shared) as _)))
    }

    /// The spans of a trace that ended lately, by its id or that of a call in it, in the order in which they began.
    pub(crate) fn recent(&self, id: &str) -> Vec<SpanData> {
        self.shared.recent.find(id)
    }

    /// What is known of the traces that had a span last, the last one first, so many at most.
    pub(crate) fn newest(&self, most: usize) -> Vec<TraceSummary> {
        self.shared.recent.newest(most)
    }

    /// Forgets the traces that ended lately.
    pub(crate) fn forget(&self) {
        self.shared.recent.forget();
    }

    /// Sends what waits, and returns when the collector has it or does not take it in time.
    pub async fn flush(&self) {
        let Some(export) = &self.shared.export else { return };
        let (done, sent) = tokio::sync::oneshot::channel();
        if export.waiting.send(Message::Flush(done)).await.is_ok() {
            let _ = sent.await;
        }
    }
}

/// The trace of a request with these headers: the one that the client is in, else a new one if traces are kept. One of a client is passed
/// on also where none are kept.
pub(crate) fn of_request(traces: Option<&Traces>, headers: &HeaderMap) -> Option<Trace> {
    let from = headers.get(TraceParent::HEADER).and_then(|value| value.to_str().ok()?.parse().ok());
    let trace = match traces {
        Some(traces) => traces.begin(from)?,
        None => Trace::new(from?, None),
    };
    // It belongs to the place that came with it.
    let state = from.and_then(|_| headers.get(TraceParent::STATE)?.to_str().ok());
    Some(trace.with_state(state))
}

/// The id of a trace whose spans are kept, for the answer to its request.
pub(crate) fn id_of(trace: Option<&Trace>) -> Option<HeaderValue> {
    let place = trace?.place();
    place.is_sampled.then(|| format!("{:032x}", place.trace_id).parse().ok()).flatten()
}

/// Asks a model server as part of a span.
pub(crate) async fn asking<T>(within: Option<Trace>, asked: impl Future<Output = T>) -> T {
    match within {
        Some(trace) => ASKING.scope(trace, asked).await,
        None => asked.await,
    }
}

/// The headers of a request to a model server.
pub(crate) fn headers() -> impl Iterator<Item = (&'static str, String)> {
    ASKING.try_with(Trace::headers).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use registry_core::trace::SpanKind;

    use super::*;

    #[test]
    fn b21_a_call_that_is_kept_costs_few_allocations_however_many_are_kept() {
        let traces = Traces::in_memory(false, 1.0);
        let call = |number: u32| {
            let trace = traces.begin(None).unwrap();
            let mut span = trace.span(SpanKind::Internal, format!("execute_tool {number}")).unwrap();
            span.set("gen_ai.operation.name", "execute_tool");
            span.set("gen_ai.tool.name", "calculate");
            span.set("gen_ai.tool.type", "function");
            span.set("gen_ai.tool.call.id", "call_1");
        };
        (0..1000).for_each(call);
        let made = allocation_counter::measure(|| call(1000));
        // The name, the list of attributes, the four values, and the trace's list of spans; one goes with the oldest for each.
        assert!(made.count_total <= 8, "{}", made.count_total);
        assert!(made.count_current <= 1, "{}", made.count_current);
    }

    #[tokio::test]
    async fn b21_spans_that_wait_are_bounded_and_so_are_their_texts() {
        let settings = TraceSettings {
            endpoint: "http://127.0.0.1:9/v1/traces".to_owned(),
            headers: Vec::new(),
            timeout: Duration::from_secs(1),
            service: "s".to_owned(),
            content: true,
            sample: 1.0,
        };
        let traces = Traces::start(settings.clone()).unwrap();
        let span = |name: String, text: String| SpanData {
            name: name.into(),
            kind: SpanKind::Client,
            place: TraceParent { trace_id: 7, span_id: 1, is_sampled: true },
            parent: None,
            began: Timestamp::UNIX_EPOCH,
            ended: Timestamp::UNIX_EPOCH,
            attributes: vec![("gen_ai.input.messages", text.clone().into())],
            error: Some(text),
        };
        // The exporter does not run in between.
        traces.shared.ended(span("ü".repeat(300), "ü".repeat(20 << 10)));
        for _ in 1..5000 {
            traces.shared.ended(span("chat m".to_owned(), String::new()));
        }
        let backlog = |traces: &Traces| Arc::clone(&traces.shared.export.as_ref().unwrap().backlog);
        assert_eq!(backlog(&traces).dropped.load(Ordering::Relaxed), 5000 - 4096);
        let cut = traces.recent(&format!("{:032x}", 7)).remove(0);
        let texts = [cut.attributes[0].1.as_str().unwrap().len(), cut.error.unwrap().len()];
        assert_eq!((cut.name.len(), texts), (256, [16 << 10; 2]));

        // Long ones are fewer.
        let traces = Traces::start(settings).unwrap();
        for _ in 0..1000 {
            traces.shared.ended(span("chat m".to_owned(), "x".repeat(16 << 10)));
        }
        let backlog = backlog(&traces);
        let waiting = backlog.bytes.load(Ordering::Relaxed);
        assert!((MAX_WAITING_BYTES - (64 << 10)..=MAX_WAITING_BYTES).contains(&waiting), "{waiting}");
        assert!((400..600).contains(&backlog.dropped.load(Ordering::Relaxed)));
    }
}
