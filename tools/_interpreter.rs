//! What Python and the shell have in common: a program that a model wrote, run in the sandbox.

use std::path::{Path, PathBuf};

use registry_core::prelude::*;
use toolrack_sandbox::{Finished, Limits, Program, Sandbox, Stop};

use crate::sandbox::MIB;

/// A script is no longer than this, in bytes.
const MAX_SCRIPT: usize = 64 * 1024;

/// A program that runs scripts, in the sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Interpreter {
    pub(crate) sandbox: Sandbox,
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) script_name: &'static str,
}

/// The program of that path, or the first of the usual ones that is there.
pub(crate) fn found(path: Option<&Path>, usual: &[&str]) -> Result<PathBuf, String> {
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
    pub(crate) fn tried(self, script: &str) -> Result<Self, String> {
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

    pub(crate) async fn run(&self, ctx: &ToolContext, script: &str) -> Result<ToolResult, ToolError> {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
}
