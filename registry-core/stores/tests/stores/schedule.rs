//! Calls that are made again and again: when, as whom, and once (B5, B10).

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use registry_core::{
    Caller, CallerAuthority, ErrorKind, Handler, Origin, Permission, Registry, ToolCall, ToolContext,
    ToolError, ToolPolicy, ToolResult, ToolSpec,
    guard::audit::{MemoryAudit, Phase},
    handler_fn,
    store::StoreResult,
    testing::TestClock,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolrack_stores::schedule::{Host, Job, Jobs, MemoryJobs, NewJob, Schedule, run};

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// A registry with a tool that counts its calls, and one that is never done by itself.
struct Site {
    registry: Registry,
    audit: Arc<MemoryAudit>,
    calls: Arc<AtomicUsize>,
    jobs: Arc<MemoryJobs>,
    schedule: Schedule,
    /// What the owner of any job is now; `None` where the owner is gone.
    owner: Arc<Mutex<Option<Caller>>>,
}

fn tool(registry: &Registry, name: &str, policy: ToolPolicy, handler: Arc<dyn Handler>) {
    let schema = json!({
        "type": "object", "properties": {"room": {"type": "string"}, "pin": {"type": "integer"}},
        "additionalProperties": false,
    });
    registry.register(ToolSpec::new(name, schema), policy, Some(handler)).unwrap();
}

impl Site {
    fn new() -> Self {
        let audit = Arc::new(MemoryAudit::new(100));
        let registry = Registry::builder().without_compiled().audit(audit.clone()).build().unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let count = handler_fn(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Ok(ToolResult::new("done")))
        });
        let user = ToolPolicy { permission: Permission::User, ..ToolPolicy::new() };
        tool(&registry, "clean", user, count);
        let counted = Arc::clone(&calls);
        let endless = handler_fn(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::pending()
        });
        tool(&registry, "watch", user, endless);
        tool(
            &registry,
            "admin_only",
            ToolPolicy { permission: Permission::Admin, ..ToolPolicy::new() },
            handler_fn(|_, _| std::future::ready(Ok(ToolResult::new(())))),
        );
        let owner = Arc::new(Mutex::new(Some(ada())));
        let jobs = Arc::new(MemoryJobs::default());
        let schedule = Schedule::new(jobs.clone());
        Self { registry, audit, calls, jobs, schedule, owner }
    }

    /// Runs until the token is cancelled.
    fn start(&self, stop: &CancellationToken) -> tokio::task::JoinHandle<()> {
        let host = Arc::new(Owners { registry: self.registry.clone(), owner: Arc::clone(&self.owner) });
        tokio::spawn(run(self.schedule.clone(), host, stop.clone(), stop.clone()))
    }

    /// Adds a job whose time came long ago.
    async fn overdue(&self, tool: &str) {
        assert!(self.jobs.add(job(tool), 10).await.unwrap());
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    async fn only_job(&self) -> Job {
        self.jobs.of_tenant("default").await.unwrap().pop().unwrap()
    }

    /// Waits until the only job has been made.
    async fn made(&self) -> Job {
        for _ in 0..500 {
            let job = self.only_job().await;
            if job.last_run.is_some() {
                return job;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the job was not made within 5 s");
    }
}

fn ada() -> Caller {
    Caller::new("ada", Permission::User)
}

fn job(tool: &str) -> Job {
    Job {
        id: "one".into(),
        tenant: "default".into(),
        owner: ada(),
        tool: tool.into(),
        arguments: Map::new(),
        // So rare that the next time does not come while a test runs.
        cron: "0 0 1 1 *".into(),
        time_zone: "UTC".into(),
        created_at: at("2026-01-01T00:00:00Z"),
        next_run: at("2026-01-01T00:01:00Z"),
        last_run: None,
    }
}

struct Owners {
    registry: Registry,
    owner: Arc<Mutex<Option<Caller>>>,
}

struct Now(Arc<Mutex<Option<Caller>>>);

#[async_trait]
impl CallerAuthority for Now {
    async fn caller(&self) -> StoreResult<Option<Caller>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

#[async_trait]
impl Host for Owners {
    async fn context(&self, job: &Job) -> StoreResult<(Registry, ToolContext)> {
        let context = self.registry.context(job.owner.clone());
        let context = context.with_authority(Arc::new(Now(Arc::clone(&self.owner))));
        Ok((self.registry.clone(), context))
    }
}

#[tokio::test]
async fn b5_a_job_is_made_as_its_owner_and_leaves_the_records_of_any_call() {
    let (site, stop) = (Site::new(), CancellationToken::new());
    site.overdue("clean").await;
    let running = site.start(&stop);
    let job = site.made().await;
    stop.cancel();
    running.await.unwrap();

    assert_eq!(site.calls(), 1);
    // What was missed is made up for once.
    assert!(job.next_run > Timestamp::now(), "{}", job.next_run);
    let run = job.last_run.unwrap();
    assert!(run.success && run.error.is_none(), "{run:?}");
    let records = site.audit.records();
    let phases: Vec<Phase> = records.iter().map(|record| record.phase).collect();
    assert_eq!(phases, [Phase::Intent, Phase::Outcome]);
    for record in records {
        assert_eq!((record.user.as_str(), &record.origin), ("ada", &Origin::Schedule));
        assert_eq!((record.tool.as_str(), &record.call_id), ("clean", &run.call_id));
    }
}

#[tokio::test]
async fn b10_of_several_clockworks_one_makes_the_call() {
    let (site, stop) = (Site::new(), CancellationToken::new());
    for number in 0..20 {
        let job = Job { id: format!("job-{number}"), ..job("clean") };
        assert!(site.jobs.add(job, 20).await.unwrap());
    }
    let running: Vec<_> = (0..8).map(|_| site.start(&stop)).collect();
    while site.calls() < 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    stop.cancel();
    for running in running {
        running.await.unwrap();
    }
    assert_eq!(site.calls(), 20);
}

#[tokio::test]
async fn b5_what_its_owner_may_not_do_by_then_is_refused_with_a_record() {
    let guest = Caller::new("ada", Permission::Guest);
    for (now, kind) in [(None, ErrorKind::PermissionDenied), (Some(guest), ErrorKind::PermissionDenied)] {
        let (site, stop) = (Site::new(), CancellationToken::new());
        *site.owner.lock().unwrap() = now;
        site.overdue("clean").await;
        let running = site.start(&stop);
        let run = site.made().await.last_run.unwrap();
        stop.cancel();
        running.await.unwrap();
        assert!(!run.success && run.error.is_some(), "{run:?}");
        assert_eq!(site.calls(), 0);
        let records = site.audit.records();
        assert_eq!(records.len(), 1);
        assert_eq!((records[0].error, &records[0].origin), (Some(kind), &Origin::Schedule));
    }
}

#[tokio::test]
async fn b5_of_what_a_failed_job_came_to_so_much_is_kept() {
    let long = "x".repeat(1 << 20);
    let (said, failed) = (long.clone(), long.clone());
    let unsuccessful = handler_fn(move |_, _| std::future::ready(Ok(ToolResult::unsuccessful(said.clone()))));
    let fails = handler_fn(move |_, _| std::future::ready(Err(ToolError::failed(failed.clone()))));
    for handler in [unsuccessful, fails] {
        let (site, stop) = (Site::new(), CancellationToken::new());
        let user = ToolPolicy { permission: Permission::User, ..ToolPolicy::new() };
        tool(&site.registry, "fetch", user, handler);
        site.overdue("fetch").await;
        let running = site.start(&stop);
        let run = site.made().await.last_run.unwrap();
        stop.cancel();
        running.await.unwrap();
        let error = run.error.unwrap();
        assert!(error.starts_with("xxx") && (4096..4200).contains(&error.len()), "{}", error.len());
    }
}

#[tokio::test]
async fn b7_a_stop_cancels_what_is_under_way_and_waits_for_its_record() {
    let (site, stop) = (Site::new(), CancellationToken::new());
    site.overdue("watch").await;
    let running = site.start(&stop);
    while site.calls() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // It is due again, and passed over while it goes on.
    let known = site.only_job().await;
    assert!(site.jobs.claim(&known, at("2026-01-01T00:02:00Z")).await.unwrap());
    let later = new_job("clean", "0 0 1 1 *", None, json!({}));
    add(&site, &site.schedule, Permission::User, later).await.unwrap();
    while site.jobs.next().await.unwrap().unwrap() < Timestamp::now() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(site.calls(), 1);
    stop.cancel();
    running.await.unwrap();
    let outcomes = site.audit.records().into_iter().filter(|record| record.phase == Phase::Outcome);
    let errors: Vec<_> =
        outcomes.filter(|record| record.tool == "watch").map(|record| record.error).collect();
    assert_eq!(errors, [Some(ErrorKind::Cancelled)]);
}

/// The error of a tool that adds a job.
async fn add(site: &Site, schedule: &Schedule, level: Permission, job: NewJob) -> Result<Job, String> {
    let added = Arc::new(Mutex::new(None));
    let (schedule, kept) = (schedule.clone(), Arc::clone(&added));
    let handler = handler_fn(move |context: ToolContext, _| {
        let (schedule, kept, job) = (schedule.clone(), Arc::clone(&kept), job.clone());
        async move {
            let added = schedule.add(&context, job).await;
            *kept.lock().unwrap() = Some(added.map_err(|error| error.message().to_owned()));
            Ok(ToolResult::new(()))
        }
    });
    let registry = site.registry.clone();
    registry.remove("add");
    registry
        .register(ToolSpec::new("add", json!({"type": "object"})), ToolPolicy::new(), Some(handler))
        .unwrap();
    let context = registry.context(Caller::new("ada", level));
    assert!(registry.execute(&context, ToolCall::new("add", json!({}))).await.is_success());
    let added = added.lock().unwrap().take();
    added.unwrap()
}

fn new_job(tool: &str, cron: &str, time_zone: Option<&str>, arguments: Value) -> NewJob {
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    NewJob { tool: tool.into(), arguments, cron: cron.into(), time_zone: time_zone.map(str::to_owned) }
}

#[tokio::test]
async fn p6_a_job_that_could_never_be_made_is_not_added_and_the_error_says_why() {
    let site = Site::new();
    let schedule = site.schedule.clone();
    for (tool, cron, zone, arguments, expected) in [
        ("claen", "0 9 * * *", None, json!({}), "claen"),
        ("admin_only", "0 9 * * *", None, json!({}), "it needs the level admin"),
        ("clean", "0 9 * * *", None, json!({"floor": 1}), "there is no `floor`"),
        ("clean", "every day", None, json!({}), "`every day` is no cron pattern"),
        ("clean", "", None, json!({}), "is no cron pattern"),
        ("clean", "0 25 * * *", None, json!({}), "is no cron pattern"),
        ("clean", "*/5 0 9 * * *", None, json!({}), "is no cron pattern"),
        ("clean", "0 0 30 2 *", None, json!({}), "names no time that ever comes"),
        ("clean", "0 9 * * *", Some("Europe/Olso"), json!({}), "there is no time zone `Europe/Olso`"),
    ] {
        let job = new_job(tool, cron, zone, arguments);
        let error = add(&site, &schedule, Permission::User, job).await.unwrap_err();
        assert!(error.contains(expected), "{error}\nwithout\n{expected}");
    }
    assert_eq!(site.jobs.of_tenant("default").await.unwrap(), []);
    for _ in 0..100 {
        add(&site, &schedule, Permission::User, new_job("clean", "0 9 * * *", None, json!({})))
            .await
            .unwrap();
    }
    let one_more = new_job("clean", "0 9 * * *", None, json!({}));
    let error = add(&site, &schedule, Permission::User, one_more).await.unwrap_err();
    assert!(error.contains("ada has 100 jobs already"), "{error}");
}

#[tokio::test]
async fn a48_a_job_has_so_many_bytes_and_no_more() {
    let site = Site::new();
    let schedule = site.schedule.clone();
    let long = "7".repeat((64 << 10) - r#"{"room":""}clean0 9 * * *"#.len());
    let job = |room: &str, cron: &str| new_job("clean", cron, None, json!({"room": room}));
    add(&site, &schedule, Permission::User, job(&long, "0 9 * * *")).await.unwrap();
    for (room, cron) in [(format!("{long}7"), "0 9 * * *".to_owned()), (String::new(), "0,".repeat(40_000))] {
        let error = add(&site, &schedule, Permission::User, job(&room, &cron)).await.unwrap_err();
        assert!(error.starts_with("the job is longer than 65536 bytes"), "{error}");
    }
    assert_eq!(site.jobs.of_tenant("default").await.unwrap().len(), 1);
}

#[tokio::test]
async fn p6_the_next_time_is_that_of_the_zone() {
    let site = Site::new();
    // The clocks of Oslo go from 2 to 3 on this night.
    let schedule = site.schedule.clone().with_clock(TestClock::at(at("2026-03-28T20:00:00Z")));
    for (cron, zone, next) in [
        ("0 9 * * *", Some("UTC"), "2026-03-29T09:00:00Z"),
        ("0 9 * * *", Some("Europe/Oslo"), "2026-03-29T07:00:00Z"),
        ("0 9 * * MON-FRI", Some("Asia/Tokyo"), "2026-03-30T00:00:00Z"),
        ("@monthly", Some("UTC"), "2026-04-01T00:00:00Z"),
    ] {
        let job = new_job("clean", cron, zone, json!({"pin": "7"}));
        let job = add(&site, &schedule, Permission::User, job).await.unwrap();
        assert_eq!(job.next_run, at(next), "{cron} {zone:?}");
        // As the tool takes them.
        assert_eq!(job.arguments["pin"], 7);
    }
    let next: Vec<_> = site.jobs.of_tenant("default").await.unwrap();
    assert!(next.is_sorted_by_key(|job| job.next_run));
}
