//! Counted calls.

use super::{Answer, SqlStore, Work, unanswered};
use async_trait::async_trait;
use registry_core::{
    guard::limits::{Charge, Limited, Usage},
    store::StoreResult,
};

#[async_trait]
impl Usage for SqlStore {
    async fn charge(&self, charge: &Charge) -> StoreResult<Option<Limited>> {
        match self.write(Work::Charge(charge.clone())).await? {
            Answer::Charged(limited) => Ok(limited),
            other => Err(self.named(unanswered(&other))),
        }
    }

    async fn refund(&self, charge: &Charge) -> StoreResult<()> {
        self.write(Work::Refund(charge.clone())).await.map(drop)
    }
}
