//! The tools as a host gets them: collected, listed and called through the registry.

use std::path::Path;

use registry_core::{
    Caller, Configuration, DataFolder, Registry, Resources, ToolCall, ToolOutcome, prelude::*,
};
use toolrack_http::{HttpClient, PublicHttpClient};

use crate::{Inbox, SearchEngine, test_server::serve};

/// The tools that only look.
const READING: [&str; 9] = [
    "calculate",
    "current_time",
    "deep_analysis",
    "graph_search",
    "query_documents_metadata",
    "research",
    "research.fetch_webpage",
    "retrieve_documents",
    "web_search",
];

fn names(registry: &Registry) -> Vec<String> {
    let context = registry.context(Caller::default());
    registry.select(&context).tools().iter().map(|tool| tool.name().to_owned()).collect()
}

async fn call(registry: &Registry, name: &str, arguments: Value) -> ToolOutcome {
    registry.execute(&registry.context(Caller::default()), ToolCall::new(name, arguments)).await
}

#[test]
fn every_file_is_a_tool_without_fault() {
    let registry = Registry::builder().build().unwrap();
    let tools = registry.list_all(true);
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(
        names,
        [
            "calculate",
            "claim",
            "code_executor.run_python",
            "code_executor.run_shell",
            "current_time",
            "deep_analysis",
            "file_manager.create_document",
            "file_manager.delete_file",
            "graph_search",
            "learning",
            "query_documents_metadata",
            "research",
            "research.fetch_webpage",
            "retrieve_documents",
            "scheduler.add_job",
            "scheduler.list_jobs",
            "scheduler.remove_job",
            "source",
            "web_search"
        ]
    );
    for tool in tools {
        assert_eq!(tool.fault(), None, "{}", tool.name());
        let effect = match tool.name() {
            name if READING.contains(&name) => Effect::Read,
            "scheduler.list_jobs" => Effect::Read,
            "file_manager.delete_file" => Effect::Destructive,
            _ => Effect::Write,
        };
        assert_eq!(tool.policy().effect, effect, "{}", tool.name());
    }
}

#[test]
fn b20_each_tool_says_what_its_results_hold_and_what_goes_out_with_a_call() {
    let registry = Registry::builder().build().unwrap();
    for tool in registry.list_all(true) {
        let expected = match tool.name() {
            "deep_analysis" | "graph_search" | "query_documents_metadata" | "retrieve_documents" => {
                ("private, untrusted", "nothing")
            }
            "research" | "research.fetch_webpage" | "web_search" => ("untrusted", "outside"),
            "scheduler.add_job" => ("", "outside"),
            "scheduler.list_jobs" => ("private, untrusted", "nothing"),
            _ => ("", "nothing"),
        };
        let (reads, sends) = (tool.reads().to_string(), tool.sends().as_str());
        assert_eq!((reads.as_str(), sends), expected, "{}", tool.name());
    }
}

#[test]
fn what_needs_the_network_is_off_until_the_host_provides_it() {
    let mut resources = Resources::new().with(HttpClient::new().unwrap());
    resources.explain_absence::<SearchEngine>("set `engine` under [search]");
    let registry = Registry::builder().resources(resources).build().unwrap();
    assert_eq!(names(&registry), ["calculate", "current_time"]);
    let tool = registry.get("web_search").unwrap();
    let why = registry.why_not(&tool, &registry.context(Caller::default())).unwrap();
    assert!(why.message().contains("needs SearchEngine: set `engine` under [search]"), "{why}");
    let tool = registry.get("claim").unwrap();
    let user = Caller::new("ada", Permission::User);
    let why = registry.why_not(&tool, &registry.context(user)).unwrap();
    assert!(why.message().contains("needs Inbox, which this host does not provide"), "{why}");

    let registry = Registry::builder()
        .resource(HttpClient::new().unwrap())
        .resource(PublicHttpClient::new().unwrap())
        .resource(SearchEngine::searxng("http://127.0.0.1:1").unwrap())
        .build()
        .unwrap();
    let needs_documents =
        |name: &&str| name.contains("documents") || ["deep_analysis", "graph_search"].contains(name);
    let without_documents: Vec<&str> = READING.into_iter().filter(|name| !needs_documents(name)).collect();
    assert_eq!(names(&registry), without_documents);
}

/// What the functions with `#[resource]` make of these tables, in that data folder.
async fn provided(tables: Value, data: &Path) -> Resources {
    let Value::Object(tables) = tables else { panic!("{tables}") };
    let configuration = Configuration { file: "toolrack.toml".into(), tables, ..Configuration::default() };
    Resources::new().with(DataFolder::new(data)).with_compiled(&configuration).await.unwrap()
}

#[tokio::test]
async fn p1_the_files_of_this_folder_provide_what_its_tools_need() {
    let folder = tempfile::tempdir().unwrap();
    let resources =
        provided(json!({"search": {"engine": "searxng", "url": "http://127.0.0.1:1"}}), folder.path()).await;
    let registry = Registry::builder().resources(resources).build().unwrap();
    let context = registry.context(Caller::new("ada", Permission::Admin));
    let off: Vec<String> = registry
        .list_all(true)
        .iter()
        .filter_map(|tool| Some(format!("{}: {}", tool.name(), registry.why_not(tool, &context)?.message())))
        .collect();
    let documents = |line: &&String| {
        line.contains("Documents") || line.contains("DocumentGraph") || line.contains("Schedule")
    };
    let off: Vec<&String> = off.iter().filter(|line| !documents(line)).collect();
    let how = "set `enabled = true` under [code_executor] in toolrack.toml";
    assert_eq!(off.len(), 2, "{off:?}");
    assert!(off.iter().all(|line| line.starts_with("code_executor.") && line.contains(how)), "{off:?}");
    let noted = registry.execute_tool("claim", json!({"assertion": "Water is wet."}), &context, None).await;
    assert!(noted.is_success() && folder.path().join("inbox/claims").is_dir(), "{}", noted.for_model());
}

#[tokio::test]
async fn p1_each_tenant_has_its_own_inbox_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let resources = provided(json!({"inbox": {"folder": folder.path().join("notes")}}), folder.path()).await;
    let registry = Registry::builder().resources(resources).build().unwrap();
    let acme = registry.for_tenant("acme");
    let context = acme.context(Caller::new("ada", Permission::User));
    let document = json!({"path": "a.txt", "content": "x"});
    for (tool, arguments) in
        [("claim", json!({"assertion": "x"})), ("file_manager.create_document", document)]
    {
        let outcome = acme.execute_tool(tool, arguments, &context, None).await;
        assert!(outcome.is_success(), "{}", outcome.for_model());
    }
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["files.tenants", "notes.tenants"], "nothing of the default tenant's is touched");
}

#[tokio::test]
async fn p1_a_search_engine_that_cannot_be_leaves_its_tools_off_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    for (table, reason) in [
        (json!({}), "set `engine` under [search] in toolrack.toml, or TOOLRACK_SEARCH_ENGINE"),
        (json!({"engine": "brave"}), "[search]: brave needs `api_key`"),
    ] {
        let resources = provided(json!({"search": table}), folder.path()).await;
        let why = resources.get::<SearchEngine>(&ToolContext::default()).unwrap_err();
        assert!(why.starts_with(&format!("needs SearchEngine: {reason}")), "{why}");
    }
}

#[tokio::test]
async fn arguments_that_are_left_out_have_defaults() {
    let answer =
        r#"{"web":{"results":[{"title":"One","url":"https://one.example/","description":"First."}]}}"#;
    let (engine, requests) = serve("200 OK", "application/json", answer).await;
    let (page, _) = serve("200 OK", "text/plain", "x".repeat(20_001)).await;
    let registry = Registry::builder()
        .resource(HttpClient::new().unwrap())
        .resource(PublicHttpClient::builder().allow_host("localhost").build().unwrap())
        .resource(SearchEngine::from_settings(Some("brave"), Some(&engine), Some("sesame")).unwrap().unwrap())
        .build()
        .unwrap();

    let found = call(&registry, "web_search", json!({ "query": "one" })).await;
    assert_eq!(
        found.for_model(),
        r#"{"results":[{"title":"One","url":"https://one.example/","snippet":"First."}]}"#
    );
    assert!(requests.lock().unwrap().concat().contains("count=5&"));

    let url = page.replace("127.0.0.1", "localhost");
    let fetched = call(&registry, "research.fetch_webpage", json!({ "url": url })).await.result.unwrap();
    assert_eq!(fetched.value["content"].as_str().unwrap().len(), 20_000);
    assert_eq!(fetched.value["truncated"], true);
    assert_eq!(fetched.value["title"], Value::Null);

    let sum = call(&registry, "calculate", json!({ "expression": "0.1 + 0.2" })).await;
    assert_eq!(sum.for_model(), r#"{"result":"0.3","exact":true}"#);
    assert!(call(&registry, "current_time", json!({})).await.is_success());
    let time = call(&registry, "current_time", json!({ "time_zone": "Tokyo" })).await;
    assert!(time.for_model().contains("Asia/Tokyo"), "{}", time.for_model());
}

#[tokio::test]
async fn errors_for_a_model_say_what_to_do_and_no_more() {
    let registry = Registry::builder().resource(PublicHttpClient::new().unwrap()).build().unwrap();
    let text =
        call(&registry, "research.fetch_webpage", json!({ "url": "http://localhost/" })).await.for_model();
    assert_eq!(
        text,
        "Error: localhost is not on the public internet and may not be fetched. Use another source."
    );
    let text = call(&registry, "calculate", json!({ "expression": "1 / 0" })).await.for_model();
    assert_eq!(text, "Error: `expression` at character 3: division by zero");
}

#[tokio::test]
async fn t8_the_four_tools_are_as_declared() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builder().resource(Inbox::new(folder.path())).build().unwrap();
    for (name, tag, cost, daily_limit) in [
        ("research", "RESEARCH", Cost::Cheap, 3),
        ("source", "SOURCE", Cost::Free, 0),
        ("claim", "CLAIM", Cost::Free, 0),
        ("learning", "LEARNING", Cost::Free, 0),
    ] {
        let tool = registry.get(name).unwrap();
        let policy = tool.policy();
        let tag_prefix = policy.text_tag.unwrap().tag_prefix;
        assert_eq!((tag_prefix, policy.cost, policy.daily_limit), (tag, cost, daily_limit), "{name}");
        assert_eq!((policy.requires_gate, policy.cooldown), (false, std::time::Duration::ZERO), "{name}");
        assert!(policy.text_tag.unwrap().strip_from_display, "{name}");
    }
}

#[tokio::test]
async fn t8_the_error_for_a_wrong_category_lists_the_right_ones() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builder().resource(Inbox::new(folder.path())).build().unwrap();
    let context = registry.context(Caller::new("ada", Permission::User));
    let arguments = json!({ "category": "gossip", "content": "x" });
    let text = registry.execute(&context, ToolCall::new("learning", arguments)).await.for_model();
    for word in ["category", "factual", "communication", "structured_data"] {
        assert!(text.contains(word), "{text}");
    }
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[tokio::test]
async fn t8_a_guest_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builder().resource(Inbox::new(folder.path())).build().unwrap();
    assert_eq!(names(&registry), ["calculate", "current_time"]);
    let outcome = call(&registry, "claim", json!({ "assertion": "x" })).await;
    assert!(!outcome.is_success());
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}
