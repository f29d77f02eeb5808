//! Dead letters: webhook messages that could not be delivered.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicI64, Ordering},
};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StoreResult;
use crate::events::RegistryEvent;

/// A webhook message that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    /// The message's id, as the header has it.
    pub id: String,
    /// Where it was to go, without user, password and query.
    pub url: String,
    /// What it says, and of which tenant.
    pub event: RegistryEvent,
    /// How often it was sent.
    pub attempts: u32,
    /// What went wrong the last time.
    pub cause: String,
    /// When delivery was given up (UTC).
    pub ts: Timestamp,
    /// The endpoint's whole URL as its SHA-256 in hex, by which it is found again. It is not in the JSON.
    #[serde(skip)]
    pub endpoint: String,
}

/// Keeps dead letters by tenant. Every method fails when the store does.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Keeps a letter. Of more than `most` of its tenant the oldest are dropped.
    async fn push(&self, letter: DeadLetter, most: usize) -> StoreResult<()>;

    /// So many of the tenant's letters, oldest first, from behind a place on, each with its place. 0 is before all.
    async fn page(&self, tenant: &str, after: i64, most: usize) -> StoreResult<Vec<(i64, DeadLetter)>>;

    /// All of the tenant's letters, oldest first.
    async fn list(&self, tenant: &str) -> StoreResult<Vec<DeadLetter>> {
        let letters = self.page(tenant, 0, usize::MAX).await?;
        Ok(letters.into_iter().map(|(_, letter)| letter).collect())
    }

    /// Removes and returns the tenant's letter with this id; of several who ask at once only one gets it. `None` where there
    /// is none.
    async fn take(&self, tenant: &str, id: &str) -> StoreResult<Option<DeadLetter>>;
}

/// Keeps dead letters in memory, until the process ends.
#[derive(Debug, Default)]
pub struct MemoryDeadLetters {
    letters: Mutex<BTreeMap<i64, DeadLetter>>,
    last: AtomicI64,
}

#[async_trait]
impl DeadLetters for MemoryDeadLetters {
    async fn push(&self, letter: DeadLetter, most: usize) -> StoreResult<()> {
        let mut letters = self.letters.lock();
        let tenant = letter.event.tenant.clone();
        letters.insert(self.last.fetch_add(1, Ordering::Relaxed) + 1, letter);
        let mut over =
            letters.values().filter(|letter| letter.event.tenant == tenant).count().saturating_sub(most);
        letters.retain(|_, letter| {
            let drop = over > 0 && letter.event.tenant == tenant;
            over -= usize::from(drop);
            !drop
        });
        Ok(())
    }

    async fn page(&self, tenant: &str, after: i64, most: usize) -> StoreResult<Vec<(i64, DeadLetter)>> {
        let letters = self.letters.lock();
        let behind = letters.range(after.saturating_add(1)..);
        let of_tenant = behind.filter(|(_, letter)| letter.event.tenant == tenant).take(most);
        Ok(of_tenant.map(|(place, letter)| (*place, letter.clone())).collect())
    }

    async fn take(&self, tenant: &str, id: &str) -> StoreResult<Option<DeadLetter>> {
        let mut letters = self.letters.lock();
        let mut places = letters.iter();
        let found = places.find(|(_, letter)| letter.event.tenant == tenant && letter.id == id);
        let place = found.map(|(place, _)| *place);
        Ok(place.and_then(|place| letters.remove(&place)))
    }
}
