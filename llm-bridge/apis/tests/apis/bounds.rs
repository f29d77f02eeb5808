//! What a request may name: a model, and the server's tools.

use http::request::Parts;
use serde_json::{Value, json};
use toolrack_apis::{
    BadRequest, Front, anthropic::AnthropicFront, gemini::GeminiFront, ollama::OllamaFront,
    openai::OpenAiFront, responses::ResponsesFront,
};

fn parts(path: &str) -> Parts {
    http::Request::post(path).body(()).unwrap().into_parts().0
}

/// What each front says to a request for a model with this field `toolrack`.
fn refusals(model: &str, toolrack: &Value) -> Vec<Option<BadRequest>> {
    let messages = json!([{"role": "user", "content": "hi"}]);
    let chat =
        json!({"model": model, "max_tokens": 9, "messages": messages, "stream": true, "toolrack": toolrack});
    let input = json!({"model": model, "input": "hi", "toolrack": toolrack});
    let prompt = json!({"model": model, "prompt": "hi", "toolrack": toolrack});
    let contents = json!({"contents": [{"parts": [{"text": "hi"}]}], "toolrack": toolrack});
    let gemini = format!("/v1beta/models/{model}:generateContent");
    let fronts: [(&dyn Front, &str, &Value); 6] = [
        (&OpenAiFront, "/v1/chat/completions", &chat),
        (&OllamaFront::Chat, "/api/chat", &chat),
        (&AnthropicFront, "/v1/messages", &chat),
        (&ResponsesFront, "/v1/responses", &input),
        (&OllamaFront::Generate, "/api/generate", &prompt),
        (&GeminiFront, &gemini, &contents),
    ];
    let said = |(front, path, body): (&dyn Front, &str, &Value)| {
        front.decode(&parts(path), body.to_string().as_bytes()).err()
    };
    fronts.into_iter().map(said).collect()
}

#[test]
fn b2_the_name_of_a_model_has_so_many_bytes_and_no_more() {
    assert!(refusals(&"m".repeat(512), &Value::Null).iter().all(Option::is_none));
    for refused in refusals(&"m".repeat(513), &Value::Null) {
        let refused = refused.unwrap();
        assert!(refused.param == "model" && refused.message.contains("512 bytes"), "{refused:?}");
    }
}

#[test]
fn b2_a_request_names_so_many_of_the_servers_tools_and_no_more() {
    for list in ["allowed_tools", "allowed_modules"] {
        assert!(refusals("m", &json!({list: vec!["a"; 1000]})).iter().all(Option::is_none));
        for refused in refusals("m", &json!({list: vec!["a"; 1001]})) {
            let refused = refused.unwrap();
            assert_eq!(refused.param, format!("toolrack.{list}"));
            assert!(refused.message.ends_with("has more than 1000 names"), "{refused:?}");
        }
    }
}
