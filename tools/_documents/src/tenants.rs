//! The documents of each tenant: opened when they are asked for, looked at every second, and closed when nobody asks any more.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{runtime::Handle, task::AbortHandle, time::Instant};

use super::DocumentIndex;

/// Opens the documents of a tenant.
type Open = dyn Fn(&str) -> Arc<dyn DocumentIndex> + Send + Sync;

/// How often it is looked what there is.
const REFRESH: Duration = Duration::from_secs(1);
/// Documents that nobody asked for so long are closed.
const IDLE: Duration = Duration::from_secs(600);
/// When there are more, those that were asked for longest ago are closed.
const MAX_OPEN: usize = 64;

/// The documents of all tenants. Those that somebody holds stay open.
pub(super) struct Tenants {
    open: Box<Open>,
    opened: Mutex<HashMap<String, Opened>>,
    /// The task that looks after them.
    watch: Mutex<Option<AbortHandle>>,
}

struct Opened {
    index: Arc<dyn DocumentIndex>,
    asked: Instant,
}

impl Opened {
    fn is_held(&self) -> bool {
        Arc::strong_count(&self.index) > 1
    }
}

impl Drop for Tenants {
    fn drop(&mut self) {
        if let Some(task) = self.watch.get_mut() {
            task.abort();
        }
    }
}

impl Tenants {
    pub(super) fn new(open: Box<Open>) -> Self {
        Self { open, opened: Mutex::default(), watch: Mutex::default() }
    }

    /// Those that are open, with their tenants.
    pub(super) fn opened(&self) -> Vec<(String, Arc<dyn DocumentIndex>)> {
        let opened = self.opened.lock();
        opened.iter().map(|(tenant, opened)| (tenant.clone(), Arc::clone(&opened.index))).collect()
    }

    pub(super) fn index(self: &Arc<Self>, tenant: &str) -> Arc<dyn DocumentIndex> {
        self.watch();
        let mut known = self.opened.lock();
        let asked = Instant::now();
        if let Some(opened) = known.get_mut(tenant) {
            opened.asked = asked;
            return Arc::clone(&opened.index);
        }
        if known.len() >= MAX_OPEN {
            let idle = known.iter().filter(|(_, opened)| !opened.is_held());
            let oldest = idle.min_by_key(|(_, opened)| opened.asked).map(|(tenant, _)| tenant.clone());
            oldest.map(|tenant| known.remove(&tenant));
        }
        let index = (self.open)(tenant);
        known.insert(tenant.to_owned(), Opened { index: Arc::clone(&index), asked });
        index
    }

    /// Starts the task that looks after the documents, unless it runs. Outside of a runtime nothing is looked at.
    fn watch(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut watch = self.watch.lock();
        if watch.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let tenants = Arc::downgrade(self);
        let task = runtime.spawn(async move {
            while let Some(tenants) = tenants.upgrade() {
                tenants.opened.lock().retain(|_, opened| opened.is_held() || opened.asked.elapsed() < IDLE);
                let opened = tenants.opened();
                drop(tenants);
                for (_, index) in opened {
                    index.refresh().await;
                }
                tokio::time::sleep(REFRESH).await;
            }
        });
        *watch = Some(task.abort_handle());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteDocuments;

    fn tenants() -> (tempfile::TempDir, Arc<Tenants>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let open =
            move |tenant: &str| Arc::new(SqliteDocuments::new(path.join(tenant))) as Arc<dyn DocumentIndex>;
        (folder, Arc::new(Tenants::new(Box::new(open))))
    }

    #[tokio::test]
    async fn k14_no_more_tenants_are_open_than_a_bound_and_those_in_use_stay() {
        let (_folder, tenants) = tenants();
        let held = tenants.index("held");
        for tenant in 0..3 * MAX_OPEN {
            tenants.index(&tenant.to_string());
        }
        assert_eq!(tenants.opened().len(), MAX_OPEN);
        assert!(Arc::ptr_eq(&held, &tenants.index("held")));
        assert!(!tenants.opened.lock().contains_key("0") && tenants.opened.lock().contains_key("191"));
    }

    #[tokio::test(start_paused = true)]
    async fn k14_a_tenant_that_nobody_asks_for_is_closed() {
        let (_folder, tenants) = tenants();
        let held = tenants.index("held");
        tenants.index("idle");
        tokio::time::sleep(IDLE / 2).await;
        assert_eq!(tenants.opened().len(), 2);
        tokio::time::sleep(IDLE).await;
        assert_eq!(tenants.opened.lock().keys().collect::<Vec<_>>(), ["held"]);
        drop(held);
    }
}
