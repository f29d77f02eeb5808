//! Documents on a PostgreSQL server, for several servers that share them.

mod graph;
mod index;
mod presence;
mod select;
mod server;
mod words;

use std::{fmt::Display, sync::Arc};

use tokio::sync::Mutex;

use registry_core::ToolError;
pub(super) use server::Server;

/// The documents of a tenant.
pub(super) struct PostgresDocuments {
    server: Arc<Server>,
    tenant: String,
    writing: Mutex<()>,
}

impl PostgresDocuments {
    pub(super) fn new(server: Arc<Server>, tenant: &str) -> Self {
        Self { server, tenant: tenant.to_owned(), writing: Mutex::default() }
    }

    /// A failure of the store. The model is not told where it is.
    fn fault(&self, error: impl Display) -> ToolError {
        self.server.fault(error)
    }
}
