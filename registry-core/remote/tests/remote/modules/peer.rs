//! A module for tests, which answers as the test wants: well, badly, slowly, or not at all.

use std::{
    collections::HashMap,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A request that came in.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
}

type Talk = Arc<dyn Fn(TcpStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What is answered.
#[derive(Clone)]
pub(crate) enum Answer {
    /// A status, more headers, and a body.
    Http(u16, &'static str, String),
    /// The same after a while.
    Later(Duration, String),
    /// The connection is taken over.
    Talk(Talk),
}

impl Answer {
    pub(crate) fn json(body: &Value) -> Self {
        Self::Http(200, "", body.to_string())
    }

    pub(crate) fn talk<F: Future<Output = ()> + Send + 'static>(
        talk: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::Talk(Arc::new(move |stream| Box::pin(talk(stream))))
    }
}

/// A module that is running.
pub(crate) struct Peer {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    manifest: Arc<Mutex<Answer>>,
    execute: Arc<Mutex<Answer>>,
    connections: Arc<AtomicUsize>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A tool of a manifest in the seed's form.
pub(crate) fn tool(name: &str, permission: &str) -> Value {
    json!({
        "name": name,
        "description": format!("Does {name}."),
        "required_permission": permission,
        "parameters": [{"name": "query", "type": "string", "description": "What for", "required": false}],
    })
}

pub(crate) fn manifest(name: &str, tools: &[Value]) -> Value {
    json!({"name": name, "description": "A module.", "version": "1.0.0", "tools": tools})
}

/// The answer to a call that went well.
pub(crate) fn done(result: impl Into<Value>) -> Value {
    json!({"tool_name": "x", "success": true, "result": result.into()})
}

impl Peer {
    /// A module with these tools, all of whose calls go well.
    pub(crate) async fn new(name: &str, tools: &[Value]) -> Self {
        Self::with(Answer::json(&manifest(name, tools)), Answer::json(&done("done"))).await
    }

    /// The same at an address where nobody listens yet.
    pub(crate) async fn at(address: SocketAddr, name: &str, tools: &[Value]) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        Self::listen(listener, Answer::json(&manifest(name, tools)), Answer::json(&done("done")))
    }

    pub(crate) async fn with(manifest: Answer, execute: Answer) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").await.unwrap(), manifest, execute)
    }

    fn listen(listener: TcpListener, manifest: Answer, execute: Answer) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (manifest, execute) = (Arc::new(Mutex::new(manifest)), Arc::new(Mutex::new(execute)));
        let connections = Arc::new(AtomicUsize::new(0));
        let (log, listed, ran, count) =
            (Arc::clone(&requests), Arc::clone(&manifest), Arc::clone(&execute), Arc::clone(&connections));
        let serving = tokio::spawn(async move {
            // Connections end with the server, as those of a process do.
            let mut running = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                running.spawn(serve(stream, Arc::clone(&log), Arc::clone(&listed), Arc::clone(&ran)));
            }
        });
        Self { url, requests, manifest, execute, connections, serving }
    }

    pub(crate) fn set_manifest(&self, answer: Answer) {
        *self.manifest.lock().unwrap() = answer;
    }

    pub(crate) fn set_tools(&self, name: &str, tools: &[Value]) {
        self.set_manifest(Answer::json(&manifest(name, tools)));
    }

    pub(crate) fn set_execute(&self, answer: Answer) {
        *self.execute.lock().unwrap() = answer;
    }

    /// The requests so far whose line begins so.
    pub(crate) fn requests(&self, begin: &str) -> Vec<Request> {
        self.requests
            .lock()
            .unwrap()
            .iter()
            .filter(|request| request.line.starts_with(begin))
            .cloned()
            .collect()
    }

    pub(crate) fn manifests_asked(&self) -> usize {
        self.requests("GET /manifest ").len()
    }

    pub(crate) fn calls(&self) -> Vec<Request> {
        self.requests("POST /execute ")
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(
    mut stream: TcpStream,
    log: Arc<Mutex<Vec<Request>>>,
    manifest: Arc<Mutex<Answer>>,
    execute: Arc<Mutex<Answer>>,
) {
    while let Some(request) = read(&mut stream).await {
        let is_call = request.line.starts_with("POST /execute ");
        log.lock().unwrap().push(request);
        let answer = if is_call { execute.lock().unwrap().clone() } else { manifest.lock().unwrap().clone() };
        let (status, headers, body) = match answer {
            Answer::Http(status, headers, body) => (status, headers, body),
            Answer::Later(pause, body) => {
                tokio::time::sleep(pause).await;
                (200, "", body)
            }
            Answer::Talk(talk) => return talk(stream).await,
        };
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
        if stream.write_all((head + &body).as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let mut lines = head.lines().map(str::to_owned);
            let line = lines.next().unwrap();
            let headers: HashMap<_, _> = lines
                .filter_map(|line| line.split_once(": ").map(|(k, v)| (k.to_lowercase(), v.to_owned())))
                .collect();
            let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
            while bytes.len() < end + 4 + length {
                if stream.read_buf(&mut bytes).await.ok()? == 0 {
                    return None;
                }
            }
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default();
            return Some(Request { line, headers, body });
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
