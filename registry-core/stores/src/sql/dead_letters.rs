//! Dead letters.

use super::{Row, SqlStore, Statement};
use registry_core::store::{DeadLetter, DeadLetters, StoreError, StoreFuture};

fn read(mut row: Row) -> Result<DeadLetter, StoreError> {
    let (endpoint, document) = (row.text()?.to_string(), row.text()?);
    let letter: DeadLetter = serde_json::from_str(&document).map_err(StoreError::corrupt)?;
    Ok(DeadLetter { endpoint, ..letter })
}

impl DeadLetters for SqlStore {
    fn push(&self, letter: DeadLetter, most: usize) -> StoreFuture<'_, ()> {
        Box::pin(async move {
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
        })
    }

    fn list<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<DeadLetter>> {
        let sql = "SELECT endpoint, document FROM dead_letters WHERE tenant = $1 ORDER BY position";
        Box::pin(self.read(Statement::new(sql, vec![tenant.into()]), read))
    }

    fn take<'a>(&'a self, tenant: &'a str, id: &'a str) -> StoreFuture<'a, Option<DeadLetter>> {
        let sql = "DELETE FROM dead_letters WHERE tenant = $1 AND id = $2 RETURNING endpoint, document";
        let take = Statement::new(sql, vec![tenant.into(), id.into()]);
        Box::pin(async move {
            let row = self.run(take).await?.pop();
            row.map(read).transpose().map_err(|error| self.named(error))
        })
    }
}
