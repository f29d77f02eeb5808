//! Python and a shell in a sandbox. `run_python` and `run_shell` run what a model writes in them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use registry_core::{Resources, prelude::*};
use toolrack_sandbox::{Finished, Limits, Program, Sandbox, Stop};

/// A script is no longer than this, in bytes.
const MAX_SCRIPT: usize = 64 * 1024;
/// The tools' own bound is two minutes, and what goes before and after a run takes its time.
const MAX_SECONDS: u64 = 110;
const MIB: u64 = 1024 * 1024;

/// A Python that models may use. The host provides one as a resource; without it `run_python` is off.
#[derive(Debug, Clone)]
pub struct Python(Interpreter);

/// A shell that models may use. The host provides one as a resource; without it `run_shell` is off.
#[derive(Debug, Clone)]
pub struct Shell(Interpreter);

#[derive(Debug, Clone)]
struct Interpreter {
    sandbox: Sandbox,
    path: PathBuf,
    arguments: Vec<String>,
    script_name: &'static str,
}

impl Python {
    /// That Python, or the system's where none is named.
    ///
    /// # Errors
    /// When there is none, or it does not run in the sandbox.
    pub fn start(sandbox: Sandbox, path: Option<&Path>) -> Result<Self, String> {
        let path = found(path, &["/usr/bin/python3", "/usr/local/bin/python3"])?;
        // Neither variables nor a user's own packages; and no bytecode, which is for a second time.
        let arguments = ["-I", "-B"].map(str::to_owned).to_vec();
        let interpreter = Interpreter { sandbox, path, arguments, script_name: "main.py" };
        interpreter.tried("print('ready')").map(Self)
    }

    pub(crate) async fn run(&self, ctx: &ToolContext, code: &str) -> Result<ToolResult, ToolError> {
        self.0.run(ctx, code).await
    }
}

impl Shell {
    /// That shell, or the system's where none is named.
    ///
    /// # Errors
    /// When there is none, or it does not run in the sandbox.
    pub fn start(sandbox: Sandbox, path: Option<&Path>) -> Result<Self, String> {
        let path = found(path, &["/bin/bash", "/usr/bin/bash", "/bin/sh"])?;
        let interpreter = Interpreter { sandbox, path, arguments: Vec::new(), script_name: "main.sh" };
        interpreter.tried("echo ready").map(Self)
    }

    pub(crate) async fn run(&self, ctx: &ToolContext, commands: &str) -> Result<ToolResult, ToolError> {
        self.0.run(ctx, commands).await
    }
}

fn found(path: Option<&Path>, usual: &[&str]) -> Result<PathBuf, String> {
    match path {
        Some(path) if path.is_absolute() => Ok(path.to_owned()),
        Some(path) => Err(format!("`{}` is no absolute path", path.display())),
        None => usual
            .iter()
            .map(PathBuf::from)
            .find(|path| path.exists())
            .ok_or_else(|| format!("there is none of {}", usual.join(", "))),
    }
}

impl Interpreter {
    fn program(&self, script: &str) -> Program {
        Program {
            path: self.path.clone(),
            arguments: self.arguments.clone(),
            script_name: self.script_name.to_owned(),
            script: script.to_owned(),
        }
    }

    /// Itself, if a script that prints `ready` does so.
    fn tried(self, script: &str) -> Result<Self, String> {
        let run = self.sandbox.run_blocking(self.program(script));
        let run = run.map_err(|error| error.message().to_owned())?;
        if run.stdout == "ready\n" {
            return Ok(self);
        }
        let why = if run.stderr.trim().is_empty() { &run.stdout } else { &run.stderr };
        Err(format!(
            "{} does not run in the sandbox: {}; is it below a folder that is named under `readable`?",
            self.path.display(),
            why.trim()
        ))
    }

    async fn run(&self, ctx: &ToolContext, script: &str) -> Result<ToolResult, ToolError> {
        if script.trim().is_empty() {
            return Err(ToolError::invalid("there is nothing to run; write a program"));
        }
        if script.contains('\0') {
            return Err(ToolError::invalid("there is a NUL in the program; write it as an escape"));
        }
        if script.len() > MAX_SCRIPT {
            return Err(ToolError::invalid(format!(
                "the program has {} bytes, and {MAX_SCRIPT} are the most; shorten it",
                script.len()
            )));
        }
        let limits = self.sandbox.limits();
        ctx.status(format!("Running a program for up to {} s", limits.time.as_secs()));
        let finished = self.sandbox.run(self.program(script)).await?;
        ctx.status(format!("The program ran for {:.1} s", finished.duration.as_secs_f64()));
        Ok(result(finished, limits))
    }
}

/// What a program came to, for the model. Texts that are empty and what did not happen are left out.
fn result(finished: Finished, limits: &Limits) -> ToolResult {
    let duration = u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX);
    let stopped = finished.stopped.map(|stop| advice(stop, limits));
    let mut value = serde_json::Map::new();
    let mut add = |key: &str, member: Value| {
        if !member.is_null() && member != "" && member != false {
            value.insert(key.to_owned(), member);
        }
    };
    add("stdout", finished.stdout.into());
    add("stderr", finished.stderr.into());
    add("truncated", finished.truncated.into());
    add("exit_code", finished.exit_code.into());
    add("signal", finished.signal.clone().into());
    add("stopped", stopped.into());
    add("duration_ms", duration.into());
    let mut result = ToolResult::new(value).with_audit("exit_code", finished.exit_code);
    if let Some(stop) = finished.stopped {
        result = result.with_audit("stopped", json!(stop));
    }
    result.success = finished.stopped.is_none() && finished.exit_code == Some(0);
    result
}

/// Why it was ended, and what to do.
fn advice(stop: Stop, limits: &Limits) -> String {
    let seconds = limits.time.as_secs();
    match stop {
        Stop::Time => format!("It ran longer than {seconds} s and was ended. Make it do less."),
        Stop::Memory => {
            format!(
                "It took more than {} MiB of memory and was ended. Make it hold less.",
                limits.memory / MIB
            )
        }
        Stop::Disk => {
            format!("Its files took more than {} MiB, or were too many, and it was ended.", limits.disk / MIB)
        }
        Stop::Output => {
            format!("It printed more than {} KiB and was ended. Print less.", limits.output / 1024)
        }
        Stop::Hidden => "It hid its files or processes and was ended.".to_owned(),
        _ => "It was ended.".to_owned(),
    }
}

/// The table `[code_executor]` of a configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodeExecutorSettings {
    /// Whether models may run code at all.
    pub enabled: bool,
    /// The Python to use.
    pub python: Option<PathBuf>,
    /// The shell to use.
    pub shell: Option<PathBuf>,
    /// Files and folders that programs may read beside the system's own.
    pub readable: Vec<PathBuf>,
    /// How long a program may run, in seconds.
    pub timeout_seconds: u64,
    /// How much memory it may take, in MiB.
    pub memory_mib: u64,
    /// How many processes and threads it may have at once.
    pub processes: u64,
    /// How much its files may take, in MiB.
    pub disk_mib: u64,
    /// How much of its output is kept, in KiB; more ends it.
    pub output_kib: u64,
}

impl Default for CodeExecutorSettings {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            enabled: false,
            python: None,
            shell: None,
            readable: Vec::new(),
            timeout_seconds: limits.time.as_secs(),
            memory_mib: limits.memory / MIB,
            processes: limits.processes,
            disk_mib: limits.disk / MIB,
            output_kib: limits.output / 1024,
        }
    }
}

impl CodeExecutorSettings {
    /// How to switch the tools on, for listings.
    pub const HOW_TO_PROVIDE: &str = "set `enabled = true` under [code_executor] in toolrack.toml";

    /// Provides a [`Python`], a [`Shell`] and the [`Sandbox`] itself, or says why they are not there. The launcher is as [`Sandbox::start`] wants it.
    ///
    /// # Errors
    /// What cannot be meant. That the sandbox does not hold here is none: then the tools are off.
    pub fn provide(&self, launcher: PathBuf, resources: &mut Resources) -> Result<(), String> {
        let limits = self.limits()?;
        let mut off = |why: &str| {
            resources.explain_absence::<Sandbox>(why);
            resources.explain_absence::<Python>(why);
            resources.explain_absence::<Shell>(why);
        };
        if !self.enabled {
            off(Self::HOW_TO_PROVIDE);
            return Ok(());
        }
        let sandbox = match Sandbox::start(launcher, limits, self.readable.clone()) {
            Ok(sandbox) => sandbox,
            Err(why) => {
                off(&format!("no sandbox holds on this machine: {why}"));
                return Ok(());
            }
        };
        // For tools that run programs of their own.
        resources.insert(sandbox.clone().into());
        match Python::start(sandbox.clone(), self.python.as_deref()) {
            Ok(python) => resources.insert(python.into()),
            Err(why) => resources.explain_absence::<Python>(why),
        }
        match Shell::start(sandbox, self.shell.as_deref()) {
            Ok(shell) => resources.insert(shell.into()),
            Err(why) => resources.explain_absence::<Shell>(why),
        }
        Ok(())
    }

    fn limits(&self) -> Result<Limits, String> {
        let within = |key: &str, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                return Ok(value);
            }
            Err(format!("code_executor.{key}: {value} is not from {least} to {most}"))
        };
        let time = within("timeout_seconds", self.timeout_seconds, 1, MAX_SECONDS)?;
        Ok(Limits {
            time: Duration::from_secs(time),
            memory: within("memory_mib", self.memory_mib, 32, 1024 * 1024)? * MIB,
            processes: within("processes", self.processes, 1, 4096)?,
            disk: within("disk_mib", self.disk_mib, 1, 1024 * 1024)? * MIB,
            output: within("output_kib", self.output_kib, 1, 1024)? * 1024,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished() -> Finished {
        Finished {
            stdout: "45\n".into(),
            stderr: String::new(),
            truncated: false,
            exit_code: Some(0),
            signal: None,
            stopped: None,
            duration: Duration::from_millis(12),
        }
    }

    #[test]
    fn t8_a_run_is_reported_in_few_words() {
        let run = result(finished(), &Limits::default());
        assert!(run.success);
        assert_eq!(run.for_model(), r#"{"stdout":"45\n","exit_code":0,"duration_ms":12}"#);
        assert_eq!(run.audit["exit_code"], 0);
    }

    #[test]
    fn t8_a_run_that_failed_says_how() {
        let failed = Finished { exit_code: Some(1), stderr: "ZeroDivisionError".into(), ..finished() };
        let run = result(failed, &Limits::default());
        assert!(!run.success);
        assert_eq!((&run.value["exit_code"], &run.value["stderr"]), (&json!(1), &json!("ZeroDivisionError")));
    }

    #[test]
    fn t8_a_run_that_was_ended_says_why_and_what_to_do() {
        for (stop, expected) in [
            (Stop::Time, "longer than 10 s"),
            (Stop::Memory, "more than 512 MiB of memory"),
            (Stop::Disk, "more than 64 MiB"),
            (Stop::Output, "more than 64 KiB"),
            (Stop::Hidden, "hid its files"),
        ] {
            let ended = Finished {
                exit_code: None,
                signal: Some("SIGKILL".into()),
                stopped: Some(stop),
                ..finished()
            };
            let result = result(ended, &Limits::default());
            assert!(!result.success);
            assert!(result.value["stopped"].as_str().unwrap().contains(expected), "{}", result.value);
            assert_eq!(result.audit["stopped"], json!(stop));
        }
    }

    #[test]
    fn t8_settings_that_cannot_be_meant_are_refused() {
        let refused = |settings: CodeExecutorSettings| {
            settings.provide("/proc/self/exe".into(), &mut Resources::new()).unwrap_err()
        };
        let settings = CodeExecutorSettings::default;
        let fault = refused(CodeExecutorSettings { timeout_seconds: 0, ..settings() });
        assert_eq!(fault, "code_executor.timeout_seconds: 0 is not from 1 to 110");
        let fault = refused(CodeExecutorSettings { memory_mib: 1, ..settings() });
        assert_eq!(fault, "code_executor.memory_mib: 1 is not from 32 to 1048576");
        assert!(refused(CodeExecutorSettings { processes: 0, ..settings() }).contains("processes"));
    }

    #[test]
    fn t8_code_is_not_run_where_nobody_has_said_so() {
        let mut resources = Resources::new();
        CodeExecutorSettings::default().provide("/proc/self/exe".into(), &mut resources).unwrap();
        let why = resources.get::<Python>(&ToolContext::default()).unwrap_err();
        assert_eq!(why, "needs Python: set `enabled = true` under [code_executor] in toolrack.toml");
        assert!(resources.get::<Shell>(&ToolContext::default()).unwrap_err().contains("enabled = true"));
    }

    #[test]
    fn t8_a_launcher_that_is_none_leaves_the_tools_off() {
        // The test program knows nothing of sandboxes.
        let mut resources = Resources::new();
        CodeExecutorSettings { enabled: true, ..Default::default() }
            .provide("/proc/self/exe".into(), &mut resources)
            .unwrap();
        let why = resources.get::<Python>(&ToolContext::default()).unwrap_err();
        assert!(why.contains("no sandbox holds on this machine"), "{why}");
    }
}
