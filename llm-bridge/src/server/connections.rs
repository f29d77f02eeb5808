//! The connections of clients: small packets are sent at once, and a client that does not read is not waited for without end.

use std::{io, net::SocketAddr, pin::Pin, time::Duration};

use axum::serve::Listener;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutWriter;

/// How much of an answer the system may keep for a client that does not read, in bytes. Linux takes twice as much; left to itself, up to 4 MiB.
const SEND_BUFFER: usize = 64 * 1024;

/// Accepts connections. One is closed, and its turn ends with it, when its client has taken nothing for a time while there was
/// something to send: it would keep a slot of the model server.
pub(super) struct Connections {
    pub(super) listener: TcpListener,
    pub(super) write_timeout: Duration,
}

impl Listener for Connections {
    type Io = Pin<Box<TimeoutWriter<TcpStream>>>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (connection, address) = Listener::accept(&mut self.listener).await;
        // A small packet of a stream must not wait for the acknowledgement of the one before.
        let _ = connection.set_nodelay(true);
        let _ = SockRef::from(&connection).set_send_buffer_size(SEND_BUFFER);
        let mut connection = TimeoutWriter::new(connection);
        connection.set_timeout(Some(self.write_timeout));
        (Box::pin(connection), address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
