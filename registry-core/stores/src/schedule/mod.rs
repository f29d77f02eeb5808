//! Calls that are made again and again, at times that are given as a cron pattern.
//!
//! A [`Job`] is a call with its times. It is kept in a store ([`Jobs`]), so that it outlasts the process, and whichever of several
//! servers is first at its time makes the call; the others leave it. It is made down the same path as any other call, as its owner and
//! with no more than its owner may do by then: a level that was lowered counts, and the job of a user who was removed does nothing.
//!
//! What fell into a time when no server ran is made up for once, as soon as one does.

mod clockwork;
mod jobs;

use std::sync::Arc;

use croner::parser::{CronParser, Seconds, Year};
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Notify;

pub use clockwork::{Host, run};
pub use jobs::{Jobs, MemoryJobs};
use registry_core::{
    Caller, ErrorKind, Registry, ToolContext, ToolError,
    clock::{Clock, SystemClock},
    random_id,
    store::StoreError,
};

/// How many jobs one user may have.
const MAX_JOBS: usize = 100;
/// How long a job may be in all, in bytes: the names, the pattern, and the arguments as JSON.
const MAX_BYTES: usize = 64 << 10;

/// A call that is made again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Names the job within the tenant.
    pub id: String,
    /// Whose registry it is made in.
    pub tenant: String,
    /// As whom it is made, with what the owner was allowed when the job was added. It is never made with more.
    pub owner: Caller,
    /// The tool.
    pub tool: String,
    /// What the tool is given.
    pub arguments: Map<String, Value>,
    /// When: minute, hour, day of the month, month, day of the week.
    pub cron: String,
    /// The time zone that the pattern is read in, by its IANA name.
    pub time_zone: String,
    /// When it was added (UTC).
    pub created_at: Timestamp,
    /// When it is next made (UTC), to the second.
    pub next_run: Timestamp,
    /// What became of it the last time.
    pub last_run: Option<LastRun>,
}

/// What became of a job the last time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    /// The id of the call, as the audit has it.
    pub call_id: String,
    /// When it was made (UTC).
    pub at: Timestamp,
    /// Whether the tool did what it was asked.
    pub success: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

/// A job to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// The tool.
    pub tool: String,
    /// What the tool is given.
    pub arguments: Map<String, Value>,
    /// When: minute, hour, day of the month, month, day of the week.
    pub cron: String,
    /// The time zone that the pattern is read in, by its IANA name; the machine's where none is named.
    pub time_zone: Option<String>,
}

impl NewJob {
    fn size(&self) -> usize {
        let zone = self.time_zone.as_ref().map_or(0, String::len);
        let arguments = serde_json::to_string(&self.arguments).map_or(usize::MAX, |json| json.len());
        arguments.saturating_add(self.tool.len() + self.cron.len() + zone)
    }
}

/// The jobs, as a resource for tools. Each tool sees those of the tenant it is called in.
#[derive(Clone, derive_more::Debug)]
#[debug("Schedule")]
pub struct Schedule {
    jobs: Arc<dyn Jobs>,
    clock: Arc<dyn Clock>,
    /// Notified of every change made here, for the clockwork to look again.
    changed: Arc<Notify>,
}

impl Schedule {
    /// The jobs that are kept there.
    pub fn new(jobs: Arc<dyn Jobs>) -> Self {
        Self { jobs, clock: Arc::new(SystemClock), changed: Arc::default() }
    }

    /// With another clock than the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Adds a job that is the caller's.
    ///
    /// # Errors
    /// When there is no such tool, the caller may not use it, the arguments do not fit, the pattern or the time zone is none, it
    /// is too long, the caller has too many jobs, or the store fails.
    pub async fn add(&self, context: &ToolContext, job: NewJob) -> Result<Job, ToolError> {
        let registry = registry_of(context)?;
        if job.size() > MAX_BYTES {
            return Err(ToolError::invalid(format!(
                "the job is longer than {MAX_BYTES} bytes; have the tool read what is long from elsewhere"
            )));
        }
        let time_zone = match job.time_zone.filter(|name| !name.is_empty()) {
            Some(name) => name,
            None => name_of(TimeZone::try_system().ok()).map_err(ToolError::invalid)?,
        };
        let now = self.clock.now();
        let next_run = next_after(&job.cron, &time_zone, now).map_err(ToolError::invalid)?;
        let arguments = registry.check_call(context, &job.tool, Value::Object(job.arguments))?;
        if registry.get(&job.tool).is_some_and(|tool| tool.takes_secret()) {
            let message = format!("{} takes a secret, which a schedule does not keep", job.tool);
            return Err(ToolError::invalid(message));
        }
        let job = Job {
            id: random_id()?,
            tenant: registry.tenant().to_owned(),
            owner: context.caller().clone(),
            tool: job.tool,
            arguments,
            cron: job.cron,
            time_zone,
            created_at: now,
            next_run,
            last_run: None,
        };
        if !self.jobs.add(job.clone(), MAX_JOBS).await.map_err(store_failed)? {
            let message = format!("{} has {MAX_JOBS} jobs already", job.owner.user);
            return Err(ToolError::failed(message)
                .with_feedback(format!("There are {MAX_JOBS} jobs already. Remove one first.")));
        }
        self.changed.notify_one();
        Ok(job)
    }

    /// The jobs of the tenant, the next first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self, context: &ToolContext) -> Result<Vec<Job>, ToolError> {
        let registry = registry_of(context)?;
        self.of_tenant(registry.tenant()).await.map_err(store_failed)
    }

    /// The same for a host, outside of calls.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn of_tenant(&self, tenant: &str) -> Result<Vec<Job>, StoreError> {
        self.jobs.of_tenant(tenant).await
    }

    /// Removes a job for a host, outside of calls; false if there is none of that id. A call of it that is under way goes on.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn remove_of(&self, tenant: &str, id: &str) -> Result<bool, StoreError> {
        self.jobs.remove(tenant, id).await
    }

    /// Removes the tenant's job of that id. A call of it that is under way goes on.
    ///
    /// # Errors
    /// When there is none of that id, or the store fails.
    pub async fn remove(&self, context: &ToolContext, id: &str) -> Result<(), ToolError> {
        let registry = registry_of(context)?;
        let tenant = registry.tenant();
        match self.jobs.remove(tenant, id).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ToolError::invalid(format!("there is no job `{id}`; list_jobs shows them"))),
            Err(cause) => Err(store_failed(cause)),
        }
    }
}

/// The first time after `now` that a pattern names in a time zone.
fn next_after(cron: &str, time_zone: &str, now: Timestamp) -> Result<Timestamp, String> {
    let zone = TimeZone::get(time_zone).map_err(|_| {
        format!("there is no time zone `{time_zone}`; name one such as `Europe/Oslo` or `UTC`")
    })?;
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let pattern = parser.parse(cron).map_err(|error| {
        format!(
            "`{cron}` is no cron pattern: {error} It takes minute, hour, day of the month, month and day of the week, \
             such as `30 8 * * MON-FRI`"
        )
    })?;
    let next = pattern.find_next_occurrence(&now.to_zoned(zone), false);
    next.map(|next| next.timestamp()).map_err(|_| format!("`{cron}` names no time that ever comes"))
}

/// The IANA name of the machine's time zone. A machine that has set none runs on UTC.
fn name_of(system: Option<TimeZone>) -> Result<String, String> {
    let unnamed = || "the time zone of this machine has no IANA name; name one as `time_zone`, such as `Europe/Oslo` or `UTC`";
    let zone = system.unwrap_or(TimeZone::UTC);
    zone.iana_name().map(str::to_owned).ok_or_else(|| unnamed().to_owned())
}

fn registry_of(context: &ToolContext) -> Result<Registry, ToolError> {
    let outside = || ToolError::new(ErrorKind::Unavailable, "jobs are for calls that a registry makes");
    context.registry().ok_or_else(outside)
}

fn store_failed(cause: StoreError) -> ToolError {
    tracing::error!(%cause, "store_failed");
    ToolError::store_failed(&cause, "the store of the jobs has failed; the server's log says why")
        .with_feedback("The schedule cannot be used now. Do without it.")
}

#[cfg(test)]
mod tests {
    use jiff::tz::Offset;

    use super::*;

    #[test]
    fn k15_a_machine_whose_zone_has_no_name_is_not_taken_for_utc() {
        assert_eq!(name_of(None).unwrap(), "UTC");
        assert_eq!(name_of(TimeZone::get("Europe/Oslo").ok()).unwrap(), "Europe/Oslo");
        let cause = name_of(Some(TimeZone::fixed(Offset::constant(2)))).unwrap_err();
        assert!(cause.contains("`time_zone`"), "{cause}");
    }
}
