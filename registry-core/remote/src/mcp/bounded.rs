//! What a server's messages may cost: where they are parsed, and how many values one may consist of.

use std::{
    io,
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    runtime::{Builder, Handle, Runtime},
};

use super::reply::{MAX_PICTURES, MAX_REPLY};
use crate::values::Values;

/// How many threads parse the messages of servers. The client library parses where it reads, which takes seconds for a message of many
/// values: so it reads on these and never on the program's own.
const THREADS: usize = 2;

/// The threads of connections to servers outside of the program; the program's own where the system gives none.
pub(super) fn threads() -> Handle {
    static THREADS_OF_SERVERS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
        Builder::new_multi_thread().worker_threads(THREADS).thread_name("mcp-servers").enable_all().build()
    });
    match &*THREADS_OF_SERVERS {
        Ok(runtime) => runtime.handle().clone(),
        Err(cause) => {
            tracing::error!(%cause, "mcp_threads_not_started");
            Handle::current()
        }
    }
}

/// How long one message may be, in bytes: the largest result with its pictures, and what is around it.
pub(super) const MAX_LINE: usize = 37 << 20;
const _: () = assert!(MAX_LINE > MAX_REPLY + MAX_PICTURES);

/// Lines of JSON, each of a bounded length and number of values. One with more ends the connection: a line that is left out is an answer
/// for which somebody would wait.
pub(super) struct BoundedLines<R> {
    lines: R,
    length: usize,
    values: Values,
}

impl<R> BoundedLines<R> {
    pub(super) fn new(lines: R) -> Self {
        Self { lines, length: 0, values: Values::default() }
    }

    fn count(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            self.length += 1;
            match byte {
                // No text has a line break that is not escaped, so one that was not closed is left behind.
                b'\n' => (self.length, self.values) = (0, Values::default()),
                byte => self.values.take(*byte)?,
            }
            if self.length > MAX_LINE {
                return Err(io::Error::other(format!("a message has more than {MAX_LINE} bytes")));
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.lines).poll_read(context, buffer))?;
        let counted = self.count(buffer.filled().get(before..).unwrap_or_default());
        if counted.is_err() {
            // Whoever gets an error has read nothing.
            buffer.set_filled(before);
        }
        Poll::Ready(counted)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::values::MAX_VALUES;

    #[tokio::test]
    async fn b19_a_message_has_so_many_values_and_no_more() {
        let read = async |text: String| {
            let mut all = String::new();
            let read = BoundedLines::new(text.as_bytes()).read_to_string(&mut all).await;
            read.map(|_| assert_eq!(all, text)).map_err(|error| error.to_string())
        };
        let line = |value: &str, many: usize| format!("[{}]\n", vec![value; many].join(","));
        // As many as there may be, line after line; and however many that are none, but stand in a text.
        assert_eq!(read(line("1", MAX_VALUES).repeat(2)).await, Ok(()));
        assert_eq!(read(line(r#""\"[{,\\[,,,,""#, MAX_VALUES / 2)).await, Ok(()));
        assert_eq!(read("\"unclosed\n".to_owned() + &line("1", 9)).await, Ok(()));
        for value in ["1", "{}"] {
            let error = read(line(value, MAX_VALUES + 1)).await.unwrap_err();
            assert!(error.contains("more than 500000 values"), "{error}");
        }
    }
    #[tokio::test]
    async fn g12_a_message_is_as_long_as_its_pictures_and_no_longer() {
        let read = async |length: usize| {
            let line = format!("{}\n", "x".repeat(length)).repeat(2);
            let mut all = Vec::new();
            BoundedLines::new(line.as_bytes()).read_to_end(&mut all).await.map_err(|error| error.to_string())
        };
        assert_eq!(read(MAX_LINE).await, Ok(2 * (MAX_LINE + 1)));
        assert!(read(MAX_LINE + 1).await.unwrap_err().contains("more than"));
    }
}
