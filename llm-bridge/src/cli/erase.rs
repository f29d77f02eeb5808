//! All that is kept of a person is erased: for `toolrack user erase`, and for admins of a server.

use std::sync::Arc;

use async_trait::async_trait;
use toolrack_remote::mcp::oauth::Connections;
use toolrack_stores::SqlStore;

use super::{
    Settings, audit,
    documents::{erase_of_chats, erase_uploads},
    out::{count, tell},
};
use crate::server::{ErasePerson, Erased};

/// Erases in the stores of these settings.
pub(super) struct Eraser {
    pub(super) settings: Settings,
    pub(super) sql: Arc<SqlStore>,
    pub(super) connections: Connections,
}

impl Eraser {
    async fn erased(&self, tenant: &str, user: &str) -> Result<Erased, String> {
        let Self { settings, sql, connections } = self;
        // While what opens them is still known.
        let disconnected = connections.disconnect_all(tenant, user).await?;
        // First, so that running servers take no more calls of the user.
        let erased = sql.erase_user(tenant, user).await?;
        let documents =
            erase_uploads(settings, tenant, user).await? + erase_of_chats(settings, tenant, user).await?;
        let records = audit::erase(settings, sql, tenant, user).await?;
        Ok(Erased {
            was_known: erased.was_known,
            keys: erased.keys,
            sessions: erased.sessions,
            chats: erased.chats,
            connections: disconnected + erased.connections,
            responses: erased.responses,
            transcripts: erased.transcripts,
            files: erased.files,
            documents,
            values: erased.values,
            jobs: erased.jobs,
            approvals: erased.approvals,
            records,
        })
    }

    /// Erases a user, and tells what that was. False if there was nothing.
    ///
    /// # Errors
    /// As [`ErasePerson::erase`].
    pub(super) async fn told(&self, tenant: &str, user: &str) -> Result<bool, String> {
        let erased = self.erased(tenant, user).await?;
        if erased.is_nothing() {
            return Ok(false);
        }
        if !erased.was_known {
            tell(format_args!("{user} is no stored user"));
        }
        let parts = [
            count(erased.keys, "key"),
            count(erased.sessions, "session"),
            count(erased.chats, "chat"),
            count(erased.connections, "connection"),
            count(erased.responses, "response"),
            count(erased.transcripts, "transcript"),
            count(erased.files, "file"),
            count(erased.documents, "document"),
            format!("{} that tools kept", count(erased.values, "value")),
            count(erased.jobs, "scheduled call"),
            count(erased.approvals, "approval"),
        ];
        tell(format_args!("erased of {user}: {}", parts.join(", ")));
        tell(format_args!(
            "in the audit, {} of {user} kept only that and how the call was made; `toolrack audit verify` takes them as whole",
            count(erased.records, "record")
        ));
        Ok(true)
    }
}

#[async_trait]
impl ErasePerson for Eraser {
    async fn erase(&self, tenant: &str, user: &str) -> Result<Erased, String> {
        self.erased(tenant, user).await
    }
}
