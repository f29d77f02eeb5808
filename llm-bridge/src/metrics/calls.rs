//! Counts calls by the records that each of them leaves in the audit, whatever door it came through.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use prometheus::{HistogramVec, IntCounterVec, core::Collector};
use registry_core::{
    BoxFuture, ErrorKind, Origin, Overview, Registry, RemoteKind, Source, Tool,
    guard::{
        audit::{AuditRecord, AuditSink, Phase},
        gate::Verdict,
    },
};

use super::definition::{CALL_SECONDS, CALLS, RETRIES};

/// So many tools are counted by name. Names come and go with modules, and a name that was counted is kept.
const MAX_TOOLS: usize = 4096;

/// What no tool can be taken for, as its kind says.
const NO_KIND: &str = "none";

/// The audit with a count before it: every record passes through to the sink behind.
pub struct CallMetrics {
    sink: Arc<dyn AuditSink>,
    tools: OnceLock<Overview>,
    calls: IntCounterVec,
    retries: IntCounterVec,
    seconds: HistogramVec,
    known: RwLock<HashMap<Box<str>, Arc<Counted>>>,
    /// For names that no tool has: they come from models and clients, and would be without number.
    unknown: Arc<Counted>,
    /// For tools that are too many.
    other: Arc<Counted>,
}

impl fmt::Debug for CallMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallMetrics").finish_non_exhaustive()
    }
}

/// A tool as it is named in labels.
struct Counted {
    name: Box<str>,
    kind: &'static str,
}

/// What is counted of a record.
struct Seen {
    tool: Arc<Counted>,
    source: &'static str,
    outcome: &'static str,
    is_retry: bool,
    /// How long the tool ran, where it did.
    ran: Option<Duration>,
}

impl CallMetrics {
    /// A count before a sink. A sink that is not enabled is given nothing, and calls are counted all the same.
    ///
    /// # Errors
    /// None that is known of; the library for metrics could refuse a name.
    pub fn before(sink: Arc<dyn AuditSink>) -> Result<Arc<Self>, String> {
        let told = |error: prometheus::Error| format!("metrics: {error}");
        Ok(Arc::new(Self {
            sink,
            tools: OnceLock::new(),
            calls: IntCounterVec::new(CALLS.opts(), CALLS.labels).map_err(told)?,
            retries: IntCounterVec::new(RETRIES.opts(), RETRIES.labels).map_err(told)?,
            seconds: HistogramVec::new(CALL_SECONDS.histogram_opts(), CALL_SECONDS.labels).map_err(told)?,
            known: RwLock::default(),
            unknown: Arc::new(Counted { name: "unknown".into(), kind: NO_KIND }),
            other: Arc::new(Counted { name: "other".into(), kind: NO_KIND }),
        }))
    }

    /// Tells which names are tools: those of this registry and of its other tenants. To be said once, before calls are made;
    /// until then every name is unknown.
    pub fn watch(&self, registry: &Registry) {
        let _ = self.tools.set(registry.overview());
    }

    pub(super) fn collectors(&self) -> [Box<dyn Collector>; 3] {
        [Box::new(self.calls.clone()), Box::new(self.retries.clone()), Box::new(self.seconds.clone())]
    }

    /// The tool that a record is about. Its kind is that of the first tool of its name.
    fn counted(&self, record: &AuditRecord) -> Arc<Counted> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counted) = known.get(&*record.tool) {
            return Arc::clone(counted);
        }
        drop(known);
        let Some(tool) = self.tools.get().and_then(|tools| tools.tool(&record.tenant, &record.tool)) else {
            return Arc::clone(&self.unknown);
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_TOOLS {
            return Arc::clone(&self.other);
        }
        let counted = || Arc::new(Counted { name: record.tool.as_str().into(), kind: kind_of(&tool) });
        Arc::clone(known.entry(record.tool.as_str().into()).or_insert_with(counted))
    }

    fn seen(&self, record: &AuditRecord) -> Seen {
        Seen {
            tool: self.counted(record),
            source: source_of(&record.origin),
            outcome: match (record.error, record.success) {
                (Some(error), _) => error.as_str(),
                (None, Some(true)) => "success",
                (None, _) => "unsuccessful",
            },
            is_retry: record.attempt > 1,
            ran: record.duration_ms.filter(|_| has_run(record)).map(Duration::from_millis),
        }
    }

    fn count(&self, Seen { tool, source, outcome, is_retry, ran }: &Seen) {
        let calls = if *is_retry { &self.retries } else { &self.calls };
        // As many values as labels: there is always one.
        if let Ok(calls) = calls.get_metric_with_label_values(&[&tool.name, tool.kind, outcome, source]) {
            calls.inc();
        }
        if let Some(ran) = ran
            && let Ok(durations) = self.seconds.get_metric_with_label_values(&[&tool.name, tool.kind])
        {
            durations.observe(ran.as_secs_f64());
        }
    }

    async fn pass_on(&self, record: AuditRecord) -> Result<(), String> {
        match self.sink.is_enabled() {
            true => self.sink.record(record).await,
            false => Ok(()),
        }
    }
}

impl AuditSink for CallMetrics {
    fn record(&self, record: AuditRecord) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            // A call whose intent is not kept is told of by an outcome; a further try is not.
            let is_told = record.phase == Phase::Outcome;
            if !is_told && record.attempt == 1 {
                return self.pass_on(record).await;
            }
            let mut seen = self.seen(&record);
            let kept = self.pass_on(record).await;
            if kept.is_err() {
                // This is what the caller gets.
                seen.outcome = ErrorKind::NotAudited.as_str();
            }
            if is_told || kept.is_err() {
                self.count(&seen);
            }
            kept
        })
    }
}

/// Whether a tool ran. A call that was turned down took no time, and would make tools look faster than they are.
fn has_run(record: &AuditRecord) -> bool {
    let is_blocked = record.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Blocked);
    let may_be_instant = match record.error {
        None => !is_blocked,
        Some(error) => matches!(error, ErrorKind::Failed | ErrorKind::Panicked),
    };
    may_be_instant || record.duration_ms.is_some_and(|millis| millis > 0)
}

fn source_of(origin: &Origin) -> &'static str {
    match origin {
        Origin::Native => "native",
        Origin::Text(_) => "text",
        Origin::Http => "http",
        Origin::Mcp => "mcp",
        Origin::CommandLine => "command_line",
        Origin::Library => "library",
    }
}

/// Where a tool comes from, in a word.
pub(super) fn kind_of(tool: &Tool) -> &'static str {
    match tool.source() {
        Source::Compiled(_) => "compiled",
        Source::Configured { .. } => "configured",
        Source::Host => "host",
        Source::BuiltIn => "built_in",
        Source::Remote(remote) => match remote.kind {
            RemoteKind::Module => "module",
            RemoteKind::Mcp => "mcp",
        },
        _ => NO_KIND,
    }
}
