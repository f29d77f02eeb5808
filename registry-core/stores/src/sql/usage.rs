//! Counted calls.

use super::{Answer, SqlStore, Work, unanswered};
use registry_core::{
    guard::limits::{Charge, Limited, Usage},
    store::StoreFuture,
};

impl Usage for SqlStore {
    fn charge<'a>(&'a self, charge: &'a Charge) -> StoreFuture<'a, Option<Limited>> {
        Box::pin(async move {
            match self.write(Work::Charge(charge.clone())).await? {
                Answer::Charged(limited) => Ok(limited),
                other => Err(self.named(unanswered(&other))),
            }
        })
    }

    fn refund<'a>(&'a self, charge: &'a Charge) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.write(Work::Refund(charge.clone())).await.map(drop) })
    }
}
