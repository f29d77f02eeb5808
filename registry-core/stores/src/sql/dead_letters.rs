//! Dead letters.

use super::{Row, SqlStore, Statement};
use async_trait::async_trait;
use registry_core::store::{DeadLetter, DeadLetters, StoreError, StoreResult};

fn read(mut row: Row) -> StoreResult<DeadLetter> {
    let (endpoint, document) = (row.text()?.to_string(), row.text()?);
    let letter: DeadLetter = serde_json::from_str(&document).map_err(StoreError::corrupt)?;
    Ok(DeadLetter { endpoint, ..letter })
}

#[async_trait]
impl DeadLetters for SqlStore {
    async fn push(&self, letter: DeadLetter, most: usize) -> StoreResult<()> {
        let document = serde_json::to_string(&letter).map_err(StoreError::invalid)?;
        let tenant = letter.event.tenant.as_str();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let keep = Statement::new(
            "INSERT INTO dead_letters (tenant, id, endpoint, document) VALUES ($1, $2, $3, $4)",
            vec![tenant.into(), letter.id.into(), letter.endpoint.into(), document.into()],
        );
        let drop = Statement::new(
            "DELETE FROM dead_letters WHERE tenant = $1 AND position NOT IN \
                 (SELECT position FROM dead_letters WHERE tenant = $1 ORDER BY position DESC LIMIT $2)",
            vec![tenant.into(), most.into()],
        );
        self.write_statements(vec![keep, drop]).await.map(std::mem::drop)
    }

    async fn list(&self, tenant: &str) -> StoreResult<Vec<DeadLetter>> {
        let sql = "SELECT endpoint, document FROM dead_letters WHERE tenant = $1 ORDER BY position";
        self.read(Statement::new(sql, vec![tenant.into()]), read).await
    }

    async fn take(&self, tenant: &str, id: &str) -> StoreResult<Option<DeadLetter>> {
        let sql = "DELETE FROM dead_letters WHERE tenant = $1 AND id = $2 RETURNING endpoint, document";
        let take = Statement::new(sql, vec![tenant.into(), id.into()]);
        let row = self.run(take).await?.pop();
        row.map(read).transpose().map_err(|error| self.named(error))
    }
}
