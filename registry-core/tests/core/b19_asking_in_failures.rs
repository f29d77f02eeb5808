//! Questions of calls that can outlive their process, where the store fails: requirement B19.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use registry_core::{
    Caller, Effect, Permission, Registry, ToolCall, ToolContext, ToolOutcome, ToolPolicy, ToolResult,
    ToolSpec, handler_fn,
    store::{
        Expected, MemoryStore, StateError, StateLimits, StateSpace, StateStore, StoreError, StoreResult,
    },
};
use serde_json::{Map, Value, json};

/// A store that fails so many times, and may write all the same.
#[derive(Default)]
struct Failing {
    kept: MemoryStore,
    times: AtomicU32,
    writes: AtomicBool,
}

#[async_trait]
impl StateStore for Failing {
    async fn state(&self, space: &StateSpace, key: &str) -> StoreResult<Option<String>> {
        self.kept.state(space, key).await
    }

    async fn put_state(
        &self,
        space: &StateSpace,
        key: &str,
        value: Option<&str>,
        expected: Expected<'_>,
        limits: &StateLimits,
    ) -> Result<bool, StateError> {
        let left = self.times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_err() {
            return self.kept.put_state(space, key, value, expected, limits).await;
        }
        if self.writes.load(Ordering::SeqCst) {
            self.kept.put_state(space, key, value, expected, limits).await?;
        }
        Err(StoreError::unavailable("the connection was cut").into())
    }

    async fn state_keys(&self, space: &StateSpace) -> StoreResult<Vec<String>> {
        self.kept.state_keys(space).await
    }

    async fn states_of_users(
        &self,
        tenant: &str,
        name: &str,
        key: &str,
        after: &str,
        most: usize,
    ) -> StoreResult<Vec<(String, String)>> {
        self.kept.states_of_users(tenant, name, key, after, most).await
    }
}

/// What a call comes to whose store fails so many times when the answer is there.
async fn call(times: u32, writes: bool) -> ToolOutcome {
    let store = Arc::new(Failing { writes: AtomicBool::new(writes), ..Failing::default() });
    let registry = Registry::builder().without_compiled().state(store.clone()).build().unwrap();
    let handler = handler_fn(|context: ToolContext, _: Map<String, Value>| async move {
        let account = context.ask("Which account?", ["Savings", "Joint"]).await?;
        Ok(ToolResult::new(format!("paid from {account}")))
    });
    let policy = ToolPolicy { effect: Effect::Write, resumable: true, ..ToolPolicy::new() };
    registry.register(ToolSpec::new("pay", json!({"type": "object"})), policy, Some(handler)).unwrap();
    let context = registry.context(Caller::new("ada", Permission::User)).with_questions();
    let context = context.with_question_wait(Duration::from_secs(600));
    let answer = async {
        let question = loop {
            match registry.pending_questions().await.unwrap().pop() {
                Some(question) => break question,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        store.times.store(times, Ordering::SeqCst);
        registry.answer_question(&question.id, "ada", json!({"answer": "Joint"})).await.unwrap();
    };
    tokio::join!(registry.execute(&context, ToolCall::new("pay", json!({}))), answer).0
}

#[tokio::test(start_paused = true)]
async fn b19_a_call_goes_on_with_its_answer_where_the_store_fails_once() {
    for writes in [false, true] {
        assert_eq!(call(1, writes).await.for_model(), "paid from Joint", "{writes}");
    }
}

#[tokio::test(start_paused = true)]
async fn b19_a_store_that_fails_on_is_not_taken_for_another_server() {
    for writes in [false, true] {
        let error = call(u32::MAX, writes).await.result.unwrap_err();
        assert!(error.message().contains("could not be asked"), "{error:?}");
    }
}
