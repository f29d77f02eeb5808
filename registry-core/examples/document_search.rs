//! Adds documents and measures how long adding and searching take: figures for this machine.
//!
//! `cargo run --release -p registry-core --features documents --example document_search -- COUNT FOLDER…` takes COUNT files that can be
//! read below the folders, keeps them in a folder that is removed afterwards, and asks for words out of their own titles. With the
//! feature `postgres` and `POSTGRES_URL` set it keeps them there, in an empty database.

#![allow(clippy::print_stdout)]

use std::{
    error::Error,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use registry_core::documents::{DocumentFilter, Documents, GraphQuery, files};

/// Questions of each kind.
const QUESTIONS: usize = 500;

#[cfg(feature = "postgres")]
fn open(file: &Path) -> Result<Documents, String> {
    std::env::var("POSTGRES_URL")
        .map_or_else(|_| Ok(Documents::in_file(file)), |url| Documents::in_postgres(&url))
}

#[cfg(not(feature = "postgres"))]
fn open(file: &Path) -> Result<Documents, String> {
    Ok(Documents::in_file(file))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().ok_or("say how many documents, and where they are")?.parse()?;
    let found = files::below(&arguments.map(PathBuf::from).collect::<Vec<_>>()).files;
    // From all over the folders, and not the first of them.
    let step = (found.len() / count.max(1)).max(1);
    let chosen: Vec<PathBuf> = found.into_iter().step_by(step).take(count).collect();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("documents.db");
    let documents = open(&file)?;

    let started = Instant::now();
    let outcomes = stream::iter(chosen).map(|path| documents.add_file(path)).buffer_unordered(4);
    let failed = outcomes.filter(|outcome| std::future::ready(outcome.is_err())).count().await;
    let seconds = started.elapsed().as_secs_f64();
    let list = documents.list(&DocumentFilter::default()).await?;
    let passages: u64 = list.iter().map(|document| document.passages).sum();
    let bytes: u64 = list.iter().map(|document| document.bytes).sum();
    let kept = std::fs::metadata(&file).map_or(0, |about| about.len());
    println!(
        "{} documents ({failed} could not be read), {passages} passages, {bytes} bytes: added in {seconds:.1} s, kept in {kept} bytes",
        list.len()
    );

    let every = (list.len() / QUESTIONS).max(1);
    let titles: Vec<&str> = list.iter().step_by(every).map(|document| document.title.as_str()).collect();
    let (mut of_titles, mut of_questions, mut of_metadata, mut of_names) = (vec![], vec![], vec![], vec![]);
    for title in titles {
        let question = format!("How do I use {title} with other types, and what does the function return?");
        let filter = DocumentFilter::default();
        of_titles.push(timed(documents.search(title, 5, &filter)).await);
        of_questions.push(timed(documents.search(&question, 5, &filter)).await);
        let sql = "SELECT kind, count(*), sum(bytes) FROM documents GROUP BY kind";
        of_metadata.push(timed(documents.select(sql)).await);
        let name =
            title.split_whitespace().find(|word| word.chars().any(char::is_uppercase)).unwrap_or(title);
        let query = GraphQuery { entity: name.to_owned(), depth: 2, relation: None, limit: 30 };
        of_names.push(timed(documents.graph(&query)).await);
    }
    report("titles", of_titles);
    report("questions", of_questions);
    report("metadata", of_metadata);
    report("names", of_names);
    Ok(())
}

/// How long it took, and whether there was an answer. A title without a word is no question, and not every word of one is a name.
async fn timed<T, E>(answer: impl Future<Output = Result<T, E>>) -> (Duration, bool) {
    let started = Instant::now();
    let is_answered = answer.await.is_ok();
    (started.elapsed(), is_answered)
}

fn report(kind: &str, times: Vec<(Duration, bool)>) {
    let mut answered: Vec<Duration> =
        times.iter().filter(|(_, is_answered)| *is_answered).map(|(time, _)| *time).collect();
    answered.sort();
    let at = |part: usize| {
        let time = answered.get(answered.len() * part / 100).copied().unwrap_or_default();
        time.as_secs_f64() * 1000.0
    };
    println!(
        "{kind}: {} of {} answered, p50 {:.1} ms, p99 {:.1} ms",
        answered.len(),
        times.len(),
        at(50),
        at(99)
    );
}
