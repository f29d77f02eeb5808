//! Tells other programs what changes in a registry: each event as one signed `POST`.
//!
//! The wire format is that of [Standard Webhooks](https://www.standardwebhooks.com), so that any of its libraries checks
//! what comes from here. The body is `{"type": "tool.disabled", "timestamp": "…", "data": {…}}`, with the event as
//! [`RegistryEvent`] writes it; the headers are
//!
//! | header | what it is |
//! |---|---|
//! | `webhook-id` | names the message; the same each time it is sent, so that a second one can be told |
//! | `webhook-timestamp` | when it was sent, in seconds since 1970; old ones are to be refused |
//! | `webhook-signature` | `v1,` and in base64 the HMAC-SHA256 of `ID.TIMESTAMP.BODY` |
//!
//! Taken is what is answered with a status of 2xx. Redirects are not followed.

mod delivery;
mod signature;

use std::{
    collections::VecDeque,
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    mpsc,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use crate::{events::RegistryEvent, registry::Registry};
use delivery::{Courier, Message};
pub use signature::{BadSecret, Secret};

/// Where events are sent, and the secret by which the receiver knows them.
#[derive(Clone)]
pub struct WebhookEndpoint {
    url: Url,
    secret: Secret,
}

impl fmt::Debug for WebhookEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WebhookEndpoint").field(&self.shown()).finish()
    }
}

impl WebhookEndpoint {
    /// An endpoint. The URL is the operator's, so it may be in a private network.
    ///
    /// # Errors
    /// When the URL is not one of `http` or `https`.
    pub fn new(url: &str, secret: Secret) -> Result<Self, String> {
        match Url::parse(url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Self { url, secret }),
            Ok(url) => {
                Err(format!("a webhook cannot be sent by {}; write an http or https URL", url.scheme()))
            }
            Err(error) => Err(format!("this is not the URL of a webhook: {error}; write https://HOST/PATH")),
        }
    }

    /// The URL without what may be secret in it.
    fn shown(&self) -> String {
        format!("{}{}", self.url.origin().ascii_serialization(), self.url.path())
    }
}

/// How patiently webhooks are delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// How often a message is sent, until it is taken.
    pub attempts: u32,
    /// The pause after the first attempt. It doubles with each further one; a random part of up to half is taken off.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How many messages wait for one endpoint. Those beyond are dead letters at once.
    pub queue: usize,
    /// How many dead letters are kept; of more the oldest are dropped.
    pub dead_letters: usize,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
            queue: 1024,
            dead_letters: 1024,
        }
    }
}

/// A message that nobody has taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// The message's id, as the header has it.
    pub id: String,
    /// Where it was to go, without user, password and query.
    pub url: String,
    /// What it says.
    pub event: RegistryEvent,
    /// How often it was sent.
    pub attempts: u32,
    /// What went wrong the last time.
    pub cause: String,
    /// When it was given up (UTC).
    pub ts: Timestamp,
    #[serde(skip)]
    endpoint: usize,
}

/// Sends the events of one registry that are made in this process. It ends when the last clone is dropped.
///
/// For each endpoint messages are sent one at a time and in their order; endpoints do not wait for each other. What waits
/// and the dead letters are in memory, and gone with the process.
#[derive(Clone)]
pub struct Webhooks {
    post: Arc<PostOffice>,
    _open: Arc<DropGuard>,
}

struct PostOffice {
    queues: Vec<(WebhookEndpoint, mpsc::Sender<Message>)>,
    dead: Mutex<VecDeque<DeadLetter>>,
    courier: Courier,
    dead_letters: usize,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("endpoints", &self.post.queues.len()).finish_non_exhaustive()
    }
}

impl Webhooks {
    /// Sends the registry's events from now on. Called in a runtime of tokio.
    ///
    /// # Errors
    /// When the system's TLS cannot be set up.
    pub fn start(
        registry: &Registry,
        endpoints: Vec<WebhookEndpoint>,
        settings: WebhookSettings,
    ) -> Result<Self, reqwest::Error> {
        let dead_letters = settings.dead_letters;
        // Within what a channel can hold.
        let queue = settings.queue.clamp(1, 1 << 20);
        let channels: Vec<_> = endpoints.iter().map(|_| mpsc::channel::<Message>(queue)).collect();
        let (senders, receivers): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
        let post = Arc::new(PostOffice {
            queues: endpoints.into_iter().zip(senders).collect(),
            dead: Mutex::default(),
            courier: Courier::new(settings, Arc::clone(&registry.shared.common.clock))?,
            dead_letters,
        });
        let open = CancellationToken::new();
        for (at, queue) in receivers.into_iter().enumerate() {
            let (post, closed) = (Arc::clone(&post), open.clone());
            tokio::spawn(async move { closed.run_until_cancelled(post.deliver(at, queue)).await });
        }
        let (sorting, closed, events) = (Arc::clone(&post), open.clone(), registry.subscribe());
        tokio::spawn(async move { closed.run_until_cancelled(sorting.sort(events)).await });
        Ok(Self { post, _open: Arc::new(open.drop_guard()) })
    }

    /// The messages that nobody has taken, oldest first.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.post.dead().iter().cloned().collect()
    }

    /// Sends a dead letter again, as patiently as the first time and with its id. False where there is none of that id, or
    /// where too many messages wait already; then it stays.
    pub fn redeliver(&self, id: &str) -> bool {
        let mut dead = self.post.dead();
        let Some(at) = dead.iter().position(|letter| letter.id == id) else { return false };
        let sent = dead.get(at).is_some_and(|letter| {
            let message = Message { id: letter.id.clone(), event: letter.event.clone() };
            self.post.queues.get(letter.endpoint).is_some_and(|(_, queue)| queue.try_send(message).is_ok())
        });
        if sent {
            dead.remove(at);
        }
        sent
    }
}

impl PostOffice {
    /// Gives every endpoint its copy of each event.
    async fn sort(&self, mut events: broadcast::Receiver<RegistryEvent>) {
        loop {
            match events.recv().await {
                // The server that made the change sends it.
                Ok(event) if event.elsewhere => {}
                Ok(event) => self.queues.iter().enumerate().for_each(|(at, (_, queue))| {
                    let message = Message { id: new_id(), event: event.clone() };
                    if let Err(full) = queue.try_send(message) {
                        self.bury(
                            at,
                            full.into_inner(),
                            0,
                            "too many messages wait for this endpoint".to_owned(),
                        );
                    }
                }),
                Err(RecvError::Lagged(missed)) => tracing::error!(missed, "webhook_events_missed"),
                Err(RecvError::Closed) => return,
            }
        }
    }

    async fn deliver(&self, at: usize, mut queue: mpsc::Receiver<Message>) {
        let Some((endpoint, _)) = self.queues.get(at) else { return };
        while let Some(message) = queue.recv().await {
            if let Err((attempts, cause)) = self.courier.deliver(endpoint, &message).await {
                self.bury(at, message, attempts, cause);
            }
        }
    }

    fn bury(&self, endpoint: usize, message: Message, attempts: u32, cause: String) {
        let Message { id, event } = message;
        let url = self.queues.get(endpoint).map(|(endpoint, _)| endpoint.shown()).unwrap_or_default();
        tracing::error!(id, url, tool = event.tool, attempts, cause, "webhook_not_delivered");
        let letter = DeadLetter { id, url, event, attempts, cause, ts: self.courier.now(), endpoint };
        let mut dead = self.dead();
        dead.push_back(letter);
        while dead.len() > self.dead_letters {
            dead.pop_front();
        }
    }

    fn dead(&self) -> std::sync::MutexGuard<'_, VecDeque<DeadLetter>> {
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new random id.
fn new_id() -> String {
    // The standard library's hash keys are random, and need no further crate.
    let random = || RandomState::new().hash_one(0);
    format!("msg_{:016x}{:016x}", random(), random())
}
