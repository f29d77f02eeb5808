//! Bounds what a server may ask of this client at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use rmcp::{
    RoleClient,
    model::JsonRpcMessage,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

/// How many requests of a server may wait for their answers, or for the server to read those: the client library holds an answer for each.
pub(super) const MAX_ASKED: usize = 256;

/// A transport that ends where the server asks more than that.
pub(super) struct Asked<T> {
    transport: T,
    waiting: Arc<AtomicUsize>,
}

impl<T> Asked<T> {
    pub(super) fn new(transport: T) -> Self {
        Self { transport, waiting: Arc::default() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Asked<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let (sending, waiting) = (self.transport.send(message), Arc::clone(&self.waiting));
        async move {
            let sent = sending.await;
            if is_answer {
                // An error of ours about no request of theirs answers nothing.
                waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |many| many.checked_sub(1)).ok();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await?;
        if matches!(message, JsonRpcMessage::Request(_))
            && self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_ASKED
        {
            tracing::warn!(most = MAX_ASKED, "mcp_server_asks_and_reads_no_answers");
            return None;
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientJsonRpcMessage, ClientResult, RequestId};
    use tokio::io::{AsyncWriteExt, duplex, split};

    use super::*;
    use crate::mcp::lines::Lines;

    #[tokio::test]
    async fn a29_a_server_that_asks_and_reads_nothing_is_left() {
        let (ours, theirs) = duplex(4 << 20);
        let (input, output) = split(ours);
        let mut asked = Asked::new(Lines::new(input, output));
        let (_unread, mut theirs) = split(theirs);
        let ping = async |number: usize, theirs: &mut tokio::io::WriteHalf<_>| {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"ping\"}}\n");
            theirs.write_all(line.as_bytes()).await.unwrap();
        };
        // What is answered does not count.
        for number in 0..2 * MAX_ASKED {
            ping(number, &mut theirs).await;
            assert!(asked.receive().await.is_some());
            let id = RequestId::Number(i64::try_from(number).unwrap());
            asked.send(ClientJsonRpcMessage::response(ClientResult::empty(()), id)).await.unwrap();
        }
        for number in 0..=MAX_ASKED {
            ping(number, &mut theirs).await;
            assert_eq!(asked.receive().await.is_some(), number < MAX_ASKED, "{number}");
        }
    }
}
