//! What a verification has found of a chain of records, for who says it in another language.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// What was found of a chain.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ChainFindings {
    /// How many records are whole.
    pub records: u64,
    /// The hash of the last of them.
    pub sha256: String,
    /// Of how many of them what is personal was erased.
    pub erased: u64,
    /// The last of the records that were removed because they had become too old, and when.
    pub removed: Option<NotedRecord>,
    /// The last record that was signed, as far as it is known, and when.
    pub signed: Option<NotedRecord>,
    /// What is wrong; null where the chain is whole.
    pub fault: Option<ChainFault>,
}

/// A record that was noted elsewhere.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NotedRecord {
    /// Its number in the chain.
    pub seq: u64,
    /// When it was noted.
    pub at: Timestamp,
}

/// What is wrong with a chain.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ChainFault {
    /// The record is not there.
    Missing {
        /// Its number.
        seq: u64,
    },
    /// The record does not follow the one before it.
    WrongLink {
        /// Its number.
        seq: u64,
    },
    /// The record is not what was written.
    Changed {
        /// Its number.
        seq: u64,
    },
    /// The record has another hash than the one that was signed.
    Rewritten {
        /// Its number.
        seq: u64,
    },
    /// The end of the chain is missing.
    CutOff {
        /// The number of the last record that was signed.
        seq: u64,
    },
    /// Records were removed without a proof that can be read.
    NoProof {
        /// Why not.
        cause: String,
    },
    /// The proof of the removed records is for others.
    ForeignProof,
}
