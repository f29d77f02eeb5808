//! Where jobs are kept.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::{Job, LastRun};
use registry_core::store::StoreResult;

/// Keeps jobs. Every method fails when the store does.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Keeps a job; false, and nothing is kept, where its owner has as many as this.
    async fn add(&self, job: Job, most: usize) -> StoreResult<bool>;

    /// The tenant's jobs, the next first.
    async fn of_tenant(&self, tenant: &str) -> StoreResult<Vec<Job>>;

    /// Forgets a job; false if there is none of that id.
    async fn remove(&self, tenant: &str, id: &str) -> StoreResult<bool>;

    /// So many of the jobs of all tenants whose time has come, the oldest first.
    async fn due(&self, now: Timestamp, most: usize) -> StoreResult<Vec<Job>>;

    /// When the next job of any tenant is made.
    async fn next(&self) -> StoreResult<Option<Timestamp>>;

    /// Sets a job's next time, where it still is what this one says, in one step. False: another server has it, or it is gone.
    async fn claim(&self, job: &Job, next_run: Timestamp) -> StoreResult<bool>;

    /// Notes what became of a job. Where it is gone: nothing to do.
    async fn ended(&self, job: &Job, run: LastRun) -> StoreResult<()>;
}

/// Keeps jobs in memory, until the process ends.
#[derive(Debug, Default)]
pub struct MemoryJobs {
    /// By tenant and id.
    jobs: Mutex<BTreeMap<(String, String), Job>>,
}

impl MemoryJobs {
    /// Those that are wanted, the next first.
    fn sorted(&self, wanted: impl Fn(&Job) -> bool) -> Vec<Job> {
        let mut jobs: Vec<Job> = self.jobs.lock().values().filter(|job| wanted(job)).cloned().collect();
        jobs.sort_by_key(|job| job.next_run);
        jobs
    }

    fn change(&self, job: &Job, change: impl FnOnce(&mut Job) -> bool) -> bool {
        self.jobs.lock().get_mut(&key(&job.tenant, &job.id)).is_some_and(change)
    }
}

fn key(tenant: &str, id: &str) -> (String, String) {
    (tenant.to_owned(), id.to_owned())
}

#[async_trait]
impl Jobs for MemoryJobs {
    async fn add(&self, job: Job, most: usize) -> StoreResult<bool> {
        let mut jobs = self.jobs.lock();
        let of_owner = |other: &&Job| other.tenant == job.tenant && other.owner.user == job.owner.user;
        let fits = jobs.values().filter(of_owner).count() < most;
        if fits {
            jobs.insert(key(&job.tenant, &job.id), job);
        }
        Ok(fits)
    }

    async fn of_tenant(&self, tenant: &str) -> StoreResult<Vec<Job>> {
        Ok(self.sorted(|job| job.tenant == tenant))
    }

    async fn remove(&self, tenant: &str, id: &str) -> StoreResult<bool> {
        Ok(self.jobs.lock().remove(&key(tenant, id)).is_some())
    }

    async fn due(&self, now: Timestamp, most: usize) -> StoreResult<Vec<Job>> {
        let mut due = self.sorted(|job| job.next_run <= now);
        due.truncate(most);
        Ok(due)
    }

    async fn next(&self) -> StoreResult<Option<Timestamp>> {
        Ok(self.jobs.lock().values().map(|job| job.next_run).min())
    }

    async fn claim(&self, job: &Job, next_run: Timestamp) -> StoreResult<bool> {
        Ok(self.change(job, |known| {
            let claimed = known.next_run == job.next_run;
            if claimed {
                known.next_run = next_run;
            }
            claimed
        }))
    }

    async fn ended(&self, job: &Job, run: LastRun) -> StoreResult<()> {
        self.change(job, |known| {
            known.last_run = Some(run);
            true
        });
        Ok(())
    }
}
