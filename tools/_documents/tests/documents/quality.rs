//! How well passages are found by their words. With vectors it is measured by `llm-bridge/examples/retrieval_quality.rs`, which wants a model.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::path::{Path, PathBuf};

use crate::place::Place;
use crate::retrieval::{GIVEN, Quality, add_pages, questions};
use sqlx::{Row, SqlitePool};
use toolrack_documents::{DocumentFilter, DocumentKind, Documents, Passage, reciprocal_rank_fusion};

/// What has to hold for recall and mean reciprocal rank: what was measured, rounded down. A question more that is not answered fails.
const FLOORS: [(&str, f64, f64); 4] = [
    ("the question", 0.85, 0.695),
    ("every word of it, as it stands", 0.875, 0.67),
    ("the rewrite", 0.825, 0.66),
    ("the question and the rewrite", 0.90, 0.75),
];

fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pages")
}

#[tokio::test]
async fn p6_questions_find_the_passages_that_answer_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("documents.db");
    let documents = Documents::in_file(&file);
    add_pages(&documents, &pages()).await;
    let count = questions().len();
    assert!(count >= 60, "{count}");

    let filter = DocumentFilter::default();
    let words = SqlitePool::connect(&format!("sqlite:{}", file.display())).await.unwrap();
    let found = async |words: &str| documents.search(words, GIVEN, &filter).await.unwrap();
    let measured = [
        Quality::of(async |asked| found(asked.question).await).await,
        Quality::of(async |asked| found_as_it_stands(&words, asked.question).await).await,
        Quality::of(async |asked| found(asked.rewrite).await).await,
        Quality::of(async |asked| {
            let more = async |words: &str| documents.search(words, 4 * GIVEN, &filter).await.unwrap();
            reciprocal_rank_fusion([more(asked.question).await, more(asked.rewrite).await], GIVEN)
        })
        .await,
    ];
    for ((what, recall, mrr), quality) in FLOORS.into_iter().zip(measured) {
        println!("{count} questions by {what}: {quality}; missed: {:#?}", quality.missed);
        assert!(quality.recall >= recall && quality.mrr >= mrr, "{what}: {quality}");
    }
}

/// Without what is done to a question before it is looked for: words that say nothing left out, and beginnings of words tried.
async fn found_as_it_stands(database: &SqlitePool, question: &str) -> Vec<Passage> {
    let words = question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
    let rows = sqlx::query(
        "SELECT document.path, chunk.section FROM chunk_words
         JOIN chunk ON chunk.id = chunk_words.rowid JOIN document ON document.id = chunk.document
         WHERE chunk_words MATCH $1 ORDER BY bm25(chunk_words, 2.0, 3.0, 1.0) LIMIT $2",
    );
    let rows = rows.bind(words).bind(i64::try_from(GIVEN).unwrap()).fetch_all(database).await.unwrap();
    let passage = |row: sqlx::sqlite::SqliteRow| Passage {
        path: row.get("path"),
        section: row.get("section"),
        title: String::new(),
        kind: DocumentKind::Markdown,
        first: 1,
        last: 1,
        score: 0.0,
        text: row.get("path"),
        also_in: Vec::new(),
    };
    rows.into_iter().map(passage).collect()
}

#[tokio::test]
async fn p6_postgresql_finds_them_as_well() {
    for place in Place::all("p6_postgresql_finds_them_as_well") {
        let documents = place.open();
        add_pages(&documents, &pages()).await;
        let found =
            async |words: &str| documents.search(words, GIVEN, &DocumentFilter::default()).await.unwrap();
        let quality = Quality::of(async |asked| found(asked.question).await).await;
        let database = if matches!(place, Place::File(_)) { "SQLite" } else { "PostgreSQL" };
        println!("{database}: {quality}");
        let [(_, recall, mrr), ..] = FLOORS;
        assert!(quality.recall >= recall && quality.mrr >= mrr, "{place:?}: {quality}");
    }
}
