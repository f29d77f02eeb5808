//! Deferred tools, found by a search and used from then on: B11. And definitions in the schema that the API takes: B4.

use llm_bridge::{
    subject,
    turn::{Backend, ChatSettings, ToolStyle},
    upstream::Upstream,
};
use registry_core::{
    Caller, Permission, Registry, SEARCH_TOOLS, TextTag, ToolPolicy, ToolResult, ToolSpec, handler_fn,
};
use serde_json::{Value, json};
use toolrack_apis::{Definer, Provider, TurnEvent};

use crate::support::{
    Answer, Asked, Rack, Reply, Scripted, Setup, client_tool, question, two_numbers, user, within,
};

const DEFERRED: ToolPolicy = ToolPolicy { deferred: true, ..ToolPolicy::new() };

fn place() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false})
}

/// `add`, `math.gcd`, and the deferred `far.weather(city)` and `far.tides(city)`.
fn setup() -> Setup {
    deferring(DEFERRED)
}

fn deferring(policy: ToolPolicy) -> Setup {
    let mut setup = Setup::new();
    for name in ["far.weather", "far.tides"] {
        setup = setup.tool(name, place(), policy, move |_, arguments| async move {
            Ok(ToolResult::new(format!("{name} in {}", arguments["city"].as_str().unwrap())))
        });
    }
    setup
}

fn search(query: &str) -> Reply {
    Answer::new().call("s", SEARCH_TOOLS, &json!({"query": query})).into()
}

fn weather() -> Reply {
    weather_as("far_weather")
}

fn weather_as(name: &str) -> Reply {
    Answer::new().call("w", name, &json!({"city": "Oslo"})).into()
}

const FIRST: [&str; 3] = ["add", "math_gcd", "search_tools"];
const AFTER: [&str; 4] = ["add", "math_gcd", "search_tools", "far_weather"];

/// The conversation, gone on with.
fn later() -> Value {
    json!({"messages": [user("Go."), {"role": "assistant", "content": "Grey."}, user("And tomorrow?")]})
}

fn last_result(asked: &Asked) -> &str {
    let last = asked.messages().last().unwrap();
    assert_eq!(last["role"], "tool");
    last["content"].as_str().unwrap()
}

async fn asked_last(rack: &Rack) -> Asked {
    rack.upstream.asked().pop().unwrap()
}

#[tokio::test]
async fn b11_what_a_search_finds_is_used_in_the_turn_and_in_the_conversation() {
    for stream in [true, false] {
        let rack =
            setup().start([search("weather"), weather(), Reply::text("Grey."), Reply::text("Greyer.")]).await;
        rack.ask(stream).await.expect("Grey.");
        rack.ask_with(stream, later()).await.expect("Greyer.");
        let asked = rack.upstream.asked();
        let tools: Vec<_> = asked.iter().map(Asked::tools).collect();
        assert_eq!(tools, [FIRST.to_vec(), AFTER.to_vec(), AFTER.to_vec(), AFTER.to_vec()]);
        // What was there stays as it was, to the byte.
        let bytes = |asked: &Asked| asked.body["tools"].to_string();
        let before = bytes(&asked[0]);
        assert!(bytes(&asked[1]).starts_with(before.trim_end_matches(']')), "{}", bytes(&asked[1]));
        assert!(asked[2..].iter().all(|later| bytes(later) == bytes(&asked[1])));
        let description = asked[0].body["tools"][2]["function"]["description"].as_str().unwrap();
        assert!(description.ends_with("They are in these modules: far."), "{description}");
        let (reported, found) = last_result(&asked[1]).split_once('\n').unwrap();
        assert!(reported.contains("can be called from now on"), "{reported}");
        let found: Value = serde_json::from_str(found).unwrap();
        assert_eq!(found, asked[1].body["tools"][3]["function"]);
        assert_eq!(found["parameters"], place());
        assert_eq!(rack.ran(), [("far.weather".to_owned(), json!({"city": "Oslo"}))]);
        let calls: Vec<String> = rack.outcomes().into_iter().map(|record| record.tool).collect();
        assert_eq!(calls, [SEARCH_TOOLS, "far.weather"], "each on the one path");
    }
}

#[tokio::test]
async fn b11_another_conversation_and_another_user_begin_anew() {
    let upstream = Scripted::start([
        search("weather"),
        Reply::text("Found."),
        Reply::text("1"),
        Reply::text("2"),
        Reply::text("3"),
    ])
    .await;
    let model = Upstream::http(&upstream.base(), None, std::time::Duration::from_secs(20)).unwrap();
    let backend = Backend::new(setup().registry, model, ChatSettings::default());
    let ask = |user_name: &'static str, text: &'static str| {
        let caller = Caller::new(user_name, Permission::Owner);
        let mut turn = backend.start(question(text), caller).unwrap();
        within(async move {
            while let Some(event) = turn.next().await {
                assert!(!matches!(event, TurnEvent::Failed(_)), "{event:?}");
            }
        })
    };
    ask("ada", "Go.").await;
    ask("ada", "Something else.").await;
    ask("bob", "Go.").await;
    ask("ada", "Go.").await;
    let tools: Vec<usize> = upstream.asked().iter().map(|asked| asked.tools().len()).collect();
    assert_eq!(tools, [3, 4, 3, 3, 4]);
}

#[tokio::test]
async fn b11_a_deferred_tool_can_be_called_by_its_name_at_any_time() {
    let texts = [
        "<function=far_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>",
        "{\"name\": \"far.weather\", \"arguments\": {\"city\": \"Oslo\"}}",
    ];
    let replies = texts.iter().map(|text| Reply::text(text)).chain([weather()]);
    for reply in replies {
        let rack = setup().start([reply, Reply::text("Grey.")]).await;
        rack.ask(true).await.expect("Grey.");
        assert_eq!(rack.ran(), [("far.weather".to_owned(), json!({"city": "Oslo"}))]);
        assert_eq!(last_result(&asked_last(&rack).await), "far.weather in Oslo");
        assert_eq!(asked_last(&rack).await.tools(), AFTER, "it is offered from then on");
    }
    // Arguments that were guessed wrong are mended with the schema at hand.
    let wrong = Answer::new().call("w", "far_weather", &json!({"town": "Oslo"}));
    let rack = setup().start([wrong.into(), Reply::text("Hm.")]).await;
    rack.ask(true).await.expect("Hm.");
    let asked = asked_last(&rack).await;
    assert!(last_result(&asked).contains("`far_weather` do not fit"), "{}", last_result(&asked));
    assert_eq!(asked.tools(), AFTER);
}

#[tokio::test]
async fn b11_what_the_caller_may_not_use_is_not_found() {
    let policy = ToolPolicy { permission: Permission::Admin, ..DEFERRED };
    let setup =
        deferring(policy).tool("far.clouds", place(), DEFERRED, |_, _| async { Ok(ToolResult::new("none")) });
    let setup = setup.with(|setup| setup.caller = Caller::new("ada", Permission::User));
    let rack = setup.start([search("weather"), weather_as("far.weather"), Reply::text("No.")]).await;
    rack.ask(true).await.expect("No.");
    let asked = rack.upstream.asked();
    let description = asked[0].body["tools"][2]["function"]["description"].as_str().unwrap();
    assert!(description.ends_with("They are in these modules: far."), "{description}");
    let none = last_result(&asked[1]);
    assert!(
        none.starts_with("No tool was found") && none.contains("other words") && !none.contains("weather"),
        "{none}"
    );
    assert!(last_result(&asked[2]).contains("may not use"), "{}", last_result(&asked[2]));
    assert_eq!(asked.iter().map(Asked::tools).collect::<Vec<_>>(), [FIRST; 3]);
    assert!(rack.ran().is_empty());
}

#[tokio::test]
async fn b11_what_is_switched_off_meanwhile_is_refused_and_offered_no_more() {
    let rack = setup().start([search("weather"), Reply::text("Found.")]).await;
    rack.ask(true).await.expect("Found.");
    rack.registry.set_enabled("far.weather", false).unwrap();
    for reply in [weather_as("far.weather"), search("weather"), Reply::text("Off.")] {
        rack.upstream.push(reply);
    }
    rack.ask(true).await.expect("Off.");
    let asked = rack.upstream.asked();
    assert_eq!(asked[1].tools(), AFTER);
    assert_eq!(asked[2].tools(), FIRST);
    assert!(last_result(&asked[3]).contains("not available"), "{}", last_result(&asked[3]));
    assert!(last_result(&asked[4]).starts_with("No tool was found"), "{}", last_result(&asked[4]));
    assert!(rack.ran().is_empty());
    // With nothing left to find there is no search either.
    rack.registry.set_enabled("far.tides", false).unwrap();
    rack.upstream.push(Reply::text("Gone."));
    rack.ask(true).await.expect("Gone.");
    assert_eq!(asked_last(&rack).await.tools(), ["add", "math_gcd"]);
}

#[tokio::test]
async fn b11_where_nothing_is_deferred_there_is_no_search() {
    let rack = Setup::new().start([search("weather"), Reply::text("No.")]).await;
    rack.ask(true).await.expect("No.");
    assert_eq!(rack.upstream.asked()[0].tools(), ["add", "math_gcd"]);
    assert!(rack.registry.get(SEARCH_TOOLS).is_none());
}

#[tokio::test]
async fn b11_what_a_request_names_is_offered_without_a_search() {
    let named = |name: &str| json!({"type": "function", "function": {"name": name}});
    let allowed = |names: &[&str]| {
        let tools: Vec<Value> = names.iter().map(|name| named(name)).collect();
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}})
    };
    for (fields, first, second) in [
        (
            json!({"tool_choice": named("far_weather")}),
            vec!["far_weather"],
            vec!["add", "far_weather", "math_gcd", "search_tools"],
        ),
        (
            json!({"tool_choice": named("far.tides")}),
            vec!["far_tides"],
            vec!["add", "far_tides", "math_gcd", "search_tools"],
        ),
        (json!({"tool_choice": named(SEARCH_TOOLS)}), vec![SEARCH_TOOLS], AFTER.to_vec()),
        (
            json!({"tool_choice": allowed(&["far_weather", "add"])}),
            vec!["add", "far_weather"],
            vec!["add", "far_weather"],
        ),
        (json!({"tool_choice": "none"}), vec![], vec![]),
        (json!({"toolrack": {"allowed_tools": ["far.weather"]}}), vec!["far_weather"], vec!["far_weather"]),
        (json!({"toolrack": {"allowed_tools": ["add"]}}), vec!["add"], vec!["add"]),
        (
            json!({"toolrack": {"allowed_modules": ["far"]}}),
            vec![SEARCH_TOOLS],
            vec![SEARCH_TOOLS, "far_weather"],
        ),
        (json!({"toolrack": {"allowed_modules": ["math"]}}), vec!["math_gcd"], vec!["math_gcd"]),
    ] {
        // A choice has to be kept to.
        let (call, ran) = match fields.pointer("/tool_choice/function/name").and_then(Value::as_str) {
            Some(SEARCH_TOOLS) => (search("weather"), None),
            Some("far.tides") => (weather_as("far_tides"), Some("far.tides")),
            _ => (weather(), second.contains(&"far_weather").then_some("far.weather")),
        };
        let rack = setup().start([call, Reply::text("x")]).await;
        rack.ask_with(true, fields.clone()).await.expect("x");
        let asked = rack.upstream.asked();
        assert_eq!((asked[0].tools(), asked[1].tools()), (first, second), "{fields}");
        let names: Vec<String> = rack.ran().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, Vec::from_iter(ran), "{fields}");
    }
}

#[tokio::test]
async fn b11_the_clients_tools_keep_their_names_and_their_place() {
    let tools = json!({"tools": [client_tool(SEARCH_TOOLS), client_tool("far_weather")]});
    let search = Answer::new().call("s", "search_tools_2", &json!({"query": "weather"}));
    let call = Answer::new().call("w", "far_weather_2", &json!({"city": "Oslo"}));
    let client = Answer::new().call("c", SEARCH_TOOLS, &json!({"city": "Oslo"}));
    let rack = setup().start([search.into(), call.into(), client.into()]).await;
    let reported = rack.ask_with(true, tools.clone()).await;
    assert_eq!(reported.named_calls(), [(SEARCH_TOOLS.to_owned(), json!({"city": "Oslo"}))]);
    assert_eq!(rack.ran(), [("far.weather".to_owned(), json!({"city": "Oslo"}))]);
    let asked = rack.upstream.asked();
    let first = ["add", "math_gcd", "search_tools_2", SEARCH_TOOLS, "far_weather"];
    assert_eq!(asked[0].tools(), first);
    let then = ["add", "math_gcd", "search_tools_2", "far_weather_2", SEARCH_TOOLS, "far_weather"];
    assert_eq!(asked[1].tools(), then);
    assert!(last_result(&asked[1]).contains("\"far_weather_2\""), "{}", last_result(&asked[1]));
    // The client goes on with its result.
    let mut body = json!({"messages": [
        user("Go."),
        {"role": "assistant", "content": null, "tool_calls": reported.calls},
        {"role": "tool", "tool_call_id": reported.calls[0]["id"], "content": "nothing"},
    ]});
    body.as_object_mut().unwrap().extend(tools.as_object().unwrap().clone());
    rack.upstream.push(Reply::text("Grey."));
    rack.ask_with(true, body).await.expect("Grey.");
    assert_eq!(asked_last(&rack).await.tools(), then);
}

#[tokio::test]
async fn b11_in_a_prompt_the_result_tells_of_a_tool_and_later_the_prompt_does() {
    let call = "<tool_call>{\"name\": \"search_tools\", \"arguments\": {\"query\": \"weather\"}}</tool_call>";
    let use_it = "<tool_call>{\"name\": \"far_weather\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call>";
    let setup = setup().chat(|chat| chat.tool_style = ToolStyle::Prompt);
    let rack = setup
        .start([Reply::text(call), Reply::text(use_it), Reply::text("Grey."), Reply::text("Greyer.")])
        .await;
    rack.ask(true).await.expect("Grey.");
    rack.ask_with(true, later()).await.expect("Greyer.");
    let asked = rack.upstream.asked();
    let system = |asked: &Asked| asked.messages()[0]["content"].as_str().unwrap().to_owned();
    assert!(system(&asked[0]).contains("search_tools") && !system(&asked[0]).contains("far_weather"));
    assert_eq!(system(&asked[1]), system(&asked[0]), "what the server has read stays");
    assert!(asked[1].messages().last().unwrap()["content"].as_str().unwrap().contains("\"far_weather\""));
    assert_eq!(rack.ran().len(), 1);
    assert!(system(&asked[3]).contains("far_weather") && !system(&asked[3]).contains("far_tides"));
}

#[tokio::test]
async fn b11_a_deferred_tool_has_no_line_of_its_own() {
    let tag = ToolPolicy { text_tag: Some(TextTag::new("NOTE")), ..DEFERRED };
    let rack = setup().tool("note", place(), tag, |_, _| async { Ok(ToolResult::new("noted")) });
    let rack = rack.start([Reply::text("NOTE: milk")]).await;
    rack.ask(true).await.expect("NOTE: milk");
    assert!(!rack.upstream.asked()[0].body["messages"].to_string().contains("NOTE"));
    assert!(rack.ran().is_empty());
}

#[tokio::test]
async fn b11_other_doors_show_and_call_deferred_tools_as_any() {
    let rack = setup().start([]).await;
    let listed: Value =
        within(async { rack.client.get(rack.url("/api/tools")).send().await.unwrap().json().await.unwrap() })
            .await;
    let marks: Vec<(&str, bool)> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["deferred"].as_bool().unwrap()))
        .collect();
    let expected = [
        ("add", false),
        ("far.tides", true),
        ("far.weather", true),
        ("math.gcd", false),
        (SEARCH_TOOLS, false),
    ];
    assert_eq!(marks, expected);
    let execute = async |body: Value| -> Value {
        within(async {
            rack.client.post(rack.url("/execute")).json(&body).send().await.unwrap().json().await.unwrap()
        })
        .await
    };
    let reply = execute(json!({"tool_name": "far.weather", "arguments": {"city": "Oslo"}})).await;
    assert_eq!(reply["result"], "far.weather in Oslo", "{reply}");
    let reply = execute(json!({"tool_name": SEARCH_TOOLS, "arguments": {"query": "the weather"}})).await;
    assert_eq!(reply["result"]["tools"][0]["name"], "far.weather", "{reply}");
}

/// As an MCP server with much to offer would bring them.
fn thousand(deferred: bool) -> Registry {
    let registry = Registry::builder().without_compiled().build().unwrap();
    for number in 0..1000 {
        let schema = json!({
            "type": "object",
            "properties": {
                "item": {"type": "string", "description": "The item that is meant, by its name or its number."},
                "count": {"type": "integer", "minimum": 1, "description": "How many of them."},
            },
            "required": ["item"],
        });
        let spec = ToolSpec {
            description: Some(format!(
                "Does work number {number} on an item of the stock and tells what came of it."
            )),
            ..ToolSpec::new(format!("stock.work_{number}"), schema)
        };
        let policy = ToolPolicy { deferred, ..ToolPolicy::new() };
        registry
            .register(spec, policy, Some(handler_fn(|_, _| async { Ok(ToolResult::new("done")) })))
            .unwrap();
    }
    registry
}

#[tokio::test]
async fn b11_a_thousand_deferred_tools_cost_next_to_nothing_in_a_prompt() {
    let mut sizes = Vec::new();
    for deferred in [false, true] {
        let rack = Setup::bare().with(|setup| setup.registry = thousand(deferred));
        let rack = rack.start([search("work number 777"), Reply::text("Done."), Reply::text("Again.")]).await;
        rack.ask(true).await.expect("Done.");
        rack.ask(true).await.expect("Again.");
        let asked = rack.upstream.asked();
        let tokens = |asked: &Asked| asked.body["tools"].to_string().len() / 4;
        sizes.push((tokens(&asked[0]), tokens(&asked[1])));
        assert_eq!(asked[1].body["tools"], asked[2].body["tools"], "the same order each time");
        if deferred {
            assert_eq!(asked[1].tools()[..2], [SEARCH_TOOLS, "stock_work_777"]);
        }
    }
    println!("about {sizes:?} tokens of definitions before and after a search, without and with deferral");
    let [(all, _), (deferred, found)] = sizes[..] else { panic!("{sizes:?}") };
    assert!(all > 50_000 && deferred * 300 < all && found * 60 < all, "{sizes:?}");
}

#[tokio::test]
async fn b4_what_is_offered_in_a_chat_is_what_the_provider_takes() {
    // A list of anything has to say so, and names that are legal stay.
    let list = json!({"type": "object", "properties": {"list": {"type": "array"}}});
    let setup = Setup::new()
        .tool("math_gcd", list, ToolPolicy::new(), |_, _| async { Ok(ToolResult::new("list")) })
        .tool(
            "odd",
            json!({"type": "object", "allOf": [{"type": "string"}]}),
            ToolPolicy::new(),
            |_, _| async { Ok(ToolResult::new("odd")) },
        );
    let rack = setup.start([Reply::text("x")]).await;
    rack.ask(true).await.expect("x");
    let asked = asked_last(&rack).await;
    let registry = &rack.registry;
    let selection = registry.select(&registry.context(Caller::new("ada", Permission::Owner)));
    let defined =
        Definer::new(Provider::OpenAi).definitions(selection.tools().iter().map(|tool| subject(tool)));
    assert_eq!(asked.body["tools"], defined.list);
    assert_eq!(asked.tools(), ["add", "math_gcd_2", "math_gcd"]);
    assert_eq!(defined.left_out[0].tool, "odd");
    let choice = json!({"tool_choice": {"type": "function", "function": {"name": "odd"}}});
    let reported = rack.ask_with(true, choice).await;
    assert!(reported.status == 400 && reported.failure().contains("`odd`"), "{}", reported.failure());
    assert_eq!(asked.body["tools"][2]["function"]["parameters"]["properties"]["list"]["items"], json!({}));
    assert_eq!(asked.body["tools"][0]["function"]["parameters"], two_numbers());
}
