//! Writes settings into the configuration file.

use std::path::Path;

use toml_edit::DocumentMut;

use super::best::Best;
use crate::cli::Settings;

/// Puts the settings of a model into the file that was read, with its comments and all else kept; says what has changed.
///
/// # Errors
/// When there is no file, it cannot be written, or it would not be read with the settings.
pub(super) fn write(
    settings: &Settings,
    host_tables: &[&str],
    best: &Best,
    model: &str,
) -> Result<String, String> {
    if *best == Best::default() {
        return Ok("nothing to write".to_owned());
    }
    let file = settings.file().ok_or(
        "there is no configuration file to write to; create toolrack.toml here, or name one with --config",
    )?;
    let place = file.display();
    let fault = |why: String| format!("the settings are not written to {place}: {why}; add them by hand");
    let changes = edit(file, best, model, |text| Settings::check_text(text, host_tables)).map_err(fault)?;
    Ok(match changes.as_slice() {
        [] => format!("{place} has these settings already"),
        changes => format!("{place}: in [models.\"{model}\"] {}", changes.join(", ")),
    })
}

fn edit(
    file: &Path,
    best: &Best,
    model: &str,
    check: impl FnOnce(&str) -> Result<(), String>,
) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let changes = best.put(&mut document, model)?;
    if changes.is_empty() {
        return Ok(changes);
    }
    let text = document.to_string();
    check(&text)?;
    // In place: the file may be a link, or mounted alone.
    std::fs::write(file, text).map_err(|error| error.to_string())?;
    Ok(changes)
}
