//! Notifies other programs of changes in a registry: each event as one signed `POST`.
//!
//! The wire format is that of [Standard Webhooks](https://www.standardwebhooks.com), so that any of its libraries checks
//! what comes from here. The body is `{"type": "tool.disabled", "timestamp": "…", "data": {…}}`, with the event as
//! [`RegistryEvent`] writes it; the headers are
//!
//! | header | what it is |
//! |---|---|
//! | `webhook-id` | names the message; the same each time it is sent, so that duplicates are recognised |
//! | `webhook-timestamp` | when it was sent, in seconds since 1970; old ones are to be refused |
//! | `webhook-signature` | `v1,` and in base64 the HMAC-SHA256 of `ID.TIMESTAMP.BODY` |
//!
//! Taken is what is answered with a status of 2xx. Redirects are not followed.

mod delivery;
mod endpoint;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use registry_core::{
    Registry, RegistryEvent,
    store::{DeadLetter, DeadLetters, StoreError},
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        mpsc,
    },
    task::{JoinHandle, JoinSet},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use delivery::{Message, Worker};
pub use endpoint::WebhookEndpoint;

/// How many dead letters wait for the store.
const UNSTORED: usize = 4096;
const STOPPED: &str = "the server stopped before it was delivered";

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

/// An endpoint, for people to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Webhook")]
pub struct EndpointReport {
    /// Its URL, without what may be secret in it.
    pub url: String,
    /// Whether it is sent the events of all tenants.
    pub all_tenants: bool,
    /// How many messages wait to be sent to it.
    pub waiting: usize,
}

/// Sends the events of the registries of all tenants that are made in this process: to each endpoint those that it is for. It
/// ends when it is [closed](Self::close), or when the last clone is dropped.
///
/// For each endpoint messages are sent one at a time and in their order; endpoints do not wait for each other. What waits is
/// in memory; what is still undelivered at the end becomes a dead letter.
#[derive(Clone, derive_more::Debug)]
#[debug("Webhooks({} endpoints)", dispatcher.endpoints.len())]
pub struct Webhooks {
    dispatcher: Arc<Dispatcher>,
    queues: Arc<[mpsc::Sender<Message>]>,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
    stop: CancellationToken,
    _open: Arc<DropGuard>,
}

/// Knows which event goes where, and what becomes of those that are not delivered.
struct Dispatcher {
    /// The tenant that an endpoint is for by default.
    own: String,
    endpoints: Vec<WebhookEndpoint>,
    dead_letters: Arc<dyn DeadLetters>,
    worker: Worker,
    /// How many dead letters are kept of a tenant.
    most: usize,
}

impl Webhooks {
    /// Sends events from now on: those of this registry, and those of other tenants' where an endpoint is for them. What
    /// cannot be delivered goes to `dead_letters`. Called in a runtime of tokio.
    ///
    /// # Errors
    /// When the system's TLS cannot be set up.
    pub fn start(
        registry: &Registry,
        endpoints: Vec<WebhookEndpoint>,
        dead_letters: Arc<dyn DeadLetters>,
        settings: WebhookSettings,
    ) -> Result<Self, reqwest::Error> {
        // Within what a channel can hold.
        let queue = settings.queue.clamp(1, 1 << 20);
        let dispatcher = Arc::new(Dispatcher::new(registry, endpoints, dead_letters, settings)?);
        let (stop, mut tasks) = (CancellationToken::new(), Vec::new());
        let queues = (0..dispatcher.endpoints.len()).map(|at| {
            let (sender, receiver) = mpsc::channel(queue);
            tasks.push(tokio::spawn(Arc::clone(&dispatcher).deliver(at, receiver, stop.clone())));
            sender
        });
        let queues: Arc<[mpsc::Sender<Message>]> = queues.collect();
        let (overflow, unstored) = mpsc::channel(UNSTORED);
        tasks.push(tokio::spawn(Arc::clone(&dispatcher).store(unstored)));
        let events = registry.subscribe_all();
        let dispatching =
            Arc::clone(&dispatcher).dispatch(events, Arc::clone(&queues), overflow, stop.clone());
        tasks.push(tokio::spawn(dispatching));
        let (tasks, open) = (Arc::new(Mutex::new(tasks)), Arc::new(stop.clone().drop_guard()));
        Ok(Self { dispatcher, queues, tasks, stop, _open: open })
    }

    /// Ends it, and waits until all that is undelivered is a dead letter.
    pub async fn close(self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        self.stop.cancel();
        for task in tasks {
            // A panic has been reported already.
            let _ = task.await;
        }
    }

    /// The endpoints that a tenant's events go to, in their order, without what may be secret.
    pub fn endpoints(&self, tenant: &str) -> Vec<EndpointReport> {
        let own = &self.dispatcher.own;
        let endpoints = self.dispatcher.endpoints.iter().zip(self.queues.iter());
        let concerned = endpoints.filter(|(endpoint, _)| endpoint.is_for(tenant, own));
        let report = |(endpoint, queue): (&WebhookEndpoint, &mpsc::Sender<Message>)| EndpointReport {
            url: endpoint.shown(),
            all_tenants: endpoint.is_for_all(),
            waiting: queue.max_capacity().saturating_sub(queue.capacity()),
        };
        concerned.map(report).collect()
    }

    /// The tenant's messages that could not be delivered, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn dead_letters(&self, tenant: &str) -> Result<Vec<DeadLetter>, StoreError> {
        self.dispatcher.dead_letters.list(tenant).await
    }

    /// So many of the tenant's messages that could not be delivered, oldest first, from behind a place on, each with its place. 0 is
    /// before all.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn dead_letters_after(
        &self,
        tenant: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<(i64, DeadLetter)>, StoreError> {
        self.dispatcher.dead_letters.page(tenant, after, most).await
    }

    /// Sends a dead letter of the tenant again, as patiently as the first time and with its id. False where there is none of
    /// that id, its endpoint is not one of these any more, or too many messages wait already; then it stays.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn redeliver(&self, tenant: &str, id: &str) -> Result<bool, StoreError> {
        let letters = self.dispatcher.dead_letters.list(tenant).await?;
        let Some(letter) = letters.into_iter().find(|letter| letter.id == id) else { return Ok(false) };
        let endpoints = self.dispatcher.endpoints.iter().zip(self.queues.iter());
        let mut fitting = endpoints.filter(|(endpoint, _)| {
            endpoint.fingerprint() == letter.endpoint
                && endpoint.concerns(&letter.event, &self.dispatcher.own)
        });
        let Some((_, queue)) = fitting.next() else { return Ok(false) };
        let Ok(place) = queue.try_reserve() else { return Ok(false) };
        // Somebody else may have been faster.
        let Some(letter) = self.dispatcher.dead_letters.take(tenant, id).await? else { return Ok(false) };
        place.send(Message { id: letter.id, event: letter.event });
        Ok(true)
    }
}

/// Sends one event to the endpoints that it is for, and waits until it is delivered to each or has become a dead letter; those
/// are returned. For a process that makes a change and ends.
///
/// # Errors
/// When the system's TLS cannot be set up.
pub async fn deliver_now(
    registry: &Registry,
    endpoints: Vec<WebhookEndpoint>,
    dead_letters: Arc<dyn DeadLetters>,
    settings: WebhookSettings,
    event: &RegistryEvent,
) -> Result<Vec<DeadLetter>, reqwest::Error> {
    let dispatcher = Arc::new(Dispatcher::new(registry, endpoints, dead_letters, settings)?);
    let mut sending = JoinSet::new();
    for (at, _) in dispatcher.concerned(event) {
        let (dispatcher, message) = (Arc::clone(&dispatcher), Message::new(event));
        sending.spawn(async move { dispatcher.send(at, message).await });
    }
    Ok(sending.join_all().await.into_iter().flatten().collect())
}

impl Dispatcher {
    fn new(
        registry: &Registry,
        endpoints: Vec<WebhookEndpoint>,
        dead_letters: Arc<dyn DeadLetters>,
        settings: WebhookSettings,
    ) -> Result<Self, reqwest::Error> {
        let (own, most) = (registry.tenant().to_owned(), settings.dead_letters);
        let worker = Worker::new(settings, Arc::clone(registry.clock()))?;
        Ok(Self { own, endpoints, dead_letters, worker, most })
    }

    /// The endpoints that an event is for.
    fn concerned(&self, event: &RegistryEvent) -> impl Iterator<Item = (usize, &WebhookEndpoint)> {
        self.endpoints.iter().enumerate().filter(|(_, endpoint)| endpoint.concerns(event, &self.own))
    }

    /// Gives every endpoint its copy of each event. It waits for nobody, as events are not kept for those who are slow.
    async fn dispatch(
        self: Arc<Self>,
        mut events: broadcast::Receiver<RegistryEvent>,
        queues: Arc<[mpsc::Sender<Message>]>,
        overflow: mpsc::Sender<DeadLetter>,
        stop: CancellationToken,
    ) {
        let give_up = |endpoint: &WebhookEndpoint, message: Message, cause: &str| {
            let letter = self.dead_letter(endpoint, message, 0, cause.to_owned());
            if let Err(full) = overflow.try_send(letter) {
                let id = full.into_inner().id;
                tracing::error!(id, cause = "too many wait for the store", "webhook_dead_letter_lost");
            }
        };
        loop {
            let event = match stop.run_until_cancelled(events.recv()).await {
                // Whoever made the change sends it.
                Some(Ok(event)) if event.elsewhere => continue,
                Some(Ok(event)) => event,
                Some(Err(RecvError::Lagged(missed))) => {
                    tracing::error!(missed, "webhook_events_missed");
                    continue;
                }
                Some(Err(RecvError::Closed)) | None => break,
            };
            for (at, endpoint) in self.concerned(&event) {
                let Some(queue) = queues.get(at) else { continue };
                if let Err(full) = queue.try_send(Message::new(&event)) {
                    give_up(endpoint, full.into_inner(), "too many messages wait for this endpoint");
                }
            }
        }
        while let Ok(event) = events.try_recv() {
            if !event.elsewhere {
                self.concerned(&event)
                    .for_each(|(_, endpoint)| give_up(endpoint, Message::new(&event), STOPPED));
            }
        }
    }

    /// Delivers the messages for one endpoint, until this is to stop; what is undelivered then is a dead letter.
    async fn deliver(
        self: Arc<Self>,
        at: usize,
        mut queue: mpsc::Receiver<Message>,
        stop: CancellationToken,
    ) {
        let Some(endpoint) = self.endpoints.get(at) else { return };
        while let Some(Some(message)) = stop.run_until_cancelled(queue.recv()).await {
            let given_up = match stop.run_until_cancelled(self.worker.deliver(endpoint, &message)).await {
                Some(Ok(())) => continue,
                Some(Err(given_up)) => given_up,
                None => (0, STOPPED.to_owned()),
            };
            let (attempts, cause) = given_up;
            self.keep(self.dead_letter(endpoint, message, attempts, cause)).await;
        }
        queue.close();
        while let Some(message) = queue.recv().await {
            self.keep(self.dead_letter(endpoint, message, 0, STOPPED.to_owned())).await;
        }
    }

    /// Keeps the dead letters of messages that had no place in a queue.
    async fn store(self: Arc<Self>, mut unstored: mpsc::Receiver<DeadLetter>) {
        while let Some(letter) = unstored.recv().await {
            self.keep(letter).await;
        }
    }

    /// Sends a message until it is delivered or a dead letter, which is returned.
    async fn send(&self, at: usize, message: Message) -> Option<DeadLetter> {
        let endpoint = self.endpoints.get(at)?;
        let (attempts, cause) = self.worker.deliver(endpoint, &message).await.err()?;
        let letter = self.dead_letter(endpoint, message, attempts, cause);
        self.keep(letter.clone()).await;
        Some(letter)
    }

    fn dead_letter(
        &self,
        endpoint: &WebhookEndpoint,
        message: Message,
        attempts: u32,
        cause: String,
    ) -> DeadLetter {
        let (Message { id, event }, url, ts) = (message, endpoint.shown(), self.worker.now());
        let (tenant, tool) = (&*event.tenant, &*event.tool);
        tracing::error!(id, url, tenant, tool, attempts, cause, "webhook_not_delivered");
        DeadLetter { id, url, event, attempts, cause, ts, endpoint: endpoint.fingerprint() }
    }

    async fn keep(&self, letter: DeadLetter) {
        let id = letter.id.clone();
        if let Err(cause) = self.dead_letters.push(letter, self.most).await {
            tracing::error!(id, %cause, "webhook_dead_letter_lost");
        }
    }
}
