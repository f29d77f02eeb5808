//! Dead letters: webhook messages that could not be delivered.

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

    /// The tenant's letters, oldest first.
    async fn list(&self, tenant: &str) -> StoreResult<Vec<DeadLetter>>;

    /// Removes and returns the tenant's letter with this id; of several who ask at once only one gets it. `None` where there
    /// is none.
    async fn take(&self, tenant: &str, id: &str) -> StoreResult<Option<DeadLetter>>;
}

/// Keeps dead letters in memory, until the process ends.
#[derive(Debug, Default)]
pub struct MemoryDeadLetters {
    letters: Mutex<Vec<DeadLetter>>,
}

impl MemoryDeadLetters {}

#[async_trait]
impl DeadLetters for MemoryDeadLetters {
    async fn push(&self, letter: DeadLetter, most: usize) -> StoreResult<()> {
        let mut letters = self.letters.lock();
        let tenant = letter.event.tenant.clone();
        letters.push(letter);
        let mut over =
            letters.iter().filter(|letter| letter.event.tenant == tenant).count().saturating_sub(most);
        letters.retain(|letter| {
            let drop = over > 0 && letter.event.tenant == tenant;
            over -= usize::from(drop);
            !drop
        });
        Ok(())
    }

    async fn list(&self, tenant: &str) -> StoreResult<Vec<DeadLetter>> {
        let letters = self.letters.lock();
        let of_tenant = letters.iter().filter(|letter| letter.event.tenant == tenant).cloned().collect();
        Ok(of_tenant)
    }

    async fn take(&self, tenant: &str, id: &str) -> StoreResult<Option<DeadLetter>> {
        let mut letters = self.letters.lock();
        let at = letters.iter().position(|letter| letter.event.tenant == tenant && letter.id == id);
        let letter = at.map(|at| letters.remove(at));
        Ok(letter)
    }
}
