//! The connections of clients: small packets are sent at once, and a client that does not read is not waited for without end.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::serve::Listener;
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};
use tokio_io_timeout::TimeoutWriter;

use super::handover::Requests;
use crate::takeover::Takeover;

/// How much of an answer the system may keep for a client that does not read, in bytes. Linux takes twice as much; left to itself, up to 4 MiB.
pub(in crate::server) const SEND_BUFFER: usize = 64 * 1024;

/// Accepts connections. One is closed, and its turn ends with it, when its client has taken nothing for a time while there was
/// something to send: it would keep a slot of the model server.
pub(in crate::server) struct Connections {
    pub(in crate::server) listener: TcpListener,
    pub(in crate::server) write_timeout: Duration,
    /// Connections that the program before has accepted come from there too.
    pub(in crate::server) takeover: Option<Takeover>,
}

/// A connection of a client.
pub(in crate::server) struct Connection {
    /// What the program before has read of the next request.
    begun: Vec<u8>,
    stream: Pin<Box<TimeoutWriter<TcpStream>>>,
    requests: Arc<Requests>,
}

impl Connection {
    fn new(stream: TcpStream, begun: Vec<u8>, write_timeout: Duration) -> Self {
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(write_timeout));
        Self { begun, stream: Box::pin(stream), requests: Arc::default() }
    }

    /// What is known of its requests.
    pub(in crate::server) fn requests(&self) -> Arc<Requests> {
        Arc::clone(&self.requests)
    }

    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.requests.note_unsent(written.is_pending());
        written
    }

    /// Waits for the client to close the connection, and leaves everything else for who reads it next.
    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut first = [0];
        match ready!(self.stream().poll_peek(context, &mut ReadBuf::new(&mut first)))? {
            0 => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    }

    /// The connection itself.
    pub(in crate::server) fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }
}

/// Waits for a connection that the program before hands on.
async fn taken(takeover: Option<&Takeover>, write_timeout: Duration) -> (Connection, SocketAddr) {
    let Some(takeover) = takeover else { return std::future::pending().await };
    loop {
        let taken = takeover.handed().take().await.and_then(|(stream, begun)| {
            let stream = TcpStream::from_std(stream)?;
            let address = stream.peer_addr()?;
            Ok((Connection::new(stream, begun, write_timeout), address))
        });
        match taken {
            Ok(taken) => return taken,
            Err(cause) => tracing::debug!(%cause, "connection_not_taken_over"),
        }
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = tokio::select! {
            accepted = Listener::accept(&mut self.listener) => accepted,
            taken = taken(self.takeover.as_ref(), self.write_timeout) => return taken,
        };
        // A small packet of a stream must not wait for the acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER);
        (Connection::new(stream, Vec::new(), self.write_timeout), address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.requests.next_is_elsewhere() {
            return self.poll_gone(context);
        }
        if self.begun.is_empty() {
            return self.stream.as_mut().poll_read(context, buffer);
        }
        let length = self.begun.len().min(buffer.remaining());
        let rest = self.begun.split_off(length);
        buffer.put_slice(&std::mem::replace(&mut self.begun, rest));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream.as_mut().poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream.as_mut().poll_write_vectored(context, bytes);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}
