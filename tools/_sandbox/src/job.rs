//! What a launcher gets, and what it reports.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Finished, Limits, Program};

/// A program to run and how: one line of JSON on the launcher's standard input, which then stays open for as long as somebody
/// waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) program: Program,
    /// Where the program's folder is made.
    pub(super) folder: PathBuf,
    /// What it may read beside the system's programs.
    pub(super) readable: Vec<PathBuf>,
    pub(super) limits: Limits,
    /// A trial of the sandbox in place of the program: a port of this machine that somebody listens on.
    pub(super) trial: Option<u16>,
}

/// What has come of it, on the launcher's standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) finished: Result<Finished, String>,
    /// The folder that could not be removed, and why.
    pub(super) left_behind: Option<String>,
}
