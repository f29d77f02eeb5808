//! Clients that go away, servers that stop, readers that are slow.

use std::{sync::Arc, time::Duration};

use registry_core::{Caller, ErrorKind, Permission, ToolPolicy, ToolResult, guard::audit::Phase};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Act, Answer, Rack, Reply, Setup, Slow, text_event, until, user, within};

/// A tool that says `waiting` and then waits to be cancelled; `dropped` is notified when its future is gone.
fn waiting_tool(setup: Setup, dropped: &Arc<Notify>) -> Setup {
    struct OnDrop(Arc<Notify>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let dropped = Arc::clone(dropped);
    setup.plain_tool("wait", ToolPolicy::new(), move |context| {
        let guard = OnDrop(Arc::clone(&dropped));
        async move {
            let _guard = guard;
            context.progress(0.5, "waiting");
            std::future::pending::<()>().await;
            Ok(ToolResult::new(Value::Null))
        }
    })
}

fn wait_call() -> Reply {
    Answer::new().call("c", "wait", &json!({})).into()
}

#[tokio::test]
async fn b7_a_client_that_goes_away_closes_the_model_servers_connection() {
    let rack = Setup::new().start([Reply::stream([text_event("Once upon"), Act::Stall])]).await;
    let mut reading = rack.open().await;
    reading.read_to("Once upon").await;
    drop(reading);
    rack.upstream.client_gone().await;
}

#[tokio::test]
async fn b7_a_client_that_does_not_stream_and_goes_away_closes_it_too() {
    let started = Reply::body(200, "application/json", "{\"choices\":");
    let Reply::Raw { status, kind, mut acts } = started else { unreachable!() };
    acts.push(Act::Stall);
    let rack = Setup::new().start([Reply::Raw { status, kind, acts }]).await;
    let request = rack.client.post(rack.url("/v1/chat/completions"));
    let request = request.json(&json!({"model": "m", "messages": [user("Go.")]})).send();
    tokio::select! {
        reply = request => panic!("{reply:?}"),
        () = until(|| !rack.upstream.asked().is_empty()) => {}
    }
    rack.upstream.client_gone().await;
}

#[tokio::test]
async fn b7_a_client_that_goes_away_cancels_the_running_tool() {
    let dropped = Arc::new(Notify::new());
    let rack = waiting_tool(Setup::bare(), &dropped).start([wait_call()]).await;
    let mut reading = rack.open().await;
    let status = reading.read_to("call_status").await;
    assert_eq!(status["x_toolrack"]["progress"], 0.5);
    drop(reading);
    within(dropped.notified()).await;
    until(|| rack.outcomes().len() == 1).await;
    let record = &rack.outcomes()[0];
    assert_eq!((record.error, record.success), (Some(ErrorKind::Cancelled), Some(false)));
    assert_eq!(rack.audit()[0].phase, Phase::Intent);
    assert_eq!(rack.upstream.asked().len(), 1, "the model is not asked again");
}

#[tokio::test]
async fn b7_the_time_limit_cancels_the_running_tool_and_says_so() {
    for stream in [true, false] {
        let dropped = Arc::new(Notify::new());
        let rack = waiting_tool(Setup::bare(), &dropped)
            .chat(|chat| chat.limits.max_seconds = 1)
            .start([wait_call()])
            .await;
        let reported = rack.ask(stream).await;
        assert_eq!(reported.finish.as_deref(), Some("length"));
        assert!(reported.content.contains("longer than 1 s"), "{}", reported.content);
        within(dropped.notified()).await;
        let finished = reported.details_of("call_finished");
        assert_eq!(finished.len(), 1, "a page would show it running for ever: {:?}", reported.details);
        assert_eq!(rack.outcomes()[0].error, Some(ErrorKind::Cancelled));
    }
}

/// What a tool leaves behind on a task of its own must not hold the answer open.
#[tokio::test]
async fn b7_a_tool_that_keeps_its_context_does_not_hold_the_stream_open() {
    for stream in [true, false] {
        let rack = Setup::bare()
            .plain_tool("spawn", ToolPolicy::new(), |context| async move {
                tokio::spawn(async move {
                    std::future::pending::<()>().await;
                    context.status("never");
                });
                Ok(ToolResult::new("started"))
            })
            .start([Answer::new().call("c", "spawn", &json!({})).into(), Answer::text("Done.").into()])
            .await;
        rack.ask(stream).await.expect("Done.");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn b7_a_tool_that_blocks_its_thread_does_not_hold_the_stream_open() {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let rack = Setup::bare()
        .plain_tool("block", ToolPolicy::new(), move |_| {
            let blocked = Arc::clone(&blocked);
            async move {
                let _ = blocked.lock().unwrap().recv_timeout(Duration::from_secs(30));
                Ok(ToolResult::new("late"))
            }
        })
        .chat(|chat| chat.limits.max_seconds = 1)
        .start([Answer::new().call("c", "block", &json!({})).into()])
        .await;
    let reported = rack.ask(true).await;
    assert!(reported.content.contains("longer than 1 s") && reported.done);
    drop(release);
}

#[tokio::test]
async fn b7_a_server_that_stops_lets_answers_finish() {
    let go = Arc::new(Notify::new());
    let reply = Reply::stream([
        text_event("One, "),
        Act::Wait(Arc::clone(&go)),
        text_event("two."),
        Act::Send(
            b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n".to_vec(),
        ),
    ]);
    let mut rack = Setup::new().start([reply]).await;
    let mut reading = rack.open().await;
    reading.read_to("One").await;
    rack.stop.cancel();
    until(|| std::net::TcpStream::connect(rack.address).is_err()).await;
    go.notify_one();
    let reported = reading.rest().await;
    assert!(reported.content.ends_with("two.") && reported.done, "{reported:?}");
    rack.stopped().await;
}

#[tokio::test]
async fn b7_a_server_that_is_to_stop_goes_on_for_a_while_and_sends_balancers_elsewhere() {
    let mut rack = Setup::new()
        .with(|setup| setup.drain = Duration::from_secs(2))
        .start([Reply::text("One."), Reply::text("Two.")])
        .await;
    let ready = async || within(rack.client.get(rack.url("/readyz")).send()).await.unwrap();
    let before = ready().await;
    assert_eq!((before.status().as_u16(), before.headers().get("connection")), (200, None));
    assert_eq!(before.json::<Value>().await.unwrap(), json!({"status": "ready"}));
    rack.stop.cancel();
    let draining = within(async {
        loop {
            let answer = ready().await;
            if answer.status() == 503 {
                return answer;
            }
        }
    })
    .await;
    assert_eq!(draining.headers()["connection"], "close");
    assert_eq!(draining.json::<Value>().await.unwrap()["error"]["type"], "server_stopping");
    assert_eq!(rack.ask(false).await.content, "One.", "a balancer has not noticed yet");
    rack.stopped().await;
}

#[tokio::test]
async fn b7_a_server_that_stops_ends_open_streams_after_the_grace() {
    let dropped = Arc::new(Notify::new());
    let mut rack = waiting_tool(Setup::bare(), &dropped)
        .with(|setup| setup.grace = Duration::from_millis(100))
        .start([Reply::stream([text_event("Once upon"), Act::Stall]), wait_call()])
        .await;
    let mut one = rack.open().await;
    one.read_to("Once upon").await;
    let mut other = rack.open().await;
    other.read_to("call_status").await;
    rack.stop.cancel();
    for reading in [one, other] {
        let reported = reading.rest().await;
        assert_eq!(reported.error.as_ref().unwrap()["type"], "server_stopping", "{reported:?}");
    }
    rack.stopped().await;
    assert_eq!(rack.outcomes().len(), 1, "what was cancelled has its record before the program ends");
    rack.upstream.client_gone().await;
}

#[tokio::test]
async fn b7_a_server_that_stops_answers_who_waits_for_a_whole_reply() {
    let rack = Setup::new()
        .with(|setup| setup.grace = Duration::from_millis(100))
        .start([Reply::Raw { status: 200, kind: "application/json", acts: vec![Act::Stall] }])
        .await;
    let (reported, ()) = tokio::join!(rack.ask(false), async {
        until(|| !rack.upstream.asked().is_empty()).await;
        rack.stop.cancel();
    });
    assert_eq!((reported.status, &reported.error.unwrap()["type"]), (503, &json!("server_stopping")));
    rack.upstream.client_gone().await;
}

fn streamed() -> Value {
    json!({"model": "m", "messages": [user("Go.")], "stream": true})
}

/// Waits until the model server can send no more, because nobody takes it.
async fn until_held_up() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// A server that is being stopped, and a client that has taken nothing of all that the model has written.
async fn stopping_before_a_slow_reader() -> (Rack, Slow) {
    let text = "x".repeat(10_000);
    let rack = Setup::new()
        .with(|setup| setup.grace = Duration::from_millis(100))
        .start([Reply::stream((0..300).map(|_| text_event(&text)).chain([Act::Stall]))])
        .await;
    let slow = Slow::ask(rack.address, &streamed()).await;
    until(|| !rack.upstream.asked().is_empty()).await;
    until_held_up().await;
    rack.stop.cancel();
    (rack, slow)
}

/// A reader that holds its connection and takes nothing must not keep the server from stopping.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_a_client_that_does_not_read_does_not_keep_the_server_from_stopping() {
    let (mut rack, slow) = stopping_before_a_slow_reader().await;
    rack.stopped().await;
    drop(slow);
}

/// It always finds something to be sent, and is told all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_a_client_that_is_slower_than_the_model_is_told_that_the_server_stops() {
    let (_rack, slow) = stopping_before_a_slow_reader().await;
    until_held_up().await;
    let reported = slow.read().await;
    assert_eq!(reported.error.as_ref().unwrap()["type"], "server_stopping", "{:?}", reported.error);
}

/// It would keep a slot of the model server for as long as it likes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a19_the_turn_of_a_client_that_does_not_read_ends_after_a_time() {
    let text = "x".repeat(10_000);
    let rack = Setup::new()
        .with(|setup| setup.write_timeout = Duration::from_millis(300))
        .start([Reply::stream((0..100).map(|_| text_event(&text)).chain([Act::Stall]))])
        .await;
    let slow = Slow::ask(rack.address, &streamed()).await;
    rack.upstream.client_gone().await;
    drop(slow);
}

/// It is all in memory until it is read, although the server is done with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a19_an_answer_that_is_not_read_has_its_users_share() {
    const LENGTH: usize = 3 << 20;
    let rack = Setup::new()
        // A quarter of these is what one user may have under way.
        .with(|setup| (setup.max_connections, setup.caller) = (4, Caller::new("ada", Permission::User)))
        .start([Reply::text("Long.")])
        .await;
    let send = async |request: reqwest::RequestBuilder| {
        let answer = within(request.send()).await.unwrap();
        (answer.status().as_u16(), within(answer.text()).await.unwrap())
    };
    let chats =
        rack.client.post(rack.url("/api/chats")).json(&json!({"title": "Long", "settings": {"model": "m"}}));
    let chat: Value = serde_json::from_str(&send(chats).await.1).unwrap();
    let chat = format!("/api/chats/{}", chat["id"].as_str().unwrap());
    let said = json!({"content": "x".repeat(LENGTH)});
    assert_eq!(send(rack.client.post(rack.url(&format!("{chat}/turn"))).json(&said)).await.0, 202);
    let mut slow = Slow::get(rack.address, &chat).await;
    assert_eq!(slow.take(12).await, "HTTP/1.1 200");
    until_held_up().await;
    assert_eq!(send(rack.client.get(rack.url("/api/tools"))).await.0, 429);
    assert_eq!(send(rack.client.get(rack.url("/healthz"))).await.0, 200);
    slow.take(LENGTH).await;
    until_held_up().await;
    assert_eq!(send(rack.client.get(rack.url("/api/tools"))).await.0, 200);
}

/// Nobody has to read while there is nothing to read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a19_a_silent_model_is_not_a_client_that_does_not_read() {
    let rack = Setup::new()
        .with(|setup| setup.write_timeout = Duration::from_millis(100))
        .start([Reply::stream([
            text_event("One, "),
            Act::Pause(Duration::from_millis(600)),
            text_event("two."),
            Act::Send(b"data: [DONE]\n\n".to_vec()),
        ])])
        .await;
    rack.ask(true).await.expect("One, two.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_a_slow_reader_loses_no_text() {
    let words: Vec<String> = (0..2000).map(|number| format!("word {number}; ").repeat(20)).collect();
    let answer = words.iter().fold(Answer::new(), |answer, word| answer.say(word));
    let first = Answer::new().call("c", "chatty", &json!({}));
    let rack = Setup::bare()
        .plain_tool("chatty", ToolPolicy::new(), |context| async move {
            for step in 0..500 {
                context.status(format!("step {step}"));
            }
            Ok(ToolResult::new("said"))
        })
        .start([first.into(), answer.into()])
        .await;
    let slow = Slow::ask(rack.address, &streamed()).await;
    until_held_up().await;
    let reported = slow.read().await;
    assert!(reported.content == words.concat(), "text was lost");
    assert_eq!((reported.finish.as_deref(), reported.done), (Some("stop"), true));
    assert_eq!(reported.details_of("call_finished").len(), 1);
    assert!(!reported.details_of("call_status").is_empty());
}
