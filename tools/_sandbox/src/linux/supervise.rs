//! Starts the confined program, watches it, ends all of it, and reports.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{Signal, killpg},
        wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid},
    },
    unistd::{Pid, geteuid, getpid},
};

use super::{
    confine::{self, Confinement},
    folder::Folder,
    watch,
};
use crate::{
    Finished, LAUNCH, Limits, Stop,
    job::{Job, Report},
};

/// How often the program's memory and files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What the supervisor waits for.
enum Event {
    Ended,
    WroteTooMuch,
    CallerLeft,
}

pub(super) fn run() -> Result<(), String> {
    let mut input = BufReader::new(io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| error.to_string())?;
    let job: Job = serde_json::from_str(&line).map_err(|error| format!("no job: {error}"))?;
    let (events, happened) = mpsc::channel();
    let left = events.clone();
    thread::spawn(move || {
        // Nothing more is said: it ends when the other end is closed.
        let _ = io::copy(&mut input, &mut io::sink());
        let _ = left.send(Event::CallerLeft);
    });
    let user = if geteuid().is_root() { Some(user_of_its_own()) } else { None };
    let (finished, left_behind) = match Folder::create(&job, user) {
        Err(error) => (Err(format!("no folder in {}: {error}", job.folder.display())), None),
        Ok(folder) => {
            let finished = supervise(job, &folder, user, events, &happened);
            let left = folder.remove().err().map(|error| format!("{}: {error}", folder.path.display()));
            (finished, left)
        }
    };
    let report = serde_json::to_vec(&Report { finished, left_behind }).map_err(|error| error.to_string())?;
    // Nobody may be there to read it any more.
    let _ = io::stdout().write_all(&report);
    Ok(())
}

fn supervise(
    job: Job,
    folder: &Folder,
    user: Option<u32>,
    events: Sender<Event>,
    happened: &mpsc::Receiver<Event>,
) -> Result<Finished, String> {
    // What the program leaves behind becomes this process's child, and is waited for below.
    prctl::set_child_subreaper(true).map_err(|error| error.to_string())?;
    let limits = job.limits;
    let confinement = Confinement { job, folder: folder.path.clone(), user, supervisor: getpid().as_raw() };
    let started = Instant::now();
    let mut child = start(&confinement).map_err(|error| format!("cannot start the launcher: {error}"))?;
    let most = limits.output;
    let output = child.stdout.take().map(|pipe| {
        let head = u64::try_from(confine::READY.len()).unwrap_or_default();
        read(pipe, head.saturating_add(most), events.clone())
    });
    let errors = child.stderr.take().map(|pipe| read(pipe, most, events.clone()));
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(|error| error.to_string())?);
    thread::spawn(move || {
        // It is not reaped, so that its number stays its group's until all of the group is killed.
        let _ = waitid(Id::Pid(group), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        let _ = events.send(Event::Ended);
    });
    let stopped = wait(happened, started, &limits, folder, group);
    // No process of the program can have left the group: that is refused to them.
    let _ = killpg(group, Signal::SIGKILL);
    let status = reap_all(group);
    let duration = started.elapsed();
    let (stdout, cut_output) = output.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let (stderr, cut_errors) = errors.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let truncated = cut_output || cut_errors;
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    let Some(stdout) = stdout.strip_prefix(confine::READY) else {
        let why = Some(stderr.trim()).filter(|why| !why.is_empty());
        return Err(why.unwrap_or("the launcher ended before the program was started").to_owned());
    };
    let (exit_code, signal) = match status {
        Some(WaitStatus::Exited(_, code)) => (Some(code), None),
        Some(WaitStatus::Signaled(_, signal, _)) => (None, Some(signal)),
        _ => (None, None),
    };
    let stopped = stopped.or(match signal {
        Some(Signal::SIGXCPU) => Some(Stop::Time),
        Some(Signal::SIGXFSZ) => Some(Stop::Disk),
        _ if truncated => Some(Stop::Output),
        _ => None,
    });
    Ok(Finished {
        stdout: String::from_utf8_lossy(stdout).into_owned(),
        stderr,
        truncated,
        exit_code,
        signal: signal.map(|signal| signal.as_str().to_owned()),
        stopped,
        duration,
    })
}

/// Starts the process that confines itself, in a process group of its own.
fn start(confinement: &Confinement) -> io::Result<Child> {
    use std::os::unix::process::CommandExt;
    let mut child = Command::new("/proc/self/exe")
        .args([LAUNCH, "confine"])
        .env_clear()
        .current_dir(confinement.folder.join(Folder::WORK))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // One that has ended says why.
        let _ = input.write_all(&serde_json::to_vec(confinement)?);
    }
    Ok(child)
}

/// Reads so many bytes, and says whether there are more. Whoever goes on writing then gets the error that nobody reads.
fn read(
    pipe: impl Read + Send + 'static,
    most: u64,
    events: Sender<Event>,
) -> thread::JoinHandle<(Vec<u8>, bool)> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(most.saturating_add(1)).read_to_end(&mut bytes);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let is_cut = bytes.len() > most;
        if is_cut {
            bytes.truncate(most);
            let _ = events.send(Event::WroteTooMuch);
        }
        (bytes, is_cut)
    })
}

/// Waits until the program has ended, or has to.
fn wait(
    happened: &mpsc::Receiver<Event>,
    started: Instant,
    limits: &Limits,
    folder: &Folder,
    group: Pid,
) -> Option<Stop> {
    loop {
        let left = limits.time.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Some(Stop::Time);
        }
        match happened.recv_timeout(left.min(LOOK_EVERY)) {
            Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => return None,
            Ok(Event::WroteTooMuch) => return Some(Stop::Output),
            Ok(Event::CallerLeft) => return Some(Stop::Cancelled),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(stop) = watch::excess(group, &folder.path.join(Folder::WORK), limits) {
                    return Some(stop);
                }
            }
        }
    }
}

/// Waits until none of the program's processes is left. Gives what the first one ended with.
fn reap_all(first: Pid) -> Option<WaitStatus> {
    let mut status = None;
    loop {
        match waitpid(None, None) {
            Ok(reaped) if reaped.pid() == Some(first) => status = Some(reaped),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return status,
        }
    }
}

/// A user that nobody is: then the program owns nothing, may signal nobody, and its processes can be counted.
fn user_of_its_own() -> u32 {
    // systemd's table of user ids has nobody above this, and a process's number is below 2^22.
    const UNUSED: u32 = 1_879_048_192;
    // Inside of a container only the first 65536 may be there. These are for services that get a user when they start.
    const DYNAMIC: u32 = 61_184;
    let own = getpid().as_raw().unsigned_abs();
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_there = map.lines().any(|range| {
        let mut numbers = range.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), _, Some(Ok(count))) = (numbers.next(), numbers.next(), numbers.next()) else {
            return false;
        };
        first <= u64::from(UNUSED) && first.saturating_add(count) >= u64::from(UNUSED) + (1 << 22)
    });
    if is_there { UNUSED + own } else { DYNAMIC + own % 4_336 }
}
