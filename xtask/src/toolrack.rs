//! Runs the `toolrack` program as it is now, built first where a file has changed.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus, Stdio},
};

use serde_json::Value;

use crate::Result;

pub(crate) fn run(command: &[&str], arguments: &[String]) -> Result<ExitCode> {
    status(program().args(command).args(arguments))
}

/// Runs an example of a package.
pub(crate) fn example(package: &str, name: &str, arguments: &[String]) -> Result<ExitCode> {
    // It runs in the current folder: its arguments may be relative paths.
    status(cargo().args(["run", "--quiet", "--package", package, "--example", name, "--"]).args(arguments))
}

/// Builds the program: how that ended, and where the program is if it went well.
pub(crate) fn build(arguments: &[&str]) -> Result<(ExitCode, Option<PathBuf>)> {
    let mut build = cargo();
    build.args(["build", "--package", "toolrack", "--message-format=json-render-diagnostics"]);
    build.args(arguments).current_dir(crate::project_root()).stderr(Stdio::inherit());
    let output = build.output().map_err(cannot_run)?;
    let program = if output.status.success() { executable(&output.stdout) } else { None };
    Ok((code(output.status), program))
}

/// The program among the artifacts that Cargo lists, a line of JSON each.
fn executable(lines: &[u8]) -> Option<PathBuf> {
    let artifacts =
        lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut programs = artifacts.filter(|artifact| {
        artifact.pointer("/target/name").is_some_and(|name| name == "toolrack")
            && artifact.pointer("/target/kind/0").is_some_and(|kind| kind == "bin")
    });
    programs.find_map(|artifact| artifact.get("executable")?.as_str().map(PathBuf::from))
}

/// Where Cargo builds, as its configuration and the environment say.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf> {
    target_folder_by(cargo().current_dir(root))
}

fn target_folder_by(cargo: &mut Command) -> Result<PathBuf> {
    let output =
        cargo.args(["metadata", "--no-deps", "--format-version=1"]).stderr(Stdio::inherit()).output();
    let metadata: Value = serde_json::from_slice(&output.map_err(cannot_run)?.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let folder = metadata.get("target_directory").and_then(Value::as_str);
    folder.map(PathBuf::from).ok_or_else(|| "cargo metadata names no target folder".to_owned())
}

/// Runs the built program in place of this one, where the system can: then signals reach it alone.
pub(crate) fn replace_by(program: &Path, command: &[&str], arguments: &[String]) -> Result<ExitCode> {
    let mut program = Command::new(program);
    program.args(command).args(arguments).current_dir(crate::project_root());
    #[cfg(unix)]
    return Err(format!(
        "cannot run the program: {}",
        std::os::unix::process::CommandExt::exec(&mut program)
    ));
    #[cfg(not(unix))]
    status(&mut program)
}

fn status(command: &mut Command) -> Result<ExitCode> {
    command.status().map(code).map_err(cannot_run)
}

fn code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1).into()
}

fn cannot_run(error: std::io::Error) -> String {
    format!("cannot run cargo: {error}")
}

/// The program, to be given arguments.
pub(crate) fn program() -> Command {
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--package", "toolrack", "--"]).current_dir(crate::project_root());
    cargo
}

/// Cargo, to be given arguments.
pub(crate) fn cargo() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    // What Cargo sets for this program would make build scripts that watch it run again, here and at the next build.
    for (name, _) in env::vars_os() {
        let about_us = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        });
        if about_us {
            cargo.env_remove(name);
        }
    }
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b18_the_program_is_where_cargo_says() {
        let artifact = |name: &str, kind: &str, executable: Value| {
            let line = serde_json::json!({"reason": "compiler-artifact", "target": {"name": name, "kind": [kind]}, "executable": executable});
            format!("{line}\n")
        };
        let lines = artifact("tools", "lib", Value::Null)
            + "printed by a build script\n"
            + &artifact("toolrack", "bin", "/elsewhere/debug/toolrack".into());
        assert_eq!(executable(lines.as_bytes()), Some("/elsewhere/debug/toolrack".into()));
        assert_eq!(executable(artifact("toolrack", "lib", Value::Null).as_bytes()), None);
    }

    #[test]
    fn b18_the_target_folder_is_the_configured_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut cargo = cargo();
        cargo.current_dir(crate::project_root()).env_remove("CARGO_TARGET_DIR");
        cargo.env("CARGO_BUILD_TARGET_DIR", folder.path());
        assert_eq!(target_folder_by(&mut cargo).unwrap(), folder.path());
    }
}
