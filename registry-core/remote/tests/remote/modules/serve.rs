//! M10 and M7: a registry as a module of another.

use std::sync::Arc;

use registry_core::{Effect, Permission, Registry, ToolPolicy, ToolResult, ToolSpec, handler_fn};
use serde_json::{Value, json};
use toolrack_remote::module::{MAX_HOPS, ModuleSettings, Modules, ModulesSettings};

use super::{
    Server, TestCache,
    peer::{Answer, Peer, manifest, tool},
    quick, user,
};

fn register(registry: &Registry, name: &str, schema: Value) {
    let spec = ToolSpec {
        version: Some("1.2.0".into()),
        description: Some("Looks.".into()),
        tags: vec!["eyes".into()],
        ..ToolSpec::new(name, schema)
    };
    let policy = ToolPolicy { permission: Permission::User, effect: Effect::Write, ..ToolPolicy::new() };
    registry.register(spec, policy, Some(handler_fn(|_, _| async { Ok(ToolResult::new(1)) }))).unwrap();
}

#[tokio::test]
async fn m10_a_registry_is_served_and_taken_without_loss() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let schema = json!({
        "type": "object",
        "properties": {
            "at": {"type": "object", "description": "Where.", "properties": {"x": {"type": "integer"}}},
            "unit": {"enum": ["m", "ft"]},
        },
        "required": ["at"],
    });
    register(&registry, "look", schema.clone());
    register(&registry, "far.look", schema.clone());
    let modules =
        Modules::new(&registry, ModulesSettings::default(), TestCache::new(), TestCache::new()).unwrap();
    let served = modules.serve("rack", &registry.select(&user(Permission::Owner)));
    assert_eq!(
        serde_json::to_value(&served.tools[1]).unwrap(),
        json!({
            "name": "rack.look",
            "description": "Looks.",
            "required_permission": "user",
            "parameters": [
                {"name": "at", "type": "object", "description": "Where.", "required": true},
                {"name": "unit", "type": "any", "description": "", "required": false, "enum": ["m", "ft"]},
            ],
            "input_schema": schema,
            "version": "1.2.0",
            "tags": ["eyes"],
            "effect": "write",
            "reads": ["private", "untrusted"],
            "sends": "outside",
        })
    );
    let hidden = modules.serve("rack", &registry.select(&user(Permission::Guest)));
    assert!(hidden.tools.is_empty(), "what a caller may not use is not served");

    let peer =
        Peer::with(Answer::json(&serde_json::to_value(&served).unwrap()), Answer::json(&json!({}))).await;
    let other = Server::with("other", &peer.url).await;
    assert_eq!(other.names(), ["other.far.look", "other.look"]);
    let (theirs, ours) = (registry.get("look").unwrap(), other.registry.get("other.look").unwrap());
    assert_eq!(ToolSpec { tool_name: "look".into(), ..ours.spec().clone() }, *theirs.spec());
    assert_eq!((ours.policy().permission, ours.policy().effect), (Permission::User, Effect::Write));
    other.call("other.look").await;
    assert!(peer.calls().is_empty(), "`at` is missing");
}

#[tokio::test]
async fn m7_two_that_are_modules_of_each_other_come_to_an_end() {
    // Each is given what the other serves, time and again.
    let own = [tool("f", "guest")];
    let (one, two) = (Peer::new("x", &own).await, Peer::new("x", &own).await);
    let server = |peer: &Peer| Arc::new(Server::new(quick(&[("peer", ModuleSettings::new(&peer.url))])));
    let (a, b) = (server(&two), server(&one));
    for server in [&a, &b] {
        register(&server.registry, "own", json!({"type": "object"}));
    }
    for _ in 0..10 {
        for (server, peer) in [(&a, &one), (&b, &two)] {
            server.modules.refresh().await;
            let served = server.modules.serve("rack", &server.registry.select(&user(Permission::Owner)));
            peer.set_manifest(Answer::json(&serde_json::to_value(served).unwrap()));
        }
    }
    let longest = a.names().iter().map(|name| name.matches("peer").count()).max();
    assert_eq!(longest, Some(usize::from(MAX_HOPS)), "{:?}", a.names());
    assert!(a.modules.reports()[0].source.faults.iter().any(|fault| fault.message.contains("servers away")));
    two.set_manifest(Answer::json(&manifest("x", &[])));
    a.modules.refresh().await;
    assert_eq!(a.names(), ["own"]);
}
