//! `toolrack dev`: programs that take over from one another under load. Cargo is a script, see `Rack::dev`; `llm-bridge/tests/dev` has the
//! real one. Requirement B18.

use std::{
    fs,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use axum::{Router, body::Body, response::IntoResponse, routing::any};
use futures_util::{StreamExt, stream};
use reqwest::{Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::program::{Rack, Serving, mock};

/// How many clients of each kind there are.
const CLIENTS: usize = 3;
/// Words of an answer of the model, one every 50 ms.
const WORDS: usize = 24;

fn reloads() -> usize {
    std::env::var("RELOADS").map_or(5, |number| number.parse().unwrap())
}

/// A model server whose answers take longer than a reload, until it is stopped.
async fn slow_model(stop: CancellationToken) -> String {
    let answer = || async {
        let chunk = |number: usize| {
            let chunk = match number {
                WORDS => "[DONE]".to_owned(),
                _ => json!({"choices": [{"index": 0, "delta": {"content": format!("w{number} ")},
                    "finish_reason": (number == WORDS - 1).then_some("stop")}]})
                .to_string(),
            };
            format!("data: {chunk}\n\n")
        };
        let chunks = stream::iter(0..=WORDS).then(move |number| async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok::<_, std::convert::Infallible>(chunk(number))
        });
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(chunks)).into_response()
    };
    let models = || async { axum::Json(json!({"data": [{"id": "slow"}]})) };
    let router = Router::new().route("/v1/models", any(models)).route("/v1/chat/completions", any(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stopped = stop.cancelled_owned();
    tokio::spawn(async move { axum::serve(listener, router).with_graceful_shutdown(stopped).await.unwrap() });
    format!("http://{address}/v1")
}

/// The tools of one program: those that are always there, and one with a number.
pub(super) fn tools(number: usize) -> String {
    let mut tools =
        mock("count.gone", "permission = \"guest\"\neffect = \"destructive\"") + &mock("count.free", "");
    tools += &mock(&format!("probe.n{number}"), "");
    tools
}

/// The longest that something is waited for.
const PATIENCE: Duration = Duration::from_secs(180);

/// Waits for something.
pub(super) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    server: &Serving,
    look: impl Fn() -> F,
) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {}", server.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether so many programs have taken over.
async fn ready(server: &Serving, number: usize) -> Option<()> {
    (server.log().matches("Ready ").count() >= number).then_some(())
}

/// Whether the program that has [`tools`] of that number has taken over.
pub(super) async fn has_taken_over(server: &Serving, number: usize) -> Option<()> {
    let is_new = format!(" probe.n{number};");
    server.log().lines().any(|line| line.starts_with("Ready ") && line.contains(&is_new)).then_some(())
}

/// A connection that is kept, on which every answer has to come.
struct Kept(BufReader<TcpStream>);

impl Kept {
    async fn open(address: &str) -> Self {
        Self(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    /// Calls a tool. A server that closes the connection fails the test.
    async fn call(&mut self, tool: &str) -> Value {
        let body = json!({"tool_name": tool, "arguments": {}}).to_string();
        let head = format!(
            "POST /execute HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        // In two parts, as it may also come: a request begun is not lost.
        self.0.write_all(head.as_bytes()).await.unwrap();
        tokio::task::yield_now().await;
        self.0.write_all(body.as_bytes()).await.unwrap();
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            let read = self.0.read_line(&mut line).await.unwrap();
            assert!(read > 0, "the connection was closed");
            let line = line.trim().to_lowercase();
            assert!(line != "connection: close", "the server wants no more requests");
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

/// Clients that go on until they are told to stop; each counts its answers.
struct Load {
    stop: CancellationToken,
    answers: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    fn new() -> Self {
        Self { stop: CancellationToken::new(), answers: Arc::default(), clients: Vec::new() }
    }

    fn add<F: Future<Output = ()> + Send + 'static>(&mut self, once: impl Fn() -> F + Send + 'static) {
        let (stop, answers) = (self.stop.clone(), Arc::clone(&self.answers));
        self.clients.push(tokio::spawn(async move {
            while !stop.is_cancelled() {
                once().await;
                answers.fetch_add(1, SeqCst);
            }
        }));
    }

    async fn end(self) -> u64 {
        self.stop.cancel();
        for client in self.clients {
            client.await.unwrap();
        }
        self.answers.load(SeqCst)
    }
}

/// An MCP session of the revision 2025-06-18, which is opened once.
#[derive(Clone)]
struct McpSession {
    client: reqwest::Client,
    url: String,
    id: String,
}

impl McpSession {
    async fn open(server: &Serving, capabilities: Value) -> Self {
        let (client, url) = (client(), format!("{}/mcp", server.base));
        let mut session = Self { client, url, id: String::new() };
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}});
        let answer = session.post(&hello).await;
        session.id = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        answer.text().await.unwrap();
        let begun = session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(begun.status(), StatusCode::ACCEPTED);
        session
    }

    fn with_headers(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let request = request.header(header::ACCEPT, "application/json, text/event-stream");
        match self.id.as_str() {
            "" => request,
            id => request.header("mcp-session-id", id).header("mcp-protocol-version", "2025-06-18"),
        }
    }

    async fn post(&self, message: &Value) -> Response {
        self.with_headers(self.client.post(&self.url)).json(message).send().await.unwrap()
    }

    async fn call(&self, tool: &str) {
        let answer = self
            .post(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
                "params": {"name": tool, "arguments": {}}}))
            .await;
        assert_eq!(answer.status(), StatusCode::OK);
        let text = answer.text().await.unwrap();
        assert!(text.contains("done"), "{text}");
    }

    async fn lists(&self, tool: &str) -> bool {
        let answer = self.post(&json!({"jsonrpc": "2.0", "id": 8, "method": "tools/list"})).await;
        assert_eq!(answer.status(), StatusCode::OK);
        answer.text().await.unwrap().contains(tool)
    }

    /// Listens, and again where the stream has ended, from the last event on; counts the changes.
    async fn listen(self, changes: Arc<AtomicU64>, stop: CancellationToken) {
        let mut last: Option<String> = None;
        while !stop.is_cancelled() {
            let mut request = self.with_headers(self.client.get(&self.url));
            if let Some(last) = &last {
                request = request.header("last-event-id", last);
            }
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            let mut chunks = answer.bytes_stream();
            while let Some(Some(chunk)) = stop.run_until_cancelled(chunks.next()).await {
                // A stream that is cut gives an error here.
                let text = String::from_utf8(chunk.unwrap().to_vec()).unwrap();
                let ids = text.lines().filter_map(|line| line.strip_prefix("id:"));
                last = ids.map(|id| id.trim().to_owned()).rfind(|id| !id.is_empty()).or(last);
                changes.fetch_add(text.matches("tools/list_changed").count() as u64, SeqCst);
            }
        }
    }
}

/// The processes that a process has started, and that run.
pub(super) fn children(id: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    text.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

/// The memory that a process has, in KiB.
fn memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// What the descriptors of a process lead to, but for its database: how many of that it has open depends on how many calls come at once.
fn descriptors(id: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{id}/fd")).unwrap().flatten();
    let targets = entries.filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.display().to_string()));
    targets.filter(|target| !target.contains("/toolrack.db")).collect()
}

/// Waits until a process has no more descriptors than it had.
async fn come_back(who: &str, id: u32, before: &[String]) {
    let began = Instant::now();
    while descriptors(id).len() > before.len() {
        assert!(began.elapsed() < PATIENCE, "{who} had {before:?} and has {:?}", descriptors(id));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A call that waits for a person in the program that runs now, and the approval's id.
pub(super) async fn waiting_call(
    server: &Serving,
    client: &reqwest::Client,
) -> (JoinHandle<Response>, String) {
    let body = json!({"tool_name": "count.gone", "arguments": {}, "approval_wait_seconds": 300});
    let call = client.post(format!("{}/execute", server.base)).json(&body).send();
    let call = tokio::spawn(async move { call.await.unwrap() });
    let pending = || async {
        let listed = client.get(format!("{}/api/approvals", server.base)).send().await.unwrap();
        let listed: Value = listed.json().await.unwrap();
        Some(listed["approvals"][0]["id"].as_str()?.to_owned())
    };
    let id = eventually("no approval is asked for", server, pending).await;
    (call, id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_reloads_under_load_refuse_no_connection_and_cut_no_answer() {
    let model = CancellationToken::new();
    let upstream = slow_model(model.clone()).await;
    let rack = Rack::new("", &tools(0)).with_variable("TOOLRACK_UPSTREAM", &upstream);
    let server = rack.dev();
    let address = server.base.strip_prefix("http://").unwrap().to_owned();
    let (execute, chat) =
        (format!("{}/execute", server.base), format!("{}/v1/chat/completions", server.base));
    let client = client();
    let [first] = children(server.id()).try_into().unwrap();
    let (supervisor_before, program_before) = (descriptors(server.id()), descriptors(first));
    let memory_before = (memory(server.id()), memory(first));

    let session = McpSession::open(&server, json!({})).await;
    let (mut load, changes) = (Load::new(), Arc::<AtomicU64>::default());
    let listening = tokio::spawn(session.clone().listen(Arc::clone(&changes), load.stop.clone()));
    for _ in 0..CLIENTS {
        let kept = Arc::new(tokio::sync::Mutex::new(Kept::open(&address).await));
        load.add(move || {
            let kept = Arc::clone(&kept);
            async move {
                let reply = kept.lock().await.call("count.free").await;
                assert_eq!(reply["result"], "done", "{reply}");
            }
        });
        let (unpooled, execute) = (unpooled(), execute.clone());
        load.add(move || {
            let sent =
                unpooled.post(&execute).json(&json!({"tool_name": "count.free", "arguments": {}})).send();
            async move {
                let answer = sent.await.unwrap();
                assert_eq!(answer.status(), StatusCode::OK);
                assert_eq!(answer.json::<Value>().await.unwrap()["result"], "done");
            }
        });
        let (pooled, chat) = (client.clone(), chat.clone());
        load.add(move || {
            let body = json!({"stream": true, "messages": [{"role": "user", "content": "Go on."}]});
            let sent = pooled.post(&chat).json(&body).send();
            async move {
                let answer = sent.await.unwrap();
                assert_eq!(answer.status(), StatusCode::OK);
                let text = answer.text().await.unwrap();
                assert!(text.contains(&format!("w{} ", WORDS - 1)) && text.contains("[DONE]"), "{text}");
            }
        });
    }
    let calling = session.clone();
    load.add(move || {
        let session = calling.clone();
        async move { session.call("count_free").await }
    });

    let mut idle = Kept::open(&address).await;
    let mut took = Duration::ZERO;
    for number in 1..=reloads() {
        let (call, id) = waiting_call(&server, &client).await;
        let heard = changes.load(SeqCst);
        let saved = Instant::now();
        rack.write("", &tools(number));
        eventually("no program takes over", &server, || has_taken_over(&server, number)).await;
        took += saved.elapsed();
        // At once and for everybody, on a connection that was idle meanwhile as well.
        let probe = format!("probe.n{number}");
        let told = || async { (changes.load(SeqCst) > heard).then_some(()) };
        eventually("the MCP client is told nothing", &server, told).await;
        assert!(session.lists(&format!("probe_n{number}")).await);
        assert_eq!(idle.call(&probe).await["result"], "done");
        let answer = client
            .post(format!("{}/api/approvals/{id}", server.base))
            .json(&json!({"approve": true}))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let reply: Value = call.await.unwrap().json().await.unwrap();
        assert_eq!(reply["result"], "done", "{reply}");
    }
    let answers = load.end().await;
    listening.await.unwrap();
    drop((idle, client, session));
    println!(
        "{} reloads, {answers} answers; from save to ready {} ms",
        reloads(),
        took.as_millis() / reloads() as u128
    );
    let alone = || async { <[u32; 1]>::try_from(children(server.id())).ok() };
    let [last] = eventually("a program that was succeeded does not end", &server, alone).await;
    assert_ne!(first, last);
    assert!(!server.log().contains("ERROR"), "{}", server.log());
    // All clients have gone, and now the model server does.
    model.cancel();
    come_back("the program", last, &program_before).await;
    come_back("the supervisor", server.id(), &supervisor_before).await;
    let (supervisor, program) = (memory(server.id()), memory(last));
    assert!(program < memory_before.1 + (48 << 10), "{program} KiB, {memory_before:?} before");
    assert!(supervisor < memory_before.0 + (8 << 10), "{supervisor} KiB, {memory_before:?} before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_a_form_of_an_mcp_client_is_answered_through_the_next_program() {
    let rack = Rack::new("", &tools(0));
    let server = rack.dev();
    let session = McpSession::open(&server, json!({"elicitation": {}})).await;
    let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": {"name": "count_gone", "arguments": {}}});
    let mut chunks = session.post(&call).await.bytes_stream();
    let mut text = String::new();
    let form = loop {
        text += std::str::from_utf8(&chunks.next().await.unwrap().unwrap()).unwrap();
        let messages =
            text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok());
        let form = messages.into_iter().find(|message: &Value| message["method"] == "elicitation/create");
        if let Some(form) = form {
            break form["id"].clone();
        }
    };
    rack.write("", &tools(1));
    eventually("no program takes over", &server, || ready(&server, 1)).await;
    let answer = json!({"jsonrpc": "2.0", "id": form,
        "result": {"action": "accept", "content": {"approve": true}}});
    assert_eq!(session.post(&answer).await.status(), StatusCode::ACCEPTED);
    let rest = async {
        while let Some(chunk) = chunks.next().await {
            text += std::str::from_utf8(&chunk.unwrap()).unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, rest).await.expect("the call is not answered");
    assert!(text.contains("done"), "{text}");
    session.call("probe_n1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_who_resumes_the_stream_of_a_call_in_the_next_program_is_told_to_begin_anew() {
    let rack = Rack::new("", &tools(0));
    let server = rack.dev();
    let session = McpSession::open(&server, json!({"elicitation": {}})).await;
    let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": {"name": "count_gone", "arguments": {}}});
    let mut chunks = session.post(&call).await.bytes_stream();
    let chunk = chunks.next().await.unwrap().unwrap();
    let text = str::from_utf8(&chunk).unwrap();
    let last = text.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim();
    assert!(last.contains('/'), "{last}");
    drop(chunks);
    let resume = async |last: &str| {
        let request = session.with_headers(session.client.get(&session.url));
        request.header("last-event-id", last).send().await.unwrap().status()
    };
    assert_eq!(resume(last).await, StatusCode::OK);
    rack.write("", &tools(1));
    eventually("no program takes over", &server, || ready(&server, 1)).await;
    // Also where this program has a stream of that number.
    for _ in 0..2 {
        assert_eq!(resume(last).await, StatusCode::NOT_FOUND);
        session.call("probe_n1").await;
    }
    assert_eq!(resume("0").await, StatusCode::OK, "the session itself goes on");
}

/// A client whose streams may last longer than the test.
fn client() -> reqwest::Client {
    toolrack_http::build_client(|| reqwest::Client::builder().no_proxy()).unwrap()
}

/// A client that opens a connection for each request.
fn unpooled() -> reqwest::Client {
    let builder = || reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0);
    toolrack_http::build_client(builder).unwrap()
}

/// The states of the build that the page hears, until the stream ends.
async fn build_states(server: &Serving, until: &str) -> Vec<Value> {
    let address = format!("{}/api/dev/events", server.base);
    let mut chunks = client().get(address).send().await.unwrap().bytes_stream();
    let (mut text, mut states) = (String::new(), Vec::new());
    while let Some(chunk) = chunks.next().await {
        text += std::str::from_utf8(&chunk.unwrap()).unwrap();
        states = text
            .lines()
            .filter_map(|line| Some(serde_json::from_str(line.strip_prefix("data: ")?).unwrap()))
            .collect();
        if states.last().is_some_and(|state: &Value| state["state"] == until) {
            break;
        }
    }
    states
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_what_cannot_be_built_or_started_is_shown_and_the_program_before_goes_on() {
    let rack = Rack::new("", &tools(0));
    rack.file("tool.rs", "1");
    let (server, client) = (rack.dev(), client());
    let state = |until: &'static str| build_states(&server, until);
    assert_eq!(state("current").await.pop().unwrap(), json!({"state": "current"}));
    let works = async |tool: &str| server.call(&client, "", tool).await.status() == StatusCode::OK;

    let error = "\u{1b}[31merror\u{1b}[0m: no such type <b>\n";
    let fails = json!({"reason": "compiler-message", "package_id": "path+file:///tools#0.1.0",
        "manifest_path": rack.path("Cargo.toml"), "message": {"level": "error", "rendered": error}});
    rack.file("fails", &format!("{fails}\n"));
    rack.file("tool.rs", "22");
    assert_eq!(state("failed").await.pop().unwrap(), json!({"state": "failed", "message": error}));
    // Without a terminal there are no colours in it.
    assert!(server.log().contains("error: no such type <b>"), "{}", server.log());
    assert!(works("probe.n0").await);

    fs::remove_file(rack.path("fails")).unwrap();
    rack.file("tool.rs", "333");
    eventually("it is not built again", &server, || ready(&server, 1)).await;
    assert_eq!(state("current").await.pop().unwrap(), json!({"state": "current"}));

    // Settings that do not parse, and some that only the start of the program sees.
    rack.write("durability = \"none\"", &tools(1));
    let message = state("failed").await.pop().unwrap()["message"].take();
    assert!(
        message.as_str().unwrap().contains("toolrack.toml")
            && message.as_str().unwrap().contains("durability"),
        "{message}"
    );
    assert!(works("probe.n0").await && !works("probe.n1").await);
    rack.write("url = \"sqlite:/proc/none/none.db\"", &tools(1));
    let failed = || async {
        let message = state("failed").await.pop().unwrap()["message"].take();
        message.as_str().unwrap().contains("/proc/none").then_some(message)
    };
    eventually("the start is not tried", &server, failed).await;
    assert!(works("probe.n0").await);
    rack.write("", &tools(2));
    eventually("the settings are not taken", &server, || ready(&server, 2)).await;
    assert!(works("probe.n2").await && !works("probe.n0").await);

    // A program that ends is started again with the next file.
    let alone = || async {
        let all = children(server.id()).into_iter().filter(|id| held_by_name(*id));
        <[u32; 1]>::try_from(all.collect::<Vec<_>>()).ok()
    };
    let [program] = eventually("the programs before do not end", &server, alone).await;
    std::process::Command::new("kill").args(["-KILL", &program.to_string()]).status().unwrap();
    let told = || async { server.log().contains("The program has ended").then_some(()) };
    eventually("its end is not told", &server, told).await;
    rack.write("", &tools(3));
    eventually("it is not started again", &server, || ready(&server, 3)).await;
    assert!(works("probe.n3").await);
}

/// Whether a process still runs, rather than waiting for its end to be noted.
fn held_by_name(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/status")).is_ok_and(|status| !status.contains("State:\tZ"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_programs_end_with_their_supervisor() {
    for signal in ["-TERM", "-KILL"] {
        let rack = Rack::new("", &tools(0));
        let mut server = rack.dev();
        let [program] = children(server.id()).try_into().unwrap();
        std::process::Command::new("kill").args([signal, &server.id().to_string()]).status().unwrap();
        let began = Instant::now();
        while held_by_name(program) || server.runs() {
            assert!(began.elapsed() < PATIENCE, "{signal}: {}", server.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
