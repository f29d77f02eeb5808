//! `toolrack man`: the manual pages.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::Command;

use super::{help, out::tell};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folder to write them to, such as /usr/local/share/man/man1
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// The command without the commands `help`, which repeat the others.
fn without_help(command: Command) -> Command {
    command.mut_subcommands(|sub| if sub.get_name() == "help" { sub.hide(true) } else { without_help(sub) })
}

/// Writes a page for the program and one for each command, such as `toolrack-key-create.1`.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let fault = |error: std::io::Error| format!("{}: {error}", arguments.folder.display());
    fs::create_dir_all(&arguments.folder).map_err(fault)?;
    clap_mangen::generate_to(without_help(help::command()), &arguments.folder).map_err(fault)?;
    tell(format_args!("Wrote the manual pages to {}.", arguments.folder.display()));
    Ok(ExitCode::SUCCESS)
}
