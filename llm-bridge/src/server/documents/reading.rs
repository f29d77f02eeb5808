//! Background tasks that process new documents with models.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use registry_core::{ToolError, model::Model};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use toolrack_documents::{DocumentFilter, Documents, Embedded, Extraction, Forgotten};

use crate::upstream::UpstreamEmbedder;

/// How often to look for documents that other processes have added.
const INTERVAL: Duration = Duration::from_secs(60);
/// How long one tenant's documents are processed before the next tenant's turn.
const TURN: Duration = Duration::from_secs(120);
/// How long the work of a tenant stays one server's that is gone; as long as it works it says so this often.
const CLAIM_SECONDS: u32 = 60;
const CLAIM_AGAIN: Duration = Duration::from_secs(20);
/// How often passages that the model has refused are tried again: it may have been for another reason than the passage.
const REFUSED_AGAIN: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest pause after failures in a row.
const LONGEST_REST: Duration = Duration::from_secs(15 * 60);

/// What is done with documents.
pub(super) enum Work {
    /// Computes the vectors of their passages.
    Embed,
    /// Extracts names and relations.
    Extract(Model),
}

/// A background task for one kind of work, which may take hours.
pub(super) struct DocumentReading {
    pub(super) documents: Documents,
    pub(super) work: Work,
    /// Notified of each document that this server adds.
    pub(super) added: Arc<Notify>,
}

impl DocumentReading {
    /// Looks for new documents at once, once a minute, and when one was added. A passage that is processed when `closing` is cancelled is
    /// processed again by the next server.
    pub(super) async fn run(self, stopping: CancellationToken) {
        let Self { documents, work, added } = self;
        let (work, server) = (&work, &format!("{:x}", RandomState::new().hash_one(std::process::id())));
        let read = |documents| async move { work.read_alone(&documents, server).await };
        let reading = read_on(&documents, &added, work.reported(), read);
        let reading = async { tokio::join!(reading, work.try_refused_again(&documents)) };
        stopping.run_until_cancelled(reading).await;
        for documents in documents.in_use().into_iter().filter(|documents| documents.are_there()) {
            // Else it is the next server's after a minute.
            let _ = documents.release(work.name(), server).await;
        }
    }
}

/// Gives each tenant its turn, in a loop. `warning` is logged when the work fails.
async fn read_on<F: Future<Output = Result<Turn, ToolError>>>(
    documents: &Documents,
    added: &Notify,
    reported: &str,
    read: impl Fn(Documents) -> F,
) {
    let (mut rest, mut is_told) = (INTERVAL, false);
    loop {
        // Created first, so that no document is missed in between.
        let added = added.notified();
        tokio::pin!(added);
        added.as_mut().enable();
        let (mut failed, mut is_unfinished, mut is_all_failed) = (None, false, true);
        for documents in documents.in_use().into_iter().filter(|documents| documents.are_there()) {
            match read(documents).await {
                Ok(turn) => {
                    is_unfinished |= turn == Turn::Over;
                    is_all_failed = false;
                }
                Err(error) => failed = Some(error),
            }
        }
        // Once, because the model server may be down for long.
        if let Some(error) = failed.as_ref().filter(|_| !is_told) {
            tracing::warn!("{reported}: {}", error.message());
        }
        is_told = failed.is_some();
        // If only some tenants fail, the others do not wait.
        rest = if is_told && is_all_failed { (rest * 2).min(LONGEST_REST) } else { INTERVAL };
        if !is_unfinished {
            let _ = timeout(rest, added).await;
        }
    }
}

/// How a turn ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Done,
    /// There may be more to process.
    Over,
}

impl Work {
    /// What it is to the operator when it fails.
    fn reported(&self) -> &'static str {
        match self {
            Self::Embed => "Some documents are found by their words alone for now",
            Self::Extract(_) => "Names are not extracted from some documents for now",
        }
    }

    /// What it is called where servers of one store tell each other who does it.
    fn name(&self) -> &'static str {
        match self {
            Self::Embed => "vectors",
            Self::Extract(_) => "names",
        }
    }

    /// Whether there is any passage that it has not been done for.
    async fn is_to_do(&self, documents: &Documents) -> Result<bool, ToolError> {
        match self {
            Self::Embed => match documents.embedding_model() {
                Some(model) => Ok(!documents.without_vectors(model, 1).await?.is_empty()),
                None => Ok(false),
            },
            // Of chats nothing is extracted.
            Self::Extract(_) if documents.are_of_chats() => Ok(false),
            Self::Extract(_) => Ok(!documents.unextracted(1, &DocumentFilter::default()).await?.is_empty()),
        }
    }

    /// Works for one turn where something is to be done and no other server does it.
    async fn read_alone(&self, documents: &Documents, server: &str) -> Result<Turn, ToolError> {
        let work = self.name();
        if !self.is_to_do(documents).await? || !documents.claim(work, server, CLAIM_SECONDS).await? {
            return Ok(Turn::Done);
        }
        let still_here = async {
            loop {
                tokio::time::sleep(CLAIM_AGAIN).await;
                if let Err(cause) = documents.claim(work, server, CLAIM_SECONDS).await {
                    tracing::warn!(%cause, work, "claim_not_renewed");
                }
            }
        };
        let turn = tokio::select! {
            turn = self.read(documents) => turn,
            () = still_here => Ok(Turn::Over),
        };
        documents.release(work, server).await?;
        turn
    }

    /// Once a day.
    async fn try_refused_again(&self, documents: &Documents) {
        let (Self::Embed, Some(model)) = (self, documents.embedding_model()) else { return };
        loop {
            tokio::time::sleep(REFUSED_AGAIN).await;
            for documents in documents.in_use().into_iter().filter(|documents| documents.are_there()) {
                let all = DocumentFilter::default();
                if let Err(cause) = documents.forget_vectors(model, Forgotten::Refused, &all).await {
                    tracing::warn!(%cause, "refused_passages_not_tried_again");
                }
            }
        }
    }

    /// Works for one turn, and logs what was done however it ends.
    async fn read(&self, documents: &Documents) -> Result<Turn, ToolError> {
        let clock = TurnClock { began: Instant::now(), over: Notify::new() };
        match self {
            Self::Embed => {
                let mut done = Embedded::default();
                let embed = documents.embed_unread(UpstreamEmbedder::BATCH, |now| {
                    done = now;
                    clock.piece_is_kept();
                });
                let ended = clock.run(embed).await;
                if done.passages > 0 {
                    tracing::info!("{} passages of documents were given vectors", done.passages);
                }
                ended
            }
            Self::Extract(model) => {
                let (mut done, all) = (Extraction::default(), DocumentFilter::default());
                let extract = documents.extract_unread(model, &all, |now| {
                    done = *now;
                    clock.piece_is_kept();
                });
                let ended = clock.run(extract).await;
                let Extraction { passages, names, relations, tokens, .. } = done;
                if passages > 0 {
                    tracing::info!(
                        "{names} names and {relations} relations were extracted from {passages} passages, with {tokens} tokens"
                    );
                }
                ended
            }
        }
    }
}

/// Ends a turn after a passage and never within one, because a slow model may need more than a turn for one.
struct TurnClock {
    began: Instant,
    over: Notify,
}

impl TurnClock {
    fn piece_is_kept(&self) {
        if self.began.elapsed() >= TURN {
            self.over.notify_one();
        }
    }

    async fn run<T>(&self, work: impl Future<Output = Result<T, ToolError>>) -> Result<Turn, ToolError> {
        tokio::select! {
            biased;
            () = self.over.notified() => Ok(Turn::Over),
            ended = work => ended.map(|_| Turn::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    use async_trait::async_trait;
    use tokio::time::{pause, sleep};
    use toolrack_documents::{DocumentKind, EmbedError, Embedder, TextRole, read::document};

    use super::*;

    #[tokio::test]
    async fn p6_only_a_fault_of_all_makes_the_rest_longer_and_an_upload_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let documents = Documents::in_file(folder.path().join("documents.db"));
        for tenant in ["default", "acme"] {
            let tea = document("tea.md", DocumentKind::Markdown, b"# Tea", None).unwrap();
            documents.for_tenant(tenant).add(tea).await.unwrap();
        }
        // Not before, as what adds them waits for a thread.
        pause();
        let (added, began) = (Arc::<Notify>::default(), Instant::now());
        let turns: Arc<Mutex<Vec<u64>>> = Arc::default();
        let (seen, reported) = (Arc::clone(&turns), Arc::clone(&added));
        // Both tenants fail, then one of them; at the end there is more to read, once.
        let read = move |_| {
            let mut seen = seen.lock().unwrap();
            seen.push(began.elapsed().as_secs());
            std::future::ready(match seen.len() {
                1..=3 => Err(ToolError::failed("no model")),
                8 => Ok(Turn::Over),
                _ => Ok(Turn::Done),
            })
        };
        let reading = tokio::spawn(async move { read_on(&documents, &reported, "no vectors", read).await });
        sleep(Duration::from_secs(200)).await;
        assert_eq!(*turns.lock().unwrap(), [0, 0, 120, 120, 180, 180]);
        added.notify_waiters();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(turns.lock().unwrap()[6..], [200; 4], "an upload is looked at at once");
        reading.abort();
    }

    /// Counts the texts that it is asked for.
    struct Counting(Arc<AtomicUsize>);

    #[async_trait]
    impl Embedder for Counting {
        fn model(&self) -> &str {
            "m"
        }

        async fn embed(&self, texts: Vec<String>, _: TextRole) -> Result<Vec<Vec<f32>>, EmbedError> {
            self.0.fetch_add(texts.len(), Ordering::SeqCst);
            Ok(vec![vec![1.0]; texts.len()])
        }
    }

    #[tokio::test]
    async fn p6_what_another_server_does_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let asked: Arc<AtomicUsize> = Arc::default();
        let documents = Documents::in_file(folder.path().join("documents.db"))
            .with_embedder(Counting(Arc::clone(&asked)));
        documents.add(document("tea.md", DocumentKind::Markdown, b"# Tea", None).unwrap()).await.unwrap();
        assert!(documents.claim(Work::Embed.name(), "other", 60).await.unwrap());
        assert!(matches!(Work::Embed.read_alone(&documents, "this").await, Ok(Turn::Done)));
        assert_eq!(asked.load(Ordering::SeqCst), 0);
        documents.release(Work::Embed.name(), "other").await.unwrap();
        assert!(matches!(Work::Embed.read_alone(&documents, "this").await, Ok(Turn::Done)));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        assert!(documents.claim(Work::Embed.name(), "other", 60).await.unwrap(), "it is given back");
    }

    #[tokio::test(start_paused = true)]
    async fn p6_a_turn_ends_behind_a_piece() {
        let clock = TurnClock { began: Instant::now(), over: Notify::new() };
        let mut pieces = 0;
        let slow = async {
            loop {
                sleep(TURN * 2 / 3).await;
                pieces += 1;
                clock.piece_is_kept();
            }
        };
        let turn: Result<Turn, ToolError> = clock.run::<()>(slow).await;
        assert!(matches!(turn, Ok(Turn::Over)) && pieces == 2);
        let clock = TurnClock { began: Instant::now(), over: Notify::new() };
        let long = async {
            sleep(TURN * 2).await;
            Ok(())
        };
        assert!(matches!(clock.run(long).await, Ok(Turn::Done)), "a piece may take longer than a turn");
    }
}
