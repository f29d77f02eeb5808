//! A collector of traces that hangs, answers without end, is away or sends on: requirement B21.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use llm_bridge::traces::{TraceSettings, Traces};
use registry_core::{ToolPolicy, ToolResult};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::support::{Log, Setup, until, within};

/// What it does with each request.
#[derive(Clone, Copy, Debug)]
enum Does {
    Hang,
    EndlessHead,
    EndlessBody,
    Break,
    Redirect,
}

#[derive(Clone, Default)]
struct Seen {
    requests: Arc<AtomicUsize>,
    written: Arc<AtomicUsize>,
    /// Whether this server has left.
    was_left: Arc<AtomicBool>,
    /// Requests that came where it sends on to.
    elsewhere: Arc<AtomicUsize>,
}

async fn answer(mut stream: TcpStream, does: Does, elsewhere: &str, seen: &Seen) -> std::io::Result<()> {
    let mut buffer = [0; 64 << 10];
    if stream.read(&mut buffer).await? == 0 {
        return Ok(());
    }
    seen.requests.fetch_add(1, Ordering::Relaxed);
    let (head, more) = match does {
        Does::Hang => loop {
            if stream.read(&mut buffer).await? == 0 {
                return Ok(());
            }
        },
        Does::Break => return Ok(()),
        Does::Redirect => {
            let head = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n"
            );
            return stream.write_all(head.as_bytes()).await;
        }
        Does::EndlessHead => ("HTTP/1.1 200 OK\r\n", format!("x: {}\r\n", "y".repeat(1000))),
        Does::EndlessBody => ("HTTP/1.1 200 OK\r\n\r\n", "z".repeat(64 << 10)),
    };
    stream.write_all(head.as_bytes()).await?;
    loop {
        stream.write_all(more.as_bytes()).await?;
        seen.written.fetch_add(more.len(), Ordering::Relaxed);
    }
}

/// Its address.
async fn collector(does: Does, seen: &Seen) -> String {
    let (listener, other) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let address = |listener: &TcpListener| format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (base, elsewhere) = (address(&listener), address(&other));
    let counted = Arc::clone(&seen.elsewhere);
    tokio::spawn(async move {
        while other.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let seen = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (seen, elsewhere) = (seen.clone(), elsewhere.clone());
            tokio::spawn(async move {
                let _ = answer(stream, does, &elsewhere, &seen).await;
                seen.was_left.store(true, Ordering::Relaxed);
            });
        }
    });
    base
}

/// Serves before such a collector until it was asked so many times, and gives what was logged of the traces.
async fn serves(does: Does, requests: usize) -> (Seen, Vec<String>) {
    let (log, seen) = (Log::start(), Seen::default());
    let settings = TraceSettings {
        endpoint: collector(does, &seen).await,
        headers: vec![("x-api-key".to_owned(), "of-the-collector".to_owned())],
        timeout: Duration::from_millis(100),
        service: "rack".to_owned(),
        content: true,
        sample: 1.0,
    };
    let traces = Traces::start(settings).unwrap();
    let setup = Setup::bare()
        .plain_tool("look", ToolPolicy::new(), |_| async { Ok(ToolResult::new("x".repeat(10_000))) });
    let rack = setup.with(|setup| setup.traces = Some(traces)).start([]).await;
    let call = async || {
        let began = Instant::now();
        let body = json!({"tool_name": "look", "arguments": {}});
        let reply = within(rack.client.post(rack.url("/execute")).json(&body).send()).await.unwrap();
        assert!(reply.status().is_success());
        assert!(reply.text().await.unwrap().contains("xxx"));
        let health = within(rack.client.get(rack.url("/healthz")).send()).await.unwrap();
        assert!(health.status().is_success());
        assert!(began.elapsed() < Duration::from_secs(5), "{does:?}: {:?}", began.elapsed());
    };
    within(async {
        while seen.requests.load(Ordering::Relaxed) < requests {
            call().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    // The last request is over, and a span after it waits.
    tokio::time::sleep(Duration::from_millis(500)).await;
    call().await;
    let of_traces = |line: &&str| line.contains("spans_");
    (seen, log.text().lines().filter(of_traces).map(str::to_owned).collect())
}

/// It is said once, however often it happens.
fn is_said_once(said: &[String]) {
    assert!(said.len() == 1 && said[0].contains("spans_not_taken"), "{said:?}");
    assert!(!said[0].contains("of-the-collector"), "{said:?}");
}

#[tokio::test]
async fn b21_a_collector_that_hangs_holds_up_nobody() {
    // Each request is tried three times.
    is_said_once(&serves(Does::Hang, 7).await.1);
}

#[tokio::test]
async fn b21_a_collector_whose_head_has_no_end_is_left() {
    let (seen, said) = serves(Does::EndlessHead, 7).await;
    is_said_once(&said);
    until(|| seen.was_left.load(Ordering::Relaxed)).await;
    assert!(seen.written.load(Ordering::Relaxed) < 64 << 20);
}

#[tokio::test]
async fn b21_a_collector_whose_body_has_no_end_is_not_listened_to() {
    let (seen, said) = serves(Does::EndlessBody, 3).await;
    // It has said that it takes them.
    assert_eq!(said, [""; 0]);
    until(|| seen.was_left.load(Ordering::Relaxed)).await;
    assert!(seen.written.load(Ordering::Relaxed) < 64 << 20);
}

#[tokio::test]
async fn b21_a_collector_that_breaks_off_is_said_once() {
    is_said_once(&serves(Does::Break, 7).await.1);
}

#[tokio::test]
async fn b21_a_collector_sends_no_spans_elsewhere() {
    let (seen, said) = serves(Does::Redirect, 2).await;
    is_said_once(&said);
    assert_eq!(seen.elsewhere.load(Ordering::Relaxed), 0);
}
