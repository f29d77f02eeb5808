//! The sessions of a user, with streams that can be resumed.

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::{
        SessionManager,
        session::{RestoreOutcome, ServerSseMessage, SessionId, local::LocalSessionManager},
    },
};

type Error = <LocalSessionManager as SessionManager>::Error;

/// For one request. Requests without a session keep no events: with the connection their calls end.
pub(super) struct Resuming {
    pub(super) sessions: Arc<LocalSessionManager>,
    /// Whether the client knows events without a message. To many clients of earlier revisions they are broken messages.
    pub(super) knows_empty_events: bool,
}

impl SessionManager for Resuming {
    type Error = Error;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Error> {
        self.sessions.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Error> {
        self.sessions.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Error> {
        self.sessions.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Error> {
        self.sessions.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Error> {
        let knows_empty_events = self.knows_empty_events;
        let events = self.sessions.create_stream(id, message).await?;
        Ok(events.filter(move |event| std::future::ready(knows_empty_events || event.message.is_some())))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Error> {
        self.sessions.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Error> {
        self.sessions.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Error> {
        self.sessions.resume(id, last_event_id).await
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Error> {
        self.sessions.restore_session(id).await
    }
}
