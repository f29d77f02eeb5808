//! A store of conversations that is down, does not answer, or keeps no transcripts: row G8, requirement B15.

use std::{sync::Arc, time::Duration};

use registry_core::{
    BoxFuture,
    store::{
        ConversationError, ConversationLimits, ConversationStore, Conversations, StoreError, StoreFuture,
        StoredResponse, StoredTranscript, TranscriptLimits,
    },
};
use serde_json::json;

use crate::support::{Answer, Reply, Setup, client_tool, user};

/// Fails whatever it is asked, or never answers.
struct Down {
    hangs: bool,
}

impl Down {
    fn fails<T: Send>(&self) -> StoreFuture<'_, T> {
        let hangs = self.hangs;
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Err(StoreError::unavailable("it is down"))
        })
    }

    fn fails_for_conversations<T: Send + 'static>(&self) -> BoxFuture<'_, Result<T, ConversationError>> {
        let failed = self.fails::<T>();
        Box::pin(async move { Ok(failed.await?) })
    }
}

impl ConversationStore for Down {
    fn keep_response<'a>(
        &'a self,
        _: StoredResponse,
        _: jiff::Timestamp,
        _: &'a ConversationLimits,
    ) -> BoxFuture<'a, Result<(), ConversationError>> {
        self.fails_for_conversations()
    }

    fn response<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
        _: jiff::Timestamp,
    ) -> StoreFuture<'a, Option<StoredResponse>> {
        self.fails()
    }

    fn response_chain<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
        _: jiff::Timestamp,
        _: &'a ConversationLimits,
    ) -> BoxFuture<'a, Result<Vec<Arc<str>>, ConversationError>> {
        self.fails_for_conversations()
    }

    fn delete_response<'a>(&'a self, _: &'a str, _: &'a str, _: &'a str) -> StoreFuture<'a, bool> {
        self.fails()
    }

    fn delete_conversations_of<'a>(&'a self, _: &'a str, _: &'a str) -> StoreFuture<'a, usize> {
        self.fails()
    }

    fn delete_expired(&self, _: jiff::Timestamp) -> StoreFuture<'_, ()> {
        self.fails()
    }

    fn keep_transcript<'a>(
        &'a self,
        _: StoredTranscript,
        _: jiff::Timestamp,
        _: &'a TranscriptLimits,
    ) -> StoreFuture<'a, ()> {
        self.fails()
    }

    fn transcripts<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a [String],
        _: jiff::Timestamp,
        _: &'a TranscriptLimits,
    ) -> StoreFuture<'a, Vec<StoredTranscript>> {
        self.fails()
    }

    fn use_transcripts<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a [String],
        _: jiff::Timestamp,
    ) -> StoreFuture<'a, ()> {
        self.fails()
    }

    fn delete_transcripts<'a>(&'a self, _: &'a str, _: &'a str, _: &'a [String]) -> StoreFuture<'a, ()> {
        self.fails()
    }

    fn sweep_transcripts(&self, _: jiff::Timestamp, _: u64) -> StoreFuture<'_, ()> {
        self.fails()
    }

    fn keep_file<'a>(
        &'a self,
        _: StoredTranscript,
        _: jiff::Timestamp,
        _: &'a TranscriptLimits,
    ) -> StoreFuture<'a, ()> {
        self.fails()
    }

    fn file<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
        _: jiff::Timestamp,
    ) -> StoreFuture<'a, Option<Arc<str>>> {
        self.fails()
    }

    fn sweep_files(&self, _: jiff::Timestamp, _: u64) -> StoreFuture<'_, ()> {
        self.fails()
    }
}

#[tokio::test]
async fn g8_a_store_that_is_down_does_not_fail_the_turn() {
    for hangs in [false, true] {
        let conversations = Conversations::new(Arc::new(Down { hangs }), ConversationLimits::default());
        let call = Answer::new().call("c", "add", &json!({"a": 2, "b": 3}));
        let rack = Setup::new()
            .with(|setup| setup.conversations = Some(conversations))
            .start([call.into(), Reply::text("Five."), Reply::text("Yes.")])
            .await;
        let began = std::time::Instant::now();
        rack.ask(true).await.expect("Five.");
        let messages = json!([user("Go."), {"role": "assistant", "content": "Five."}, user("Sure?")]);
        rack.chat(json!({"model": "m", "messages": messages})).await.expect("Yes.");
        let asked = rack.upstream.asked();
        assert_eq!(asked[2].body["messages"], messages, "as the client has sent it");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn b15_switched_off_nothing_is_kept_but_turns_that_wait_for_the_client() {
    let off = || {
        let transcripts = TranscriptLimits { are_kept: false, ..TranscriptLimits::DEFAULT };
        let limits = ConversationLimits { transcripts, ..ConversationLimits::default() };
        Setup::new().with(|setup| setup.conversations = Some(Conversations::new(setup.store.clone(), limits)))
    };
    let call = Answer::new().call("c", "add", &json!({"a": 2, "b": 3}));
    let rack = off().start([call.into(), Reply::text("Five."), Reply::text("?")]).await;
    rack.ask(true).await.expect("Five.");
    let messages = json!([user("Go."), {"role": "assistant", "content": "Five."}, user("Sure?")]);
    rack.chat(json!({"model": "m", "messages": messages})).await.expect("?");
    assert_eq!(rack.upstream.asked()[2].body["messages"], messages);

    let both = Answer::new().call("s", "add", &json!({"a": 2, "b": 3})).call(
        "c",
        "weather",
        &json!({"city": "Oslo"}),
    );
    let rack = off().start([both.into(), Reply::text("Rain.")]).await;
    let tools = json!([client_tool("weather")]);
    let first = rack.chat(json!({"model": "scripted", "messages": [user("Go.")], "tools": tools})).await;
    let messages = json!([
        user("Go."),
        {"role": "assistant", "content": null, "tool_calls": first.calls},
        {"role": "tool", "tool_call_id": first.calls[0]["id"], "content": "rain"},
    ]);
    rack.chat(json!({"model": "scripted", "messages": messages, "tools": tools})).await.expect("Rain.");
    let roles: Vec<_> =
        rack.upstream.asked()[1].messages().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool"]);
}
