//! `cargo xtask fmt`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use crate::{Result, toolrack};

/// Formats all code, also the tool files, which `cargo fmt` does not find: no `mod` line names them.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let check = match arguments {
        [] => false,
        [only] if only == "--check" => true,
        _ => return Err("usage: cargo xtask fmt [--check]".to_owned()),
    };
    let check: &[&str] = if check { &["--check"] } else { &[] };
    let mut cargo = toolrack::cargo();
    cargo.args(["fmt", "--all"]).current_dir(root);
    if !check.is_empty() {
        cargo.arg("--").args(check);
    }
    let mut files = Vec::new();
    rust_files(&root.join("tools"), &mut files).map_err(|error| format!("cannot read tools: {error}"))?;
    let mut rustfmt = std::process::Command::new("rustfmt");
    rustfmt.args(check).args(["--edition", "2024", "--config-path"]).arg(root).args(files);
    let mut all = true;
    for command in [&mut cargo, &mut rustfmt] {
        let status = command
            .status()
            .map_err(|error| format!("cannot run {}: {error}", command.get_program().display()))?;
        all &= status.success();
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The Rust files in a folder and below.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
