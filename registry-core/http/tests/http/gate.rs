//! A gate that is asked over HTTP: requirement T4.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use registry_core::{
    Caller, Conversation, Permission, Registry, ToolCall, ToolContext, ToolOutcome, ToolPolicy, ToolResult,
    ToolSpec,
    guard::{audit::MemoryAudit, gate::Verdict},
    handler_fn,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use toolrack_http::{HttpGate, Secret};

/// What the gate was asked: headers and body.
type Asked = Arc<Mutex<Vec<(HashMap<String, String>, String)>>>;

/// A gate that answers each question with this, to the byte; without an answer it says nothing.
async fn gate(answer: Option<String>) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://user:pass@{}/gate?token=hidden", listener.local_addr().unwrap());
    let asked = Asked::default();
    let kept = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (kept, answer) = (Arc::clone(&kept), answer.clone());
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                let (head, body) = loop {
                    if stream.read_buf(&mut bytes).await.unwrap() == 0 {
                        return;
                    }
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                    if body.len() == length.unwrap().parse::<usize>().unwrap() {
                        break (head.to_owned(), body.to_owned());
                    }
                };
                let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
                let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                kept.lock().unwrap().push((headers, body));
                match answer {
                    Some(answer) => drop(stream.write_all(answer.as_bytes()).await),
                    None => tokio::time::sleep(Duration::from_secs(60)).await,
                }
            });
        }
    });
    (url, asked)
}

fn http(status: &str, body: &str) -> Option<String> {
    let length = body.len();
    Some(format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"))
}

fn registry(gate: HttpGate) -> (Registry, Arc<MemoryAudit>) {
    let audit = Arc::new(MemoryAudit::new(16));
    let builder = Registry::builder().without_compiled().audit(audit.clone()).gate(Arc::new(gate));
    let registry = builder.build().unwrap().for_tenant("acme");
    let schema = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "pin": {"type": "string", "writeOnly": true},
    }});
    let spec = ToolSpec { version: Some("1.2.0".into()), ..ToolSpec::new("files.act", schema) };
    let policy = ToolPolicy { requires_gate: true, daily_limit: 7, ..ToolPolicy::new() };
    let handler = handler_fn(|_, _| async { Ok(ToolResult::new("ran")) });
    registry.register(spec, policy, Some(handler)).unwrap();
    (registry, audit)
}

fn ada(registry: &Registry) -> ToolContext {
    let hop = Caller::new("hop", Permission::Admin);
    registry
        .context(hop.on_behalf_of(Caller::new("ada", Permission::User)))
        .with_approval_wait(Duration::ZERO)
        .with_conversation(Conversation {
            user_message: Some("Go.".into()),
            chat_id: Some("c1".into()),
            kb_context: None,
            confidence: Some(0.5),
        })
}

async fn call(registry: &Registry) -> ToolOutcome {
    let call = ToolCall::new("files.act", json!({"path": "a", "pin": "1234"})).with_id("k1");
    registry.execute(&ada(registry), call).await
}

#[tokio::test]
async fn t4_a_gate_over_http_gets_the_whole_call_and_its_answer_counts() {
    for (body, verdict, said) in [
        (json!({"answer": "approved"}), Verdict::Approved, "ran"),
        (json!({"answer": "approved", "reason": "well", "more": 1}), Verdict::Approved, "ran"),
        (json!({"answer": "blocked", "reason": "Not on Sundays."}), Verdict::Blocked, "Not on Sundays."),
        (json!({"answer": "blocked"}), Verdict::Blocked, "127.0.0.1 does not allow this call."),
        (
            json!({"answer": "blocked", "reason": " "}),
            Verdict::Blocked,
            "127.0.0.1 does not allow this call.",
        ),
        (json!({"answer": "blocked", "reason": "x".repeat(9000)}), Verdict::Blocked, "xxx…"),
        (json!({"answer": "pending"}), Verdict::Pending, "approve this call"),
    ] {
        let (url, asked) = gate(http("200 OK", &body.to_string())).await;
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let (registry, audit) = registry(HttpGate::new(&url).unwrap().signed(secret.clone()));
        let outcome = call(&registry).await;
        let text = outcome.for_model();
        let cut = text.trim_matches('x') == "…" && text.len() == 2003;
        assert!(text.contains(said) || said == "xxx…" && cut, "{body}: {text}");
        let decision = audit.records().pop().unwrap().decision.unwrap();
        let by = if verdict == Verdict::Pending { "person" } else { "127.0.0.1" };
        assert_eq!((decision.verdict, decision.by.as_str()), (verdict, by), "{body}");

        let [(headers, body)] = asked.lock().unwrap().clone().try_into().unwrap();
        let timestamp = headers["webhook-timestamp"].parse().unwrap();
        assert!(secret.verify(&headers["webhook-id"], timestamp, &body, &headers["webhook-signature"]));
        let question: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(question["call_id"], "k1");
        assert_eq!(question["arguments"], json!({"path": "a", "pin": "(secret)"}));
        assert_eq!(
            question["caller"],
            json!({"user": "ada", "level": "user", "via": "hop", "tenant": "acme"})
        );
        assert_eq!(
            question["conversation"],
            json!({"user_message": "Go.", "chat_id": "c1", "kb_context": null, "confidence": 0.5})
        );
        assert_eq!(
            (&question["tool"]["tool_name"], &question["tool"]["version"]),
            (&json!("files.act"), &json!("1.2.0"))
        );
        assert_eq!(
            (&question["policy"]["daily_limit"], &question["policy"]["effect"]),
            (&json!(7), &json!("read"))
        );
    }
}

#[tokio::test]
async fn t4_a_gate_over_http_that_fails_lets_the_call_pass_or_not_as_it_is_declared() {
    let long = format!("{{\"answer\": \"approved\", \"reason\": \"{}\"}}", "x".repeat(70_000));
    for answer in [
        http("500 No", r#"{"answer": "approved"}"#),
        http("404 Not Found", ""),
        http("200 OK", ""),
        http("200 OK", "approved"),
        http("200 OK", r#"{"answer": "Approved"}"#),
        http("200 OK", r#"{"answer": "maybe"}"#),
        http("200 OK", r#"{"answer": true}"#),
        http("200 OK", "[]"),
        http("200 OK", &long),
        Some("HTTP/1.1 302 Found\r\nlocation: /gate\r\ncontent-length: 0\r\n\r\n".to_owned()),
        Some("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"answer\": \"approved\"}".to_owned()),
        Some("hello\r\n\r\n".to_owned()),
        None,
    ] {
        let (url, asked) = gate(answer.clone()).await;
        let began = Instant::now();
        for closed in [false, true] {
            let gate = HttpGate::new(&url).unwrap().named("the gate").unwrap().failing_closed(closed);
            let (registry, audit) = registry(gate);
            let outcome = call(&registry).await;
            assert_eq!(outcome.is_success(), !closed, "{answer:?}: {}", outcome.for_model());
            let decision = audit.records().pop().unwrap().decision.unwrap();
            let verdict = if closed { Verdict::Blocked } else { Verdict::Unanswered };
            assert_eq!((decision.verdict, decision.by.as_str()), (verdict, "the gate"), "{answer:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(8), "{answer:?} took {:?}", began.elapsed());
        // A redirect is not followed, and nothing is signed without a secret.
        let asked = asked.lock().unwrap();
        assert!(
            asked.len() == 2 && asked.iter().all(|(headers, _)| !headers.contains_key("webhook-signature"))
        );
    }
    // Nobody is there at all.
    let (registry, _) = registry(HttpGate::new("http://127.0.0.1:1/").unwrap().failing_closed(true));
    let outcome = call(&registry).await;
    assert!(outcome.for_model().contains("nothing is done without it"), "{}", outcome.for_model());
}

#[test]
fn t4_a_gate_has_an_http_url_and_a_name_of_its_own() {
    for (bad, said) in
        [("", "URL of a gate"), ("gate", "URL of a gate"), ("ftp://a/b", "ftp"), ("unix:/a", "unix")]
    {
        let fault = HttpGate::new(bad).unwrap_err().to_string();
        assert!(fault.contains(said) && fault.contains("https://HOST/PATH"), "{bad}: {fault}");
    }
    let gate = HttpGate::new("https://user:pass@gate.example/ask?token=hidden").unwrap();
    assert_eq!(format!("{gate:?}"), "HttpGate(gate.example)");
    // What the audit says of persons is said of no gate.
    for bad in ["", " ", "a\n", "user:ada", "rule:1", "person", "timeout", &"x".repeat(257)] {
        assert!(HttpGate::new("http://a").unwrap().named(bad).is_err(), "{bad:?}");
    }
    let named = HttpGate::new("http://person:8080/ask").unwrap();
    assert_eq!(format!("{named:?}"), "HttpGate(http://person)");
    assert!(HttpGate::new("http://person/").unwrap().named("personnel").is_ok());
}
