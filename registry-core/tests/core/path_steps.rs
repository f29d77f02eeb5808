//! What holds on the path of a call whatever happens to it: dropped futures, nested calls, retries, blocking tools.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use registry_core::{
    Caller, Concurrency, Effect, ErrorKind, Handler, Permission, Registry, RegistryBuilder, Resources,
    ToolCall, ToolContext, ToolError, ToolFuture, ToolOutcome, ToolPolicy, ToolResult, ToolSpec,
    guard::{
        audit::{AuditRecord, AuditSink, LogAudit, MemoryAudit, Phase},
        limits::{Charge, Limited, MemoryUsage, Usage},
    },
    handler_fn,
    prelude::tool,
    store::StoreResult,
};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

fn builder() -> RegistryBuilder {
    Registry::builder().without_compiled()
}

fn add(registry: &Registry, name: &str, policy: ToolPolicy, handler: Arc<dyn Handler>) {
    let spec = ToolSpec::new(name, json!({"type": "object"}));
    registry.register(spec, policy, Some(handler)).unwrap();
}

fn ada(registry: &Registry) -> ToolContext {
    registry.context(Caller::new("ada", Permission::User))
}

async fn call(registry: &Registry, name: &str) -> ToolOutcome {
    registry.execute(&ada(registry), ToolCall::new(name, json!({}))).await
}

fn kind(outcome: &ToolOutcome) -> Option<ErrorKind> {
    outcome.result.as_ref().err().map(ToolError::kind)
}

/// A tool that says when it runs, and never ends.
fn endless() -> (Arc<dyn Handler>, Arc<Notify>) {
    let runs = Arc::new(Notify::new());
    let signal = Arc::clone(&runs);
    let handler = handler_fn(move |_, _| {
        signal.notify_one();
        std::future::pending()
    });
    (handler, runs)
}

/// Keeps records, each after a pause.
#[derive(Default)]
struct SlowAudit(Mutex<Vec<AuditRecord>>);

#[async_trait]
impl AuditSink for SlowAudit {
    async fn record(&self, record: AuditRecord) -> StoreResult<()> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.0.lock().unwrap().push(record);
        Ok(())
    }
}

impl SlowAudit {
    fn shape(&self) -> Vec<(Phase, Option<ErrorKind>)> {
        self.0.lock().unwrap().iter().map(|record| (record.phase, record.error)).collect()
    }
}

#[tokio::test]
async fn k17_a_dropped_call_leaves_its_outcome() {
    let audit = Arc::new(SlowAudit::default());
    let registry = builder().audit(audit.clone()).build().unwrap();
    let (handler, runs) = endless();
    add(&registry, "act", ToolPolicy::new(), handler);
    let running = tokio::spawn({
        let registry = registry.clone();
        async move { call(&registry, "act").await }
    });
    runs.notified().await;
    running.abort();
    assert!(running.await.is_err());
    registry.finished().await;
    assert_eq!(audit.shape(), [(Phase::Intent, None), (Phase::Outcome, Some(ErrorKind::Cancelled))]);
}

#[tokio::test]
async fn k17_an_outcome_that_is_being_written_is_written_to_its_end() {
    let audit = Arc::new(SlowAudit::default());
    let registry = builder().audit(audit.clone()).build().unwrap();
    let acted = Arc::new(Notify::new());
    let signal = Arc::clone(&acted);
    let handler = handler_fn(move |_, _| {
        signal.notify_one();
        async { Ok(ToolResult::new("done")) }
    });
    add(&registry, "act", ToolPolicy::new(), handler);
    let running = tokio::spawn({
        let registry = registry.clone();
        async move { call(&registry, "act").await }
    });
    acted.notified().await;
    // The tool is done, and its outcome is under way.
    running.abort();
    assert!(running.await.is_err());
    registry.finished().await;
    assert_eq!(audit.shape(), [(Phase::Intent, None), (Phase::Outcome, None)]);
}

/// Counts in memory, each time after a pause.
#[derive(Default)]
struct SlowUsage {
    counted: MemoryUsage,
    begun: AtomicU32,
    ended: AtomicU32,
}

#[async_trait]
impl Usage for SlowUsage {
    async fn charge(&self, charge: &Charge) -> StoreResult<Option<Limited>> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(20)).await;
        let limited = self.counted.charge(charge).await;
        self.ended.fetch_add(1, Ordering::SeqCst);
        limited
    }

    async fn refund(&self, charge: &Charge) -> StoreResult<()> {
        self.counted.refund(charge).await
    }
}

#[tokio::test]
async fn k17_a_call_that_is_dropped_before_it_runs_gives_its_charge_back() {
    let usage = Arc::new(SlowUsage::default());
    let concurrency = Concurrency { max_running: 1, max_waiting: 8, ..Concurrency::default() };
    let registry = builder().usage(usage.clone()).concurrency(concurrency).build().unwrap();
    let (handler, runs) = endless();
    add(&registry, "endless", ToolPolicy::new(), handler);
    add(
        &registry,
        "act",
        ToolPolicy { daily_limit: 1, ..ToolPolicy::new() },
        handler_fn(|_, _| async { Ok(ToolResult::new(1)) }),
    );
    let running = tokio::spawn({
        let registry = registry.clone();
        async move { call(&registry, "endless").await }
    });
    runs.notified().await;
    // Dropped while it is counted, and while it waits for its turn.
    for (charges, number) in [(&usage.begun, 1), (&usage.ended, 2)] {
        let reached = async {
            while charges.load(Ordering::SeqCst) < number {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            outcome = call(&registry, "act") => panic!("it was not dropped: {outcome:?}"),
            () = reached => {}
        }
        registry.finished().await;
    }
    running.abort();
    let _ = running.await;
    assert!(call(&registry, "act").await.is_success());
    assert_eq!(usage.begun.load(Ordering::SeqCst), 3);
    assert_eq!(kind(&call(&registry, "act").await), Some(ErrorKind::ToolRateLimited));
}

/// Calls another tool, and then says what that gave.
fn calling(name: &'static str) -> Arc<dyn Handler> {
    handler_fn(move |context: ToolContext, _| async move {
        let outcome = context.registry().unwrap().execute(&context, ToolCall::new(name, json!({}))).await;
        Ok(ToolResult::new(outcome.for_model()))
    })
}

#[tokio::test(start_paused = true)]
async fn k4_a_nested_call_does_not_wait_for_the_call_around_it() {
    let one = ToolPolicy { max_concurrent: 1, ..ToolPolicy::new() };
    let registry = builder()
        .concurrency(Concurrency { max_running: 1, max_waiting: 8, ..Concurrency::default() })
        .build()
        .unwrap();
    let depth = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&depth);
    let again = handler_fn(move |context: ToolContext, _| {
        let seen = Arc::clone(&seen);
        async move {
            if seen.fetch_add(1, Ordering::SeqCst) == 3 {
                return Ok(ToolResult::new("deep"));
            }
            let outcome =
                context.registry().unwrap().execute(&context, ToolCall::new("again", json!({}))).await;
            // The permit is back by now.
            assert_eq!(context.registry().unwrap().queues().all.running, 1);
            outcome.result
        }
    });
    add(&registry, "again", one, again);
    assert_eq!(call(&registry, "again").await.for_model(), "deep");
    // Two that call each other, both at once.
    let leaf = handler_fn(|_, _| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(ToolResult::new("leaf"))
    });
    add(&registry, "leaf", one, leaf);
    add(&registry, "a", one, calling("b"));
    add(&registry, "b", one, calling("leaf"));
    let (first, second) = tokio::join!(call(&registry, "a"), call(&registry, "b"));
    assert_eq!((first.for_model(), second.for_model()), ("leaf".into(), "leaf".into()));
    assert_eq!((registry.queues().all.running, registry.queues().all.waiting), (0, 0));
}

#[tokio::test]
async fn k4_calls_that_nest_without_end_are_stopped() {
    let registry = builder().build().unwrap();
    add(&registry, "again", ToolPolicy::new(), calling("again"));
    let outcome = call(&registry, "again").await;
    assert!(outcome.for_model().contains("more than 8 calls are nested"), "{}", outcome.for_model());
}

#[tokio::test(start_paused = true)]
async fn k5_as_many_retries_as_can_be_asked_for_do_not_overflow() {
    let audit = Arc::new(MemoryAudit::new(1));
    let registry = builder().audit(audit.clone()).build().unwrap();
    let tries = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&tries);
    let handler = handler_fn(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Err(ToolError::failed("no").retryable()) }
    });
    add(&registry, "act", ToolPolicy::new(), handler);
    let wanted = ToolCall::new("act", json!({})).with_retries(u8::MAX);
    assert!(!registry.execute(&ada(&registry), wanted).await.is_success());
    assert_eq!(tries.load(Ordering::SeqCst), 256);
    assert_eq!(audit.records()[0].attempt, 255);
}

#[tokio::test(start_paused = true)]
async fn k18_only_what_reads_or_is_idempotent_is_tried_again_and_not_at_once() {
    for (effect, idempotent, tries) in [
        (Effect::Read, false, 3),
        (Effect::Write, true, 3),
        (Effect::Write, false, 1),
        (Effect::Destructive, true, 3),
        (Effect::Destructive, false, 1),
    ] {
        let registry = builder().approve_destructive(false).build().unwrap();
        let times = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&times);
        let handler = handler_fn(move |_, _| {
            seen.lock().unwrap().push(tokio::time::Instant::now());
            // It may have acted before its time was up.
            std::future::pending()
        });
        let timeout = Duration::from_millis(10);
        add(&registry, "act", ToolPolicy { effect, idempotent, timeout, ..ToolPolicy::new() }, handler);
        let wanted = ToolCall::new("act", json!({})).with_retries(2);
        assert_eq!(kind(&registry.execute(&ada(&registry), wanted).await), Some(ErrorKind::Timeout));
        let times = times.lock().unwrap();
        assert_eq!(times.len(), tries, "{effect:?} {idempotent}");
        let pauses: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0] - timeout).collect();
        assert!(pauses.iter().all(|pause| *pause >= Duration::from_millis(200)), "{pauses:?}");
        assert!(pauses.is_sorted());
    }
}

/// A tool that asks whether it is there, and counts that.
struct Counted(Arc<AtomicU32>);

impl Handler for Counted {
    fn unavailable(&self, context: &ToolContext) -> Option<String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        context.resource::<String>().is_none().then(|| "there is no text".to_owned())
    }

    fn call<'a>(&'a self, context: &'a ToolContext, _: Map<String, Value>) -> ToolFuture<'a> {
        let text = context.resource::<String>().map(|text| String::clone(&text));
        Box::pin(async { Ok(ToolResult::new(text.unwrap_or_default())) })
    }
}

#[tokio::test]
async fn k20_availability_is_asked_once_in_a_call() {
    let (asked, made) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut resources = Resources::new();
    let count = Arc::clone(&made);
    resources.insert_by_request(move |context| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(context.caller().user.clone())
    });
    let registry = builder().resources(resources).build().unwrap();
    add(&registry, "act", ToolPolicy::new(), Arc::new(Counted(Arc::clone(&asked))));
    assert_eq!(call(&registry, "act").await.for_model(), "ada");
    assert_eq!((asked.load(Ordering::SeqCst), made.load(Ordering::SeqCst)), (1, 1));
    // Each call asks anew.
    assert_eq!(call(&registry, "act").await.for_model(), "ada");
    assert_eq!((asked.load(Ordering::SeqCst), made.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test]
async fn k8_with_the_log_as_audit_a_filter_that_drops_records_stops_calls() {
    use tracing_subscriber::{EnvFilter, fmt};

    let (ran, count) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counting = Arc::clone(&ran);
    let handler = handler_fn(move |_, _| {
        counting.fetch_add(1, Ordering::SeqCst);
        async { Ok(ToolResult::new(1)) }
    });
    let registry = builder().audit(Arc::new(LogAudit)).build().unwrap();
    add(&registry, "act", ToolPolicy::new(), handler);
    for (filter, runs) in [("info,toolrack::audit=off", 0), ("warn", 0), ("warn,toolrack::audit=info", 1)] {
        let subscriber = fmt().with_writer(std::io::sink).with_env_filter(EnvFilter::new(filter)).finish();
        let _logging = tracing::subscriber::set_default(subscriber);
        let outcome = call(&registry, "act").await;
        let refused = (runs == 0).then_some(ErrorKind::NotAudited);
        assert_eq!((kind(&outcome), ran.swap(0, Ordering::SeqCst)), (refused, runs), "{filter}");
        count.fetch_add(1, Ordering::SeqCst);
    }
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

/// Counts up to a number.
#[tool(timeout = registry_core::prelude::millis(200))]
fn count_to(
    ctx: &ToolContext,
    /// How far.
    number: u64,
) -> Result<u64, ToolError> {
    let mut counted = 0;
    while counted < number {
        if ctx.is_cancelled() {
            return Err(ToolError::failed("stopped"));
        }
        std::thread::sleep(Duration::from_millis(1));
        counted += 1;
    }
    Ok(counted)
}

#[tokio::test]
async fn u3_a_plain_function_holds_up_nothing_and_ends_at_its_timeout() {
    let registry = Registry::builder().build().unwrap();
    let context = ada(&registry);
    let count =
        |number: u64| registry.execute(&context, ToolCall::new("count_to", json!({"number": number})));
    assert_eq!(count(3).await.for_model(), "3");
    // On one thread: while it computes, others run.
    let ticks = async {
        let mut longest = Duration::ZERO;
        for _ in 0..10 {
            let since = std::time::Instant::now();
            tokio::time::sleep(Duration::from_millis(5)).await;
            longest = longest.max(since.elapsed());
        }
        longest
    };
    let (outcome, longest) = tokio::join!(count(u64::MAX), ticks);
    assert_eq!(kind(&outcome), Some(ErrorKind::Timeout));
    assert!(longest < Duration::from_millis(150), "{longest:?}");
    // Called by code it is the function that was written.
    assert_eq!(count_to(&context, 2).unwrap(), 2);
}

#[tokio::test]
async fn u3_a_tool_that_holds_its_thread_is_named_in_the_log() {
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let registry = builder().build().unwrap();
    let computing = handler_fn(|_, _| async {
        std::thread::sleep(Duration::from_millis(1050));
        Ok(ToolResult::new(1))
    });
    add(&registry, "compute", ToolPolicy::new(), computing);
    assert!(call(&registry, "compute").await.is_success());
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("tool_blocks") && log.contains("tool=\"compute\""), "{log}");
}
