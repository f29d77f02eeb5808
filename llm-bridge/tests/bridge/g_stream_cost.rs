//! What a streamed token costs in the whole server, from the model server's bytes to the client's: requirement G13.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use llm_bridge::{
    server::{self, ServerSettings},
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};
use registry_core::{Caller, Permission, Registry, store::MemoryStore};
use tokio_util::sync::CancellationToken;

/// Reads the head of an HTTP message; how long its body is.
fn read_head(stream: &mut impl BufRead) -> usize {
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    length
}

/// A model server that answers once, with so many tokens, each in a packet of its own.
fn model_server(tokens: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut stream = loop {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let length = read_head(&mut reader);
            reader.read_exact(&mut vec![0; length]).unwrap();
            if length > 0 {
                break stream;
            }
            // The pages by which servers are recognised.
            stream
                .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .unwrap();
        };
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            .unwrap();
        for token in 0..tokens {
            let chunk = r#""id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"f""#;
            let choice = format!(
                r#"{{"index":0,"delta":{{"content":"word{token} "}},"logprobs":null,"finish_reason":null}}"#
            );
            stream.write_all(format!("data: {{{chunk},\"choices\":[{choice}]}}\n\n").as_bytes()).unwrap();
            thread::sleep(Duration::from_micros(500));
        }
        let end =
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        stream.write_all(end.as_bytes()).unwrap();
    });
    base
}

/// How many allocations the server makes in an answer of so many tokens.
fn allocations(path: &'static str, body: &'static str, tokens: usize) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (done, is_done) = tokio::sync::oneshot::channel();
    let measured = || {
        runtime.block_on(async {
            let registry = Registry::builder().without_compiled().build().unwrap();
            let upstream = Upstream::http(&model_server(tokens), None, Duration::from_secs(20)).unwrap();
            let backend = Backend::new(registry, upstream, ChatSettings::default());
            let settings = ServerSettings::new(Caller::new("ada", Permission::Owner), std::sync::Arc::new(MemoryStore::default()));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(server::serve(listener, backend, settings, CancellationToken::new()));
            thread::spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                let length = body.len();
                let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all((head + body).as_bytes()).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                done.send(answer).unwrap();
            });
            is_done.await.unwrap()
        })
    };
    let mut answer = String::new();
    let made = allocation_counter::measure(|| answer = measured()).count_total;
    let last = format!("word{} ", tokens - 1);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(&last), "{answer}");
    made
}

#[test]
fn g13_a_streamed_token_makes_few_allocations_in_the_whole_server() {
    const MOST: u64 = 8;
    let chat = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Go."}]}"#;
    let message =
        r#"{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"Go."}]}"#;
    for (path, body) in [("/v1/chat/completions", chat), ("/v1/messages", message)] {
        let (few, many) = (allocations(path, body, 100), allocations(path, body, 500));
        let each = many.saturating_sub(few) / 400;
        println!("allocations of one token at {path}: {each}");
        assert!(each <= MOST, "{path}: one token makes {each} allocations, more than {MOST}");
    }
}
