//! The entry points.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use llm_bridge::{
    listing,
    server::{self, Access, ServerSettings},
    turn::{Backend, ChatSettings, Limits},
    upstream::Upstream,
};
use registry_core::{
    Caller, DEFAULT_TENANT, ErrorKind, Origin, Permission, Registry, ToolCall, ToolPolicy, ToolResult,
    ToolSpec,
    guard::{
        audit::{AuditRecord, MemoryAudit},
        gate::{Gate, GateAnswer, GateError, GateRequest},
        limits::{Charge, MemoryUsage, Usage},
    },
    handler_fn,
    store::{ApiKey, MemoryStore, Persona, Store, User},
    testing::TestClock,
};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::table::{GATE, Row, Seen, State, Words};
use crate::support::{Answer, Reported, Scripted, client_tool, user, within};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryPoint {
    Library,
    CommandLine,
    Execute,
    ChatNative,
    ChatText,
}

pub(crate) const ENTRY_POINTS: [EntryPoint; 5] = [
    EntryPoint::Library,
    EntryPoint::CommandLine,
    EntryPoint::Execute,
    EntryPoint::ChatNative,
    EntryPoint::ChatText,
];

impl EntryPoint {
    pub(crate) fn origin(self) -> Origin {
        match self {
            Self::Library => Origin::Library,
            Self::CommandLine => Origin::CommandLine,
            Self::Execute => Origin::Http,
            Self::ChatNative => Origin::Native,
            Self::ChatText => Origin::Text("hermes".into()),
        }
    }
}

pub(crate) struct Warden;

#[async_trait]
impl Gate for Warden {
    fn name(&self) -> &str {
        GATE
    }

    async fn check(&self, request: GateRequest<'_>) -> Result<GateAnswer, GateError> {
        let blocked = request.spec.tool_name.contains("_gateblocks_");
        Ok(if blocked { GateAnswer::Blocked("not today".to_owned()) } else { GateAnswer::Approved })
    }
}

/// One entry point with a registry of its own behind it.
pub(crate) struct Site {
    pub(crate) entry: EntryPoint,
    pub(crate) registry: Registry,
    pub(crate) audit: Arc<MemoryAudit>,
    /// Who has run what, as the tools' code saw it.
    pub(crate) ran: Arc<Mutex<Vec<(String, String)>>>,
    pub(crate) upstream: Scripted,
    pub(crate) base: String,
    pub(crate) client: Client,
    pub(crate) keys: BTreeMap<String, String>,
    pub(crate) _stop: DropGuard,
}

impl Site {
    pub(crate) async fn start(entry: EntryPoint, rows: &[Row], callers: &[Caller]) -> Self {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let audit = Arc::new(MemoryAudit::new(100_000));
        let usage = Arc::new(MemoryUsage::default());
        let registry = Registry::builder()
            .without_compiled()
            .audit(audit.clone())
            .usage(usage.clone())
            .gate(Arc::new(Warden))
            .clock(Arc::new(TestClock::at(now)))
            .build()
            .unwrap();
        let ran = Arc::new(Mutex::new(Vec::new()));
        for row in rows {
            let (name, ran) = (row.name.clone(), Arc::clone(&ran));
            let handler = handler_fn(move |context, _| {
                let entry = (context.caller().user.clone(), name.clone());
                ran.lock().unwrap().push(entry);
                async { Ok(ToolResult::new("done")) }
            });
            let policy = ToolPolicy {
                permission: row.needs,
                effect: row.effect,
                daily_limit: u32::from(row.state == State::UsedUp),
                requires_gate: matches!(row.state, State::GateApproves | State::GateBlocks),
                ..ToolPolicy::new()
            };
            let mut spec = ToolSpec::new(&row.name, json!({"type": "object"}));
            // A listing may write the name as a model's server takes it; this stays.
            spec.description = Some(row.name.clone());
            let handler = (row.state != State::WithoutHandler).then_some(handler);
            registry.register(spec, policy, handler).unwrap();
            if row.state == State::SwitchedOff {
                registry.set_enabled(&row.name, false).unwrap();
            }
            for caller in callers.iter().filter(|_| row.state == State::UsedUp) {
                let charge = Charge {
                    tenant: DEFAULT_TENANT.into(),
                    user: caller.user.clone(),
                    tool: row.name.as_str().into(),
                    cooldown: Duration::ZERO,
                    daily_limit: 1,
                    at: now,
                };
                assert_eq!(usage.charge(&charge).await, Ok(None));
            }
        }

        let store = Arc::new(MemoryStore::default());
        let mut keys = BTreeMap::new();
        for Caller { user: id, level, allowed_modules, .. } in callers.iter().cloned() {
            let personas: Vec<String> = allowed_modules.iter().map(|_| id.clone()).collect();
            if let Some(allowed_modules) = allowed_modules {
                let persona = Persona { name: id.clone(), allowed_modules, created_at: now };
                store.put_persona(DEFAULT_TENANT, persona).await.unwrap();
            }
            let user = User { id: id.clone(), level, personas, created_at: now };
            store.put_user(DEFAULT_TENANT, user).await.unwrap();
            let (key, secret) = ApiKey::generate(DEFAULT_TENANT, &id, false, now).unwrap();
            store.put_key(key).await.unwrap();
            keys.insert(id, secret);
        }
        let settings = ServerSettings {
            access: Access { key_required: true, ..Access::default() },
            grace: Duration::from_secs(1),
            ..ServerSettings::new(Caller::new("nobody", Permission::Guest), store)
        };
        let upstream = Scripted::start([]).await;
        let model = Upstream::http(&upstream.base(), None, Duration::from_secs(20)).unwrap();
        let chat = ChatSettings {
            limits: Limits { max_calls: 1000, ..Limits::default() },
            ..ChatSettings::default()
        };
        let backend = Backend::new(registry.clone(), model, chat);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        tokio::spawn(server::serve(listener, backend, settings, stop.clone()));
        let client = toolrack_http::build_client(|| Client::builder().no_proxy()).unwrap();
        Self { entry, registry, audit, ran, upstream, base, client, keys, _stop: stop.drop_guard() }
    }

    /// What the entry point shows the caller as usable, and what it says to a call of each of these.
    pub(crate) async fn turn(&self, caller: &Caller, names: &[String]) -> Seen {
        match self.entry {
            EntryPoint::Library | EntryPoint::CommandLine => self.direct(caller, names).await,
            EntryPoint::Execute => self.execute(caller, names).await,
            EntryPoint::ChatNative => {
                let call = |answer: Answer, name: &String| answer.call(name, name, &json!({}));
                let calls = names.iter().fold(Answer::new(), call);
                self.chat(caller, [calls, Answer::text("Done.")], "Done.").await
            }
            EntryPoint::ChatText => {
                let call = |name: &String| {
                    format!("<tool_call>\n{}\n</tool_call>\n", json!({"name": name, "arguments": {}}))
                };
                let text: String = names.iter().map(call).collect();
                self.chat(caller, [Answer::text(&text), Answer::text("Done.")], "Done.").await
            }
        }
    }

    async fn direct(&self, caller: &Caller, names: &[String]) -> Seen {
        let context = self.registry.context(caller.clone()).with_approval_wait(Duration::ZERO);
        let shown = if self.entry == EntryPoint::Library {
            self.registry.select(&context).tools().iter().map(|tool| tool.name().to_owned()).collect()
        } else {
            let rows = listing::rows(&self.registry, &context, false);
            rows.into_iter().filter(|row| row.enabled).map(|row| row.name).collect()
        };
        let mut said = BTreeMap::new();
        for name in names {
            let call = ToolCall::new(name, json!({})).with_origin(self.entry.origin());
            let outcome = self.registry.execute(&context, call).await;
            let reply = serde_json::to_value(outcome.to_reply()).unwrap();
            assert!(said.insert(name.clone(), Words::of(&reply)).is_none());
        }
        (shown, said)
    }

    async fn execute(&self, caller: &Caller, names: &[String]) -> Seen {
        let key = &self.keys[&caller.user];
        let listed = self.client.get(format!("{}/api/tools", self.base)).bearer_auth(key);
        let listed: Value = within(listed.send()).await.unwrap().json().await.unwrap();
        let usable = listed["tools"].as_array().unwrap().iter().filter(|tool| tool["enabled"] == true);
        let shown = usable.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        let mut said = BTreeMap::new();
        for name in names {
            let body = json!({"tool_name": name, "arguments": {}});
            let request = self.client.post(format!("{}/execute", self.base)).bearer_auth(key).json(&body);
            let response = within(request.send()).await.unwrap();
            let (status, waits) = (response.status(), response.headers().contains_key("retry-after"));
            let reply: Value = response.json().await.unwrap();
            let kind = self.outcome(caller, name).error;
            let expected = match kind {
                Some(ErrorKind::PermissionDenied) => StatusCode::FORBIDDEN,
                Some(ErrorKind::ToolRateLimited) => StatusCode::TOO_MANY_REQUESTS,
                Some(ErrorKind::ApprovalPending) => StatusCode::ACCEPTED,
                _ => StatusCode::OK,
            };
            assert_eq!(
                (status, waits),
                (expected, kind == Some(ErrorKind::ToolRateLimited)),
                "{name}: {reply}"
            );
            said.insert(name.clone(), Words::of(&reply));
        }
        (shown, said)
    }

    async fn chat(&self, caller: &Caller, answers: impl IntoIterator<Item = Answer>, says: &str) -> Seen {
        let first = self.upstream.asked().len();
        answers.into_iter().for_each(|answer| self.upstream.push(answer));
        // Of a client without tools only calls of what is offered are calls.
        let body = json!({"model": "m", "messages": [user("Go.")], "tools": [client_tool("clients_own")]});
        let request = self.client.post(format!("{}/v1/chat/completions", self.base)).json(&body);
        let response = within(request.bearer_auth(&self.keys[&caller.user]).send()).await.unwrap();
        let reported = within(Reported::read(response)).await;
        reported.expect_end(says);
        let offered = self.upstream.asked()[first].body["tools"].as_array().cloned().unwrap_or_default();
        let shown = offered.iter().map(|tool| tool["function"]["description"].as_str().unwrap().to_owned());
        let shown = shown.filter(|description| description != "The client's.");
        let finished = reported.details_of("call_finished");
        let said = finished.iter().map(|call| (call["name"].as_str().unwrap().to_owned(), Words::of(call)));
        (shown.collect(), said.collect())
    }

    /// What the last call of a tool came to in the audit.
    pub(crate) fn outcome(&self, caller: &Caller, name: &str) -> AuditRecord {
        let of = |record: &AuditRecord| record.tool == name && record.user == caller.user;
        self.audit.records().into_iter().rev().find(of).expect("every call leaves a record")
    }
}
