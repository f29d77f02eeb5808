//! The servers as processes: how they are started, and what they use.

use std::{fs, net::SocketAddr, process::Stdio, time::Duration};

use axum::{Router, serve::ListenerExt};
use tokio::{
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};

use crate::Fault;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(120);
/// How long to wait before a server that is starting is asked again.
const AGAIN: Duration = Duration::from_millis(100);
/// The unit of times in `/proc`: Linux reports hundredths of a second, whatever its own clock is.
const TICK: Duration = Duration::from_millis(10);

/// Serves at an address.
pub(crate) async fn serve(address: &str, router: Router) -> Result<(), Fault> {
    let listener = TcpListener::bind(address).await?;
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    Ok(axum::serve(listener, router).await?)
}

/// An address on which nothing listens.
pub(crate) async fn free_address() -> Result<SocketAddr, Fault> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?)
}

/// A server. It ends with this.
pub(crate) struct Server {
    _child: Child,
    pub(crate) pid: u32,
}

/// Starts a server, and waits until it listens on the address that its arguments name. It gets no settings of this machine's.
pub(crate) async fn start(command: &mut Command, address: SocketAddr) -> Result<Server, Fault> {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TOOLRACK_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    let program = command.as_std().get_program().display().to_string();
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    let pid = child.id().ok_or("a server ended at once")?;
    let listens = async {
        while TcpStream::connect(address).await.is_err() {
            if let Some(status) = child.try_wait()? {
                return Err::<_, Fault>(format!("{program}: {status}").into());
            }
            tokio::time::sleep(AGAIN).await;
        }
        Ok(())
    };
    tokio::time::timeout(START, listens).await.map_err(|_| format!("{program} was not ready in time"))??;
    Ok(Server { _child: child, pid })
}

/// Starts this program in another role; the server and the address of its API.
pub(crate) async fn start_self(role: &str, argument: &str) -> Result<(Server, String), Fault> {
    let address = free_address().await?;
    let mut command = Command::new(std::env::current_exe()?);
    let server = start(command.args([role, &address.to_string(), argument]), address).await?;
    Ok((server, format!("http://{address}/v1")))
}

/// The processor time of a process so far.
pub(crate) fn processor_time(pid: u32) -> Result<Duration, Fault> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/PID/stat has another form")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
    Ok(TICK * ticks.sum::<Result<u32, _>>()?)
}

/// The memory of a process, in KiB.
pub(crate) fn memory(pid: u32) -> Result<u64, Fault> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let line = line.ok_or("/proc/PID/status has no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim_end().parse()?)
}
