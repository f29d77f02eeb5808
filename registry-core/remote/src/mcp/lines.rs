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
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader},
    sync::Mutex,
};
use tokio_util::{
    bytes::{BufMut, BytesMut},
    codec::{BytesCodec, FramedWrite},
};

use super::{
    lenient,
    reply::{MAX_PICTURES, MAX_REPLY},
};
use crate::values::Values;

/// How long one message may be, in bytes: the largest result with its pictures, and what is around it.
const MAX_LINE: usize = 37 << 20;
const _: () = assert!(MAX_LINE > MAX_REPLY + MAX_PICTURES);

/// A transport over such lines, each of a bounded length and number of values. One with more ends the connection: a line that is left out
/// is an answer for which somebody would wait.
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    /// What has come of the line so far: whoever waits for it may stop and begin again.
    line: Vec<u8>,
    /// None once it is closed.
    output: Arc<Mutex<Option<FramedWrite<W, BytesCodec>>>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite> Lines<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        let output = FramedWrite::new(output, BytesCodec::new());
        Self { input: BufReader::new(input), line: Vec::new(), output: Arc::new(Mutex::new(Some(output))) }
    }

    /// Reads on to the end of the line; false where the input ends before.
    async fn read_line(&mut self) -> io::Result<bool> {
        let left = u64::try_from((MAX_LINE + 1).saturating_sub(self.line.len())).unwrap_or(u64::MAX);
        (&mut self.input).take(left).read_until(b'\n', &mut self.line).await?;
        if self.line.ends_with(b"\n") {
            Values::default().count(&self.line)?;
            return Ok(true);
        }
        match self.line.len() > MAX_LINE {
            true => Err(io::Error::other(format!("a message has more than {MAX_LINE} bytes"))),
            false => Ok(false),
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
            match self.read_line().await {
                Ok(true) => {}
                Ok(false) => return None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::MAX_VALUES;

    /// The lines of a text, as far as they are read.
    async fn read(text: &str) -> Result<String, String> {
        let mut lines = Lines::new(text.as_bytes(), tokio::io::sink());
        let mut all = String::new();
        while lines.read_line().await.map_err(|error| error.to_string())? {
            all += std::str::from_utf8(&lines.line).unwrap();
            lines.line.clear();
        }
        Ok(all)
    }

    #[tokio::test]
    async fn b19_a_message_has_so_many_values_and_no_more() {
        let reads = async |text: String| read(&text).await.map(|all| assert_eq!(all, text));
        let line = |value: &str, many: usize| format!("[{}]\n", vec![value; many].join(","));
        // As many as there may be, line after line; and however many that are none, but stand in a text.
        assert_eq!(reads(line("1", MAX_VALUES).repeat(2)).await, Ok(()));
        assert_eq!(reads(line(r#""\"[{,\\[,,,,""#, MAX_VALUES / 2)).await, Ok(()));
        assert_eq!(reads("\"unclosed\n".to_owned() + &line("1", 9)).await, Ok(()));
        for value in ["1", "{}"] {
            let error = reads(line(value, MAX_VALUES + 1)).await.unwrap_err();
            assert!(error.contains("more than 500000 values"), "{error}");
        }
    }

    #[tokio::test]
    async fn g12_a_message_is_as_long_as_its_pictures_and_no_longer() {
        let lines = |length: usize| format!("{}\n", "x".repeat(length)).repeat(2);
        assert_eq!(read(&lines(MAX_LINE)).await.map(|all| all.len()), Ok(2 * (MAX_LINE + 1)));
        assert!(read(&lines(MAX_LINE + 1)).await.unwrap_err().contains("more than"));
    }

    #[tokio::test]
    async fn b19_what_is_behind_the_last_line_is_no_message() {
        assert_eq!(read("{}\n[]\n{\"a").await.unwrap(), "{}\n[]\n");
    }
}
