//! Reads the audit: lists, exports and verifies what an [`AuditSink`](super::AuditSink) has kept.

use std::{collections::BTreeMap, ops::ControlFlow};

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use strum::{EnumString, IntoStaticStr, VariantNames};

use super::{
    chain::{Fault, Head},
    erasure::CheckErasure,
};
use crate::{
    context::Origin,
    guard::gate::Verdict,
    store::{StoreError, StoreResult},
};

/// How many records are read at a time where all are wanted.
const PAGE: usize = 1000;

/// What a record says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum AuditEventKind {
    /// The call was about to be made.
    Intent,
    /// The tool did what it was asked.
    Success,
    /// It did not, or the call was refused.
    Failure,
}

impl AuditEventKind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How the calls came that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OriginFilter {
    /// Out of the model's text, in whichever dialect.
    Text,
    /// Exactly so.
    Is(Origin),
}

/// Which records are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this tenant.
    pub tenant: String,
    /// Of this user.
    pub user: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
    /// Of this call.
    pub call_id: Option<String>,
    /// Of calls that came so.
    pub origin: Option<OriginFilter>,
    /// Of calls about which a gate or a person decided so.
    pub verdict: Option<Verdict>,
    /// Written at this time or later.
    pub since: Option<Timestamp>,
    /// Written before this time.
    pub until: Option<Timestamp>,
    /// Only those that say this.
    pub happened: Option<AuditEventKind>,
    /// Whether the newest come first.
    pub newest_first: bool,
    /// Only those after the ones that were read before, in the same order.
    pub beyond: Option<AuditCursor>,
    /// How many at most.
    pub limit: usize,
}

/// How far the records of a list were read.
///
/// A record has its position before it is committed, so one of another server can come to light behind records with a higher
/// position. Within a chain no record comes before another is committed. Oldest first, the cursor is therefore the last record of each
/// chain, and no record is left out; newest first it is the lowest position, as what comes later is newer than the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditCursor {
    /// The position of the last record.
    pub position: i64,
    /// The number of the last record of each server's chain.
    pub chains: BTreeMap<String, u64>,
}

impl AuditCursor {
    /// Goes on after these records, which are the next of the list.
    pub fn advance(&mut self, page: &[ChainedRecord]) {
        for record in page {
            self.position = record.position;
            match self.chains.get_mut(&record.server) {
                Some(seq) => *seq = record.seq,
                None => drop(self.chains.insert(record.server.clone(), record.seq)),
            }
        }
    }
}

impl AuditFilter {
    /// All records of the tenant, oldest first.
    pub fn new(tenant: impl Into<String>) -> Self {
        Self { tenant: tenant.into(), limit: usize::MAX, ..Self::default() }
    }

    /// Whether origin and decision of a record are those that are wanted: a store that has no column for them asks here. The
    /// rest of the filter is not asked.
    pub fn wants_origin_and_verdict(&self, record: &RawValue) -> bool {
        #[derive(Deserialize)]
        struct Says {
            origin: Value,
            decision: Option<Decided>,
        }
        #[derive(Deserialize)]
        struct Decided {
            verdict: Value,
            gate: Option<Box<Self>>,
        }
        let Ok(says) = serde_json::from_str::<Says>(record.get()) else { return false };
        let came_so = match &self.origin {
            None => true,
            Some(OriginFilter::Text) => says.origin.get("text").is_some(),
            Some(OriginFilter::Is(origin)) => serde_json::to_value(origin).is_ok_and(|is| is == says.origin),
        };
        let decided_so = self.verdict.is_none_or(|verdict| {
            let gate = says.decision.as_ref().and_then(|decided| decided.gate.as_deref());
            let mut decided = says.decision.iter().chain(gate).map(|decided| &decided.verdict);
            serde_json::to_value(verdict).is_ok_and(|is| decided.any(|decided| *decided == is))
        });
        came_so && decided_so
    }
}

/// A record as it is kept. As JSON it is a line of an export.
#[derive(Debug, Clone, Serialize)]
pub struct ChainedRecord {
    /// Its place among all records of the store.
    #[serde(skip)]
    pub position: i64,
    /// The server that wrote it.
    pub server: String,
    /// Its number in its chain.
    pub seq: u64,
    /// The hash of the record before.
    pub previous: String,
    /// Its own hash; [`chain`](super::chain) says of what.
    pub sha256: String,
    /// The [`AuditRecord`](super::AuditRecord) as JSON, to the byte as it was hashed.
    pub record: Box<RawValue>,
}

/// What came of walking along a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// The server that writes it.
    pub server: String,
    /// How many records were found in order.
    pub records: u64,
    /// Of how many of them what is personal was erased.
    pub erased: u64,
    /// Where the chain begins, if records before were removed because they had become too old.
    pub start: Option<Start>,
    /// The last of them. Noted elsewhere, it shows later whether the end was cut off.
    pub head: Head,
    /// What is wrong behind it, at which number; `None` where the chain is whole.
    pub fault: Option<(u64, Fault)>,
}

/// Where a chain begins whose older records were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Start {
    /// The last of the records that were removed.
    pub after: Head,
    /// What was given to [`AuditLog::remove`] as the proof of it.
    pub proof: String,
}

/// A chain that nobody adds to any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftChain {
    /// The tenant.
    pub tenant: String,
    /// The server that has written it.
    pub server: String,
    /// The last record of it that may be removed.
    pub up_to: Head,
}

/// How the calls of tools went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFigures {
    /// The tools that were called most often.
    pub tools: Vec<ToolFigures>,
    /// The first record that was counted was written then, as only so many of the last are; `None` where all were.
    pub counted_since: Option<Timestamp>,
}

/// How the calls of a tool went. One that waits for a person counts when that has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFigures {
    /// Its name, or that of a change by an admin.
    pub tool: String,
    /// How often it was called.
    pub calls: u64,
    /// How many of the calls failed.
    pub failed: u64,
    /// The median of what they have taken, in milliseconds; `None` where no record says it.
    pub median_ms: Option<u64>,
}

/// Heads that were noted elsewhere: by the server's name and the record's number, the record's hash.
pub type NotedHeads = BTreeMap<String, BTreeMap<u64, String>>;

/// Reads what is kept of the audit. Every method fails when the store does.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// The records that are wanted.
    async fn list(&self, filter: &AuditFilter) -> StoreResult<Vec<ChainedRecord>>;

    /// How the calls of the tenant went that ended from one time on and before another.
    async fn figures(
        &self,
        tenant: &str,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> StoreResult<CallFigures>;

    /// Walks along every chain of the tenant, by the names of the servers, and compares it with the heads that were noted. A chain
    /// that is broken is a report and no error. A record of which something was erased counts as changed.
    async fn verify(&self, tenant: &str, noted: &NotedHeads) -> StoreResult<Vec<ChainReport>> {
        self.verify_with_erasures(tenant, noted, &|_, _| false).await
    }

    /// The same, where records of which something was erased may have a proof that `check` knows.
    async fn verify_with_erasures(
        &self,
        tenant: &str,
        noted: &NotedHeads,
        check: &CheckErasure,
    ) -> StoreResult<Vec<ChainReport>>;

    /// Of which tenants there are records, of any server.
    async fn tenants(&self) -> StoreResult<Vec<String>>;

    /// Where the chains of this server end, by their tenants.
    async fn heads(&self) -> StoreResult<BTreeMap<String, Head>>;

    /// The hash of a record of this server, or of the last one that was removed; `None` where there is no such record.
    async fn hash(&self, tenant: &str, seq: u64) -> StoreResult<Option<String>>;

    /// The last of this server's records that were all written before a time, of as many as may be removed at once; `None` where none
    /// was. The last record of a chain is never among them, so that the chain goes on.
    async fn last_before(&self, tenant: &str, time: Timestamp) -> StoreResult<Option<Head>>;

    /// Removes the records of this server up to one, and keeps a proof of who has done so.
    async fn remove(&self, tenant: &str, up_to: &Head, proof: &str) -> StoreResult<()>;

    /// The chains of other servers to which nothing was added since a time, as those of servers that are gone, with the last of the
    /// records that [`remove_left`](Self::remove_left) may remove at once. The last record of a chain is never among them.
    async fn left_since(&self, _time: Timestamp) -> StoreResult<Vec<LeftChain>> {
        Ok(Vec::new())
    }

    /// Removes the records of such a chain, as [`remove`](Self::remove) does of this server's own.
    async fn remove_left(&self, _chain: &LeftChain, _proof: &str) -> StoreResult<()> {
        Ok(())
    }

    /// Gives the records that are wanted to `write`, each as one line of JSON without its end, until it breaks off. Says how many it
    /// has taken.
    async fn export(
        &self,
        filter: &AuditFilter,
        write: &mut (dyn for<'line> FnMut(&'line str) -> ControlFlow<()> + Send),
    ) -> StoreResult<usize> {
        let mut page = filter.clone();
        let mut written = 0;
        loop {
            page.limit = PAGE.min(filter.limit - written);
            let records = self.list(&page).await?;
            for record in &records {
                if write(&serde_json::to_string(record).map_err(StoreError::corrupt)?).is_break() {
                    return Ok(written);
                }
                written += 1;
            }
            if records.len() < PAGE {
                return Ok(written);
            }
            page.beyond.get_or_insert_default().advance(&records);
        }
    }
}
