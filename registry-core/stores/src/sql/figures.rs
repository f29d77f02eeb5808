//! How calls went, counted in the audit.

use jiff::Timestamp;

use super::{Row, SqlStore, Value, statement};
use registry_core::{
    guard::audit::log::{AuditEventKind, CallFigures, ToolFigures},
    store::StoreResult,
};

/// How many of the last records are looked at: the audit has no end.
const MAX_COUNTED: i64 = 100_000;
/// Of how many tools the figures are: a model may call what there is not.
const MAX_TOOLS: i64 = 1000;
/// Later than any record.
const NEVER: &str = "9999";

impl SqlStore {
    pub(super) async fn call_figures(
        &self,
        tenant: &str,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> StoreResult<CallFigures> {
        let member = |name| self.shared.database.member("record", name);
        // The one in the middle has as many before it as behind it.
        let sql = format!(
            "WITH looked_at AS (SELECT tool, happened, ts, {error} AS error, CAST({duration} AS BIGINT) AS ms FROM audit \
                                WHERE tenant = $1 ORDER BY position DESC LIMIT {MAX_COUNTED}), \
                  ended AS (SELECT tool, happened, ms, row_number() OVER (PARTITION BY tool ORDER BY ms NULLS LAST) AS place, \
                                   count(ms) OVER (PARTITION BY tool) AS timed FROM looked_at \
                            WHERE happened <> $2 AND ts >= $3 AND ts < $4 AND coalesce(error, '') NOT LIKE '%\\_pending' ESCAPE '\\') \
             SELECT tool, count(*) AS calls, sum(CASE WHEN happened = $5 THEN 1 ELSE 0 END), \
                    coalesce(max(CASE WHEN place = timed / 2 + 1 THEN ms END), -1) FROM ended \
             GROUP BY tool ORDER BY calls DESC, tool LIMIT {MAX_TOOLS}",
            error = member("error"),
            duration = member("duration_ms"),
        );
        let [intent, failure] = [AuditEventKind::Intent, AuditEventKind::Failure].map(AuditEventKind::as_str);
        let until = until.map_or_else(|| NEVER.into(), Value::from);
        let figures = |mut row: Row| {
            let (tool, calls, failed) = (row.string()?, row.count()?, row.count()?);
            Ok(ToolFigures { tool, calls, failed, median_ms: u64::try_from(row.int()?).ok() })
        };
        let tools = self.search(statement!(sql, tenant, intent, since, until, failure), figures).await?;
        let first = format!(
            "SELECT ts FROM audit WHERE tenant = $1 ORDER BY position DESC LIMIT 1 OFFSET {}",
            MAX_COUNTED - 1
        );
        let counted_since = self.read_one(statement!(first, tenant), |mut row| row.time()).await?;
        Ok(CallFigures { tools, counted_since })
    }
}
