//! A call down the whole path with what guards it: what each step costs in memory, and what calls that are audited in a store come to
//! when many are made at once.
//!
//! `cargo bench -p toolrack-stores`
//!
//! Behind divan's table the arms are run in turns, and their times are given as ratios: on a machine that does other things besides,
//! those say more than the times.

#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use divan::{Bencher, black_box};
use registry_core::{
    Caller, Permission, Registry, RegistryBuilder, ToolCall, ToolContext, ToolPolicy, ToolResult, ToolSpec,
    guard::{
        audit::{AuditRecord, AuditSink, MemoryAudit},
        gate::{Gate, GateAnswer, GateError, GateRequest},
    },
    handler_fn,
    store::StoreResult,
};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use toolrack_stores::{Durability, Redis, RedisUsage, SqlStore, SqliteSettings};

fn main() {
    divan::main();
    if std::env::args().any(|argument| argument == "--bench") {
        steps();
        stores::at_once();
    }
}

struct Approves;

#[async_trait]
impl Gate for Approves {
    fn name(&self) -> &str {
        "approves"
    }

    async fn check(&self, _: GateRequest<'_>) -> Result<GateAnswer, GateError> {
        Ok(GateAnswer::Approved)
    }
}

/// No audit at all.
struct Unaudited;

#[async_trait]
impl AuditSink for Unaudited {
    fn is_enabled(&self) -> bool {
        false
    }

    async fn record(&self, _: AuditRecord) -> StoreResult<()> {
        Ok(())
    }
}

/// As often as anybody calls, and counted all the same.
const LIMITED: ToolPolicy = ToolPolicy { daily_limit: u32::MAX, ..ToolPolicy::new() };
const GATED: ToolPolicy = ToolPolicy { requires_gate: true, ..LIMITED };

/// The arms, each with one step more than the one before.
const ARMS: [&str; 4] = ["no guards", "with limits", "with gate", "with audit"];

fn arm(name: &str) -> Registry {
    let builder = Registry::builder().without_compiled().gate(Arc::new(Approves)).audit(Arc::new(Unaudited));
    match name {
        "no guards" => with_tool(builder, ToolPolicy::new()),
        "with limits" => with_tool(builder, LIMITED),
        "with gate" => with_tool(builder, GATED),
        _ => with_tool(builder.audit(Arc::new(MemoryAudit::new(1024))), GATED),
    }
}

fn with_tool(builder: RegistryBuilder, policy: ToolPolicy) -> Registry {
    let registry = builder.build().unwrap();
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let handler = handler_fn(|_, arguments| async move {
        black_box(arguments.len());
        Ok(ToolResult::new(()))
    });
    registry.register(ToolSpec::new("weather", schema), policy, Some(handler)).unwrap();
    registry
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn calls(number: usize) -> Vec<ToolCall> {
    (0..number).map(|_| ToolCall::new("weather", json!({"city": "Oslo"}))).collect()
}

async fn run(registry: &Registry, context: &ToolContext, calls: Vec<ToolCall>) {
    for call in calls {
        let outcome = registry.execute(context, call).await;
        assert!(outcome.is_success(), "{}", outcome.for_model());
    }
}

/// One call after the other.
#[divan::bench(args = ARMS)]
fn one_call(bencher: Bencher<'_, '_>, name: &str) {
    let (registry, runtime) = (arm(name), one_thread());
    let context = registry.context(Caller::new("bench", Permission::User));
    bencher
        .with_inputs(|| calls(100))
        .input_counter(Vec::len)
        .bench_local_values(|calls| runtime.block_on(run(&registry, &context, calls)));
}

/// The arms in turns, so that all of them have the same neighbours.
fn steps() {
    const ROUNDS: usize = 300;
    let runtime = one_thread();
    let arms = ARMS.map(|name| (name, arm(name)));
    let mut times = ARMS.map(|_| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        for ((_, registry), times) in arms.iter().zip(&mut times) {
            let context = registry.context(Caller::new("bench", Permission::User));
            let calls = calls(100);
            let began = Instant::now();
            runtime.block_on(run(registry, &context, calls));
            times.push(began.elapsed() / 100);
        }
    }
    let medians = times.map(|mut times| {
        times.sort_unstable();
        times.get(ROUNDS / 2).copied().unwrap_or_default()
    });
    println!("\none call in memory, median of {ROUNDS} rounds in turns:");
    let [bare, .., whole] = medians;
    let mut before = Duration::ZERO;
    for (name, time) in ARMS.iter().zip(medians) {
        let share = 100.0 * time.saturating_sub(before).as_secs_f64() / whole.as_secs_f64();
        let ratio = time.as_secs_f64() / bare.as_secs_f64();
        println!(
            "  {name:12} {time:>9.2?}   {ratio:.2} of the bare call; the step is {share:.0} % of the whole"
        );
        before = time;
    }
}

/// Many calls at once.
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod stores {
    use registry_core::guard::limits::{MemoryUsage, Usage};

    use super::*;

    const AT_ONCE: usize = 512;
    const FOR: Duration = Duration::from_secs(2);

    fn guarded(usage: Arc<dyn Usage>, audit: Arc<dyn AuditSink>, policy: ToolPolicy) -> Registry {
        // Those who call without waiting for a database would use their share up within seconds.
        let builder =
            Registry::builder().without_compiled().gate(Arc::new(Approves)).audit_mebibytes_per_user(0);
        with_tool(builder.usage(usage).audit(audit), policy)
    }

    /// Calls a second, as many at once as are waited for.
    fn rate(runtime: &Runtime, registry: &Registry) -> f64 {
        let began = Instant::now();
        let callers = (0..AT_ONCE).map(|number| {
            let registry = registry.clone();
            runtime.spawn(async move {
                let context = registry.context(Caller::new(format!("user {number}"), Permission::User));
                let mut made = 0_u32;
                while began.elapsed() < FOR {
                    run(&registry, &context, calls(1)).await;
                    made += 1;
                }
                made
            })
        });
        let callers: Vec<_> = callers.collect();
        let made: u32 = runtime.block_on(async {
            let mut made = 0;
            for caller in callers {
                made += caller.await.unwrap();
            }
            made
        });
        f64::from(made) / began.elapsed().as_secs_f64()
    }

    pub(super) fn at_once() {
        const ROUNDS: usize = 3;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str, durability| {
            let settings = SqliteSettings { durability, ..SqliteSettings::new(folder.path().join(name)) };
            Arc::new(runtime.block_on(settings.open()).unwrap())
        };
        let (file, disk) = (open("process.db", Durability::Process), open("power.db", Durability::Power));
        let memory: Arc<dyn Usage> = Arc::new(MemoryUsage::default());
        let mut arms = vec![
            ("memory", guarded(memory, Arc::new(MemoryAudit::new(1024)), GATED)),
            ("SQLite, audit alone", guarded(file.clone(), file.clone(), ToolPolicy::new())),
            ("SQLite, limits, gate and audit", guarded(file.clone(), file.clone(), GATED)),
            ("SQLite, the same, each commit on the disk", guarded(disk.clone(), disk, GATED)),
        ];
        let _server = redis::in_front(&runtime, &mut arms, file);
        println!(
            "\ncalls a second, {AT_ONCE} at once on 2 threads, best and median of {ROUNDS} rounds of {FOR:?} in turns:"
        );
        let mut rates: Vec<Vec<f64>> = arms.iter().map(|_| Vec::new()).collect();
        for _ in 0..ROUNDS {
            for ((_, registry), rates) in arms.iter().zip(&mut rates) {
                rates.push(rate(&runtime, registry));
            }
        }
        let mut of_memory = None;
        for ((name, _), rates) in arms.iter().zip(&mut rates) {
            rates.sort_unstable_by(f64::total_cmp);
            let (median, best) =
                (rates.get(ROUNDS / 2).copied().unwrap_or(0.0), rates.last().copied().unwrap_or(0.0));
            let memory = *of_memory.get_or_insert(median);
            println!("  {name:45} {best:>9.0} {median:>9.0}   {:.3} of memory", median / memory);
        }
        if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
            println!("load of the machine at the end: {}", load.trim());
        }
    }

    /// A server of its own, where the program is installed.
    mod redis {
        use std::{
            net::TcpListener,
            process::{Child, Command, Stdio},
        };

        use super::*;

        pub(super) struct Server(Child);

        impl Drop for Server {
            fn drop(&mut self) {
                let _ = self.0.kill();
                let _ = self.0.wait();
            }
        }

        pub(super) fn in_front(
            runtime: &Runtime,
            arms: &mut Vec<(&'static str, Registry)>,
            store: Arc<SqlStore>,
        ) -> Option<Server> {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
            let server = Command::new("redis-server")
                .args(["--port", &port, "--bind", "127.0.0.1", "--save", ""])
                .stdout(Stdio::null())
                .spawn();
            let Ok(server) = server else {
                println!("without the arm of Redis: redis-server is not installed");
                return None;
            };
            std::thread::sleep(Duration::from_millis(500));
            let _entered = runtime.enter();
            let redis = Redis::new(&format!("redis://127.0.0.1:{port}/")).unwrap();
            let usage = RedisUsage::new(redis, SqlStore::clone(&store));
            arms.push((
                "Redis before SQLite, limits, gate and audit",
                guarded(Arc::new(usage), store, GATED),
            ));
            Some(Server(server))
        }
    }
}
