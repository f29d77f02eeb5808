//! Documents in messages, as the program reads them.

use std::sync::{Arc, Mutex};

use axum::{Json, Router, routing};
use serde_json::{Value, json};

use super::program::{Rack, client};
use crate::p_documents_cli::pdf;

/// Base64 of a text whose length is made a multiple of 3 by line ends at its end.
fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = format!("{text}{}", "\n".repeat((3 - text.len() % 3) % 3));
    let digits = text.as_bytes().chunks(3).flat_map(|three| {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[bits >> shift & 63]))
    });
    digits.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b14_the_text_of_a_pdf_in_a_message_reaches_a_local_model_in_every_api() {
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let list = || async { Json(json!({"data": [{"id": "m", "owned_by": "llamacpp"}]})) };
    let seen = Arc::clone(&asked);
    let answer = move |Json(body): Json<Value>| async move {
        seen.lock().unwrap().push(body);
        let message = json!({"role": "assistant", "content": "75."});
        Json(json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    };
    let routes = Router::new()
        .route("/v1/models", routing::get(list))
        .route("/v1/chat/completions", routing::post(answer));
    tokio::spawn(async move { axum::serve(listener, routes).await });

    let rack = Rack::new("", "").with_variable("TOOLRACK_UPSTREAM", &base);
    rack.done(&["user", "add", "hop"]);
    let ((_, hop), server, client) = (rack.key("hop", &[]), rack.serve(), client());
    let good = base64(&pdf("Steep it at 75 degrees.", "q Q"));
    let endless = base64(&pdf("Green tea.", "/X Do"));
    let url = |data: &str| format!("data:application/pdf;base64,{data}");
    let parts = |data: &str| {
        let chat = json!({"messages": [{"role": "user", "content": [
            {"type": "file", "file": {"filename": "tea.pdf", "file_data": url(data)}}]}]});
        let responses = json!({"input": [{"role": "user", "content": [
            {"type": "input_file", "filename": "tea.pdf", "file_data": url(data)}]}]});
        let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
        let anthropic = json!({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": [
            {"type": "document", "title": "tea.pdf", "source": source}]}]});
        let inline =
            json!({"inlineData": {"mimeType": "application/pdf", "data": data, "displayName": "tea.pdf"}});
        let gemini = json!({"contents": [{"role": "user", "parts": [inline]}]});
        [
            ("/v1/chat/completions", chat),
            ("/v1/responses", responses),
            ("/v1/messages", anthropic),
            ("/v1beta/models/m:generateContent", gemini),
        ]
    };
    let data = [
        (&good, ["[page 1]", "Steep it at 75 degrees."]),
        (&endless, ["tea.pdf", "not shown: this PDF cannot be read"]),
    ];
    for (data, expected) in data {
        for (path, body) in parts(data) {
            let answer = server.post(&client, path, &hop, &body).send().await.unwrap();
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            assert!(status == 200 && text.contains("75."), "{path}: {status} {text}");
            let sent = asked.lock().unwrap().pop().unwrap()["messages"].to_string();
            assert!(
                expected.iter().all(|expected| sent.contains(expected)) && !sent.contains("JVBERi"),
                "{path}: {sent}"
            );
        }
    }
}
