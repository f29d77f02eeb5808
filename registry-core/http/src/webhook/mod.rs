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
mod endpoint;

use std::{fmt, sync::Arc, time::Duration};

use registry_core::{
    Registry, RegistryEvent,
    store::{DeadLetter, DeadLetters, StoreError},
};
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        mpsc,
    },
    task::JoinSet,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use delivery::{Courier, Message};
pub use endpoint::WebhookEndpoint;

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
    /// How many dead letters are kept of each tenant; of more the oldest are dropped.
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

/// Sends the events of the registries of all tenants that are made in this process: to each endpoint those that it is for. It
/// ends when the last clone is dropped.
///
/// For each endpoint messages are sent one at a time and in their order; endpoints do not wait for each other. What waits is
/// in memory, and gone with the process.
#[derive(Clone)]
pub struct Webhooks {
    post: Arc<PostOffice>,
    queues: Arc<[mpsc::Sender<Message>]>,
    _open: Arc<DropGuard>,
}

struct PostOffice {
    /// The tenant that an endpoint is for where nothing is said.
    own: String,
    endpoints: Vec<WebhookEndpoint>,
    letters: Arc<dyn DeadLetters>,
    courier: Courier,
    /// How many dead letters are kept of a tenant.
    most: usize,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("endpoints", &self.post.endpoints.len()).finish_non_exhaustive()
    }
}

impl Webhooks {
    /// Sends events from now on: those of this registry, and those of other tenants' where an endpoint is for them. What
    /// nobody takes goes to `letters`. Called in a runtime of tokio.
    ///
    /// # Errors
    /// When the system's TLS cannot be set up.
    pub fn start(
        registry: &Registry,
        endpoints: Vec<WebhookEndpoint>,
        letters: Arc<dyn DeadLetters>,
        settings: WebhookSettings,
    ) -> Result<Self, reqwest::Error> {
        // Within what a channel can hold.
        let queue = settings.queue.clamp(1, 1 << 20);
        let post = Arc::new(PostOffice::new(registry, endpoints, letters, settings)?);
        let open = CancellationToken::new();
        let queues = (0..post.endpoints.len()).map(|at| {
            let (sender, receiver) = mpsc::channel(queue);
            let (post, closed) = (Arc::clone(&post), open.clone());
            tokio::spawn(async move { closed.run_until_cancelled(post.deliver(at, receiver)).await });
            sender
        });
        let queues: Arc<[mpsc::Sender<Message>]> = queues.collect();
        let (sorting, sorted, closed) = (Arc::clone(&post), Arc::clone(&queues), open.clone());
        let events = registry.subscribe_all();
        tokio::spawn(async move { closed.run_until_cancelled(sorting.sort(events, &sorted)).await });
        Ok(Self { post, queues, _open: Arc::new(open.drop_guard()) })
    }

    /// The tenant's messages that nobody has taken, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn dead_letters(&self, tenant: &str) -> Result<Vec<DeadLetter>, StoreError> {
        self.post.letters.list(tenant).await
    }

    /// Sends a dead letter of the tenant again, as patiently as the first time and with its id. False where there is none of
    /// that id, its endpoint is not one of these any more, or too many messages wait already; then it stays.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn redeliver(&self, tenant: &str, id: &str) -> Result<bool, StoreError> {
        let letters = self.post.letters.list(tenant).await?;
        let Some(letter) = letters.into_iter().find(|letter| letter.id == id) else { return Ok(false) };
        let endpoints = self.post.endpoints.iter().zip(self.queues.iter());
        let mut fitting = endpoints.filter(|(endpoint, _)| {
            endpoint.fingerprint() == letter.endpoint && endpoint.concerns(&letter.event, &self.post.own)
        });
        let Some((_, queue)) = fitting.next() else { return Ok(false) };
        let Ok(place) = queue.try_reserve() else { return Ok(false) };
        // Somebody else may have been faster.
        let Some(letter) = self.post.letters.take(tenant, id).await? else { return Ok(false) };
        place.send(Message { id: letter.id, event: letter.event });
        Ok(true)
    }
}

/// Sends one event to the endpoints that it is for, and waits until each has taken it or has become a dead letter; those are
/// returned. For a process that makes a change and ends.
///
/// # Errors
/// When the system's TLS cannot be set up.
pub async fn deliver_now(
    registry: &Registry,
    endpoints: Vec<WebhookEndpoint>,
    letters: Arc<dyn DeadLetters>,
    settings: WebhookSettings,
    event: &RegistryEvent,
) -> Result<Vec<DeadLetter>, reqwest::Error> {
    let post = Arc::new(PostOffice::new(registry, endpoints, letters, settings)?);
    let mut sending = JoinSet::new();
    for (at, _) in post.concerned(event) {
        let (post, message) = (Arc::clone(&post), Message::new(event));
        sending.spawn(async move { post.send(at, message).await });
    }
    Ok(sending.join_all().await.into_iter().flatten().collect())
}

impl PostOffice {
    fn new(
        registry: &Registry,
        endpoints: Vec<WebhookEndpoint>,
        letters: Arc<dyn DeadLetters>,
        settings: WebhookSettings,
    ) -> Result<Self, reqwest::Error> {
        let (own, most) = (registry.tenant().to_owned(), settings.dead_letters);
        let courier = Courier::new(settings, Arc::clone(registry.clock()))?;
        Ok(Self { own, endpoints, letters, courier, most })
    }

    /// The endpoints that an event is for.
    fn concerned(&self, event: &RegistryEvent) -> impl Iterator<Item = (usize, &WebhookEndpoint)> {
        self.endpoints.iter().enumerate().filter(|(_, endpoint)| endpoint.concerns(event, &self.own))
    }

    /// Gives every endpoint its copy of each event.
    async fn sort(&self, mut events: broadcast::Receiver<RegistryEvent>, queues: &[mpsc::Sender<Message>]) {
        loop {
            let event = match events.recv().await {
                // Whoever made the change sends it.
                Ok(event) if event.elsewhere => continue,
                Ok(event) => event,
                Err(RecvError::Lagged(missed)) => {
                    tracing::error!(missed, "webhook_events_missed");
                    continue;
                }
                Err(RecvError::Closed) => return,
            };
            for (at, endpoint) in self.concerned(&event) {
                let Some(queue) = queues.get(at) else { continue };
                if let Err(full) = queue.try_send(Message::new(&event)) {
                    let cause = "too many messages wait for this endpoint".to_owned();
                    self.bury(endpoint, full.into_inner(), 0, cause).await;
                }
            }
        }
    }

    async fn deliver(&self, at: usize, mut queue: mpsc::Receiver<Message>) {
        while let Some(message) = queue.recv().await {
            self.send(at, message).await;
        }
    }

    /// Sends a message until it is taken or a dead letter, which is returned.
    async fn send(&self, at: usize, message: Message) -> Option<DeadLetter> {
        let endpoint = self.endpoints.get(at)?;
        let (attempts, cause) = self.courier.deliver(endpoint, &message).await.err()?;
        Some(self.bury(endpoint, message, attempts, cause).await)
    }

    async fn bury(
        &self,
        endpoint: &WebhookEndpoint,
        message: Message,
        attempts: u32,
        cause: String,
    ) -> DeadLetter {
        let (Message { id, event }, url, ts) = (message, endpoint.shown(), self.courier.now());
        tracing::error!(
            id,
            url,
            tenant = event.tenant,
            tool = event.tool,
            attempts,
            cause,
            "webhook_not_delivered"
        );
        let letter = DeadLetter { id, url, event, attempts, cause, ts, endpoint: endpoint.fingerprint() };
        if let Err(cause) = self.letters.push(letter.clone(), self.most).await {
            tracing::error!(id = letter.id, cause, "webhook_dead_letter_lost");
        }
        letter
    }
}
