//! Requests of one session with the same id or progress token: each answer goes to its own request, and so does what is told of its progress;
//! none is lost.

use llm_bridge::server::Access;
use tokio::sync::Semaphore;

use super::{
    peer::{ERAS, Era, text},
    *,
};

/// A tool that says what it was given, as soon as it may.
fn repeats(may: &Arc<Semaphore>) -> Arc<dyn Handler> {
    let may = Arc::clone(may);
    handler_fn(move |_, arguments| {
        let may = Arc::clone(&may);
        async move {
            may.acquire().await.unwrap().forget();
            Ok(ToolResult::new(arguments["word"].clone()))
        }
    })
}

fn spec() -> ToolSpec {
    ToolSpec::new("repeat", json!({"type": "object", "properties": {"word": {"type": "string"}}}))
}

fn call(id: impl Into<Value>, word: &str) -> Value {
    let params = json!({"name": "repeat", "arguments": {"word": word}});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params})
}

/// The same, whose progress is to be told with this token.
fn told(id: &str, word: &str, token: impl Into<Value>) -> Value {
    let mut call = call(id, word);
    call["params"]["_meta"] = json!({"progressToken": token.into()});
    call
}

async fn said(response: reqwest::Response) -> String {
    let body = within(response.text()).await.unwrap();
    let data = body.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&body);
    text(&serde_json::from_str(data).unwrap())
}

/// A server with the tool, whose records are in the audit.
async fn served(may: &Arc<Semaphore>) -> (crate::t_access::Rack, String, Arc<MemoryAudit>) {
    let audit = Arc::new(MemoryAudit::new(1000));
    let registry = Registry::builder().without_compiled().audit(audit.clone()).build().unwrap();
    registry.register(spec(), ToolPolicy::new(), Some(repeats(may))).unwrap();
    let local = Caller::new("local", Permission::User);
    let rack = crate::t_access::Rack::start_with(Access::default(), local, registry, audit.clone()).await;
    let key = rack.user("default", "ada", Permission::User).await;
    (rack, key, audit)
}

async fn has_begun(audit: &MemoryAudit, calls: usize) {
    until(|| audit.records().iter().filter(|record| record.phase == Phase::Intent).count() == calls).await;
}

#[tokio::test]
async fn b3_an_id_in_use_is_refused_over_standard_input_and_output_and_the_answers_come() {
    let (rack, may) = (Rack::new(), Arc::new(Semaphore::new(0)));
    rack.add_with(spec(), ToolPolicy::new(), repeats(&may));
    for era in ERAS {
        let mut peer = rack.peer(era, json!({})).await;
        let params = |word: &str| json!({"name": "repeat", "arguments": {"word": word}});
        let id = peer.send("tools/call", params("first")).await;
        peer.repeat_id();
        assert_eq!(peer.send("tools/call", params("second")).await, id);
        let refused = peer.next().await;
        assert_eq!((refused.get("id"), &refused["error"]["code"]), (None, &json!(-32600)), "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("the id {id} still runs")), "{message}");
        may.add_permits(1);
        assert_eq!(text(&peer.answer(id).await), "first");
        // Once it is answered, the id may be used again, and once it is cancelled.
        may.add_permits(1);
        peer.repeat_id();
        assert_eq!(peer.send("tools/call", params("third")).await, id);
        assert_eq!(text(&peer.answer(id).await), "third");
        peer.repeat_id();
        let begun = rack.outcomes().len();
        peer.send("tools/call", params("fourth")).await;
        peer.write(
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
        )
        .await;
        until(|| rack.outcomes().len() > begun).await;
        may.add_permits(1);
        peer.repeat_id();
        peer.send("tools/call", params("fifth")).await;
        assert_eq!(text(&peer.answer(id).await), "fifth");
    }
}

#[tokio::test]
async fn b3_an_id_in_use_is_refused_over_http_and_the_answers_come() {
    let may = Arc::new(Semaphore::new(0));
    let (rack, key, audit) = served(&may).await;
    let [session, other] =
        [super::questions::session(&rack, &key).await, super::questions::session(&rack, &key).await];
    let post = |session: &str, body: &Value| {
        within(rack.post("/mcp", &key, body).header("mcp-session-id", session).send())
    };
    let first = post(&session, &call("a", "first")).await.unwrap();
    has_begun(&audit, 1).await;
    let refused = post(&session, &call("a", "second")).await.unwrap();
    assert_eq!(refused.status(), 400);
    let refused: Value = refused.json().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("a"), &json!(-32600)), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("the id a still runs"), "{refused}");
    // Another session has ids of its own.
    let elsewhere = post(&other, &call("a", "elsewhere")).await.unwrap();
    has_begun(&audit, 2).await;
    may.add_permits(2);
    assert_eq!(said(first).await, "first");
    assert_eq!(said(elsewhere).await, "elsewhere");
    // A client that gives all its requests one id, one after the other.
    for turn in 0..50 {
        may.add_permits(1);
        let word = format!("word {turn}");
        assert_eq!(said(post(&session, &call("a", &word)).await.unwrap()).await, word);
    }
    // An id stays in use when its client goes away, until the call ends or is cancelled.
    let calls = 2 + 50;
    drop(post(&session, &call("a", "left")).await.unwrap());
    has_begun(&audit, calls + 1).await;
    assert_eq!(post(&session, &call("a", "early")).await.unwrap().status(), 400);
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}});
    assert_eq!(post(&session, &cancelled).await.unwrap().status(), 202);
    until(|| audit.records().iter().filter(|r| r.phase == Phase::Outcome).count() == calls + 1).await;
    may.add_permits(1);
    assert_eq!(said(post(&session, &call("a", "last")).await.unwrap()).await, "last");
}

#[tokio::test]
async fn b7_a_progress_token_in_use_is_refused_over_standard_input_and_output() {
    let (rack, may) = (Rack::new(), Arc::new(Semaphore::new(0)));
    rack.add_with(spec(), ToolPolicy::new(), repeats(&may));
    let mut peer = rack.peer(Era::Legacy, json!({})).await;
    for (id, word, token) in
        [("a", "first", json!("t")), ("b", "second", json!("t")), ("c", "third", json!(1))]
    {
        peer.write(told(id, word, token)).await;
    }
    let refused = peer.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("b"), &json!(-32600)), "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("the progress token t still runs"), "{message}");
    may.add_permits(2);
    let answers = [peer.next().await, peer.next().await];
    assert!(answers.iter().any(|answer| text(answer) == "first"), "{answers:?}");
    // Once it is answered, the token may be used again.
    may.add_permits(1);
    peer.write(told("d", "fourth", "t")).await;
    assert_eq!(text(&peer.next().await), "fourth");
}

#[tokio::test]
async fn b7_a_progress_token_in_use_is_refused_over_http_and_progress_goes_to_its_own_call() {
    let may = Arc::new(Semaphore::new(0));
    let (rack, key, audit) = served(&may).await;
    let [session, other] =
        [super::questions::session(&rack, &key).await, super::questions::session(&rack, &key).await];
    let post = |session: &str, body: &Value| {
        within(rack.post("/mcp", &key, body).header("mcp-session-id", session).send())
    };
    let first = post(&session, &told("a", "first", "t")).await.unwrap();
    has_begun(&audit, 1).await;
    let refused = post(&session, &told("b", "second", "t")).await.unwrap();
    assert_eq!(refused.status(), 400);
    let refused: Value = refused.json().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("b"), &json!(-32600)), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("the progress token t still runs"));
    // The number is another token, and another session has tokens of its own; nor has the refused request kept its id.
    let number = post(&session, &told("b", "number", 1)).await.unwrap();
    let elsewhere = post(&other, &told("a", "elsewhere", "t")).await.unwrap();
    has_begun(&audit, 3).await;
    may.add_permits(3);
    assert_eq!(
        [said(first).await, said(number).await, said(elsewhere).await],
        ["first", "number", "elsewhere"]
    );
    // One after the other.
    for turn in 0..20 {
        may.add_permits(1);
        let word = format!("word {turn}");
        assert_eq!(said(post(&session, &told(&word, &word, "t")).await.unwrap()).await, word);
    }
}
