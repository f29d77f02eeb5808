//! What the tests of a whole turn share: a scripted model server, a server under test, and a client that checks what it reads.
#![allow(dead_code, unused_imports, missing_docs, missing_debug_implementations, unreachable_pub)]

mod chats;
mod client;
mod log;
mod metrics;
mod site;
mod upstream;

use std::{
    future::Future,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use llm_bridge::{
    metrics::{CallMetrics, Metrics},
    server::{self, Access, PublicUrl, ServerSettings},
    traces::Traces,
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};
use registry_core::{
    BoxFuture, Caller, Effect, Handler, Permission, Registry, TextTag, ToolContext, ToolError, ToolPolicy,
    ToolResult, ToolSpec,
    guard::audit::{AuditRecord, MemoryAudit, Phase},
    store::{ChatStore, ConversationLimits, Conversations, MemoryStore},
};
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub use chats::Chats;
pub use client::{Reading, Reported, Slow};
pub use log::Log;
pub use metrics::Scraped;
pub use site::Site;
pub use upstream::{Act, Answer, Asked, Character, Reply, Scripted, event, text_event};

pub type Arguments = Map<String, Value>;

/// Waits for something that has to happen. The time is a guard against a hang and says nothing about speed.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it should have happened long ago")
}

/// Waits until something holds that no event tells of.
pub async fn until(holds: impl Fn() -> bool) {
    within(async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A request that streams, with one question.
pub fn question(text: &str) -> toolrack_apis::Request {
    toolrack_apis::Request {
        model: Some("m".into()),
        messages: vec![toolrack_apis::Message::text(toolrack_apis::Role::User, text)],
        stream: true,
        ..toolrack_apis::Request::default()
    }
}

pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// A tool of the client as it stands in a request.
pub fn client_tool(name: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    json!({"type": "function", "function": {"name": name, "description": "The client's.", "parameters": parameters}})
}

pub fn two_numbers() -> Value {
    json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": false,
    })
}

pub fn with_effect(effect: Effect) -> ToolPolicy {
    ToolPolicy { effect, ..ToolPolicy::new() }
}

type Ran = Arc<Mutex<Vec<(String, Value)>>>;

struct Code<F> {
    name: String,
    ran: Ran,
    run: F,
}

impl<F, R> Handler for Code<F>
where
    F: Fn(ToolContext, Arguments) -> R + Send + Sync,
    R: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        self.ran.lock().unwrap().push((self.name.clone(), Value::Object(arguments.clone())));
        Box::pin((self.run)(context.clone(), arguments))
    }
}

/// What a server under test is made of.
pub struct Setup {
    pub registry: Registry,
    pub chat: ChatSettings,
    pub access: Access,
    pub caller: Caller,
    pub drain: Duration,
    pub grace: Duration,
    pub write_timeout: Duration,
    pub idle: Duration,
    pub upstream_key: Option<String>,
    pub public_url: Option<PublicUrl>,
    pub request_timeout: Duration,
    pub max_connections: usize,
    pub store: Arc<MemoryStore>,
    /// Where chats are kept.
    pub chats: Arc<dyn ChatStore>,
    /// What is kept of conversations; `None` for the store in memory.
    pub conversations: Option<Conversations>,
    pub traces: Option<Traces>,
    audit: Arc<MemoryAudit>,
    calls: Arc<CallMetrics>,
    ran: Ran,
}

impl Setup {
    /// No tools.
    pub fn bare() -> Self {
        let audit = Arc::new(MemoryAudit::new(1000));
        let calls = CallMetrics::before(audit.clone()).unwrap();
        let registry = Registry::builder()
            .without_compiled()
            .approve_destructive(false)
            .audit(calls.clone())
            .build()
            .unwrap();
        calls.watch(&registry);
        let chat = ChatSettings {
            system_prompt: String::new(),
            system_prompt_with_tools: String::new(),
            ..ChatSettings::default()
        };
        Self {
            registry,
            chat,
            access: Access::default(),
            caller: Caller::new("ada", Permission::Owner),
            drain: Duration::ZERO,
            grace: Duration::from_secs(10),
            write_timeout: server::WRITE_TIMEOUT,
            idle: Duration::from_secs(20),
            upstream_key: None,
            public_url: None,
            request_timeout: server::REQUEST_TIMEOUT,
            max_connections: server::MAX_CONNECTIONS,
            store: Arc::default(),
            chats: Chats::in_memory(),
            conversations: None,
            traces: None,
            audit,
            calls,
            ran: Ran::default(),
        }
    }

    /// `add(a, b)` and `math.gcd(a, b)`.
    pub fn new() -> Self {
        let number = |arguments: &Arguments, name: &str| arguments[name].as_i64().unwrap();
        Self::bare()
            .tool("add", two_numbers(), ToolPolicy::new(), move |_, arguments| async move {
                Ok(ToolResult::new(format!("sum={}", number(&arguments, "a") + number(&arguments, "b"))))
            })
            .tool("math.gcd", two_numbers(), ToolPolicy::new(), move |_, arguments| async move {
                let (mut a, mut b) = (number(&arguments, "a"), number(&arguments, "b"));
                while b != 0 {
                    (a, b) = (b, a % b);
                }
                Ok(ToolResult::new(format!("gcd={a}")))
            })
    }

    /// With `note(text)`, which is also the line `TAG: text` of this tag.
    pub fn with_note(self, tag: TextTag) -> Self {
        let text =
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let policy = ToolPolicy { text_tag: Some(tag), ..ToolPolicy::new() };
        self.tool("note", text, policy, |context, arguments| async move {
            let raw = context.raw_argument().map(|raw| format!(" (raw: {raw})")).unwrap_or_default();
            Ok(ToolResult::new(format!("noted: {}{raw}", arguments["text"].as_str().unwrap())))
        })
    }

    pub fn tool<F, R>(self, name: &str, schema: Value, policy: ToolPolicy, run: F) -> Self
    where
        F: Fn(ToolContext, Arguments) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
    {
        let code = Code { name: name.to_owned(), ran: Arc::clone(&self.ran), run };
        let mut spec = ToolSpec::new(name, schema);
        spec.description = Some(format!("The tool {name}."));
        self.registry.register(spec, policy, Some(Arc::new(code))).unwrap();
        self
    }

    /// A tool without arguments.
    pub fn plain_tool<F, R>(self, name: &str, policy: ToolPolicy, run: F) -> Self
    where
        F: Fn(ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
    {
        self.tool(name, json!({"type": "object"}), policy, move |context, _| run(context))
    }

    pub fn chat(mut self, change: impl FnOnce(&mut ChatSettings)) -> Self {
        change(&mut self.chat);
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Starts a model server that gives these replies, one for each request, and the server under test before it.
    pub async fn start(self, replies: impl IntoIterator<Item = Reply>) -> Rack {
        let upstream = Scripted::start(replies).await;
        let base = upstream.base();
        self.start_before(upstream, &base).await
    }

    /// The same with a model server of a kind, whose model is `m`; of no kind that is known where it is empty.
    pub async fn start_of_kind(self, kind: &str, replies: impl IntoIterator<Item = Reply>) -> Rack {
        let site = if kind.is_empty() { Site::default() } else { Site::of_kind(kind, &["m"]) };
        let upstream = Scripted::start_as(site, replies).await;
        let base = upstream.base();
        self.start_before(upstream, &base).await
    }

    /// Starts the server under test before any address.
    pub async fn start_before(self, upstream: Scripted, base: &str) -> Rack {
        let model = Upstream::http(base, self.upstream_key.clone(), self.idle).unwrap();
        self.start_with(upstream, model).await
    }

    /// Starts the server under test before model servers with any settings.
    pub async fn start_with(self, upstream: Scripted, model: Upstream) -> Rack {
        let backend = Backend::new(self.registry.clone(), model, self.chat);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let in_memory = || Conversations::new(self.store.clone(), ConversationLimits::default());
        let conversations = self.conversations.unwrap_or_else(in_memory);
        let settings = ServerSettings {
            chats: Some(self.chats),
            conversations: Some(conversations),
            public_url: self.public_url,
            request_timeout: self.request_timeout,
            max_connections: self.max_connections,
            access: self.access,
            metrics: Metrics::default().with_calls(self.calls),
            traces: self.traces,
            drain: self.drain,
            grace: self.grace,
            write_timeout: self.write_timeout,
            ..ServerSettings::new(self.caller, self.store)
        };
        let stop = CancellationToken::new();
        let served = tokio::spawn(server::serve(listener, backend, settings, stop.clone()));
        let client = toolrack_http::build_client(|| reqwest::Client::builder().no_proxy()).unwrap();
        Rack {
            address,
            upstream,
            client,
            registry: self.registry,
            stop,
            served,
            audit: self.audit,
            ran: self.ran,
        }
    }
}

/// A server under test with the model server behind it.
pub struct Rack {
    pub address: SocketAddr,
    pub upstream: Scripted,
    pub client: reqwest::Client,
    pub registry: Registry,
    pub stop: CancellationToken,
    served: JoinHandle<Result<(), String>>,
    audit: Arc<MemoryAudit>,
    ran: Ran,
}

impl Rack {
    /// Waits until the server has stopped, as the program does before it ends.
    pub async fn stopped(&mut self) {
        within(&mut self.served).await.unwrap().unwrap();
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The calls that reached a tool's code, in order.
    pub fn ran(&self) -> Vec<(String, Value)> {
        self.ran.lock().unwrap().clone()
    }

    pub fn audit(&self) -> Vec<AuditRecord> {
        self.audit.records()
    }

    /// The audit's outcomes.
    pub fn outcomes(&self) -> Vec<AuditRecord> {
        self.audit.records().into_iter().filter(|record| record.phase == Phase::Outcome).collect()
    }

    pub async fn post(&self, body: &Value) -> reqwest::Response {
        within(self.client.post(self.url("/v1/chat/completions")).json(body).send()).await.unwrap()
    }

    /// Sends a request and reads the reply to its end.
    pub async fn chat(&self, body: Value) -> Reported {
        let response = self.post(&body).await;
        within(Reported::read(response)).await
    }

    /// Asks with a field or two beside the question.
    pub async fn ask_with(&self, stream: bool, fields: Value) -> Reported {
        let mut body = json!({"model": "m", "messages": [user("Go.")], "stream": stream});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.chat(body).await
    }

    pub async fn ask(&self, stream: bool) -> Reported {
        self.ask_with(stream, json!({})).await
    }

    /// Sends a request for a stream and reads it piece by piece.
    pub async fn open(&self) -> Reading {
        self.open_with(json!({})).await
    }

    /// The same with a field or two beside the question.
    pub async fn open_with(&self, fields: Value) -> Reading {
        let mut body = json!({"model": "m", "messages": [user("Go.")], "stream": true});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Reading::new(self.post(&body).await)
    }
}
