//! Sessions that come over from the program before, whose listening socket this one has taken over, and what the two still have to say to
//! each other.

use std::sync::Weak;

use axum::{
    extract::Request,
    http::{HeaderMap, Method},
};
use rmcp::{model::ClientJsonRpcMessage, transport::streamable_http_server::SessionManager};
use serde::{Deserialize, de::IgnoredAny};
use tokio::sync::{MutexGuard, mpsc};

use super::{Mcp, session_of};
use crate::{
    mcp::Visitor,
    takeover::{Elsewhere, Message},
};

/// The header that names the last event that came on a stream.
const LAST_EVENT: &str = "last-event-id";
/// The longest message that goes back to the programs before, in bytes.
const MAX_PASSED_BACK: usize = 1 << 20;

impl Mcp {
    /// For a request of a session that is not all here yet: the session, and a lock, so that it is opened here once.
    pub(super) async fn coming_over(
        &self,
        request: &mut Request,
        visitor: &Visitor,
    ) -> (Option<MutexGuard<'_, ()>>, Option<String>) {
        let id = session_of(request.headers()).map(str::to_owned);
        let Some((takeover, id)) = self.takeover.as_ref().zip(id) else { return (None, None) };
        let (tenant, user) = (visitor.registry.tenant(), &visitor.context.caller().user);
        if takeover.session(&id, tenant, user).is_none() {
            return (None, None);
        }
        let lock = match takeover.elsewhere(&id) {
            Elsewhere::All => Some(self.coming_over.lock().await),
            _ => None,
        };
        let elsewhere = takeover.elsewhere(&id);
        let listens = request.method() == Method::GET && elsewhere != Elsewhere::Nothing;
        if listens {
            // It counts the events of the stream before.
            request.headers_mut().remove(LAST_EVENT);
        }
        (lock, (listens || elsewhere == Elsewhere::All).then_some(id))
    }

    /// Gives a message to the programs before too, where it may be for a call that runs there.
    pub(super) async fn pass_back(&self, headers: &HeaderMap, message: &[u8]) {
        let id = session_of(headers);
        let Some((takeover, id)) = self.takeover.as_ref().zip(id) else { return };
        if let Ok(text) = str::from_utf8(message)
            && text.len() <= MAX_PASSED_BACK
            && takeover.is_older(id)
            && is_no_request(text)
        {
            takeover.pass_back(id, text).await;
        }
    }

    /// Whether a request goes on with the stream of a call, such as `3/7`, in a session that has come over. The number of that stream may be
    /// that of another one here, and the library answers with that one's messages or with none: its client would wait for ever.
    pub(super) fn is_stream_of_another_program(&self, headers: &HeaderMap) -> bool {
        let is_of_call = headers.get(LAST_EVENT).is_some_and(|last| last.as_bytes().contains(&b'/'));
        let session = self.takeover.as_ref().zip(session_of(headers));
        is_of_call && session.is_some_and(|(takeover, id)| takeover.is_older(id))
    }
}

/// Takes messages of clients that have come to a later program, for the calls that run here.
pub(super) async fn take_messages(mut messages: mpsc::Receiver<Message>, mcp: Weak<Mcp>) {
    while let Some(Message { session, text }) = messages.recv().await {
        let Some(mcp) = mcp.upgrade() else { return };
        let Ok(message) = serde_json::from_str::<ClientJsonRpcMessage>(&text) else { continue };
        let id = session.into();
        for sessions in mcp.sessions.all() {
            if sessions.sessions.read().await.contains_key(&id) {
                if let Err(cause) = sessions.accept_message(&id, message).await {
                    tracing::debug!(%cause, "message_not_taken");
                }
                break;
            }
        }
    }
}

/// Whether a message is no request: an answer, or a notification.
fn is_no_request(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Head {
        id: Option<IgnoredAny>,
        method: Option<IgnoredAny>,
    }
    serde_json::from_str::<Head>(text).is_ok_and(|head| head.id.is_none() || head.method.is_none())
}
