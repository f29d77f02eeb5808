//! Programs that somebody else has written, run where they can harm nothing: no network, no files but a folder of their own and
//! the system's programs, and bounds on time, memory, processes, disk and output.
//!
//! Linux only, and only where its kernel lets the bounds hold, which [`Sandbox::start`] tries out. What is bounded and what is
//! not is in `docs/code-execution.md`.
//!
//! A program is started by a launcher, which confines itself and then becomes the program. The launcher is the host's own
//! program: its `main` begins with [`launched`].

mod job;
#[cfg(target_os = "linux")]
mod linux;

use std::{
    io,
    io::{Read, Write},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use self::job::{Job, Report};
use registry_core::ToolError;

/// The first argument that makes a program a launcher.
pub(crate) const LAUNCH: &str = "sandbox-run";
/// Set for a launcher. A program that is started as one and does not know it is not to start another.
const STARTED_AS_LAUNCHER: &str = "TOOLRACK_SANDBOX_LAUNCHER";

const NO_LAUNCHER: &str = "the program's `main` has to begin with `sandbox::launched`";

/// What a launcher is given beside the program's time, to start it and to clean up.
const GRACE: Duration = Duration::from_secs(10);

/// What a program may use at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long it may take; also the processor time of each of its processes, rounded up to seconds.
    pub time: Duration,
    /// Bytes of memory: the address space of each process, and what all of them together hold.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Bytes of each file, and of all files together.
    pub disk: u64,
    /// Bytes of standard output, and as many of standard error.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            time: Duration::from_secs(10),
            memory: 512 * MIB,
            processes: 64,
            disk: 64 * MIB,
            output: 64 * 1024,
        }
    }
}

/// A program to run, which reads a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The program's file.
    pub path: PathBuf,
    /// Its arguments; the path of the script follows as the last one.
    pub arguments: Vec<String>,
    /// What the script's file is called. Programs see it in their messages.
    pub script_name: String,
    /// What the script says.
    pub script: String,
}

/// What a program has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// What it wrote to standard output; what is no UTF-8 in it is replaced.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// Whether either of both is cut.
    pub truncated: bool,
    /// What it ended with; `None` where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it, such as `SIGSEGV`.
    pub signal: Option<String>,
    /// Why it was ended, where it did not end by itself.
    pub stopped: Option<Stop>,
    /// How long it took.
    pub duration: Duration,
}

/// Why a program was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// It took too long.
    Time,
    /// Its processes together held too much memory.
    Memory,
    /// Its files together were too large or too many.
    Disk,
    /// It wrote too much.
    Output,
    /// It hid what it does, so that the bounds could not be watched.
    Hidden,
    /// Nobody waits for it any more.
    Cancelled,
}

/// Where programs are run. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
#[debug("Sandbox({limits:?})")]
pub struct Sandbox {
    launcher: PathBuf,
    /// Where the programs' folders are made.
    folder: PathBuf,
    readable: Vec<PathBuf>,
    limits: Limits,
}

impl Sandbox {
    /// A sandbox. The launcher is a program whose `main` begins with [`launched`]; `/proc/self/exe` is the running one, whatever has
    /// been put in its place. Programs may read the files and folders of `readable` beside those of the system.
    ///
    /// # Errors
    /// Why there is none here: the kernel lacks something, or did not refuse what it should in a trial.
    pub fn start(launcher: PathBuf, limits: Limits, readable: Vec<PathBuf>) -> Result<Self, Unavailable> {
        if std::env::var_os(STARTED_AS_LAUNCHER).is_some() {
            return Err(Unavailable(NO_LAUNCHER.to_owned()));
        }
        let sandbox = Self { launcher, folder: std::env::temp_dir(), readable, limits };
        #[cfg(target_os = "linux")]
        let held = linux::trial::hold(&sandbox);
        #[cfg(not(target_os = "linux"))]
        let held = Err("programs can only be confined on Linux".to_owned());
        held.map(|()| sandbox).map_err(Unavailable)
    }

    /// What a program may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Runs a program to its end. Whoever drops this ends it, and all that it has started.
    ///
    /// # Errors
    /// When it could not be started. A program that fails is no error.
    pub async fn run(&self, program: Program) -> Result<Finished, ToolError> {
        // The launcher ends the program when nobody holds the writing end any more, also when this process is killed.
        let (input, lifeline) = io::pipe()?;
        let (sandbox, job) = (self.clone(), self.job(program, None));
        let to_launcher = lifeline.try_clone()?;
        let running = tokio::task::spawn_blocking(move || sandbox.launch(&job, input, to_launcher));
        let finished = running.await?;
        drop(lifeline);
        finished.map_err(not_run)
    }

    /// The same for code that is not asynchronous, as at the start of a program.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_blocking(&self, program: Program) -> Result<Finished, ToolError> {
        self.launch_blocking(&self.job(program, None)).map_err(not_run)
    }

    fn launch_blocking(&self, job: &Job) -> Result<Finished, String> {
        let (input, lifeline) = io::pipe().map_err(|error| error.to_string())?;
        let to_launcher = lifeline.try_clone().map_err(|error| error.to_string())?;
        let finished = self.launch(job, input, to_launcher);
        drop(lifeline);
        finished
    }

    fn job(&self, program: Program, trial: Option<u16>) -> Job {
        let Self { folder, readable, limits, .. } = self.clone();
        Job { program, folder, readable, limits, trial }
    }

    fn launch(
        &self,
        job: &Job,
        input: io::PipeReader,
        mut to_launcher: io::PipeWriter,
    ) -> Result<Finished, String> {
        let cannot = |error: io::Error| format!("cannot start {}: {error}", self.launcher.display());
        let mut line = serde_json::to_vec(job).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let mut launcher = Command::new(&self.launcher)
            .args([LAUNCH, "supervise"])
            .env_clear()
            .env(STARTED_AS_LAUNCHER, "1")
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(cannot)?;
        // One that ends before it has read says why.
        let _ = to_launcher.write_all(&line);
        drop(to_launcher);
        let (done, reported) = mpsc::channel();
        if let Some(mut output) = launcher.stdout.take() {
            thread::spawn(move || {
                let mut report = Vec::new();
                let _ = done.send(output.read_to_end(&mut report).map(|_| report));
            });
        }
        // One that is no launcher may do anything, and go on with it.
        let report = match reported.recv_timeout(job.limits.time.saturating_add(GRACE)) {
            Ok(report) => report.map_err(cannot),
            Err(_) => {
                launcher.kill().map_err(cannot)?;
                Err(format!("it took too long: {NO_LAUNCHER}"))
            }
        };
        let status = launcher.wait().map_err(cannot)?;
        let report = report?;
        let report: Report =
            serde_json::from_slice(&report).map_err(|_| format!("no report ({status}): {NO_LAUNCHER}"))?;
        if let Some(left) = report.left_behind {
            tracing::warn!(%left, "the folder of a confined program could not be removed");
        }
        report.finished
    }
}

fn not_run(why: String) -> ToolError {
    ToolError::failed(format!("the program was not run: {why}"))
        .with_feedback("The program could not be run on this server. Do without it, and say so to the user.")
}

/// Why there is no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(String);

/// Takes from this process, for good, all but computing: it keeps its memory, threads and what it has open, and can open no file and no
/// socket and start no program. For a process that reads what somebody else made, called at its beginning, while it has one thread.
///
/// # Errors
/// What the kernel does not have or does not permit. All else is taken away all the same.
pub fn restrict_to_computing(limits: &Limits) -> Result<(), Unavailable> {
    #[cfg(target_os = "linux")]
    let restricted = linux::compute::restrict(limits);
    #[cfg(not(target_os = "linux"))]
    let restricted = {
        let _ = limits;
        Err("a process can only be confined on Linux".to_owned())
    };
    restricted.map_err(Unavailable)
}

/// Does the launcher's work where the program was started as one: then `main` ends with this code. It has to be the first
/// thing in `main`, before there is another thread.
pub fn launched() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != LAUNCH {
        return None;
    }
    let stage = arguments.next().unwrap_or_default();
    #[cfg(target_os = "linux")]
    let code = linux::stage(&stage);
    #[cfg(not(target_os = "linux"))]
    let code = {
        let _ = stage;
        ExitCode::FAILURE
    };
    Some(code)
}
