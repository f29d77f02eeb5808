//! What tools show to the person, and results that are the answer: requirement B19.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use jiff::Timestamp;
use registry_core::{
    Content, File, Image, Markdown, Permission, Registry, Table, ToolError, ToolPolicy, ToolResult,
    model::{LanguageModel, Model, ModelAnswer, ModelQuestion},
    store::{ApiKey, MemoryStore, Store, User},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Answer, Rack, Reply, Setup, client_tool, user};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nbytes";

/// `show`, with a part of each kind, and `answer`, whose result ends the turn.
fn setup() -> Setup {
    let ends_turn = ToolPolicy { ends_turn: true, ..ToolPolicy::new() };
    Setup::bare()
        .plain_tool("show", ToolPolicy::new(), |_| async {
            let parts = [
                Content::from(Image::new(PNG)?),
                Table::new(["city", "degrees"]).row(("Oslo", 3)).into(),
                Markdown::new("**Bold**").into(),
                File::new("report.csv", "a,b\n").into(),
                Content::text("for the model"),
            ];
            Ok(ToolResult { content: parts.into(), ..ToolResult::new("shown") })
        })
        .plain_tool("answer", ends_turn, |_| async {
            Ok(ToolResult::new("The answer.")
                .with_content(File::new("a.txt", "a"))
                .with_message("Mind the gap."))
        })
        .plain_tool("value", ToolPolicy::new(), |_| async {
            Ok(ToolResult::new(json!({"a": 1})).ends_turn())
        })
        .plain_tool("refuse", ends_turn, |_| async { Ok(ToolResult::unsuccessful("Not now.")) })
        .plain_tool("plain", ToolPolicy::new(), |_| async { Ok(ToolResult::new("noon")) })
}

fn call(name: &str) -> Answer {
    Answer::new().call("c1", name, &json!({}))
}

/// The addresses of files in a text.
fn addresses(text: &str) -> Vec<String> {
    let addresses = text.split(['(', ')']).filter(|piece| piece.starts_with("http://"));
    addresses.map(str::to_owned).collect()
}

async fn get(rack: &Rack, address: &str, key: Option<&str>) -> reqwest::Response {
    let request = rack.client.get(address);
    match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    }
    .send()
    .await
    .unwrap()
}

#[tokio::test]
async fn b19_parts_are_in_the_text_with_addresses_and_beside_it_as_data() {
    for stream in [false, true] {
        let rack = setup().start([call("show").into(), Reply::text("There you are.")]).await;
        let reported = rack.ask(stream).await;
        let addresses = addresses(&reported.content);
        let [picture, report] = addresses.as_slice() else { panic!("{}", reported.content) };
        reported.expect(&format!(
            "![image.png]({picture})\n\n| city | degrees |\n| --- | --- |\n| Oslo | 3 |\n\n**Bold**\n\n\
             [report.csv]({report}) (text/csv, 4 bytes)\n\nThere you are."
        ));
        let parts: Vec<&Value> =
            reported.details_of("message").into_iter().map(|message| &message["part"]).collect();
        let kinds: Vec<&Value> = parts.iter().map(|part| &part["type"]).collect();
        assert_eq!(kinds, ["image", "table", "markdown", "file"]);
        assert_eq!((&parts[0]["url"], &parts[0]["size"]), (&json!(picture), &json!(PNG.len())));
        assert_eq!(parts[1]["rows"], json!([["Oslo", 3]]));
        assert!(!reported.objects.iter().any(|object| object.to_string().contains("iVBOR")), "no bytes");

        let shown = get(&rack, picture, None).await;
        let header = |name: &str| shown.headers()[name].to_str().unwrap().to_owned();
        assert_eq!((shown.status(), header("content-type")), (reqwest::StatusCode::OK, "image/png".into()));
        assert!(
            header("content-security-policy").contains("sandbox")
                && header("x-content-type-options") == "nosniff"
        );
        assert_eq!(header("content-disposition"), "inline; filename*=UTF-8''image.png");
        assert_eq!(shown.bytes().await.unwrap(), PNG);
        let saved = get(&rack, report, None).await;
        assert_eq!(saved.headers()["content-disposition"], "attachment; filename*=UTF-8''report.csv");

        // The model has the text and what else there is in words.
        let asked = rack.upstream.asked();
        let result = asked[1].messages().iter().find(|message| message["role"] == "tool").unwrap().clone();
        let text = result["content"].as_str().unwrap();
        for known in [
            "shown\n",
            "city,degrees\nOslo,3",
            "**Bold**",
            "[`report.csv`, text/csv, 4 bytes: shown to the user]",
            "for the model",
        ] {
            assert!(text.contains(known), "{known}: {text}");
        }
    }
}

#[tokio::test]
async fn b19_a_file_is_for_its_user_alone() {
    let store = Arc::new(MemoryStore::default());
    let mut keys = Vec::new();
    for name in ["bea", "bob"] {
        let now = Timestamp::now();
        let user = User { id: name.into(), level: Permission::User, personas: Vec::new(), created_at: now };
        store.put_user("default", user).await.unwrap();
        let (key, secret) = ApiKey::generate("default", name, false, now).unwrap();
        store.put_key(key).await.unwrap();
        keys.push(secret);
    }
    let [bea, bob] = keys.as_slice() else { panic!() };
    let setup = setup().with(|setup| setup.store = store);
    let rack = setup.start([call("show").into(), Reply::text("There.")]).await;
    let body = json!({"model": "m", "messages": [user("Go.")]});
    let request = rack.client.post(rack.url("/v1/chat/completions")).bearer_auth(bea).json(&body);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let address = &addresses(text)[0];
    for (key, status) in [(Some(bea), 200), (Some(bob), 404), (None, 404)] {
        assert_eq!(get(&rack, address, key.map(String::as_str)).await.status(), status, "{key:?}");
    }
    let other = rack.url("/api/files/00000000000000000000000000000000/image.png");
    let gone = get(&rack, &other, Some(bea)).await;
    let (status, error): (_, Value) = (gone.status(), gone.json().await.unwrap());
    assert_eq!((status.as_u16(), &error["error"]["type"]), (404, &json!("file_not_found")), "{error}");
}

#[tokio::test]
async fn b19_a_stream_is_shown_as_it_comes() {
    let go_on = Arc::new(Notify::new());
    let waits = Arc::clone(&go_on);
    let setup = Setup::bare().plain_tool("write", ToolPolicy::new(), move |context| {
        let waits = Arc::clone(&waits);
        async move {
            let pieces = stream::unfold(0, move |number| {
                let waits = Arc::clone(&waits);
                async move {
                    if number == 1 {
                        waits.notified().await;
                    }
                    let pieces = ["Once ", "upon a time"];
                    pieces.get(number).map(|piece| ((*piece).to_owned(), number + 1))
                }
            });
            ToolResult::of_stream(&context, pieces).await
        }
    });
    let rack = setup.start([call("write").into(), Reply::text("The end.")]).await;
    let mut reading = rack.open().await;
    let first = reading.read_to("Once ").await;
    assert_eq!(first["choices"][0]["delta"]["content"], "Once ");
    assert_eq!(first["x_toolrack"]["part"], json!({"type": "text", "text": "Once "}));
    go_on.notify_one();
    reading.rest().await.expect("Once upon a time\n\nThe end.");
    let asked = rack.upstream.asked();
    assert_eq!(asked[1].messages().last().unwrap()["content"], "Once upon a time", "the model has the whole");
}

#[tokio::test]
async fn b19_a_result_that_ends_the_turn_is_the_answer() {
    let text_call = r#"<tool_call>{"name": "answer", "arguments": {}}</tool_call>"#;
    for (answer, stream) in [(call("answer"), false), (call("answer"), true), (Answer::text(text_call), true)]
    {
        let rack = setup().start([answer.into(), Reply::text("Of course.")]).await;
        let reported = rack.ask(stream).await;
        let address = addresses(&reported.content).remove(0);
        let file = format!("[a.txt]({address}) (text/plain, 1 bytes)");
        reported.expect(&format!("The answer.\n\nMind the gap.\n\n{file}"));
        assert_eq!(rack.upstream.asked().len(), 1, "the model is not asked again");

        // In the next request it knows what the person has been told.
        let went_on = [user("Go."), json!({"role": "assistant", "content": reported.content}), user("Why?")];
        rack.chat(json!({"model": "m", "messages": went_on})).await.expect("Of course.");
        let asked = rack.upstream.asked();
        let messages = asked[1].messages();
        let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"], "{messages:?}");
        let said = messages[3]["content"].as_str().unwrap();
        assert!(said.starts_with("The answer.\n\nMind the gap.\n\n[a.txt]("), "{said}");
        assert!(messages[2]["content"].as_str().unwrap().contains("is the answer that follows"));
    }
    let rack = setup().start([call("value").into()]).await;
    rack.ask(true).await.expect("```json\n{\n  \"a\": 1\n}\n```");
}

#[tokio::test]
async fn b19_the_clients_calls_go_out_beside_a_result_that_ends_the_turn() {
    for stream in [false, true] {
        let both = call("answer").call("c2", "weather", &json!({"city": "Oslo"}));
        let rack = setup().start([both.into(), Reply::text("Rain.")]).await;
        let reported = rack.ask_with(stream, json!({"tools": [client_tool("weather")]})).await;
        assert_eq!(reported.finish.as_deref(), Some("tool_calls"));
        assert_eq!(reported.named_calls().len(), 1);
        assert!(reported.content.trim().starts_with("The answer.\n\nMind the gap."), "{}", reported.content);
        let messages = json!([
            user("Go."),
            {"role": "assistant", "content": reported.content, "tool_calls": reported.calls},
            {"role": "tool", "tool_call_id": reported.calls[0]["id"], "content": "rain"},
        ]);
        let body = json!({"model": "m", "messages": messages, "tools": [client_tool("weather")]});
        rack.chat(body).await.expect("Rain.");
        let asked = rack.upstream.asked();
        let results: Vec<&Value> = asked[1]
            .messages()
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|m| &m["content"])
            .collect();
        assert_eq!(results.len(), 2);
        assert!(results[0].as_str().unwrap().starts_with("The answer."), "the model knows it: {results:?}");
    }
}

#[tokio::test]
async fn b19_what_fails_or_has_to_have_a_form_does_not_end_the_turn() {
    let rack = setup().start([call("refuse").into(), Reply::text("It will not.")]).await;
    rack.ask(true).await.expect_end("It will not.");
    assert_eq!(rack.upstream.asked().len(), 2);

    let form = json!({"response_format": {"type": "json_object"}});
    let rack = setup().start([call("answer").into(), Reply::text("{\"a\": 1}")]).await;
    let reported = rack.ask_with(true, form).await;
    reported.expect("{\"a\": 1}");
    assert!(reported.details_of("message")[0]["part"]["url"].is_string(), "programs have it all the same");

    // A tool of the client has to be called, and has not been.
    let demand = json!({"tools": [client_tool("weather")], "tool_choice": "required"});
    let client = Answer::new().call("c2", "weather", &json!({"city": "Oslo"}));
    let rack = setup().start([call("answer").into(), client.into()]).await;
    assert_eq!(rack.ask_with(false, demand).await.finish.as_deref(), Some("tool_calls"));
}

#[tokio::test]
async fn b19_every_front_has_the_result_as_its_answer() {
    let messages = json!([{"role": "user", "content": "Go."}]);
    let contents = json!([{"role": "user", "parts": [{"text": "Go."}]}]);
    for (path, body, text, reason) in [
        (
            "/v1/chat/completions",
            json!({"model": "m", "messages": messages}),
            "/choices/0/message/content",
            ("/choices/0/finish_reason", "stop"),
        ),
        (
            "/v1/responses",
            json!({"model": "m", "input": messages}),
            "/output/0/content/0/text",
            ("/status", "completed"),
        ),
        (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 99, "messages": messages}),
            "/content/0/text",
            ("/stop_reason", "end_turn"),
        ),
        (
            "/v1beta/models/m:generateContent",
            json!({"contents": contents}),
            "/candidates/0/content/parts/0/text",
            ("/candidates/0/finishReason", "STOP"),
        ),
        (
            "/api/chat",
            json!({"model": "m", "stream": false, "messages": messages}),
            "/message/content",
            ("/done_reason", "stop"),
        ),
    ] {
        let rack = setup().start([call("answer").into()]).await;
        let response = rack.client.post(rack.url(path)).json(&body).send().await.unwrap();
        let reply: Value = response.json().await.unwrap();
        let said = reply.pointer(text).and_then(Value::as_str).unwrap_or_else(|| panic!("{path}: {reply:#}"));
        assert!(said.starts_with("The answer."), "{path}: {said}");
        let all = reply.to_string();
        assert!(all.contains("Mind the gap.") && all.contains("[a.txt](http://"), "{path}: {all}");
        assert_eq!(reply.pointer(reason.0), Some(&json!(reason.1)), "{path}");
        assert_eq!(rack.upstream.asked().len(), 1, "{path}");
    }
}

#[tokio::test]
async fn b19_execute_has_the_parts_whole() {
    let rack = setup().start([]).await;
    let execute = |name: &str| {
        let request = rack.client.post(rack.url("/execute")).json(&json!({"tool_name": name}));
        async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    let reply = execute("show").await;
    let kinds: Vec<&Value> = reply["content"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(kinds, ["image", "table", "markdown", "resource", "text"]);
    assert_eq!(
        reply["content"][1],
        json!({"type": "table", "columns": ["city", "degrees"], "rows": [["Oslo", 3]]})
    );
    assert_eq!(reply.get("ends_turn"), None);
    assert_eq!(execute("answer").await["ends_turn"], true);
    let record = rack.outcomes().remove(0);
    assert_eq!(record.audit["content"][3], json!({"type": "resource", "media_type": "text/csv", "bytes": 4}));
}

/// A model that tools ask.
struct Inner;

#[async_trait]
impl LanguageModel for Inner {
    async fn answer(&self, _: ModelQuestion) -> Result<ModelAnswer, ToolError> {
        let text = "short".to_owned();
        async { Ok(ModelAnswer { text, input_tokens: 100, output_tokens: 20, truncated: false }) }.await
    }
}

#[tokio::test]
async fn b19_what_a_tool_asks_the_model_counts_in_the_usage_of_the_turn_in_every_api() {
    let chat = json!([user("Go.")]);
    let contents = json!([{"role": "user", "parts": [{"text": "Go."}]}]);
    let apis = [
        (
            "/v1/chat/completions",
            json!({"messages": chat}),
            "/usage/prompt_tokens",
            "/usage/completion_tokens",
        ),
        ("/v1/responses", json!({"input": "Go."}), "/usage/input_tokens", "/usage/output_tokens"),
        (
            "/v1/messages",
            json!({"max_tokens": 99, "messages": chat}),
            "/usage/input_tokens",
            "/usage/output_tokens",
        ),
        (
            "/v1beta/models/m:generateContent",
            json!({"contents": contents}),
            "/usageMetadata/promptTokenCount",
            "/usageMetadata/candidatesTokenCount",
        ),
        ("/api/chat", json!({"messages": chat, "stream": false}), "/prompt_eval_count", "/eval_count"),
    ];
    for (path, mut body, input, output) in apis {
        let setup = Setup::bare().with(|setup| {
            let builder = Registry::builder().without_compiled().resource(Model::new(Inner));
            setup.registry = builder.build().unwrap();
        });
        let setup = setup.plain_tool("shorten", ToolPolicy::new(), |context| async move {
            let model = context.model()?;
            model.ask("Once?").await?;
            Ok(ToolResult::new(model.ask("And again?").await?))
        });
        let rack = setup
            .start([call("shorten").usage(5, 7), Answer::text("Done.").usage(10, 3)].map(Reply::from))
            .await;
        if !path.contains("generateContent") {
            body["model"] = "m".into();
        }
        let reply = rack.client.post(rack.url(path)).json(&body).send().await.unwrap();
        let reply: Value = reply.json().await.unwrap();
        let counted = |pointer: &str| reply.pointer(pointer).and_then(Value::as_u64);
        assert_eq!((counted(input), counted(output)), (Some(215), Some(50)), "{path}: {reply}");
        let called = json!({"tool_name": "shorten", "arguments": {}});
        let reply = rack.client.post(rack.url("/execute")).json(&called).send().await.unwrap();
        let reply: Value = reply.json().await.unwrap();
        assert_eq!(
            reply["model_usage"],
            json!({"answers": 2, "input_tokens": 200, "output_tokens": 40}),
            "{reply}"
        );
    }
}

#[tokio::test]
async fn b19_a_link_to_a_file_works_after_a_restart_and_on_another_server() {
    let store = Arc::new(MemoryStore::default());
    let with_store = |setup: Setup| setup.with(|setup| setup.store = Arc::clone(&store));
    let rack = with_store(setup()).start([call("show").into(), Reply::text("There.")]).await;
    let reported = rack.ask(false).await;
    let addresses = addresses(&reported.content);
    let [picture, _] = addresses.as_slice() else { panic!("{}", reported.content) };
    let path = picture.strip_prefix(&rack.url("")).unwrap();
    drop(rack);
    let other = with_store(setup()).start([]).await;
    for _ in 0..2 {
        let shown = get(&other, &other.url(path), None).await;
        assert_eq!(shown.status(), reqwest::StatusCode::OK);
        assert_eq!(shown.headers()["content-type"], "image/png");
        assert_eq!(shown.bytes().await.unwrap(), PNG);
    }
    // It goes with its user.
    assert_eq!(store.remove_user("default", "ada", Timestamp::now()).await.unwrap().files, 3);
    let fresh = with_store(setup()).start([]).await;
    assert_eq!(get(&fresh, &fresh.url(path), None).await.status(), reqwest::StatusCode::NOT_FOUND);
}
