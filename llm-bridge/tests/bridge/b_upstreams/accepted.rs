//! What a model's server does not accept is said otherwise.

use serde_json::{Value, json};

use crate::support::{Answer, Asked, Log, Rack, Reply, Setup, user, within};

fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

/// Roles and contents of what was sent.
fn sent(asked: &Asked) -> Vec<(String, String)> {
    let text = |message: &Value, field: &str| message[field].as_str().unwrap().to_owned();
    asked.messages().iter().map(|message| (text(message, "role"), text(message, "content"))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(role, content)| ((*role).to_owned(), (*content).to_owned())).collect()
}

/// As Codex sends it: `instructions` first and an item of the developer behind them, and another one later.
fn instructed() -> Value {
    json!({"messages": [
        message("system", "You are Codex."), message("developer", "Be careful."), user("Go."),
        message("assistant", "Gone."), message("developer", "Now be quick."), user("Again."),
    ]})
}

async fn bare_of(kind: &str, replies: Vec<Reply>) -> Rack {
    Setup::bare().chat(|chat| chat.system_prompt = String::new()).start_of_kind(kind, replies).await
}

#[tokio::test]
async fn b14_instructions_are_one_system_message_at_every_server() {
    for kind in ["llama.cpp", "vllm", "sglang", "ollama"] {
        let rack = bare_of(kind, vec![Reply::text("Hi.")]).await;
        rack.chat(instructed()).await.expect("Hi.");
        let expected = [
            ("system", "You are Codex.\n\nBe careful."),
            ("user", "Go."),
            ("assistant", "Gone."),
            ("system", "Now be quick."),
            ("user", "Again."),
        ];
        assert_eq!(sent(&rack.upstream.asked()[0]), pairs(&expected), "{kind}");
    }
}

#[tokio::test]
async fn b14_system_messages_that_a_template_refuses_become_the_users_from_then_on() {
    let refusals = [
        ("vllm", 400, "Unexpected message role."),
        (
            "llama.cpp",
            500,
            "Jinja Exception: System message must be at the beginning. (in the template for tools)",
        ),
        (
            "vllm",
            400,
            "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
        ),
        ("ollama", 500, "system message must be at the beginning"),
    ];
    let placed = [
        ("system", "You are Codex.\n\nBe careful."),
        ("user", "Go."),
        ("assistant", "Gone."),
        ("user", "Now be quick.\nAgain."),
    ];
    for (kind, status, message) in refusals {
        let replies = vec![Reply::error(status, message), Reply::text("Hi."), Reply::text("Hello.")];
        let rack = bare_of(kind, replies).await;
        rack.chat(instructed()).await.expect("Hi.");
        rack.chat(instructed()).await.expect("Hello.");
        let asked = rack.upstream.asked();
        assert_eq!(asked.len(), 3, "{kind}: remembered");
        assert_eq!((sent(&asked[1]), sent(&asked[2])), (pairs(&placed), pairs(&placed)), "{kind}");
    }
    // A template of Gemma takes none at all.
    let rack =
        bare_of("vllm", vec![Reply::error(400, "System role not supported"), Reply::text("Hi.")]).await;
    rack.chat(json!({"messages": [message("system", "Be brief."), user("Go.")]})).await.expect("Hi.");
    assert_eq!(sent(&rack.upstream.asked()[1]), pairs(&[("user", "Be brief.\nGo.")]));
    // Where there is nothing to say otherwise the error is the client's.
    let rack = bare_of("vllm", vec![Reply::error(400, "Unexpected message role.")]).await;
    let reported = rack.chat(json!({"messages": [user("Go.")]})).await;
    assert!(reported.failure().contains("Unexpected message role"), "{reported:?}");
    assert_eq!(rack.upstream.asked().len(), 1);
}

#[tokio::test]
async fn b14_a_model_that_does_not_think_is_asked_without_it_from_then_on() {
    let refusal = "\"llama3.2\" does not support thinking";
    for (field, think) in [("low", json!("low")), ("xhigh", json!("high"))] {
        let replies = vec![Reply::error(400, refusal), Reply::text("Hi."), Reply::text("Hello.")];
        let rack = bare_of("ollama", replies).await;
        let fields = json!({"reasoning_effort": field});
        rack.ask_with(true, fields.clone()).await.expect("Hi.");
        rack.ask_with(true, fields).await.expect("Hello.");
        let asked = rack.upstream.asked();
        assert_eq!(asked[0].body["think"], think);
        assert_eq!((asked[1].body.get("think"), asked[2].body.get("think")), (None, None));
        assert_eq!(asked.len(), 3, "remembered");
    }
    let switch = "think value \"low\" is not supported for this model";
    let rack = bare_of("ollama", vec![Reply::error(400, switch), Reply::text("Hi.")]).await;
    rack.ask_with(true, json!({"reasoning_effort": "low"})).await.expect("Hi.");
    assert_eq!(rack.upstream.asked()[1].body["think"], true);
}

#[tokio::test]
async fn b14_an_effort_that_is_refused_is_the_nearest_that_is_common_and_then_none() {
    let refusal = || {
        Reply::error(
            400,
            "[{'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' or 'high'\"}]",
        )
    };
    for (asked_for, efforts) in [
        ("xhigh", vec![json!("xhigh"), json!("high"), Value::Null]),
        ("max", vec![json!("max"), json!("high"), Value::Null]),
        ("none", vec![json!("none"), json!("low"), Value::Null]),
        ("minimal", vec![json!("minimal"), json!("low"), Value::Null]),
        ("high", vec![json!("high"), Value::Null]),
    ] {
        let refused = (1..efforts.len()).map(|_| refusal());
        let rack = bare_of("vllm", refused.chain([Reply::text("Hi.")]).collect()).await;
        rack.ask_with(true, json!({"reasoning_effort": asked_for})).await.expect("Hi.");
        let asked = rack.upstream.asked();
        let sent: Vec<_> = asked.iter().map(|asked| asked.body["reasoning_effort"].clone()).collect();
        assert_eq!(sent, efforts, "{asked_for}");
        // What no template takes for an effort still holds.
        let thinks = &asked.last().unwrap().body["chat_template_kwargs"]["enable_thinking"];
        assert_eq!(*thinks, json!(asked_for != "none"));
    }
}

#[tokio::test]
async fn b14_templates_are_told_whether_the_model_thinks() {
    let both = |thinks: bool| json!({"enable_thinking": thinks, "thinking": thinks});
    for (kind, think, expected) in [
        ("llama.cpp", json!(true), both(true)),
        ("vllm", json!(true), both(true)),
        ("sglang", json!("high"), both(true)),
        ("vllm", json!(false), both(false)),
        ("vllm", Value::Null, Value::Null),
        ("lmstudio", json!(true), Value::Null),
        ("ollama", json!(true), Value::Null),
    ] {
        let rack = bare_of(kind, vec![Reply::text("Hi.")]).await;
        let body = json!({"model": "m", "messages": [user("Go.")], "think": think, "stream": false});
        let reply = within(rack.client.post(rack.url("/api/chat")).json(&body).send()).await.unwrap();
        assert_eq!(reply.status(), 200);
        assert_eq!(rack.upstream.asked()[0].body["chat_template_kwargs"], expected, "{kind} {think}");
    }
    // What the client says stands, and a server that takes no such field is asked without it.
    let own = json!({"chat_template_kwargs": {"enable_thinking": false}, "reasoning_effort": "low"});
    let refusal = Reply::error(400, "chat_template is not supported for Mistral tokenizers.");
    let rack = bare_of("vllm", vec![Reply::text("Hi."), refusal, Reply::text("Hi.")]).await;
    rack.ask_with(true, own.clone()).await.expect("Hi.");
    rack.ask_with(true, json!({"reasoning_effort": "low"})).await.expect("Hi.");
    let asked = rack.upstream.asked();
    assert_eq!(asked[0].body["chat_template_kwargs"], own["chat_template_kwargs"]);
    assert_eq!(
        (asked[2].body.get("chat_template_kwargs"), &asked[2].body["reasoning_effort"]),
        (None, &json!("low"))
    );
}

#[tokio::test]
async fn b14_an_answer_that_the_client_has_begun_is_gone_on_with() {
    let begun = || json!({"messages": [user("Count."), message("assistant", "One, two,")]});
    for (kind, continues, begins) in [
        ("vllm", json!(true), json!(false)),
        ("sglang", json!(true), Value::Null),
        ("llama.cpp", Value::Null, Value::Null),
        ("ollama", Value::Null, Value::Null),
    ] {
        let rack = bare_of(kind, vec![Reply::text("three."), Reply::text("Hi.")]).await;
        rack.chat(begun()).await.expect("three.");
        rack.ask(true).await.expect("Hi.");
        let asked = rack.upstream.asked();
        let fields = |asked: &Asked| {
            ["continue_final_message", "add_generation_prompt"].map(|name| asked.body[name].clone())
        };
        assert_eq!(fields(&asked[0]), [continues, begins], "{kind}");
        assert_eq!(fields(&asked[1]), [Value::Null, Value::Null], "{kind}: the last word is the user's");
    }
    let rack = Setup::new()
        .start_of_kind(
            "vllm",
            [Answer::new().call("c", "add", &json!({"a": 1, "b": 1})).into(), Reply::text("2")],
        )
        .await;
    rack.chat(begun()).await.expect("2");
    assert_eq!(
        rack.upstream.asked()[1].body.get("continue_final_message"),
        None,
        "the last word is a tool's"
    );
}

/// What has no place in the server's API is told, once in a turn, and is in the log once.
#[tokio::test]
async fn b2_what_a_servers_api_cannot_say_is_told() {
    let log = Log::start();
    let sound = || json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}});
    let text = json!({"type": "text", "text": "Listen."});
    let asked = json!({"messages": [{"role": "user", "content": [text, sound()], "odd_field": 1}]});
    let call = Answer::new().call("c", "add", &json!({"a": 1, "b": 1}));
    let replies = [call.into(), Reply::text("2"), Reply::text("3")];
    let rack = Setup::new()
        .chat(|chat| chat.system_prompt_with_tools = String::new())
        .start_of_kind("ollama", replies)
        .await;
    for answer in ["2", "3"] {
        let reported = rack.chat(asked.clone()).await;
        reported.expect(answer);
        let notices: Vec<_> =
            reported.details_of("notice").iter().map(|notice| notice["message"].clone()).collect();
        assert_eq!(
            notices,
            ["Not sent to the model: `messages[0].parts[1]` described: it has no place in a message"]
        );
    }
    let many: Vec<Value> = (0..40).map(|_| sound()).collect();
    rack.upstream.push(Reply::text("4"));
    let reported = rack.chat(json!({"messages": [{"role": "user", "content": many}]})).await;
    assert_eq!(reported.details_of("notice").len(), 16);
    let text = log.text();
    let lines = |words: &str| {
        text.lines().filter(|line| line.contains("a part of requests") && line.contains(words)).count()
    };
    assert_eq!((lines("messages[0].parts[1]"), lines("odd_field")), (1, 1), "{text}");
}
