//! Tools that are defined in files: requirements C1, C2, C3 and C4.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]

use registry_core::{
    Caller, Effect, Permission, Registry, RegistryBuilder, ToolOutcome, ToolResult, handler_fn, prelude::*,
};
use toolrack_configured::ToolFiles;

/// Says a word several times.
#[tool(permission = Permission::User, daily_limit = 9)]
async fn say(
    /// The word.
    word: String,
    /// How often.
    #[arg(range = 1..=3)]
    times: u8,
) -> String {
    word.repeat(times.into())
}

fn files() -> ToolFiles {
    let reverse = handler_fn(|_, arguments| async move {
        let word = arguments.get("word").and_then(Value::as_str).unwrap_or_default();
        Ok(ToolResult::new(word.chars().rev().collect::<String>()))
    });
    ToolFiles::new().handler("reverse", reverse)
}

fn builder(file: &str, text: &str) -> RegistryBuilder {
    Registry::builder().configured(files().text(file, text).read())
}

fn from_toml(text: &str) -> Registry {
    builder("tools.toml", text).build().unwrap()
}

/// What is wrong with the text of a file, a line each.
fn faults(file: &str, text: &str) -> Vec<String> {
    let registry = builder(file, text).build().unwrap();
    registry.faults().iter().map(ToString::to_string).collect()
}

async fn call(registry: &Registry, name: &str, arguments: Value) -> ToolOutcome {
    let context = registry.context(Caller::new("ada", Permission::User));
    registry.execute_tool(name, arguments, &context, None).await
}

const MOCK: &str = r#"
[[tools]]
name = "weather.now"
description = "The weather now."
type = "function"
handler = "weather"
permission = "guest"
effect = "destructive"
daily_limit = 2

[tools.parameters]
type = "object"
properties.city = { type = "string", description = "The city." }
required = ["city"]

[tools.implementation]
type = "mock"
mock_response = { celsius = 4, sky = ["grey", "wide"] }
"#;

#[tokio::test]
async fn c1_a_tool_in_a_file_is_a_tool_like_any_other() {
    let registry = builder("tools.toml", MOCK).approve_destructive(false).build().unwrap();
    assert_eq!(registry.faults(), []);
    let tool = registry.get("weather.now").unwrap();
    assert_eq!((tool.module(), tool.source().to_string().as_str()), ("weather", "tools.toml:2"));
    assert_eq!((tool.policy().effect, tool.policy().daily_limit), (Effect::Destructive, 2));
    assert_eq!(tool.policy().permission, Permission::Guest);
    let outcome = call(&registry, "weather.now", json!({"city": "Oslo"})).await;
    assert_eq!(outcome.result.unwrap().value, json!({"celsius": 4, "sky": ["grey", "wide"]}));
    let wrong = call(&registry, "weather.now", json!({"town": "Oslo"})).await;
    assert!(wrong.for_model().contains("city"), "{}", wrong.for_model());
    // It is there for every tenant, as a compiled one is.
    assert!(registry.for_tenant("other").get("weather.now").is_some());
}

#[test]
fn c3_a_tool_that_changes_something_says_who_may_call_it() {
    let unsaid = MOCK.replace("permission = \"guest\"\n", "");
    let fault = "tools.toml:7: tool weather.now: a tool that changes something has to say who may call it: add `permission = \"user\"`, or another level";
    assert_eq!(faults("tools.toml", &unsaid), [fault]);
    assert_eq!(faults("tools.toml", &unsaid.replace("\"destructive\"", "\"write\"")), [fault]);
    assert!(faults("tools.toml", &unsaid.replace("effect = \"destructive\"\n", "")).is_empty());
    // The level of a compiled tool is said where it is compiled.
    let builtin = unsaid.replace("handler = \"weather\"", "handler = \"say\"");
    let builtin = builtin.replace("\"mock\"", "\"builtin\"\nhandler = \"say\"");
    let mock = "mock_response = { celsius = 4, sky = [\"grey\", \"wide\"] }\n";
    assert_eq!(faults("tools.toml", &builtin.replace(mock, "")), [] as [&str; 0]);
}

#[test]
fn c3_a_file_without_tools_is_a_fault() {
    for (file, text, expected) in [
        (
            "a.yaml",
            "tool:\n- name: tide\n",
            "a.yaml:2: there is no array `tools`; is it `tool` that is meant?",
        ),
        (
            "a.toml",
            "\n[[tool]]\nname = \"tide\"\n",
            "a.toml:2: there is no array `tools`; is it `tool` that is meant?",
        ),
        ("a.json", "{\"functions\": []}", "a.json:1: there is no array `tools`"),
        ("a.json", "3", "a.json:1: there has to be an array of tools and it is a number"),
    ] {
        assert_eq!(faults(file, text), [expected], "{text}");
    }
    for empty in ["", "tools = []"] {
        assert!(faults("a.toml", empty).is_empty());
    }
}

#[test]
fn b11_a_tool_in_a_file_is_deferred_by_a_key() {
    let registry = from_toml(&MOCK.replace("daily_limit = 2", "deferred = true"));
    let tool = registry.get("weather.now").unwrap();
    assert!(tool.policy().deferred && registry.is_deferred(&tool));
    let found = faults("tools.toml", &MOCK.replace("daily_limit = 2", "deferred = 1"));
    assert_eq!(found, ["tools.toml:9: tool weather.now: `deferred` has to be true or false"]);
}

#[tokio::test]
async fn c2_a_builtin_is_a_compiled_tool_under_a_name_of_its_own() {
    let registry = from_toml(
        r#"
[[tools]]
name = "shout"
description = "Says a word twice."
type = "function"
handler = "say"
parameters = { type = "object", properties = { word = { type = "string" }, times = { type = "integer" } } }
implementation = { type = "builtin", handler = "say" }
"#,
    );
    assert_eq!(registry.faults(), []);
    // What the file does not say is as the compiled tool has it.
    let policy = *registry.get("shout").unwrap().policy();
    assert_eq!((policy.permission, policy.daily_limit), (Permission::User, 9));
    assert_eq!(call(&registry, "shout", json!({"word": "ha", "times": 2})).await.for_model(), "haha");
    // The file's schema lets more through than the tool takes.
    let wrong = call(&registry, "shout", json!({"word": "ha", "times": 7})).await;
    assert!(!wrong.is_success() && wrong.for_model().contains('3'), "{}", wrong.for_model());
}

#[tokio::test]
async fn c2_an_internal_tool_is_a_handler_of_the_program() {
    for (file, text) in [
        (
            "tools.json",
            r#"{"tools": [{"name": "mirror", "description": "Turns a word around.", "type": "function", "handler": "reverse",
                "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
                "implementation": {"type": "internal", "handler": "reverse"}}]}"#,
        ),
        (
            "tools.yaml",
            "- name: mirror\n  description: Turns a word around.\n  type: function\n  handler: reverse\n  parameters:\n    type: object\n    properties: {word: {type: string}}\n  implementation: {type: internal, handler: reverse}\n",
        ),
    ] {
        let registry = builder(file, text).build().unwrap();
        assert_eq!(registry.faults(), [], "{file}");
        assert_eq!(call(&registry, "mirror", json!({"word": "abc"})).await.for_model(), "cba");
    }
}

#[test]
fn c2_http_is_refused_in_the_words_of_the_seed() {
    let text = "tools:\n- name: get\n  description: Gets.\n  type: function\n  handler: get\n  parameters: {type: object}\n  implementation:\n    type: http\n    url: http://example.org\n";
    let found = faults("a.yaml", text);
    assert_eq!(found, ["a.yaml:8: tool get: HTTP tools not yet supported (coming in v2)"]);
}

#[test]
fn s7_a_missing_handler_is_named_with_its_place() {
    let text = |own: &str, implementation: &str| {
        format!(
            "- name: a\n  description: D.\n  type: function\n{own}  parameters: {{type: object}}\n  implementation: {implementation}\n"
        )
    };
    for (own, implementation, expected) in [
        ("", "{type: mock, mock_response: 1}", "`handler` is missing"),
        (
            "",
            "{type: builtin, handler: say}",
            "`handler` is missing: it is wanted beside `implementation.handler`",
        ),
        ("  handler: say\n", "{type: builtin}", "`implementation.handler` is missing"),
        ("  handler: say\n", "{mock_response: 1}", "`implementation.type` is missing"),
    ] {
        let found = faults("a.yaml", &text(own, implementation));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{expected}: {found:?}");
    }
    assert!(faults("a.yaml", &text("  handler: say\n", "{type: builtin, handler: say}")).is_empty());
}

#[test]
fn c3_everything_that_is_wrong_is_reported_at_once_with_its_place() {
    let text = r#"[[tools]]
name = "one"
descripton = "Misspelt."
type = "func"
parameters = { type = "array" }
implementation = { type = "mock" }

[[tools]]
description = "Nameless."
type = "function"
parameters = { type = "object", properties = { a = { type = "nothing" } } }
implementation = { type = "builtin", handler = "sai" }
permission = "king"
daily_limit = "many"

[[tools]]
name = "three"
description = "Two handlers."
type = "function"
handler = "say"
parameters = { type = "object" }
implementation = { type = "internal", handler = "revers" }

[[tools]]
name = "four"
description = "Right."
type = "function"
handler = "four"
parameters = { type = "object" }
implementation = { type = "mock", mock_response = 4 }
"#;
    let registry = from_toml(text);
    let found: Vec<String> = registry.faults().iter().map(ToString::to_string).collect();
    for expected in [
        "tools.toml:3: tool one: unknown key `descripton`: is `description` meant?",
        "tools.toml:1: tool one: `description` is missing",
        "tools.toml:4: tool one: `type` has to be \"function\" and is \"func\"",
        "tools.toml:5: tool one: `parameters.type` has to be \"object\"",
        "tools.toml:6: tool one: `implementation.mock_response` is missing",
        "tools.toml:8: `name` is missing",
        "tools.toml:12: `implementation.handler`: there is no compiled tool `sai`",
        "tools.toml:13: `permission`: unknown level `king`",
        "tools.toml:14: `daily_limit` has to be a whole number",
        "tools.toml:20: tool three: `handler` is \"say\" and `implementation.handler` is \"revers\"",
    ] {
        assert!(found.iter().any(|fault| fault.starts_with(expected)), "{expected}\n{found:#?}");
    }
    assert!(registry.get("one").is_none() && registry.get("three").is_none());
    assert!(registry.get("four").is_some(), "what is right is there");
}

#[test]
fn c3_of_two_with_one_name_the_first_stays_and_compiled_ones_go_first() {
    let tool = |name: &str, answer: u8| {
        format!(
            "[[tools]]\nname = \"{name}\"\ndescription = \"D.\"\ntype = \"function\"\nhandler = \"h\"\nparameters = {{ type = \"object\" }}\nimplementation = {{ type = \"mock\", mock_response = {answer} }}\n"
        )
    };
    let text = [tool("twice", 1), tool("twice", 2), tool("say", 3)].concat();
    let registry = from_toml(&text);
    let messages: Vec<String> = registry.duplicates().iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("tools.toml:1 stays, tools.toml:8 is left out"), "{messages:?}");
    assert!(
        messages[1].contains("configured.rs") && messages[1].contains("tools.toml:15 is left out"),
        "{messages:?}"
    );
    assert_eq!(registry.get("twice").unwrap().source().to_string(), "tools.toml:1");
}

#[test]
fn c3_a_file_that_cannot_be_read_stops_nothing() {
    for (file, text, expected) in [
        ("a.toml", "[[tools]\n", "a.toml:1: "),
        ("a.json", "{\"tools\": [\n1,]}", "a.json:2: "),
        ("a.ini", "x", "a.ini:1: its name has to end in"),
        ("a.json", "{\"tools\": {}}", "a.json:1: `tools` has to be an array"),
        ("a.json", "[1, null]", "a.json:1: a tool has to be an object and is a number"),
    ] {
        let found = faults(file, text);
        assert!(found.first().is_some_and(|fault| fault.starts_with(expected)), "{text}: {found:?}");
    }
    let registry = Registry::builder().configured(files().file("no/such/file.toml").read()).build().unwrap();
    assert!(registry.faults()[0].to_string().starts_with("no/such/file.toml:1: cannot be read"));
    assert!(registry.get("say").is_some());
}

#[test]
fn c4_an_unknown_name_is_none() {
    assert!(from_toml(MOCK).get("weather").is_none());
}
