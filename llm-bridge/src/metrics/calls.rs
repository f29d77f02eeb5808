//! Counts calls by their audit records, so that every entry point is covered.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::RwLock;
use prometheus::{HistogramVec, IntCounterVec, core::Collector};
use registry_core::{
    ErrorKind, Overview, Registry, RemoteKind, Source, Tool,
    guard::{
        audit::{AuditRecord, AuditSink, Phase},
        gate::Verdict,
    },
    store::StoreResult,
};

use super::definition::{CALL_SECONDS, CALLS, RETRIES};

/// The limit of tools that are counted by name. Names come and go with modules, and a counted name stays.
const MAX_TOOLS: usize = 4096;

/// The kind of names without a tool.
const NO_KIND: &str = "none";

/// Wraps an audit sink and counts the calls in its records.
#[derive(derive_more::Debug)]
#[debug("CallMetrics")]
pub struct CallMetrics {
    sink: Arc<dyn AuditSink>,
    tools: OnceLock<Overview>,
    calls: IntCounterVec,
    retries: IntCounterVec,
    seconds: HistogramVec,
    known: RwLock<HashMap<Box<str>, Arc<Counted>>>,
    /// For names without a tool: they come from models and clients and are unlimited.
    unknown: Arc<Counted>,
    /// For tools beyond the limit.
    other: Arc<Counted>,
}

/// A tool's labels.
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
    /// Wraps a sink. Calls are counted also if the sink is not enabled.
    ///
    /// # Errors
    /// When Prometheus refuses a metric.
    pub fn before(sink: Arc<dyn AuditSink>) -> Result<Arc<Self>, String> {
        let reported = |error: prometheus::Error| format!("metrics: {error}");
        Ok(Arc::new(Self {
            sink,
            tools: OnceLock::new(),
            calls: IntCounterVec::new(CALLS.opts(), CALLS.labels).map_err(reported)?,
            retries: IntCounterVec::new(RETRIES.opts(), RETRIES.labels).map_err(reported)?,
            seconds: HistogramVec::new(CALL_SECONDS.histogram_opts(), CALL_SECONDS.labels)
                .map_err(reported)?,
            known: RwLock::default(),
            unknown: Arc::new(Counted { name: "unknown".into(), kind: NO_KIND }),
            other: Arc::new(Counted { name: "other".into(), kind: NO_KIND }),
        }))
    }

    /// Sets the registry, with its other tenants, that knows the tools' names. To be called once, before calls are made.
    pub fn watch(&self, registry: &Registry) {
        let _ = self.tools.set(registry.overview());
    }

    pub(super) fn collectors(&self) -> [Box<dyn Collector>; 3] {
        [Box::new(self.calls.clone()), Box::new(self.retries.clone()), Box::new(self.seconds.clone())]
    }

    /// The labels of the record's tool. The kind is that of the first tool with this name.
    fn counted(&self, record: &AuditRecord) -> Arc<Counted> {
        let known = self.known.read();
        if let Some(counted) = known.get(&*record.tool) {
            return Arc::clone(counted);
        }
        drop(known);
        let Some(tool) = self.tools.get().and_then(|tools| tools.tool(&record.tenant, &record.tool)) else {
            return Arc::clone(&self.unknown);
        };
        let mut known = self.known.write();
        if known.len() >= MAX_TOOLS {
            return Arc::clone(&self.other);
        }
        let counted = || Arc::new(Counted { name: record.tool.as_str().into(), kind: kind_of(&tool) });
        Arc::clone(known.entry(record.tool.as_str().into()).or_insert_with(counted))
    }

    fn seen(&self, record: &AuditRecord) -> Seen {
        Seen {
            tool: self.counted(record),
            source: (&record.origin).into(),
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
        // There are as many values as labels, so this cannot fail.
        if let Ok(calls) = calls.get_metric_with_label_values(&[&tool.name, tool.kind, outcome, source]) {
            calls.inc();
        }
        if let Some(ran) = ran
            && let Ok(durations) = self.seconds.get_metric_with_label_values(&[&tool.name, tool.kind])
        {
            durations.observe(ran.as_secs_f64());
        }
    }

    async fn pass_on(&self, record: AuditRecord) -> StoreResult<()> {
        match self.sink.is_enabled() {
            true => self.sink.record(record).await,
            false => Ok(()),
        }
    }
}

#[async_trait]
impl AuditSink for CallMetrics {
    async fn record(&self, record: AuditRecord) -> StoreResult<()> {
        // A call whose intent is not stored is counted by its outcome; a further try is not.
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
    }
}

/// Whether the tool ran. A refused call takes no time and would make the tool look faster.
fn has_run(record: &AuditRecord) -> bool {
    let is_blocked = record.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Blocked);
    let may_be_instant = match record.error {
        None => !is_blocked,
        Some(error) => matches!(error, ErrorKind::Failed | ErrorKind::Panicked),
    };
    may_be_instant || record.duration_ms.is_some_and(|millis| millis > 0)
}

/// The kind of a tool's source.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use registry_core::{
        Caller, Permission, ToolCall, ToolError, ToolPolicy, ToolResult, ToolSpec, handler_fn,
        store::StoreError,
    };
    use serde_json::json;

    use super::*;

    /// A sink that follows a script, record by record; then it keeps all.
    #[derive(Default)]
    struct Scripted {
        enabled: bool,
        fails: Mutex<Vec<bool>>,
        kept: Mutex<Vec<AuditRecord>>,
    }

    #[async_trait]
    impl AuditSink for Scripted {
        fn is_enabled(&self) -> bool {
            self.enabled
        }

        async fn record(&self, record: AuditRecord) -> StoreResult<()> {
            let mut fails = self.fails.lock().unwrap();
            let fails = !fails.is_empty() && fails.remove(0);
            self.kept.lock().unwrap().push(record);
            if fails { Err(StoreError::unavailable("full")) } else { Ok(()) }
        }
    }

    fn rack(sink: Arc<Scripted>) -> (Arc<CallMetrics>, Registry) {
        let calls = CallMetrics::before(sink).unwrap();
        let registry = Registry::builder().without_compiled().audit(calls.clone()).build().unwrap();
        calls.watch(&registry);
        (calls, registry)
    }

    fn add(registry: &Registry, name: &str) {
        let handler = handler_fn(|_, arguments| async move {
            match arguments.get("fail") {
                Some(_) => Err(ToolError::failed("no luck").retryable()),
                None => Ok(ToolResult::new("done")),
            }
        });
        let spec = ToolSpec::new(name, json!({"type": "object"}));
        registry.register(spec, ToolPolicy::new(), Some(handler)).unwrap();
    }

    async fn call(registry: &Registry, call: ToolCall) {
        let context = registry.context(Caller::new("ada", Permission::User));
        registry.execute(&context, call).await;
    }

    /// The series of a counter, as `tool outcome: count`.
    fn series(counter: &IntCounterVec) -> Vec<String> {
        let mut series: Vec<String> = counter
            .collect()
            .iter()
            .flat_map(|family| family.get_metric())
            .map(|metric| {
                let label = |name: &str| {
                    let labels = metric.get_label();
                    labels.iter().find(|label| label.name() == name).unwrap().value().to_owned()
                };
                format!("{} {}: {}", label("tool"), label("outcome"), metric.get_counter().get_value())
            })
            .collect();
        series.sort();
        series
    }

    #[tokio::test]
    async fn b5_what_the_audit_cannot_keep_counts_once_and_as_that() {
        for (fails, counted) in [
            (vec![true], "act not_audited: 1"),
            (vec![true, true], "act not_audited: 1"),
            (vec![false, true], "act not_audited: 1"),
            (vec![], "act success: 1"),
        ] {
            let fails = Mutex::new(fails);
            let (calls, registry) = rack(Arc::new(Scripted { enabled: true, fails, ..Scripted::default() }));
            add(&registry, "act");
            call(&registry, ToolCall::new("act", json!({}))).await;
            assert_eq!(series(&calls.calls), [counted]);
            assert!(series(&calls.retries).is_empty());
        }
    }

    #[tokio::test]
    async fn m11_each_further_try_counts_once() {
        for (fails, retried) in [
            (vec![], vec!["act failed: 2"]),
            // The intent of the second try is not kept, and it is not made.
            (vec![false, false, true], vec!["act not_audited: 1"]),
        ] {
            let fails = Mutex::new(fails);
            let (calls, registry) = rack(Arc::new(Scripted { enabled: true, fails, ..Scripted::default() }));
            add(&registry, "act");
            call(&registry, ToolCall::new("act", json!({"fail": true})).with_retries(2)).await;
            assert_eq!(series(&calls.calls), ["act failed: 1"]);
            assert_eq!(series(&calls.retries), retried);
        }
    }

    #[tokio::test]
    async fn b5_calls_count_also_where_nothing_is_kept_of_them() {
        let sink = Arc::new(Scripted::default());
        let (calls, registry) = rack(Arc::clone(&sink));
        add(&registry, "act");
        call(&registry, ToolCall::new("act", json!({}))).await;
        assert_eq!(series(&calls.calls), ["act success: 1"]);
        assert!(sink.kept.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn b5_a_tool_of_another_tenant_has_a_name_there_alone() {
        let (calls, registry) = rack(Arc::default());
        let other = registry.for_tenant("other");
        add(&other, "theirs");
        call(&registry, ToolCall::new("theirs", json!({}))).await;
        assert_eq!(series(&calls.calls), ["unknown tool_not_found: 1"]);
        call(&other, ToolCall::new("theirs", json!({}))).await;
        assert_eq!(series(&calls.calls), ["theirs success: 1", "unknown tool_not_found: 1"]);
        // A tool that is gone keeps its name.
        other.remove("theirs");
        call(&other, ToolCall::new("theirs", json!({}))).await;
        assert!(series(&calls.calls).contains(&"theirs tool_not_found: 1".to_owned()));
    }

    #[tokio::test]
    async fn b5_tools_that_come_and_go_without_end_are_not_all_named() {
        let (calls, registry) = rack(Arc::default());
        for at in 0..MAX_TOOLS + 3 {
            let name = format!("t{at}");
            add(&registry, &name);
            call(&registry, ToolCall::new(&name, json!({}))).await;
            registry.remove(&name);
        }
        assert_eq!(calls.known.read().len(), MAX_TOOLS);
        let series = series(&calls.calls);
        assert_eq!(series.len(), MAX_TOOLS + 1);
        assert!(series.contains(&"other success: 3".to_owned()));
    }
}
