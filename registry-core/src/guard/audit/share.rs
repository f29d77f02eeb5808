//! How much the audit keeps in a day of what one user does.
//!
//! Beyond it calls are refused, and not made with less in their records: who would hide what a call was made with could fill the share
//! first. The first refusal is recorded, and says from when on there is nothing; the others are not.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::{AuditRecord, AuditSink};
use crate::{
    clock::Clock,
    guard::limits::{day_of, end_of},
    json,
    result::{ErrorKind, ToolError},
    store::StoreResult,
};

/// How much it is where nothing is said, in MiB.
pub const AUDIT_MEBIBYTES_OF_USER: u64 = 256;
/// What a database has of a record beside its text, in bytes: hashes, what it is found by, indexes.
const BESIDE: u64 = 512;

/// Counts what the records of each user take in a day of UTC, as long as the process runs.
pub(crate) struct AuditShares {
    /// In bytes; 0 for any number.
    most: u64,
    clock: Arc<dyn Clock>,
    today: Mutex<Today>,
}

#[derive(Default)]
struct Today {
    day: i64,
    /// By tenant and user.
    users: HashMap<String, HashMap<String, Taken>>,
}

#[derive(Default)]
struct Taken {
    bytes: u64,
    /// Whether there is a record that says that there are no more.
    is_told: bool,
}

impl Today {
    fn of(&mut self, day: i64, tenant: &str, user: &str) -> Option<&mut Taken> {
        if self.day != day {
            *self = Self { day, ..Self::default() };
        }
        self.users.get_mut(tenant)?.get_mut(user)
    }
}

impl AuditShares {
    pub(crate) fn new(mebibytes: u64, clock: Arc<dyn Clock>) -> Self {
        Self { most: mebibytes.saturating_mul(1 << 20), clock, today: Mutex::default() }
    }

    /// Fails where the user has used up the day's share.
    pub(crate) fn room(&self, tenant: &str, user: &str) -> Result<(), ToolError> {
        let now = self.clock.now();
        let is_used_up = |taken: &mut Taken| self.is_used_up(taken);
        match self.today.lock().of(day_of(now), tenant, user).is_some_and(is_used_up) {
            true => Err(self.used_up(end_of(day_of(now)))),
            false => Ok(()),
        }
    }

    /// Whether a call that is refused is recorded: beyond the share the first one is.
    pub(crate) fn takes_refusal(&self, tenant: &str, user: &str) -> bool {
        let day = day_of(self.clock.now());
        let mut today = self.today.lock();
        let Some(taken) = today.of(day, tenant, user).filter(|taken| self.is_used_up(taken)) else {
            return true;
        };
        if !taken.is_told {
            tracing::warn!(tenant, user, mebibytes = self.most >> 20, "audit_share_used_up");
        }
        !std::mem::replace(&mut taken.is_told, true)
    }

    fn is_used_up(&self, taken: &Taken) -> bool {
        self.most > 0 && taken.bytes >= self.most
    }

    fn add(&self, tenant: String, user: String, bytes: u64) {
        let day = day_of(self.clock.now());
        let mut today = self.today.lock();
        match today.of(day, &tenant, &user) {
            Some(taken) => taken.bytes += bytes,
            None => {
                let taken = Taken { bytes, is_told: false };
                today.users.entry(tenant).or_default().insert(user, taken);
            }
        }
    }

    fn used_up(&self, until: Timestamp) -> ToolError {
        let what = format!("the {} MiB that the audit keeps of one user in a day", self.most >> 20);
        ToolError::new(ErrorKind::ToolRateLimited, format!("{what} are used up; calls are made again from {until} on"))
            .with_feedback(format!(
                "No tool can be called until {until}, as {what} are used up. Do without tools until then, and tell the user."
            ))
            .with_retry_at(until)
    }
}

/// A sink whose records are counted.
pub(crate) struct CountedAudit {
    pub(crate) sink: Arc<dyn AuditSink>,
    pub(crate) shares: Arc<AuditShares>,
}

#[async_trait]
impl AuditSink for CountedAudit {
    fn is_enabled(&self) -> bool {
        self.sink.is_enabled()
    }

    async fn record(&self, record: AuditRecord) -> StoreResult<()> {
        let (tenant, user) = (record.tenant.clone(), record.user.clone());
        let bytes = BESIDE + json::length(&record);
        self.sink.record(record).await?;
        self.shares.add(tenant, user, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{
        Caller, Permission, Registry, ToolCall, ToolOutcome, ToolPolicy, ToolResult, ToolSpec,
        guard::audit::MemoryAudit, handler_fn, testing::TestClock,
    };

    fn with_tool(registry: Registry) -> Registry {
        let handler = handler_fn(|_, _| async { Ok(ToolResult::new("done")) });
        registry
            .register(ToolSpec::new("act", json!({"type": "object"})), ToolPolicy::new(), Some(handler))
            .unwrap();
        registry
    }

    async fn call(registry: &Registry, user: &str, tool: &str) -> ToolOutcome {
        let context = registry.context(Caller::new(user, Permission::User));
        registry.execute(&context, ToolCall::new(tool, json!({"text": "a".repeat(60 << 10)}))).await
    }

    fn is_refused(outcome: &ToolOutcome) -> bool {
        let kind = outcome.result.as_ref().err().map(ToolError::kind);
        kind == Some(ErrorKind::ToolRateLimited)
    }

    #[tokio::test]
    async fn a49_what_a_user_does_in_a_day_has_a_share_of_the_audit() {
        let clock = TestClock::at("2026-03-01T12:00:00Z".parse().unwrap());
        let audit = Arc::new(MemoryAudit::new(100));
        let builder = Registry::builder().without_compiled().clock(Arc::new(clock.clone()));
        let builder = builder.audit(audit.clone()).audit_arguments(true).audit_mebibytes_per_user(1);
        let registry = with_tool(builder.build().unwrap());

        let mut made = 0;
        let last = loop {
            let outcome = call(&registry, "ada", "act").await;
            if !outcome.is_success() {
                break outcome;
            }
            made += 1;
        };
        // Two records of 60 KiB and some more for each.
        assert_eq!(made, 9);
        assert!(is_refused(&last));
        let until = "2026-03-02T00:00:00Z".parse().unwrap();
        assert_eq!(last.result.unwrap_err().retry_at(), Some(until));
        // One record says so, however often she tries, and whatever.
        for tool in ["act", "no_such_tool"] {
            assert!(is_refused(&call(&registry, "ada", tool).await));
        }
        let context = registry.context(Caller::new("ada", Permission::User));
        let turned_down = ToolError::new(ErrorKind::InvalidArguments, "not understood");
        registry.select(&context).refuse(&context, ToolCall::new("act", json!({})), turned_down).await;
        let records = audit.records();
        assert_eq!(records.len(), 2 * made + 1);
        assert_eq!(records.last().unwrap().error, Some(ErrorKind::ToolRateLimited));

        // That is hers alone, here, and today.
        assert!(call(&registry, "eve", "act").await.is_success());
        assert!(call(&with_tool(registry.for_tenant("other")), "ada", "act").await.is_success());
        clock.advance(Duration::from_secs(12 * 60 * 60));
        assert!(call(&registry, "ada", "act").await.is_success());
    }

    #[tokio::test]
    async fn a49_without_a_bound_or_an_audit_calls_are_not_counted() {
        for (builder, mebibytes) in
            [(Registry::builder(), 1), (Registry::builder().audit(Arc::new(MemoryAudit::new(1))), 0)]
        {
            let builder =
                builder.without_compiled().audit_arguments(true).audit_mebibytes_per_user(mebibytes);
            let registry = with_tool(builder.build().unwrap());
            for _ in 0..20 {
                assert!(call(&registry, "ada", "act").await.is_success());
            }
        }
    }
}
