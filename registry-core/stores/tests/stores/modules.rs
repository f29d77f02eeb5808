//! What is kept of modules, and what modules do with a store and a Redis that come and go.

use std::{sync::Arc, time::Duration};

use registry_core::{
    Caller, Permission, Registry, ToolContext,
    store::{Kept, ManifestCache, ManifestStore, MemoryManifests},
};
use serde_json::json;
use toolrack_remote::module::{ModuleSettings, Modules, ModulesSettings};
use toolrack_stores::{Redis, RedisManifests};

use crate::{
    Place,
    peer::{Peer, tool},
    servers,
};

async fn manifest_contract(store: &dyn ManifestStore) {
    assert_eq!(store.kept("mail", Kept::LastGood).await, Ok(None));
    store.keep("mail", Kept::LastGood, "old").await.unwrap();
    store.keep("mail", Kept::LastGood, r#"{"ü": "\u0000 '\""}"#).await.unwrap();
    store.keep("mail", Kept::Accepted, &"x".repeat(2 << 20)).await.unwrap();
    let kept = store.kept("mail", Kept::LastGood).await.unwrap();
    assert_eq!(kept.as_deref(), Some(r#"{"ü": "\u0000 '\""}"#));
    assert_eq!(store.kept("mail", Kept::Accepted).await.unwrap().unwrap().len(), 2 << 20);
    assert_eq!(store.kept("calendar", Kept::Accepted).await, Ok(None));
}

#[tokio::test]
async fn m3_every_store_keeps_manifests_alike() {
    manifest_contract(&MemoryManifests::default()).await;
    for place in Place::all("m3_every_store_keeps_manifests_alike") {
        manifest_contract(&place.open("main").await).await;
        let reopened = place.open("main").await;
        assert!(reopened.kept("mail", Kept::LastGood).await.unwrap().is_some());
    }
}

/// A server with the module at that address.
fn server(url: &str, cache: Arc<dyn ManifestCache>, store: Arc<dyn ManifestStore>) -> (Registry, Modules) {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let module = ModuleSettings { pin: true, ..ModuleSettings::new(url) };
    let settings = ModulesSettings {
        discovery_timeout: Duration::from_millis(500),
        ..ModulesSettings::default().with_module("m", module)
    };
    let modules = Modules::new(&registry, settings, cache, store).unwrap();
    (registry, modules)
}

fn usable(registry: &Registry) -> Vec<String> {
    let context = ToolContext::new(Caller::new("ada", Permission::User));
    registry.select(&context).tools().iter().map(|tool| tool.name().to_owned()).collect()
}

#[tokio::test]
async fn m3_tools_and_what_was_accepted_of_them_outlive_the_process() {
    for place in Place::all("m3_tools_and_what_was_accepted_of_them_outlive_the_process") {
        let peer = Peer::new("m", &[tool("f", "guest"), tool("g", "guest")]).await;
        let start = async || {
            let (registry, modules) =
                server(&peer.url, Arc::new(MemoryManifests::default()), Arc::new(place.open("main").await));
            modules.ready().await;
            (registry, modules)
        };
        drop(start().await);
        peer.set_tools("m", &[tool("f", "guest"), tool("g", "user")]);
        // From the store at once, and then as the module has it now.
        let (registry, modules) = start().await;
        assert_eq!(usable(&registry), ["m.f", "m.g"]);
        modules.refresh().await;
        assert_eq!(usable(&registry), ["m.f"], "what is changed is off, also after a restart");
        drop((registry, modules));
        let (registry, modules) = start().await;
        assert_eq!(usable(&registry), ["m.f"]);
        let digest = modules.reports()[0].source.digest.clone();
        modules.accept("m", &digest).await.unwrap();
        drop((registry, modules));
        assert_eq!(usable(&start().await.0), ["m.f", "m.g"]);
    }
}

#[tokio::test]
async fn m2_servers_share_manifests_in_redis_and_lose_none_with_it() {
    let test = "m2_servers_share_manifests_in_redis_and_lose_none_with_it";
    let port = servers::free_port();
    let Some(redis) = servers::redis_on(test, port) else { return };
    let url = format!("redis://127.0.0.1:{port}");
    let store: Arc<dyn ManifestStore> = Arc::new(MemoryManifests::default());
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let start = || {
        let cache = Arc::new(RedisManifests::new(Redis::new(&url).unwrap()));
        server(&peer.url, cache, Arc::clone(&store))
    };
    let (one, modules) = start();
    modules.ready().await;
    let (other, others_modules) = start();
    others_modules.ready().await;
    assert_eq!((usable(&one), usable(&other)), (vec!["m.f".to_owned()], vec!["m.f".to_owned()]));
    assert_eq!(peer.manifests_asked(), 1, "the other one has read it in Redis");

    // Killed between discovery and use, and started again with nothing in it.
    drop(redis);
    let call = async || {
        let context = ToolContext::new(Caller::new("ada", Permission::User));
        one.execute_tool("m.f", json!({}), &context, None).await
    };
    assert_eq!(call().await.for_model(), "done");
    modules.ready().await;
    assert_eq!(modules.refresh().await[0].source.error, None);
    assert_eq!(call().await.for_model(), "done");
    let _redis = servers::redis_on(test, port);
    assert_eq!(call().await.for_model(), "done");
    assert_eq!(usable(&one), ["m.f"]);
    // Left alone for a second after it did not answer.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    modules.refresh().await;
    let (third, thirds_modules) = start();
    let before = peer.manifests_asked();
    thirds_modules.ready().await;
    assert_eq!((usable(&third), peer.manifests_asked()), (vec!["m.f".to_owned()], before));
}
