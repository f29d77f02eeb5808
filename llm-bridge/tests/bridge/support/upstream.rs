//! A model server that does what its script says, however wrong that is.

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    task::JoinHandle,
};

use super::site::Site;

/// One thing that the server does while it answers.
#[derive(Clone)]
pub enum Act {
    /// Sends these bytes, as one piece of a chunked body.
    Send(Vec<u8>),
    /// Sends nothing until the test says so.
    Wait(Arc<Notify>),
    /// Sends nothing for that long.
    Pause(Duration),
    /// Sends nothing more, and waits for the client to close the connection.
    Stall,
    /// Closes the connection in the middle of the body.
    Cut,
    /// Resets the connection.
    Reset,
}

/// An event of a stream.
pub fn event(data: &Value) -> Act {
    Act::Send(format!("data: {data}\n\n").into_bytes())
}

/// An event with text of the answer.
pub fn text_event(text: &str) -> Act {
    event(&chunk(&json!({"content": text}), None))
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": "up-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })
}

/// An answer without faults, given streamed or whole, as it is asked for.
#[derive(Clone)]
pub struct Answer {
    deltas: Vec<Value>,
    finish: &'static str,
    usage: Option<Value>,
    extra: Value,
}

impl Answer {
    pub fn new() -> Self {
        Self { deltas: Vec::new(), finish: "stop", usage: None, extra: json!({}) }
    }

    pub fn text(text: &str) -> Self {
        Self::new().say(text)
    }

    pub fn say(self, text: &str) -> Self {
        self.delta(json!({"content": text}))
    }

    pub fn delta(mut self, delta: Value) -> Self {
        self.deltas.push(delta);
        self
    }

    /// A native call in one piece.
    pub fn call(mut self, id: &str, name: &str, arguments: &Value) -> Self {
        let index = self.deltas.iter().filter(|delta| delta.get("tool_calls").is_some()).count();
        self.finish = "tool_calls";
        self.delta(json!({"tool_calls": [{
            "index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()},
        }]}))
    }

    pub fn finish(mut self, reason: &'static str) -> Self {
        self.finish = reason;
        self
    }

    pub fn usage(mut self, prompt: u64, completion: u64) -> Self {
        self.usage = Some(json!({
            "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
        }));
        self
    }

    /// Fields beside the known ones.
    pub fn extra(mut self, fields: Value) -> Self {
        self.extra = fields;
        self
    }

    pub fn acts(&self) -> Vec<Act> {
        let mut acts: Vec<Act> = self.deltas.iter().map(|delta| event(&chunk(delta, None))).collect();
        let mut last = chunk(&json!({}), Some(self.finish));
        last.as_object_mut().unwrap().extend(self.extra.as_object().unwrap().clone());
        acts.push(event(&last));
        if let Some(usage) = &self.usage {
            acts.push(event(&json!({"object": "chat.completion.chunk", "choices": [], "usage": usage})));
        }
        acts.push(Act::Send(b"data: [DONE]\n\n".to_vec()));
        acts
    }

    /// The same in the lines of Ollama, which has whole calls only.
    fn lines(&self) -> Vec<Act> {
        let line = |line: Value| Act::Send(format!("{line}\n").into_bytes());
        let mut acts: Vec<Act> = Vec::new();
        for delta in &self.deltas {
            let mut message =
                json!({"role": "assistant", "content": delta.get("content").unwrap_or(&json!(""))});
            if let Some(thinking) = delta.get("reasoning") {
                message["thinking"] = thinking.clone();
            }
            if let Some(calls) = delta["tool_calls"].as_array() {
                let call = |call: &Value| {
                    let function = &call["function"];
                    let arguments: Value =
                        serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
                    json!({"function": {"name": function["name"], "arguments": arguments}})
                };
                message["tool_calls"] = calls.iter().map(call).collect();
            }
            acts.push(line(json!({"model": "scripted", "message": message, "done": false})));
        }
        let mut last = json!({"model": "scripted", "message": {"role": "assistant", "content": ""}, "done": true,
            "done_reason": if self.finish == "length" { "length" } else { "stop" }});
        if let Some(usage) = &self.usage {
            last["prompt_eval_count"] = usage["prompt_tokens"].clone();
            last["eval_count"] = usage["completion_tokens"].clone();
        }
        acts.push(line(last));
        acts
    }

    fn whole(&self) -> Value {
        let text = |field: &str| {
            let all: String =
                self.deltas.iter().filter_map(|delta| delta.get(field).and_then(Value::as_str)).collect();
            if all.is_empty() { Value::Null } else { all.into() }
        };
        let mut calls: Vec<Value> = Vec::new();
        for piece in self.deltas.iter().filter_map(|delta| delta["tool_calls"].as_array()).flatten() {
            match calls.iter_mut().find(|call| call["index"] == piece["index"]) {
                Some(call) => {
                    let more = piece["function"]["arguments"].as_str().unwrap();
                    let all = format!("{}{more}", call["function"]["arguments"].as_str().unwrap());
                    call["function"]["arguments"] = all.into();
                }
                None => calls.push(piece.clone()),
            }
        }
        let mut message = json!({"role": "assistant", "content": text("content")});
        for field in ["reasoning_content", "reasoning"] {
            if text(field).is_string() {
                message[field] = text(field);
            }
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let mut whole = json!({
            "id": "up-1", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
            "usage": self.usage,
        });
        whole.as_object_mut().unwrap().extend(self.extra.as_object().unwrap().clone());
        whole
    }
}

/// What the server answers to one request.
#[derive(Clone)]
pub enum Reply {
    Answer(Answer),
    Raw { status: u16, kind: &'static str, acts: Vec<Act> },
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl Reply {
    pub fn text(text: &str) -> Self {
        Answer::text(text).into()
    }

    /// A stream of these acts and nothing else.
    pub fn stream(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::Raw { status: 200, kind: "text/event-stream", acts: acts.into_iter().collect() }
    }

    /// A stream of these bytes, in pieces of a size.
    pub fn bytes(bytes: &[u8], size: usize) -> Self {
        Self::stream(bytes.chunks(size).map(|piece| Act::Send(piece.to_vec())))
    }

    /// A whole body.
    pub fn body(status: u16, kind: &'static str, body: &str) -> Self {
        Self::Raw { status, kind, acts: vec![Act::Send(body.as_bytes().to_vec())] }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::body(status, "application/json", &body.to_string())
    }

    /// An error in the usual form.
    pub fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({"error": {"message": message, "type": "server_error", "code": status}}))
    }
}

/// A request that the server got.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub head: String,
    pub body: Value,
    /// The body as it came.
    pub text: String,
}

impl Asked {
    pub fn messages(&self) -> &Vec<Value> {
        self.body["messages"].as_array().unwrap()
    }

    /// The JSON of a field, as it came.
    pub fn raw(&self, field: &str) -> String {
        let fields: HashMap<String, Box<RawValue>> = serde_json::from_str(&self.text).unwrap();
        fields.get(field).map(|value| value.get().to_owned()).unwrap_or_default()
    }

    /// The names of the tools offered.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body.get("tools").and_then(Value::as_array);
        tools.into_iter().flatten().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
    }
}

/// What a model answers to any request.
pub type Character = fn(&Asked) -> Reply;

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    /// Answers when the script is at its end.
    character: Option<Character>,
    asked: Vec<Asked>,
    site: Site,
    /// The paths that were looked at with GET.
    looked: Vec<String>,
}

/// The model server.
pub struct Scripted {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    listening: JoinHandle<()>,
    /// How many connections clients have closed before the end.
    gone: watch::Receiver<usize>,
}

impl Scripted {
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start_as(Site::default(), replies).await
    }

    /// A server with these pages besides the chat.
    pub async fn start_as(site: Site, replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_on(listener, site, replies).await
    }

    /// A server with these pages whose model answers every request.
    pub async fn acting(site: Site, character: Character) -> Self {
        let server = Self::start_as(site, []).await;
        server.state.lock().unwrap().character = Some(character);
        server
    }

    pub async fn start_on(
        listener: TcpListener,
        site: Site,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let replies = replies.into_iter().collect();
        let state = Arc::new(Mutex::new(State { replies, site, ..State::default() }));
        let (gone_sender, gone) = watch::channel(0);
        let (gone_sender, shared) = (Arc::new(gone_sender), Arc::clone(&state));
        let listening = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (state, gone) = (Arc::clone(&shared), Arc::clone(&gone_sender));
                tokio::spawn(async move {
                    let _ = serve(socket, &state, &gone).await;
                });
            }
        });
        Self { address, state, listening, gone }
    }

    /// Stops listening.
    pub async fn close(self) {
        self.listening.abort();
        let _ = self.listening.await;
    }

    pub fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The chat requests, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    /// The paths that were looked at with GET, in order.
    pub fn looked(&self) -> Vec<String> {
        self.state.lock().unwrap().looked.clone()
    }

    /// Changes the pages besides the chat.
    pub fn become_site(&self, site: Site) {
        self.state.lock().unwrap().site = site;
    }

    pub fn push(&self, reply: impl Into<Reply>) {
        self.state.lock().unwrap().replies.push_back(reply.into());
    }

    /// Waits until a client has closed its connection before the end.
    pub async fn client_gone(&self) {
        let mut gone = self.gone.clone();
        super::within(gone.wait_for(|count| *count > 0)).await.unwrap();
    }
}

async fn serve(
    mut socket: TcpStream,
    state: &Mutex<State>,
    gone: &Arc<watch::Sender<usize>>,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let Some(asked) = read_request(&mut socket).await? else { return Ok(()) };
    // One with a query is asked of something else than a model server, such as a search engine, and is in the script.
    let is_get = asked.head.starts_with("get ");
    // How large the context is, and what stands before a prompt.
    let is_shown = asked.path == "/tokenize" && asked.body["content"] == ""
        || asked.path == "/api/show" && asked.body.as_object().is_some_and(|body| body.len() == 1);
    let found = state.lock().unwrap().site.page(&asked.path).filter(|_| is_get || is_shown);
    if found.is_some() || is_shown || is_get && !asked.path.contains('?') {
        let (server, page) = {
            let mut state = state.lock().unwrap();
            state.looked.push(asked.path.clone());
            (state.site.server, found)
        };
        let (status, body) =
            page.map_or((404, json!({"error": {"message": "no such page"}})), |page| (200, page));
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\nserver: {server}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        return socket.write_all((head + &body).as_bytes()).await;
    }
    let reply = {
        let mut state = state.lock().unwrap();
        state.asked.push(asked.clone());
        let character = state.character;
        state.replies.pop_front().or_else(|| Some(character?(&asked)))
    };
    let reply = reply.unwrap_or_else(|| Reply::error(500, "the script is at its end"));
    let (status, kind, acts) = match reply {
        Reply::Raw { status, kind, acts } => (status, kind, acts),
        Reply::Answer(answer) if asked.path.ends_with("/api/chat") => {
            (200, "application/x-ndjson", answer.lines())
        }
        Reply::Answer(answer) if asked.body["stream"] == true => (200, "text/event-stream", answer.acts()),
        Reply::Answer(answer) => {
            (200, "application/json", vec![Act::Send(answer.whole().to_string().into_bytes())])
        }
    };
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await?;
    for act in acts {
        match act {
            Act::Send(bytes) => {
                let mut piece = format!("{:x}\r\n", bytes.len()).into_bytes();
                piece.extend_from_slice(&bytes);
                piece.extend_from_slice(b"\r\n");
                socket.write_all(&piece).await?;
            }
            Act::Wait(notify) => notify.notified().await,
            Act::Pause(time) => tokio::time::sleep(time).await,
            Act::Stall => {
                let mut byte = [0];
                let _ = socket.read(&mut byte).await;
                gone.send_modify(|count| *count += 1);
                return Ok(());
            }
            Act::Cut => return socket.shutdown().await,
            Act::Reset => return socket.set_zero_linger(),
        }
    }
    socket.write_all(b"0\r\n\r\n").await?;
    socket.shutdown().await
}

async fn read_request(socket: &mut TcpStream) -> io::Result<Option<Asked>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
    let length: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.trim().parse().unwrap());
    while bytes.len() < head_end + length {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = serde_json::from_slice(&bytes[head_end..]).unwrap_or(Value::Null);
    let text = String::from_utf8_lossy(&bytes[head_end..]).into_owned();
    Ok(Some(Asked { path, head, body, text }))
}
