//! Text tags and the prompt that tells of them: requirements T1 and T2.

use crate::support::{Answer, Setup};
use llm_bridge::turn::prompt::{PromptStyle, prompt_block};
use registry_core::{
    Caller, Permission, Registry, Selection, TextTag, ToolPolicy, ToolResult, ToolSpec, handler_fn,
};
use serde_json::{Value, json};

const LEARNING: TextTag = TextTag::new("LEARNING")
    .pattern(r"(factual|communication|structured_data)\s+(.+)")
    .groups(&["category", "content"])
    .example("LEARNING: [category] [what was learned]");

fn tagged(text_tag: TextTag) -> ToolPolicy {
    ToolPolicy { text_tag: Some(text_tag), ..ToolPolicy::new() }
}

/// What the tool was called with, for each call of an answer.
async fn called(policy: ToolPolicy, properties: Value, answer: &str) -> (Vec<Value>, String) {
    let schema = json!({"type": "object", "properties": properties});
    let rack =
        Setup::bare()
            .tool("note", schema, policy, |_, arguments| async move {
                Ok(ToolResult::new(Value::Object(arguments)))
            })
            .start([Answer::text(answer).into(), Answer::text("Done.").into()])
            .await;
    let reported = rack.ask(true).await;
    // They run at once, and may finish in any order.
    let finished = reported.details_of("call_finished");
    let result = |started: &Value| {
        finished.iter().find(|call| call["id"] == started["id"]).expect("it has finished")["result"].clone()
    };
    let results = reported.details_of("call_started").into_iter().map(result).collect();
    (results, reported.content)
}

#[tokio::test]
async fn t1_groups_are_named_arguments_and_every_line_is_a_call() {
    let properties = json!({"category": {"type": "string"}, "content": {"type": "string"}});
    let answer = "Noted.\nLEARNING: factual water boils at 100 °C\nLEARNING: wrong thing\nAnd:\nLEARNING: structured_data a: b\nBye.";
    let (calls, content) = called(tagged(LEARNING), properties, answer).await;
    assert_eq!(
        calls,
        [
            json!({"category": "factual", "content": "water boils at 100 °C"}),
            json!({"category": "structured_data", "content": "a: b"}),
        ]
    );
    assert!(content.contains("LEARNING: wrong thing"), "what does not match is text: {content}");
    assert!(
        !content.contains("factual") && content.contains("Noted.") && content.contains("Bye."),
        "{content}"
    );
}

#[tokio::test]
async fn t1_groups_are_typed_by_the_schema() {
    let tag = TextTag::new("SET").pattern(r"(\w+) (\S+)").groups(&["lamp", "level"]);
    let properties = json!({"lamp": {"type": "string"}, "level": {"type": "integer"}});
    let (calls, _) = called(tagged(tag), properties, "SET: 7 40\n").await;
    assert_eq!(calls, [json!({"lamp": "7", "level": 40})]);
}

#[tokio::test]
async fn t1_without_groups_the_rest_of_the_line_is_the_first_argument() {
    let (calls, _) =
        called(tagged(TextTag::new("SOURCE")), json!({"text": {"type": "string"}}), "SOURCE: a book\n").await;
    assert_eq!(calls, [json!({"text": "a book"})]);
}

/// A registry with tools, registered in this order.
fn selection(names: &[&str]) -> Selection {
    let registry = Registry::builder().without_compiled().build().unwrap();
    for name in names {
        let schema = json!({"type": "object", "properties": {"content": {"type": "string"}}});
        let spec = ToolSpec { description: Some(format!("Does {name}.")), ..ToolSpec::new(*name, schema) };
        let policy = match *name {
            "learning" => tagged(LEARNING),
            "source" => tagged(TextTag::new("SOURCE")),
            "admins" => ToolPolicy { permission: Permission::Admin, ..tagged(TextTag::new("ADMIN")) },
            "deferred" => ToolPolicy { deferred: true, ..tagged(TextTag::new("DEFERRED")) },
            _ => ToolPolicy::new(),
        };
        let handler = handler_fn(|_, _| async { Ok(ToolResult::new(Value::Null)) });
        registry.register(spec, policy, Some(handler)).unwrap();
    }
    registry.select(&registry.context(Caller::new("ada", Permission::User)))
}

#[test]
fn t2_the_prompt_is_made_of_the_selection_alone() {
    let names = ["source", "search", "learning", "admins"];
    let lines = prompt_block(&selection(&names), PromptStyle::Tags).unwrap();
    assert!(lines.contains("LEARNING: [category] [what was learned]\n  Does learning."), "{lines}");
    assert!(lines.contains("SOURCE: [argument]\n  Does source."), "{lines}");
    assert!(!lines.contains("search") && !lines.contains("ADMIN"), "{lines}");

    let block = prompt_block(&selection(&names), PromptStyle::Dialect("hermes")).unwrap();
    assert!(block.contains("\"name\":\"search\"") && block.contains("<tool_call>"), "{block}");
    assert!(!block.contains("admins"), "{block}");
}

#[test]
fn b11_a_prompt_tells_of_the_search_in_place_of_deferred_tools() {
    let selection = selection(&["search", "deferred"]);
    assert_eq!(prompt_block(&selection, PromptStyle::Tags), Ok(String::new()));
    let block = prompt_block(&selection, PromptStyle::Dialect("hermes")).unwrap();
    assert!(
        block.contains("\"search_tools\"") && block.contains("They are in these modules: local."),
        "{block}"
    );
    assert!(!block.contains("\"deferred\""), "{block}");
}

#[test]
fn t2_the_same_selection_gives_the_same_bytes() {
    for style in [PromptStyle::Tags, PromptStyle::Dialect("qwen3_coder")] {
        let one = prompt_block(&selection(&["source", "search", "learning"]), style);
        assert_eq!(one, prompt_block(&selection(&["learning", "source", "search"]), style));
    }
    assert_eq!(prompt_block(&selection(&[]), PromptStyle::Dialect("hermes")), Ok(String::new()));
    let fault = prompt_block(&selection(&[]), PromptStyle::Dialect("hermed")).unwrap_err();
    assert!(fault.contains("hermed"), "{fault}");
}
