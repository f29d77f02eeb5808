//! What a call was charged, until it is spent.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Guards, Wanted,
    limits::{Charge, Limit, Limited, Usage},
};
use crate::{
    background::Background,
    result::{ErrorKind, ToolError},
    store::StoreError,
};

/// A call that was counted. Dropped before it has run, it is taken back.
pub(crate) struct Charged {
    usage: Arc<dyn Usage>,
    background: Background,
    charge: Option<Charge>,
    spent: bool,
}

impl Charged {
    /// The call runs: it stays counted where it is dropped.
    pub(super) fn spend(&mut self) {
        self.spent = true;
    }

    /// Takes the count back, and waits until that is done.
    pub(super) async fn refund(mut self) {
        if let Some(charge) = self.charge.take() {
            let (usage, background) = (Arc::clone(&self.usage), self.background.clone());
            let refunding = background.finish(Box::pin(async move {
                refund(usage, charge).await;
                Ok(())
            }));
            // What failed is logged.
            let _ = refunding.await;
        }
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        if let Some(charge) = self.charge.take().filter(|_| !self.spent) {
            self.background.run("refund", refund(Arc::clone(&self.usage), charge));
        }
    }
}

async fn refund(usage: Arc<dyn Usage>, charge: Charge) {
    if let Err(cause) = usage.refund(&charge).await {
        tracing::warn!(tool = &*charge.tool, %cause, "limit_not_refunded");
    }
}

impl Guards {
    /// Counts the call, where its tool has a limit.
    pub(super) async fn charge(&self, wanted: Wanted<'_>) -> Result<Option<Box<Charged>>, ToolError> {
        // One that goes on after its process has ended was counted before.
        if !super::limits::is_limited(wanted.tool) || wanted.admitted_before().is_some() {
            return Ok(None);
        }
        let charge = wanted.charge(wanted.clock.now());
        let (usage, background) = (Arc::clone(&self.usage), self.background.clone());
        // A caller who goes away while it is counted leaves a `Charged` that is dropped.
        let counting: Result<Result<Charged, Limited>, _> = self
            .background
            .finish(Box::pin(async move {
                let limited = usage.charge(&charge).await?;
                Ok(match limited {
                    None => Ok(Charged { usage, background, charge: Some(charge), spent: false }),
                    Some(limited) => Err(limited),
                })
            }))
            .await;
        match counting {
            Ok(Ok(charged)) => Ok(Some(Box::new(charged))),
            Ok(Err(limited)) => Err(rate_limited(wanted.tool.name(), limited)),
            Err(cause) => Err(not_counted(wanted.tool.name(), &cause)),
        }
    }
}

fn rate_limited(tool: &str, Limited { limit, free_at }: Limited) -> ToolError {
    let what = match limit {
        Limit::Daily(1) => "once a day".to_owned(),
        Limit::Daily(calls) => format!("{calls} times a day"),
        Limit::Cooldown(least) => format!("once in {} s", least.as_secs_f64()),
    };
    // Rounded up, so that whoever comes then is not too early.
    let second = free_at.as_second() + i64::from(free_at.subsec_nanosecond() > 0);
    let shown = Timestamp::from_second(second).unwrap_or(free_at);
    ToolError::new(ErrorKind::ToolRateLimited, format!("{tool} may be called {what}; it is free again at {shown}"))
        .with_feedback(format!(
            "The tool `{tool}` may be called {what}, and that is used up until {shown}. Do without it until then, and tell the user."
        ))
        .with_retry_at(free_at)
}

fn not_counted(tool: &str, cause: &StoreError) -> ToolError {
    tracing::error!(tool, %cause, "limit_not_counted");
    ToolError::store_failed(cause, format!("the limit of {tool} could not be checked"))
        .with_feedback(format!("The tool `{tool}` cannot be used now. Do without it."))
}
