//! `toolrack backup` and `toolrack restore`, and what a running server has of them.

mod archive;
mod moves;
mod place;
mod restore;
mod served;
mod uploaded;
mod write;

use std::path::PathBuf;

pub(super) use restore::restore;
pub(super) use served::ServedBackup;
pub(super) use uploaded::{ServedRestore, put_uploaded};
pub(super) use write::write;

#[derive(Debug, clap::Args)]
pub(super) struct BackupArguments {
    /// The file to write, a tar archive compressed by gzip
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Put the private key that signs the audit into the backup too
    #[arg(long)]
    with_key: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct RestoreArguments {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the data that is there. Files are moved aside; tables of PostgreSQL are lost
    #[arg(long)]
    replace: bool,
}
