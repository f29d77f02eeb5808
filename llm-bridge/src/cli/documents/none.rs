//! `toolrack documents …` of a program that was built without the feature `documents`.

use std::process::ExitCode;

use clap::Subcommand;

use super::{Settings, features::missing, out::tell, tenant::InTenant};

#[derive(Debug, Subcommand)]
pub(super) enum DocumentsCommand {
    #[command(external_subcommand)]
    Any(Vec<String>),
}

pub(super) async fn run(
    InTenant { command: DocumentsCommand::Any(words), .. }: InTenant<DocumentsCommand>,
    _: &Settings,
) -> Result<ExitCode, String> {
    Err(format!("`documents {}`: {}", words.join(" "), missing("documents")))
}

/// Removes nothing, and says so where there may be something.
pub(super) async fn erase_uploads(settings: &Settings, _: &str, _: &str) -> Result<usize, String> {
    let place = settings.document_place();
    if place.exists() {
        tell(format_args!("documents in {place} are left: {}", missing("documents")));
    }
    Ok(0)
}

/// The same of chats: `erase_uploads` says what is left.
pub(super) async fn erase_of_chats(_: &Settings, _: &str, _: &str) -> Result<usize, String> {
    Ok(0)
}
