//! The record of every call: its intent before the tool runs, its outcome after.

pub mod chain;
pub mod erasure;
pub mod log;
mod share;

use std::collections::VecDeque;

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::gate::Decision;
use crate::{
    ask::Asked,
    context::Origin,
    flow::HasRead,
    model::ModelUsage,
    policy::Permission,
    result::ErrorKind,
    store::{StoreError, StoreResult},
};
pub use share::AUDIT_MEBIBYTES_OF_USER;
pub(crate) use share::{AuditShares, CountedAudit};

/// Which of a call's two entries this is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Written before the tool runs.
    #[default]
    Intent,
    /// Written after, and for a call that was refused.
    Outcome,
}

/// One entry about one attempt at a call. Entries of one call share `call_id`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AuditRecord {
    /// Intent or outcome.
    pub phase: Phase,
    /// The tool's name, as called.
    pub tool: String,
    /// The tool's version, where it has one.
    pub version: Option<String>,
    /// The call's id.
    pub call_id: String,
    /// The id of the call around it, where a tool makes the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<String>,
    /// 1 for the first try.
    pub attempt: u8,
    /// Whose registry it was.
    pub tenant: String,
    /// Who called.
    pub user: String,
    /// Who made the call for the user, where that is somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// What the caller was known by: `key` with the key's id, `token` or `session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// At what level.
    pub level: Permission,
    /// Through which entry point.
    pub origin: Origin,
    /// SHA-256 of the arguments in hex: as they were run, or as they were given for a call that was refused.
    pub arguments_sha256: String,
    /// The arguments, where the host keeps them; what is secret is left out of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The hash of what was asked for, where a person has changed the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_for_sha256: Option<String>,
    /// What was asked for then, where the host keeps arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_for: Option<Value>,
    /// What the call's turn had read before it, where that matters.
    #[serde(skip_serializing_if = "HasRead::is_empty")]
    pub has_read: HasRead,
    /// What a gate or a person decided, where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What the tool has asked the person in this try.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Asked>,
    /// What this try has used of the model, where its tool has asked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_usage: Option<ModelUsage>,
    /// Whether the tool did what it was asked; `None` for an intent.
    pub success: Option<bool>,
    /// Why it did not.
    pub error: Option<ErrorKind>,
    /// What happened, for the operator.
    pub error_message: Option<String>,
    /// What was changed.
    pub side_effects: Vec<String>,
    /// The tool's own notes.
    pub audit: Map<String, Value>,
    /// How long it ran, in milliseconds; `None` for an intent.
    pub duration_ms: Option<u64>,
    /// When (UTC).
    pub ts: Timestamp,
}

/// Keeps the records. What it acknowledges it has kept.
#[async_trait]
pub trait AuditSink: Send + Sync {
    /// Whether records are kept at all; where not, none is made.
    fn is_enabled(&self) -> bool {
        true
    }

    /// Keeps a record. After a failed intent the call is not made; after a failed outcome its result is withheld.
    async fn record(&self, record: AuditRecord) -> StoreResult<()>;
}

/// Hash of arguments that is the same for the same arguments, in whatever order their members come.
pub fn hash_arguments(arguments: &Value) -> String {
    let mut json = Vec::with_capacity(128);
    write_sorted(arguments, &mut json);
    format!("{:x}", Sha256::digest(json))
}

/// The same of an object's members.
pub(crate) fn hash_members(arguments: &Map<String, Value>) -> String {
    let mut json = Vec::with_capacity(128);
    write_members(arguments, &mut json);
    format!("{:x}", Sha256::digest(json))
}

/// Writes the value as JSON, with the keys of every object in order.
fn write_sorted(value: &Value, json: &mut Vec<u8>) {
    match value {
        Value::Object(members) => write_members(members, json),
        Value::Array(items) => {
            json.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    json.push(b',');
                }
                write_sorted(item, json);
            }
            json.push(b']');
        }
        other => write_json(other, json),
    }
}

fn write_members(members: &Map<String, Value>, json: &mut Vec<u8>) {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    json.push(b'{');
    for (place, (key, value)) in members.into_iter().enumerate() {
        if place > 0 {
            json.push(b',');
        }
        write_json(key, json);
        json.push(b':');
        write_sorted(value, json);
    }
    json.push(b'}');
}

fn write_json(value: &(impl Serialize + ?Sized), json: &mut Vec<u8>) {
    // Neither writing to memory nor a text or number can fail.
    let _ = serde_json::to_writer(json, value);
}

/// Writes the records to the log, target `toolrack::audit`, as JSON. Where the log's filter drops them, calls are refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogAudit;

#[async_trait]
impl AuditSink for LogAudit {
    async fn record(&self, record: AuditRecord) -> StoreResult<()> {
        write_to_log(&record)
    }
}

/// The same for a host that has not said where records go: as far as its log takes them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogAsItIs;

#[async_trait]
impl AuditSink for LogAsItIs {
    fn is_enabled(&self) -> bool {
        log_takes_records()
    }

    async fn record(&self, record: AuditRecord) -> StoreResult<()> {
        write_to_log(&record)
    }
}

fn log_takes_records() -> bool {
    tracing::enabled!(target: "toolrack::audit", tracing::Level::INFO)
}

fn write_to_log(record: &AuditRecord) -> StoreResult<()> {
    if !log_takes_records() {
        let cause = "the log is the audit, and its filter drops `toolrack::audit` at level `info`";
        return Err(StoreError::unavailable(cause));
    }
    let json = serde_json::to_string(record).map_err(StoreError::invalid)?;
    tracing::info!(target: "toolrack::audit", "{json}");
    Ok(())
}

/// Keeps the newest records in memory.
#[derive(Debug)]
pub struct MemoryAudit {
    capacity: usize,
    records: Mutex<VecDeque<AuditRecord>>,
}

impl MemoryAudit {
    /// Keeps up to `capacity` records.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, records: Mutex::default() }
    }

    /// The records, oldest first.
    pub fn records(&self) -> Vec<AuditRecord> {
        self.records.lock().iter().cloned().collect()
    }
}

#[async_trait]
impl AuditSink for MemoryAudit {
    async fn record(&self, record: AuditRecord) -> StoreResult<()> {
        let mut records = self.records.lock();
        if records.len() == self.capacity {
            records.pop_front();
        }
        if self.capacity > 0 {
            records.push_back(record);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_change_the_hash() {
        let one = hash_arguments(&json!({"a": 1, "b": {"c": 2, "d": 3}}));
        assert_eq!(one, hash_arguments(&json!({"b": {"d": 3, "c": 2}, "a": 1})));
        assert_ne!(one, hash_arguments(&json!({"a": 1, "b": {"c": 2, "d": 4}})));
        let text = r#"{"a":1,"b":{"c":2,"d":3}}"#;
        assert_eq!(one, format!("{:x}", Sha256::digest(text)));
        assert_eq!(
            hash_arguments(&json!({"a": [], "b": {}})),
            format!("{:x}", Sha256::digest(r#"{"a":[],"b":{}}"#))
        );
    }
}
