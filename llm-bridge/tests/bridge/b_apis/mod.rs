//! What belongs around the chats of five APIs: lists of models, what is passed on, counts, kept conversations.

mod conversations;
mod counts;
mod front;
mod interrupted;
mod models;
mod ollama;
mod passed;
mod responses;
mod results;
mod transcripts;
mod without_transcripts;

use crate::support::{Rack, Reply, Scripted, Setup, Site};

/// A server before one of a kind, or of none that is known, with models that chat and one that makes vectors.
async fn rack_before(kind: Option<&str>, replies: impl IntoIterator<Item = Reply>) -> Rack {
    let names = ["scripted", "org/scripted:8b", "embed-vectors"];
    let site = kind.map_or_else(|| Site::with_models(&names), |kind| Site::of_kind(kind, &names));
    let upstream = Scripted::start_as(site, replies).await;
    let base = upstream.base();
    Setup::new().start_before(upstream, &base).await
}
