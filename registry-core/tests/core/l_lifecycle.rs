//! Registering, switching, removing, finding, and the events of it: requirements L1 to L5.

use std::sync::Arc;

use registry_core::{
    Caller, Change, ErrorKind, Handler, Permission, Query, Registry, RegistryError, RegistryEvent, Source,
    ToolCall, ToolContext, ToolLimits, ToolPolicy, ToolRegistration, ToolRegistrySnapshot, ToolResult,
    ToolSpec, handler_fn, testing::TestClock,
};
use serde_json::{Value, json};
use tokio::sync::broadcast::{Receiver, error::TryRecvError};

const NOON: &str = "2026-03-01T12:00:00Z";

fn registry() -> Registry {
    let clock = Arc::new(TestClock::at(NOON.parse().unwrap()));
    Registry::builder().without_compiled().clock(clock).build().unwrap()
}

fn spec(name: &str, version: Option<&str>, input_schema: Value) -> ToolSpec {
    ToolSpec { version: version.map(str::to_owned), ..ToolSpec::new(name, input_schema) }
}

fn register(registry: &Registry, spec: ToolSpec) -> Result<(), RegistryError> {
    registry.register(spec, ToolPolicy::new(), None).map(drop)
}

fn answers(text: &'static str) -> Option<Arc<dyn Handler>> {
    Some(handler_fn(move |_, _| async move { Ok(ToolResult::new(text)) }))
}

fn names(tools: &[Arc<registry_core::Tool>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name()).collect()
}

fn received(events: &mut Receiver<RegistryEvent>) -> Vec<(String, Change)> {
    std::iter::from_fn(|| events.try_recv().ok()).map(|event| (event.tool, event.change)).collect()
}

/// A tool that is compiled in.
#[registry_core::tool(version = "1.0.0", deprecated = "use `clock.now` instead.", tags = ["Time"])]
async fn l_hour() -> u8 {
    12
}

/// Says nothing.
#[registry_core::tool]
async fn l_other() {}

// The seed's model.

#[test]
fn l1_what_is_registered_round_trips_through_json() {
    let weather: ToolSpec = serde_json::from_value(json!({
        "tool_name": "weather_lookup",
        "version": "1.0.0",
        "description": "Look up weather data",
        "input_schema": {"city": "string"},
        "output_schema": {"temp": "number"},
        "tags": ["weather", "api"],
    }))
    .unwrap();
    let registry = registry();
    register(&registry, weather.clone()).unwrap();
    register(&registry, spec("a", None, json!({}))).unwrap();
    registry.set_enabled("a", false).unwrap();
    let snapshot = registry.snapshot();
    assert_eq!(
        serde_json::to_value(&snapshot).unwrap(),
        json!({"tools": [
            {
                "spec": {"tool_name": "a", "version": null, "description": null, "input_schema": {},
                         "output_schema": null, "tags": []},
                "enabled": false,
                "created_at": NOON,
            },
            {"spec": weather, "enabled": true, "created_at": NOON},
        ]})
    );
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<ToolRegistrySnapshot>(&text).unwrap(), snapshot);
}

#[test]
fn l1_a_field_that_nobody_knows_is_refused() {
    let spec = json!({"tool_name": "a", "input_schema": {}, "output_schema": {}});
    let registration: ToolRegistration = serde_json::from_value(json!({"spec": spec})).unwrap();
    assert!(registration.enabled && registration.created_at.is_none());
    let with = |mut value: Value| {
        value["more"] = json!(1);
        value
    };
    serde_json::from_value::<ToolSpec>(with(spec.clone())).unwrap_err();
    serde_json::from_value::<ToolRegistration>(with(json!({"spec": spec}))).unwrap_err();
    serde_json::from_value::<ToolRegistration>(json!({"spec": with(spec)})).unwrap_err();
    serde_json::from_value::<ToolRegistrySnapshot>(with(json!({"tools": []}))).unwrap_err();
    serde_json::from_value::<ToolRegistrySnapshot>(json!({})).unwrap_err();
    for required in ["tool_name", "input_schema", "output_schema"] {
        let mut spec = json!({"tool_name": "a", "input_schema": {}, "output_schema": {}});
        spec.as_object_mut().unwrap().remove(required);
        assert!(serde_json::from_value::<ToolSpec>(spec).unwrap_err().to_string().contains(required));
    }
}

#[test]
fn l1_a_snapshot_is_restored_and_every_problem_reported() {
    let first = registry();
    register(&first, spec("a", Some("1.0.0"), json!({}))).unwrap();
    register(&first, spec("b", None, json!({}))).unwrap();
    register(&first, spec("c", None, json!({}))).unwrap();
    first.set_enabled("c", false).unwrap();
    let snapshot = first.snapshot();

    let second = registry();
    second.restore(snapshot.clone()).unwrap();
    assert_eq!(second.snapshot(), snapshot);
    let mut events = second.subscribe();
    second.restore(snapshot.clone()).unwrap();
    assert_eq!(received(&mut events), []);

    let third = registry();
    register(&third, spec("a", Some("1.0.0"), json!({"other": true}))).unwrap();
    register(&third, spec("c", None, json!({"other": true}))).unwrap();
    let unchanged = |name: &str, version: Option<&str>| RegistryError::VersionUnchanged {
        name: name.into(),
        version: version.map(str::to_owned),
    };
    assert_eq!(third.restore(snapshot), Err(vec![unchanged("a", Some("1.0.0")), unchanged("c", None)]));
    assert_eq!(names(&third.list_all(false)), ["a", "b", "c"]);
}

#[test]
fn l2_what_is_compiled_is_the_builds_and_the_switch_the_operators() {
    let registry = Registry::builder().build().unwrap();
    let mut snapshot = registry.snapshot();
    snapshot.tools.iter_mut().for_each(|tool| {
        tool.spec.description = Some("from an older build".into());
        tool.enabled = tool.spec.tool_name != "l_hour";
    });
    let gone = spec("gone", None, json!({}));
    snapshot.tools.push(ToolRegistration {
        spec: gone,
        enabled: true,
        limits: ToolLimits::default(),
        created_at: None,
    });
    registry.restore(snapshot).unwrap();
    let hour = registry.get("l_hour").unwrap();
    assert!(!hour.is_enabled() && registry.get("l_other").unwrap().is_enabled());
    assert_eq!(hour.spec().description.as_deref(), Some("A tool that is compiled in."));
    // Nothing else takes the name of a compiled tool.
    let error = register(&registry, spec("l_hour", Some("2.0.0"), json!({}))).unwrap_err();
    assert!(matches!(error, RegistryError::Duplicate { second: Source::Host, .. }), "{error}");
}

#[test]
fn l2_the_same_spec_again_changes_nothing() {
    let registry = registry();
    let mut events = registry.subscribe();
    let first = registry.register(spec("f", Some("1.0.0"), json!({})), ToolPolicy::new(), None).unwrap();
    registry.set_enabled("f", false).unwrap();
    let again = registry.register(spec("f", Some("1.0.0"), json!({})), ToolPolicy::new(), None).unwrap();
    assert!(Arc::ptr_eq(&first, &again) && !again.is_enabled());
    assert_eq!(received(&mut events), [("f".into(), Change::Registered), ("f".into(), Change::Disabled)]);
}

#[tokio::test]
async fn l2_a_tool_that_was_listed_only_takes_its_code_later() {
    let registry = registry();
    let context = registry.context(Caller::default());
    register(&registry, spec("f", None, json!({"type": "object"}))).unwrap();
    let call = || registry.execute(&context, ToolCall::new("f", json!({})));
    assert_eq!(call().await.result.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(names(&registry.list_all(false)), ["f"]);
    let mut events = registry.subscribe();
    registry.register(spec("f", None, json!({"type": "object"})), ToolPolicy::new(), answers("yes")).unwrap();
    assert_eq!(call().await.for_model(), "yes");
    assert_eq!(received(&mut events), []);
}

/// The seed's example of versions.
#[test]
fn l2_another_version_replaces_and_the_same_one_must_be_the_same() {
    let registry = registry();
    register(&registry, spec("example", Some("1.0.0"), json!({}))).unwrap();
    registry.set_enabled("example", false).unwrap();
    let new = spec("example", Some("2.0.0"), json!({"new_field": "string"}));
    register(&registry, new.clone()).unwrap();
    // It is a new registration, which begins switched on.
    assert!(registry.get("example").unwrap().is_enabled());
    let error = register(&registry, spec("example", Some("2.0.0"), json!({"different_field": "number"})))
        .unwrap_err();
    assert!(error.to_string().contains("2.0.0") && error.to_string().contains("another version"), "{error}");
    assert_eq!(*registry.get("example").unwrap().spec(), new);
}

/// The seed's edge case: without a version is a version too.
#[test]
fn l2_none_and_none_are_the_same_version() {
    let registry = registry();
    register(&registry, spec("example", None, json!({"a": "string"}))).unwrap();
    let second = || spec("example", None, json!({"b": "number"}));
    assert_eq!(
        register(&registry, second()),
        Err(RegistryError::VersionUnchanged { name: "example".into(), version: None })
    );
    register(&registry, ToolSpec { version: Some("1.0.0".into()), ..second() }).unwrap();
    assert_eq!(registry.get("example").unwrap().spec().version.as_deref(), Some("1.0.0"));
    // And back to none, which is another version again.
    register(&registry, second()).unwrap();
}

#[test]
fn l3_lists_are_by_name_and_leave_out_what_is_off() {
    let registry = registry();
    for name in ["summarize_text", "b", "a.z", "a"] {
        register(&registry, spec(name, None, json!({}))).unwrap();
    }
    registry.set_enabled("summarize_text", false).unwrap();
    assert_eq!(names(&registry.list_all(false)), ["a", "a.z", "b"]);
    assert_eq!(names(&registry.list_all(true)), ["a", "a.z", "b", "summarize_text"]);
    assert!(registry.get("none").is_none() && !registry.get("summarize_text").unwrap().is_enabled());
    registry.set_enabled("summarize_text", true).unwrap();
    assert_eq!(registry.list_all(false).len(), 4);
}

#[test]
fn l3_switching_and_removing_can_be_done_twice() {
    let registry = registry();
    let unknown = RegistryError::Unknown { name: "f".into() };
    assert_eq!(registry.set_enabled("f", false), Err(unknown.clone()));
    registry.remove("f");
    register(&registry, spec("f", None, json!({}))).unwrap();
    let mut events = registry.subscribe();
    for enabled in [true, false, false, true, true] {
        registry.set_enabled("f", enabled).unwrap();
    }
    registry.remove("f");
    registry.remove("f");
    let changes: Vec<Change> = received(&mut events).into_iter().map(|(_, change)| change).collect();
    assert_eq!(changes, [Change::Disabled, Change::Enabled, Change::Removed]);
    assert_eq!(registry.set_enabled("f", true), Err(unknown));
    // Once removed it has to be registered again, and is a new one then.
    register(&registry, spec("f", None, json!({"other": 1}))).unwrap();
}

#[test]
fn l4_the_same_changes_give_the_same_state() {
    let run = || {
        let registry = registry();
        let mut events = registry.subscribe();
        for name in ["c", "a", "b"] {
            register(&registry, spec(name, Some("1.0.0"), json!({}))).unwrap();
        }
        register(&registry, spec("a", Some("1.1.0"), json!({}))).unwrap();
        registry.remove("c");
        let events: Vec<RegistryEvent> = std::iter::from_fn(|| events.try_recv().ok()).collect();
        serde_json::to_string(&(registry.snapshot(), events)).unwrap()
    };
    assert_eq!(run(), run());
    assert!(run().contains(NOON));
}

#[test]
fn l5_an_event_is_one_flat_object() {
    let registry = registry();
    let mut events = registry.subscribe();
    register(&registry, spec("f", Some("1.10.0"), json!({}))).unwrap();
    register(&registry, spec("f", Some("1.9.0"), json!({}))).unwrap();
    events.try_recv().unwrap();
    let event = events.try_recv().unwrap();
    let json = json!({
        "tenant": "default", "tool": "f", "kind": "replaced", "from": "1.10.0", "to": "1.9.0", "older": true,
        "version": "1.9.0", "elsewhere": false, "ts": NOON,
    });
    assert_eq!(serde_json::to_value(&event).unwrap(), json);
    assert_eq!(serde_json::from_value::<RegistryEvent>(json).unwrap(), event);
    assert_eq!(events.try_recv(), Err(TryRecvError::Empty));
    // A newer version, and what cannot be compared, is not older.
    for version in [Some("1.9.1"), Some("spring"), None, Some("1.0.0-rc.1"), Some("1.0.0")] {
        register(&registry, spec("f", version, json!({}))).unwrap();
        let change = events.try_recv().unwrap().change;
        assert!(matches!(change, Change::Replaced { older: false, .. }), "{change:?}");
    }
}

#[test]
fn l5_a_slow_listener_gets_the_number_of_what_it_missed() {
    let registry = registry();
    let mut events = registry.subscribe();
    for at in 0..1030 {
        register(&registry, spec(&format!("f{at}"), None, json!({}))).unwrap();
    }
    assert_eq!(events.try_recv(), Err(TryRecvError::Lagged(6)));
    assert_eq!(events.try_recv().unwrap().tool, "f6");
}

#[test]
fn l5_a_deprecated_tool_says_so_to_the_model() {
    let registry = Registry::builder().build().unwrap();
    let hour = registry.get("l_hour").unwrap();
    let description = "Deprecated: use `clock.now` instead. A tool that is compiled in.";
    assert_eq!(hour.description(), description);
    assert_eq!(hour.spec().deprecated.as_deref(), Some("use `clock.now` instead."));
    let mut written = String::new();
    hour.write_definition("l_hour", &mut written);
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["function"]["description"], description);
    let context = registry.context(Caller::default());
    assert!(registry.get_tools(&context).contains(&written));
    assert_eq!(registry.get("l_other").unwrap().description(), "Says nothing.");
    // Without a description there is only the warning, and a name with quotes is still a name.
    let spec = ToolSpec {
        deprecated: Some("gone in May".into()),
        ..ToolSpec::new("a \"b\"", json!({"type": "object"}))
    };
    let tool = registry.register(spec, ToolPolicy::new(), answers("")).unwrap();
    assert_eq!(tool.description(), "Deprecated: gone in May.");
    assert_eq!(registry.get_tools(&context)[0]["function"]["name"], "a \"b\"");
}

fn library() -> Registry {
    let registry = registry();
    let add = |name: &str, title: &str, tags: &[&str], description: &str, permission| {
        let spec = ToolSpec {
            title: Some(title.into()),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            description: Some(description.into()),
            ..ToolSpec::new(name, json!({"type": "object"}))
        };
        let policy = ToolPolicy { permission, ..ToolPolicy::new() };
        registry.register(spec, policy, answers("found")).unwrap();
    };
    add("a_described", "One", &[], "Searches the WEB.", Permission::Guest);
    add("b_titled", "Web things", &[], "Two.", Permission::Guest);
    add("c_tagged", "Three", &["web", "Überall"], "Three.", Permission::Guest);
    add("d_web_named", "Four", &["api"], "Four.", Permission::Guest);
    add("z.web", "Five", &["API", "web"], "Five pages.", Permission::Guest);
    add("admin.web", "Six", &["web"], "Secret.", Permission::Admin);
    add("off.web", "Seven", &["web"], "Off.", Permission::Guest);
    registry.set_enabled("off.web", false).unwrap();
    registry
}

#[test]
fn l5_search_puts_the_name_before_tags_title_and_description() {
    let registry = library();
    let context = registry.context(Caller::default());
    let find =
        |query: &Query| registry.search(query, &context).iter().map(|tool| tool.name().to_owned()).collect();
    let found: Vec<String> = find(&Query::text(" web "));
    assert_eq!(found, ["z.web", "d_web_named", "c_tagged", "b_titled", "a_described"]);
    let found: Vec<String> = find(&Query::text("WEB pages"));
    assert_eq!(found, ["z.web"]);
    let found: Vec<String> = find(&Query::text("überall"));
    assert_eq!(found, ["c_tagged"]);
    let found: Vec<String> = find(&Query::default().tag("api"));
    assert_eq!(found, ["d_web_named", "z.web"]);
    let found: Vec<String> = find(&Query::text("five").tag("Api").tag("web"));
    assert_eq!(found, ["z.web"]);
    let found: Vec<String> = find(&Query::text("web").tag("ap"));
    assert_eq!(found, [""; 0]);
    let found: Vec<String> = find(&Query::text("nothing like it"));
    assert_eq!(found, [""; 0]);
}

#[test]
fn l5_search_finds_only_what_the_caller_may_know_of() {
    let registry = library();
    let found = |context: &ToolContext, include_disabled| {
        let query = Query { include_disabled, ..Query::default() };
        names(&registry.search(&query, context)).join(" ")
    };
    let guest = registry.context(Caller::default());
    assert_eq!(found(&guest, false), "a_described b_titled c_tagged d_web_named z.web");
    assert_eq!(found(&guest, true), "a_described b_titled c_tagged d_web_named off.web z.web");
    registry.set_enabled("admin.web", false).unwrap();
    assert!(!found(&guest, true).contains("admin"));
    let admin = registry.context(Caller::new("ada", Permission::Admin).only_modules(["admin"]));
    assert_eq!((&*found(&admin, false), &*found(&admin, true)), ("", "admin.web"));
}

#[test]
fn s13_a_schema_is_an_object_or_a_boolean_and_a_switch_gives_the_registration() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let register = |spec| registry.register(spec, ToolPolicy::new(), None).map(drop);
    let null = register(spec("f", None, json!(null))).unwrap_err();
    assert!(null.to_string().contains("the input_schema of f is no JSON Schema"), "{null}");
    for wrong in [json!(7), json!("object"), json!([])] {
        let error = register(spec("f", None, wrong.clone())).unwrap_err();
        assert!(error.to_string().contains("the input_schema of f is no JSON Schema"), "{error}");
        let error = register(ToolSpec { output_schema: wrong, ..spec("f", None, json!({})) }).unwrap_err();
        assert!(error.to_string().contains("the output_schema of f"), "{error}");
    }
    assert!(registry.is_empty());
    register(spec("f", None, json!(true))).unwrap();
    for enabled in [false, false, true] {
        let registration = registry.set_enabled("f", enabled).unwrap();
        assert_eq!((registration.enabled, registration.spec.tool_name.as_str()), (enabled, "f"));
        assert!(registration.created_at.is_some());
    }
}
