//! Which tenants have documents, as far as is known.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{Connection, PgConnection};
use tokio::{runtime::Handle, time::timeout};

use super::server::{CONNECT, Server};

/// How often it is asked which tenants have documents.
const POLL: Duration = Duration::from_secs(1);

/// One after the other, so that no tenant's documents are counted.
const TENANTS: &str = "
    WITH RECURSIVE known (tenant) AS (
        (SELECT tenant FROM document ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT tenant FROM document WHERE tenant > known.tenant ORDER BY tenant LIMIT 1)
        FROM known WHERE known.tenant IS NOT NULL
    )
    SELECT tenant FROM known WHERE tenant IS NOT NULL";

/// The tenants that have documents. A task asks for them again and again, so that whoever wants to know waits for nothing.
#[derive(Default)]
pub(super) struct Presence {
    tenants: Mutex<Option<BTreeSet<String>>>,
    is_watched: AtomicBool,
}

impl Presence {
    fn is_known(&self, tenant: &str) -> Option<bool> {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.as_ref().map(|tenants| tenants.contains(tenant))
    }

    fn set(&self, found: BTreeSet<String>) {
        *self.tenants.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    }

    /// A document was added.
    pub(super) fn add(&self, tenant: &str) {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenants) = tenants.as_mut() {
            tenants.insert(tenant.to_owned());
        }
    }
}

pub(super) fn ask(server: &Arc<Server>, tenant: &str) -> bool {
    let presence = &server.presence;
    if let Some(known) = presence.is_known(tenant) {
        return known;
    }
    let is_first = match Handle::try_current() {
        Ok(runtime) => {
            let is_first = !presence.is_watched.swap(true, Ordering::SeqCst);
            if is_first {
                let server = Arc::downgrade(server);
                runtime.spawn(async move {
                    while let Some(server) = server.upgrade() {
                        // While it is away, what was known is told.
                        let _ = refresh(&server).await;
                        drop(server);
                        tokio::time::sleep(POLL).await;
                    }
                });
            }
            is_first
        }
        Err(_) => true,
    };
    if is_first && let Some(found) = look(server) {
        presence.set(found);
    }
    // What cannot be read is told by the tool that is called then.
    presence.is_known(tenant).unwrap_or(true)
}

/// Asks which tenants have documents now.
pub(super) async fn refresh(server: &Server) -> Result<(), sqlx::Error> {
    let mut connection = server.pool().acquire().await?;
    server.presence.set(tenants(&mut connection).await?);
    Ok(())
}

async fn tenants(connection: &mut PgConnection) -> Result<BTreeSet<String>, sqlx::Error> {
    // Looking makes no tables.
    let is_made: bool =
        sqlx::query_scalar("SELECT to_regclass('document') IS NOT NULL").fetch_one(&mut *connection).await?;
    if !is_made {
        return Ok(BTreeSet::new());
    }
    let found: Vec<String> = sqlx::query_scalar(TENANTS).fetch_all(connection).await?;
    Ok(found.into_iter().collect())
}

/// The first time there is nobody who knows, and whoever asks cannot wait for a future.
fn look(server: &Server) -> Option<BTreeSet<String>> {
    let asked = async {
        let mut connection = PgConnection::connect_with(&server.options).await?;
        let found = tenants(&mut connection).await?;
        connection.close().await?;
        Ok::<_, sqlx::Error>(found)
    };
    let look = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(async { timeout(CONNECT, asked).await }).ok()?.ok()
    };
    std::thread::scope(|scope| scope.spawn(look).join()).ok().flatten()
}
