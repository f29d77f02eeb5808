//! `toolrack launch`: starts a coding agent that uses this server.

mod agents;
mod start;

use std::{
    env,
    ffi::OsString,
    fmt::Write,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use reqwest::Method;
use serde_json::Value as Json;

use super::{
    Settings,
    out::{print_line, tell},
    running::{Server, ServerArguments},
};
use agents::{AGENTS, Agent, Setup, Target, Value};

/// For clients that need a key where the server needs none.
const ANY_KEY: &str = "toolrack";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The agent to start
    #[arg(value_parser = agent())]
    agent: &'static Agent,
    /// Print the shell commands, with the key, in place of starting the agent
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    server: ServerArguments,
    /// Arguments of the agent
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

fn agent() -> impl TypedValueParser<Value = &'static Agent> {
    let names = PossibleValuesParser::new(AGENTS.iter().map(|agent| agent.name));
    names.try_map(|name| AGENTS.iter().find(|agent| agent.name == name).ok_or("there is no such agent"))
}

/// Starts the agent in place of this program where the system can, so that signals and the exit status are its own.
pub(super) async fn run(arguments: Arguments, settings: &Settings) -> Result<ExitCode, String> {
    let Arguments { agent, print, server, arguments } = arguments;
    let server = Server::new(&server, settings)?;
    let target = target(&server, settings).await?;
    let setup = (agent.setup)(&target);
    if print {
        print_line(shell(agent, &setup, &target, &arguments))?;
        return Ok(ExitCode::SUCCESS);
    }
    tell(report(agent, &setup, &target));
    if let Some((file, content)) = &setup.file {
        create(file, content)?;
    }
    let mut command = Command::new(agent.name);
    command.args(&setup.arguments).args(arguments);
    for name in setup.remove {
        command.env_remove(name);
    }
    for (name, value) in &setup.set {
        command.env(name, value.text(&target));
    }
    start::start(&mut command).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("`{}` is not installed; install it with `{}`", agent.name, agent.install)
        }
        _ => format!("cannot start `{}`: {error}", agent.name),
    })
}

/// Asks the server whether it runs, and which model it has if none is configured.
async fn target(server: &Server, settings: &Settings) -> Result<Target, String> {
    let health = server.ask(Method::GET, &["healthz"]).await?;
    let url = server.url().to_owned();
    if health.get("status").and_then(Json::as_str) != Some("ok") {
        return Err(format!("{url} does not answer as a Toolrack does; name the server with --server"));
    }
    let of_server = health.get("model").and_then(Json::as_str).map(str::to_owned);
    let model = match settings.model.clone().or(of_server) {
        Some(model) => model,
        None => first_model(&server.ask(Method::GET, &["v1", "models"]).await?)
            .ok_or("the server has no models; name one with --model")?,
    };
    let key = server.key().unwrap_or(ANY_KEY).to_owned();
    Ok(Target { url, key, model, folder: folder()? })
}

fn first_model(list: &Json) -> Option<String> {
    list.pointer("/data/0/id").and_then(Json::as_str).map(str::to_owned)
}

/// The folder for agents' own files: that of the system for programs' data.
fn folder() -> Result<PathBuf, String> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("LOCALAPPDATA"))
        .or_else(|| Some(env::home_dir()?.join(".local").join("share")))
        .map(|data| data.join("toolrack"))
        .ok_or_else(|| "there is no home folder; set XDG_DATA_HOME".to_owned())
}

impl Value {
    fn text<'a>(&'a self, target: &'a Target) -> &'a str {
        match self {
            Self::Text(text) => text,
            Self::Key => &target.key,
        }
    }
}

/// What is set, without the key.
fn report(agent: &Agent, setup: &Setup, target: &Target) -> String {
    let mut report = format!("Starting {} at {} with the model {}.", agent.name, target.url, target.model);
    for (name, value) in &setup.set {
        let shown = match value {
            Value::Text(text) => text,
            Value::Key => "(the key)",
        };
        let _ = write!(report, "\n  {name}={shown}");
    }
    for name in setup.remove.iter().filter(|name| env::var_os(name).is_some()) {
        let _ = write!(report, "\n  {name} is removed");
    }
    if !setup.arguments.is_empty() {
        let _ = write!(report, "\n  {} {}", agent.name, setup.arguments.join(" "));
    }
    if let Some((file, _)) = &setup.file {
        let _ = write!(report, "\n  settings: {}", file.display());
    }
    report
}

/// Commands of a POSIX shell that do the same.
fn shell(agent: &Agent, setup: &Setup, target: &Target, arguments: &[OsString]) -> String {
    let mut lines = String::new();
    if let Some((file, content)) = &setup.file {
        let folder = file.parent().unwrap_or(Path::new("")).to_string_lossy();
        let (folder, file) = (quoted(&folder), quoted(&file.to_string_lossy()));
        let _ = writeln!(lines, "mkdir -p {folder}");
        let _ = writeln!(lines, "[ -e {file} ] || printf %s {} > {file}", quoted(content));
    }
    if !setup.remove.is_empty() {
        let _ = writeln!(lines, "unset {}", setup.remove.join(" "));
    }
    for (name, value) in &setup.set {
        let _ = writeln!(lines, "export {name}={}", quoted(value.text(target)));
    }
    let arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    let words = setup.arguments.iter().cloned().chain(arguments).map(|word| quoted(&word));
    lines.push_str(agent.name);
    for word in words {
        let _ = write!(lines, " {word}");
    }
    lines
}

/// A word of a POSIX shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Creates a file that does not exist. One that exists may have been changed by the user.
fn create(file: &Path, content: &str) -> Result<(), String> {
    let create = || {
        registry_core::private::private_folder(file.parent().unwrap_or(Path::new("")))?;
        if file.exists() { Ok(()) } else { std::fs::write(file, content) }
    };
    create().map_err(|error: std::io::Error| format!("cannot create {}: {error}", file.display()))
}

#[cfg(test)]
mod tests;
