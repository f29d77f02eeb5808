//! Takes away from its own process all that a program may not have, and becomes the program.

use std::{
    collections::BTreeSet,
    error::Error,
    fs,
    io::{self, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::Command,
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use nix::{
    sys::{
        prctl,
        resource::{Resource, setrlimit},
        signal::Signal,
    },
    unistd::{Gid, Uid, geteuid, getppid, setgroups, setresgid, setresuid},
};
use serde::{Deserialize, Serialize};

use super::{folder::Folder, syscalls, watch};
use registry_core::with_causes;

use crate::{LAUNCH, Limits, job::Job};

/// What is written to standard output when nothing is left to be taken away; what the program writes comes after it.
pub(super) const READY: &[u8] = b"confined\n";

/// Programs and what they are made of. Not all of `/usr` and nothing else of `/etc`: secrets may be there.
const READABLE: [&str; 16] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/share",
    "/usr/local/bin",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/etc/localtime",
];
/// Memory that `/dev/zero` shares when it may be written would not be seen.
const READABLE_DEVICES: [&str; 3] = ["/dev/random", "/dev/urandom", "/dev/zero"];
/// The oldest rules that are enough: Linux 6.2, the first in which a file cannot be cut that cannot be written.
const NEEDED: ABI = ABI::V3;
/// The newest rules that are known here.
const KNOWN: ABI = ABI::V9;

/// The instructions for the process that confines itself, as JSON on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Confinement {
    pub(super) job: Job,
    pub(super) folder: PathBuf,
    /// Whom the program runs as, where it is not the server's user.
    pub(super) user: Option<u32>,
    pub(super) supervisor: i32,
}

/// Gives back control only when it fails.
pub(super) fn run() -> Result<(), String> {
    let confinement: Confinement =
        serde_json::from_reader(io::stdin()).map_err(|error| format!("no confinement: {error}"))?;
    close_inherited()?;
    // Where memory runs out, this is to go before the server. A kernel without the file has no killer to inform.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    limit(&confinement.job.limits, confinement.user)?;
    if required().handle_access(AccessFs::from_all(NEEDED)).is_err() {
        return Err("Landlock of Linux 6.2 or newer is not there, or is switched off".to_owned());
    }
    let rules = file_rules(&confinement).map_err(|error| format!("Landlock: {}", with_causes(&*error)))?;
    let scopes_signals = required().scope(Scope::from_all(ABI::V6)).is_ok();
    if let Some(user) = confinement.user {
        become_user(user).map_err(|error| {
            format!("the server is root and cannot give a program another user ({error}); run it as an ordinary user")
        })?;
    }
    // After the user was changed, which would take it back.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| error.to_string())?;
    if getppid().as_raw() != confinement.supervisor {
        return Err("the supervisor is gone".to_owned());
    }
    let status = rules.restrict_self().map_err(|error| format!("Landlock: {}", with_causes(&error)))?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err("Landlock is not enforced".to_owned());
    }
    // As late as it can be: this program's allocator has more address space than that already, and would get no more.
    narrow(Resource::RLIMIT_AS, confinement.job.limits.memory)?;
    syscalls::restrict(scopes_signals).map_err(|error| format!("seccomp filters are not there ({error})"))?;
    let mut program = program(&confinement);
    let mut output = io::stdout();
    output.write_all(READY).and_then(|()| output.flush()).map_err(|error| error.to_string())?;
    let error = program.exec();
    Err(format!("{} cannot be started: {error}", program.get_program().to_string_lossy()))
}

fn program(confinement: &Confinement) -> Command {
    let Confinement { job, folder, supervisor, .. } = confinement;
    let work = folder.join(Folder::WORK);
    let mut program = match job.trial {
        None => {
            let mut program = Command::new(&job.program.path);
            program.args(&job.program.arguments).arg(folder.join(&job.program.script_name));
            program
        }
        Some(port) => {
            let mut trial = Command::new("/proc/self/exe");
            let forbidden = folder.join(Folder::FORBIDDEN);
            trial.args([LAUNCH, "trial"]).arg(port.to_string()).arg(supervisor.to_string()).arg(forbidden);
            trial
        }
    };
    program
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .env("HOME", &work)
        .env("TMPDIR", &work);
    program
}

/// What the server has open, or was given open by whoever started it, is not the program's.
fn close_inherited() -> Result<(), String> {
    const FIRST: i32 = 3;
    const CLOSED_BY_EXEC: i64 = nix::libc::O_CLOEXEC as i64;
    close_fds::set_fds_cloexec(FIRST, &[]);
    // The crate does not say whether it could; `proc_pid_fdinfo(5)` does.
    let cannot = |error: io::Error| format!("/proc/self/fdinfo: {error}");
    for entry in fs::read_dir("/proc/self/fdinfo").map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let number = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        // The one by which the folder is read is gone by then.
        let Ok(info) = fs::read_to_string(entry.path()) else { continue };
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| i64::from_str_radix(flags.trim(), 8).ok()).unwrap_or_default();
        if number.is_none_or(|number| number >= FIRST) && flags & CLOSED_BY_EXEC == 0 {
            return Err(format!("the open file {} cannot be closed", entry.file_name().to_string_lossy()));
        }
    }
    Ok(())
}

fn limit(limits: &Limits, user: Option<u32>) -> Result<(), String> {
    let seconds = limits.time.as_secs().saturating_add(1);
    // The limit is one of the user's processes, whatever they are, so those that are there are not the program's.
    let others = if user.is_some() { 0 } else { watch::tasks_of(geteuid().as_raw()) };
    for (resource, most) in [
        (Resource::RLIMIT_CPU, seconds),
        (Resource::RLIMIT_FSIZE, limits.disk),
        (Resource::RLIMIT_NPROC, others.saturating_add(limits.processes)),
        (Resource::RLIMIT_NOFILE, 128),
        (Resource::RLIMIT_SIGPENDING, 1024),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_MEMLOCK, 0),
        (Resource::RLIMIT_MSGQUEUE, 0),
        (Resource::RLIMIT_NICE, 0),
        (Resource::RLIMIT_RTPRIO, 0),
    ] {
        narrow(resource, most)?;
    }
    Ok(())
}

/// Sets a limit. One that is narrower already stays so: it may not be widened.
fn narrow(resource: Resource, most: u64) -> Result<(), String> {
    let (_, hard) = nix::sys::resource::getrlimit(resource).map_err(|error| error.to_string())?;
    let most = most.min(hard);
    setrlimit(resource, most, most).map_err(|error| format!("{resource:?}: {error}"))
}

/// Rules of which the kernel has to know each.
fn required() -> Ruleset {
    Ruleset::default().set_compatibility(CompatLevel::HardRequirement)
}

fn file_rules(confinement: &Confinement) -> Result<RulesetCreated, Box<dyn Error>> {
    let read = AccessFs::from_read(NEEDED);
    let Confinement { job, folder, .. } = confinement;
    let not_in_folder = AccessFs::MakeSock
        | AccessFs::MakeChar
        | AccessFs::MakeBlock
        | AccessFs::IoctlDev
        | AccessFs::ResolveUnix;
    let in_folder: BitFlags<AccessFs> = AccessFs::from_all(KNOWN) & !not_in_folder;
    let file = AccessFs::ReadFile | AccessFs::WriteFile;
    let rules = required()
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(python_settings(), read))?
        .add_rules(path_beneath_rules(&job.readable, read))?
        .add_rules(path_beneath_rules(["/dev/null"], file))?
        .add_rules(path_beneath_rules(READABLE_DEVICES, AccessFs::ReadFile))?
        .add_rules(path_beneath_rules([folder.join(&job.program.script_name)], AccessFs::ReadFile))?
        .add_rules(path_beneath_rules([folder.join(Folder::WORK)], in_folder))?;
    if job.trial.is_none() {
        return Ok(rules);
    }
    // The trial is this program, whose libraries may be anywhere.
    let own = PathFd::new("/proc/self/exe")?;
    Ok(rules
        .add_rule(PathBeneath::new(own, AccessFs::ReadFile | AccessFs::Execute))?
        .add_rules(path_beneath_rules(own_libraries()?, AccessFs::ReadFile))?)
}

/// The files whose code this process runs.
fn own_libraries() -> io::Result<BTreeSet<PathBuf>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    // See proc_pid_maps(5): addresses, permissions, offset, device, inode, path.
    let is_code = |line: &&str| line.split(' ').nth(1).is_some_and(|permissions| permissions.contains('x'));
    let file = |line: &str| line.find('/').and_then(|start| line.get(start..)).map(PathBuf::from);
    Ok(maps.lines().filter(is_code).filter_map(file).collect())
}

/// Where Debian keeps a part of Python's library.
fn python_settings() -> Vec<PathBuf> {
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    let is_python = |name: &str| name.starts_with("python3");
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_python))
        .map(|entry| entry.path())
        .collect()
}

fn become_user(user: u32) -> nix::Result<()> {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    setgroups(&[])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)
}
