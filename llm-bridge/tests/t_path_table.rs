//! One table: every door × level × persona × effect × state of a tool. What a door shows is what it lets be called, no door does what
//! another refuses, and every call leaves its record: requirements T3, T4, T5, M5, M6, B8, L3.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use llm_bridge::{
    chat::{Backend, ChatSettings, Limits, Upstream},
    listing,
    server::{self, Access, ServerSettings},
};
use registry_core::{
    BoxFuture, Caller, DEFAULT_TENANT, Effect, ErrorKind, Origin, Permission, Registry, ToolCall, ToolPolicy,
    ToolResult, ToolSpec,
    clock::FixedClock,
    guard::{
        approval::ApprovalAnswer,
        audit::{AuditRecord, MemoryAudit, Phase},
        gate::{Decision, Gate, GateAnswer, GateRequest, Verdict},
        limits::{Charge, MemoryUsage, Usage},
    },
    handler_fn,
    store::{ApiKey, MemoryStore, Store, User},
};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use support::{Answer, Scripted, Told, user, within};
use tokio_util::sync::{CancellationToken, DropGuard};

/// What the tools' module is called.
const MODULE: &str = "files";
/// The gate's name in the audit.
const GATE: &str = "warden";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Enabled,
    SwitchedOff,
    UsedUp,
    GateApproves,
    GateBlocks,
    WithoutHandler,
}

const STATES: [State; 6] = [
    State::Enabled,
    State::SwitchedOff,
    State::UsedUp,
    State::GateApproves,
    State::GateBlocks,
    State::WithoutHandler,
];

/// A tool of the table. Its name says all of it.
#[derive(Debug, Clone)]
struct Row {
    name: String,
    effect: Effect,
    state: State,
    needs: Permission,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for effect in [Effect::Read, Effect::Write, Effect::Destructive] {
        for state in STATES {
            for needs in Permission::ALL {
                let name = format!("{MODULE}.{}_{state:?}_{needs}", effect.as_str()).to_lowercase();
                rows.push(Row { name, effect, state, needs });
            }
        }
    }
    rows
}

/// Every level with every persona: all modules, the tools' module, another one.
fn callers() -> Vec<Caller> {
    let personas = [("all", None), ("own", Some(MODULE)), ("other", Some("notes"))];
    let caller = |level: Permission, (name, module): (&str, Option<&str>)| {
        let caller = Caller::new(format!("{level}_{name}"), level);
        module.map_or(caller.clone(), |module| caller.only_modules([module]))
    };
    Permission::ALL.into_iter().flat_map(|level| personas.map(|persona| caller(level, persona))).collect()
}

/// What has to become of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Runs,
    Blocked,
    Fails(ErrorKind),
}

fn fate(row: &Row, caller: &Caller) -> Fate {
    let allowed = caller.allowed_modules.as_ref().is_none_or(|modules| modules.contains(MODULE));
    match row.state {
        State::SwitchedOff => Fate::Fails(ErrorKind::Unavailable),
        _ if caller.level < row.needs || !allowed => Fate::Fails(ErrorKind::PermissionDenied),
        State::WithoutHandler => Fate::Fails(ErrorKind::Unavailable),
        State::UsedUp => Fate::Fails(ErrorKind::ToolRateLimited),
        State::GateBlocks => Fate::Blocked,
        State::Enabled | State::GateApproves if row.effect == Effect::Destructive => {
            Fate::Fails(ErrorKind::ApprovalPending)
        }
        State::Enabled | State::GateApproves => Fate::Runs,
    }
}

/// What the audit has to say of who decided.
fn decision(row: &Row, fate: Fate, approved: bool) -> Option<Decision> {
    let (verdict, by) = match fate {
        Fate::Blocked => (Verdict::Blocked, GATE),
        Fate::Fails(ErrorKind::ApprovalPending) => (Verdict::Pending, "person"),
        Fate::Runs if approved => (Verdict::Approved, "user:root"),
        Fate::Runs if row.state == State::GateApproves => (Verdict::Approved, GATE),
        _ => return None,
    };
    Some(Decision { verdict, by: by.to_owned() })
}

/// What a door tells whoever called, in the words that all of them have.
#[derive(Debug, Clone, PartialEq)]
struct Words {
    success: bool,
    result: Value,
    error: Value,
    message: Value,
    retry_at: Value,
    waits: bool,
}

impl Words {
    fn of(reply: &Value) -> Self {
        let said = |key: &str| reply.get(key).cloned().unwrap_or_default();
        // The id of an approval is the one thing that differs from call to call.
        let error = match (said("error"), reply["approval"].as_str()) {
            (Value::String(error), Some(id)) => error.replace(id, "ID").into(),
            (error, _) => error,
        };
        Self {
            success: reply["success"].as_bool().unwrap(),
            result: said("result"),
            error,
            message: said("message"),
            retry_at: said("retry_at"),
            waits: said("approval").is_string(),
        }
    }

    fn check(&self, fate: Fate) {
        let limited = fate == Fate::Fails(ErrorKind::ToolRateLimited);
        assert_eq!(self.success, fate == Fate::Runs);
        assert_eq!(self.result == "done", fate == Fate::Runs);
        assert_eq!(self.message == "not today", fate == Fate::Blocked);
        assert_eq!(self.error.is_string(), matches!(fate, Fate::Fails(_)));
        assert_eq!(self.retry_at == "2026-03-02T00:00:00Z", limited);
        assert_eq!(self.waits, fate == Fate::Fails(ErrorKind::ApprovalPending));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Library,
    CommandLine,
    Execute,
    ChatNative,
    ChatText,
}

const DOORS: [Door; 5] = [Door::Library, Door::CommandLine, Door::Execute, Door::ChatNative, Door::ChatText];

impl Door {
    fn origin(self) -> Origin {
        match self {
            Self::Library => Origin::Library,
            Self::CommandLine => Origin::CommandLine,
            Self::Execute => Origin::Http,
            Self::ChatNative => Origin::Native,
            Self::ChatText => Origin::Text("hermes".into()),
        }
    }
}

struct Warden;

impl Gate for Warden {
    fn name(&self) -> &str {
        GATE
    }

    fn check<'a>(&'a self, request: GateRequest<'a>) -> BoxFuture<'a, Result<GateAnswer, String>> {
        let blocked = request.spec.tool_name.contains("_gateblocks_");
        Box::pin(async move {
            Ok(if blocked { GateAnswer::Blocked("not today".to_owned()) } else { GateAnswer::Approved })
        })
    }
}

/// One door with a registry of its own behind it.
struct Site {
    door: Door,
    registry: Registry,
    audit: Arc<MemoryAudit>,
    /// Who has run what, as the tools' code saw it.
    ran: Arc<Mutex<Vec<(String, String)>>>,
    upstream: Scripted,
    base: String,
    client: Client,
    keys: BTreeMap<String, String>,
    _stop: DropGuard,
}

impl Site {
    async fn start(door: Door, rows: &[Row], callers: &[Caller]) -> Self {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let audit = Arc::new(MemoryAudit::new(100_000));
        let usage = Arc::new(MemoryUsage::default());
        let registry = Registry::builder()
            .without_compiled()
            .audit(audit.clone())
            .usage(usage.clone())
            .gate(Arc::new(Warden))
            .clock(Arc::new(FixedClock(now)))
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
            let user = User { id: id.clone(), level, allowed_modules, created_at: now };
            store.put_user(DEFAULT_TENANT, user).await.unwrap();
            let (key, secret) = ApiKey::generate(DEFAULT_TENANT, &id, false, now).unwrap();
            store.put_key(key).await.unwrap();
            keys.insert(id, secret);
        }
        let settings = ServerSettings {
            caller: Caller::new("nobody", Permission::Guest),
            access: Access { key_required: true, ..Access::default() },
            store,
            grace: Duration::from_secs(1),
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
        let client = registry_core::http::build_client(|| Client::builder().no_proxy()).unwrap();
        Self { door, registry, audit, ran, upstream, base, client, keys, _stop: stop.drop_guard() }
    }

    /// What the door shows the caller as usable, and what it says to a call of each of these.
    async fn turn(&self, caller: &Caller, names: &[String]) -> (BTreeSet<String>, BTreeMap<String, Words>) {
        match self.door {
            Door::Library | Door::CommandLine => self.direct(caller, names).await,
            Door::Execute => self.execute(caller, names).await,
            Door::ChatNative => {
                let call = |answer: Answer, name: &String| answer.call(name, name, &json!({}));
                self.chat(caller, names.iter().fold(Answer::new(), call), "Done.").await
            }
            Door::ChatText => {
                let call = |name: &String| {
                    format!("<tool_call>\n{}\n</tool_call>\n", json!({"name": name, "arguments": {}}))
                };
                let text: String = names.iter().map(call).collect();
                let shown = if self.reads_text(caller) { "Done." } else { text.trim() };
                self.chat(caller, Answer::text(&text), shown).await
            }
        }
    }

    /// Where a caller has no tool at all, the model's text is text.
    fn reads_text(&self, caller: &Caller) -> bool {
        !self.registry.select(&self.registry.context(caller.clone())).tools().is_empty()
    }

    async fn direct(&self, caller: &Caller, names: &[String]) -> (BTreeSet<String>, BTreeMap<String, Words>) {
        let context = self.registry.context(caller.clone()).with_approval_wait(Duration::ZERO);
        let shown = if self.door == Door::Library {
            self.registry.select(&context).tools().iter().map(|tool| tool.name().to_owned()).collect()
        } else {
            let rows = listing::rows(&self.registry, &context, false);
            rows.into_iter().filter(|row| row.enabled).map(|row| row.name).collect()
        };
        let mut said = BTreeMap::new();
        for name in names {
            let call = ToolCall::new(name, json!({})).with_origin(self.door.origin());
            let outcome = self.registry.execute(&context, call).await;
            let reply = serde_json::to_value(outcome.to_reply()).unwrap();
            assert!(said.insert(name.clone(), Words::of(&reply)).is_none());
        }
        (shown, said)
    }

    async fn execute(
        &self,
        caller: &Caller,
        names: &[String],
    ) -> (BTreeSet<String>, BTreeMap<String, Words>) {
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

    async fn chat(
        &self,
        caller: &Caller,
        calls: Answer,
        says: &str,
    ) -> (BTreeSet<String>, BTreeMap<String, Words>) {
        let first = self.upstream.asked().len();
        self.upstream.push(calls);
        if says == "Done." {
            self.upstream.push(Answer::text(says));
        }
        let body = json!({"model": "m", "messages": [user("Go.")]});
        let request = self.client.post(format!("{}/v1/chat/completions", self.base)).json(&body);
        let response = within(request.bearer_auth(&self.keys[&caller.user]).send()).await.unwrap();
        let told = within(Told::read(response)).await;
        told.expect(says);
        let offered = self.upstream.asked()[first].body["tools"].as_array().cloned().unwrap_or_default();
        let shown = offered.iter().map(|tool| tool["function"]["description"].as_str().unwrap().to_owned());
        let finished = told.details_of("call_finished");
        let said = finished.iter().map(|call| (call["name"].as_str().unwrap().to_owned(), Words::of(call)));
        (shown.collect(), said.collect())
    }

    /// What the last call of a tool came to in the audit.
    fn outcome(&self, caller: &Caller, name: &str) -> AuditRecord {
        let of = |record: &AuditRecord| record.tool == name && record.user == caller.user;
        self.audit.records().into_iter().rev().find(of).expect("every call leaves a record")
    }

    /// Makes the calls and checks everything about each; gives what the door has said.
    async fn check(
        &self,
        caller: &Caller,
        rows: &[Row],
        approved: bool,
    ) -> (BTreeSet<String>, BTreeMap<String, Words>) {
        let (recorded, ran) = (self.audit.records().len(), self.ran.lock().unwrap().len());
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        let (shown, said) = self.turn(caller, &names).await;
        let records = self.audit.records().split_off(recorded);
        let ran: Vec<(String, String)> = self.ran.lock().unwrap().split_off(ran);
        if self.door == Door::ChatText && !self.reads_text(caller) {
            assert!(shown.is_empty() && said.is_empty() && records.is_empty() && ran.is_empty());
            return (shown, said);
        }
        assert_eq!(said.len(), rows.len(), "{:?}: every call is answered, once", self.door);
        let mut expected_records = 0;
        for row in rows {
            let cell = format!("{:?}: {} calls {}", self.door, caller.user, row.name);
            let fate = if approved { Fate::Runs } else { fate(row, caller) };
            let runs = usize::from(fate == Fate::Runs);
            let own: Vec<&AuditRecord> = records.iter().filter(|record| record.tool == row.name).collect();
            assert_eq!(own.len(), 1 + runs, "{cell}: {own:?}");
            expected_records += own.len();
            let last = own[own.len() - 1];
            let kind = if let Fate::Fails(kind) = fate { Some(kind) } else { None };
            assert_eq!((last.phase, last.success), (Phase::Outcome, Some(fate == Fate::Runs)), "{cell}");
            assert_eq!(last.error, kind, "{cell}: {:?}", last.error_message);
            assert_eq!(last.decision, decision(row, fate, approved), "{cell}");
            for record in &own {
                assert_eq!((&record.user, record.level), (&caller.user, caller.level), "{cell}");
                assert_eq!(
                    (record.origin.clone(), &*record.tenant),
                    (self.door.origin(), "default"),
                    "{cell}"
                );
                assert_eq!(record.call_id, last.call_id, "{cell}");
                assert_eq!(record.decision, last.decision, "{cell}");
            }
            if runs == 1 {
                assert_eq!((own[0].phase, own[0].success), (Phase::Intent, None), "{cell}");
            }
            let times = ran.iter().filter(|(user, tool)| *user == caller.user && *tool == row.name).count();
            assert_eq!(times, runs, "{cell}: how often its code ran");
            let refused = matches!(kind, Some(ErrorKind::Unavailable | ErrorKind::PermissionDenied));
            assert_eq!(shown.contains(&row.name), !refused, "{cell}: listing and calling agree");
            said[&row.name].check(fate);
        }
        assert_eq!(records.len(), expected_records, "{:?}: no record of anything else", self.door);
        (shown, said)
    }

    /// Says yes to all that waits.
    async fn approve(&self) {
        for approval in self.registry.pending_approvals().await.unwrap() {
            let answer = ApprovalAnswer { approve: true, by: "root".to_owned(), reason: None };
            self.registry.answer_approval(&approval.id, answer).await.unwrap();
        }
    }
}

#[tokio::test]
async fn t_every_door_lists_and_decides_and_records_alike() {
    let (rows, callers) = (rows(), callers());
    assert_eq!((rows.len(), callers.len()), (72, 12));
    let mut sites = Vec::new();
    for door in DOORS {
        sites.push(Site::start(door, &rows, &callers).await);
    }
    let mut cells = 0;
    for caller in &callers {
        let waiting: Vec<Row> = rows
            .iter()
            .filter(|row| fate(row, caller) == Fate::Fails(ErrorKind::ApprovalPending))
            .cloned()
            .collect();
        let mut first: Option<[_; 2]> = None;
        for site in &sites {
            let asked = site.check(caller, &rows, false).await;
            site.approve().await;
            // What a person has approved runs, once.
            let then = if waiting.is_empty() {
                asked.clone()
            } else {
                let then = site.check(caller, &waiting, true).await;
                site.check(caller, &waiting, false).await;
                then
            };
            cells += rows.len();
            let seen = [asked, then];
            match &first {
                None => first = Some(seen),
                Some(first) if site.door == Door::ChatText && !site.reads_text(caller) => {
                    assert!(first.iter().all(|(shown, _)| shown.is_empty()));
                }
                // To the letter: the same words about the same call, whatever the door.
                Some(first) => {
                    assert_eq!(*first, seen, "{:?} and {:?}, {}", sites[0].door, site.door, caller.user)
                }
            }
        }
    }
    assert_eq!(cells, 72 * 12 * 5);
}
