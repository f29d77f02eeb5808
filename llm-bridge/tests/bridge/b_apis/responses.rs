//! The responses that are kept for clients of OpenAI's Responses, and the items in them.

use registry_core::{
    Permission,
    store::{ApiKey, ConversationLimits, ConversationStore, Store, StoredResponse, User},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, Rack, Reply, Setup, within};

/// The status and the JSON of a reply; of a stream the response in its last event.
async fn send(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let response = within(request.send()).await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    let last = text.lines().rev().find_map(|line| line.strip_prefix("data: "));
    let json: Value = serde_json::from_str(last.unwrap_or(&text)).unwrap_or_else(|_| panic!("{text}"));
    (status, if last.is_some() { json["response"].clone() } else { json })
}

async fn create(rack: &Rack, body: Value) -> Value {
    let (status, response) = send(rack.client.post(rack.url("/v1/responses")).json(&body)).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    response
}

async fn get(rack: &Rack, path: &str) -> (StatusCode, Value) {
    send(rack.client.get(rack.url(path))).await
}

fn path(response: &Value, below: &str) -> String {
    format!("/v1/responses/{}{below}", response["id"].as_str().unwrap())
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn b13_a_kept_response_comes_back_as_it_was_given() {
    for stream in [false, true] {
        let call = Answer::new().call("c", "math_gcd", &json!({"a": 12, "b": 18}));
        let rack = Setup::new().start([call.into(), Answer::text("6").usage(5, 7).into()]).await;
        let asked = json!({
            "model": "m", "stream": stream, "input": "GCD?", "metadata": {"a": "b"}, "instructions": "Be brief.",
            "tools": [
                {"type": "function", "name": "weather", "parameters": {"type": "object"}},
                {"type": "mcp", "server_label": "toolrack"},
            ],
        });
        let given = create(&rack, asked).await;
        assert_eq!((&given["status"], &given["metadata"]), (&json!("completed"), &json!({"a": "b"})));
        assert!(
            given["usage"]["total_tokens"].as_u64() > Some(0)
                && given["output"].as_array().unwrap().len() == 2
        );
        for slash in ["", "/"] {
            assert_eq!(get(&rack, &path(&given, slash)).await, (StatusCode::OK, given.clone()));
        }
        let (status, refused) = get(&rack, &path(&given, "?stream=true")).await;
        assert_eq!((status, &refused["error"]["param"]), (StatusCode::BAD_REQUEST, &json!("stream")));
        let (status, refused) = send(rack.client.post(rack.url(&path(&given, "/cancel")))).await;
        assert_eq!(
            (status, &refused["error"]["type"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_request_error"))
        );
        assert!(refused["error"]["message"].as_str().unwrap().contains("synchronous"), "{refused}");

        let deleted = send(rack.client.delete(rack.url(&path(&given, "")))).await;
        assert_eq!(
            deleted,
            (StatusCode::OK, json!({"id": given["id"], "object": "response", "deleted": true}))
        );
        for (method, below) in [
            (Method::GET, ""),
            (Method::GET, "/input_items"),
            (Method::POST, "/cancel"),
            (Method::DELETE, ""),
        ] {
            let (status, error) = send(rack.client.request(method, rack.url(&path(&given, below)))).await;
            let message = format!("Response with id '{}' not found.", given["id"].as_str().unwrap());
            let shape =
                json!({"message": message, "type": "invalid_request_error", "param": null, "code": null});
            assert_eq!((status, &error["error"]), (StatusCode::NOT_FOUND, &shape), "{below}");
        }
    }
}

#[tokio::test]
async fn b13_the_items_of_a_conversation_are_listed_in_pages() {
    let rack = Setup::bare().start(["a", "b", "c"].map(Reply::text)).await;
    let first = create(&rack, json!({"model": "m", "input": "one"})).await;
    let input = json!([
        {"role": "user", "content": "two"},
        {"type": "message", "id": "msg_mine", "role": "user", "content": [{"type": "input_text", "text": "three"}]},
    ]);
    let second =
        create(&rack, json!({"model": "m", "input": input, "previous_response_id": first["id"]})).await;
    let third =
        create(&rack, json!({"model": "m", "input": "four", "previous_response_id": second["id"]})).await;

    let (status, all) = get(&rack, &path(&third, "/input_items?order=asc")).await;
    assert_eq!(status, StatusCode::OK, "{all}");
    let texts: Vec<&Value> =
        all["data"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(texts, ["one", "a", "two", "three", "b", "four"]);
    let ordered = ids(&all);
    assert_eq!((all["has_more"].as_bool(), ordered[3]), (Some(false), "msg_mine"));
    assert_eq!(
        (ordered[1], ordered[4]),
        (first["output"][0]["id"].as_str().unwrap(), second["output"][0]["id"].as_str().unwrap())
    );
    assert_eq!((&all["first_id"], &all["last_id"]), (&json!(ordered[0]), &json!(ordered[5])));

    for (order, mut expected) in [("asc", ordered.clone()), ("desc", ordered.iter().rev().copied().collect())]
    {
        for limit in 1..=6 {
            let (mut seen, mut after) = (Vec::new(), String::new());
            loop {
                let (_, page) =
                    get(&rack, &path(&third, &format!("/input_items?order={order}&limit={limit}{after}")))
                        .await;
                seen.extend(ids(&page).into_iter().map(str::to_owned));
                if page["has_more"] == false {
                    break;
                }
                after = format!("&after={}", page["last_id"].as_str().unwrap());
            }
            assert_eq!(seen, expected, "{order} {limit}");
        }
        expected.clear();
    }
    let newest_first = get(&rack, &path(&third, "/input_items")).await.1;
    assert_eq!(ids(&newest_first)[0], ordered[5]);
    for (query, param) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "query"),
        ("order=up", "query"),
        ("after=msg_no", "after"),
    ] {
        let (status, error) = get(&rack, &path(&third, &format!("/input_items?{query}"))).await;
        assert_eq!((status, &error["error"]["param"]), (StatusCode::BAD_REQUEST, &json!(param)), "{query}");
    }
    // What was deleted ends the list.
    within(rack.client.delete(rack.url(&path(&first, ""))).send()).await.unwrap();
    let rest = get(&rack, &path(&third, "/input_items?order=asc")).await.1;
    assert_eq!(ids(&rest), ordered[2..]);
}

#[tokio::test]
async fn b13_items_are_referred_to_by_their_ids() {
    let call = Answer::text("I look.").call("c", "weather", &json!({"city": "Oslo"}));
    let rack = Setup::new().start([call.into(), Reply::text("Grey."), Reply::text("Bye.")]).await;
    let tools = json!([{"type": "function", "name": "weather", "parameters": {"type": "object"}}]);
    let question = json!({"role": "user", "content": "Weather?"});
    let first = create(&rack, json!({"model": "m", "input": [question], "tools": tools})).await;
    let output = first["output"].as_array().unwrap();
    let reference = |item: &Value| json!({"type": "item_reference", "id": item["id"]});
    let call_id = &output.iter().find(|item| item["type"] == "function_call").unwrap()["call_id"];
    let result = json!({"type": "function_call_output", "call_id": call_id, "output": "rain"});
    let mut input = vec![question.clone()];
    input.extend(output.iter().map(reference));
    input.push(result);
    let second = create(&rack, json!({"model": "m", "input": input, "tools": tools, "stream": true})).await;
    let asked = rack.upstream.asked()[1].messages().clone();
    assert_eq!(
        (&asked[1]["content"], &asked[1]["tool_calls"][0]["function"]["name"]),
        (&json!("I look."), &json!("weather"))
    );
    assert_eq!((&asked[2]["role"], &asked[2]["content"]), (&json!("tool"), &json!("rain")));

    // Items of the input, too; and the list has the items themselves.
    let listed = get(&rack, &path(&second, "/input_items?order=asc")).await.1;
    assert_eq!(listed["data"][1]["content"][0]["text"], "I look.");
    let all: Vec<Value> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .chain(second["output"].as_array().unwrap())
        .map(reference)
        .collect();
    assert_eq!(all.len(), 5);
    create(&rack, json!({"model": "m", "input": all, "store": false})).await;
    let asked = rack.upstream.asked()[2].messages().clone();
    assert_eq!((asked.len(), &asked[3]["content"]), (4, &json!("Grey.")));

    for id in ["msg_none", "", "fc_0123456789abcdef0123456789abcdef0000000000000000"] {
        let body = json!({"model": "m", "input": [question, {"type": "item_reference", "id": id}]});
        let (status, refused) = send(rack.client.post(rack.url("/v1/responses")).json(&body)).await;
        assert_eq!((status, &refused["error"]["param"]), (StatusCode::BAD_REQUEST, &json!("input")), "{id}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("Item with id '{id}' not found")), "{message}");
    }
    assert_eq!(rack.upstream.asked().len(), 3);
}

#[tokio::test]
async fn b13_nobody_sees_the_responses_of_others() {
    let setup = Setup::bare().with(|setup| setup.access.key_required = true);
    let store = setup.store.clone();
    let rack = setup.start([Reply::text("a")]).await;
    let mut secrets = Vec::new();
    for (tenant, id) in [("default", "ada"), ("default", "bob"), ("other", "ada")] {
        let at = jiff::Timestamp::now();
        let user = User { id: id.into(), level: Permission::Owner, personas: Vec::new(), created_at: at };
        store.put_user(tenant, user).await.unwrap();
        let (key, secret) = ApiKey::generate(tenant, id, false, at).unwrap();
        store.put_key(key).await.unwrap();
        secrets.push(secret);
    }
    let body = json!({"model": "m", "input": "hi"});
    let (_, given) =
        send(rack.client.post(rack.url("/v1/responses")).bearer_auth(&secrets[0]).json(&body)).await;
    let reference =
        json!({"model": "m", "input": [{"type": "item_reference", "id": given["output"][0]["id"]}]});
    for secret in &secrets[1..] {
        for (method, below) in [
            (Method::GET, ""),
            (Method::GET, "/input_items"),
            (Method::POST, "/cancel"),
            (Method::DELETE, ""),
        ] {
            let request = rack.client.request(method, rack.url(&path(&given, below))).bearer_auth(secret);
            assert_eq!(send(request).await.0, StatusCode::NOT_FOUND, "{below}");
        }
        let request = rack.client.post(rack.url("/v1/responses")).bearer_auth(secret).json(&reference);
        assert_eq!(send(request).await.0, StatusCode::BAD_REQUEST);
    }
    let own = rack.client.get(rack.url(&path(&given, ""))).bearer_auth(&secrets[0]);
    assert_eq!(send(own).await, (StatusCode::OK, given.clone()));
    // They go with their user.
    store.remove_user("default", "ada", jiff::Timestamp::now()).await.unwrap();
    let id = given["id"].as_str().unwrap();
    assert_eq!(store.response("default", "ada", id, jiff::Timestamp::MIN).await, Ok(None));
}

#[tokio::test]
async fn b13_what_an_earlier_version_has_kept_is_continued() {
    let setup = Setup::bare();
    let store = setup.store.clone();
    let rack = setup.start([Reply::text("b")]).await;
    let messages = json!([{"role": "user", "parts": [{"content": {"text": "one"}}]}, {"role": "assistant", "parts": [{"content": {"text": "a"}}]}]);
    let stored = StoredResponse {
        id: "resp_0123456789abcdef0123456789abcdef".into(),
        tenant: "default".into(),
        user: "ada".into(),
        previous: None,
        model: "m".into(),
        messages: messages.to_string().into(),
        given: "".into(),
        created_at: jiff::Timestamp::now(),
    };
    let id = stored.id.clone();
    store.keep_response(stored, jiff::Timestamp::now(), &ConversationLimits::default()).await.unwrap();
    let (status, error) = get(&rack, &format!("/v1/responses/{id}")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(error["error"]["message"].as_str().unwrap().contains("earlier version"), "{error}");
    let next = create(&rack, json!({"model": "m", "input": "two", "previous_response_id": id})).await;
    let asked = rack.upstream.asked()[0].messages().clone();
    let contents: Vec<&Value> = asked.iter().map(|message| &message["content"]).collect();
    assert_eq!(contents, ["one", "a", "two"]);
    assert_eq!(ids(&get(&rack, &path(&next, "/input_items")).await.1).len(), 1);
}

/// Codex's `apply_patch` takes free text; model servers have only functions.
#[tokio::test]
async fn b13_a_custom_tool_is_a_function_to_the_model_server_and_its_call_a_custom_one_to_the_client() {
    let grammar = json!({"type": "grammar", "syntax": "lark", "definition": "start: /.+/"});
    let tools =
        json!([{"type": "custom", "name": "apply_patch", "description": "Patches.", "format": grammar}]);
    let patch = "*** Begin Patch\n\"a\"";
    for stream in [false, true] {
        let call = |arguments: Value| Answer::new().call("c", "apply_patch", &arguments);
        let in_pieces = Answer::new()
            .delta(json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "apply_patch", "arguments": "{\"input\":"}}]}))
            .delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": json!(patch).to_string() + "}"}}]}))
            .finish("tool_calls");
        let rack = Setup::new()
            .start([call(json!({"input": patch})).into(), in_pieces.into(), Answer::text("Done.").into()])
            .await;
        let body = json!({"model": "m", "stream": stream, "input": "Patch it.", "tools": tools});
        let mut given = create(&rack, body.clone()).await;
        for _ in 0..2 {
            let output = given["output"].as_array().unwrap();
            let item = output.iter().find(|item| item["type"] != "mcp_list_tools").unwrap();
            assert_eq!(
                (&item["type"], &item["name"], &item["input"]),
                (&json!("custom_tool_call"), &json!("apply_patch"), &json!(patch)),
                "{given}"
            );
            let result =
                json!({"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "ok"});
            let mut next = body.clone();
            next["previous_response_id"] = given["id"].clone();
            next["input"] = json!([result]);
            given = create(&rack, next).await;
        }
        let asked = rack.upstream.asked();
        let sent = asked[0].body["tools"].as_array().unwrap();
        let tool = sent.iter().find(|tool| tool["function"]["name"] == "apply_patch").unwrap();
        let schema = &tool["function"]["parameters"];
        assert_eq!((&tool["type"], &schema["required"]), (&json!("function"), &json!(["input"])));
        assert!(
            schema["properties"]["input"]["description"].as_str().unwrap().ends_with("start: /.+/"),
            "{tool}"
        );
        let call = &asked[1].messages()[1]["tool_calls"][0];
        assert_eq!(call["type"], "function");
        let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(arguments, json!({"input": patch}));
        assert_eq!(asked[1].messages()[2]["content"], "ok");
    }
}

#[tokio::test]
async fn b13_a_conversation_is_not_made_shorter_by_the_server() {
    let rack = Setup::new().start([]).await;
    let request = rack.client.post(rack.url("/v1/responses/compact")).json(&json!({}));
    let refused = within(request.send()).await.unwrap();
    assert_eq!(refused.status(), StatusCode::NOT_IMPLEMENTED);
    // SDKs would ask three times.
    assert_eq!(refused.headers()["x-should-retry"], "false");
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["type"], "not_supported");
}
