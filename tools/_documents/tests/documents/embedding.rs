//! Passages that are found by what they mean: with vectors whose numbers count words, synonyms as one.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::place::Place;
use async_trait::async_trait;
use sqlx::Connection;
use toolrack_documents::{
    DocumentFilter, DocumentKind, Documents, EmbedError, Embedded, Embedder, TextRole, read,
};

const SYNONYMS: [&[&str]; 4] =
    [&["car", "automobile"], &["quick", "fast"], &["repaired", "mended", "fixed"], &["dog", "hound"]];

/// What the embedder does, and what it was asked.
#[derive(Default)]
pub(crate) struct State {
    is_out: AtomicBool,
    is_slow: AtomicBool,
    /// It has a model to load first, which takes longer than a question waits, and ends where nobody waits.
    pub(crate) is_unloaded: AtomicBool,
    refuses_all: AtomicBool,
    asked: Mutex<Vec<(usize, TextRole)>>,
}

#[derive(Clone)]
pub(crate) struct WordCounts {
    pub(crate) model: &'static str,
    pub(crate) dimensions: usize,
    /// Longer texts are refused, in characters.
    pub(crate) longest: usize,
    pub(crate) state: Arc<State>,
}

impl WordCounts {
    fn new(model: &'static str) -> Self {
        Self { model, dimensions: 64, longest: 10_000, state: Arc::default() }
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; self.dimensions];
        for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
            let place = SYNONYMS.iter().position(|synonyms| synonyms.contains(&word)).unwrap_or_else(|| {
                let hash = word.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31) + usize::from(byte));
                SYNONYMS.len() + hash % (self.dimensions - SYNONYMS.len())
            });
            vector[place] += 1.0;
        }
        vector
    }
}

#[async_trait]
impl Embedder for WordCounts {
    fn model(&self) -> &str {
        self.model
    }

    async fn embed(&self, texts: Vec<String>, role: TextRole) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.state.asked.lock().unwrap().push((texts.len(), role));
        if self.state.is_slow.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.state.is_unloaded.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            self.state.is_unloaded.store(false, Ordering::Relaxed);
        }
        if self.state.is_out.load(Ordering::Relaxed) {
            return Err(EmbedError::Unavailable("no connection".into()));
        }
        let is_long = texts.iter().any(|text| text.chars().count() > self.longest);
        if is_long || self.state.refuses_all.load(Ordering::Relaxed) {
            return Err(EmbedError::Refused("too long".into()));
        }
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

pub(crate) struct Store {
    place: Place,
    pub(crate) embedder: WordCounts,
    pub(crate) documents: Documents,
}

impl Store {
    pub(crate) fn new(place: Place) -> Self {
        let embedder = WordCounts::new("counts");
        let documents = place.open().with_embedder(embedder.clone());
        Self { place, embedder, documents }
    }

    /// As another process would have them, with an embedder of its own.
    pub(crate) fn again(&self, embedder: &WordCounts) -> Documents {
        self.place.open().with_embedder(embedder.clone())
    }

    pub(crate) async fn with_examples(place: Place) -> Self {
        let store = Self::new(place);
        store.add("one.md", "# Garage\n\nThe automobile was mended by noon.\n").await;
        store.add("two.txt", "A hound sleeps in the sun.\n").await;
        store.add("tea.md", "# Tea\n\nGreen tea is steeped at 75 degrees.\n").await;
        assert_eq!(embed(&store.documents).await, Embedded { passages: 3, passed_over: 0 });
        store
    }

    async fn add(&self, path: &str, text: &str) {
        let kind = DocumentKind::of(Path::new(path)).unwrap();
        self.documents.add(read::document(path, kind, text.as_bytes(), None).unwrap()).await.unwrap();
    }

    pub(crate) fn asked(&self) -> Vec<(usize, TextRole)> {
        std::mem::take(&mut *self.embedder.state.asked.lock().unwrap())
    }
}

pub(crate) async fn embed(documents: &Documents) -> Embedded {
    documents.embed_unread(2, |_| {}).await.unwrap()
}

pub(crate) async fn first(documents: &Documents, question: &str) -> Option<String> {
    let found = documents.search(question, 1, &DocumentFilter::default()).await.unwrap();
    found.into_iter().next().map(|passage| passage.path)
}

#[tokio::test]
async fn p6_a_paraphrase_is_found_by_its_meaning() {
    for place in Place::all("p6_a_paraphrase_is_found_by_its_meaning") {
        let store = Store::with_examples(place).await;
        assert_eq!(first(&store.documents, "car repaired").await.as_deref(), Some("one.md"));
        assert_eq!(first(&store.documents, "which dog").await.as_deref(), Some("two.txt"));
        // What both have comes first, and its score says so.
        let found =
            store.documents.search("how is tea steeped", 3, &DocumentFilter::default()).await.unwrap();
        assert_eq!(found[0].path, "tea.md");
        assert!((found[0].score - 2.0 / 61.0).abs() < 1e-9 && found[1].score < 1.0 / 61.0, "{found:?}");
        // By words alone nothing is found of the others.
        let words = store.place.open();
        assert_eq!(first(&words, "car repaired").await, None);
        assert_eq!((words.embedding_model(), store.documents.embedding_model()), (None, Some("counts")));
        assert_eq!(words.embed_unread(2, |_| {}).await.unwrap(), Embedded::default());
        let error = store.documents.search("?!", 1, &DocumentFilter::default()).await.unwrap_err();
        assert!(error.feedback().contains("no word to look for"), "{error}");
    }
}

#[tokio::test]
async fn p6_the_nearest_pass_the_filter() {
    for place in Place::all("p6_the_nearest_pass_the_filter") {
        let store = Store::with_examples(place).await;
        for (filter, path) in [
            (
                DocumentFilter { kinds: vec![DocumentKind::Text], ..DocumentFilter::default() },
                Some("two.txt"),
            ),
            (DocumentFilter { below: Some("tea.md".into()), ..DocumentFilter::default() }, Some("tea.md")),
            (DocumentFilter { below: Some("none".into()), ..DocumentFilter::default() }, None),
        ] {
            let found = store.documents.search("car repaired", 5, &filter).await.unwrap();
            assert_eq!(found.first().map(|passage| passage.path.as_str()), path, "{filter:?}");
            assert_eq!(found.len(), usize::from(path.is_some()));
        }
    }
}

#[tokio::test]
async fn p6_passages_are_embedded_in_batches_and_once() {
    for place in Place::all("p6_passages_are_embedded_in_batches_and_once") {
        let store = Store::new(place);
        for number in 0..5 {
            store.add(&format!("{number}.txt"), &format!("Text number {number}.\n")).await;
        }
        let mut progress = Vec::new();
        let done = store.documents.embed_unread(2, |done| progress.push(done.passages)).await.unwrap();
        assert_eq!((done.passages, progress), (5, vec![2, 4, 5]));
        let passages =
            |counts: &[usize]| counts.iter().map(|count| (*count, TextRole::Passage)).collect::<Vec<_>>();
        assert_eq!(store.asked(), passages(&[2, 2, 1]));
        assert_eq!(embed(&store.documents).await, Embedded::default());
        assert_eq!(store.asked(), []);
        // Only what changed is embedded again.
        store.add("3.txt", "Another text.\n").await;
        assert_eq!(embed(&store.documents).await.passages, 1);
    }
}

#[tokio::test]
async fn p6_what_was_embedded_before_a_fault_stays() {
    for place in Place::all("p6_what_was_embedded_before_a_fault_stays") {
        let store = Store::new(place);
        for number in 0..4 {
            store.add(&format!("{number}.txt"), &format!("Text number {number}.\n")).await;
        }
        let state = Arc::clone(&store.embedder.state);
        let stop_after_one = |_| state.is_out.store(true, Ordering::Relaxed);
        let error = store.documents.embed_unread(2, stop_after_one).await.unwrap_err();
        assert!(error.message().contains("no connection") && error.is_retryable(), "{error}");
        // Nor is anything lost where nobody waits any more.
        state.is_out.store(false, Ordering::Relaxed);
        state.is_slow.store(true, Ordering::Relaxed);
        let waited = Duration::from_millis(50);
        assert!(tokio::time::timeout(waited, store.documents.embed_unread(2, |_| {})).await.is_err());
        state.is_slow.store(false, Ordering::Relaxed);
        assert_eq!(embed(&store.documents).await.passages, 2);
    }
}

#[tokio::test]
async fn p6_an_outage_leaves_the_words() {
    for place in Place::all("p6_an_outage_leaves_the_words") {
        let store = Store::with_examples(place).await;
        let state = &store.embedder.state;
        store.asked();
        state.is_out.store(true, Ordering::Relaxed);
        assert_eq!(first(&store.documents, "car repaired").await, None);
        let found = store.documents.search("steeped tea", 1, &DocumentFilter::default()).await.unwrap();
        assert_eq!((found.len(), found[0].path.as_str()), (1, "tea.md"));
        // It was asked once, and is not asked again for a while.
        assert_eq!(store.asked(), [(1, TextRole::Query)]);
        state.is_out.store(false, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(5100)).await;
        assert_eq!(first(&store.documents, "car repaired").await.as_deref(), Some("one.md"));
    }
}

#[tokio::test]
async fn p6_a_slow_embedder_is_not_waited_for() {
    for place in Place::all("p6_a_slow_embedder_is_not_waited_for") {
        let store = Store::with_examples(place).await;
        store.embedder.state.is_slow.store(true, Ordering::Relaxed);
        let started = std::time::Instant::now();
        assert_eq!(first(&store.documents, "steeped tea").await.as_deref(), Some("tea.md"));
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn p6_vectors_of_another_model_are_not_compared() {
    for place in Place::all("p6_vectors_of_another_model_are_not_compared") {
        let store = Store::with_examples(place).await;
        let other = WordCounts { dimensions: 32, ..WordCounts::new("other") };
        let documents = store.again(&other);
        assert_eq!(first(&documents, "car repaired").await, None);
        assert_eq!(embed(&documents).await.passages, 3);
        assert_eq!(first(&documents, "car repaired").await.as_deref(), Some("one.md"));
        // A passage has one vector: the first model's are gone.
        assert_eq!(first(&store.documents, "car repaired").await, None);
        // One name, and another length: what is there is of no use, and is made again with the first that is added.
        let longer = store.again(&WordCounts { dimensions: 48, ..WordCounts::new("other") });
        assert_eq!(first(&longer, "car repaired").await, None);
        store.add("new.txt", "New words.\n").await;
        assert_eq!(embed(&longer).await.passages, 4);
        assert_eq!(first(&longer, "car repaired").await.as_deref(), Some("one.md"));
    }
}

#[tokio::test]
async fn p6_what_another_process_does_is_seen() {
    for place in Place::all("p6_what_another_process_does_is_seen") {
        let store = Store::with_examples(place).await;
        let other = store.again(&store.embedder);
        assert_eq!(first(&other, "which dog").await.as_deref(), Some("two.txt"));
        store.add("kennel.txt", "Each dog, each hound, a kennel.\n").await;
        assert_eq!(embed(&store.documents).await.passages, 1);
        assert_eq!(first(&other, "hounds, which dog").await.as_deref(), Some("kennel.txt"));
        assert_eq!(store.documents.remove("kennel.txt").await.unwrap().len(), 1);
        assert_eq!(first(&other, "hounds, which dog").await.as_deref(), Some("two.txt"));
        // A passage that comes in the place of the last one is another one, until it has a vector of its own.
        store.add("pen.txt", "A pen of ink.\n").await;
        let near = other
            .nearest("counts", &store.embedder.vector("kennel dog"), 9, &DocumentFilter::default())
            .await;
        assert!(near.unwrap().iter().all(|passage| passage.path != "pen.txt"));
        assert_eq!(embed(&other).await.passages, 1);
        store.documents.remove("two.txt").await.unwrap();
        assert_eq!(first(&other, "which pen").await.as_deref(), Some("pen.txt"));
    }
}

#[tokio::test]
async fn p6_a_vector_is_not_kept_for_a_passage_that_is_gone() {
    for place in Place::all("p6_a_vector_is_not_kept_for_a_passage_that_is_gone") {
        let store = Store::new(place);
        store.add("one.txt", "The dog.\n").await;
        let unread = store.documents.without_vectors("counts", 9).await.unwrap();
        assert_eq!((unread.len(), unread[0].text.as_str(), unread[0].title.as_str()), (1, "The dog.", "one"));
        let vector = || vec![(unread[0].id, store.embedder.vector("The dog."))];
        store.add("one.txt", "The car.\n").await;
        store.documents.keep_vectors("counts", vector()).await.unwrap();
        assert_eq!(embed(&store.documents).await.passages, 1);
        assert_eq!(first(&store.documents, "automobile").await.as_deref(), Some("one.txt"));
        store.documents.remove("one.txt").await.unwrap();
        store.documents.keep_vectors("counts", vector()).await.unwrap();
        assert_eq!(first(&store.documents, "which hound").await, None);
        if let Place::File(folder) = &store.place {
            let file = format!("sqlite:{}", folder.path().join("a/documents.db").display());
            let database = sqlx::SqlitePool::connect(&file).await.unwrap();
            let kept: i64 =
                sqlx::query_scalar("SELECT count(*) FROM embedding").fetch_one(&database).await.unwrap();
            assert_eq!(kept, 0);
        }
    }
}

#[tokio::test]
async fn p6_what_the_embedder_does_not_take_is_tried_in_half_and_passed_over() {
    for place in Place::all("p6_what_the_embedder_does_not_take_is_tried_in_half_and_passed_over") {
        let store = Store::new(place);
        let strict = WordCounts { longest: 300, ..WordCounts::new("strict") };
        let documents = store.again(&strict);
        store.add("short.txt", "The hound.\n").await;
        store.add("longer.txt", &format!("The automobile. {}\n", "so on ".repeat(90))).await;
        store.add("longest.txt", &format!("Green tea. {}\n", "so on ".repeat(160))).await;
        assert_eq!(embed(&documents).await, Embedded { passages: 2, passed_over: 1 });
        assert_eq!(first(&documents, "which car").await.as_deref(), Some("longer.txt"));
        assert_eq!(first(&documents, "green tea").await.as_deref(), Some("longest.txt"));
        // It is not asked for ever.
        assert_eq!(embed(&documents).await, Embedded::default());
        // Who refuses everything is at fault, and no passage is passed over for it.
        let state = &strict.state;
        store.add("new.txt", "New words.\n").await;
        state.refuses_all.store(true, Ordering::Relaxed);
        let error = documents.embed_unread(2, |_| {}).await.unwrap_err();
        assert!(error.message().contains("too long"), "{error}");
        state.refuses_all.store(false, Ordering::Relaxed);
        assert_eq!(embed(&documents).await, Embedded { passages: 1, passed_over: 0 });
    }
}

#[tokio::test]
async fn p6_a_file_of_the_first_version_is_brought_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("documents.db");
    {
        let database =
            sqlx::SqlitePool::connect(&format!("sqlite:{}?mode=rwc", file.display())).await.unwrap();
        sqlx::raw_sql(include_str!("../../src/sqlite/schema_1.sql")).execute(&database).await.unwrap();
        sqlx::raw_sql(
            "PRAGMA user_version = 1;
             INSERT INTO document VALUES (7, 'old.txt', 'old.txt', 'text', 9, 1, NULL, NULL, '2026-01-01T00:00:00Z', 'x', '{}');
             INSERT INTO chunk VALUES (41, 7, 0, '', 1, 1, 'The hound.');",
        )
        .execute(&database)
        .await
        .unwrap();
        database.close().await;
    }
    let embedder = WordCounts::new("counts");
    let documents = Documents::in_file(&file).with_embedder(embedder.clone());
    assert_eq!(embed(&documents).await.passages, 1);
    assert_eq!(first(&documents, "which dog").await.as_deref(), Some("old.txt"));
    documents.remove("old.txt").await.unwrap();
    documents.add(read::document("a.txt", DocumentKind::Text, b"A.", None).unwrap()).await.unwrap();
    assert_eq!(documents.without_vectors("counts", 9).await.unwrap()[0].id, 42);
}

/// The cosine is the score, wherever it is made; vectors of another length, and those that point nowhere, are not compared.
#[tokio::test]
async fn p6_the_nearest_come_first_with_their_cosine() {
    let test = "p6_the_nearest_come_first_with_their_cosine";
    let without = Place::all(test).into_iter().map(|place| (place, None));
    let with = |extension: &'static str| {
        let on_servers = Place::all(test).into_iter().filter(|place| matches!(place, Place::Postgres(_)));
        on_servers.map(move |place| (place, Some(extension)))
    };
    let elsewhere = "CREATE SCHEMA elsewhere; CREATE EXTENSION vector SCHEMA elsewhere";
    for (place, extension) in without.chain(with("CREATE EXTENSION vector")).chain(with(elsewhere)) {
        if let (Place::Postgres(url), Some(extension)) = (&place, extension) {
            let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
            let is_there = sqlx::query("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'");
            if is_there.fetch_optional(&mut connection).await.unwrap().is_none() {
                let ci = std::env::var("CI").is_ok_and(|value| value == "true");
                assert!(!ci, "{test} needs a PostgreSQL server with pgvector");
                eprintln!("skipped: the part of {test} with pgvector, which this PostgreSQL server lacks");
                continue;
            }
            sqlx::raw_sql(extension).execute(&mut connection).await.unwrap();
        }
        let documents = place.open();
        let vectors =
            [&[1.0, 0.0][..], &[3.0, 3.0], &[0.0, -2.0], &[-1.0, 0.1], &[0.0, 0.0], &[f32::NAN, 1.0]];
        for number in 0..vectors.len() {
            crate::place::add(&documents, &format!("{number}.txt"), &format!("Text {number}.\n")).await;
        }
        let filter = DocumentFilter::default();
        let unread = documents.without_vectors("m", 99).await.unwrap();
        let kept =
            unread.iter().zip(vectors).map(|(passage, vector)| (passage.id, vector.to_vec())).collect();
        documents.keep_vectors("m", kept).await.unwrap();
        assert!(documents.without_vectors("m", 99).await.unwrap().is_empty(), "none is asked for again");
        let near = documents.nearest("m", &[5.0, 0.0], 9, &filter).await.unwrap();
        let paths: Vec<&str> = near.iter().map(|passage| passage.path.as_str()).collect();
        assert_eq!(paths, ["0.txt", "1.txt", "2.txt", "3.txt"], "{place:?}");
        let scores: Vec<f64> = near.iter().map(|passage| passage.score).collect();
        for (score, cosine) in scores.iter().zip([1.0, 0.5_f64.sqrt(), 0.0, -0.995]) {
            assert!((score - cosine).abs() < 1e-3, "{place:?}: {scores:?}");
        }
        let below = DocumentFilter { below: Some("2.txt".into()), ..DocumentFilter::default() };
        assert_eq!(documents.nearest("m", &[5.0, 0.0], 9, &below).await.unwrap().len(), 1);
        assert_eq!(documents.nearest("m", &[5.0, 0.0], 1, &filter).await.unwrap().len(), 1);
        assert_eq!(documents.nearest("m", &[5.0, 0.0, 0.0], 9, &filter).await.unwrap(), []);
        assert_eq!(documents.nearest("other", &[5.0, 0.0], 9, &filter).await.unwrap(), []);
        assert!(documents.nearest("m", &[0.0, 0.0], 9, &filter).await.is_err());
    }
}
