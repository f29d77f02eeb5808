//! Definitions of registered tools: C5, B4, C6.

#[path = "../../../apis/tests/apis/checker.rs"]
mod checker;

use std::path::PathBuf;

use checker::faults;
use llm_bridge::subject;
use registry_core::{Caller, Permission, Registry, ToolCall, ToolPolicy, ToolResult, ToolSpec, handler_fn};
use serde_json::{Value, json};
use toolrack_apis::{Definer, Provider};

fn spec(name: &str, schema: Value) -> ToolSpec {
    ToolSpec { description: Some("Does it.".into()), ..ToolSpec::new(name, schema) }
}

#[test]
fn c5_a_deprecated_tool_says_so_to_every_model() {
    let spec = ToolSpec { deprecated: Some("use b".into()), ..spec("a", json!({"type": "object"})) };
    let registry = Registry::builder().without_compiled().build().unwrap();
    let tool = registry.register(spec, ToolPolicy::default(), None).unwrap();
    for &provider in Provider::ALL {
        let defined = Definer::new(provider).definition(subject(&tool)).unwrap().to_string();
        assert!(defined.contains("\"Deprecated: use b. Does it.\""), "{provider}: {defined}");
    }
}

#[tokio::test]
async fn b4_what_is_wider_than_the_tool_is_refused_by_its_own_schema() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 5}}});
    let registry = Registry::builder().without_compiled().build().unwrap();
    let handler = handler_fn(|_, arguments| async move { Ok(ToolResult::new(arguments["n"].clone())) });
    registry.register(spec("fives", schema), ToolPolicy::default(), Some(handler)).unwrap();
    let context = registry.context(Caller::new("somebody", Permission::Owner));
    let selection = registry.select(&context);
    let defined =
        Definer::new(Provider::Gemini).definitions(selection.tools().iter().map(|tool| subject(tool)));
    assert!(defined.losses.iter().any(|loss| loss.keyword == "multipleOf" && loss.widened));
    let lowered = &defined.list[0]["functionDeclarations"][0]["parameters"];
    for (n, is_right) in [(10, true), (7, false)] {
        let arguments = json!({"n": n});
        assert!(jsonschema::is_valid(lowered, &arguments));
        let outcome = selection.execute(&context, ToolCall::new("fives", arguments)).await;
        assert_eq!(outcome.result.is_ok(), is_right, "{n}");
    }
}

/// What the program prints, on standard output and standard error, and how it ends.
fn toolrack(arguments: &[&str]) -> (String, String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_toolrack"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLRACK_")) {
        command.env_remove(name);
    }
    let output = command.args(arguments).current_dir(folder.path()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn c5_the_bundled_tools_are_printed_as_recorded() {
    for &provider in Provider::ALL {
        let allowed = "research.fetch_webpage,calculate,current_time";
        let (list, reported, code) =
            toolrack(&["tools", "--format", provider.name(), "--allowed", allowed, "--level", "owner"]);
        assert_eq!(code, Some(0), "{reported}");
        let list: Value = serde_json::from_str(&list).unwrap();
        let faults = faults(provider, &list);
        assert!(faults.is_empty(), "{provider}: {faults:#?}");
        let reported: Vec<&str> = reported.lines().collect();
        assert_golden(&format!("bundled.{provider}.json"), &json!({"list": list, "reported": reported}));
    }
}

#[test]
fn c6_only_allowed_tools_are_listed_in_the_listings_own_order() {
    let names = |allowed: &str| -> Vec<String> {
        let (list, _, _) = toolrack(&["tools", "list", "--format", "mcp", "--allowed", allowed]);
        let list: Vec<Value> = serde_json::from_str(&list).unwrap();
        list.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("current_time,calculate"), ["calculate", "current_time"]);
    assert_eq!(names("calculate"), ["calculate"]);
    let (list, reported, code) =
        toolrack(&["tools", "--json", "--allowed", "current_time,no_such,calculate"]);
    let rows: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!((rows.len(), code), (2, Some(0)));
    assert_eq!(rows[0]["name"], "calculate");
    assert!(reported.contains("there is no tool `no_such`"), "{reported}");
}

#[test]
fn c5_the_program_refuses_an_unknown_provider_and_names_the_known() {
    for command in [&["tools", "--format", "mistral"][..], &["tools", "list", "--format", "mistral"]] {
        let (list, reported, code) = toolrack(command);
        assert_eq!((list.as_str(), code), ("", Some(2)), "{reported}");
        for &provider in Provider::ALL {
            assert!(reported.contains(provider.name()), "{reported}");
        }
    }
    // Strict schemas are a matter of a format, and a table is none.
    assert_eq!(toolrack(&["tools", "--strict"]).2, Some(2));
    assert_eq!(toolrack(&["tools", "--format", "mcp", "--json"]).2, Some(2));
}

/// Compares with a file, or writes it with `GOLDEN=overwrite`.
fn assert_golden(name: &str, found: &Value) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/definitions").join(name);
    let found = serde_json::to_string_pretty(found).unwrap() + "\n";
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "overwrite") {
        std::fs::write(&file, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(expected == found, "{} is otherwise; found:\n{found}", file.display());
}
