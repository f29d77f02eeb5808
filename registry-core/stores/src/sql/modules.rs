//! What is kept of modules.

use super::{SqlStore, Statement};
use registry_core::store::{Kept, ManifestStore, StoreFuture};

impl ManifestStore for SqlStore {
    fn kept<'a>(&'a self, module: &'a str, what: Kept) -> StoreFuture<'a, Option<String>> {
        let sql = "SELECT document FROM modules WHERE name = $1 AND what = $2";
        let find = Statement::new(sql, vec![module.into(), what.as_str().into()]);
        Box::pin(async move { Ok(self.read(find, |mut row| Ok(row.text()?.to_string())).await?.pop()) })
    }

    fn keep<'a>(&'a self, module: &'a str, what: Kept, text: &'a str) -> StoreFuture<'a, ()> {
        let sql = "INSERT INTO modules (name, what, document) VALUES ($1, $2, $3) \
                   ON CONFLICT (name, what) DO UPDATE SET document = excluded.document";
        let put = Statement::new(sql, vec![module.into(), what.as_str().into(), text.into()]);
        Box::pin(async move { self.run(put).await.map(drop) })
    }
}
