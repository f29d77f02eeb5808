//! Which tenants have documents, as far as is known.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::server::Server;
use crate::Contents;

/// What was asked for less than this ago is not asked for again.
const FRESH: Duration = Duration::from_millis(500);

/// The tenants that have documents, and of each whether it has names that a model extracted. One index entry of each is read, one after
/// the other, so that nothing is counted.
const TENANTS: &str = "
    WITH RECURSIVE known (tenant) AS (
        (SELECT tenant FROM document ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT tenant FROM document WHERE tenant > known.tenant ORDER BY tenant LIMIT 1)
        FROM known WHERE known.tenant IS NOT NULL
    )
    SELECT tenant, EXISTS (SELECT 1 FROM document_entity WHERE document_entity.tenant = known.tenant)
    FROM known WHERE tenant IS NOT NULL";

/// What all tenants have.
#[derive(Default)]
pub(super) struct Presence {
    tenants: Mutex<HashMap<String, Contents>>,
    asked: tokio::sync::Mutex<Option<Instant>>,
    /// How often something was written here. What was looked up before a write is not believed after it.
    writes: AtomicU64,
}

impl Presence {
    pub(super) fn of(&self, tenant: &str) -> Contents {
        self.tenants.lock().get(tenant).copied().unwrap_or_default()
    }

    /// Notes what was written here.
    pub(super) fn update(&self, tenant: &str, change: impl FnOnce(&mut Contents)) {
        let mut tenants = self.tenants.lock();
        self.writes.fetch_add(1, Ordering::SeqCst);
        change(tenants.entry(tenant.to_owned()).or_default());
    }
}

/// Asks what there is, for all tenants at once. While the server is away, what was known stays.
pub(super) async fn refresh(server: &Server, is_forced: bool) {
    let presence = &server.presence;
    let mut asked = presence.asked.lock().await;
    if !is_forced && asked.is_some_and(|asked| asked.elapsed() < FRESH) {
        return;
    }
    *asked = Some(Instant::now());
    let writes = presence.writes.load(Ordering::SeqCst);
    let Ok(found) = look(server).await else { return };
    let mut tenants = presence.tenants.lock();
    if presence.writes.load(Ordering::SeqCst) == writes {
        *tenants = found;
    }
}

async fn look(server: &Server) -> Result<HashMap<String, Contents>, sqlx::Error> {
    let mut connection = server.pool().acquire().await?;
    // Looking makes no tables.
    let is_made: bool =
        sqlx::query_scalar("SELECT to_regclass('document') IS NOT NULL").fetch_one(&mut *connection).await?;
    if !is_made {
        return Ok(HashMap::new());
    }
    let found: Vec<(String, bool)> = sqlx::query_as(TENANTS).fetch_all(&mut *connection).await?;
    Ok(found.into_iter().map(|(tenant, graph)| (tenant, Contents { documents: true, graph })).collect())
}
