//! Runs scheduled calls as their owners.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use registry_core::{Caller, CallerAuthority, Registry, ToolContext, store::StoreResult};
use tokio_util::sync::CancellationToken;
use toolrack_stores::schedule::{self, Host, Job, Schedule};

use crate::server::{ServerSettings, callers::identity::Identities};

/// How long to wait for the tools of MCP servers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the schedule, once remote tools are available. `stopping` begins no more calls, `closing` cancels those that run.
pub(in crate::server) async fn run(
    schedule: Schedule,
    owners: Owners,
    settings: Arc<ServerSettings>,
    stopping: CancellationToken,
    closing: CancellationToken,
) {
    let settled = async {
        if let Some(modules) = &settings.modules {
            modules.ready().await;
        }
        if let Some(servers) = &settings.mcp_servers {
            servers.settled(PATIENCE).await;
        }
    };
    tokio::select! {
        () = settled => {}
        () = stopping.cancelled() => return,
    }
    schedule::run(schedule, Arc::new(owners), stopping, closing).await;
}

/// Looks up the owners of jobs.
pub(in crate::server) struct Owners(pub(in crate::server) Arc<Identities>);

#[async_trait]
impl Host for Owners {
    async fn context(&self, job: &Job) -> StoreResult<(Registry, ToolContext)> {
        let registry = self.0.registry_of(&job.tenant).await?;
        let owner = Owner { identities: Arc::clone(&self.0), job: job.clone() };
        let context = registry.context(job.owner.clone()).with_authority(Arc::new(owner));
        Ok((registry, context))
    }
}

/// The owner of a job.
struct Owner {
    identities: Arc<Identities>,
    job: Job,
}

impl Owner {
    async fn user(&self, id: &str, delegate: bool) -> StoreResult<Option<Caller>> {
        self.identities.user(&self.job.tenant, id, self.job.created_at, delegate).await
    }
}

#[async_trait]
impl CallerAuthority for Owner {
    async fn caller(&self) -> StoreResult<Option<Caller>> {
        let Some(owner) = self.user(&self.job.owner.user, false).await? else { return Ok(None) };
        let Some(via) = &self.job.owner.via else { return Ok(Some(owner)) };
        let via = self.user(via, true).await?;
        Ok(via.map(|via| via.on_behalf_of(owner)))
    }
}
