//! The ids and progress tokens of requests. The protocol has a client use each id once, and no token for two requests that run at once: the
//! library confuses their answers, and nobody can tell whose progress is told.

use std::{collections::HashMap, error::Error};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        ClientJsonRpcMessage, ClientNotification, GetMeta, JsonRpcMessage, ProgressToken, RequestId,
        ServerJsonRpcMessage,
    },
    transport::{IntoTransport, Transport},
};

/// How many characters of an id or a token are shown.
const LONGEST_SHOWN: usize = 64;

/// A transport that refuses a request whose id or progress token is that of one that still runs. The refusal of an id has none: with it, it
/// would be the answer to the other.
#[derive(Debug)]
pub struct UniqueIds<T> {
    transport: T,
    running: HashMap<RequestId, Option<ProgressToken>>,
}

impl UniqueIds<()> {
    /// Over this transport.
    pub fn over<E: Error + Send + Sync + 'static, A>(
        transport: impl IntoTransport<RoleServer, E, A>,
    ) -> UniqueIds<impl Transport<RoleServer, Error = E> + 'static> {
        UniqueIds { transport: transport.into_transport(), running: HashMap::new() }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for UniqueIds<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            self.running.remove(id);
        }
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let message = self.transport.receive().await?;
            match &message {
                JsonRpcMessage::Request(request) => {
                    let token = request.request.get_meta().get_progress_token();
                    let (named, id) = if self.running.contains_key(&request.id) {
                        (Named::Request(request.id.clone()), None)
                    } else if let Some(token) = &token
                        && self.running.values().flatten().any(|other| other == token)
                    {
                        (Named::Progress(token.clone()), Some(request.id.clone()))
                    } else {
                        self.running.insert(request.id.clone(), token);
                        return Some(message);
                    };
                    let refusal = ErrorData::invalid_request(named.in_use(), None);
                    // Not awaited: this future may be dropped at any time.
                    tokio::spawn(self.transport.send(JsonRpcMessage::error(refusal, id)));
                    continue;
                }
                JsonRpcMessage::Notification(notification) => {
                    // A cancelled request is not answered.
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.running.remove(id);
                    }
                }
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

/// What no two requests of a session may have that run at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Named {
    /// An id.
    Request(RequestId),
    /// What its progress is told with.
    Progress(ProgressToken),
}

impl Named {
    /// What is wrong with another request that has it.
    pub(crate) fn in_use(&self) -> String {
        let (what, name) = match self {
            Self::Request(id) => ("id", id),
            Self::Progress(ProgressToken(token)) => ("progress token", token),
        };
        let shown: String = name.to_string().chars().take(LONGEST_SHOWN).collect();
        format!(
            "a request with the {what} {shown} still runs in this session; give each request one of its own"
        )
    }
}
