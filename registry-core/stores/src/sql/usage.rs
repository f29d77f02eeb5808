//! Counted calls.

use super::{Answer, SqlStore, Work};
use registry_core::{
    BoxFuture,
    guard::limits::{Charge, Limited, Usage},
};

impl Usage for SqlStore {
    fn charge<'a>(&'a self, charge: &'a Charge) -> BoxFuture<'a, Result<Option<Limited>, String>> {
        Box::pin(async move {
            match self.write(Work::Charge(charge.clone())).await? {
                Answer::Charged(limited) => Ok(limited),
                other => Err(format!("the writer answered a charge with {other:?}")),
            }
        })
    }

    fn refund<'a>(&'a self, charge: &'a Charge) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.write(Work::Refund(charge.clone())).await.map(drop) })
    }
}
