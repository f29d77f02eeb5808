//! The ids of requests. The protocol has a client use each id once; the library confuses the answers of two that run at once.

use std::{collections::HashSet, error::Error};

use rmcp::{
    ErrorData, RoleServer,
    model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::{IntoTransport, Transport},
};

/// How many characters of an id are shown.
const LONGEST_SHOWN: usize = 64;

/// A transport that refuses a request whose id is that of one that still runs. The refusal has no id: with it, it would be the
/// answer to the other.
#[derive(Debug)]
pub struct UniqueIds<T> {
    transport: T,
    running: HashSet<RequestId>,
}

impl UniqueIds<()> {
    /// Over this transport.
    pub fn over<E: Error + Send + Sync + 'static, A>(
        transport: impl IntoTransport<RoleServer, E, A>,
    ) -> UniqueIds<impl Transport<RoleServer, Error = E> + 'static> {
        UniqueIds { transport: transport.into_transport(), running: HashSet::new() }
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
                JsonRpcMessage::Request(request) if !self.running.insert(request.id.clone()) => {
                    let refusal = ErrorData::invalid_request(in_use(&request.id), None);
                    // Not awaited: this future may be dropped at any time.
                    tokio::spawn(self.transport.send(JsonRpcMessage::error(refusal, None)));
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

/// What is wrong with a request of this id.
pub(crate) fn in_use(id: &RequestId) -> String {
    let shown: String = id.to_string().chars().take(LONGEST_SHOWN).collect();
    format!("a request with the id {shown} still runs in this session; give each request an id of its own")
}
