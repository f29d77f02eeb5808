//! How a program gets from its supervisor what it shares with the one before.

use std::{
    io,
    net::TcpListener,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream as StdStream,
    },
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{UnixStream, unix::OwnedWriteHalf},
    sync::{mpsc, watch},
};
use tokio_util::sync::CancellationToken;

use super::{
    Elsewhere, Handed, Known, Session, Sessions, Shared, Takeover, ToProgram, ToSupervisor, sockets,
};

/// The variable that tells a program of its supervisor.
pub(crate) const SUPERVISED: &str = "TOOLRACK_SUPERVISED";

/// Lines to the supervisor that have not been written.
const UNWRITTEN: usize = 64;

/// Sends a new program the sockets: the first that it reads.
pub(crate) fn hand_out(
    control: impl AsFd,
    listener: impl AsFd,
    taking: impl AsFd,
    putting: impl AsFd,
) -> io::Result<()> {
    sockets::send(control, b"\n", &[listener.as_fd(), taking.as_fd(), putting.as_fd()])
}

impl Takeover {
    /// What the supervisor of this process shares, and the listening socket; `None` without a supervisor. To be called once, on a runtime.
    ///
    /// # Errors
    /// When the supervisor does not keep to the protocol, or has ended.
    pub(crate) async fn join() -> io::Result<Option<(Self, TcpListener)>> {
        // A program that a tool starts has the variable too, and another standard input.
        let is_supervised = std::env::var_os(SUPERVISED).is_some();
        let standard_input = rustix::stdio::stdin();
        if !is_supervised || rustix::net::getsockname(standard_input).is_err() {
            return Ok(None);
        }
        let control = StdStream::from(standard_input.try_clone_to_owned()?);
        // Programs that tools start inherit the standard input.
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        let (listener, handed) = received(&control)?;
        control.set_nonblocking(true)?;
        let (lines, out) = UnixStream::from_std(control)?.into_split();
        let mut lines = BufReader::new(lines).lines();
        let first = lines.next_line().await?.unwrap_or_default();
        let ToProgram::Begin(begin) = serde_json::from_str(&first)? else {
            return Err(io::Error::other("the supervisor said something else first"));
        };
        let (said, to_write) = mpsc::channel(UNWRITTEN);
        let (passed_back, messages) = mpsc::channel(UNWRITTEN);
        tokio::spawn(write(out, to_write));
        let (state, build) = watch::channel(begin.build.clone());
        let (finish, stop) = (CancellationToken::new(), CancellationToken::new());
        let sessions = Mutex::new(sessions(begin.sessions));
        let takeover = Self(Arc::new(Shared {
            succeeds: begin.succeeds,
            faults: begin.faults,
            handed,
            build,
            sessions,
            said,
            messages: Mutex::new(Some(messages)),
            finish: finish.clone(),
            stop: stop.clone(),
        }));
        tokio::spawn(async move {
            let _stopped = stop.drop_guard();
            while let Ok(Some(line)) = lines.next_line().await {
                match serde_json::from_str(&line) {
                    Ok(ToProgram::Build(build)) => drop(state.send(build)),
                    Ok(ToProgram::Finish) => finish.cancel(),
                    // One that has no place is lost: nobody takes them.
                    Ok(ToProgram::Message(message)) => drop(passed_back.try_send(message)),
                    Ok(ToProgram::Begin(_)) => {}
                    Err(cause) => tracing::warn!(%cause, "supervisor_not_understood"),
                }
            }
        });
        Ok(Some((takeover, listener)))
    }
}

fn sessions(before: Vec<Session>) -> Sessions {
    let known =
        |session: Session| (session.id.clone(), Known { session, is_older: true, elsewhere: Elsewhere::All });
    Sessions { by_id: before.into_iter().map(known).collect() }
}

/// The sockets, which are the first that the supervisor sends.
fn received(control: &StdStream) -> io::Result<(TcpListener, Handed)> {
    let (_, given) = sockets::receive(control, &mut [0])?;
    let given: Result<[OwnedFd; sockets::MOST], _> = given.try_into();
    let [listener, taking, putting] =
        given.map_err(|_| io::Error::other("the supervisor gave no sockets"))?;
    let listener = TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    Ok((listener, Handed::new(taking, putting)?))
}

async fn write(mut out: OwnedWriteHalf, mut lines: mpsc::Receiver<ToSupervisor>) {
    while let Some(line) = lines.recv().await {
        let Ok(mut line) = serde_json::to_vec(&line) else { continue };
        line.push(b'\n');
        if out.write_all(&line).await.is_err() {
            return;
        }
    }
}
