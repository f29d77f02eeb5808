//! How many tokens a request has.

use serde_json::{Value, json};

use crate::support::{Rack, Reply, Setup, user};

async fn count(rack: &Rack, path: &str, body: &Value, tools: bool) -> (u16, Value) {
    let request = rack.client.post(rack.url(path)).json(body);
    let request = if tools { request } else { request.header("x-toolrack-tools", "none") };
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

const ANTHROPIC: &str = "/v1/messages/count_tokens";

fn message(text: &str) -> Value {
    json!({"model": "m", "messages": [user(text)]})
}

#[tokio::test]
async fn b13_tokens_are_counted_by_the_tokenizer_of_llama_cpp() {
    let replies = [json!({"prompt": "<|user|>Hi"}), json!({"tokens": [1, 2, 3, 4, 5]})];
    let rack = Setup::new().start(replies.map(|reply| Reply::json(200, &reply))).await;
    assert_eq!(count(&rack, ANTHROPIC, &message("Hi"), true).await, (200, json!({"input_tokens": 5})));
    let asked = rack.upstream.asked();
    assert_eq!((asked[0].path.as_str(), asked[1].path.as_str()), ("/apply-template", "/tokenize"));
    assert_eq!(asked[0].messages(), &[user("Hi")]);
    // As the model would get it.
    assert_eq!(asked[0].tools(), ["add", "math_gcd"]);
    assert_eq!(asked[1].body["content"], "<|user|>Hi");
}

#[tokio::test]
async fn b13_tokens_are_counted_by_the_tokenizer_of_vllm() {
    let replies = [
        Reply::error(404, "Not Found"),
        Reply::json(200, &json!({"count": 7, "max_model_len": 9, "tokens": []})),
    ];
    let rack = Setup::new().start(replies).await;
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]});
    let counted = count(&rack, "/v1beta/models/m:countTokens", &body, false).await;
    assert_eq!(counted, (200, json!({"totalTokens": 7})));
    let asked = rack.upstream.asked();
    assert_eq!((asked[1].path.as_str(), asked[1].messages()), ("/tokenize", &vec![user("Hi")]));
    assert!(asked[1].tools().is_empty());
}

#[tokio::test]
async fn b13_without_a_tokenizer_a_token_is_four_characters_and_a_message_four_tokens_more() {
    // The script is at its end: every address is an error.
    let rack = Setup::new().start([]).await;
    for (text, tokens) in [("", 4), ("a", 5), ("abcd", 5), ("abcde", 6), (&"x".repeat(401), 105)] {
        assert_eq!(
            count(&rack, ANTHROPIC, &message(text), false).await,
            (200, json!({"input_tokens": tokens})),
            "{text}"
        );
    }
    let with_tools = count(&rack, ANTHROPIC, &message("a"), true).await.1["input_tokens"].as_u64().unwrap();
    assert!(with_tools > 50, "{with_tools}");
    let (status, error) = count(&rack, ANTHROPIC, &json!({"messages": 1}), true).await;
    assert_eq!((status, &error["error"]["type"]), (400, &json!("invalid_request_error")));
    let (status, error) = count(&rack, "/v1/models/m:countTokens", &json!({"contents": 1}), true).await;
    assert_eq!((status, &error["error"]["status"]), (400, &json!("INVALID_ARGUMENT")));
}

const RESPONSES: &str = "/v1/responses/input_tokens";

#[tokio::test]
async fn b13_a_request_for_a_response_is_counted_with_what_it_continues() {
    let rack = Setup::new().start([Reply::text("abcd")]).await;
    let asked = rack.client.post(rack.url("/v1/responses")).json(&json!({"model": "m", "input": "abcd"}));
    let kept: Value = asked.send().await.unwrap().json().await.unwrap();
    let of = |input: &str| json!({"object": "response.input_tokens", "input_tokens": input.len()});
    let alone = json!({"model": "m", "input": "abcd"});
    assert_eq!(count(&rack, RESPONSES, &alone, false).await, (200, of("12345")));
    let mut going_on = alone.clone();
    going_on["previous_response_id"] = kept["id"].clone();
    assert_eq!(count(&rack, RESPONSES, &going_on, false).await, (200, of("123451234512345")));
    let item = kept["output"].as_array().unwrap().iter().find(|item| item["type"] == "message").unwrap();
    let referring = json!({"input": [{"type": "item_reference", "id": item["id"]}, user("abcd")]});
    assert_eq!(count(&rack, RESPONSES, &referring, false).await, (200, of("1234512345")));
    let unknown = json!({"input": "a", "previous_response_id": "resp_1"});
    let (status, error) = count(&rack, RESPONSES, &unknown, false).await;
    assert!((400..500).contains(&status) && error["error"]["message"].is_string(), "{status} {error}");
}

/// A stream says at its beginning how large the prompt is, as estimated, and at its end what the model server has counted.
#[tokio::test]
async fn b13_a_stream_of_anthropic_begins_with_the_size_of_the_prompt() {
    let answer = crate::support::Answer::text("abcd").usage(77, 1);
    // The script has nothing for the addresses of tokenizers.
    let rack = Setup::new().start([answer.into()]).await;
    let mut body = message("abcd");
    body["stream"] = true.into();
    let response = rack.client.post(rack.url("/v1/messages")).json(&body).send().await.unwrap();
    let text = response.text().await.unwrap();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let usage = |kind: &str| {
        let event = events.iter().find(|event| event["type"] == kind).unwrap();
        event.pointer("/message/usage").or(event.get("usage")).unwrap()["input_tokens"].clone()
    };
    assert_eq!(usage("message_delta"), 77);
    let counted = count(&rack, ANTHROPIC, &message("abcd"), true).await.1["input_tokens"].as_u64().unwrap();
    let begun = usage("message_start").as_u64().unwrap();
    assert!(counted > 50 && begun.abs_diff(counted) <= counted / 10, "{begun} {counted}");
}
