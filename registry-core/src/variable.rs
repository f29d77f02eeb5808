//! Environment variables whose value may be secret.

use std::{
    fs::File,
    io::{self, Read},
};

/// How large a secret in a file may be, in bytes.
const MAX_SECRET: u64 = 64 * 1024;

/// The value of an environment variable that is not empty, or of the file that `NAME_FILE` names, which is how services and
/// containers get secrets.
///
/// # Errors
/// When both are set, or when the file cannot be read.
pub fn secret_variable(name: &str) -> Result<Option<String>, String> {
    secret_in(|name| std::env::var(name).ok(), name)
}

/// The same, in an environment of one's own.
///
/// # Errors
/// When both are set, or when the file cannot be read.
pub fn secret_in(variable: impl Fn(&str) -> Option<String>, name: &str) -> Result<Option<String>, String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let in_file = format!("{name}_FILE");
    match (set(name), set(&in_file)) {
        (Some(_), Some(_)) => Err(format!("{name}: there is {in_file} too; leave one of them out")),
        (Some(value), None) => Ok(Some(value)),
        (None, None) => Ok(None),
        (None, Some(file)) => match read(&file) {
            Ok(text) if text.trim().is_empty() => Err(format!("{in_file}: {file} is empty")),
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) => Err(format!("{in_file}: cannot read {file}: {error}")),
        },
    }
}

fn read(file: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(MAX_SECRET + 1).read_to_string(&mut text)?;
    match text.len() as u64 {
        ..=MAX_SECRET => Ok(text),
        _ => Err(io::Error::other(format!("it is larger than {} KiB", MAX_SECRET / 1024))),
    }
}
