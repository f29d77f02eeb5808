//! What the calls of MCP clients have read. A session is one turn; without one, a call stands for itself, but for what its client says.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use registry_core::flow::{HasRead, Reads, TurnFlow};
use rmcp::model::MetaObject;
use serde_json::{Map, Value};
use toolrack_remote::mcp::READS;

use super::Visitor;

/// How long a session is remembered that makes no calls.
const TIME_TO_IDLE: Duration = Duration::from_secs(3600);
/// How many sessions are remembered.
const MAX_SESSIONS: u64 = 10_000;
/// What a client says it has read comes from here.
const CLIENT: &str = "the client";

/// What sessions have read, by tenant, user and id. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SessionsRead(Cache<(String, String, Arc<str>), Arc<HasRead>>);

impl Default for SessionsRead {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MAX_SESSIONS).time_to_idle(TIME_TO_IDLE).build())
    }
}

impl SessionsRead {
    /// What was read before a call of this visitor, whose request has such `_meta`.
    pub(super) fn before(&self, visitor: &Visitor, meta: &Map<String, Value>) -> TurnFlow {
        let known = key(visitor).and_then(|key| self.0.get(&key));
        let mut read = known.map(|read| HasRead::clone(&read)).unwrap_or_default();
        if let Some(said) = meta.get(READS) {
            // What is not understood says that something was read.
            let said = said.as_str().and_then(|said| said.parse().ok());
            read.note(said.unwrap_or(Reads::BOTH), CLIENT);
        }
        TurnFlow::after(read)
    }

    /// Takes note of what a call has read.
    pub(super) fn note(&self, visitor: &Visitor, reads: Reads, tool: &str) {
        let Some(key) = key(visitor).filter(|_| !reads.is_nothing()) else { return };
        self.0.entry(key).and_upsert_with(|known| {
            let mut read = known.map(|known| HasRead::clone(known.value())).unwrap_or_default();
            read.note(reads, tool);
            Arc::new(read)
        });
    }
}

fn key(visitor: &Visitor) -> Option<(String, String, Arc<str>)> {
    let session = Arc::clone(visitor.session.as_ref()?);
    Some((visitor.registry.tenant().to_owned(), visitor.context.caller().user.clone(), session))
}

/// Says in the `_meta` of a result what it holds.
pub(super) fn tell(reads: Reads, meta: &mut Option<MetaObject>) {
    if !reads.is_nothing() {
        let meta = meta.get_or_insert_with(|| MetaObject(Map::new()));
        meta.0.insert(READS.to_owned(), reads.to_string().into());
    }
}
