//! The audit and its chains.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::{Row, SqlStore, Statement, Value, Work, batch::Entry, statement};
use registry_core::{
    guard::audit::{
        AuditRecord, AuditSink, Phase,
        chain::Head,
        erasure::CheckErasure,
        log::{
            AuditEventKind, AuditFilter, AuditLog, CallFigures, ChainReport, ChainedRecord, LeftChain,
            NotedHeads,
        },
    },
    store::{StoreError, StoreResult},
};

/// How many records are read at a time in search of those that say something no column does.
const PAGE_LENGTH: usize = 1000;
/// How many records are removed at once at most, so that nobody who writes meanwhile waits long for it.
const REMOVED_AT_ONCE: i64 = 5000;

#[async_trait]
impl AuditSink for SqlStore {
    async fn record(&self, record: AuditRecord) -> StoreResult<()> {
        let json = serde_json::to_string(&record).map_err(StoreError::invalid)?;
        let happened = happened(record.phase, record.success);
        let entry = Entry {
            columns: columns(record.ts, record.user, record.tool, record.call_id, happened),
            chain: (record.tenant.into(), Arc::clone(&self.shared.server)),
            record: json.into(),
        };
        self.write(Work::Record(entry)).await.map(drop)
    }
}

pub(super) fn happened(phase: Phase, success: Option<bool>) -> AuditEventKind {
    match (phase, success) {
        (Phase::Intent, _) => AuditEventKind::Intent,
        (Phase::Outcome, Some(true)) => AuditEventKind::Success,
        (Phase::Outcome, _) => AuditEventKind::Failure,
    }
}

/// What a record is found by, beside its JSON.
pub(super) fn columns(
    ts: Timestamp,
    user: String,
    tool: String,
    call_id: String,
    happened: AuditEventKind,
) -> [Value; 5] {
    [ts.into(), findable(user), findable(tool), findable(call_id), happened.as_str().into()]
}

/// PostgreSQL has no place for a NUL in a text. A model can name a tool so, and the record of that call must not be lost over it:
/// in the JSON it is escaped.
fn findable(text: String) -> Value {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

#[async_trait]
impl AuditLog for SqlStore {
    async fn list(&self, filter: &AuditFilter) -> StoreResult<Vec<ChainedRecord>> {
        if filter.origin.is_none() && filter.verdict.is_none() {
            return self.page(filter).await;
        }
        // What no column says is read in the records themselves, a page at a time until there are enough.
        let mut page = AuditFilter { limit: PAGE_LENGTH, ..filter.clone() };
        let mut wanted = Vec::new();
        loop {
            let records = self.page(&page).await?;
            let is_last = records.len() < PAGE_LENGTH;
            page.beyond.get_or_insert_default().advance(&records);
            wanted
                .extend(records.into_iter().filter(|record| filter.wants_origin_and_verdict(&record.record)));
            if is_last || wanted.len() >= filter.limit {
                wanted.truncate(filter.limit);
                return Ok(wanted);
            }
        }
    }

    async fn figures(
        &self,
        tenant: &str,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> StoreResult<CallFigures> {
        self.call_figures(tenant, since, until).await
    }

    async fn verify_with_erasures(
        &self,
        tenant: &str,
        noted: &NotedHeads,
        check: &CheckErasure,
    ) -> StoreResult<Vec<ChainReport>> {
        let mut servers: BTreeSet<Arc<str>> = self.servers(tenant).await?.into_iter().collect();
        servers.extend(noted.keys().map(|server| Arc::from(server.as_str())));
        let (mut reports, none) = (Vec::new(), BTreeMap::new());
        for server in servers {
            let noted = noted.get(&*server).unwrap_or(&none);
            reports.push(self.walk(tenant, server, noted, check).await?);
        }
        Ok(reports)
    }

    async fn tenants(&self) -> StoreResult<Vec<String>> {
        // From one tenant to the next by the index: the table may be long.
        let tenants = "WITH RECURSIVE known (tenant) AS (SELECT min(tenant) FROM audit UNION ALL \
                       SELECT (SELECT min(tenant) FROM audit WHERE audit.tenant > known.tenant) FROM known \
                       WHERE known.tenant IS NOT NULL) SELECT tenant FROM known WHERE tenant IS NOT NULL";
        self.read(statement!(tenants), |mut row| row.string()).await
    }

    async fn heads(&self) -> StoreResult<BTreeMap<String, Head>> {
        let head =
            "SELECT seq, sha256 FROM audit WHERE tenant = $1 AND server = $2 ORDER BY seq DESC LIMIT 1";
        let mut heads = BTreeMap::new();
        for tenant in self.tenants().await? {
            let find = statement!(head, tenant.as_str(), self.shared.server.clone());
            heads.extend(self.read_one(find, read_head).await?.map(|head| (tenant, head)));
        }
        Ok(heads)
    }

    async fn hash(&self, tenant: &str, seq: u64) -> StoreResult<Option<String>> {
        let sql = "SELECT sha256 FROM audit WHERE tenant = $1 AND server = $2 AND seq = $3 \
                   UNION ALL SELECT sha256 FROM audit_starts WHERE tenant = $1 AND server = $2 AND seq = $3";
        let find = statement!(sql, tenant, self.shared.server.clone(), seq);
        self.read_one(find, |mut row| row.string()).await
    }

    async fn last_before(&self, tenant: &str, time: Timestamp) -> StoreResult<Option<Head>> {
        self.last_of(tenant, &self.shared.server, time).await
    }

    async fn remove(&self, tenant: &str, up_to: &Head, proof: &str) -> StoreResult<()> {
        self.remove_of(tenant, &self.shared.server, up_to, proof).await
    }

    async fn left_since(&self, time: Timestamp) -> StoreResult<Vec<LeftChain>> {
        let last = "SELECT ts FROM audit WHERE tenant = $1 AND server = $2 ORDER BY seq DESC LIMIT 1";
        let mut left = Vec::new();
        for tenant in self.tenants().await? {
            for server in self.servers(&tenant).await? {
                let find = statement!(last, tenant.as_str(), server.clone());
                let written = self.read_one(find, |mut row| row.time()).await?;
                if server == self.shared.server || written.is_none_or(|written| written >= time) {
                    continue;
                }
                let up_to = self.last_of(&tenant, &server, time).await?;
                let chain = |up_to| LeftChain { tenant: tenant.clone(), server: server.to_string(), up_to };
                left.extend(up_to.map(chain));
            }
        }
        Ok(left)
    }

    async fn remove_left(&self, chain: &LeftChain, proof: &str) -> StoreResult<()> {
        self.remove_of(&chain.tenant, &chain.server.as_str().into(), &chain.up_to, proof).await
    }
}

fn read_head(mut row: Row) -> StoreResult<Head> {
    Ok(Head { seq: row.count()?, sha256: row.string()? })
}

impl SqlStore {
    /// The last record of a chain that may be removed at once.
    async fn last_of(&self, tenant: &str, server: &Arc<str>, time: Timestamp) -> StoreResult<Option<Head>> {
        // Whatever the clock has done meanwhile, nothing behind a record that has to stay is removed.
        let first = "SELECT seq, ts FROM audit WHERE tenant = $1 AND server = $2 ORDER BY seq LIMIT 1";
        let up_to = "SELECT seq, sha256 FROM audit WHERE tenant = $1 AND server = $2 AND seq < $4 \
                     AND seq < (SELECT max(seq) FROM audit WHERE tenant = $1 AND server = $2) \
                     AND seq < coalesce((SELECT min(seq) FROM audit WHERE tenant = $1 AND server = $2 AND seq < $4 AND ts >= $3), $4) \
                     ORDER BY seq DESC LIMIT 1";
        let first = statement!(first, tenant, server.clone());
        let oldest = self.read_one(first, |mut row| Ok((row.int()?, row.time()?))).await?;
        let Some((oldest, _)) = oldest.filter(|(_, written)| *written < time) else {
            return Ok(None);
        };
        let find = statement!(up_to, tenant, server.clone(), time, oldest + REMOVED_AT_ONCE);
        match self.read_one(find, read_head).await? {
            Some(up_to) => self.whole_up_to(tenant, server, &up_to).await,
            None => Ok(None),
        }
    }

    async fn remove_of(&self, tenant: &str, server: &Arc<str>, up_to: &Head, proof: &str) -> StoreResult<()> {
        let start = "INSERT INTO audit_starts (tenant, server, seq, sha256, proof) VALUES ($1, $2, $3, $4, $5) \
                     ON CONFLICT (tenant, server) DO UPDATE SET seq = excluded.seq, sha256 = excluded.sha256, proof = excluded.proof";
        let remove = "DELETE FROM audit WHERE tenant = $1 AND server = $2 AND seq <= $3";
        let start = statement!(start, tenant, server.clone(), up_to.seq, up_to.sha256.as_str(), proof);
        let remove = statement!(remove, tenant, server.clone(), up_to.seq);
        self.write_all(vec![start, remove]).await.map(drop)
    }

    async fn page(&self, filter: &AuditFilter) -> StoreResult<Vec<ChainedRecord>> {
        let Some(cursor) = filter.beyond.as_ref().filter(|_| !filter.newest_first) else {
            return self.read(select(filter, None), chained).await;
        };
        let mut records = Vec::new();
        for server in self.servers(&filter.tenant).await? {
            let after = cursor.chains.get(&*server).map_or(0, |seq| seq.cast_signed());
            records.extend(self.read(select(filter, Some((server, after))), chained).await?);
        }
        records.sort_by_key(|record| record.position);
        records.truncate(filter.limit);
        Ok(records)
    }

    /// The servers that have written of a tenant, by name. Each is one look into the index, however long its chain.
    async fn servers(&self, tenant: &str) -> StoreResult<Vec<Arc<str>>> {
        let sql = "WITH RECURSIVE servers (server) AS (
                       SELECT min(server) FROM audit WHERE tenant = $1
                       UNION ALL
                       SELECT (SELECT min(audit.server) FROM audit WHERE tenant = $1 AND audit.server > servers.server)
                       FROM servers WHERE servers.server IS NOT NULL
                   ) SELECT server FROM servers WHERE server IS NOT NULL
                   UNION SELECT server FROM audit_starts WHERE tenant = $1 ORDER BY server";
        self.read(statement!(sql, tenant), |mut row| row.text()).await
    }
}

fn chained(mut row: Row) -> StoreResult<ChainedRecord> {
    Ok(ChainedRecord {
        position: row.int()?,
        server: row.string()?,
        seq: row.count()?,
        previous: row.string()?,
        sha256: row.string()?,
        record: RawValue::from_string(row.string()?)
            .map_err(|error| StoreError::corrupt(format!("a record of the audit is no JSON: {error}")))?,
    })
}

/// The records that are wanted: of the chain of a server, those after a number, or of all chains.
fn select(filter: &AuditFilter, chain: Option<(Arc<str>, i64)>) -> Statement {
    let mut sql =
        "SELECT position, server, seq, previous, sha256, record FROM audit WHERE tenant = $1".to_owned();
    let mut values = vec![filter.tenant.as_str().into()];
    let text = |text: &Option<String>| text.clone().map(findable);
    let order = match (&chain, filter.newest_first) {
        (Some(_), _) => "seq",
        (None, true) => "position DESC",
        (None, false) => "position",
    };
    let (server, after) = chain.unzip();
    let before = filter.beyond.as_ref().filter(|_| filter.newest_first).map(|cursor| cursor.position);
    let conditions = [
        ("user_id =", text(&filter.user)),
        ("tool =", text(&filter.tool)),
        ("call_id =", text(&filter.call_id)),
        ("ts >=", filter.since.map(Value::from)),
        ("ts <", filter.until.map(Value::from)),
        ("happened =", filter.happened.map(|happened| happened.as_str().into())),
        ("position <", before.map(Value::from)),
        ("server =", server.map(Value::from)),
        ("seq >", after.map(Value::from)),
    ];
    for (condition, value) in conditions {
        if let Some(value) = value {
            values.push(value);
            sql += &format!(" AND {condition} ${}", values.len());
        }
    }
    values.push(filter.limit.into());
    sql += &format!(" ORDER BY {order} LIMIT ${}", values.len());
    Statement::new(sql, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteSettings;

    #[tokio::test]
    async fn k25_no_page_of_the_audit_is_sorted_and_a_call_is_looked_up() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteSettings::new(folder.path().join("toolrack.db")).open().await.unwrap();
        let all = AuditFilter { tenant: "default".into(), limit: 50, ..AuditFilter::default() };
        let of_a_user = AuditFilter { user: Some("ada".into()), newest_first: true, ..all.clone() };
        let of_a_call = AuditFilter { call_id: Some("call-1".into()), newest_first: true, ..all.clone() };
        for (filter, index) in
            [(all, "audit_by_tenant"), (of_a_user, "audit_by_tenant"), (of_a_call, "audit_by_call")]
        {
            let Statement { sql, values } = select(&filter, None);
            let explain = Statement::new(format!("EXPLAIN QUERY PLAN {sql}"), values);
            let step = |mut row: Row| {
                for _ in 0..3 {
                    row.int()?;
                }
                row.text()
            };
            let plan = store.read(explain, step).await.unwrap().concat();
            assert!(plan.contains(index), "{plan}");
            assert!(index == "audit_by_call" || !plan.contains("ORDER BY"), "{plan}");
        }
    }
}
