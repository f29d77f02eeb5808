//! Tools in a chat, text calls, prompts: requirements P5, P7 and P8.

use crate::support::{Answer, Rack, Setup, user};
use registry_core::{Caller, Permission, Registry, prelude::*};
use serde_json::{Value, json};

/// Current weather for a city.
#[tool(version = "1.2.0")]
async fn weather(
    ctx: &ToolContext,
    /// City name.
    city: &str,
    /// Days ahead.
    #[arg(default = 3, range = 1..=14)]
    days: u8,
) -> Result<Value, ToolError> {
    ctx.status("looking out of the window");
    ctx.progress(0.5, format!("asking {city}"));
    if city == "Atlantis" {
        return Err(ToolError::invalid("`city`: Atlantis is under water; name a city on land"));
    }
    Ok(json!({"city": city, "days": days, "sky": "grey"}))
}

/// Only for owners.
#[tool(permission = Permission::Owner)]
async fn secret() -> String {
    "psst".to_owned()
}

/// Needs something that this host does not have.
#[tool]
async fn needs_window(_window: Resource<Window>) -> String {
    "open".to_owned()
}

struct Window;

/// The tools of this file.
fn compiled() -> Setup {
    Setup::bare().with(|setup| {
        setup.registry = Registry::builder().build().unwrap();
        setup.caller = Caller::new("ada", Permission::User);
    })
}

fn last_result(rack: &Rack) -> String {
    let asked = rack.upstream.asked();
    asked.last().unwrap().messages().last().unwrap()["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn p5_a_function_is_offered_called_and_heard() {
    for stream in [true, false] {
        let rack = compiled()
            .start([
                Answer::new().call("c", "weather", &json!({"city": "Oslo"})).into(),
                Answer::text("Grey.").into(),
            ])
            .await;
        let reported = rack.ask(stream).await;
        reported.expect("Grey.");
        let asked = rack.upstream.asked();
        assert_eq!(asked[0].tools(), ["weather"], "what cannot be called is not offered");
        let function = &asked[0].body["tools"][0]["function"];
        assert_eq!(function["description"], "Current weather for a city.");
        assert_eq!(function["parameters"]["required"], json!(["city"]));
        let result: Value = serde_json::from_str(&last_result(&rack)).unwrap();
        assert_eq!(result, json!({"city": "Oslo", "days": 3, "sky": "grey"}));
        let kinds: Vec<_> =
            reported.details.iter().map(|details| details["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["call_started", "call_status", "call_status", "call_finished"]);
        assert_eq!(reported.details[1]["message"], "looking out of the window");
        assert_eq!(reported.details[2]["progress"], 0.5);
        assert!(reported.details.iter().all(|details| details["id"] == "c" && details["name"] == "weather"));
    }
}

#[tokio::test]
async fn p5_a_tool_that_is_not_offered_is_not_run() {
    let rack = compiled()
        .start([
            Answer::new().call("1", "secret", &json!({})).call("2", "needs_window", &json!({})).into(),
            Answer::text("No.").into(),
        ])
        .await;
    let reported = rack.ask(true).await;
    reported.expect("No.");
    assert!(reported.details_of("call_finished").iter().all(|call| call["success"] == false));
    assert!(!rack.upstream.asked()[1].body["messages"].to_string().contains("psst"));
}

#[tokio::test]
async fn p5_a_tool_that_is_switched_off_in_the_turn_is_refused() {
    let rack = Setup::new().start([]).await;
    let registry = rack.registry.clone();
    rack.upstream.push(Answer::new().call("1", "add", &json!({"a": 1, "b": 1})));
    rack.upstream.push(Answer::new().call("2", "add", &json!({"a": 1, "b": 2})));
    rack.upstream.push(Answer::text("Done."));
    let mut reading = rack.open().await;
    reading.read_to("call_finished").await;
    registry.set_enabled("add", false).unwrap();
    reading.rest().await;
    let asked = rack.upstream.asked();
    assert_eq!(asked[0].body["tools"], asked[1].body["tools"], "the definitions are pinned for the turn");
    rack.upstream.push(Answer::text("Hi."));
    rack.ask(true).await.expect("Hi.");
    assert_eq!(rack.upstream.asked().last().unwrap().tools(), ["math_gcd"]);
}

#[tokio::test]
async fn p7_what_is_no_call_stays_text() {
    for stream in [true, false] {
        for text in [
            "{\"name\": \"Ada\", \"age\": 36}",
            "[1, 2, 3]",
            "{\"name\": \"nothing_offered\", \"arguments\": {}}",
            "Use `<tool_call>` like this.",
            "```json\n{\"name\": \"other\"}\n```",
            "a < b and <b>bold</b> <function>",
            "NOTE: no such tag",
        ] {
            let rack = Setup::new().start([Answer::text(text).into()]).await;
            rack.ask(stream).await.expect(text);
            assert!(rack.ran().is_empty());
        }
    }
}

#[tokio::test]
async fn p7_several_text_calls_in_one_answer_are_all_run_in_order() {
    let call = |a: i64| format!("{{\"name\": \"add\", \"arguments\": {{\"a\": {a}, \"b\": 0}}}}");
    for text in [
        format!("<tool_call>{}</tool_call>\n<tool_call>{}</tool_call>", call(1), call(2)),
        format!("[{}, {}]", call(1), call(2)),
        format!(
            "<function=add><parameter=a>1</parameter><parameter=b>0</parameter></function>\n<tool_call>{}</tool_call>",
            call(2)
        ),
    ] {
        let rack = Setup::new().start([Answer::text(&text).into(), Answer::text("Done.").into()]).await;
        rack.ask(true).await.expect("Done.");
        let ran: Vec<_> = rack.ran().into_iter().map(|(_, arguments)| arguments["a"].clone()).collect();
        assert_eq!(ran, [1, 2], "{text}");
    }
}

#[tokio::test]
async fn p8_the_system_prompt_is_added_only_where_there_is_none() {
    let prompts = |setup: Setup| {
        setup.chat(|chat| {
            chat.system_prompt = "Plain.".into();
            chat.system_prompt_with_tools = "With tools.".into();
        })
    };
    for (setup, messages, systems) in [
        (prompts(Setup::new()), json!([user("Go.")]), vec!["With tools."]),
        (prompts(Setup::bare()), json!([user("Go.")]), vec!["Plain."]),
        (prompts(Setup::new()), json!([{"role": "system", "content": "Mine."}, user("Go.")]), vec!["Mine."]),
        (
            prompts(Setup::new()),
            json!([{"role": "developer", "content": "Mine."}, user("Go.")]),
            vec!["Mine."],
        ),
        (Setup::new(), json!([user("Go.")]), vec![]),
    ] {
        let call = Answer::new().call("c", "add", &json!({"a": 1, "b": 1}));
        let rack = setup.start([call.into(), Answer::text("Hi.").into()]).await;
        rack.chat(json!({"model": "m", "messages": messages})).await.expect("Hi.");
        for asked in rack.upstream.asked() {
            let found: Vec<_> = asked
                .messages()
                .iter()
                .filter(|message| message["role"] == "system" || message["role"] == "developer")
                .map(|message| message["content"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(found, systems, "in every round");
        }
    }
}

#[tokio::test]
async fn p8_thinking_is_no_part_of_what_was_said() {
    let text = "<think>I add, {\"name\": \"add\", \"arguments\": {\"a\": 9, \"b\": 9}} perhaps.</think>I add.\n\
                <tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 1}}</tool_call>";
    for stream in [true, false] {
        let rack =
            Setup::new().start([Answer::text(text).into(), Answer::text("<think>So.</think>2").into()]).await;
        let reported = rack.ask(stream).await;
        reported.expect("I add.\n\n2");
        assert!(
            reported.reasoning.starts_with("I add, {") && reported.reasoning.ends_with("So."),
            "{}",
            reported.reasoning
        );
        assert_eq!(rack.ran().len(), 1, "a call in thought is not made");
        let asked = rack.upstream.asked();
        let said = &asked[1].messages()[1];
        assert_eq!(said["content"], "I add.");
        // It goes where a template finds it.
        assert!(said["reasoning_content"].as_str().unwrap().starts_with("I add, {"), "{said}");
    }
}
