//! `toolrack documents extract`.

use std::{path::PathBuf, process::ExitCode};

use toolrack_documents::{Documents, Extraction};

use super::filters;
use crate::cli::{
    Settings,
    out::{count, tell},
    progress::progress,
    stopped_by_ctrl_c,
};

/// Extracts names and relations from the documents at these paths, or from all, that were not extracted before.
pub(super) async fn run(
    documents: &Documents,
    settings: &Settings,
    paths: &[PathBuf],
) -> Result<ExitCode, String> {
    let model = settings.language_model();
    let name = model.name().await.map_err(|error| error.message().to_owned())?;
    let filters = filters(documents, paths).await?;
    let mut total = 0;
    for filter in &filters {
        let unread = documents.count_unextracted(filter).await;
        total += unread.map_err(|error| error.message().to_owned())?;
    }
    let bar = progress(Some(total), "{bar:30} {pos}/{len} passages, {msg} {eta}");
    let stop = stopped_by_ctrl_c();
    let mut before = Extraction::default();
    let mut now = before;
    let mut failure = None;
    for filter in &filters {
        let extract = documents.extract_unread(&model, filter, |done| {
            now = sum(before, *done);
            bar.set_position(u64::try_from(now.passages + now.failed).unwrap_or(u64::MAX));
            bar.set_message(format!("{} names, {} relations", now.names, now.relations));
        });
        let ended = stop.run_until_cancelled(extract).await;
        before = now;
        if let Some(Err(error)) = ended {
            failure = Some(error.message().to_owned());
        }
        if failure.is_some() || stop.is_cancelled() {
            break;
        }
    }
    bar.finish_and_clear();
    let Extraction { passages, names, relations, unreadable, failed, tokens } = now;
    tell(format_args!(
        "{} read, {} and {} found, {tokens} tokens",
        count(passages, "passage"),
        count(names, "name"),
        count(relations, "relation")
    ));
    if unreadable > 0 {
        tell(format_args!(
            "of {} the answer of {name} could not be read; is it too small a model?",
            count(unreadable, "passage")
        ));
    }
    if let Some(failure) = failure {
        return Err(format!("{failure}; extract again to go on"));
    }
    if failed > 0 {
        tell(format_args!("{name} failed at {}; extract again to try again", count(failed, "passage")));
    }
    let left = total.saturating_sub(passages + failed);
    if stop.is_cancelled() {
        tell(format_args!("stopped with {} to go; extract again to go on", count(left, "passage")));
    }
    Ok(if failed > 0 || stop.is_cancelled() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The sum of both.
fn sum(one: Extraction, other: Extraction) -> Extraction {
    Extraction {
        passages: one.passages + other.passages,
        names: one.names + other.names,
        relations: one.relations + other.relations,
        unreadable: one.unreadable + other.unreadable,
        failed: one.failed + other.failed,
        tokens: one.tokens.saturating_add(other.tokens),
    }
}
