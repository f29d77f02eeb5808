//! The raw route where no setting asks for it: the chat endpoint of the server cannot do the job.

use std::path::Path;

use serde_json::{Value, json};

use super::raw::{CALL, TEMPLATE, completion, file_of, generated, llama_cpp, models, ollama_with, rack_of};
use crate::support::{Act, Answer, Rack, Reply, Site, event};

const JSON_CALL: &str = r#"{"name": "add", "arguments": {"a": 2, "b": 3}}"#;

/// An answer of `/v1/completions`.
fn completed(text: &str) -> Reply {
    let chunk = |text: &str, reason: Value| {
        event(&json!({"choices": [{"index": 0, "text": text, "finish_reason": reason}]}))
    };
    let last = chunk("", json!("stop"));
    Reply::stream([chunk(text, Value::Null), last, Act::Send(b"data: [DONE]\n\n".to_vec())])
}

fn paths(rack: &Rack) -> Vec<String> {
    rack.upstream.asked().into_iter().map(|asked| asked.path).collect()
}

/// It has no tools: the server says so in its words.
#[tokio::test]
async fn b14_a_server_that_has_no_tools_is_asked_by_the_raw_route_from_then_on() {
    const CHAT: &str = "/v1/chat/completions";
    let file = file_of(TEMPLATE);
    let ollama = || ollama_with(Path::new("/nowhere"), TEMPLATE);
    let vllm = || Site::of_kind("vllm", &["m"]);
    let lm_studio = || Site::of_kind("lmstudio", &["m"]);
    type Completed = fn(&str) -> Reply;
    let servers: [(Site, bool, &str, &str, &str, Completed); 4] = [
        (llama_cpp(TEMPLATE), false, "tools param requires --jinja flag", CHAT, "/completion", completion),
        (ollama(), false, "m:latest does not support tools", "/api/chat", "/api/generate", generated),
        (
            vllm(),
            true,
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            CHAT,
            "/v1/completions",
            completed,
        ),
        (lm_studio(), true, "this model does not support tools", CHAT, "/v1/completions", completed),
    ];
    for (site, has_file, refusal, chat, raw, completed) in servers {
        let settings = models(None, has_file.then(|| file.path().to_owned()));
        let replies =
            vec![Reply::error(400, refusal), completed(CALL), completed("It is 5."), completed("Sure.")];
        let rack = rack_of(site, settings, replies).await;
        rack.ask(true).await.expect("It is 5.");
        assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))], "{refusal}");
        assert_eq!(paths(&rack), [chat, raw, raw], "{refusal}");
        let asked = &rack.upstream.asked()[1].body;
        let prompt = asked["prompt"].as_str().unwrap();
        assert!(prompt.ends_with("[add][math_gcd]<|user|>Go.<|end|><|assistant|>"), "{prompt}");
        assert!(asked.get("tools").is_none() && asked.get("messages").is_none(), "{asked}");
        // It has helped.
        rack.ask(true).await.expect("Sure.");
        assert_eq!(paths(&rack)[3], raw, "{refusal}");
    }
}

/// It takes `tool_choice` and lets the model talk.
#[tokio::test]
async fn b14_a_server_that_drops_tool_choice_is_asked_by_the_raw_route_for_the_call() {
    for choice in [json!("required"), json!({"type": "function", "function": {"name": "add"}})] {
        let others = choice == "required";
        let replies = vec![Reply::text("I'd rather talk."), completion(CALL), Reply::text("It is 5.")];
        let rack = rack_of(llama_cpp(TEMPLATE), models(None, None), replies).await;
        rack.ask_with(true, json!({"tool_choice": choice})).await.expect("It is 5.");
        assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))]);
        // The model may talk when it has called.
        assert_eq!(paths(&rack), ["/v1/chat/completions", "/completion", "/v1/chat/completions"]);
        let grammar = rack.upstream.asked()[1].body["grammar"].to_string();
        assert!(grammar.contains("<tool_call>") && grammar.contains("add"), "{grammar}");
        assert_eq!(grammar.contains("math_gcd"), others, "{grammar}");

        // Of Ollama it is known before.
        let site = ollama_with(Path::new("/nowhere"), TEMPLATE);
        let replies = vec![generated(JSON_CALL), Answer::text("It is 5.").into()];
        let rack = rack_of(site, models(None, None), replies).await;
        rack.ask_with(true, json!({"tool_choice": choice})).await.expect("It is 5.");
        assert_eq!(rack.ran().len(), 1);
        assert_eq!(paths(&rack), ["/api/generate", "/api/chat"]);
        let asked = &rack.upstream.asked()[0].body;
        assert_eq!((&asked["raw"], asked["format"].is_object()), (&json!(true), true), "{asked}");
        assert_eq!(asked["format"].to_string().contains("math_gcd"), others, "{asked}");
    }
}
