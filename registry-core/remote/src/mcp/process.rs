//! A server that is a program: started with a clean environment, heard on standard error, and ended with all it has started.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

#[cfg(windows)]
use process_wrap::tokio::JobObject;
#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    time::Instant,
};

use super::McpServerSettings;
use crate::text::shown;

/// What every program needs, and is no secret.
const INHERITED: &str = "
    HOME LANG LC_ALL LOGNAME PATH SHELL TERM TMPDIR TZ USER
    APPDATA LOCALAPPDATA PATHEXT SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE
";
/// How long it has to end by itself once its standard input is closed.
const LEAVES: Duration = Duration::from_secs(2);
/// How much of one line of its standard error goes to the log, in bytes.
const MAX_LINE: u64 = 1024;
/// How many lines of it go to the log in a minute.
const MAX_LINES: u32 = 100;
/// A value of the environment of so many bytes may be a secret.
const LEAST_SECRET: usize = 8;
const MINUTE: Duration = Duration::from_secs(60);

/// A running program. When it is dropped the program is killed, and what it has started with it.
pub(super) struct Process {
    child: Box<dyn ChildWrapper>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.start_kill();
    }
}

impl Process {
    /// Starts it. What it says on standard error goes to the log under the server's name.
    pub(super) fn start(
        server: &Arc<str>,
        program: &str,
        settings: &McpServerSettings,
        env: &BTreeMap<String, OsString>,
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut start = Command::new(program);
        start.args(&settings.args).env_clear().envs(env);
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = &settings.cwd {
            start.current_dir(folder);
        }
        let mut wrapped = CommandWrap::from(start);
        wrapped.wrap(KillOnDrop);
        #[cfg(unix)]
        wrapped.wrap(ProcessGroup::leader());
        #[cfg(windows)]
        wrapped.wrap(JobObject);
        let mut child = wrapped.spawn()?;
        let pipes = (child.stdout().take(), child.stdin().take(), child.stderr().take());
        let process = Self { child };
        let (Some(output), Some(input), Some(errors)) = pipes else {
            return Err(io::Error::other("its standard input and output cannot be had"));
        };
        tokio::spawn(log(Arc::clone(server), errors, secrets(settings, env)));
        Ok((process, output, input))
    }

    /// Waits a little for it to end, as its standard input is closed, and ends it where it does not.
    pub(super) async fn end(mut self) -> Option<ExitStatus> {
        tokio::time::timeout(LEAVES, self.child.wait()).await.ok()?.ok()
    }
}

/// The environment for a program: what every one needs, what is passed on, and what is set.
///
/// # Errors
/// When a variable that is to be passed on is not set.
pub(super) fn environment(settings: &McpServerSettings) -> Result<BTreeMap<String, OsString>, String> {
    let mut env = BTreeMap::new();
    for name in INHERITED.split_whitespace() {
        env.extend(std::env::var_os(name).map(|value| (name.to_owned(), value)));
    }
    for name in &settings.pass_env {
        let value = std::env::var_os(name);
        let value = value.ok_or_else(|| format!("pass_env: the variable `{name}` is not set"))?;
        env.insert(name.clone(), value);
    }
    env.extend(settings.env.iter().map(|(name, value)| (name.clone(), value.into())));
    let depth = std::env::var(DEPTH).ok();
    env.insert(DEPTH.to_owned(), deeper(depth.as_deref())?.to_string().into());
    Ok(env)
}

/// The values that the operator gives the program, set or passed on, the longest first, so that none hides a part of another.
fn secrets(settings: &McpServerSettings, env: &BTreeMap<String, OsString>) -> Vec<String> {
    let names = settings.env.keys().chain(&settings.pass_env);
    let values = names.filter_map(|name| env.get(name)).map(|value| value.to_string_lossy().into_owned());
    // What is shorter than that is no secret, and would make holes in every line.
    let mut secrets: Vec<String> = values.filter(|value| value.len() >= LEAST_SECRET).collect();
    secrets.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
    secrets
}

/// The variable by which a program knows how many others have started one another before it.
const DEPTH: &str = "TOOLRACK_MCP_DEPTH";
/// So many programs may start one another. One that is its own server, as by the file it finds in its folder, would go on for ever.
const MAX_DEPTH: u32 = 4;

/// How deep a program is that is started now.
fn deeper(depth: Option<&str>) -> Result<u32, String> {
    let depth = depth.and_then(|depth| depth.parse().ok()).unwrap_or(0);
    if depth < MAX_DEPTH {
        return Ok(depth + 1);
    }
    Err(format!(
        "{MAX_DEPTH} programs have started one another as MCP servers; is one of them its own server?"
    ))
}

/// Reads standard error to its end, so that the program never waits for it, and logs so much of it as nobody minds, without the
/// values that the program was given in its environment.
async fn log(server: Arc<str>, errors: ChildStderr, secrets: Vec<String>) {
    let mut reader = BufReader::new(errors);
    let (mut since, mut lines) = (Instant::now(), 0_u32);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if since.elapsed() >= MINUTE {
            if let Some(left_out) = lines.checked_sub(MAX_LINES).filter(|count| *count > 0) {
                tracing::info!(server = &*server, lines = left_out, "mcp_server_stderr_left_out");
            }
            (since, lines) = (Instant::now(), 0);
        }
        lines = lines.saturating_add(1);
        let text = String::from_utf8_lossy(&line);
        let text = secrets.iter().fold(text.into_owned(), |text, secret| text.replace(secret, "(secret)"));
        let line = shown(text.trim_end());
        if lines <= MAX_LINES && !line.is_empty() {
            tracing::info!(server = &*server, line, "mcp_server_stderr");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b3_programs_that_start_one_another_come_to_an_end() {
        assert_eq!(deeper(None), Ok(1));
        assert_eq!(deeper(Some("3")), Ok(4));
        assert_eq!(deeper(Some("nonsense")), Ok(1));
        assert!(deeper(Some("4")).unwrap_err().contains("its own server"));
    }

    #[test]
    fn k3_what_is_passed_on_is_a_secret_as_what_is_set() {
        let settings = McpServerSettings {
            env: [("A".to_owned(), "set-secret".to_owned()), ("B".to_owned(), "short".to_owned())].into(),
            // The test runner sets this one.
            pass_env: ["CARGO_MANIFEST_DIR".to_owned()].into(),
            ..McpServerSettings::default()
        };
        let passed = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        assert_eq!(secrets(&settings, &environment(&settings).unwrap()), [passed, "set-secret".to_owned()]);
    }

    #[test]
    fn b3_a_program_gets_a_clean_environment() {
        // The test runner sets this one, as it does the path.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let set = McpServerSettings {
            env: [("A".to_owned(), "b".to_owned())].into(),
            ..McpServerSettings::default()
        };
        let env = environment(&set).unwrap();
        assert!(env.contains_key("PATH") && env["A"] == "b" && !env.contains_key("CARGO_MANIFEST_DIR"));
        let passed = McpServerSettings { pass_env: ["CARGO_MANIFEST_DIR".to_owned()].into(), ..set.clone() };
        assert!(environment(&passed).unwrap().contains_key("CARGO_MANIFEST_DIR"));
        let missing = McpServerSettings { pass_env: ["TOOLRACK_NO_SUCH".to_owned()].into(), ..set };
        assert!(environment(&missing).unwrap_err().contains("TOOLRACK_NO_SUCH"));
    }
}
