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
    store::{ApiKey, MemoryStore, Store, StoreError, StoreResult, User},
};
use reqwest::{Client, StatusCode};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

#[path = "../../../registry-core/tests/core/store_behind.rs"]
mod store_behind;

use store_behind::{Asked, Before, StoreBehind};

/// Lets a store answer about the tools of `acme` when it is let, and says when it is asked.
struct Slow {
    asked: mpsc::UnboundedSender<()>,
    /// What it says then, as often as there are permits.
    answers: Semaphore,
    fails: bool,
}

#[async_trait]
impl Before for Slow {
    async fn before(&self, asked: Asked<'_>) -> StoreResult<()> {
        if asked != Asked::Tools("acme") {
            return Ok(());
        }
        self.asked.send(()).unwrap();
        self.answers.acquire().await.unwrap().forget();
        match self.fails {
            true => Err(StoreError::unavailable("the disk of acme is gone")),
            false => Ok(()),
        }
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
        let before = Slow { asked: sender, answers: Semaphore::new(0), fails };
        let store = Arc::new(StoreBehind { kept: Arc::default(), before });
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
        store.before.answers.add_permits(10);
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
