//! Turns that are cut off in the middle, and go on when the same conversation comes again: row B15.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use registry_core::{Effect, ToolContext, ToolPolicy, ToolResult};
use serde_json::{Value, json};

use crate::support::{
    Act, Answer, Asked, Rack, Reply, Reported, Setup, client_tool, text_event, until, user, with_effect,
    within,
};

/// A rack whose tool `send` counts its runs.
fn sender(policy: ToolPolicy) -> (Setup, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let setup = Setup::bare().plain_tool("send", policy, move |_| {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(ToolResult::new(format!("sent {number}"))) }
    });
    (setup, sent)
}

fn call(id: &str) -> Reply {
    Answer::text("I send it.").call(id, "send", &json!({})).into()
}

async fn ask(rack: &Rack, fields: Value) -> Reported {
    let mut body = json!({"model": "scripted", "messages": [user("Send it.")]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    rack.chat(body).await
}

fn roles(asked: &Asked) -> Vec<&str> {
    asked.messages().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

const RESUMED: [&str; 3] = ["user", "assistant", "tool"];

#[tokio::test]
async fn b15_a_turn_whose_model_server_fails_goes_on_when_the_client_asks_again() {
    for stream in [true, false] {
        let (setup, sent) = sender(ToolPolicy::new());
        let rack = setup.start([call("c"), Reply::error(400, "no"), Reply::text("Sent.")]).await;
        let fields = json!({"stream": stream});
        assert!(ask(&rack, fields.clone()).await.error.is_some());
        ask(&rack, fields.clone()).await.expect("Sent.");
        let asked = rack.upstream.asked();
        assert_eq!((roles(&asked[2]), sent.load(Ordering::SeqCst)), (RESUMED.to_vec(), 1));
        assert_eq!(asked[2].raw("messages"), asked[1].raw("messages"), "the same prompt");
        // The conversation goes on with all of it.
        rack.upstream.push(Reply::text("Yes."));
        let messages = json!([user("Send it."), {"role": "assistant", "content": "Sent."}, user("Sure?")]);
        ask(&rack, json!({"messages": messages})).await.expect("Yes.");
        let last = rack.upstream.asked().pop().unwrap();
        assert_eq!(roles(&last), ["user", "assistant", "tool", "assistant", "user"]);
        // It has its answer: asked once more the model begins anew.
        for reply in [call("d"), Reply::text("Sent again.")] {
            rack.upstream.push(reply);
        }
        ask(&rack, fields).await.expect("I send it.\n\nSent again.");
        assert_eq!(sent.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn b15_a_turn_whose_client_goes_away_goes_on_when_it_asks_again() {
    let (setup, sent) = sender(ToolPolicy::new());
    let stalled = Reply::stream([text_event("It is "), Act::Stall]);
    let rack = setup.start([call("c"), stalled, Reply::text("Sent.")]).await;
    let body = json!({"model": "scripted", "messages": [user("Send it.")]});
    let mut reading = rack.open_with(body).await;
    reading.read_to("It is").await;
    drop(reading);
    // At once, as clients do that had no patience.
    ask(&rack, json!({})).await.expect("Sent.");
    let asked = rack.upstream.asked().pop().unwrap();
    assert_eq!((roles(&asked), sent.load(Ordering::SeqCst)), (RESUMED.to_vec(), 1));
}

#[tokio::test]
async fn b15_several_answers_to_one_question_are_made_apart() {
    let (setup, sent) = sender(ToolPolicy::new());
    let stalled = Reply::stream([text_event("It is "), Act::Stall]);
    let rack = setup.start([call("c"), stalled, call("d"), Reply::text("Sent.")]).await;
    let body = json!({"model": "scripted", "messages": [user("Send it.")]});
    let mut reading = rack.open_with(body).await;
    reading.read_to("It is").await;
    ask(&rack, json!({})).await.expect("I send it.\n\nSent.");
    assert_eq!((roles(&rack.upstream.asked()[2]), sent.load(Ordering::SeqCst)), (vec!["user"], 2));
}

#[tokio::test]
async fn b15_a_call_with_an_effect_that_was_interrupted_is_told_of() {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let setup = Setup::bare().plain_tool("send", with_effect(Effect::Write), move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { std::future::pending().await }
    });
    let rack = setup.start([call("c"), Reply::text("I look whether it is sent.")]).await;
    let mut reading = rack.open_with(json!({"model": "scripted", "messages": [user("Send it.")]})).await;
    reading.read_to("call_started").await;
    until(|| begun.load(Ordering::SeqCst) == 1).await;
    drop(reading);
    ask(&rack, json!({})).await.expect("I look whether it is sent.");
    let asked = rack.upstream.asked().pop().unwrap();
    assert_eq!(roles(&asked), RESUMED);
    let result = asked.messages()[2]["content"].as_str().unwrap();
    assert!(result.contains("whether it took effect is not known"), "{result}");
}

#[tokio::test]
async fn b15_b19_what_came_of_the_calls_of_a_turn_that_is_stopped_is_known_of_each() {
    let asks = async |context: ToolContext| {
        Ok(ToolResult::new(context.ask("Which account?", ["Savings", "Joint"]).await?))
    };
    let (setup, sent) = sender(with_effect(Effect::Write));
    let setup = setup.plain_tool("pay", with_effect(Effect::Write), asks).plain_tool(
        "hang",
        with_effect(Effect::Write),
        |_| std::future::pending(),
    );
    let calls = Answer::new().call("p", "pay", &json!({})).call("s", "send", &json!({})).call(
        "h",
        "hang",
        &json!({}),
    );
    let rack = setup.start([calls.into(), Reply::text("It is sent.")]).await;
    let waits = json!({"toolrack": {"question_wait_seconds": 60}});
    let mut reading = rack.open_with(waits.clone()).await;
    reading.read_to("sent 1").await;
    until(|| sent.load(Ordering::SeqCst) == 1 && rack.ran().len() == 3).await;
    within(async {
        while rack.registry.pending_questions().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    drop(reading);
    rack.ask_with(true, waits).await.expect("It is sent.");
    let asked = rack.upstream.asked().pop().unwrap();
    assert_eq!(roles(&asked), ["user", "assistant", "tool", "tool", "tool"]);
    let results: Vec<&str> =
        asked.messages()[2..].iter().map(|result| result["content"].as_str().unwrap()).collect();
    let stopped = "stopped while it waited for the user's answer to: Which account?";
    assert!(results[0].contains(stopped), "{results:?}");
    assert_eq!(results[1], "sent 1");
    assert!(results[2].contains("whether it took effect is not known"), "{results:?}");
    assert!(rack.registry.pending_questions().await.unwrap().is_empty());
}

#[tokio::test]
async fn b15_rounds_that_the_model_server_fails_at_again_are_left() {
    let (setup, sent) = sender(ToolPolicy::new());
    let refused = || Reply::error(400, "no");
    let rack = setup.start([call("c"), refused(), refused(), call("d"), Reply::text("Sent.")]).await;
    for _ in 0..2 {
        assert!(ask(&rack, json!({})).await.error.is_some());
    }
    ask(&rack, json!({})).await.expect("I send it.\n\nSent.");
    let asked = rack.upstream.asked();
    assert_eq!((roles(&asked[2]), roles(&asked[3])), (RESUMED.to_vec(), vec!["user"]));
    assert_eq!(sent.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn b15_a_call_that_was_required_is_not_required_again() {
    let (setup, sent) = sender(ToolPolicy::new());
    let rack = setup.start([call("c"), Reply::error(400, "no"), Reply::text("Sent.")]).await;
    let required = json!({"tool_choice": "required"});
    assert!(ask(&rack, required.clone()).await.error.is_some());
    ask(&rack, required).await.expect("Sent.");
    let asked = rack.upstream.asked();
    assert_eq!(asked[0].body["tool_choice"], "required");
    assert_eq!((&asked[2].body["tool_choice"], sent.load(Ordering::SeqCst)), (&Value::Null, 1));
}

#[tokio::test]
async fn b15_a_turn_that_goes_on_ends_with_calls_of_the_client_too() {
    let (setup, sent) = sender(ToolPolicy::new());
    let weather = Answer::new().call("w", "weather", &json!({"city": "Oslo"}));
    let rack = setup.start([call("c"), Reply::error(400, "no"), weather.into(), Reply::text("Rain.")]).await;
    let tools = json!({"tools": [client_tool("weather")]});
    assert!(ask(&rack, tools.clone()).await.error.is_some());
    let reported = ask(&rack, tools.clone()).await;
    assert_eq!(reported.calls[0]["function"]["name"], "weather");
    let messages = json!([
        user("Send it."),
        {"role": "assistant", "content": null, "tool_calls": reported.calls},
        {"role": "tool", "tool_call_id": reported.calls[0]["id"], "content": "rain"},
    ]);
    ask(&rack, json!({"messages": messages, "tools": tools["tools"]})).await.expect("Rain.");
    let asked = rack.upstream.asked();
    assert_eq!(roles(&asked[3]), ["user", "assistant", "tool", "assistant", "tool"]);
    assert_eq!(sent.load(Ordering::SeqCst), 1);
}

/// The answer of a turn that has gone on is what a client continues by its id.
#[tokio::test]
async fn b15_a_response_of_a_turn_that_goes_on_has_all_of_its_rounds() {
    let (setup, sent) = sender(ToolPolicy::new());
    let replies = [call("c"), Reply::error(400, "no"), Reply::text("Sent."), Reply::text("Yes.")];
    let rack = setup.start(replies).await;
    let respond = async |body: Value| -> Value {
        let sending = rack.client.post(rack.url("/v1/responses")).json(&body).send();
        within(sending).await.unwrap().json().await.unwrap()
    };
    let first = json!({"model": "m", "input": "Send it."});
    assert!(respond(first.clone()).await["error"].is_object());
    let second = respond(first).await;
    respond(json!({"model": "m", "input": "Sure?", "previous_response_id": second["id"]})).await;
    let asked = rack.upstream.asked();
    assert_eq!(roles(&asked[3]), ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(sent.load(Ordering::SeqCst), 1);
}
