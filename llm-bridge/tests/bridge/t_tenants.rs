//! Tenants beside each other on one server: requirements L5, M9.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use llm_bridge::{
    server::{Access, ServerSettings, check_address, router},
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};
use registry_core::{
    Caller, Permission, Registry,
    store::{
        ApiKey, MemoryStore, Persona, RemovedUser, Session, Store, StoreError, StoreResult, StoredTool, User,
    },
};
use reqwest::{Client, StatusCode};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// A store that answers about the tools of `acme` when it is let, and says when it is asked.
struct Slow {
    kept: MemoryStore,
    asked: mpsc::UnboundedSender<()>,
    /// What it says then, as often as there are permits.
    answers: Semaphore,
    fails: bool,
}

#[async_trait]
impl Store for Slow {
    async fn tools(&self, tenant: &str) -> StoreResult<Vec<StoredTool>> {
        if tenant == "acme" {
            self.asked.send(()).unwrap();
            self.answers.acquire().await.unwrap().forget();
            if self.fails {
                return Err(StoreError::unavailable("the disk of acme is gone"));
            }
        }
        self.kept.tools(tenant).await
    }

    async fn put_tool(&self, tenant: &str, tool: StoredTool, revision: u64) -> StoreResult<bool> {
        self.kept.put_tool(tenant, tool, revision).await
    }

    async fn remove_tool(&self, tenant: &str, tool: &str) -> StoreResult<()> {
        self.kept.remove_tool(tenant, tool).await
    }

    async fn personas(&self, tenant: &str) -> StoreResult<Vec<Persona>> {
        self.kept.personas(tenant).await
    }

    async fn persona(&self, tenant: &str, name: &str) -> StoreResult<Option<Persona>> {
        self.kept.persona(tenant, name).await
    }

    async fn put_persona(&self, tenant: &str, persona: Persona) -> StoreResult<()> {
        self.kept.put_persona(tenant, persona).await
    }

    async fn remove_persona(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        self.kept.remove_persona(tenant, name).await
    }

    async fn tenants(&self) -> StoreResult<Vec<String>> {
        self.kept.tenants().await
    }

    async fn users(&self, tenant: &str) -> StoreResult<Vec<User>> {
        self.kept.users(tenant).await
    }

    async fn count_users(&self, tenant: &str) -> StoreResult<usize> {
        self.kept.count_users(tenant).await
    }

    async fn user(&self, tenant: &str, id: &str) -> StoreResult<Option<User>> {
        self.kept.user(tenant, id).await
    }

    async fn put_user(&self, tenant: &str, user: User) -> StoreResult<()> {
        self.kept.put_user(tenant, user).await
    }

    async fn change_user(&self, tenant: &str, user: User, revision: u64) -> StoreResult<bool> {
        self.kept.change_user(tenant, user, revision).await
    }

    async fn remove_user(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<RemovedUser> {
        self.kept.remove_user(tenant, id, at).await
    }

    async fn keys(&self, tenant: &str) -> StoreResult<Vec<ApiKey>> {
        self.kept.keys(tenant).await
    }

    async fn keys_of(&self, tenant: &str, user: &str) -> StoreResult<Vec<ApiKey>> {
        self.kept.keys_of(tenant, user).await
    }

    async fn key_of_id(&self, tenant: &str, id: &str) -> StoreResult<Option<ApiKey>> {
        self.kept.key_of_id(tenant, id).await
    }

    async fn key(&self, sha256: &str, now: Timestamp) -> StoreResult<Option<ApiKey>> {
        self.kept.key(sha256, now).await
    }

    async fn has_keys(&self) -> StoreResult<bool> {
        self.kept.has_keys().await
    }

    async fn put_key(&self, key: ApiKey) -> StoreResult<bool> {
        self.kept.put_key(key).await
    }

    async fn revoke_key(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<bool> {
        self.kept.revoke_key(tenant, id, at).await
    }

    async fn put_session(&self, session: Session, most: usize) -> StoreResult<bool> {
        self.kept.put_session(session, most).await
    }

    async fn session(&self, sha256: &str, now: Timestamp) -> StoreResult<Option<Session>> {
        self.kept.session(sha256, now).await
    }

    async fn sessions(&self, tenant: &str, user: &str, now: Timestamp) -> StoreResult<Vec<Session>> {
        self.kept.sessions(tenant, user, now).await
    }

    async fn end_session(&self, tenant: &str, user: &str, id: &str) -> StoreResult<bool> {
        self.kept.end_session(tenant, user, id).await
    }

    async fn revision(&self) -> StoreResult<u64> {
        self.kept.revision().await
    }

    async fn changed(&self, since: u64) {
        self.kept.changed(since).await
    }
}

fn settings(store: Arc<dyn Store>) -> ServerSettings {
    ServerSettings {
        access: Access { key_required: true, ..Access::default() },
        grace: Duration::from_secs(1),
        ..ServerSettings::new(Caller::new("local", Permission::Guest), store)
    }
}

async fn key(store: &dyn Store, tenant: &str) -> (String, String) {
    let now = Timestamp::now();
    let user = User { id: "ada".into(), level: Permission::User, personas: Vec::new(), created_at: now };
    store.put_user(tenant, user).await.unwrap();
    let (key, secret) = ApiKey::generate(tenant, "ada", false, now).unwrap();
    let id = key.id.clone();
    store.put_key(key).await.unwrap();
    (id, secret)
}

#[tokio::test]
async fn l5_a_store_that_is_slow_about_one_tenant_holds_up_no_other() {
    for fails in [false, true] {
        let (sender, mut asked) = mpsc::unbounded_channel();
        let kept = MemoryStore::default();
        let store = Arc::new(Slow { kept, asked: sender, answers: Semaphore::new(0), fails });
        let (_, theirs) = key(store.as_ref(), "acme").await;
        let (_, ours) = key(store.as_ref(), "default").await;
        let registry = Registry::builder().without_compiled().build().unwrap();
        let backend = Backend::new(registry, Upstream::demo(), ChatSettings::default());
        let app = router(backend, settings(store.clone()), CancellationToken::new()).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/api/tools", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let client = toolrack_http::build_client(|| Client::builder().no_proxy()).unwrap();
        let list = |key: &str| {
            let request = client.get(&url).bearer_auth(key).timeout(Duration::from_secs(20));
            tokio::spawn(async move { request.send().await.unwrap().status() })
        };

        let waiting = [list(&theirs), list(&theirs)];
        asked.recv().await.unwrap();
        assert_eq!(list(&ours).await.unwrap(), StatusCode::OK);
        assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
        store.answers.add_permits(10);
        let status = if fails { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
        for waiting in waiting {
            assert_eq!(waiting.await.unwrap(), status);
        }
        // One that was taken up is not taken up again; one that failed is tried anew.
        while asked.try_recv().is_ok() {}
        assert_eq!(list(&theirs).await.unwrap(), status);
        assert_eq!(asked.try_recv().is_ok(), fails);
    }
}

#[tokio::test]
async fn m9_a_key_of_any_tenant_opens_the_server_to_other_addresses() {
    let store = Arc::new(MemoryStore::default());
    let open = "0.0.0.0:7331".parse().unwrap();
    let settings = settings(store.clone());
    assert!(check_address(&settings, open).await.unwrap_err().contains("without a key"));
    let (id, _) = key(store.as_ref(), "acme").await;
    assert_eq!(check_address(&settings, open).await, Ok(()));
    store.revoke_key("acme", &id, Timestamp::now()).await.unwrap();
    assert!(check_address(&settings, open).await.is_err());
}
