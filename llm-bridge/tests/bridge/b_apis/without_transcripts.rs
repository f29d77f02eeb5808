//! A store of conversations that is down, does not answer, or keeps no transcripts: row G8, requirement B15.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use registry_core::store::{
    ConversationError, ConversationLimits, ConversationStore, Conversations, Shelf, StoreError, StoreResult,
    StoredResponse, StoredTranscript, TranscriptLimits,
};
use serde_json::json;

use crate::support::{Answer, Reply, Setup, client_tool, user};

/// Fails whatever it is asked, or never answers.
struct Down {
    hangs: bool,
}

impl Down {
    async fn fails<T>(&self) -> StoreResult<T> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Err(StoreError::unavailable("it is down"))
    }

    async fn fails_for_conversations<T>(&self) -> Result<T, ConversationError> {
        Ok(self.fails().await?)
    }
}

#[async_trait]
impl ConversationStore for Down {
    async fn keep_response(
        &self,
        _: StoredResponse,
        _: jiff::Timestamp,
        _: &ConversationLimits,
    ) -> Result<(), ConversationError> {
        self.fails_for_conversations().await
    }

    async fn response(
        &self,
        _: &str,
        _: &str,
        _: &str,
        _: jiff::Timestamp,
    ) -> StoreResult<Option<StoredResponse>> {
        self.fails().await
    }

    async fn response_chain(
        &self,
        _: &str,
        _: &str,
        _: &str,
        _: jiff::Timestamp,
        _: &ConversationLimits,
    ) -> Result<Vec<Arc<str>>, ConversationError> {
        self.fails_for_conversations().await
    }

    async fn delete_response(&self, _: &str, _: &str, _: &str) -> StoreResult<bool> {
        self.fails().await
    }

    async fn delete_expired(&self, _: jiff::Timestamp) -> StoreResult<()> {
        self.fails().await
    }

    async fn keep_transcript(
        &self,
        _: Shelf,
        _: StoredTranscript,
        _: jiff::Timestamp,
        _: &TranscriptLimits,
    ) -> StoreResult<()> {
        self.fails().await
    }

    async fn transcripts(
        &self,
        _: Shelf,
        _: &str,
        _: &str,
        _: &[String],
        _: jiff::Timestamp,
        _: &TranscriptLimits,
    ) -> StoreResult<Vec<StoredTranscript>> {
        self.fails().await
    }

    async fn use_transcripts(&self, _: &str, _: &str, _: &[String], _: jiff::Timestamp) -> StoreResult<()> {
        self.fails().await
    }

    async fn delete_transcripts(&self, _: &str, _: &str, _: &[String]) -> StoreResult<()> {
        self.fails().await
    }

    async fn sweep_transcripts(&self, _: Shelf, _: jiff::Timestamp, _: u64) -> StoreResult<()> {
        self.fails().await
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
