//! Goes along a chain of the audit, and compares each record with its hash and with what it is found by.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use registry_core::{
    guard::audit::{
        Phase,
        chain::{Fault, Head, Walk},
        erasure::{self, CheckErasure, RecordPlace},
        log::{ChainReport, Start},
    },
    store::StoreResult,
};
use serde::Deserialize;

use super::{
    Row, SqlStore, Value,
    audit::{columns, happened},
    statement,
};

/// How many records of a chain are read at a time.
const PAGE: i64 = 1000;
/// Records of a chain in their order, with the columns that they are found by.
const AS_WALKED: &str = "SELECT seq, position, previous, sha256, record, ts, user_id, tool, call_id, happened FROM audit \
                         WHERE tenant = $1 AND server = $2 AND seq > $3 AND seq <= $4 ORDER BY seq LIMIT $5";

impl SqlStore {
    /// The last record up to this one of which something is known by its hash, where all records before it are what was written: who removes them
    /// vouches for them, and the columns that say how old they are can be changed by whoever writes to the database. What was erased says
    /// nothing of itself here, but is no younger than what comes after it.
    pub(super) async fn whole_up_to(
        &self,
        tenant: &str,
        server: &Arc<str>,
        up_to: &Head,
    ) -> StoreResult<Option<Head>> {
        let start = self.start_of(tenant, server).await?;
        let mut walk = walk_from(start.as_ref(), tenant, server);
        let (mut after, mut known) = (i64::MIN, None);
        loop {
            let page = statement!(AS_WALKED, tenant, server.clone(), after, up_to.seq, PAGE);
            let rows = self.read(page, Walked::read).await?;
            if rows.is_empty() {
                return Ok(known);
            }
            for row in rows {
                after = row.seq;
                match row.followed(&walk, server, &|_, _| true) {
                    Ok((next, is_erased)) => {
                        known = if is_erased { known } else { Some(next.head().clone()) };
                        walk = next;
                    }
                    Err((seq, _)) => {
                        tracing::error!(
                            tenant,
                            %server,
                            seq,
                            "audit_was_rewritten, so no old records are removed: see `toolrack audit verify`"
                        );
                        return Ok(None);
                    }
                }
            }
        }
    }

    async fn start_of(&self, tenant: &str, server: &Arc<str>) -> StoreResult<Option<Start>> {
        let sql = "SELECT seq, sha256, proof FROM audit_starts WHERE tenant = $1 AND server = $2";
        let read = |mut row: Row| {
            let after = Head { seq: row.count()?, sha256: row.string()? };
            Ok(Start { after, proof: row.string()? })
        };
        self.read_one(statement!(sql, tenant, Arc::clone(server)), read).await
    }

    /// The whole chain, compared with the heads that were noted.
    pub(super) async fn walk(
        &self,
        tenant: &str,
        server: Arc<str>,
        noted: &BTreeMap<u64, String>,
        check: &CheckErasure<'_>,
    ) -> StoreResult<ChainReport> {
        let start = self.start_of(tenant, &server).await?;
        let mut walk = walk_from(start.as_ref(), tenant, &server);
        let before = walk.head().seq;
        // The hashes of the records that were removed are known no longer, but for the last.
        let rewritten = |head: &Head| noted.get(&head.seq).is_some_and(|sha256| *sha256 != head.sha256);
        if rewritten(walk.head()) {
            let fault = Some((before, Fault::Rewritten));
            return Ok(ChainReport {
                server: server.to_string(),
                records: 0,
                erased: 0,
                start,
                head: walk.head().clone(),
                fault,
            });
        }
        // Lower than any number that was ever given, so that one put before the first shows.
        let (mut after, mut erased, mut last) = (i64::MIN, 0, i64::MIN);
        loop {
            let page = statement!(AS_WALKED, tenant, server.clone(), after, i64::MAX, PAGE);
            let rows = self.read(page, Walked::read).await?;
            let (mut fault, last_page) = (None, rows.is_empty());
            for row in rows {
                (after, fault) = (row.seq, None);
                let position = row.position;
                match row.followed(&walk, &server, check) {
                    // Records are listed by their positions.
                    Ok((next, _)) if position <= last => fault = Some((next.head().seq, Fault::Changed)),
                    Ok((next, _)) if rewritten(next.head()) => {
                        fault = Some((next.head().seq, Fault::Rewritten));
                    }
                    Ok((next, is_erased)) => {
                        (walk, last) = (next, position);
                        erased += u64::from(is_erased);
                    }
                    Err(found) => fault = Some(found),
                }
                if fault.is_some() {
                    break;
                }
            }
            if fault.is_some() || last_page {
                let head = walk.head().clone();
                let records = head.seq - before;
                let beyond = noted.last_key_value().map(|(seq, _)| *seq).filter(|seq| *seq > head.seq);
                // The last record of a chain is never removed.
                let beyond = beyond.or_else(|| (start.is_some() && records == 0).then_some(before + 1));
                let fault = fault.or_else(|| Some((beyond?, Fault::CutOff)));
                return Ok(ChainReport { server: server.to_string(), records, erased, start, head, fault });
            }
        }
    }
}

/// Where a chain begins.
fn walk_from(start: Option<&Start>, tenant: &str, server: &str) -> Walk {
    start.map_or_else(|| Walk::new(tenant, server), |start| Walk::after(start.after.clone()))
}

/// A record to walk over.
struct Walked {
    seq: i64,
    position: i64,
    previous: Arc<str>,
    sha256: Arc<str>,
    record: Arc<str>,
    columns: Row,
}

impl Walked {
    fn read(mut row: Row) -> StoreResult<Self> {
        let (seq, position) = (row.int()?, row.int()?);
        let (previous, sha256, record) = (row.text()?, row.text()?, row.text()?);
        Ok(Self { seq, position, previous, sha256, record, columns: row })
    }

    /// The walk with this record behind it, and whether something was erased of that.
    fn followed(
        self,
        walk: &Walk,
        server: &str,
        check: &CheckErasure<'_>,
    ) -> Result<(Walk, bool), (u64, Fault)> {
        let Self { previous, sha256, record, columns, .. } = self;
        let seq = u64::try_from(self.seq).unwrap_or(0);
        let (mut next, mut is_erased) = (walk.clone(), false);
        let mut followed = next.step(seq, &previous, &sha256, &record);
        let place = RecordPlace { server, seq, sha256: &sha256 };
        if followed == Err((seq, Fault::Changed)) && erasure::is_proven(&record, place, check) {
            followed = next.step_over(seq, &previous, &sha256);
            is_erased = true;
        }
        followed?;
        if is_found_by(&record, columns) { Ok((next, is_erased)) } else { Err((seq, Fault::Changed)) }
    }
}

/// Whether what a record is found by is what it says.
fn is_found_by(record: &str, mut columns_kept: Row) -> bool {
    #[derive(Deserialize)]
    struct Says {
        ts: Timestamp,
        user: String,
        tool: String,
        call_id: String,
        phase: Phase,
        success: Option<bool>,
    }
    serde_json::from_str(record).is_ok_and(|says: Says| {
        let happened = happened(says.phase, says.success);
        columns(says.ts, says.user, says.tool, says.call_id, happened)
            .into_iter()
            .all(|column| columns_kept.text().is_ok_and(|kept| column == Value::Text(kept)))
    })
}
