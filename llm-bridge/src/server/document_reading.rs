//! Has models read the documents that were added, beside everything else.

use std::{sync::Arc, time::Duration};

use registry_core::documents::{Documents, Embedded};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::chat::UpstreamEmbedder;

/// So often it is seen what other processes have added.
const INTERVAL: Duration = Duration::from_secs(60);
/// After a fault it is waited longer each time, and at most so long.
const LONGEST_REST: Duration = Duration::from_secs(15 * 60);

/// Work on documents that nobody waits for: giving their passages vectors.
#[derive(Debug)]
pub struct DocumentReading {
    wake: Arc<Notify>,
    task: JoinHandle<()>,
}

impl DocumentReading {
    /// Begins. It looks at once, once a minute, and when it is woken, provided that `are_there` says that there are documents: asking for
    /// them would make the store. `stop` ends it; a batch that is being read then is read again at the next start.
    pub fn start(
        documents: Documents,
        are_there: impl Fn() -> bool + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> Self {
        let wake = Arc::new(Notify::new());
        let woken = Arc::clone(&wake);
        let reading = async move {
            let mut rest = INTERVAL;
            loop {
                if are_there() {
                    rest = read(&documents, rest).await;
                }
                let _ = tokio::time::timeout(rest, woken.notified()).await;
            }
        };
        let task = tokio::spawn(async move {
            stop.run_until_cancelled(reading).await;
        });
        Self { wake, task }
    }

    /// Has it look now, as after documents were added.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Whether it was ended.
    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }
}

/// Has all read that is unread; says how long to rest then.
async fn read(documents: &Documents, rested: Duration) -> Duration {
    match documents.embed_unread(UpstreamEmbedder::BATCH, |_| {}).await {
        Ok(Embedded { passages, .. }) => {
            if passages > 0 {
                tracing::info!("{passages} passages of documents were given vectors");
            }
            INTERVAL
        }
        Err(error) => {
            // Not each time, as it may be long before somebody starts the server of embeddings.
            if rested == INTERVAL {
                tracing::warn!("Some documents are found by their words alone for now: {}", error.message());
            }
            (rested * 2).min(LONGEST_REST)
        }
    }
}
