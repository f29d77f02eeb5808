//! A conversation store with its limits and a clock.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use jiff::{SignedDuration, Timestamp};

use super::{
    ConversationError, ConversationLimits, ConversationStore, Shelf, StoredResponse, StoredTranscript,
    TranscriptLimits,
};
use crate::{
    clock::{Clock, SystemClock},
    store::StoreError,
};

/// The conversations of a server: a store, and how much is kept in it for how long. Clones are the same conversations.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use registry_core::store::{
///     ConversationError, ConversationLimits, Conversations, MemoryStore, StoredResponse,
/// };
///
/// let conversations = Conversations::new(Arc::new(MemoryStore::default()), ConversationLimits::default());
/// let response = |id: &str, previous: Option<&str>, messages: &str| StoredResponse {
///     id: id.into(),
///     tenant: "default".into(),
///     user: "ada".into(),
///     previous: previous.map(Into::into),
///     model: "qwen3".into(),
///     messages: messages.into(),
///     given: "{}".into(),
///     created_at: jiff::Timestamp::now(),
/// };
/// conversations.keep(response("resp_1", None, r#"["Hi","Hello"]"#)).await?;
/// conversations.keep(response("resp_2", Some("resp_1"), r#"["Bye","Bye"]"#)).await?;
///
/// let chain = conversations.chain("default", "ada", "resp_2").await?;
/// assert_eq!(chain, [r#"["Hi","Hello"]"#.into(), r#"["Bye","Bye"]"#.into()]);
/// let of_bob = conversations.chain("default", "bob", "resp_2").await;
/// assert_eq!(of_bob, Err(ConversationError::Unknown));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("Conversations({limits:?})")]
pub struct Conversations {
    store: Arc<dyn ConversationStore>,
    limits: ConversationLimits,
    clock: Arc<dyn Clock>,
    /// The bytes of transcripts that were kept since all of them were counted.
    uncounted: Arc<AtomicU64>,
    /// The same of files.
    uncounted_files: Arc<AtomicU64>,
}

impl Conversations {
    /// The conversations in a store, within these limits.
    pub fn new(store: Arc<dyn ConversationStore>, limits: ConversationLimits) -> Self {
        Self {
            store,
            limits,
            clock: Arc::new(SystemClock),
            uncounted: Arc::default(),
            uncounted_files: Arc::default(),
        }
    }

    /// The same with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// How much is kept.
    pub fn limits(&self) -> &ConversationLimits {
        &self.limits
    }

    /// Whether conversations are kept at all.
    pub fn are_kept(&self) -> bool {
        !self.limits.retention.is_zero()
    }

    /// Keeps a response. Where no conversations are kept: nothing to do.
    ///
    /// # Errors
    /// When the response it continues is not there, or there is no room for it: then it can be used, but not continued.
    pub async fn keep(&self, response: StoredResponse) -> Result<(), ConversationError> {
        if !self.are_kept() {
            return Ok(());
        }
        let (bytes, max) = (response.size(), self.limits.max_response_bytes);
        if bytes > max {
            return Err(ConversationError::TooLarge { bytes, max });
        }
        self.store.keep_response(response, self.clock.now(), &self.limits).await
    }

    /// The messages of the responses from the first of the conversation to the one of that id, in this order.
    ///
    /// # Errors
    /// When it or one before it is not there, or they are too long to be continued.
    pub async fn chain(
        &self,
        tenant: &str,
        user: &str,
        id: &str,
    ) -> Result<Vec<Arc<str>>, ConversationError> {
        if !self.are_kept() {
            return Err(ConversationError::Disabled);
        }
        let since = self.limits.since(self.clock.now());
        self.store.response_chain(tenant, user, id, since, &self.limits).await
    }

    /// How much may be read of a conversation at once.
    ///
    /// # Errors
    /// [`TooLong`](ConversationError::TooLong) for more.
    pub fn check_read(&self, responses: usize, bytes: u64) -> Result<(), ConversationError> {
        self.limits.check_chain(responses, bytes)
    }

    /// The response of that id.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn response(
        &self,
        tenant: &str,
        user: &str,
        id: &str,
    ) -> Result<StoredResponse, ConversationError> {
        let since = self.limits.since(self.clock.now());
        self.store.response(tenant, user, id, since).await?.ok_or(ConversationError::Unknown)
    }

    /// Deletes the response of that id. Those that continue it cannot be continued any more.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn delete(&self, tenant: &str, user: &str, id: &str) -> Result<(), ConversationError> {
        match self.store.delete_response(tenant, user, id).await? {
            true => Ok(()),
            false => Err(ConversationError::Unknown),
        }
    }

    /// Deletes what has expired, of all tenants; everything, where no conversations are kept. Expired conversations are not found in any case:
    /// this is for the room that they take.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn delete_expired(&self) -> Result<(), StoreError> {
        self.store.delete_expired(self.limits.since(self.clock.now())).await?;
        self.sweep(Shelf::Transcripts).await?;
        self.sweep(Shelf::Files).await
    }

    /// Keeps a file of a result, as text that a store does not look into, as long as conversations are kept; found by its key until newer
    /// ones take its room. Where no conversations are kept, or where it is too large: nothing to do.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn keep_file(
        &self,
        (tenant, user): (&str, &str),
        key: &str,
        file: Arc<str>,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let (tenant, user, key) = (tenant.to_owned(), user.to_owned(), key.to_owned());
        let file =
            StoredTranscript { tenant, user, other_key: key.clone(), key, messages: file, used_at: now };
        match self.are_kept() && file.size() <= TranscriptLimits::FILES.max_bytes {
            true => self.put(Shelf::Files, file).await,
            false => Ok(()),
        }
    }

    /// The file of a user that is kept under this key.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn file(
        &self,
        (tenant, user): (&str, &str),
        key: &str,
    ) -> Result<Option<Arc<str>>, StoreError> {
        if !self.are_kept() {
            return Ok(None);
        }
        let (keys, since) = ([key.to_owned()], self.limits.since(self.clock.now()));
        let limits = &TranscriptLimits::FILES;
        let found = self.store.transcripts(Shelf::Files, tenant, user, &keys, since, limits).await?;
        Ok(found.into_iter().next().map(|file| file.messages))
    }

    /// Whether transcripts are kept.
    pub fn keeps_transcripts(&self) -> bool {
        self.are_kept() && self.limits.transcripts.are_kept
    }

    /// Keeps a transcript, found by the key, or by the other one if there is one, in place of what was kept under either. One that is too
    /// large is not kept.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn keep_transcript(
        &self,
        (tenant, user): (&str, &str),
        (key, other_key): (String, Option<String>),
        messages: Arc<str>,
    ) -> Result<(), StoreError> {
        if !self.keeps_transcripts() {
            return Ok(());
        }
        let transcript = StoredTranscript {
            tenant: tenant.to_owned(),
            user: user.to_owned(),
            other_key: other_key.unwrap_or_else(|| key.clone()),
            key,
            messages,
            used_at: self.clock.now(),
        };
        let (size, limits) = (transcript.size(), &self.limits.transcripts);
        if size > limits.max_bytes.min(limits.max_user_bytes) {
            tracing::debug!(bytes = size, "transcript_too_large");
            return self.delete_transcripts((tenant, user), &[transcript.key, transcript.other_key]).await;
        }
        self.put(Shelf::Transcripts, transcript).await
    }

    /// The transcripts that are kept under these keys, in any order; none, where none are kept.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn transcripts(
        &self,
        (tenant, user): (&str, &str),
        keys: &[String],
    ) -> Result<Vec<StoredTranscript>, StoreError> {
        /// A conversation that goes on every minute is noted to be in use once a day.
        const NOTED: SignedDuration = SignedDuration::from_hours(24);
        if !self.keeps_transcripts() || keys.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let limits = &self.limits.transcripts;
        let found = self
            .store
            .transcripts(Shelf::Transcripts, tenant, user, keys, self.limits.since(now), limits)
            .await?;
        let is_noted = |transcript: &StoredTranscript| now.duration_since(transcript.used_at) < NOTED;
        if !found.iter().all(is_noted) {
            self.store.use_transcripts(tenant, user, keys, now).await?;
        }
        Ok(found)
    }

    /// Deletes the transcripts that are kept under these keys. Where there are none, nothing is written.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn delete_transcripts(
        &self,
        (tenant, user): (&str, &str),
        keys: &[String],
    ) -> Result<(), StoreError> {
        let limits = &self.limits.transcripts;
        let kept =
            self.store.transcripts(Shelf::Transcripts, tenant, user, keys, Timestamp::MIN, limits).await?;
        match kept.is_empty() {
            true => Ok(()),
            false => self.store.delete_transcripts(tenant, user, keys).await,
        }
    }

    /// The counter and the limits of a shelf.
    fn shelf(&self, shelf: Shelf) -> (&AtomicU64, &TranscriptLimits) {
        match shelf {
            Shelf::Transcripts => (&self.uncounted, &self.limits.transcripts),
            Shelf::Files => (&self.uncounted_files, &TranscriptLimits::FILES),
        }
    }

    async fn put(&self, shelf: Shelf, kept: StoredTranscript) -> Result<(), StoreError> {
        let (size, since) = (kept.size(), self.limits.since(kept.used_at));
        let (uncounted, limits) = self.shelf(shelf);
        self.store.keep_transcript(shelf, kept, since, limits).await?;
        let uncounted = uncounted.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        match uncounted > limits.max_total_bytes / 16 {
            true => self.sweep(shelf).await,
            false => Ok(()),
        }
    }

    async fn sweep(&self, shelf: Shelf) -> Result<(), StoreError> {
        let (uncounted, limits) = self.shelf(shelf);
        uncounted.store(0, Ordering::Relaxed);
        let now = self.clock.now();
        let is_off = shelf == Shelf::Transcripts && !self.keeps_transcripts();
        let since = if is_off { now } else { self.limits.since(now) };
        self.store.sweep_transcripts(shelf, since, limits.max_total_bytes).await
    }
}
