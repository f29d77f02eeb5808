//! Conversations that the server keeps for OpenAI's Responses.

use std::sync::Arc;

use registry_core::{SEARCH_TOOLS, ToolPolicy, ToolResult};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Rack, Reply, Setup, within};

async fn respond(rack: &Rack, body: Value) -> (StatusCode, Value) {
    let response = within(rack.client.post(rack.url("/v1/responses")).json(&body).send()).await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    if body["stream"] != true || !status.is_success() {
        return (status, serde_json::from_str(&text).unwrap());
    }
    let data = text.lines().rev().find_map(|line| line.strip_prefix("data: {")).unwrap();
    let last: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
    assert_eq!(last["type"], "response.completed", "{last}");
    (status, last["response"].clone())
}

fn contents(rack: &Rack, asked: usize) -> Vec<String> {
    let messages = rack.upstream.asked()[asked].messages().to_vec();
    let said = |message: &Value| match message.get("tool_calls") {
        Some(calls) => format!("calls {}", calls[0]["function"]["name"].as_str().unwrap()),
        None => message["content"].as_str().unwrap().to_owned(),
    };
    messages.iter().map(said).collect()
}

#[tokio::test]
async fn b13_a_response_continues_what_is_kept_with_the_results_of_tools() {
    for stream in [true, false] {
        let call = Answer::new().call("c", "math_gcd", &json!({"a": 12, "b": 18}));
        let rack = Setup::new()
            .start([call.into(), Reply::text("6"), Reply::text("2 and 3"), Reply::text("Nothing.")])
            .await;
        let ask = |input: &str, previous: Value| json!({"model": "m", "stream": stream, "instructions": "Be brief.", "input": input, "previous_response_id": previous});
        let (status, first) = respond(&rack, ask("GCD?", Value::Null)).await;
        assert_eq!((status, &first["store"]), (StatusCode::OK, &Value::Null), "{first}");
        let (_, second) = respond(&rack, ask("Its factors?", first["id"].clone())).await;
        let expected = ["Be brief.", "GCD?", "calls math_gcd", "gcd=6", "6", "Its factors?"];
        assert_eq!(contents(&rack, 2), expected, "the instructions are those of the request alone");
        respond(&rack, ask("And?", second["id"].clone())).await;
        assert_eq!(contents(&rack, 3)[5..], ["Its factors?", "2 and 3", "And?"]);

        let address = rack.url(&format!("/v1/responses/{}", first["id"].as_str().unwrap()));
        let deleted = within(rack.client.delete(&address).send()).await.unwrap();
        assert_eq!(deleted.json::<Value>().await.unwrap()["deleted"], true);
        assert_eq!(within(rack.client.delete(&address).send()).await.unwrap().status(), 404);
        let (status, refused) = respond(&rack, ask("And?", first["id"].clone())).await;
        assert_eq!(
            (status, &refused["error"]["param"]),
            (StatusCode::BAD_REQUEST, &json!("previous_response_id"))
        );
        assert_eq!(rack.upstream.asked().len(), 4);
    }
}

#[tokio::test]
async fn b13_what_is_not_to_be_stored_or_was_never_there_is_not_found() {
    let rack = Setup::bare().start([Reply::text("Hi.")]).await;
    let (_, first) = respond(&rack, json!({"model": "m", "input": "Hello", "store": false})).await;
    for id in [first["id"].clone(), json!("resp_none"), json!("")] {
        let (status, refused) =
            respond(&rack, json!({"model": "m", "input": "x", "previous_response_id": id})).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{id}");
        // As OpenAI says it: clients that send all again look for it.
        assert_eq!(refused["error"]["code"], "previous_response_not_found");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("not found"), "{message}");
    }
}

#[tokio::test]
async fn b13_a_call_of_the_clients_tool_is_continued_with_its_result_alone() {
    let both = Answer::new().call("s", "math_gcd", &json!({"a": 4, "b": 6})).call(
        "c",
        "weather",
        &json!({"city": "Oslo"}),
    );
    let rack = Setup::new().start([both.into(), Reply::text("Grey.")]).await;
    let tools = json!([{"type": "function", "name": "weather", "parameters": {"type": "object"}}]);
    let (_, first) = respond(&rack, json!({"model": "m", "input": "Go.", "tools": tools})).await;
    let call =
        first["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let result = json!([{"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}]);
    let then = json!({"model": "m", "input": result, "tools": tools, "previous_response_id": first["id"]});
    let (status, _) = respond(&rack, then).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(contents(&rack, 1), ["Go.", "calls math_gcd", "gcd=2", "rain"]);
}

/// What the model may call in a conversation that a client continues by the id of its last response is what it could call before: deferred
/// tools that were found, and reading on in results that were shortened.
#[tokio::test]
async fn b15_a_response_is_continued_after_a_restart_with_the_tools_that_were_found() {
    let store = Arc::default();
    let lines: String = (0..1000).map(|line| format!("line {line:04}\n")).collect();
    let start = async |replies: Vec<Reply>| {
        let (store, lines) = (Arc::clone(&store), lines.clone());
        let deferred = ToolPolicy { deferred: true, ..ToolPolicy::new() };
        Setup::bare()
            .plain_tool("far.tides", deferred, |_| async { Ok(ToolResult::new("low")) })
            .plain_tool("log", ToolPolicy::new(), move |_| {
                let lines = lines.clone();
                async move { Ok(ToolResult::new(lines)) }
            })
            .chat(|chat| chat.limits.max_result_characters = 2000)
            .with(|setup| setup.store = store)
            .start(replies)
            .await
    };
    let call = |name: &str, arguments: Value| Reply::from(Answer::new().call("c", name, &arguments));
    let first = start(vec![
        call(SEARCH_TOOLS, json!({"query": "tides"})),
        call("log", json!({})),
        Reply::text("Read."),
    ])
    .await;
    let ask = |input: &str, previous: &Value| json!({"model": "m", "input": input, "previous_response_id": previous});
    let (_, kept) = respond(&first, ask("Look.", &Value::Null)).await;
    let before = first.upstream.asked().pop().unwrap();
    assert_eq!(before.tools(), ["log", "search_tools", "far_tides", "read_result"]);
    let shortened = before.messages()[4]["content"].as_str().unwrap();
    let id = shortened.split_once("{\"id\":\"").unwrap().1.get(..12).unwrap();

    let read = call("read_result", json!({"id": id, "from": 5000, "length": 10}));
    let again = start(vec![Reply::text("Yes."), read, Reply::text("500.")]).await;
    let (_, kept) = respond(&again, ask("Sure?", &kept["id"])).await;
    respond(&again, ask("Line 500?", &kept["id"])).await;
    let asked = again.upstream.asked();
    for asked in &asked {
        assert_eq!(asked.raw("tools"), before.raw("tools"));
        assert!(asked.raw("messages").starts_with(before.raw("messages").strip_suffix(']').unwrap()));
    }
    let result = asked[2].messages().last().unwrap()["content"].as_str().unwrap();
    assert!(result.starts_with("[Characters 5000 to 5010]\nline 0500\n"), "{result}");
}

/// A client may keep the conversation itself at any time, or leave that to the server: the model gets the same.
#[tokio::test]
async fn b15_a_client_may_turn_from_kept_responses_to_sending_all_and_back() {
    let gcd = |number: i64| {
        Reply::from(Answer::new().call("c", "math_gcd", &json!({"a": number, "b": 2 * number})))
    };
    let rack = Setup::new().start([]).await;
    let mut whole: Vec<Value> = Vec::new();
    let mut previous = Value::Null;
    for (turn, is_kept) in [true, true, false, false, true, true, false].into_iter().enumerate() {
        let number = 3 + i64::try_from(turn).unwrap();
        for reply in [gcd(number), Reply::text(&format!("It is {number}."))] {
            rack.upstream.push(reply);
        }
        let question = json!({"role": "user", "content": format!("Question {turn}?")});
        whole.push(question.clone());
        // A client that has kept the conversation itself and now leaves it to the server sends it once more.
        let input = if is_kept && previous != Value::Null { json!([question]) } else { json!(whole) };
        let mut body = json!({"model": "m", "input": input, "instructions": format!("Turn {turn}.")});
        if is_kept {
            body["previous_response_id"] = previous.clone();
        }
        let (status, response) = respond(&rack, body).await;
        assert_eq!(status, StatusCode::OK, "{response}");
        previous = if is_kept || turn == 3 { response["id"].clone() } else { Value::Null };
        whole.push(json!({"role": "assistant", "content": format!("It is {number}.")}));
    }
    let asked = rack.upstream.asked();
    // The instructions are those of each request alone.
    let sent = |at: usize| asked[at].messages()[1..].to_vec();
    for at in 1..asked.len() {
        let (before, after) = (sent(at - 1), sent(at));
        assert_eq!(after.get(..before.len()), Some(before.as_slice()), "request {at}");
    }
    let results = sent(13).iter().filter(|message| message["role"] == "tool").count();
    assert_eq!(results, 7);
}
