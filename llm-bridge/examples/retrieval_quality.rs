//! Measures what the vectors of a model are worth: asks the labelled questions over a copy of this project's `docs/` by words, by vectors, and by both.
//!
//! `cargo run --release -p llm-bridge --example retrieval_quality -- URL MODEL [QUERY_PREFIX PASSAGE_PREFIX]`, as with
//! `http://127.0.0.1:11434/v1 nomic-embed-text "search_query: " "search_document: "`.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

#[path = "../../tools/_documents/tests/documents/retrieval.rs"]
mod retrieval;

use std::{error::Error, path::Path, time::Duration};

use llm_bridge::upstream::{EmbeddingModel, Upstream, UpstreamEmbedder};
use retrieval::{GIVEN, Quality, add_pages, questions};
use toolrack_documents::{DocumentFilter, Documents, Embedder, Passage, TextRole, reciprocal_rank_fusion};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let base = arguments.next().ok_or("say where the server is, and which model")?;
    let model = EmbeddingModel {
        name: arguments.next().ok_or("say which model")?,
        query_prefix: arguments.next().unwrap_or_default(),
        passage_prefix: arguments.next().unwrap_or_default(),
    };
    let upstream = Upstream::http(&base, None, Duration::from_secs(300))?;
    let embedder = UpstreamEmbedder::new(upstream, model);
    let folder = tempfile::tempdir()?;
    let words = Documents::in_file(folder.path().join("documents.db"));
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/_documents/tests/data/pages");
    add_pages(&words, &pages).await;
    let both = words.clone().with_embedder(embedder.clone());
    let done = both.embed_unread(UpstreamEmbedder::BATCH, |_| {}).await?;
    println!(
        "{} questions, {} passages with vectors of {}",
        questions().len(),
        done.passages,
        embedder.model()
    );

    let filter = DocumentFilter::default();
    let found = async |way: Way, text: &str| -> Vec<Passage> {
        match way {
            Way::Words => words.search(text, 4 * GIVEN, &filter).await.unwrap(),
            Way::Both => both.search(text, 4 * GIVEN, &filter).await.unwrap(),
            Way::Vectors => {
                let vectors = embedder.embed(vec![text.to_owned()], TextRole::Query).await.unwrap();
                both.nearest(embedder.model(), vectors.first().unwrap(), 4 * GIVEN, &filter).await.unwrap()
            }
        }
    };
    for way in [Way::Words, Way::Vectors, Way::Both] {
        let question = Quality::of(async |asked| found(way, asked.question).await).await;
        let rewrite = Quality::of(async |asked| found(way, asked.rewrite).await).await;
        let merged = Quality::of(async |asked| {
            let lists = [found(way, asked.question).await, found(way, asked.rewrite).await];
            reciprocal_rank_fusion(lists, GIVEN)
        });
        println!("{way:?}: the question: {question}; the rewrite: {rewrite}; both: {}", merged.await);
    }
    Ok(())
}

/// How passages are looked for.
#[derive(Debug, Clone, Copy)]
enum Way {
    Words,
    Vectors,
    Both,
}
