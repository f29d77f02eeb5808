//! Makes the calls of jobs when their time has come.

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Job, LastRun, Schedule, next_after};
use registry_core::{Origin, Registry, ToolCall, ToolContext, store::StoreResult, text::cut};

/// How often the store is asked, for jobs that another server or process has added.
const POLL: Duration = Duration::from_secs(5);
/// So many jobs are taken at a time.
const AT_ONCE: usize = 64;
/// So much of an error is kept with its job, in bytes: all jobs of a tenant are listed at once.
const MAX_ERROR: usize = 4096;

/// Knows in what a job's call is made.
#[async_trait]
pub trait Host: Send + Sync {
    /// The registry of the job's tenant, and the context of its owner, with no more than the owner may do now and than the job says.
    /// An owner who is gone is one whose [`CallerAuthority`](registry_core::CallerAuthority) says so: the call is refused and leaves its record.
    /// Where it fails the call is not made this time.
    async fn context(&self, job: &Job) -> StoreResult<(Registry, ToolContext)>;
}

/// Makes the calls of all tenants' jobs at their times, until `stop` is cancelled, and waits for those that are under way then; `cancel`
/// cancels them. One of these for each process.
///
/// A job whose last call still goes on here is passed over.
pub async fn run(
    schedule: Schedule,
    host: Arc<dyn Host>,
    stop: CancellationToken,
    cancel: CancellationToken,
) {
    let clockwork = Arc::new(Clockwork { schedule, host, cancel, under_way: Mutex::default() });
    let calls = TaskTracker::new();
    loop {
        let pause = match clockwork.take_due(&calls).await {
            Ok(pause) => pause,
            Err(cause) => {
                tracing::error!(%cause, "schedule_failed");
                POLL
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = clockwork.schedule.changed.notified() => {}
            () = stop.cancelled() => break,
        }
    }
    calls.close();
    calls.wait().await;
}

struct Clockwork {
    schedule: Schedule,
    host: Arc<dyn Host>,
    cancel: CancellationToken,
    /// The jobs whose calls go on, by tenant and id.
    under_way: Mutex<HashSet<(String, String)>>,
}

impl Clockwork {
    /// Begins the calls that are due, and says how long to wait until the next.
    async fn take_due(self: &Arc<Self>, calls: &TaskTracker) -> StoreResult<Duration> {
        let now = self.schedule.clock.now();
        for job in self.schedule.jobs.due(now, AT_ONCE).await? {
            let next = match next_after(&job.cron, &job.time_zone, now) {
                Ok(next) => next,
                Err(cause) => {
                    tracing::error!(job = job.id, cause, "job_never_again");
                    self.schedule.jobs.remove(&job.tenant, &job.id).await?;
                    continue;
                }
            };
            if self.schedule.jobs.claim(&job, next).await? {
                match UnderWay::begin(self, &job) {
                    Some(under_way) => drop(calls.spawn(Arc::clone(self).make(job, under_way))),
                    None => tracing::warn!(job = job.id, tool = job.tool, "job_still_under_way"),
                }
            }
        }
        let next = self.schedule.jobs.next().await?;
        let left = next.map(|next| next.duration_since(self.schedule.clock.now()));
        Ok(left.map_or(POLL, |left| Duration::try_from(left).unwrap_or_default()).min(POLL))
    }

    /// Makes a job's call and notes what became of it.
    async fn make(self: Arc<Self>, job: Job, _under_way: UnderWay) {
        let at = self.schedule.clock.now();
        let run = match self.host.context(&job).await {
            Ok((registry, context)) => self.call(&job, &registry, context, at).await,
            Err(cause) => {
                tracing::error!(job = job.id, %cause, "job_not_made");
                let error = Some("the server could not make it; its log says why".to_owned());
                LastRun { call_id: String::new(), at, success: false, error }
            }
        };
        if let Err(cause) = self.schedule.jobs.ended(&job, run).await {
            tracing::error!(job = job.id, %cause, "job_not_noted");
        }
    }

    async fn call(&self, job: &Job, registry: &Registry, context: ToolContext, at: Timestamp) -> LastRun {
        let call = ToolCall::new(&job.tool, Value::Object(job.arguments.clone()))
            .with_id(format!("job-{}-{:x}", job.id, at.as_nanosecond()))
            .with_origin(Origin::Schedule);
        let outcome = registry.execute(&context.with_cancellation(self.cancel.child_token()), call).await;
        let success = outcome.is_success();
        tracing::info!(job = job.id, tool = job.tool, call_id = outcome.call_id, success, "job_made");
        let error = match &outcome.result {
            Ok(result) if result.success => None,
            Ok(result) => Some(result.for_model().into_owned()),
            Err(error) => Some(error.message().to_owned()),
        };
        let error = error.map(|error| cut(error, MAX_ERROR));
        LastRun { call_id: outcome.call_id, at, success, error }
    }
}

/// That a job's call goes on.
struct UnderWay {
    clockwork: Arc<Clockwork>,
    key: (String, String),
}

impl UnderWay {
    /// `None` where one goes on already.
    fn begin(clockwork: &Arc<Clockwork>, job: &Job) -> Option<Self> {
        let key = (job.tenant.clone(), job.id.clone());
        let mut under_way = clockwork.under_way.lock();
        let begun = under_way.insert(key.clone());
        begun.then(|| Self { clockwork: Arc::clone(clockwork), key })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut under_way = self.clockwork.under_way.lock();
        under_way.remove(&self.key);
    }
}
