//! B3: the registry for a client of the Model Context Protocol, message by message.

mod approvals;
mod asking;
mod calls;
mod ids;
mod listing;
mod names;
mod over_http;
mod peer;
mod questions;
mod waiting;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use llm_bridge::mcp::{McpServer, UniqueIds, Visitor};
use registry_core::{
    Caller, CallerAuthority, Content, Effect, Handler, Origin, Permission, Registry, RegistryBuilder,
    ToolContext, ToolError, ToolPolicy, ToolResult, ToolSpec,
    guard::audit::{AuditRecord, MemoryAudit, Phase},
    handler_fn,
    store::StoreResult,
};
use rmcp::{RoleServer, ServiceExt, service::RunningService};
use serde_json::{Map, Value, json};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use peer::{Era, Peer};

/// Waits for something that has to happen. The time is a guard against a hang and says nothing about speed.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it should have happened long ago")
}

/// Waits until something holds that no event tells of.
async fn until(holds: impl Fn() -> bool) {
    within(async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A registry behind a server, and who its visitor is at the moment.
struct Rack {
    registry: Registry,
    audit: Arc<MemoryAudit>,
    server: McpServer,
    who: Arc<Mutex<Caller>>,
    /// Whether what the visitor came in with was taken away.
    revoked: Arc<AtomicBool>,
    closing: CancellationToken,
    calls: TaskTracker,
}

struct Revocable(Arc<AtomicBool>, Caller);

#[async_trait]
impl CallerAuthority for Revocable {
    async fn caller(&self) -> StoreResult<Option<Caller>> {
        let known = (!self.0.load(Ordering::SeqCst)).then(|| self.1.clone());
        Ok(known)
    }
}

impl Rack {
    fn new() -> Self {
        Self::of(Registry::builder())
    }

    fn of(builder: RegistryBuilder) -> Self {
        Self::in_session(builder, None)
    }

    /// All calls are of this session.
    fn in_session(builder: RegistryBuilder, session: Option<&'static str>) -> Self {
        let audit = Arc::new(MemoryAudit::new(1000));
        let registry = builder
            .without_compiled()
            .audit(audit.clone())
            .approval_timeout(Duration::from_secs(60))
            .build()
            .unwrap();
        let who = Arc::new(Mutex::new(Caller::new("ada", Permission::User)));
        let revoked = Arc::new(AtomicBool::new(false));
        let (closing, calls) = (CancellationToken::new(), TaskTracker::new());
        let server = {
            let (registry, who, revoked) = (registry.clone(), Arc::clone(&who), Arc::clone(&revoked));
            let identify = move |_: &_| {
                let caller = who.lock().unwrap().clone();
                let standing = Arc::new(Revocable(Arc::clone(&revoked), caller.clone()));
                let context = registry.context(caller).with_authority(standing);
                Some(Visitor { registry: registry.clone(), context, session: session.map(Into::into) })
            };
            McpServer::new(closing.clone(), calls.clone(), identify)
        };
        Self { registry, audit, server, who, revoked, closing, calls }
    }

    fn add(&self, name: &str, policy: ToolPolicy, handler: Arc<dyn Handler>) {
        self.add_with(ToolSpec::new(name, json!({"type": "object"})), policy, handler);
    }

    fn add_with(&self, spec: ToolSpec, policy: ToolPolicy, handler: Arc<dyn Handler>) {
        self.registry.register(spec, policy, Some(handler)).unwrap();
    }

    fn becomes(&self, user: &str, level: Permission) {
        *self.who.lock().unwrap() = Caller::new(user, level);
    }

    /// A client that has begun.
    async fn peer(&self, era: Era, capabilities: Value) -> Peer {
        let (here, there) = tokio::io::duplex(1 << 20);
        let server = self.server.clone();
        let serving = tokio::spawn(async move { server.serve(UniqueIds::over(there)).await.unwrap() });
        let mut peer = Peer::new(here, era, capabilities);
        peer.begin().await;
        // Kept from ending with the variable.
        tokio::spawn(async move {
            let running: RunningService<RoleServer, McpServer> = serving.await.unwrap();
            running.waiting().await
        });
        peer
    }

    fn outcomes(&self) -> Vec<AuditRecord> {
        self.audit.records().into_iter().filter(|record| record.phase == Phase::Outcome).collect()
    }

    /// The last outcome, which is an MCP client's.
    fn last(&self) -> AuditRecord {
        let last = self.outcomes().pop().expect("no call has left an outcome");
        assert_eq!(last.origin, Origin::Mcp);
        last
    }
}

fn says(value: impl Into<Value>) -> Arc<dyn Handler> {
    let value = value.into();
    handler_fn(move |_, _| std::future::ready(Ok(ToolResult::new(value.clone()))))
}

fn destructive() -> ToolPolicy {
    ToolPolicy { effect: Effect::Destructive, ..ToolPolicy::new() }
}
