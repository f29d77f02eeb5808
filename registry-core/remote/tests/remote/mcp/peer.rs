//! A server of the protocol written from its text, for the tests: with tools that do what real ones do wrong.

use std::{
    io::{BufRead, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    sync::broadcast,
};
use toolrack_remote::mcp::McpServerSettings;

/// A definition with nothing but a name.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

/// How it behaves; a test changes it as it goes.
pub(crate) struct Peer {
    pub(crate) tools: Mutex<Vec<Value>>,
    pub(crate) is_up: AtomicBool,
    /// Whether it says nothing at all.
    pub(crate) is_mute: AtomicBool,
    /// How many of the lists to come fail.
    pub(crate) failing: AtomicUsize,
    pub(crate) lists: AtomicUsize,
    /// How many tools are on one page.
    pub(crate) page: AtomicUsize,
    pub(crate) connections: AtomicUsize,
    /// The notifications and requests it got, other than lists.
    pub(crate) heard: Mutex<Vec<Value>>,
    /// What it says unasked; `null` ends all connections.
    says: broadcast::Sender<Value>,
}

impl Peer {
    pub(crate) fn new(tools: &[Value]) -> Arc<Self> {
        Arc::new(Self {
            tools: Mutex::new(tools.to_vec()),
            is_up: AtomicBool::new(true),
            is_mute: AtomicBool::new(false),
            failing: AtomicUsize::new(0),
            lists: AtomicUsize::new(0),
            page: AtomicUsize::new(100),
            connections: AtomicUsize::new(0),
            heard: Mutex::default(),
            says: broadcast::Sender::new(16),
        })
    }

    pub(crate) fn settings(self: &Arc<Self>) -> McpServerSettings {
        let peer = Arc::clone(self);
        McpServerSettings::in_process(move || peer.connect())
    }

    fn connect(self: &Arc<Self>) -> std::io::Result<DuplexStream> {
        self.connections.fetch_add(1, Ordering::SeqCst);
        if !self.is_up.load(Ordering::SeqCst) {
            return Err(std::io::Error::other("nobody is there"));
        }
        let (theirs, mine) = tokio::io::duplex(1 << 16);
        tokio::spawn(Arc::clone(self).serve(mine));
        Ok(theirs)
    }

    async fn serve(self: Arc<Self>, stream: DuplexStream) {
        let mut says = self.says.subscribe();
        let (input, mut output) = tokio::io::split(stream);
        let mut lines = BufReader::new(input).lines();
        loop {
            let answers = tokio::select! {
                line = lines.next_line() => match line.unwrap() {
                    Some(line) => self.answer(&serde_json::from_str(&line).unwrap()),
                    None => return,
                },
                said = says.recv() => match said.unwrap() {
                    Value::Null => return,
                    said => vec![said],
                },
            };
            for answer in answers {
                if output.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Serves standard input and output, with words between that are no messages.
    pub(crate) fn serve_stdio(&self) {
        println!("\nWelcome to the server!\n{{\"not\": \"a message\"}}\n{{broken");
        eprintln!("a word on standard error");
        for line in std::io::stdin().lock().lines() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if message.get("error").is_some() {
                // Nothing was asked: an answer to what is no message.
                std::process::exit(9);
            }
            for answer in self.answer(&message) {
                println!("{answer}");
            }
            std::io::stdout().flush().unwrap();
        }
    }

    pub(crate) fn set_tools(&self, tools: &[Value]) {
        *self.tools.lock().unwrap() = tools.to_vec();
        let _ = self.says.send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    }

    /// Goes away, or only breaks all connections.
    pub(crate) fn drop_all(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::SeqCst);
        let _ = self.says.send(Value::Null);
    }

    pub(crate) fn heard(&self, method: &str) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|message| message["method"] == method).cloned().collect()
    }

    #[allow(clippy::zombie_processes)] // who ends it is what is tested
    fn answer(&self, message: &Value) -> Vec<Value> {
        let params = &message["params"];
        if self.is_mute.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let reply = |result| vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": result})];
        let error = |code: i32, text: &str| {
            vec![json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text}})]
        };
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => error(-32601, "Method not found"),
            "initialize" => {
                self.heard.lock().unwrap().push(message.clone());
                reply(
                    json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "peer", "version": "1.0"}}),
                )
            }
            "tools/list"
                if self
                    .failing
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok() =>
            {
                error(-32603, "the disk sleeps")
            }
            "tools/list" => {
                self.lists.fetch_add(1, Ordering::SeqCst);
                let from = params["cursor"].as_str().map_or(0, |cursor| cursor.parse::<usize>().unwrap());
                let tools = self.tools.lock().unwrap();
                let to = tools.len().min(from + self.page.load(Ordering::SeqCst));
                let mut page = json!({"tools": tools[from..to]});
                if to < tools.len() {
                    page["nextCursor"] = to.to_string().into();
                }
                reply(page)
            }
            "tools/call" => {
                self.heard.lock().unwrap().push(message.clone());
                let text = |text: String| json!([{"type": "text", "text": text}]);
                match params["name"].as_str().unwrap() {
                    "echo" => reply(json!({"content": text(params["arguments"].to_string())})),
                    "structured" => reply(
                        json!({"content": text(r#"{"degrees": 21}"#.into()), "structuredContent": {"degrees": 21}}),
                    ),
                    "picture" => reply(json!({"content":
                        [{"type": "text", "text": "A cat."}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]})),
                    "said_twice" => reply(
                        json!({"content": text("THE FILE".into()), "structuredContent": {"fileName": "a"}}),
                    ),
                    "blob" => reply(json!({"content":
                        [{"type": "text", "text": "words"}, {"type": "blob", "data": "AAAA"}, {"type": "image", "data": "AAAA"}]})),
                    "fails" => reply(json!({"content": text("The disk is full.".into()), "isError": true})),
                    "huge" => reply(json!({"content": text("x".repeat(5 << 20))})),
                    "asks" => vec![json!({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create",
                        "params": {"message": "Password?", "requestedSchema": {"type": "object", "properties": {}}}})],
                    "waits" => Vec::new(),
                    // A person there says yes after the second time.
                    "approved" if self.heard("tools/call").len() < 3 => {
                        reply(json!({"content": text("A person has to approve it.".into()),
                        "isError": true, "_meta": {"toolrack/approvalPending": "a1"}}))
                    }
                    "approved" => reply(json!({"content": text("done".into())})),
                    "never_approved" => reply(json!({"content": text("A person has to approve it.".into()),
                        "isError": true, "_meta": {"toolrack/approvalPending": "a1"}})),
                    "works" => {
                        let token = &params["_meta"]["progressToken"];
                        let word = |progress: f64, message: &str| {
                            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params":
                                {"progressToken": token, "progress": progress, "total": 4, "message": message}})
                        };
                        let mut said = vec![word(1.0, "quarter\u{202e}"), word(2.0, "half")];
                        said.extend(reply(json!({"content": text("done".into())})));
                        said
                    }
                    "environment" => {
                        let names: Vec<String> =
                            std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
                        reply(json!({"content": text(names.join("\n"))}))
                    }
                    "exits" => std::process::exit(3),
                    "spawns" => {
                        let child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
                        reply(json!({"content": text(format!("{} {}", std::process::id(), child.id()))}))
                    }
                    name => error(-32602, &format!("Unknown tool: {name}")),
                }
            }
            // What this side asked for is answered, or declined.
            _ => {
                self.heard.lock().unwrap().push(message.clone());
                Vec::new()
            }
        }
    }
}
