//! Tools whose definitions have no room in the model's context: the model looks for them. Row B11.

use registry_core::{Registry, SEARCH_TOOLS, ToolPolicy, ToolResult, ToolSpec, handler_fn};
use serde_json::{Value, json};

use crate::support::{Answer, Asked, Rack, Reply, Scripted, Setup, Site, client_tool, user};

/// How many tools there are, each of about a hundred tokens.
const TOOLS: usize = 20;

fn register(registry: &Registry) {
    for number in 0..TOOLS {
        let description =
            format!("Tells the tides of harbour {number}. {}", "It knows high and low water. ".repeat(9));
        let schema =
            json!({"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]});
        let spec = ToolSpec {
            description: Some(description),
            ..ToolSpec::new(format!("harbour.tides_{number}"), schema)
        };
        let handler = handler_fn(move |_, _| async move { Ok(ToolResult::new(format!("high in {number}"))) });
        registry.register(spec, ToolPolicy::new(), Some(handler)).unwrap();
    }
}

/// Twenty tools and a server whose models have a context of so many tokens, which it says or does not say.
async fn rack(setup: Setup, context: Option<u64>, replies: impl IntoIterator<Item = Reply>) -> Rack {
    register(&setup.registry);
    let site = Site::of_kind("vllm", &["m"]);
    let site = match context {
        Some(size) => site.with_context("vllm", size),
        None => site,
    };
    let upstream = Scripted::start_as(site, replies).await;
    let base = upstream.base();
    setup.start_before(upstream, &base).await
}

fn too_long() -> Reply {
    let message = "request (6735 tokens) exceeds the available context size (4096 tokens), try increasing it";
    Reply::json(
        400,
        &json!({"error": {"code": 400, "message": message, "type": "exceed_context_size_error"}}),
    )
}

fn search() -> Reply {
    Answer::new().call("s", SEARCH_TOOLS, &json!({"query": "tides of harbour 7", "limit": 1})).into()
}

fn tides() -> Reply {
    Answer::new().call("t", "harbour_tides_7", &json!({"day": "today"})).into()
}

fn last_result(asked: &Asked) -> &str {
    asked.messages().last().unwrap()["content"].as_str().unwrap()
}

#[tokio::test]
async fn b11_tools_without_room_are_looked_for_from_the_start_and_stay_found() {
    for stream in [true, false] {
        let replies = [search(), tides(), Reply::text("At noon."), Reply::text("At one.")];
        let rack = rack(Setup::bare(), Some(2048), replies).await;
        rack.ask(stream).await.expect("At noon.");
        let later = json!({"messages": [user("Go."), {"role": "assistant", "content": "At noon."}, user("And tomorrow?")]});
        rack.ask_with(stream, later).await.expect("At one.");
        let asked = rack.upstream.asked();
        let tools: Vec<_> = asked.iter().map(Asked::tools).collect();
        let (first, after) = (vec!["search_tools"], vec!["search_tools", "harbour_tides_7"]);
        assert_eq!(tools, [first, after.clone(), after.clone(), after]);
        let description = asked[0].body["tools"][0]["function"]["description"].as_str().unwrap();
        assert!(description.ends_with("They are in these modules: harbour."), "{description}");
        assert!(last_result(&asked[1]).contains("harbour_tides_7"), "{}", last_result(&asked[1]));
        assert_eq!(last_result(&asked[2]), "high in 7");
        let calls: Vec<String> = rack.outcomes().into_iter().map(|record| record.tool).collect();
        assert_eq!(calls, [SEARCH_TOOLS, "harbour.tides_7"], "each on the one path");
    }
}

#[tokio::test]
async fn b11_a_tool_without_room_can_be_called_by_its_name_in_any_form() {
    let text = "<tool_call>{\"name\": \"harbour.tides_7\", \"arguments\": {\"day\": \"today\"}}</tool_call>";
    for reply in [tides(), Reply::text(text)] {
        let rack = rack(Setup::bare(), Some(2048), [reply, Reply::text("At noon.")]).await;
        rack.ask(true).await.expect("At noon.");
        let asked = rack.upstream.asked();
        assert_eq!(last_result(&asked[1]), "high in 7");
        assert_eq!(asked[1].tools(), ["search_tools", "harbour_tides_7"]);
    }
}

#[tokio::test]
async fn b11_what_fits_or_is_asked_for_is_sent_whole() {
    let all = |rack: &Rack| rack.upstream.asked()[0].tools().len();
    let large = rack(Setup::bare(), Some(32_768), [Reply::text("Hi.")]).await;
    large.ask(true).await.expect("Hi.");
    assert_eq!(all(&large), TOOLS);

    let always = Setup::bare().chat(|chat| chat.limits.max_tools_percent = 100);
    let always = rack(always, Some(2048), [Reply::text("Hi.")]).await;
    always.ask(true).await.expect("Hi.");
    assert_eq!(all(&always), TOOLS);

    let named = rack(Setup::bare(), Some(512), [Reply::text("Hi.")]).await;
    let names: Vec<String> = (0..TOOLS).map(|number| format!("harbour.tides_{number}")).collect();
    named.ask_with(true, json!({"toolrack": {"allowed_tools": names}})).await.expect("Hi.");
    assert_eq!(all(&named), TOOLS);

    // Those of the client are the client's to choose.
    let clients = rack(Setup::bare(), Some(64), [Reply::text("Hi.")]).await;
    clients.ask_with(true, json!({"tools": [client_tool("mine")]})).await.expect("Hi.");
    assert_eq!(clients.upstream.asked()[0].tools(), ["search_tools", "mine"]);
}

#[tokio::test]
async fn b11_where_the_search_is_off_all_tools_are_sent() {
    let setup = Setup::bare().tool(
        "far.away",
        json!({"type": "object"}),
        ToolPolicy { deferred: true, ..ToolPolicy::new() },
        |_, _| async { Ok(ToolResult::new("done")) },
    );
    setup.registry.set_enabled(SEARCH_TOOLS, false).unwrap();
    let rack = rack(setup, Some(2048), [Reply::text("Hi.")]).await;
    rack.ask(true).await.expect("Hi.");
    assert_eq!(rack.upstream.asked()[0].tools().len(), TOOLS + 1);
}

#[tokio::test]
async fn b11_a_request_that_the_server_refuses_as_too_long_is_sent_without_the_tools_and_so_are_the_next() {
    for stream in [true, false] {
        let replies = [too_long(), search(), tides(), Reply::text("At noon."), Reply::text("Hi.")];
        let rack = rack(Setup::bare(), None, replies).await;
        rack.ask(stream).await.expect("At noon.");
        rack.ask_with(stream, json!({"messages": [user("Something else.")]})).await.expect("Hi.");
        let tools: Vec<usize> = rack.upstream.asked().iter().map(|asked| asked.tools().len()).collect();
        assert_eq!(tools, [TOOLS, 1, 2, 2, 1]);
    }
}

#[tokio::test]
async fn b11_of_a_request_that_is_long_itself_nothing_is_learned_about_the_tools() {
    for stream in [true, false] {
        // About as many tokens as the tools have twice; the tools alone would leave more than half of the context.
        let message =
            "request (9500 tokens) exceeds the available context size (8192 tokens), try increasing it";
        let refused = Reply::json(
            400,
            &json!({"error": {"code": 400, "message": message, "type": "exceed_context_size_error"}}),
        );
        let replies = [refused, Reply::text("Read."), Reply::text("Hi.")];
        let rack = rack(Setup::bare(), None, replies).await;
        let long = "word ".repeat(5_000);
        rack.ask_with(stream, json!({"messages": [user(&long)]})).await.expect("Read.");
        rack.ask_with(stream, json!({"messages": [user("Something else.")]})).await.expect("Hi.");
        let tools: Vec<usize> = rack.upstream.asked().iter().map(|asked| asked.tools().len()).collect();
        assert_eq!(tools, [TOOLS, 1, TOOLS]);
    }
}

#[tokio::test]
async fn b11_what_is_too_long_without_the_tools_is_an_error_that_is_not_learned_from() {
    let rack = rack(Setup::bare(), None, [too_long(), too_long(), Reply::text("Hi.")]).await;
    let reported = rack.ask(true).await;
    assert!(reported.failure().contains("exceeds the available context size"), "{}", reported.failure());
    rack.ask(true).await.expect("Hi.");
    let tools: Vec<usize> = rack.upstream.asked().iter().map(|asked| asked.tools().len()).collect();
    assert_eq!(tools, [TOOLS, 1, TOOLS]);
}

#[tokio::test]
async fn b11_what_would_be_too_long_without_the_tools_too_is_sent_once() {
    let long = "word ".repeat(40_000);
    let unknown = json!({"error": {"code": "context_length_exceeded", "message": "It is too long.", "type": "invalid_request_error"}});
    for (said, refusal) in [(long.as_str(), too_long()), ("Go.", Reply::json(400, &unknown))] {
        let rack = rack(Setup::bare(), None, [refusal]).await;
        rack.ask_with(true, json!({"messages": [user(said)]})).await.failure();
        assert_eq!(rack.upstream.asked().len(), 1);
    }
}

#[tokio::test]
async fn b11_the_tools_are_named_where_they_are_what_is_too_long() {
    // More than would fit without those of the server: so it is asked once.
    let many: Vec<Value> = (0..200).map(|number| client_tool(&format!("tool_{number}"))).collect();
    let rack = rack(Setup::bare(), None, [too_long()]).await;
    let reported = rack.ask_with(true, json!({"tools": many})).await;
    let failure = reported.failure();
    assert!(failure.contains("The definitions of its tools (220) are about "), "{failure}");
    assert!(failure.contains("send or allow fewer"), "{failure}");
    assert_eq!(reported.error.as_ref().unwrap()["type"], "exceed_context_size_error");
}
