//! Where jobs are kept.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::{Job, LastRun};
use registry_core::store::StoreFuture;

/// Keeps jobs. Every method fails when the store does.
pub trait Jobs: Send + Sync {
    /// Keeps a job; false, and nothing is kept, where its owner has as many as this.
    fn add(&self, job: Job, most: usize) -> StoreFuture<'_, bool>;

    /// The tenant's jobs, the next first.
    fn of_tenant<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<Job>>;

    /// Forgets a job; false if there is none of that id.
    fn remove<'a>(&'a self, tenant: &'a str, id: &'a str) -> StoreFuture<'a, bool>;

    /// So many of the jobs of all tenants whose time has come, the oldest first.
    fn due(&self, now: Timestamp, most: usize) -> StoreFuture<'_, Vec<Job>>;

    /// When the next job of any tenant is made.
    fn next(&self) -> StoreFuture<'_, Option<Timestamp>>;

    /// Sets a job's next time, where it still is what this one says, in one step. False: another server has it, or it is gone.
    fn claim<'a>(&'a self, job: &'a Job, next_run: Timestamp) -> StoreFuture<'a, bool>;

    /// Notes what became of a job. Where it is gone: nothing to do.
    fn ended<'a>(&'a self, job: &'a Job, run: LastRun) -> StoreFuture<'a, ()>;
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

fn done<'a, T: Send + 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(Ok(value)))
}

impl Jobs for MemoryJobs {
    fn add(&self, job: Job, most: usize) -> StoreFuture<'_, bool> {
        let mut jobs = self.jobs.lock();
        let of_owner = |other: &&Job| other.tenant == job.tenant && other.owner.user == job.owner.user;
        let fits = jobs.values().filter(of_owner).count() < most;
        if fits {
            jobs.insert(key(&job.tenant, &job.id), job);
        }
        done(fits)
    }

    fn of_tenant<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<Job>> {
        done(self.sorted(|job| job.tenant == tenant))
    }

    fn remove<'a>(&'a self, tenant: &'a str, id: &'a str) -> StoreFuture<'a, bool> {
        done(self.jobs.lock().remove(&key(tenant, id)).is_some())
    }

    fn due(&self, now: Timestamp, most: usize) -> StoreFuture<'_, Vec<Job>> {
        let mut due = self.sorted(|job| job.next_run <= now);
        due.truncate(most);
        done(due)
    }

    fn next(&self) -> StoreFuture<'_, Option<Timestamp>> {
        done(self.jobs.lock().values().map(|job| job.next_run).min())
    }

    fn claim<'a>(&'a self, job: &'a Job, next_run: Timestamp) -> StoreFuture<'a, bool> {
        done(self.change(job, |known| {
            let claimed = known.next_run == job.next_run;
            if claimed {
                known.next_run = next_run;
            }
            claimed
        }))
    }

    fn ended<'a>(&'a self, job: &'a Job, run: LastRun) -> StoreFuture<'a, ()> {
        self.change(job, |known| {
            known.last_run = Some(run);
            true
        });
        done(())
    }
}
