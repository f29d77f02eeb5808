//! What is kept of modules.

use super::{SqlStore, Statement};
use async_trait::async_trait;
use registry_core::store::{Kept, ManifestStore, StoreResult};

#[async_trait]
impl ManifestStore for SqlStore {
    async fn kept(&self, module: &str, what: Kept) -> StoreResult<Option<String>> {
        let sql = "SELECT document FROM modules WHERE name = $1 AND what = $2";
        let find = Statement::new(sql, vec![module.into(), what.as_str().into()]);
        Ok(self.read(find, |mut row| Ok(row.text()?.to_string())).await?.pop())
    }

    async fn keep(&self, module: &str, what: Kept, text: &str) -> StoreResult<()> {
        let sql = "INSERT INTO modules (name, what, document) VALUES ($1, $2, $3) \
                   ON CONFLICT (name, what) DO UPDATE SET document = excluded.document";
        let put = Statement::new(sql, vec![module.into(), what.as_str().into(), text.into()]);
        self.run(put).await.map(drop)
    }
}
