//! The names of tools: clients pass them on to models, and model APIs refuse a dot.

use llm_bridge::mcp::McpSettings;
use registry_core::ToolPattern;

use super::{
    peer::{ERAS, text},
    *,
};

/// A rack with tools that say who they are.
fn rack(names: &[&str]) -> Rack {
    let rack = Rack::new();
    for name in names {
        rack.add(name, ToolPolicy::new(), says(*name));
    }
    rack
}

#[tokio::test]
async fn n8_names_are_legal_for_every_model_and_both_can_be_called() {
    let long = format!("module.{}", "long_".repeat(20));
    let rack = rack(&["house.keys", "house.keys.spare", "2fa", "plain", &long]);
    for era in ERAS {
        let mut peer = rack.peer(era, json!({})).await;
        let (names, _) = peer.list(None).await;
        let legal = |name: &String| {
            name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        assert!(names.iter().all(legal) && names.is_sorted(), "{names:?}");
        assert_eq!(names[..2], ["_2fa", names[1].as_str()]);
        assert!(names.contains(&"house_keys".to_owned()) && names.contains(&"house_keys_spare".to_owned()));
        let mut called = Vec::new();
        for name in &names {
            called.push(text(&peer.call(name, json!({})).await));
            assert_eq!(rack.last().tool, *called.last().unwrap(), "the audit has the tool's own name");
        }
        called.sort();
        assert_eq!(called, ["2fa", "house.keys", "house.keys.spare", &long, "plain"]);
        assert_eq!(text(&peer.call("house.keys", json!({})).await), "house.keys");
    }
}

#[tokio::test]
async fn n8_a_name_stands_for_no_other_tool_when_its_own_is_off() {
    let rack = rack(&["house.keys", "house_keys"]);
    let mut peer = rack.peer(Era::Modern, json!({})).await;
    assert_eq!(peer.list(None).await.0, ["house_keys", "house_keys_2"]);
    assert_eq!(text(&peer.call("house_keys", json!({})).await), "house_keys");
    assert_eq!(text(&peer.call("house_keys_2", json!({})).await), "house.keys");
    rack.registry.set_enabled("house_keys", false).unwrap();
    assert_eq!(peer.list(None).await.0, ["house_keys_2"]);
    let refused = peer.call("house_keys", json!({})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert_eq!(rack.last().tool, "house_keys");
}

#[tokio::test]
async fn n8_messages_name_tools_as_they_are_listed() {
    let rack = rack(&["house.keys", "house.door"]);
    let limited = ToolPolicy { daily_limit: 1, ..ToolPolicy::new() };
    rack.add("house.lamp", limited, says("on"));
    let mut peer = rack.peer(Era::Modern, json!({})).await;
    let unknown = peer.call("house_kys", json!({})).await;
    let message = unknown["error"]["message"].as_str().unwrap_or_else(|| panic!("{unknown}"));
    assert!(message.contains("`house_keys`") && !message.contains("house.keys"), "{message}");
    peer.call("house_lamp", json!({})).await;
    let refused = peer.call("house_lamp", json!({})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(text(&refused).contains("`house_lamp`"), "{refused}");
}

#[tokio::test]
async fn n8_a_search_finds_names_that_can_be_called() {
    let rack = Rack::of(Registry::builder().defer([ToolPattern::Module("house".into())]));
    rack.add_with(
        ToolSpec {
            description: Some("Finds the keys.".into()),
            ..ToolSpec::new("house.keys", json!({"type": "object"}))
        },
        ToolPolicy::new(),
        says("under the mat"),
    );
    let mut peer = rack.peer(Era::Modern, json!({})).await;
    let found = text(&peer.call("search_tools", json!({"query": "keys"})).await);
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["tools"][0]["name"], "house_keys", "{found}");
    assert_eq!(text(&peer.call("house_keys", json!({})).await), "under the mat");
}

#[tokio::test]
async fn n8_the_dots_can_be_kept() {
    let mut rack = rack(&["house.keys", "größe"]);
    let settings = McpSettings { dotted_names: true, ..McpSettings::default() };
    rack.server = rack.server.with_settings(settings, std::future::ready(()));
    let mut peer = rack.peer(Era::Modern, json!({})).await;
    assert_eq!(peer.list(None).await.0, ["gr__e", "house.keys"]);
}
