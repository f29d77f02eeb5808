//! `cargo xtask corpus`: how much of a folder of cases the scanner reads as it is expected there.
//!
//! Every case is read whole and in pieces; it is right only if all the readings are one and the same.

mod case;
mod compare;
mod exceptions;
mod pieces;
mod read;
mod report;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::value::RawValue;

use crate::Result;

const USAGE: &str = "usage: cargo xtask corpus DIR [--all] [--verbose] [--exceptions FILE]";
const EXCEPTIONS: &str = "llm-bridge/dialects/tests/data/corpus_exceptions.txt";

/// The members of a JSON object, each as it is written; of a name that is there twice the last counts.
type Members<'t> = BTreeMap<String, &'t RawValue>;

fn told(error: serde_json::Error) -> String {
    error.to_string()
}

#[derive(Debug, Default)]
struct Options {
    folder: PathBuf,
    exceptions: Option<PathBuf>,
    /// Also count the cases that are not scored.
    all: bool,
    /// Show the input and both readings of what is wrong.
    verbose: bool,
}

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let options = options(arguments)?;
    let cases = case::read_folder(&options.folder)?;
    let listed = exceptions::read_file(&options.exceptions.clone().unwrap_or_else(|| root.join(EXCEPTIONS)))?;
    let (scored, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.scored);
    if scored.is_empty() {
        return Err(format!("{} holds no case that is scored", options.folder.display()));
    }
    let readings = read::read(&scored)?;
    let (mut text, good) = report::scored(&scored, &readings, &listed, options.verbose);
    if options.all {
        let readings = read::read(&others)?;
        text = format!("{}\n{text}", report::others(&others, &readings, options.verbose));
    }
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("cannot print: {error}")),
        _ if good => Ok(ExitCode::SUCCESS),
        _ => Ok(ExitCode::FAILURE),
    }
}

fn options(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut folder = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--all" => options.all = true,
            "--verbose" => options.verbose = true,
            "--exceptions" => {
                let file = arguments.next().ok_or_else(|| format!("--exceptions names no file\n{USAGE}"))?;
                options.exceptions = Some(file.into());
            }
            flag if flag.starts_with('-') => return Err(format!("there is no option `{flag}`\n{USAGE}")),
            path if folder.is_none() => folder = Some(PathBuf::from(path)),
            path => return Err(format!("`{path}`: one folder is enough\n{USAGE}")),
        }
    }
    options.folder = folder.ok_or_else(|| USAGE.to_owned())?;
    Ok(options)
}
