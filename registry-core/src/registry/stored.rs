//! A registry whose registrations and switches are kept in a store, and are the same on all servers that share it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Registry, RegistryError, ToolRegistration,
    lifecycle::{Cause, Verdict},
};
use crate::{
    handler::Handler,
    policy::{ToolLimits, ToolPolicy},
    source::Source,
    spec::ToolSpec,
    store::{Store, StoreError, StoredTool},
    tool::Tool,
};

/// The least time between two looks at the store: it bounds what a burst of changes, or a store that fails, costs, and is
/// far below the second within which a change has to be seen.
const PAUSE: Duration = Duration::from_millis(100);
/// How often a change is begun anew because another server was quicker. Each time that one has come through.
const TRIES: u32 = 100;

/// A registry and the store behind it. Cheap to clone; the store is followed until the last clone is dropped.
///
/// What is changed here is kept by the store before it counts, and before it is reported. What is changed on
/// the [`Registry`] itself is this process's own, and the store's next word may undo it.
#[derive(Clone, derive_more::Debug)]
#[debug("StoredRegistry({:?})", self.registry())]
pub struct StoredRegistry {
    follower: Arc<Follower>,
    _following: Arc<DropGuard>,
}

struct Follower {
    registry: Registry,
    store: Arc<dyn Store>,
    /// Held during a change and while the store is read, so that an older state never comes after a newer one.
    seen: Mutex<Seen>,
}

/// What the store said last.
#[derive(Default)]
struct Seen {
    revision: Option<u64>,
    rows: BTreeMap<String, StoredTool>,
}

impl Registry {
    /// Takes over what a store keeps for this tenant, and from then on what other servers change in it, within a second.
    ///
    /// A tool whose code is here, compiled or registered with a handler, is what the code says, and only its switch is the
    /// store's. What the store keeps of a tool that is gone does no harm. Reading the registry never waits for the store:
    /// where that fails, the last known state stays.
    ///
    /// # Errors
    /// When the store fails now.
    pub async fn attach(&self, store: Arc<dyn Store>) -> Result<StoredRegistry, StoreError> {
        let follower = Arc::new(Follower { registry: self.clone(), store, seen: Mutex::default() });
        follower.refresh(&mut *follower.seen.lock().await, Cause::Before).await?;
        let stop = CancellationToken::new();
        let (following, stopped) = (Arc::clone(&follower), stop.clone());
        tokio::spawn(async move { stopped.run_until_cancelled(following.follow()).await });
        Ok(StoredRegistry { follower, _following: Arc::new(stop.drop_guard()) })
    }
}

impl StoredRegistry {
    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.follower.registry
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.follower.store
    }

    /// [Registers](Registry::register) a tool on all servers. Policy and handler stay in this process; the others list the
    /// tool and do not call it, until they register it with code of their own. A new tool whose name is switched off in the
    /// store begins so.
    ///
    /// # Errors
    /// When the registry's rules or the store do not let it. Then nothing has changed.
    pub async fn register(
        &self,
        spec: ToolSpec,
        policy: ToolPolicy,
        handler: Option<Arc<dyn Handler>>,
    ) -> Result<Arc<Tool>, ChangeError> {
        let follower = Arc::clone(&self.follower);
        to_its_end(async move { follower.register(spec, policy, handler).await }).await
    }

    /// [Switches](Registry::set_enabled) a tool on or off on all servers.
    ///
    /// # Errors
    /// When there is no tool of that name, or the store fails. Then nothing has changed.
    pub async fn set_enabled(&self, name: &str, enabled: bool) -> Result<ToolRegistration, ChangeError> {
        let (follower, name) = (Arc::clone(&self.follower), name.to_owned());
        to_its_end(async move { follower.set_enabled(&name, enabled).await }).await
    }

    /// [Sets limits](Registry::set_limits) in place of a tool's own on all servers.
    ///
    /// # Errors
    /// When there is no tool of that name, or the store fails. Then nothing has changed.
    pub async fn set_limits(&self, name: &str, limits: ToolLimits) -> Result<ToolRegistration, ChangeError> {
        let (follower, name) = (Arc::clone(&self.follower), name.to_owned());
        to_its_end(async move { follower.set_limits(&name, limits).await }).await
    }

    /// [Removes](Registry::remove) a tool on all servers, and what is kept of its switch.
    ///
    /// # Errors
    /// When it is not one that was registered at run time, or the store fails. Then nothing has changed.
    pub async fn remove(&self, name: &str) -> Result<(), ChangeError> {
        let (follower, name) = (Arc::clone(&self.follower), name.to_owned());
        to_its_end(async move { follower.remove(&name).await }).await
    }
}

/// Makes a change in a task of its own: whoever asked for it and goes away must not leave it kept and not applied.
async fn to_its_end<T: Send + 'static>(
    change: impl Future<Output = Result<T, ChangeError>> + Send + 'static,
) -> Result<T, ChangeError> {
    tokio::spawn(change).await.unwrap_or_else(|error| Err(StoreError::unavailable(error).into()))
}

impl Follower {
    async fn register(
        &self,
        spec: ToolSpec,
        policy: ToolPolicy,
        handler: Option<Arc<dyn Handler>>,
    ) -> Result<Arc<Tool>, ChangeError> {
        let shared = &self.registry.shared;
        let tool = Tool::of_host(spec, policy, handler, shared.common.clock.now());
        let kept = self.keep(|rows| {
            let (enabled, created_at) = match &shared.changing(Cause::Here).weigh(tool.spec())? {
                Verdict::New => (rows.get(tool.name()).is_none_or(|row| row.enabled), tool.created_at()),
                Verdict::Unchanged(known) => (known.is_enabled(), known.created_at()),
                Verdict::Replaces(_) => (true, tool.created_at()),
            };
            let spec = Some(tool.spec().clone());
            let limits = rows.get(tool.name()).map(|row| row.limits).unwrap_or_default();
            Ok(StoredTool { tool_name: tool.name().to_owned(), enabled, limits, spec, created_at })
        });
        let _seen = kept.await?;
        Ok(shared.changing(Cause::Here).register(tool)?)
    }

    async fn set_enabled(&self, name: &str, enabled: bool) -> Result<ToolRegistration, ChangeError> {
        let _seen = self.keep_changed(name, |row| row.enabled = enabled).await?;
        Ok(self.registry.set_enabled(name, enabled)?)
    }

    async fn set_limits(&self, name: &str, limits: ToolLimits) -> Result<ToolRegistration, ChangeError> {
        let _seen = self.keep_changed(name, |row| row.limits = limits).await?;
        Ok(self.registry.set_limits(name, limits)?)
    }

    /// Has the store keep something else of a tool that is here.
    async fn keep_changed(
        &self,
        name: &str,
        change: impl Fn(&mut StoredTool),
    ) -> Result<MutexGuard<'_, Seen>, ChangeError> {
        self.keep(|rows| {
            let unknown = || RegistryError::Unknown { name: name.to_owned() };
            let tool = self.registry.get(name).ok_or_else(unknown)?;
            // What was once registered at run time and is compiled now is not the store's any more.
            let known = rows.get(name).filter(|_| *tool.source() == Source::Host);
            let mut row = StoredTool {
                tool_name: name.to_owned(),
                enabled: rows.get(name).map_or(tool.is_enabled(), |row| row.enabled),
                limits: rows.get(name).map_or(tool.limits(), |row| row.limits),
                spec: known.and_then(|row| row.spec.clone()),
                created_at: known.map_or(tool.created_at(), |row| row.created_at),
            };
            change(&mut row);
            Ok(row)
        })
        .await
    }

    async fn remove(&self, name: &str) -> Result<(), ChangeError> {
        let mut seen = self.seen.lock().await;
        self.refresh(&mut seen, Cause::Elsewhere).await?;
        if let Some(tool) = self.registry.get(name).filter(|tool| *tool.source() != Source::Host) {
            let from = tool.source().clone();
            return Err(RegistryError::NotRemovable { name: name.to_owned(), from }.into());
        }
        self.store.remove_tool(self.registry.tenant(), name).await?;
        if let Some(row) = seen.rows.remove(name) {
            self.registry.shared.changing(Cause::Here).forget(&row);
        }
        self.registry.remove(name);
        Ok(())
    }

    /// Takes over what others have changed, as long as the store is there.
    async fn follow(self: Arc<Self>) {
        let mut is_failing = false;
        loop {
            let revision = self.seen.lock().await.revision.unwrap_or_default();
            self.store.changed(revision).await;
            match self.refresh(&mut *self.seen.lock().await, Cause::Elsewhere).await {
                Ok(()) if is_failing => {
                    tracing::info!("store_back");
                    is_failing = false;
                }
                Ok(()) => {}
                Err(cause) if !is_failing => {
                    tracing::warn!(%cause, "store_not_read");
                    is_failing = true;
                }
                Err(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn refresh(&self, seen: &mut Seen, cause: Cause) -> Result<(), StoreError> {
        // Before the rows: what changes in between is read once more.
        let revision = self.store.revision().await?;
        if seen.revision == Some(revision) {
            return Ok(());
        }
        let rows = self.store.tools(self.registry.tenant()).await?;
        let rows = rows.into_iter().map(|row| (row.tool_name.clone(), row)).collect();
        let before = std::mem::replace(seen, Seen { revision: Some(revision), rows }).rows;
        let mut changing = self.registry.shared.changing(cause);
        let gone = before.values().filter(|row| !seen.rows.contains_key(&row.tool_name));
        gone.for_each(|row| changing.forget(row));
        seen.rows.values().for_each(|row| changing.follow(row));
        Ok(())
    }

    /// Has the store keep a row made from what it says now, and from nothing older. Gives the lock, under which the change is then
    /// applied.
    async fn keep(
        &self,
        row: impl Fn(&BTreeMap<String, StoredTool>) -> Result<StoredTool, ChangeError>,
    ) -> Result<MutexGuard<'_, Seen>, ChangeError> {
        let mut seen = self.seen.lock().await;
        for _ in 0..TRIES {
            self.refresh(&mut seen, Cause::Elsewhere).await?;
            let (row, revision) = (row(&seen.rows)?, seen.revision.unwrap_or_default());
            if seen.rows.get(&row.tool_name) == Some(&row) {
                return Ok(seen);
            }
            if self.store.put_tool(self.registry.tenant(), row.clone(), revision).await? {
                seen.rows.insert(row.tool_name.clone(), row);
                return Ok(seen);
            }
        }
        Err(StoreError::conflict("other servers change it all the time; try again").into())
    }
}

/// Why a registration or switch could not be changed. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The registry's rules do not allow it.
    #[error(transparent)]
    Rule(#[from] RegistryError),
    /// The store did not keep it; its text is for the operator.
    #[error("nothing was changed, as the store has failed: {0}")]
    Store(#[from] StoreError),
}
