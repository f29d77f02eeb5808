//! The raw route: prompts from the model's own template, and calls read here.

use std::{io::Write, path::PathBuf, time::Duration};

use llm_bridge::{
    turn::{ModelRoute, ModelSettings, Models},
    upstream::{Upstream, UpstreamSettings},
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::support::{Act, Answer, Rack, Reply, Scripted, Setup, Site, event, within};

const TEMPLATE: &str = "{{ bos_token }}{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}\
    {% for m in messages %}<|{{ m.role }}|>{{ m.content }}\
    {% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|end|>{% endfor %}\
    {% if add_generation_prompt %}<|assistant|>{% endif %}";
const CALL: &str = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}</tool_call>";
/// How llama.cpp says that its parser has failed.
const UNREAD: &str = "The model produced output that does not match the expected peg-native format";

fn models(route: Option<ModelRoute>, template: Option<PathBuf>) -> Models {
    let settings = ModelSettings { route, template, ..ModelSettings::default() };
    if settings == ModelSettings::default() {
        return Models::default();
    }
    Models::try_from([("m".to_owned(), settings)].into_iter().collect::<std::collections::BTreeMap<_, _>>())
        .unwrap()
}

/// A llama.cpp server with this template.
fn llama_cpp(template: &str) -> Site {
    let mut site = Site::of_kind("llama.cpp", &["m"]);
    site.pages.retain(|(path, _)| *path != "/props");
    let props = json!({"chat_template": template, "bos_token": "<s>", "eos_token": "<|end|>"});
    site.pages.extend([("/props", props), ("/tokenize", json!({"tokens": [1]}))]);
    site
}

async fn rack_of(site: Site, models: Models, replies: Vec<Reply>) -> Rack {
    let upstream = Scripted::start_as(site, replies).await;
    let settings = UpstreamSettings {
        num_ctx: Some(32768),
        ..UpstreamSettings::new(upstream.base(), Duration::from_secs(20))
    };
    let setup = Setup::new().chat(|chat| {
        chat.models = models;
        chat.system_prompt_with_tools = String::new();
    });
    setup.start_with(upstream, Upstream::server(settings).unwrap()).await
}

/// An answer of `/completion`, cut in two.
fn completion(text: &str) -> Reply {
    let (one, other) = text.split_at(text.len() / 2);
    let piece = |text: &str| event(&json!({"index": 0, "content": text, "stop": false}));
    let last = json!({"content": "", "stop": true, "stop_type": "eos", "tokens_evaluated": 10, "tokens_predicted": 5});
    Reply::stream([piece(one), piece(other), event(&last)])
}

fn file_of(template: &str) -> NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".jinja").tempfile().unwrap();
    file.write_all(template.as_bytes()).unwrap();
    file
}

fn raw() -> Models {
    models(Some(ModelRoute::Raw), None)
}

#[tokio::test]
async fn b14_llama_cpp_gets_the_prompt_of_the_models_own_template() {
    let rack = rack_of(llama_cpp(TEMPLATE), raw(), vec![completion(CALL), completion("It is 5.")]).await;
    let reported = rack.ask_with(true, json!({"temperature": 0.5, "max_tokens": 50})).await;
    assert_eq!(reported.content, "It is 5.");
    assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))]);
    let asked = rack.upstream.asked();
    let body = &asked[0].body;
    // The server puts the first token before a prompt itself.
    assert_eq!(
        (asked[0].path.as_str(), &body["prompt"]),
        ("/completion", &json!("[add][math_gcd]<|user|>Go.<|end|><|assistant|>"))
    );
    assert_eq!(
        (&body["n_predict"], &body["temperature"], &body["stop"]),
        (&json!(50), &json!(0.5), &json!(["<|end|>"]))
    );
    let tokens = body["preserved_tokens"].as_array().unwrap();
    assert!(tokens.contains(&json!("<tool_call>")) && !tokens.contains(&json!("<|end|>")), "{tokens:?}");
    assert!(body.get("messages").is_none() && body.get("tools").is_none(), "{body}");
    let after = asked[1].body["prompt"].as_str().unwrap();
    assert!(
        after.ends_with(&format!("<|assistant|>{}<|end|><|tool|>sum=5<|end|><|assistant|>", CALL)),
        "{after}"
    );
}

#[tokio::test]
async fn b14_ollama_gets_a_raw_prompt_from_a_template_in_a_file() {
    let file = file_of(TEMPLATE);
    let line = |text: &str, done: bool| {
        let line = json!({"model": "m", "response": text, "done": done, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3});
        Act::Send(format!("{line}\n").into_bytes())
    };
    let reply = |text: &str| Reply::Raw {
        status: 200,
        kind: "application/x-ndjson",
        acts: vec![line(text, false), line("", true)],
    };
    let site = Site::of_kind("ollama", &["m"]);
    let models = models(Some(ModelRoute::Raw), Some(file.path().to_owned()));
    let rack = rack_of(site, models, vec![reply(CALL), reply("It is 5.")]).await;
    let reported = rack.ask_with(true, json!({"stop": ["X"]})).await;
    assert_eq!(reported.content, "It is 5.");
    assert_eq!(rack.ran().len(), 1);
    let asked = rack.upstream.asked();
    let body = &asked[0].body;
    assert_eq!((asked[0].path.as_str(), &body["raw"]), ("/api/generate", &json!(true)));
    assert_eq!(body["prompt"], "[add][math_gcd]<|user|>Go.<|end|><|assistant|>");
    assert_eq!(body["options"], json!({"num_ctx": 32768, "stop": ["X"]}));
}

#[tokio::test]
async fn b14_completions_of_vllm_and_sglang_come_with_their_special_tokens() {
    let file = file_of(TEMPLATE);
    for (kind, adds_tokens, most) in
        [("vllm", json!(false), Value::Null), ("sglang", Value::Null, json!(4096))]
    {
        let chunk = |text: &str, reason: Value| {
            event(&json!({"choices": [{"index": 0, "text": text, "finish_reason": reason}]}))
        };
        let usage = event(&json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}));
        let reply = |text: &str| {
            Reply::stream([
                chunk(text, Value::Null),
                chunk("", json!("stop")),
                usage.clone(),
                Act::Send(b"data: [DONE]\n\n".to_vec()),
            ])
        };
        let models = models(Some(ModelRoute::Raw), Some(file.path().to_owned()));
        let rack = rack_of(Site::of_kind(kind, &["m"]), models, vec![reply(CALL), reply("It is 5.")]).await;
        let reported = rack.ask_with(true, json!({})).await;
        assert_eq!(reported.content, "It is 5.", "{kind}");
        assert_eq!(rack.ran().len(), 1);
        let asked = rack.upstream.asked();
        let body = &asked[0].body;
        assert_eq!(
            (asked[0].path.as_str(), &body["skip_special_tokens"]),
            ("/v1/completions", &json!(false))
        );
        assert_eq!((&body["add_special_tokens"], &body["max_tokens"]), (&adds_tokens, &most), "{kind}");
        assert_eq!(body["stream_options"], json!({"include_usage": true}));
    }
}

#[tokio::test]
async fn b14_a_required_call_is_kept_to_by_a_grammar_in_the_templates_dialect() {
    let thinks = format!("{TEMPLATE}{{% if add_generation_prompt %}}<think>\n{{% endif %}}");
    let rack =
        rack_of(llama_cpp(&thinks), raw(), vec![completion(CALL), completion("It is 5.</think>So, 5.")])
            .await;
    let reported = rack.ask_with(true, json!({"tool_choice": "required"})).await;
    assert_eq!((reported.content.as_str(), reported.reasoning.as_str()), ("So, 5.", "It is 5."));
    let asked = rack.upstream.asked();
    let grammar = asked[0].body["grammar"].as_str().unwrap();
    assert!(grammar.contains("<tool_call>") && grammar.contains("add"), "{grammar}");
    assert!(asked[0].body["prompt"].as_str().unwrap().ends_with("<think>\n</think>\n\n"));
    assert!(asked[1].body.get("grammar").is_none());
    assert!(asked[1].body["prompt"].as_str().unwrap().ends_with("<think>\n"));
}

#[tokio::test]
async fn b14_a_parser_that_fails_is_gone_around_by_the_raw_route() {
    for (route, path) in [(None, "/completion"), (Some(ModelRoute::Chat), "/v1/chat/completions")] {
        let answer = |text: &str| match route {
            None => completion(text),
            Some(_) => Reply::text(text),
        };
        let replies = vec![Reply::error(500, UNREAD), answer(CALL), answer("It is 5.")];
        let rack = rack_of(llama_cpp(TEMPLATE), models(route, None), replies).await;
        let reported = rack.ask_with(true, json!({})).await;
        assert_eq!(reported.content, "It is 5.", "{route:?}");
        assert_eq!(rack.ran().len(), 1);
        let paths: Vec<String> = rack.upstream.asked().into_iter().map(|asked| asked.path).collect();
        assert_eq!(paths, ["/v1/chat/completions", path, path], "{route:?}");
    }
}

#[tokio::test]
async fn b14_where_the_raw_route_cannot_be_taken_the_chat_endpoint_is_asked() {
    let plain = "{% for m in messages %}{{ m.content }}{% endfor %}";
    for (template, refusals) in [(plain, 0), ("{% broken", 0), (TEMPLATE, 1)] {
        let mut replies = vec![Reply::error(404, "not here"); refusals];
        replies.push(Answer::text("Hello.").into());
        let rack = rack_of(llama_cpp(template), raw(), replies).await;
        assert_eq!(rack.ask_with(true, json!({})).await.content, "Hello.", "{template}");
        let asked = rack.upstream.asked();
        assert_eq!(asked[refusals].path, "/v1/chat/completions", "{template}");
        assert_eq!(asked[refusals].tools(), ["add", "math_gcd"]);
    }
}

#[tokio::test]
async fn b14_pictures_go_to_the_chat_endpoint() {
    let rack = rack_of(llama_cpp(TEMPLATE), raw(), vec![Reply::text("A cat.")]).await;
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let response =
        rack.post(&json!({"model": "m", "messages": [{"role": "user", "content": [picture]}]})).await;
    assert!(within(response.text()).await.unwrap().contains("A cat."));
    assert_eq!(rack.upstream.asked()[0].path, "/v1/chat/completions");
}
