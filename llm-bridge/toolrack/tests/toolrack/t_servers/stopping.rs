//! Servers that are stopped, and whether they are ready.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::program::{Rack, Serving, client, mock};

async fn ready(server: &Serving) -> (u16, Value) {
    let answer = client().get(format!("{}/readyz", server.base)).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn b10_a_server_whose_store_is_gone_is_not_ready() {
    let rack = Rack::new("", &mock("count.free", ""));
    let server = rack.serve();
    assert_eq!(ready(&server).await, (200, serde_json::json!({"status": "ready"})));
    let asked =
        |more: &[&str]| rack.run(&[&["health", "--server", &server.base], more].concat()).status.code();
    assert_eq!((asked(&[]), asked(&["--ready"])), (Some(0), Some(0)));
    std::fs::remove_file(rack.path(".toolrack/toolrack.db")).unwrap();
    let began = Instant::now();
    let (status, answer) = loop {
        match ready(&server).await {
            (200, _) => assert!(began.elapsed() < Duration::from_secs(10), "it still says that it is ready"),
            unready => break unready,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!((status, answer["error"]["type"].as_str()), (503, Some("store_unavailable")));
    assert_eq!((asked(&[]), asked(&["--ready"])), (Some(0), Some(1)));
}

#[tokio::test]
async fn b7_a_server_whose_terminal_is_closed_ends_as_it_does_when_it_is_stopped() {
    let rack = Rack::new("", &mock("count.free", ""));
    let mut server = rack.serve();
    assert_eq!(ready(&server).await.0, 200);
    let done = Command::new("kill").args(["-HUP", &server.id().to_string()]).status().unwrap();
    assert!(done.success());
    let began = Instant::now();
    while server.runs() {
        assert!(began.elapsed() < Duration::from_secs(20), "it still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // What it has said last is read by another thread.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(server.log().contains("Stopping"), "{}", server.log());
}
