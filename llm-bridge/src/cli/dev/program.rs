//! A program that serves, as its supervisor sees it.

use std::{
    collections::BTreeMap,
    env, io,
    net::TcpListener,
    os::{fd::OwnedFd, unix::net::UnixStream as StdStream},
    path::Path,
    process::ExitStatus,
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    sync::{
        broadcast::{self, error::RecvError},
        oneshot,
    },
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::shared::Shared;
use crate::takeover::{Message, SUPERVISED, ToProgram, ToSupervisor, hand_out};

/// What [`SUPERVISED`] is for the first program, and for one that takes over.
pub(super) const FIRST: &str = "first";
pub(super) const NEXT: &str = "next";

/// How long a program has to take no more requests.
const GIVES_WAY: Duration = Duration::from_secs(10);

/// The tools of a program.
#[derive(Debug, Clone, Default)]
pub(super) struct Tools {
    pub(super) names: Vec<String>,
    /// Those that are off, and why.
    pub(super) off: BTreeMap<String, String>,
    /// What is wrong in files of tools.
    pub(super) faults: Vec<String>,
}

/// A program that serves.
pub(super) struct Program {
    pub(super) tools: Tools,
    /// Cancelled to have it finish what runs, and end.
    finish: CancellationToken,
    /// Comes when it takes no more requests.
    given_way: oneshot::Receiver<()>,
    /// Waits for its end, which is as far as a program goes that was told to finish.
    ended: JoinHandle<io::Result<ExitStatus>>,
}

impl Program {
    /// Starts a program and waits until it accepts connections.
    ///
    /// # Errors
    /// What it says why it does not.
    pub(super) async fn start(
        program: &Path,
        before: Option<&Tools>,
        listener: &TcpListener,
        shared: &Arc<Shared>,
        all: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<Self, String> {
        let (mut child, control) = spawn(program, before.is_some(), listener, shared)
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let (lines, out) = control.into_split();
        let (first, answered) = oneshot::channel();
        let (gives_way, given_way) = oneshot::channel();
        let finish = CancellationToken::new();
        let begin = ToProgram::Begin(shared.begin(before));
        // Then nobody writes to it any more, and it ends.
        let is_over = stop.child_token();
        let unless_it_serves = is_over.clone().drop_guard();
        all.spawn(write(out, begin, Arc::clone(shared), finish.clone(), is_over.clone()));
        all.spawn(read(lines, first, gives_way, Arc::clone(shared)));
        let ended = all.spawn(async move {
            let status = child.wait().await;
            is_over.cancel();
            status
        });
        match answered.await {
            Ok(Ok(tools)) => {
                unless_it_serves.disarm();
                Ok(Self { tools, finish, given_way, ended })
            }
            Ok(Err(why)) => Err(why),
            Err(_) => Err(match ended.await {
                Ok(Ok(status)) => format!("the program ended before it served: {status}"),
                _ => "the program ended before it served".to_owned(),
            }),
        }
    }

    /// Has it finish what runs, and end. Waits until it takes no more requests, so that all that come later are answered by the next.
    pub(super) async fn finish(self) {
        self.finish.cancel();
        let _ = tokio::time::timeout(GIVES_WAY, self.given_way).await;
    }

    /// Waits for its end.
    pub(super) async fn ended(&mut self) -> String {
        match (&mut self.ended).await {
            Ok(Ok(status)) => status.to_string(),
            _ => "unknown".to_owned(),
        }
    }
}

fn spawn(
    program: &Path,
    succeeds: bool,
    listener: &TcpListener,
    shared: &Shared,
) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = StdStream::pair()?;
    hand_out(&ours, listener, &shared.taking, &shared.putting)?;
    ours.set_nonblocking(true)?;
    let control = UnixStream::from_std(ours)?;
    // The command has the other end until it is dropped.
    let child = Command::new(program)
        .args(env::args_os().skip(1))
        .env(SUPERVISED, if succeeds { NEXT } else { FIRST })
        .stdin(OwnedFd::from(theirs))
        .spawn()?;
    Ok((child, control))
}

/// Tells the program what it is to know, until it is over.
async fn write(
    mut out: OwnedWriteHalf,
    begin: ToProgram,
    shared: Arc<Shared>,
    finish: CancellationToken,
    is_over: CancellationToken,
) {
    let mut build = shared.build.subscribe();
    let (mut line, mut messages) = (begin, None);
    loop {
        let Ok(mut text) = serde_json::to_vec(&line) else { return };
        text.push(b'\n');
        if matches!(line, ToProgram::Finish) {
            messages = Some(shared.messages.subscribe());
        }
        if out.write_all(&text).await.is_err() {
            return;
        }
        line = tokio::select! {
            () = is_over.cancelled() => return,
            () = finish.cancelled(), if messages.is_none() => ToProgram::Finish,
            message = passed_back(messages.as_mut()) => ToProgram::Message(message),
            changed = build.changed() => match changed {
                Ok(()) => ToProgram::Build(build.borrow_and_update().clone()),
                Err(_) => return,
            },
        };
    }
}

/// Waits for a message that has come to a later program.
async fn passed_back(messages: Option<&mut broadcast::Receiver<Message>>) -> Message {
    let Some(messages) = messages else { return std::future::pending().await };
    loop {
        match messages.recv().await {
            Ok(message) => return message,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

/// Takes what a program says. The first is whether it serves.
async fn read(
    lines: OwnedReadHalf,
    first: oneshot::Sender<Result<Tools, String>>,
    gives_way: oneshot::Sender<()>,
    shared: Arc<Shared>,
) {
    let (mut lines, mut first) = (BufReader::new(lines).lines(), Some(first));
    let (mut gives_way, mut tools) = (Some(gives_way), Tools::default());
    while let Ok(Some(line)) = lines.next_line().await {
        let started = match serde_json::from_str(&line) {
            Ok(ToSupervisor::Session(session)) => {
                shared.opened(session);
                continue;
            }
            Ok(ToSupervisor::SessionEnded(id)) => {
                shared.ended(&id);
                continue;
            }
            Ok(ToSupervisor::Message(message)) => {
                // There may be no program that finishes.
                let _ = shared.messages.send(message);
                continue;
            }
            Ok(ToSupervisor::GivenWay) => {
                gives_way.take();
                continue;
            }
            Ok(ToSupervisor::Tools { off, faults }) => {
                tools = Tools { off, faults, ..tools };
                continue;
            }
            Ok(ToSupervisor::Ready { tools: names }) => Ok(Tools { names, ..std::mem::take(&mut tools) }),
            Ok(ToSupervisor::Failed(why)) => Err(why),
            Err(cause) => {
                tracing::warn!(%cause, "program_not_understood");
                continue;
            }
        };
        if let Some(first) = first.take() {
            let _ = first.send(started);
        }
    }
}
