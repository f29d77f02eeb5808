//! Calls that are made again and again.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Row, SqlStore, statement};
use registry_core::store::{StoreError, StoreResult};

use crate::schedule::{Job, Jobs, LastRun};

/// When a job that this program cannot read, such as a newer one's, is looked at again, in seconds.
const LOOKED_AT_AGAIN: i64 = 86_400;

/// A job as it was added, with what has become of it since.
fn read(mut row: Row) -> StoreResult<Job> {
    let (next_run, last_run, document) = (row.int()?, row.text()?, row.text()?);
    let job: Job = serde_json::from_str(&document).map_err(StoreError::corrupt)?;
    let next_run = Timestamp::from_second(next_run).map_err(StoreError::corrupt)?;
    let last_run = match &*last_run {
        "" => None,
        run => Some(serde_json::from_str(run).map_err(StoreError::corrupt)?),
    };
    Ok(Job { next_run, last_run, ..job })
}

/// One that this program cannot read keeps none of the others from being shown.
fn readable(row: Row) -> StoreResult<Option<Job>> {
    Ok(read(row).map_err(|cause| tracing::error!(%cause, "a stored job cannot be read")).ok())
}

#[async_trait]
impl Jobs for SqlStore {
    async fn add(&self, job: Job, most: usize) -> StoreResult<bool> {
        let sql = "INSERT INTO jobs (tenant, id, user_id, next_run, last_run, document) SELECT $1, $2, $3, $4, '', $5 \
                   WHERE $6 > (SELECT COUNT(*) FROM jobs WHERE tenant = $1 AND user_id = $3) RETURNING id";
        let document = serde_json::to_string(&job).map_err(StoreError::invalid)?;
        let next_run = job.next_run.as_second();
        let add = statement!(sql, job.tenant, job.id, job.owner.user, next_run, document, most);
        self.takes_effect(add).await
    }

    async fn of_tenant(&self, tenant: &str) -> StoreResult<Vec<Job>> {
        let sql = "SELECT next_run, last_run, document FROM jobs WHERE tenant = $1 ORDER BY next_run, id";
        let all = self.read(statement!(sql, tenant), readable);
        Ok(all.await?.into_iter().flatten().collect())
    }

    async fn remove(&self, tenant: &str, id: &str) -> StoreResult<bool> {
        let sql = "DELETE FROM jobs WHERE tenant = $1 AND id = $2 RETURNING id";
        self.takes_effect(statement!(sql, tenant, id)).await
    }

    async fn due(&self, now: Timestamp, most: usize) -> StoreResult<Vec<Job>> {
        let sql = "SELECT tenant, id, next_run, last_run, document FROM jobs WHERE next_run <= $1 ORDER BY next_run, id LIMIT $2";
        let due = statement!(sql, now.as_second(), most);
        let read_with_key = |mut row: Row| {
            let key = (row.text()?, row.text()?);
            Ok(read(row).map_err(|cause| (key, cause)))
        };
        let mut jobs = Vec::new();
        for job in self.read(due, read_with_key).await? {
            match job {
                Ok(job) => jobs.push(job),
                Err(((tenant, id), cause)) => {
                    tracing::error!(job = &*id, %cause, "job_not_read");
                    // Or it would be due without end, and keep the others waiting.
                    let later = now.as_second().saturating_add(LOOKED_AT_AGAIN);
                    let put_off = "UPDATE jobs SET next_run = $1 WHERE tenant = $2 AND id = $3";
                    self.run(statement!(put_off, later, tenant, id)).await?;
                }
            }
        }
        Ok(jobs)
    }

    async fn next(&self) -> StoreResult<Option<Timestamp>> {
        let sql = "SELECT next_run FROM jobs ORDER BY next_run LIMIT 1";
        let second = self.read_one(statement!(sql), |mut row| row.int()).await?;
        second.map(Timestamp::from_second).transpose().map_err(|error| self.named(StoreError::corrupt(error)))
    }

    async fn claim(&self, job: &Job, next_run: Timestamp) -> StoreResult<bool> {
        let sql =
            "UPDATE jobs SET next_run = $1 WHERE tenant = $2 AND id = $3 AND next_run = $4 RETURNING id";
        let (next_run, seen) = (next_run.as_second(), job.next_run.as_second());
        self.takes_effect(statement!(sql, next_run, job.tenant.as_str(), job.id.as_str(), seen)).await
    }

    async fn ended(&self, job: &Job, run: LastRun) -> StoreResult<()> {
        let sql = "UPDATE jobs SET last_run = $1 WHERE tenant = $2 AND id = $3";
        let run = serde_json::to_string(&run).map_err(StoreError::invalid)?;
        self.run(statement!(sql, run, job.tenant.as_str(), job.id.as_str())).await.map(drop)
    }
}
