//! Clients that ask for streams and read nothing of them, before a model server that writes without end: row A19.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    http::header,
    routing::{get, post},
};
use futures_util::stream;
use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

use super::program::Rack;

const READERS: usize = 24;
/// How much memory one of them may take, in KiB; of an unbounded stream it was 13 MiB and more.
const MOST: u64 = 4 * 1024;

/// A model server whose answers have no end: its address, and how much it could send, in bytes.
async fn endless(text: &str) -> (String, Arc<AtomicUsize>) {
    let event = json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
    let (event, sent) = (Bytes::from(format!("data: {event}\n\n")), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&sent);
    let answer = move || async move {
        let events = stream::repeat_with(move || {
            counted.fetch_add(event.len(), Ordering::Relaxed);
            Ok::<_, Infallible>(event.clone())
        });
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events))
    };
    let models = || async { Json(json!({"object": "list", "data": [{"id": "m", "object": "model"}]})) };
    let router = Router::new().route("/v1/models", get(models)).route("/v1/chat/completions", post(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (base, sent)
}

/// The memory of a process, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim_end().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a19_clients_that_do_not_read_take_little_memory_however_much_the_model_writes() {
    for size in [400, 20_000, 200_000] {
        let (base, sent) = endless(&"x".repeat(size)).await;
        let rack = Rack::new("", "").with_variable("TOOLRACK_UPSTREAM", &base);
        let serving = rack.serve();
        let address = serving.base.strip_prefix("http://").unwrap();
        let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Go."}]}"#;
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let idle = memory(serving.id());
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let mut reader = TcpStream::connect(address).await.unwrap();
            reader.write_all(request.as_bytes()).await.unwrap();
            readers.push(reader);
        }
        let (began, mut before, mut still, mut peak) = (Instant::now(), 0, 0, 0);
        while still < 10 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            peak = peak.max(memory(serving.id()));
            let now = sent.load(Ordering::Relaxed);
            still = if now == before && now > 0 { still + 1 } else { 0 };
            before = now;
            assert!(
                began.elapsed() < Duration::from_secs(100),
                "the model server is read although nobody reads"
            );
        }
        let one = (peak - idle) / READERS as u64;
        println!("texts of {size} bytes: {one} KiB a reader, {} KiB sent to each", before / READERS / 1024);
        assert!(one < MOST, "a reader that does not read takes {one} KiB");
    }
}
