//! Clients that begin a request and never end it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Act, Rack, Reply, Setup, event, text_event, within};

const TIMEOUT: Duration = Duration::from_millis(400);

async fn rack() -> Rack {
    Setup::new().with(|setup| setup.request_timeout = TIMEOUT).start([Reply::text("Hi.")]).await
}

/// Sends the beginning of a request and then a byte now and then; what comes back until the server closes.
async fn dribble(rack: &Rack, begin: &str) -> (String, Duration) {
    let began = Instant::now();
    let (mut reader, mut writer) = TcpStream::connect(rack.address).await.unwrap().into_split();
    writer.write_all(begin.as_bytes()).await.unwrap();
    let sending = tokio::spawn(async move {
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(TIMEOUT / 8).await;
        }
    });
    let mut reply = Vec::new();
    // What is sent to a closed connection resets it.
    let _ = within(reader.read_to_end(&mut reply)).await;
    sending.abort();
    (String::from_utf8(reply).unwrap(), began.elapsed())
}

#[tokio::test]
async fn a_request_that_never_ends_holds_no_connection() {
    let rack = rack().await;
    let (reply, took) =
        dribble(&rack, "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-slow: ").await;
    assert!(took >= TIMEOUT && took < 10 * TIMEOUT, "{took:?}");
    assert!(!reply.contains("200 OK"), "{reply}");
    let began = Instant::now();
    let mut silent = TcpStream::connect(rack.address).await.unwrap();
    let _ = within(silent.read_to_end(&mut Vec::new())).await;
    assert!(began.elapsed() < 10 * TIMEOUT, "{:?}", began.elapsed());

    let head = |path: &str, kind: &str, length: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: {kind}\r\n{length}\r\n\r\n"
        )
    };
    let plain = "application/json";
    for (path, kind, message) in [
        ("/v1/chat/completions", plain, "/error/message"),
        ("/v1/responses", plain, "/error/message"),
        ("/v1/messages", plain, "/error/message"),
        ("/v1beta/models/m:generateContent", plain, "/error/message"),
        ("/api/chat", plain, "/error"),
        ("/v1/embeddings", plain, "/error/message"),
        ("/v1/audio/transcriptions", "multipart/form-data; boundary=b", "/error/message"),
        ("/execute", plain, "/error/message"),
        ("/mcp", plain, "/error/message"),
    ] {
        let begin = match path {
            "/execute" => head(path, kind, "transfer-encoding: chunked") + "5000\r\n{",
            _ => head(path, kind, "content-length: 1000") + "{",
        };
        let (reply, took) = dribble(&rack, &begin).await;
        assert!(took >= TIMEOUT && took < 10 * TIMEOUT, "{path}: {took:?}");
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {reply}"));
        assert!(head.starts_with("HTTP/1.1 408 ") && head.contains("connection: close"), "{path}: {head}");
        let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{path}: {body}"));
        assert!(
            body.pointer(message).is_some_and(|message| message.as_str().unwrap().contains("in time")),
            "{path}: {body}"
        );
    }
}

#[tokio::test]
async fn a_large_request_has_more_time_and_an_answer_is_waited_for() {
    let rack = Setup::new()
        .with(|setup| setup.request_timeout = TIMEOUT)
        .start([Reply::stream([
            Act::Pause(3 * TIMEOUT),
            text_event("Hi."),
            event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})),
        ])])
        .await;
    // In more time than a small one has, but not slowly: 64 KiB are worth four seconds.
    let body = format!(
        r#"{{"model": "m", "messages": [{{"role": "user", "content": "{}"}}]}}"#,
        "x".repeat(64 * 1024)
    );
    let (mut reader, mut writer) = TcpStream::connect(rack.address).await.unwrap().into_split();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let (first, last) = body.split_at(body.len() - 1);
    writer.write_all((head + first).as_bytes()).await.unwrap();
    tokio::time::sleep(2 * TIMEOUT).await;
    writer.write_all(last.as_bytes()).await.unwrap();
    let mut reply = String::new();
    within(reader.read_to_string(&mut reply)).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("Hi."), "{reply}");
}
