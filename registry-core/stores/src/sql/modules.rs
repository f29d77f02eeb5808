//! What is kept of modules.

use super::{SqlStore, Statement};
use registry_core::{
    BoxFuture,
    store::{Kept, ManifestStore, StoreError},
};

impl ManifestStore for SqlStore {
    fn kept<'a>(&'a self, module: &'a str, what: Kept) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let sql = "SELECT document FROM modules WHERE name = $1 AND what = $2";
        let find = Statement::new(sql, vec![module.into(), what.as_str().into()]);
        Box::pin(async move { Ok(self.read(find, |mut row| Ok(row.text()?.to_string())).await?.pop()) })
    }

    fn keep<'a>(
        &'a self,
        module: &'a str,
        what: Kept,
        text: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let sql = "INSERT INTO modules (name, what, document) VALUES ($1, $2, $3) \
                   ON CONFLICT (name, what) DO UPDATE SET document = excluded.document";
        let put = Statement::new(sql, vec![module.into(), what.as_str().into(), text.into()]);
        Box::pin(async move { self.write_statements(vec![put]).await.map(drop) })
    }
}
