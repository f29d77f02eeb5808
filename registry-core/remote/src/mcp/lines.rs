//! Messages as lines of JSON, over a program's standard input and output. Many programs log there too, some as JSON: what is no message
//! is left out, and never answered, as what they log of such an answer would be answered again.

use std::{io, sync::Arc};

use futures_util::SinkExt;
use rmcp::{
    RoleClient,
    model::ServerJsonRpcMessage,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader},
    sync::Mutex,
};
use tokio_util::{
    bytes::{BufMut, BytesMut},
    codec::{BytesCodec, FramedWrite},
};

use super::{bounded::BoundedLines, lenient};

/// A transport over such lines.
pub(super) struct Lines<R, W> {
    input: BufReader<BoundedLines<R>>,
    /// What has come of the line so far: whoever waits for it may stop and begin again.
    line: Vec<u8>,
    /// None once it is closed.
    output: Arc<Mutex<Option<FramedWrite<W, BytesCodec>>>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite> Lines<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        let output = FramedWrite::new(output, BytesCodec::new());
        Self {
            input: BufReader::new(BoundedLines::new(input)),
            line: Vec::new(),
            output: Arc::new(Mutex::new(Some(output))),
        }
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move {
            let mut line = BytesMut::new().writer();
            serde_json::to_writer(&mut line, &message)?;
            let mut line = line.into_inner();
            line.put_u8(b'\n');
            match &mut *output.lock().await {
                // It keeps what is not yet written, should nobody wait for it any more.
                Some(output) => output.send(line.freeze()).await,
                None => Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.input.read_until(b'\n', &mut self.line).await {
                Ok(_) if self.line.ends_with(b"\n") => {}
                Ok(_) => return None,
                Err(cause) => {
                    tracing::error!(%cause, "mcp_server_not_read");
                    return None;
                }
            }
            let message = message_in(&self.line);
            self.line.clear();
            match message {
                Ok(message) => return Some(message),
                Err(cause) => tracing::debug!(%cause, "line_is_no_message"),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.output.lock().await.take());
        Ok(())
    }
}

/// Some programs begin with a byte order mark.
fn message_in(line: &[u8]) -> io::Result<ServerJsonRpcMessage> {
    lenient::message(line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line))
}
