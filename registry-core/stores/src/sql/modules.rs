//! What is kept of modules.

use super::{SqlStore, statement};
use async_trait::async_trait;
use registry_core::store::{Kept, ManifestStore, StoreResult};

#[async_trait]
impl ManifestStore for SqlStore {
    async fn kept(&self, module: &str, what: Kept) -> StoreResult<Option<String>> {
        let sql = "SELECT document FROM modules WHERE name = $1 AND what = $2";
        self.read_one(statement!(sql, module, what.as_str()), |mut row| row.string()).await
    }

    async fn keep(&self, module: &str, what: Kept, text: &str) -> StoreResult<()> {
        let sql = "INSERT INTO modules (name, what, document) VALUES ($1, $2, $3) \
                   ON CONFLICT (name, what) DO UPDATE SET document = excluded.document";
        self.run(statement!(sql, module, what.as_str(), text)).await.map(drop)
    }
}
