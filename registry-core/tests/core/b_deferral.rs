//! Tools that stay out of prompts and are found by a search: B11.

use std::sync::Arc;

use jiff::Timestamp;
use registry_core::{
    Caller, ErrorKind, Permission, Registry, RegistryError, SEARCH_TOOLS, Selection, Source, Tool, ToolCall,
    ToolContext, ToolPattern, ToolPolicy, ToolSpec, handler_fn, prelude::*,
};
use serde_json::Value;

/// The moon's phase.
#[tool(deferred)]
async fn b_moon() -> String {
    "full".into()
}

/// The tide's height.
#[tool(deferred = true, permission = Permission::Admin)]
async fn b_tide() -> String {
    "high".into()
}

/// Says yes.
#[tool(deferred = false)]
async fn b_yes() -> String {
    "yes".into()
}

fn bare() -> Registry {
    Registry::builder().without_compiled().build().unwrap()
}

fn add(registry: &Registry, name: &str, description: &str, permission: Permission, deferred: bool) {
    let spec = ToolSpec {
        description: Some(description.into()),
        ..ToolSpec::new(name, json!({"type": "object", "properties": {"city": {"type": "string"}}}))
    };
    let policy = ToolPolicy { permission, deferred, ..ToolPolicy::new() };
    let handler = handler_fn(|_, _| async { Ok(ToolResult::new("done")) });
    registry.register(spec, policy, Some(handler)).unwrap();
}

fn at(registry: &Registry, level: Permission) -> ToolContext {
    registry.context(Caller::new("ada", level))
}

fn in_prompt(selection: &Selection) -> Vec<&str> {
    selection.in_prompt().map(|tool| tool.name()).collect()
}

/// A caller for whom the compiled tools of this file are all that there is.
fn with_these_tools(registry: &Registry, level: Permission) -> ToolContext {
    let mut caller = Caller::new("ada", level);
    caller.allowed_tools = Some(["b_moon", "b_tide", "b_yes"].map(str::to_owned).into());
    registry.context(caller)
}

async fn search(registry: &Registry, context: &ToolContext, query: &str) -> Result<Vec<String>, String> {
    let outcome = registry.execute_tool(SEARCH_TOOLS, json!({"query": query}), context, None).await;
    let result = outcome.result.map_err(|error| error.message().to_owned())?;
    if !result.success {
        return Err(result.for_model().into_owned());
    }
    let tools = result.value["tools"].as_array().unwrap();
    Ok(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
}

#[tokio::test]
async fn b11_the_key_keeps_a_compiled_tool_out_of_prompts_and_not_from_being_called() {
    let registry = Registry::builder().build().unwrap();
    let context = with_these_tools(&registry, Permission::Admin);
    let selection = registry.select(&context);
    assert_eq!(in_prompt(&selection), ["b_yes", SEARCH_TOOLS]);
    assert_eq!(selection.tools().len(), 4);
    let defined: Vec<Value> = registry.get_tools(&context);
    let search = &defined[1]["function"];
    assert_eq!(search["name"], SEARCH_TOOLS);
    assert!(search["description"].as_str().unwrap().ends_with("They are in these modules: local."));
    assert_eq!(registry.execute_tool("b_moon", json!({}), &context, None).await.for_model(), "full");
    assert_eq!(*registry.get(SEARCH_TOOLS).unwrap().source(), Source::BuiltIn);
}

#[tokio::test]
async fn b11_the_search_finds_only_what_the_caller_may_use_now() {
    let registry = Registry::builder().build().unwrap();
    let [user, admin] = [Permission::User, Permission::Admin].map(|level| with_these_tools(&registry, level));
    assert_eq!(search(&registry, &admin, "height of the tide").await.unwrap(), ["b_tide"]);
    let none = search(&registry, &user, "height of the tide").await.unwrap_err();
    assert!(none.contains("other words") && none.contains("in local"), "{none}");
    assert_eq!(search(&registry, &user, "moon").await.unwrap(), ["b_moon"]);
    // What is not deferred is in the prompt already.
    search(&registry, &admin, "yes").await.unwrap_err();
    registry.set_enabled("b_moon", false).unwrap();
    search(&registry, &admin, "moon").await.unwrap_err();
    let off = search(&registry, &user, "moon").await.unwrap_err();
    assert!(off.contains("no tool that may be used is deferred"), "{off}");
    assert!(registry.select(&user).tools().iter().all(|tool| tool.name() != SEARCH_TOOLS));
}

#[tokio::test]
async fn b11_an_operator_defers_by_name_and_by_module() {
    let patterns = ["web.*", "clock"].map(|pattern| pattern.parse::<ToolPattern>().unwrap());
    let registry = Registry::builder().without_compiled().defer(patterns).build().unwrap();
    assert!(registry.is_empty(), "nothing is deferred yet");
    for name in ["clock", "clock.stop", "web.fetch", "web.find", "webs.spin", "zoo"] {
        add(&registry, name, "Does it.", Permission::Guest, false);
    }
    let context = at(&registry, Permission::Guest);
    let selection = registry.select(&context);
    assert_eq!(in_prompt(&selection), ["clock.stop", SEARCH_TOOLS, "webs.spin", "zoo"]);
    let search = registry.get(SEARCH_TOOLS).unwrap();
    let description = selection.description(&search);
    assert!(description.ends_with("They are in these modules: local, web."), "{description}");
    assert_eq!(description, registry.select(&context).description(&search), "the same text each time");
    // The pattern holds for another tenant too, and for what comes there.
    let other = registry.for_tenant("other");
    assert!(other.is_empty());
    add(&other, "web.fetch", "Does it.", Permission::Guest, false);
    assert_eq!(in_prompt(&other.select(&at(&other, Permission::Guest))), [SEARCH_TOOLS]);
}

#[tokio::test]
async fn k2_a_listed_tool_whose_name_matches_hides_no_deferred_one() {
    let registry = bare();
    add(&registry, "weather", "The weather, the weather and again the weather.", Permission::Guest, false);
    add(
        &registry,
        "far.tides",
        "The tides of a coast and, below them, its weather.",
        Permission::Guest,
        true,
    );
    let context = at(&registry, Permission::Guest);
    assert_eq!(search(&registry, &context, "weather").await.unwrap(), ["far.tides"]);
}

#[tokio::test]
async fn b11_the_search_goes_with_what_it_finds() {
    let registry = bare();
    add(&registry, "far.weather", "The weather.", Permission::Guest, true);
    add(&registry, "near", "Here.", Permission::Guest, false);
    let caller = |modules: &[&str]| registry.context(Caller::default().only_modules(modules.to_vec()));
    assert_eq!(in_prompt(&registry.select(&caller(&["far"]))), [SEARCH_TOOLS]);
    assert_eq!(search(&registry, &caller(&["far"]), "weather").await.unwrap(), ["far.weather"]);
    assert_eq!(in_prompt(&registry.select(&caller(&["local"]))), ["near"]);
    search(&registry, &caller(&["local"]), "weather").await.unwrap_err();
    let only = |names: &[&str]| registry.context(Caller::default().only_tools(names.to_vec()));
    assert_eq!(in_prompt(&registry.select(&only(&["far.weather"]))), [SEARCH_TOOLS]);
    assert!(registry.select(&only(&[SEARCH_TOOLS])).tools().is_empty(), "its name allows nothing else");
}

#[tokio::test]
async fn b11_where_the_search_is_off_nothing_is_left_out() {
    let registry = bare();
    add(&registry, "far.weather", "The weather.", Permission::Guest, true);
    registry.set_enabled(SEARCH_TOOLS, false).unwrap();
    let context = at(&registry, Permission::Guest);
    assert_eq!(in_prompt(&registry.select(&context)), ["far.weather"]);
    let refused = registry.execute_tool(SEARCH_TOOLS, json!({"query": "weather"}), &context, None).await;
    assert_eq!(refused.result.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn b11_the_best_come_first_and_no_more_than_asked_for() {
    let registry = bare();
    for number in 0..30 {
        add(&registry, &format!("mail.box_{number:02}"), "Looks into a mailbox.", Permission::Guest, true);
    }
    add(&registry, "mail.send", "Sends mail to a mailbox.", Permission::Guest, true);
    let context = at(&registry, Permission::Guest);
    let found = search(&registry, &context, "send a mail").await.unwrap();
    assert_eq!(found[0], "mail.send");
    let call = |arguments: Value| registry.execute_tool(SEARCH_TOOLS, arguments, &context, None);
    let found = call(json!({"query": "mailbox", "limit": 7})).await.result.unwrap();
    let tools = found.value["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 7);
    assert_eq!(tools[0]["name"], "mail.box_00", "of equals the first by name");
    assert_eq!(tools[0]["parameters"]["properties"]["city"]["type"], "string");
    assert_eq!(tools[0]["description"], "Looks into a mailbox.");
    assert_eq!(
        call(json!({"query": "mailbox"})).await.result.unwrap().value["tools"].as_array().unwrap().len(),
        5
    );
    for wrong in [
        json!({}),
        json!({"query": ""}),
        json!({"query": "mail", "limit": 0}),
        json!({"query": ["mail"], "x": 1}),
    ] {
        let error = call(wrong.clone()).await.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{wrong}");
    }
}

#[test]
fn b11_a_copy_has_a_search_of_its_own() {
    let registry = bare();
    add(&registry, "deferred", "Does it.", Permission::Guest, true);
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.tools.len(), 1);
    let copy = bare();
    copy.restore(snapshot.clone()).unwrap();
    assert!(copy.get(SEARCH_TOOLS).is_none(), "what is restored has no policy, and so is not deferred");
    add(&copy, "deferred", "Does it.", Permission::Guest, true);
    assert!(copy.get(SEARCH_TOOLS).unwrap().is_search());
    assert_eq!(copy.snapshot().tools[0].spec, snapshot.tools[0].spec);
}

#[test]
fn b11_the_name_of_the_search_is_taken() {
    // By the registry.
    let registry = bare();
    add(&registry, "deferred", "Does it.", Permission::Guest, true);
    let spec = ToolSpec::new(SEARCH_TOOLS, json!({"type": "object"}));
    let error = registry.register(spec.clone(), ToolPolicy::new(), None).unwrap_err();
    assert!(matches!(error, RegistryError::Duplicate { first: Source::BuiltIn, .. }), "{error}");
    registry.remove(SEARCH_TOOLS);
    assert_eq!(in_prompt(&registry.select(&at(&registry, Permission::Guest))), ["deferred"]);
    // By the host: its tool stays, and nothing is left out of the prompt.
    let registry = bare();
    add(&registry, SEARCH_TOOLS, "The host's own.", Permission::Guest, false);
    add(&registry, "deferred", "Does it.", Permission::Guest, true);
    assert_eq!(in_prompt(&registry.select(&at(&registry, Permission::Guest))), ["deferred", SEARCH_TOOLS]);
    assert_eq!(*registry.get(SEARCH_TOOLS).unwrap().source(), Source::Host);
}

#[tokio::test]
async fn b11_a_tool_of_an_entry_point_goes_the_one_path_and_is_in_no_listing() {
    let all = ["local.*".parse().unwrap()];
    let registry = Registry::builder().without_compiled().defer(all).build().unwrap();
    add(&registry, "weather", "The weather.", Permission::Guest, false);
    let tool = |name: &str| {
        let handler = handler_fn(|_, arguments| async move { Ok(ToolResult::new(arguments["n"].clone())) });
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let tool =
            Tool::built_in(ToolSpec::new(name, schema), ToolPolicy::new(), handler, Timestamp::UNIX_EPOCH);
        Arc::new(tool)
    };
    // Whoever may use anything may use it.
    let mut caller = Caller::new("ada", Permission::Guest);
    caller.allowed_tools = Some(["weather".to_owned()].into());
    let context = registry.context(caller);
    let selection = registry.select(&context).with_built_in(tool("read_on"));
    let names: Vec<&str> = selection.tools().iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["read_on", SEARCH_TOOLS, "weather"]);
    assert_eq!(in_prompt(&selection), ["read_on", SEARCH_TOOLS], "it is never deferred");
    let call = |n: Value| ToolCall::new("read_on", json!({"n": n}));
    assert_eq!(selection.execute(&context, call(json!("7"))).await.for_model(), "7", "coerced as any");
    let refused = selection.execute(&context, call(json!("x"))).await;
    assert_eq!(refused.result.unwrap_err().kind(), ErrorKind::InvalidArguments);
    assert!(registry.get("read_on").is_none() && registry.select(&context).get("read_on").is_none());
    // A registered tool keeps its name, also for those who may not use it.
    add(&registry, "read_on", "Reads.", Permission::Admin, false);
    assert!(registry.select(&context).with_built_in(tool("read_on")).get("read_on").is_none());
}

#[tokio::test]
async fn b11_all_tools_of_a_selection_are_deferred_where_the_search_may_be_used() {
    let registry = bare();
    add(&registry, "open", "Opens the gate.", Permission::Guest, false);
    add(&registry, "secret", "Opens the vault.", Permission::Admin, false);
    let context = at(&registry, Permission::User);
    let selection = registry.select(&context);
    assert_eq!(in_prompt(&selection), ["open"]);
    let deferring = selection.deferring_all().unwrap();
    assert_eq!(in_prompt(&deferring), [SEARCH_TOOLS]);
    assert!(registry.get(SEARCH_TOOLS).is_none(), "the registry stays as it was");
    let call = |query: &str| ToolCall::new(SEARCH_TOOLS, json!({"query": query}));
    let found = deferring.execute(&context, call("opens")).await.result.unwrap();
    assert_eq!(found.value["tools"][0]["name"], "open");
    assert_eq!(found.value["tools"].as_array().unwrap().len(), 1, "what the caller may not use is not found");
    assert!(deferring.execute(&context, ToolCall::new("open", json!({}))).await.result.is_ok());

    // Beside deferred tools the search finds both.
    add(&registry, "far", "Opens the harbour.", Permission::Guest, true);
    let deferring = registry.select(&context).deferring_all().unwrap();
    assert_eq!(in_prompt(&deferring), [SEARCH_TOOLS]);
    let found = deferring.execute(&context, call("opens")).await.result.unwrap();
    assert_eq!(found.value["tools"].as_array().unwrap().len(), 2);

    registry.set_enabled(SEARCH_TOOLS, false).unwrap();
    assert!(registry.select(&context).deferring_all().is_none());
    let other = bare();
    add(&other, SEARCH_TOOLS, "Another tool of that name.", Permission::Guest, false);
    assert!(other.select(&at(&other, Permission::User)).deferring_all().is_none());
}
