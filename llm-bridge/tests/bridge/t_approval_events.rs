//! What a chat is reported about a call that waits for a person: requirement B8.

use std::{sync::Arc, time::Duration};

use crate::support::{Answer, Scripted, question, within};
use async_trait::async_trait;
use llm_bridge::{
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};
use registry_core::{
    Caller, Permission, Registry, ToolPolicy, ToolResult, ToolSpec,
    guard::{
        approval::ApprovalAnswer,
        gate::{Gate, GateAnswer, GateError, GateRequest},
    },
    handler_fn,
};
use serde_json::json;
use tokio::sync::Notify;
use toolrack_apis::{ToolStatus, TurnEvent};

/// More than may wait for a slow reader.
const STATUSES: usize = 500;

/// Asks for a person, once the other tool has said all that it has to say.
struct Later(Arc<Notify>);

#[async_trait]
impl Gate for Later {
    fn name(&self) -> &str {
        "later"
    }

    async fn check(&self, _: GateRequest<'_>) -> Result<GateAnswer, GateError> {
        async {
            self.0.notified().await;
            Ok(GateAnswer::Pending)
        }
        .await
    }
}

#[tokio::test]
async fn b8_a_question_is_told_to_a_reader_who_is_slow() {
    let full = Arc::new(Notify::new());
    let gate = Arc::new(Later(Arc::clone(&full)));
    let registry = Registry::builder().without_compiled().gate(gate).build().unwrap();
    let talk = handler_fn(move |context, _| {
        let full = Arc::clone(&full);
        async move {
            (0..STATUSES).for_each(|number| context.status(number.to_string()));
            full.notify_one();
            Ok(ToolResult::new("talked"))
        }
    });
    let schema = || json!({"type": "object"});
    registry.register(ToolSpec::new("talk", schema()), ToolPolicy::new(), Some(talk)).unwrap();
    let gated = ToolPolicy { requires_gate: true, ..ToolPolicy::new() };
    let act = handler_fn(|_, _| async { Ok(ToolResult::new("acted")) });
    registry.register(ToolSpec::new("act", schema()), gated, Some(act)).unwrap();

    let calls = Answer::new().call("one", "talk", &json!({})).call("two", "act", &json!({}));
    let upstream = Scripted::start([]).await;
    upstream.push(calls);
    upstream.push(Answer::text("Done."));
    let model = Upstream::http(&upstream.base(), None, Duration::from_secs(20)).unwrap();
    let backend = Backend::new(registry.clone(), model, ChatSettings::default());
    let mut turn = backend.start(question("Go."), Caller::new("ada", Permission::User)).unwrap();

    // A turn runs while it is read: until the first status here, and then not for a while.
    let is_status = |event: &TurnEvent| matches!(event, TurnEvent::Tool(ToolStatus::Progress { .. }));
    while !is_status(&within(turn.next()).await.unwrap()) {}
    let id = within(async {
        loop {
            if let Some(approval) = registry.pending_approvals().await.unwrap().pop() {
                return approval.id;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let (mut statuses, mut asked, mut text) = (1, Vec::new(), String::new());
    while let Some(event) = within(turn.next()).await {
        match event {
            TurnEvent::Tool(ToolStatus::Progress { approval, .. }) => match approval {
                None => statuses += 1,
                Some(approval) => {
                    let yes = ApprovalAnswer {
                        approve: true,
                        by: "boss".into(),
                        reason: None,
                        content: None,
                        arguments: None,
                    };
                    registry.answer_approval(&approval, yes).await.unwrap();
                    asked.push(approval);
                }
            },
            TurnEvent::Tool(ToolStatus::Finished(tool)) => assert!(tool.success, "{tool:?}"),
            TurnEvent::Text(piece) => text.push_str(&piece),
            _ => {}
        }
    }
    assert_eq!((asked, text.trim()), (vec![id], "Done."));
    // News, on the other hand, is dropped where nobody takes it.
    assert!((1..STATUSES).contains(&statuses), "{statuses}");
}
