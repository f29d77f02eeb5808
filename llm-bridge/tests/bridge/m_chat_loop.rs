//! The loop of a chat: retries and limits. requirements M11.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::support::{Act, Answer, Rack, Reply, Reported, Setup, event, text_event, with_effect};
use registry_core::{Effect, ErrorKind, ToolError, ToolPolicy, ToolResult, guard::audit::Phase};
use serde_json::{Value, json};

fn call(name: &str) -> Reply {
    Answer::new().call("c", name, &json!({})).into()
}

fn done() -> Reply {
    Reply::text("Done.")
}

/// `flaky` fails that often before it succeeds.
fn flaky(failures: usize, effect: Effect, error: fn() -> ToolError) -> Setup {
    let tries = Arc::new(AtomicUsize::new(0));
    Setup::bare().plain_tool("flaky", with_effect(effect), move |_| {
        let fails = tries.fetch_add(1, Ordering::SeqCst) < failures;
        async move { if fails { Err(error()) } else { Ok(ToolResult::new("worked")) } }
    })
}

/// What the model learns of its only call.
fn told_result(rack: &Rack) -> String {
    rack.upstream.asked()[1].messages().last().unwrap()["content"].as_str().unwrap().to_owned()
}

fn attempts(rack: &Rack) -> Vec<(Phase, u8, Option<bool>)> {
    rack.audit().iter().map(|record| (record.phase, record.attempt, record.success)).collect()
}

/// Keeps the names of the log's warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<String>>);

impl std::io::Write for Warnings {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn m11_a_failure_that_may_pass_is_tried_once_more_with_a_warning() {
    let warnings = Warnings::default();
    let writer = warnings.clone();
    let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    let _log = tracing::subscriber::set_default(log);

    let rack = flaky(1, Effect::Read, || ToolError::unavailable("busy")).start([call("flaky"), done()]).await;
    let reported = rack.ask(true).await;
    reported.expect("Done.");
    assert_eq!(told_result(&rack), "worked");
    assert_eq!(reported.details_of("call_finished").len(), 1, "the client sees one call");
    assert_eq!(
        attempts(&rack),
        [
            (Phase::Intent, 1, None),
            (Phase::Outcome, 1, Some(false)),
            (Phase::Intent, 2, None),
            (Phase::Outcome, 2, Some(true)),
        ]
    );
    assert!(rack.audit().iter().all(|record| record.call_id == "c"), "linked by the call's id");
    let log = warnings.0.lock().unwrap().clone();
    assert_eq!(log.matches("tool_call_failed_retrying").count(), 1, "{log}");
}

#[tokio::test]
async fn m11_it_is_tried_once_more_and_not_again() {
    let rack = flaky(9, Effect::Read, || ToolError::unavailable("busy")).start([call("flaky"), done()]).await;
    rack.ask(false).await.expect("Done.");
    assert_eq!(told_result(&rack), "Error: busy");
    assert_eq!(rack.ran().len(), 2);
}

#[tokio::test]
async fn m11_destructive_tools_and_failures_that_stay_are_not_tried_again() {
    for (effect, error) in [
        (Effect::Destructive, (|| ToolError::unavailable("busy")) as fn() -> ToolError),
        (Effect::Read, || ToolError::failed("broken")),
        (Effect::Read, || ToolError::invalid("no such place")),
    ] {
        let rack = flaky(1, effect, error).start([call("flaky"), done()]).await;
        rack.ask(true).await.expect("Done.");
        assert_eq!(rack.ran().len(), 1);
        assert_eq!(attempts(&rack).len(), 2);
    }
}

#[tokio::test]
async fn m11_a_timeout_is_one_failed_call_and_is_tried_once_more() {
    let policy = ToolPolicy { timeout: std::time::Duration::from_millis(50), ..ToolPolicy::new() };
    let rack = Setup::bare()
        .plain_tool("slow", policy, |_| async {
            std::future::pending::<()>().await;
            Ok(ToolResult::new(Value::Null))
        })
        .start([call("slow"), done()])
        .await;
    rack.ask(true).await.expect("Done.");
    assert!(told_result(&rack).contains("timed out"), "{}", told_result(&rack));
    assert_eq!(rack.ran().len(), 2);
    assert!(rack.outcomes().iter().all(|record| record.error == Some(ErrorKind::Timeout)));
}

#[tokio::test]
async fn m11_a_panic_is_one_failed_call_and_the_turn_goes_on() {
    let rack = Setup::new()
        .plain_tool("bad", ToolPolicy::new(), |_| async { panic!("on purpose") })
        .plain_tool("worse", ToolPolicy::new(), |_| -> std::future::Ready<_> { panic!("at once") })
        .start([
            Answer::new()
                .call("1", "bad", &json!({}))
                .call("2", "add", &json!({"a": 1, "b": 2}))
                .call("3", "worse", &json!({}))
                .into(),
            done(),
        ])
        .await;
    let reported = rack.ask(true).await;
    reported.expect("Done.");
    let messages = rack.upstream.asked()[1].messages().clone();
    assert!(messages[2]["content"].as_str().unwrap().starts_with("Error: "), "{}", messages[2]);
    assert!(!messages[2].to_string().contains("on purpose"), "what is inside is the operator's to know");
    assert_eq!(messages[3]["content"], "sum=3");
    assert!(messages[4]["content"].as_str().unwrap().starts_with("Error: "));
    let errors: Vec<_> = rack.outcomes().into_iter().filter_map(|record| record.error_message).collect();
    assert!(errors.iter().any(|error| error.contains("on purpose")), "{errors:?}");
}

/// Asserts that a turn was stopped with a clear word.
#[track_caller]
fn expect_stopped(reported: &Reported, why: &str) {
    assert_eq!(
        (reported.finish.as_deref(), reported.error.as_ref(), reported.done),
        (Some("length"), None, true)
    );
    assert!(
        reported.content.starts_with("[Stopped: ") && reported.content.contains(why),
        "{}",
        reported.content
    );
}

#[tokio::test]
async fn m11_the_limit_of_rounds_ends_the_turn_with_a_word() {
    for stream in [true, false] {
        let replies = (0..9).map(|round| Answer::new().call("c", "add", &json!({"a": round, "b": 0})).into());
        let rack = Setup::new().chat(|chat| chat.limits.max_rounds = 3).start(replies).await;
        expect_stopped(&rack.ask(stream).await, "in 3 rounds");
        assert_eq!((rack.upstream.asked().len(), rack.ran().len()), (3, 3));
    }
}

#[tokio::test]
async fn m11_the_limit_of_calls_ends_the_turn_with_a_word() {
    for stream in [true, false] {
        let calls = (0..5).fold(Answer::new(), |answer, number| {
            answer.call(&format!("c{number}"), "add", &json!({"a": number, "b": 0}))
        });
        let rack = Setup::new().chat(|chat| chat.limits.max_calls = 3).start([calls.into()]).await;
        let reported = rack.ask(stream).await;
        expect_stopped(&reported, "3 tool calls");
        assert_eq!(rack.ran().len(), 3);
        // Of those that were not run one says so; the rest is not even read.
        assert_eq!(reported.details_of("call_finished").len(), 4);
        assert_eq!(
            rack.outcomes().iter().filter(|record| record.error == Some(ErrorKind::Refused)).count(),
            1
        );
    }
}

#[tokio::test]
async fn m11_the_same_call_again_and_again_is_warned_of_and_then_stopped() {
    for stream in [true, false] {
        let same = || Answer::new().call("c", "add", &json!({"a": 1, "b": 1})).into();
        let rack = Setup::new().start([same(), same(), same(), same()]).await;
        expect_stopped(&rack.ask(stream).await, "the same tool call 4 times");
        assert_eq!(rack.ran().len(), 2);
        let asked = rack.upstream.asked();
        let warned = asked[3].messages().last().unwrap()["content"].as_str().unwrap().to_owned();
        assert!(warned.contains("made already"), "{warned}");
    }
}

#[tokio::test]
async fn g5_the_limit_of_time_does_not_count_that_of_the_model() {
    for stream in [true, false] {
        let words = (0..4).flat_map(|_| [text_event("On "), Act::Pause(Duration::from_millis(400))]);
        let slow = Reply::stream(
            words.chain([event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))]),
        );
        let rack = Setup::new().chat(|chat| chat.limits.max_seconds = 1).start([slow]).await;
        rack.ask(stream).await.expect("On On On On");
    }
}

#[tokio::test]
async fn m11_a_long_result_is_shortened_for_the_model_only() {
    let rack = Setup::bare()
        .plain_tool("long", ToolPolicy::new(), |_| async { Ok(ToolResult::new("ä".repeat(100))) })
        .chat(|chat| chat.limits.max_result_characters = 10)
        .start([call("long"), done()])
        .await;
    let reported = rack.ask(true).await;
    let told = told_result(&rack);
    assert!(
        told.starts_with("ääääää\n[… 90 characters were left out here; ") && told.ends_with("]\nääää"),
        "{told}"
    );
    assert_eq!(reported.details_of("call_finished")[0]["result"], "ä".repeat(100));
}
