//! `toolrack documents embed`.

use std::{path::PathBuf, process::ExitCode};

use tokio_util::sync::CancellationToken;
use toolrack_documents::{Documents, Embedded, Forgotten};

use super::filters;
use crate::{
    cli::{
        out::{count, tell},
        progress::progress,
        stopped_by_ctrl_c,
        terminal::one_line,
    },
    upstream::UpstreamEmbedder,
};

/// Computes the missing vectors; with `again` also those of the documents at these paths, or all.
pub(super) async fn run(documents: &Documents, again: bool, paths: &[PathBuf]) -> Result<ExitCode, String> {
    let model = documents
        .embedding_model()
        .ok_or("there is no embedding model; name one under [documents.embeddings] in toolrack.toml")?;
    if again {
        let mut forgotten = 0;
        for filter in filters(documents, paths).await? {
            let more = documents.forget_vectors(model, Forgotten::All, &filter).await;
            forgotten += more.map_err(|error| error.message().to_owned())?;
        }
        tell(format_args!("{} to compute again", count(forgotten, "vector")));
    }
    let is_whole = missing(documents, &stopped_by_ctrl_c()).await;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Computes the missing vectors, and says whether none is missing now. Documents can be found without them.
pub(super) async fn missing(documents: &Documents, stop: &CancellationToken) -> bool {
    let Some(model) = documents.embedding_model() else { return true };
    let bar = progress(None, "{spinner} {pos} passages given vectors {elapsed}");
    let reported = bar.clone();
    let done = |done: Embedded| reported.set_position(u64::try_from(done.passages).unwrap_or(u64::MAX));
    let embedding = documents.embed_unread(UpstreamEmbedder::BATCH, done);
    let outcome = stop.run_until_cancelled(embedding).await;
    bar.finish_and_clear();
    let until = "until this is called again or `toolrack serve` runs";
    match outcome {
        Some(Ok(Embedded { passages, passed_over })) => {
            tell(format_args!("{passages} passages were given vectors of {}", one_line(model)));
            if passed_over > 0 {
                tell(format_args!("{passed_over} were refused and are found by their words alone"));
            }
            return true;
        }
        Some(Err(error)) => {
            let reason = one_line(error.message());
            tell(format_args!("warning: some passages are found by their words alone {until}: {reason}"));
        }
        None => tell(format_args!("stopped; some passages are found by their words alone {until}")),
    }
    false
}
