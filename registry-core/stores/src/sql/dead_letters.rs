//! Dead letters.

use super::{Row, SqlStore, statement};
use async_trait::async_trait;
use registry_core::store::{DeadLetter, DeadLetters, StoreError, StoreResult};

fn read(mut row: Row) -> StoreResult<DeadLetter> {
    let (endpoint, document) = (row.string()?, row.text()?);
    let letter: DeadLetter = serde_json::from_str(&document).map_err(StoreError::corrupt)?;
    Ok(DeadLetter { endpoint, ..letter })
}

#[async_trait]
impl DeadLetters for SqlStore {
    async fn push(&self, letter: DeadLetter, most: usize) -> StoreResult<()> {
        let document = serde_json::to_string(&letter).map_err(StoreError::invalid)?;
        let tenant = letter.event.tenant.as_str();
        let keep = "INSERT INTO dead_letters (tenant, id, endpoint, document) VALUES ($1, $2, $3, $4)";
        let keep = statement!(keep, tenant, letter.id, letter.endpoint, document);
        let trim = "DELETE FROM dead_letters WHERE tenant = $1 AND position NOT IN \
                    (SELECT position FROM dead_letters WHERE tenant = $1 ORDER BY position DESC LIMIT $2)";
        self.write_all(vec![keep, statement!(trim, tenant, most)]).await.map(drop)
    }

    async fn page(&self, tenant: &str, after: i64, most: usize) -> StoreResult<Vec<(i64, DeadLetter)>> {
        let sql = "SELECT position, endpoint, document FROM dead_letters WHERE tenant = $1 AND position > $2 \
                   ORDER BY position LIMIT $3";
        self.read(statement!(sql, tenant, after, most), |mut row| Ok((row.int()?, read(row)?))).await
    }

    async fn take(&self, tenant: &str, id: &str) -> StoreResult<Option<DeadLetter>> {
        let sql = "DELETE FROM dead_letters WHERE tenant = $1 AND id = $2 RETURNING endpoint, document";
        let row = self.run(statement!(sql, tenant, id)).await?.pop();
        row.map(read).transpose().map_err(|error| self.named(error))
    }
}
