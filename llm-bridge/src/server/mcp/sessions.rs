//! MCP sessions that go on in the program that takes over: it opens them anew as their clients did.

use registry_core::flow::HasRead;
use rmcp::transport::streamable_http_server::session::store::{
    SessionState, SessionStore, SessionStoreError,
};

use crate::{
    mcp::Visitor,
    takeover::{Session, Takeover},
};

/// The sessions of one user.
pub(in crate::server) struct Sessions {
    takeover: Takeover,
    tenant: String,
    user: String,
}

impl Sessions {
    pub(in crate::server) fn of(takeover: &Takeover, visitor: &Visitor) -> Self {
        let (tenant, user) = (visitor.registry.tenant(), &visitor.context.caller().user);
        Self { takeover: takeover.clone(), tenant: tenant.to_owned(), user: user.clone() }
    }
}

#[async_trait::async_trait]
impl SessionStore for Sessions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let state = self.takeover.session(id, &self.tenant, &self.user);
        Ok(state.map(serde_json::from_value).transpose()?)
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        let (id, state) = (id.to_owned(), serde_json::to_value(state)?);
        let (tenant, user) = (self.tenant.clone(), self.user.clone());
        self.takeover.opened(Session { id, tenant, user, state, read: HasRead::default() }).await;
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        // Nobody ends the session of another user.
        if self.takeover.session(id, &self.tenant, &self.user).is_some() {
            self.takeover.ended(id).await;
        }
        Ok(())
    }
}
