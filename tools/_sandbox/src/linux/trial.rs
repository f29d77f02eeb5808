//! Whether the sandbox holds here, found by trying to get out of it.

use std::{
    fs::{self, File},
    io,
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    os::unix::{fs::PermissionsExt, net::UnixDatagram},
    path::{Path, PathBuf},
    thread,
};

use nix::{
    errno::Errno,
    sched::{CloneFlags, unshare},
    sys::{prctl, signal::kill},
    unistd::{Pid, geteuid, setpgid, setsid},
};

use crate::{Program, Sandbox};

/// What the trial says when nothing was possible that must not be.
const HELD: &str = "held";

/// Why the sandbox does not hold, if it does not.
pub(crate) fn hold(sandbox: &Sandbox) -> Result<(), String> {
    // Somebody has to listen, or nobody is reached anyway.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let nothing = Program {
        path: PathBuf::new(),
        arguments: Vec::new(),
        script_name: "script".to_owned(),
        script: String::new(),
    };
    let finished = sandbox.launch_blocking(&sandbox.job(nothing, Some(port)))?;
    match (finished.stdout.trim(), finished.exit_code) {
        (HELD, Some(0)) => Ok(()),
        (_, code) => {
            let said = [finished.stdout.trim(), finished.stderr.trim()].join(" ");
            let signal = finished.signal.unwrap_or_default();
            let code = code.map(|code| format!("exit code {code}")).unwrap_or_default();
            Err(format!("a trial of the sandbox failed: {} ({code}{signal})", said.trim()))
        }
    }
}

/// The trial itself, in the sandbox.
pub(super) fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(3);
    let mut next = || arguments.next().unwrap_or_default();
    let (port, supervisor) = (next().parse::<u16>(), next().parse::<i32>());
    let (Ok(port), Ok(supervisor)) = (port, supervisor) else { return Err("no trial".to_owned()) };
    let forbidden = PathBuf::from(next());
    let mut faults: Vec<String> =
        refusals(port, Pid::from_raw(supervisor), &forbidden).into_iter().filter_map(fault).collect();
    faults.extend(needs().into_iter().filter_map(|(what, done)| {
        done.err().map(|error| format!("it is not possible to {what} ({error})"))
    }));
    if faults.is_empty() {
        println!("{HELD}");
        return Ok(());
    }
    Err(faults.join("; "))
}

const ENVIRONMENT: &str = "read the environment of others";

type Attempt = (&'static str, io::Result<()>);

/// What has to be refused. That it fails is not enough: it has to fail for want of permission.
fn refusals(port: u16, supervisor: Pid, forbidden: &Path) -> Vec<Attempt> {
    let beside = forbidden.with_extension("new");
    let environment = format!("/proc/{supervisor}/environ");
    let group = || setpgid(Pid::from_raw(0), Pid::from_raw(0)).map_err(io::Error::from);
    vec![
        ("read a file of others", File::open(forbidden).map(drop)),
        ("write beside its folder", File::create(beside).map(drop)),
        ("remove a file of others", fs::remove_file(forbidden)),
        ("cut a file of others", fs::OpenOptions::new().write(true).truncate(true).open(forbidden).map(drop)),
        ("list the root folder", fs::read_dir("/").map(drop)),
        (ENVIRONMENT, File::open(environment).map(drop)),
        ("connect to this machine", TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map(drop)),
        ("open a datagram socket", UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map(drop)),
        ("open a Unix socket", UnixDatagram::unbound().map(drop)),
        ("signal its supervisor", kill(supervisor, None).map_err(io::Error::from)),
        ("leave its process group", group()),
        ("leave its session", setsid().map(drop).map_err(io::Error::from)),
        ("take a namespace of its own", unshare(CloneFlags::CLONE_NEWUSER).map_err(io::Error::from)),
        ("hide itself", prctl::set_dumpable(false).map_err(io::Error::from)),
    ]
}

fn fault((what, done): Attempt) -> Option<String> {
    match done {
        Ok(()) => Some(format!("it was possible to {what}")),
        Err(error) => {
            let refused = [Errno::EPERM, Errno::EACCES, Errno::ENOSYS].map(|errno| Some(errno as i32));
            // Where `/proc` hides the processes of others, as systemd has it with `ProtectProc=invisible`, they are not there.
            let is_hidden = what == ENVIRONMENT && error.raw_os_error() == Some(Errno::ENOENT as i32);
            let is_refused = is_hidden || refused.contains(&error.raw_os_error());
            (!is_refused).then(|| format!("to {what} was not refused but failed ({error})"))
        }
    }
}

/// What a program cannot do without.
fn needs() -> Vec<Attempt> {
    let privileges = match prctl::get_no_new_privs() {
        Ok(true) if !geteuid().is_root() => Ok(()),
        Ok(_) => Err(io::Error::other("it could have more rights")),
        Err(error) => Err(error.into()),
    };
    let mode =
        fs::write("own", "own").and_then(|()| fs::metadata("own")).map(|file| file.permissions().mode());
    vec![
        ("give up its rights", privileges),
        ("write to its own folder", mode.map(drop)),
        ("start a thread", thread::Builder::new().spawn(|| ()).map(drop)),
        ("find its way", std::env::current_dir().map(drop)),
    ]
}
