//! `toolrack documents …`.

mod embed;
mod extract;

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use futures_util::{StreamExt, stream};
use serde_json::json;
use toolrack_documents::{Added, DocumentFilter, Documents, files};

use super::{
    Settings, address, made_by_operator,
    out::{count, print_line, second, table, tell},
    progress::progress,
    stopped_by_ctrl_c,
    store::Stores,
    tenant::InTenant,
    terminal::one_line,
};
use crate::{recorded::Change, server::uploads_of};

/// Files that are read at once; one is written at a time.
const READERS: usize = 4;

#[derive(Debug, Subcommand)]
pub(super) enum DocumentsCommand {
    /// Add files and folders: Markdown, HTML, CSV, PDF, office documents and plain text of any kind. Changed files are updated, unchanged ones skipped
    Add {
        /// Also remove documents of these folders whose files are there no more
        #[arg(long)]
        prune: bool,
        /// Files and folders
        #[arg(required = true, value_name = "PATH", value_parser = address::path())]
        paths: Vec<PathBuf>,
    },
    /// List the documents
    List {
        /// Only this document, or those in this folder; uploads over HTTP are in `uploads/USER`
        #[arg(value_name = "PATH", value_parser = address::path())]
        path: Option<PathBuf>,
    },
    /// Remove documents; the files stay
    Remove {
        /// Files and folders; uploads over HTTP are in `uploads/USER`
        #[arg(required = true, value_name = "PATH", value_parser = address::path())]
        paths: Vec<PathBuf>,
    },
    /// Compute missing vectors, with the embedding model of the configuration. `add` and `serve` do so, too
    Embed {
        /// Compute all of them again: another model may have the same name, or have been replaced
        #[arg(long)]
        again: bool,
        /// With --again: only those of these documents, or those in these folders
        #[arg(value_name = "PATH", value_parser = address::path(), requires = "again")]
        paths: Vec<PathBuf>,
    },
    /// Extract names and relations from the documents, for graph_search, with a request to the model server for each passage. Passages
    /// that were extracted before are skipped; after Ctrl-C the next run continues
    Extract {
        /// Only these documents, or those in these folders; uploads over HTTP are in `uploads/USER`
        #[arg(value_name = "PATH", value_parser = address::path())]
        paths: Vec<PathBuf>,
    },
    /// Search the documents as the tools do
    Search {
        /// A question or words
        #[arg(required = true)]
        words: Vec<String>,
        /// How many passages to show
        #[arg(long, default_value_t = 5, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
    },
}

pub(super) async fn run(
    InTenant { command, tenant }: InTenant<DocumentsCommand>,
    settings: &Settings,
) -> Result<ExitCode, String> {
    let documents = &settings.documents()?.for_tenant(&tenant);
    documents.refresh().await;
    // Commands that only read create no file.
    if !matches!(command, DocumentsCommand::Add { .. }) && !documents.are_there() {
        let place = settings.document_place();
        return Err(format!(
            "there are no documents yet in {place}; add some with `toolrack documents add PATH…`"
        ));
    }
    match command {
        DocumentsCommand::Add { prune, paths } => {
            let command = if prune { "toolrack documents add --prune" } else { "toolrack documents add" };
            let named = paths.iter().map(|path| absolute(path)).collect::<Result<Vec<_>, _>>()?;
            let change = change(command, &tenant, &named);
            let stores = Stores::open(settings).await?;
            made_by_operator(&stores, Some(change), add(documents, &paths, prune)).await
        }
        DocumentsCommand::List { path } => list(documents, path.as_deref()).await,
        DocumentsCommand::Remove { paths } => {
            let stores = Stores::open(settings).await?;
            remove(documents, &stores, &tenant, &paths).await
        }
        DocumentsCommand::Embed { again, paths } => embed::run(documents, again, &paths).await,
        DocumentsCommand::Extract { paths } => extract::run(documents, settings, &paths).await,
        DocumentsCommand::Search { words, limit } => search(documents, &words.join(" "), limit.into()).await,
    }
}

/// For the audit: every user finds these documents, or finds them no more.
fn change(command: &'static str, tenant: &str, paths: &[String]) -> Change {
    Change { command, tenant: tenant.to_owned(), arguments: json!({"paths": paths}) }
}

/// The outcomes of adding files.
#[derive(Default)]
struct Tally {
    new: usize,
    updated: usize,
    unchanged: usize,
    failed: usize,
}

async fn add(documents: &Documents, paths: &[PathBuf], prune: bool) -> Result<ExitCode, String> {
    let named = paths.to_vec();
    let found =
        tokio::task::spawn_blocking(move || files::below(&named)).await.map_err(|error| error.to_string())?;
    for (path, reason) in &found.skipped {
        tell(format_args!("skipped {}: {reason}", shown(path)));
    }
    let bar = progress(Some(found.files.len()), "{bar:30} {pos}/{len} {msg} {eta}");
    let stop = stopped_by_ctrl_c();
    let total = found.files.len();
    let added = stream::iter(found.files)
        .take_until(stop.cancelled())
        .map(|file| async move { (documents.add_file(file.clone()).await, file) })
        .buffer_unordered(READERS);
    let mut added = std::pin::pin!(added);
    let mut tally = Tally::default();
    while let Some((outcome, file)) = added.next().await {
        match outcome {
            Ok(Added::New) => tally.new += 1,
            Ok(Added::Updated) => tally.updated += 1,
            Ok(Added::Unchanged) => tally.unchanged += 1,
            Err(reason) => {
                tally.failed += 1;
                bar.suspend(|| tell(format_args!("cannot add {}: {}", shown(&file), one_line(&reason))));
            }
        }
        bar.set_message(shown(&file));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let Tally { new, updated, unchanged, failed } = tally;
    let done = new + updated + unchanged + failed;
    tell(format_args!("{new} added, {updated} updated, {unchanged} unchanged, {failed} failed"));
    if found.others > 0 {
        tell(format_args!("{} of other kinds skipped", count(found.others, "file")));
    }
    if total == 0 {
        return Err(
            "there is nothing to add; Markdown, HTML, CSV, PDF, office documents and plain text can be read"
                .to_owned(),
        );
    }
    if done < total {
        tell(format_args!("stopped before {}; add them again to go on", count(total - done, "file")));
    }
    if done == total {
        if prune {
            remove_gone(documents, paths).await?;
        }
        embed::missing(documents, &stop).await;
    }
    Ok(if failed == 0 && done == total { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Removes what was added of folders and is there no more. A folder that is gone itself may only be away, and so may all that was in it:
/// nothing is removed of either.
async fn remove_gone(documents: &Documents, paths: &[PathBuf]) -> Result<(), String> {
    for folder in paths.iter().filter(|path| path.is_dir()) {
        let filter = DocumentFilter { below: Some(absolute(folder)?), ..DocumentFilter::default() };
        let list = documents.list(&filter).await.map_err(|error| error.message().to_owned())?;
        let is_gone = |path: &str| Path::new(path).try_exists().is_ok_and(|is_there| !is_there);
        let (gone, there): (Vec<_>, Vec<_>) = list.into_iter().partition(|document| is_gone(&document.path));
        if there.is_empty() {
            continue;
        }
        for document in gone {
            documents.remove(&document.path).await.map_err(|error| error.message().to_owned())?;
            tell(format_args!("removed {}", one_line(&document.path)));
        }
    }
    Ok(())
}

/// The documents at these paths; all where there are none.
async fn filters(documents: &Documents, paths: &[PathBuf]) -> Result<Vec<DocumentFilter>, String> {
    let mut filters = Vec::new();
    for path in paths {
        let below = meant(documents, path)
            .await?
            .ok_or_else(|| format!("there is no document {}; see `toolrack documents list`", shown(path)))?;
        filters.push(DocumentFilter { below: Some(below), ..DocumentFilter::default() });
    }
    if filters.is_empty() {
        filters.push(DocumentFilter::default());
    }
    Ok(filters)
}

async fn list(documents: &Documents, path: Option<&Path>) -> Result<ExitCode, String> {
    let below = match path {
        Some(path) => Some(meant(documents, path).await?.map_or_else(|| absolute(path), Ok)?),
        None => None,
    };
    let filter = DocumentFilter { below, ..DocumentFilter::default() };
    let list = documents.list(&filter).await.map_err(|error| error.message().to_owned())?;
    let mut table = table(["path", "title", "kind", "bytes", "passages", "added"]);
    for document in &list {
        table.add_row([
            one_line(&document.path),
            one_line(&document.title),
            document.kind.to_string(),
            document.bytes.to_string(),
            document.passages.to_string(),
            second(document.added),
        ]);
    }
    print_line(table)?;
    tell(count(list.len(), "document"));
    Ok(ExitCode::SUCCESS)
}

async fn remove(
    documents: &Documents,
    stores: &Stores,
    tenant: &str,
    paths: &[PathBuf],
) -> Result<ExitCode, String> {
    let mut code = ExitCode::SUCCESS;
    for path in paths {
        let removed = match meant(documents, path).await? {
            Some(path) => {
                let change = change("toolrack documents remove", tenant, std::slice::from_ref(&path));
                let remove =
                    async { documents.remove(&path).await.map_err(|error| error.message().to_owned()) };
                made_by_operator(stores, Some(change), remove).await?
            }
            None => Vec::new(),
        };
        for path in &removed {
            tell(format_args!("removed {}", one_line(path)));
        }
        if removed.is_empty() {
            tell(format_args!("there is no document {}; see `toolrack documents list`", shown(path)));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

async fn search(documents: &Documents, question: &str, limit: usize) -> Result<ExitCode, String> {
    let found = documents.search(question, limit, &DocumentFilter::default()).await;
    let found = found.map_err(|error| error.message().to_owned())?;
    for (rank, passage) in (1..).zip(&found) {
        let section = if passage.section.is_empty() { &passage.title } else { &passage.section };
        let (path, section, place) = (one_line(&passage.path), one_line(section), passage.place());
        // The scores of the engines have no common scale; their order is what they say.
        print_line(format_args!("{rank}. {path}, {place}: {section}\n"))?;
        for line in passage.text.lines() {
            print_line(format_args!("    {}", one_line(line)))?;
        }
        print_line("")?;
    }
    if found.is_empty() {
        tell("nothing was found; try other words");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// What documents are kept under that is meant by a path: where it leads to, as those of files are; or as it is written, as those are that
/// were uploaded. `None` where there is no document of either.
async fn meant(documents: &Documents, path: &Path) -> Result<Option<String>, String> {
    let written = path.to_string_lossy().into_owned();
    let mut there = Vec::new();
    for path in [absolute(path)?, written] {
        let filter = DocumentFilter { below: Some(path.clone()), ..DocumentFilter::default() };
        let list = documents.list(&filter).await.map_err(|error| error.message().to_owned())?;
        if !list.is_empty() && !there.contains(&path) {
            there.push(path);
        }
    }
    match there.as_slice() {
        [here, uploaded] => Err(format!(
            "{} may be {} or what was uploaded as {}; write the whole path for the one, and for the other call this from another folder",
            shown(path),
            one_line(here),
            one_line(uploaded)
        )),
        _ => Ok(there.pop()),
    }
}

/// A path as documents are kept under, also where the file is there no more.
fn absolute(path: &Path) -> Result<String, String> {
    let fault = |error: &dyn Display| format!("{}: {error}", path.display());
    let absolute = std::path::absolute(path).map_err(|error| fault(&error))?;
    // The folder of a deleted file may still be a link.
    let folder = absolute.parent().and_then(|folder| folder.canonicalize().ok());
    let resolved = absolute.canonicalize().ok().or_else(|| Some(folder?.join(absolute.file_name()?)));
    Ok(resolved.unwrap_or(absolute).to_string_lossy().into_owned())
}

fn shown(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

/// Removes what a user has uploaded; how many documents that were.
pub(super) async fn erase_uploads(settings: &Settings, tenant: &str, user: &str) -> Result<usize, String> {
    let documents = settings.documents()?.for_tenant(tenant);
    documents.refresh().await;
    match documents.are_there() {
        true => documents
            .remove(&uploads_of(user))
            .await
            .map(|removed| removed.len())
            .map_err(|error| error.message().to_owned()),
        false => Ok(0),
    }
}

/// Removes the documents of a user's chats, and says how many there were.
///
/// # Errors
/// When the store of documents fails.
pub(super) async fn erase_of_chats(settings: &Settings, tenant: &str, user: &str) -> Result<usize, String> {
    let removed = settings.documents()?.remove_of_chats((tenant, user)).await;
    removed.map_err(|error| error.message().to_owned())
}
