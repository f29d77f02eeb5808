//! As whom the jobs of the schedule are made.

use std::sync::Arc;

use registry_core::{
    BoxFuture, Caller, Registry, Standing, ToolContext,
    schedule::{Host, Job},
};

use super::identity::Identities;

/// Knows the owners of jobs.
pub(super) struct Owners(pub(super) Arc<Identities>);

impl Host for Owners {
    fn context<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(Registry, ToolContext), String>> {
        Box::pin(async move {
            let registry = self.0.registry_of(&job.tenant).await?;
            let owner = Owner {
                identities: Arc::clone(&self.0),
                tenant: job.tenant.clone(),
                then: job.owner.clone(),
            };
            let context = registry.context(job.owner.clone()).with_standing(Arc::new(owner));
            Ok((registry, context))
        })
    }
}

/// The owner of a job, as of when it was added.
struct Owner {
    identities: Arc<Identities>,
    tenant: String,
    then: Caller,
}

impl Standing for Owner {
    fn caller(&self) -> BoxFuture<'_, Result<Option<Caller>, String>> {
        Box::pin(async move {
            let Some(owner) = self.identities.user(&self.tenant, &self.then.user).await? else {
                return Ok(None);
            };
            let Some(via) = &self.then.via else { return Ok(Some(owner)) };
            let via = self.identities.user(&self.tenant, via).await?;
            Ok(via.map(|via| via.on_behalf_of(owner)))
        })
    }
}
