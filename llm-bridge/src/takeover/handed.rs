//! Connections that one program hands to the next.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixDatagram as StdDatagram,
    },
};

use tokio::{io::Interest, net::UnixDatagram};

use super::sockets;

/// The most bytes of a request that may have come before its connection is handed on.
const MOST_BEGUN: usize = 64 << 10;

/// A queue of connections between all programs of one `toolrack dev`. What one puts in, another takes out.
#[derive(Debug)]
pub(crate) struct Handed {
    taking: UnixDatagram,
    putting: UnixDatagram,
}

impl Handed {
    /// The two ends of a new queue.
    pub(crate) fn new_ends() -> io::Result<(StdDatagram, StdDatagram)> {
        StdDatagram::pair()
    }

    pub(super) fn new(taking: OwnedFd, putting: OwnedFd) -> io::Result<Self> {
        let end = |end: OwnedFd| {
            let end = StdDatagram::from(end);
            end.set_nonblocking(true)?;
            UnixDatagram::from_std(end)
        };
        Ok(Self { taking: end(taking)?, putting: end(putting)? })
    }

    /// Hands on a connection and what was read from it already.
    pub(crate) async fn put(&self, connection: impl AsFd, begun: &[u8]) -> io::Result<()> {
        if begun.len() > MOST_BEGUN {
            return Err(io::Error::other("too much of the next request has come"));
        }
        // A message without a byte would be none.
        let message = [&[0], begun].concat();
        let put = || sockets::send(&self.putting, &message, &[connection.as_fd()]);
        self.putting.async_io(Interest::WRITABLE, put).await
    }

    /// Waits for a connection, with what was read from it already.
    pub(crate) async fn take(&self) -> io::Result<(std::net::TcpStream, Vec<u8>)> {
        let mut buffer = vec![0; 1 + MOST_BEGUN];
        let take = || sockets::receive(&self.taking, &mut buffer);
        let (length, connections) = self.taking.async_io(Interest::READABLE, take).await?;
        let connection = connections.into_iter().next().ok_or_else(|| io::Error::other("no connection"))?;
        buffer.truncate(length);
        buffer.drain(..1.min(length));
        buffer.shrink_to_fit();
        let connection = std::net::TcpStream::from(connection);
        connection.set_nonblocking(true)?;
        Ok((connection, buffer))
    }
}
