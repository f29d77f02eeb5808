//! What an operator watches: the tools there are, and how many calls run and wait.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
};

use super::{Common, Registry};
use crate::{concurrency::Queues, store::StoreError, tool::Tool};

/// A look at the registries of all tenants, for what counts and reports. It keeps none of them, so that a registry may hold who
/// holds this, such as its audit.
#[derive(Clone, derive_more::Debug)]
#[debug("Overview")]
pub struct Overview {
    common: Weak<Common>,
}

impl Registry {
    /// A look at this registry and those of its other tenants.
    pub fn overview(&self) -> Overview {
        Overview { common: Arc::downgrade(&self.shared.common) }
    }

    /// How many calls run and wait, of all tenants.
    pub fn queues(&self) -> Queues {
        self.shared.common.guards.limiter.depths()
    }

    /// How many calls wait for a person, of all tenants that have a registry here.
    ///
    /// # Errors
    /// When the approvals cannot be read.
    pub async fn approvals_waiting(&self) -> Result<usize, StoreError> {
        let common = &self.shared.common;
        let tenants: BTreeSet<Arc<str>> = common
            .tenants()
            .iter()
            .filter_map(Weak::upgrade)
            .map(|shared| Arc::clone(&shared.tenant))
            .collect();
        let mut waiting = 0;
        for tenant in tenants {
            waiting += common.guards.approvals.pending(&tenant, None, common.clock.now()).await?.len();
        }
        Ok(waiting)
    }
}

impl Overview {
    /// The tool of that name in a tenant's registry.
    pub fn tool(&self, tenant: &str, name: &str) -> Option<Arc<Tool>> {
        let common = self.common.upgrade()?;
        let tenants = common.tenants();
        let mut registries =
            tenants.iter().filter_map(Weak::upgrade).filter(|shared| *shared.tenant == *tenant);
        registries.find_map(|shared| shared.tools.load().get(name).cloned())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{
        context::{Caller, ToolCall},
        handler::handler_fn,
        policy::{Effect, Permission, ToolPolicy},
        result::{ErrorKind, ToolError},
        spec::ToolSpec,
    };

    #[tokio::test]
    async fn b8_calls_that_wait_for_a_person_are_counted_for_all_tenants() {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let other = registry.for_tenant("other");
        let twin = registry.for_tenant("other");
        for (registry, users) in [(&registry, ["ada", "bob"]), (&other, ["ada", "eve"])] {
            let policy = ToolPolicy { effect: Effect::Destructive, ..ToolPolicy::new() };
            let handler = handler_fn(|_, _| async { Err(ToolError::failed("it ran")) });
            registry
                .register(ToolSpec::new("erase", json!({"type": "object"})), policy, Some(handler))
                .unwrap();
            for user in users {
                let context =
                    registry.context(Caller::new(user, Permission::User)).with_approval_wait(Duration::ZERO);
                let outcome = registry.execute(&context, ToolCall::new("erase", json!({}))).await;
                assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::ApprovalPending);
            }
        }
        for asked in [&registry, &other, &twin] {
            assert_eq!(asked.approvals_waiting().await, Ok(4));
        }
        assert_eq!(registry.queues(), Queues::default(), "they hold no place");
    }

    #[test]
    fn each_tenant_has_its_own_tools_and_nothing_is_kept() {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let overview = registry.overview();
        let other = registry.for_tenant("other");
        let spec = ToolSpec::new("theirs", json!({"type": "object"}));
        other.register(spec, ToolPolicy::new(), None).unwrap();
        assert_eq!(overview.tool("other", "theirs").unwrap().name(), "theirs");
        for (tenant, name) in [("default", "theirs"), ("other", "ours"), ("nobody", "theirs")] {
            assert!(overview.tool(tenant, name).is_none(), "{tenant} {name}");
        }
        drop(other);
        assert!(overview.tool("other", "theirs").is_none());
        drop(registry);
        assert!(overview.common.upgrade().is_none());
    }
}
