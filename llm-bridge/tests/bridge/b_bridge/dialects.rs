//! Models that are driven in a dialect of their own, without the tools of the API.

use std::collections::BTreeMap;

use llm_bridge::turn::{ModelSettings, Models, ToolStyle};
use serde_json::{Map, Value, json};
use toolrack_dialects::{Dialect, Offered, ScanOptions, dialect, dialects, parse};

use crate::support::{Answer, Asked, Rack, Setup, user};

/// One model, `m`, that is pinned to a dialect.
fn pinned(name: &'static str) -> Models {
    Models::try_from(
        [("m".to_owned(), ModelSettings { dialect: Some(name), ..ModelSettings::default() })]
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
    )
    .unwrap()
}

fn in_prompt(name: &'static str) -> Setup {
    Setup::new().chat(|chat| {
        chat.tool_style = ToolStyle::Prompt;
        chat.models = pinned(name);
    })
}

/// The calls in a text, read in one dialect.
fn calls(row: &'static Dialect, text: &str) -> Vec<(String, Value)> {
    let options = ScanOptions::default().only(row);
    let parsed = parse(text, Offered::any().into(), options);
    parsed
        .calls
        .iter()
        .map(|call| (call.name.clone(), serde_json::from_str(&call.arguments).unwrap()))
        .collect()
}

fn content(asked: &Asked, at: usize) -> String {
    asked.messages()[at]["content"].as_str().unwrap().to_owned()
}

/// Everything but strings is typed by the tool's schema, which `Offered::any` does not have.
fn arguments(a: &str, b: &str) -> Map<String, Value> {
    json!({"a": a, "b": b}).as_object().unwrap().clone()
}

#[tokio::test]
async fn b2_a_model_without_tools_is_driven_in_its_own_dialect() {
    for row in dialects() {
        let name = row.name;
        let one = row.call("add", json!({"a": 2, "b": 3}).as_object().unwrap()).unwrap();
        let other = row.call("math_gcd", json!({"a": 12, "b": 18}).as_object().unwrap()).unwrap();
        let rack = in_prompt(name)
            .start([
                Answer::text("I add.\n").say(&one).into(),
                Answer::text(&other).into(),
                Answer::text("5 and 6").into(),
            ])
            .await;
        let reported = rack.ask(true).await;
        assert!(reported.content.ends_with("5 and 6"), "{name}: {reported:?}");
        let ran =
            [("add".to_owned(), json!({"a": 2, "b": 3})), ("math.gcd".to_owned(), json!({"a": 12, "b": 18}))];
        assert_eq!(rack.ran(), ran, "{name}");

        let asked = rack.upstream.asked();
        assert!(asked.iter().all(|asked| asked.body.get("tools").is_none()), "{name}");
        let system = content(&asked[0], 0);
        assert!(system.contains("\"add\"") && system.contains("\"math_gcd\""), "{name}: {system}");
        let example = row.call("function_name", json!({"argument": "value"}).as_object().unwrap()).unwrap();
        assert!(system.contains(&example), "{name}: {system}");
        let roles: Vec<_> =
            asked[2].messages().iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "user"], "{name}");
        assert_eq!(content(&asked[2], 2), format!("I add.\n{one}"), "{name}: its own words");
        assert_eq!(content(&asked[2], 3), row.result("add", "sum=5"), "{name}");
        assert_eq!(content(&asked[2], 4), other, "{name}");
        assert_eq!(content(&asked[2], 5), row.result("math_gcd", "gcd=6"), "{name}");
    }
}

/// Asks with a history in which the client's tool was called twice at once.
async fn replayed(rack: &Rack, one: &Map<String, Value>, other: &Map<String, Value>) -> Asked {
    rack.upstream.push(Answer::text("Well."));
    let call = |id: &str, arguments: &Map<String, Value>| json!({"id": id, "type": "function", "function": {"name": "weather", "arguments": json!(arguments).to_string()}});
    let messages = json!([
        user("Two."),
        {"role": "assistant", "content": "Both.", "tool_calls": [call("1", one), call("2", other)]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
        {"role": "tool", "tool_call_id": "2", "content": "sun"},
        user("And?"),
    ]);
    rack.chat(json!({"model": "m", "messages": messages})).await.expect("Well.");
    rack.upstream.asked().pop().unwrap()
}

#[tokio::test]
async fn b2_several_calls_of_one_answer_are_replayed_so_that_they_read_back() {
    let (one, other) = (arguments("Oslo", "x\ny"), arguments("Rome", "ü"));
    for row in dialects() {
        let rack = in_prompt(row.name).start([]).await;
        let asked = replayed(&rack, &one, &other).await;
        let said = content(&asked, 2);
        let expected = [("weather".to_owned(), json!(one)), ("weather".to_owned(), json!(other))];
        assert_eq!(calls(row, &said), expected, "{}: {said}", row.name);
        let results = [row.result("weather", "rain"), row.result("weather", "sun"), "And?".to_owned()];
        assert_eq!(content(&asked, 3), results.join("\n"), "{}", row.name);
    }
}

/// What a dialect cannot carry is replayed in the one that most models have seen.
#[tokio::test]
async fn b2_a_call_that_its_dialect_cannot_write_is_replayed_in_the_common_one() {
    let hermes = dialect("hermes").unwrap();
    for (name, hostile) in [
        ("qwen3_coder", "a</parameter>b"),
        ("glm45", "a</arg_value>b"),
        ("gemma4", "a<|\"|>b"),
        ("minimax_m3", "a]<]minimax[>[</a>b"),
    ] {
        let row = dialect(name).unwrap();
        let (one, other) = (arguments(hostile, "x"), arguments("Rome", "y"));
        assert_eq!(row.call("weather", &one), None, "{name}");
        let rack = in_prompt(name).start([]).await;
        let said = content(&replayed(&rack, &one, &other).await, 2);
        let (first, second) = (hermes.call("weather", &one).unwrap(), row.call("weather", &other).unwrap());
        assert_eq!(said, format!("Both.\n{first}\n{second}"), "{name}");
    }
}

#[tokio::test]
async fn b2_a_models_own_dialect_narrows_what_is_read() {
    let arguments = json!({"a": 2, "b": 3});
    let call = |name: &str| dialect(name).unwrap().call("add", arguments.as_object().unwrap()).unwrap();
    for (model, written, ran) in
        [("m", "gemma4", 1), ("m", "hermes", 0), ("other", "hermes", 0), ("other", "glm45", 1)]
    {
        let setup = Setup::new().chat(|chat| {
            chat.models = pinned("gemma4");
            chat.dialect = Some("glm45");
        });
        let rack = setup.start([Answer::text(&call(written)).into(), Answer::text("5").into()]).await;
        let reported = rack.ask_with(true, json!({"model": model})).await;
        assert_eq!(rack.ran().len(), ran, "{model} {written}: {reported:?}");
        assert_eq!(reported.content.trim() == call(written), ran == 0, "{model} {written}: {reported:?}");
    }
    // The model that is asked where the client names none counts as well.
    let rack = Setup::new()
        .chat(|chat| {
            chat.models = pinned("gemma4");
            chat.model = Some("m".into());
        })
        .start([Answer::text(&call("hermes")).into()])
        .await;
    rack.chat(json!({"messages": [user("Go.")]})).await;
    assert!(rack.ran().is_empty());
}

#[tokio::test]
async fn b16_a_models_own_tool_style_is_used() {
    let settings = |style| ModelSettings { tool_style: Some(style), ..ModelSettings::default() };
    let models =
        [("m".to_owned(), settings(ToolStyle::Prompt)), ("n*".to_owned(), settings(ToolStyle::Native))];
    let setup = Setup::new().chat(|chat| {
        chat.models = Models::try_from(BTreeMap::from(models)).unwrap();
    });
    let call = dialect("hermes").unwrap().call("add", json!({"a": 2, "b": 3}).as_object().unwrap()).unwrap();
    let answers = [Answer::text(&call), Answer::text("5"), Answer::text("6"), Answer::text("7")];
    let rack = setup.start(answers.map(Into::into)).await;
    rack.ask_with(true, json!({"model": "m"})).await.expect("5");
    rack.ask_with(true, json!({"model": "none"})).await.expect("6");
    rack.ask_with(true, json!({"model": "other"})).await.expect("7");
    let asked = rack.upstream.asked();
    let tools: Vec<bool> = asked.iter().map(|asked| !asked.tools().is_empty()).collect();
    assert_eq!(tools, [false, false, true, true]);
    assert!(content(&asked[0], 0).contains("<tool_call>"), "{}", content(&asked[0], 0));
}
