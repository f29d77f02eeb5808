//! Adds documents and measures how long adding and searching take: figures for this machine.
//!
//! `cargo run --release -p toolrack-documents --example document_search -- COUNT FOLDER…` takes COUNT files that can be
//! read below the folders, keeps them in a folder that is removed afterwards, and asks for words out of their own titles: by words, and
//! by words and vectors. The vectors are made here and of no use; they are as many and as long as those of a small model. With
//! `POSTGRES_URL` set it keeps them there, in an empty database.

#![allow(clippy::print_stdout)]

use std::{
    error::Error,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use toolrack_documents::{DocumentFilter, Documents, EmbedError, Embedder, GraphQuery, TextRole, files};

/// Questions of each kind.
const QUESTIONS: usize = 500;
/// How long the vectors are.
const DIMENSIONS: u16 = 384;

fn open(file: &Path) -> Result<Documents, String> {
    std::env::var("POSTGRES_URL")
        .map_or_else(|_| Ok(Documents::in_file(file)), |url| Documents::in_postgres(&url))
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
    let with_vectors = documents.clone().with_embedder(Hashes);
    let started = Instant::now();
    let embedded = with_vectors.embed_unread(256, |_| {}).await?;
    println!("{} vectors kept in {:.1} s", embedded.passages, started.elapsed().as_secs_f64());
    let started = Instant::now();
    with_vectors.search("What is read with the first question?", 5, &DocumentFilter::default()).await?;
    println!("first question with vectors: {:.0} ms", started.elapsed().as_secs_f64() * 1000.0);

    let (mut of_titles, mut of_questions, mut of_metadata, mut of_names) = (vec![], vec![], vec![], vec![]);
    let (mut of_both, mut of_both_narrowed) = (vec![], vec![]);
    for title in titles {
        let question = format!("How do I use {title} with other types, and what does the function return?");
        let filter = DocumentFilter::default();
        of_titles.push(timed(documents.search(title, 5, &filter)).await);
        of_questions.push(timed(documents.search(&question, 5, &filter)).await);
        of_both.push(timed(with_vectors.search(&question, 5, &filter)).await);
        let narrowed = DocumentFilter { modified_since: Some(jiff::Timestamp::UNIX_EPOCH), ..filter };
        of_both_narrowed.push(timed(with_vectors.search(&question, 5, &narrowed)).await);
        let sql = "SELECT kind, count(*), sum(bytes) FROM documents GROUP BY kind";
        of_metadata.push(timed(documents.select(sql)).await);
        let name =
            title.split_whitespace().find(|word| word.chars().any(char::is_uppercase)).unwrap_or(title);
        let query = GraphQuery { entity: name.to_owned(), depth: 2, relation: None, limit: 30 };
        of_names.push(timed(documents.graph(&query)).await);
    }
    report("titles", of_titles);
    let words = report("questions", of_questions);
    let both = report("questions, with vectors", of_both);
    println!(
        "    with vectors in place of without: p50 x {:.2}, p99 x {:.2}",
        both.0 / words.0,
        both.1 / words.1
    );
    report("questions, with vectors and a filter", of_both_narrowed);
    report("metadata", of_metadata);
    report("names", of_names);
    Ok(())
}

/// Makes vectors of noise at no cost.
struct Hashes;

#[async_trait]
impl Embedder for Hashes {
    fn model(&self) -> &str {
        "hashes"
    }

    async fn embed(&self, texts: Vec<String>, _: TextRole) -> Result<Vec<Vec<f32>>, EmbedError> {
        let vector = |text: String| {
            let seed = text.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31) + u32::from(byte));
            let noise = (0..DIMENSIONS).scan(seed, |state, _| {
                *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let [.., byte] = state.to_le_bytes();
                Some(f32::from(byte) - 127.5)
            });
            noise.collect()
        };
        Ok(texts.into_iter().map(vector).collect())
    }
}

/// How long it took, and whether there was an answer. A title without a word is no question, and not every word of one is a name.
async fn timed<T, E>(answer: impl Future<Output = Result<T, E>>) -> (Duration, bool) {
    let started = Instant::now();
    let is_answered = answer.await.is_ok();
    (started.elapsed(), is_answered)
}

/// Prints how long it took, and gives the median and the 99th percentile in milliseconds.
fn report(kind: &str, times: Vec<(Duration, bool)>) -> (f64, f64) {
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
    (at(50), at(99))
}
