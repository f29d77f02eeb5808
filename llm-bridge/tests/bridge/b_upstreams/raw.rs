//! The raw route: prompts from the model's own template, and calls read here.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use llm_bridge::{
    turn::{ModelRoute, ModelSettings, Models, ToolStyle},
    upstream::{Upstream, UpstreamSettings},
};
use registry_core::{ToolPolicy, ToolResult};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::support::{Act, Answer, Log, Rack, Reply, Scripted, Setup, Site, client_tool, event, within};

pub(super) const TEMPLATE: &str = "{{ bos_token }}{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}\
    {% for m in messages %}<|{{ m.role }}|>{{ m.content }}\
    {% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|end|>{% endfor %}\
    {% if add_generation_prompt %}<|assistant|>{% endif %}";
pub(super) const CALL: &str =
    "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}</tool_call>";
/// How llama.cpp says that its parser has failed.
const UNREAD: &str = "The model produced output that does not match the expected peg-native format";

pub(super) fn models(route: Option<ModelRoute>, template: Option<PathBuf>) -> Models {
    let settings = ModelSettings { route, template, ..ModelSettings::default() };
    if settings == ModelSettings::default() {
        return Models::default();
    }
    Models::try_from([("m".to_owned(), settings)].into_iter().collect::<std::collections::BTreeMap<_, _>>())
        .unwrap()
}

/// A llama.cpp server with this template.
pub(super) fn llama_cpp(template: &str) -> Site {
    let mut site = Site::of_kind("llama.cpp", &["m"]);
    site.pages.retain(|(path, _)| *path != "/props");
    let props = json!({"chat_template": template, "bos_token": "<s>", "eos_token": "<|end|>"});
    site.pages.extend([("/props", props), ("/tokenize", json!({"tokens": [1]}))]);
    site
}

pub(super) async fn rack_of(site: Site, models: Models, replies: Vec<Reply>) -> Rack {
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
pub(super) fn completion(text: &str) -> Reply {
    let (one, other) = text.split_at(text.len() / 2);
    let piece = |text: &str| event(&json!({"index": 0, "content": text, "stop": false}));
    let last = json!({"content": "", "stop": true, "stop_type": "eos", "tokens_evaluated": 10, "tokens_predicted": 5});
    Reply::stream([piece(one), piece(other), event(&last)])
}

pub(super) fn file_of(template: &str) -> NamedTempFile {
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
async fn b14_the_template_of_a_file_has_the_tokens_of_the_servers_model() {
    const ENDED: &str = "{% for m in messages %}{{ bos_token + m.content + eos_token }}{% endfor %}";
    let file = file_of(ENDED);
    let models = models(Some(ModelRoute::Raw), Some(file.path().to_owned()));
    let rack = rack_of(llama_cpp("{{ 1 }}"), models, vec![completion("Hello.")]).await;
    let reported = rack.ask_with(true, json!({"tools": [], "tool_choice": "none"})).await;
    assert_eq!(reported.content, "Hello.");
    let body = &rack.upstream.asked()[0].body;
    assert_eq!((&body["prompt"], &body["stop"]), (&json!("Go.<|end|>"), &json!(["<|end|>"])), "{body}");
}

#[tokio::test]
async fn b14_what_the_model_thought_before_a_call_is_in_the_next_prompt() {
    const THINKING: &str = "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}\
        {% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}\
        {% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|end|>{% endfor %}\
        {% if add_generation_prompt %}<|assistant|>{% endif %}";
    let answer = format!("<think>I have to add.</think>{CALL}");
    let replies = vec![completion(&answer), completion("It is 5."), completion("Sure.")];
    let rack = rack_of(llama_cpp(THINKING), raw(), replies).await;
    rack.ask(true).await.expect("It is 5.");
    let conversation = json!([
        {"role": "user", "content": "Go."}, {"role": "assistant", "content": "It is 5."}, {"role": "user", "content": "Sure?"},
    ]);
    rack.ask_with(true, json!({"messages": conversation})).await.expect("Sure.");
    let asked = rack.upstream.asked();
    let prompt = |at: usize| asked[at].body["prompt"].as_str().unwrap();
    // The server's cache holds for what it has read and written.
    assert!(prompt(1).starts_with(&format!("{}{answer}<|end|>", prompt(0))), "{}", prompt(1));
    assert!(prompt(2).starts_with(&format!("{}It is 5.<|end|>", prompt(1))), "{}", prompt(2));
}

/// What a model may write where its template would write other white space.
const OWN_SPACES: &str = "I add.\n\n<tool_call>\n{\"name\":\"add\",\"arguments\":{\"a\":2,  \"b\":3}}</tool_call>\n<tool_call>{\"name\": \"add\", \
    \"arguments\": {\"a\": 5, \"b\": 1}}</tool_call>";

#[tokio::test]
async fn b15_the_prompt_goes_on_to_the_byte_from_calls_with_the_models_own_white_space() {
    let replies = || [OWN_SPACES, "It is 5, then 6.", "Sure."];
    let conversation = json!([
        {"role": "user", "content": "Go."}, {"role": "assistant", "content": "I add.\n\n\nIt is 5, then 6."}, {"role": "user", "content": "Sure?"},
    ]);
    let rack = rack_of(llama_cpp(TEMPLATE), raw(), replies().map(completion).to_vec()).await;
    rack.ask(true).await.expect("I add.\n\n\nIt is 5, then 6.");
    rack.ask_with(true, json!({"messages": conversation})).await.expect("Sure.");
    let asked = rack.upstream.asked();
    let prompt = |at: usize| asked[at].body["prompt"].as_str().unwrap();
    assert!(prompt(1).starts_with(&format!("{}{OWN_SPACES}<|end|>", prompt(0))), "{}", prompt(1));
    assert!(prompt(2).starts_with(&format!("{}It is 5, then 6.<|end|>", prompt(1))), "{}", prompt(2));

    let setup = Setup::new().chat(|chat| chat.tool_style = ToolStyle::Prompt);
    let rack = setup.start(replies().map(Reply::text)).await;
    rack.ask(true).await.expect("I add.\n\n\nIt is 5, then 6.");
    rack.ask_with(true, json!({"messages": conversation})).await.expect("Sure.");
    for asked in &rack.upstream.asked()[1..] {
        assert_eq!(asked.messages()[2], json!({"role": "assistant", "content": OWN_SPACES}));
    }
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

/// A GGUF file with a template and three tokens, of which the last ends an answer.
fn gguf(template: &str) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let field = |name: &str, kind: u32, value: &[u8]| [&text(name)[..], &kind.to_le_bytes(), value].concat();
    let tokens = [&8_u32.to_le_bytes()[..], &3_u64.to_le_bytes(), &text("x"), &text("<s>"), &text("<|end|>")];
    let fields = [
        field("tokenizer.ggml.tokens", 9, &tokens.concat()),
        field("tokenizer.ggml.bos_token_id", 4, &1_u32.to_le_bytes()),
        field("tokenizer.ggml.eos_token_id", 4, &2_u32.to_le_bytes()),
        field("tokenizer.chat_template", 8, &text(template)),
    ];
    [&b"GGUF"[..], &3_u32.to_le_bytes(), &0_u64.to_le_bytes(), &4_u64.to_le_bytes(), &fields.concat()]
        .concat()
}

/// An Ollama that says that its model is in this file.
pub(super) fn ollama_with(file: &Path, template: &str) -> Site {
    let mut site = Site::of_kind("ollama", &["m"]);
    let modelfile = format!("# Modelfile\n# FROM m:latest\n\nFROM {}\nTEMPLATE x\n", file.display());
    site.pages.push(("/api/show", json!({"modelfile": modelfile, "template": template})));
    site
}

pub(super) fn generated(text: &str) -> Reply {
    let line = |text: &str, done: bool| {
        let line = json!({"model": "m", "response": text, "done": done, "done_reason": "stop"});
        Act::Send(format!("{line}\n").into_bytes())
    };
    Reply::Raw { status: 200, kind: "application/x-ndjson", acts: vec![line(text, false), line("", true)] }
}

/// The name of a file of a model.
fn blob() -> String {
    format!("sha256-{}", "0123456789abcdef".repeat(4))
}

#[tokio::test]
async fn b14_the_template_of_ollama_is_read_from_the_models_file_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = folder.path().join("blobs");
    std::fs::create_dir(&blobs).unwrap();
    let file = blobs.join(blob());
    std::fs::write(&file, gguf(TEMPLATE)).unwrap();
    let site = ollama_with(&file, "{{ .Prompt }}");
    let rack = rack_of(site, raw(), vec![generated(CALL), generated("It is 5.")]).await;
    rack.ask(true).await.expect("It is 5.");
    assert_eq!(rack.ran().len(), 1);
    let asked = rack.upstream.asked();
    assert_eq!(asked[0].path, "/api/generate");
    assert_eq!(asked[0].body["prompt"], "[add][math_gcd]<|user|>Go.<|end|><|assistant|>");
    assert_eq!(asked[0].body["options"]["stop"], json!(["<|end|>"]));

    // Newer versions give the template of a model that they render with it.
    let site = ollama_with(Path::new("/nowhere"), TEMPLATE);
    let rack = rack_of(site, raw(), vec![generated(CALL), generated("It is 5.")]).await;
    rack.ask(true).await.expect("It is 5.");
    assert_eq!(rack.upstream.asked()[0].path, "/api/generate");
}

#[tokio::test]
async fn b14_the_file_of_a_model_may_be_set_as_its_template() {
    let mut file = tempfile::Builder::new().suffix(".GGUF").tempfile().unwrap();
    file.write_all(&gguf(TEMPLATE)).unwrap();
    let models = |file: &NamedTempFile| models(Some(ModelRoute::Raw), Some(file.path().to_owned()));
    // vLLM gives no template.
    let site = || Site::of_kind("vllm", &["m"]);
    let piece = |text: &str| {
        let choice = json!({"index": 0, "text": text, "finish_reason": "stop"});
        event(&json!({"object": "text_completion", "model": "m", "choices": [choice]}))
    };
    let reply = |text: &str| Reply::stream([piece(text), Act::Send(b"data: [DONE]\n\n".to_vec())]);
    let rack = rack_of(site(), models(&file), vec![reply(CALL), reply("It is 5.")]).await;
    rack.ask(true).await.expect("It is 5.");
    let asked = rack.upstream.asked();
    assert_eq!(asked[0].path, "/v1/completions");
    let prompt = asked[0].body["prompt"].as_str().unwrap();
    assert!(prompt.ends_with("[add][math_gcd]<|user|>Go.<|end|><|assistant|>"), "{prompt}");
    assert_eq!(asked[0].body["stop"], json!(["<|end|>"]), "which the file says");

    let mut other = tempfile::Builder::new().suffix(".gguf").tempfile().unwrap();
    other.write_all(TEMPLATE.as_bytes()).unwrap();
    let log = Log::start();
    let rack = rack_of(site(), models(&other), vec![Answer::text("Hi.").into()]).await;
    rack.ask(true).await.expect("Hi.");
    assert_eq!(rack.upstream.asked()[0].path, "/v1/chat/completions");
    let said = log.text();
    assert!(said.contains("not a GGUF file") && said.contains(&*other.path().to_string_lossy()), "{said}");
}

#[tokio::test]
async fn b14_no_other_file_is_read_for_ollama_and_nothing_of_it_is_reported() {
    const SECRET: &str = "GGUK-secret-of-this-machine";
    let folder = tempfile::tempdir().unwrap();
    let blobs = folder.path().join("blobs");
    std::fs::create_dir(&blobs).unwrap();
    let (secret, elsewhere) = (folder.path().join("secret"), folder.path().join(blob()));
    std::fs::write(&secret, SECRET).unwrap();
    std::fs::write(&elsewhere, gguf(TEMPLATE)).unwrap();
    let named = |letter: &str| blobs.join(format!("sha256-{}", letter.repeat(64)));
    std::fs::write(named("a"), SECRET).unwrap();
    std::os::unix::fs::symlink(&elsewhere, named("b")).unwrap();
    std::fs::create_dir(named("c")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(named("d")).status().unwrap().success());
    for (file, why) in [
        (secret, "not on this machine"),
        (elsewhere, "not on this machine"),
        (blobs.join("..").join("blobs").join(blob()), "not on this machine"),
        (named("a"), "not a GGUF file"),
        (named("b"), "no file"),
        (named("c"), "no file"),
        (named("d"), "no file"),
        (named("e"), "not found"),
    ] {
        let log = Log::start();
        let site = ollama_with(&file, "{{ .Prompt }}");
        let rack = rack_of(site, raw(), vec![Answer::text("Hi.").into()]).await;
        rack.ask(true).await.expect("Hi.");
        assert_eq!(rack.upstream.asked()[0].path, "/api/chat");
        let said = log.text();
        assert!(
            said.contains(why) && said.contains("as `template` of the model"),
            "{}: {said}",
            file.display()
        );
        let asked = rack.upstream.asked();
        assert!(!said.contains("secret-of") && !asked.iter().any(|asked| asked.text.contains("secret-of")));
    }
}

#[tokio::test]
async fn b14_completions_of_vllm_and_sglang_come_with_their_special_tokens() {
    let file = file_of(TEMPLATE);
    for (kind, skips_tokens, adds_tokens, most) in [
        ("vllm", json!(false), json!(false), Value::Null),
        ("sglang", json!(false), Value::Null, json!(4096)),
        ("lmstudio", Value::Null, Value::Null, Value::Null),
    ] {
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
            ("/v1/completions", &skips_tokens)
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

/// A tool of the client whose calls have to fit its schema.
fn strict_tool() -> Value {
    let mut tool = client_tool("set_light");
    tool["function"]["strict"] = json!(true);
    tool
}

fn strict(route: Option<ModelRoute>, strict_tools: Option<bool>, dialect: Option<&'static str>) -> Models {
    let settings = ModelSettings { route, strict_tools, dialect, ..ModelSettings::default() };
    Models::try_from(std::collections::BTreeMap::from([("m".to_owned(), settings)])).unwrap()
}

#[tokio::test]
async fn b14_calls_of_strict_tools_are_whole_once_llama_cpps_model_has_opened_one() {
    let raw = Some(ModelRoute::Raw);
    for (tools, set, is_held) in [
        (json!([strict_tool()]), None, true),
        (json!([client_tool("set_light")]), None, false),
        (json!([strict_tool()]), Some(false), false),
        (json!([]), Some(true), true),
        (json!([]), None, false),
    ] {
        let rack =
            rack_of(llama_cpp(TEMPLATE), strict(raw, set, None), vec![completion(CALL), completion("5.")])
                .await;
        assert_eq!(rack.ask_with(true, json!({"tools": tools})).await.content, "5.");
        for asked in rack.upstream.asked() {
            let body = &asked.body;
            assert_eq!(
                (asked.path.as_str(), body["grammar"].is_string()),
                ("/completion", is_held),
                "{body}"
            );
            if !is_held {
                assert!(
                    body.get("grammar_lazy").is_none() && body.get("grammar_triggers").is_none(),
                    "{body}"
                );
                continue;
            }
            let grammar = body["grammar"].as_str().unwrap();
            assert!(
                grammar.starts_with("root ::= \"<tool_call>\" ") && grammar.contains("math_gcd"),
                "{grammar}"
            );
            assert_eq!(grammar.contains("set_light"), tools != json!([]), "{grammar}");
            assert_eq!(body["grammar_lazy"], true);
            assert_eq!(body["grammar_triggers"], json!([{"type": 1, "value": "<tool_call>"}]));
            assert!(body["preserved_tokens"].as_array().unwrap().contains(&json!("<tool_call>")));
            assert!(!body["prompt"].as_str().unwrap().contains("</think>"));
        }
    }
}

#[tokio::test]
async fn b14_vllm_and_sglang_get_structural_tags_for_strict_tools() {
    let file = file_of(TEMPLATE);
    for kind in ["vllm", "sglang"] {
        for route in [Some(ModelRoute::Raw), None] {
            let chunk = |text: &str, reason: Value| {
                event(&json!({"choices": [{"index": 0, "text": text, "finish_reason": reason}]}))
            };
            let said = |text: &str| match route {
                Some(_) => Reply::stream([
                    chunk(text, Value::Null),
                    chunk("", json!("stop")),
                    Act::Send(b"data: [DONE]\n\n".to_vec()),
                ]),
                None => Reply::text(text),
            };
            let template = route.map(|_| file.path().to_owned());
            let settings = ModelSettings {
                route,
                template,
                strict_tools: Some(true),
                tool_style: route.is_none().then_some(ToolStyle::Prompt),
                ..ModelSettings::default()
            };
            let models =
                Models::try_from(std::collections::BTreeMap::from([("m".to_owned(), settings)])).unwrap();
            let replies = vec![said(CALL), said("It is 5.")];
            let rack = rack_of(Site::of_kind(kind, &["m"]), models, replies).await;
            let reported = rack.ask_with(true, json!({"parallel_tool_calls": false})).await;
            assert_eq!((reported.content.as_str(), rack.ran().len()), ("It is 5.", 1), "{kind}");
            let path = if route.is_some() { "/v1/completions" } else { "/v1/chat/completions" };
            for asked in rack.upstream.asked() {
                let body = &asked.body;
                assert_eq!(asked.path, path);
                let tag = match kind {
                    "vllm" => {
                        serde_json::from_str(body["structured_outputs"]["structural_tag"].as_str().unwrap())
                    }
                    _ => Ok(body["response_format"].clone()),
                };
                let mut tag: Value = tag.unwrap();
                let grammar = tag["format"]["tags"][0]["content"]["grammar"].take();
                assert!(grammar.as_str().unwrap().contains("math_gcd"), "{grammar}");
                let inner = json!({
                    "type": "tag", "begin": "<tool_call>", "content": {"type": "grammar", "grammar": null}, "end": "",
                });
                let tags = json!({
                    "type": "triggered_tags", "triggers": ["<tool_call>"], "tags": [inner], "stop_after_first": true,
                });
                assert_eq!(tag, json!({"type": "structural_tag", "format": tags}), "{kind}");
                assert!(body.get("grammar").is_none() && body.get("ebnf").is_none(), "{body}");
            }
        }
    }
}

#[tokio::test]
async fn b14_a_dialect_without_an_opening_and_an_answer_of_a_given_form_leave_calls_free() {
    let raw = Some(ModelRoute::Raw);
    for (dialect, fields) in [
        (Some("pythonic"), json!({"tools": [strict_tool()]})),
        (
            None,
            json!({"model": "m:plain", "tools": [strict_tool()], "response_format": {"type": "json_object"}}),
        ),
        (None, json!({"tools": [strict_tool()], "grammar": "root ::= \"x\""})),
    ] {
        let rack = rack_of(llama_cpp(TEMPLATE), strict(raw, None, dialect), vec![completion("{}")]).await;
        assert_eq!(rack.ask_with(true, fields.clone()).await.content, "{}", "{fields}");
        assert!(rack.upstream.asked()[0].body.get("grammar_lazy").is_none(), "{fields}");
    }
    // A chat of llama.cpp would hold to such a grammar from the first word on.
    let settings = ModelSettings {
        tool_style: Some(ToolStyle::Prompt),
        strict_tools: Some(true),
        ..ModelSettings::default()
    };
    let models = Models::try_from(std::collections::BTreeMap::from([("m".to_owned(), settings)])).unwrap();
    let rack = rack_of(llama_cpp(TEMPLATE), models, vec![Reply::text("Hello.")]).await;
    assert_eq!(rack.ask_with(true, json!({})).await.content, "Hello.");
    let asked = rack.upstream.asked();
    assert!(asked[0].path.ends_with("/chat/completions") && asked[0].body.get("grammar").is_none());
}

#[tokio::test]
async fn b14_a_server_that_refuses_the_grammar_or_breaks_at_it_is_asked_without_it() {
    let broken = json!({"error": {
        "code": 500, "message": "got exception: Unexpected empty grammar stack after accepting piece: >y (7)", "type": "server_error",
    }});
    let within =
        Reply::stream([event(&json!({"index": 0, "content": "Hm. ", "stop": false})), event(&broken)]);
    for refusal in [Reply::error(400, "Failed to initialize samplers: failed to parse grammar"), within] {
        let replies = vec![refusal, completion(CALL), completion("It is 5.")];
        let rack =
            rack_of(llama_cpp(TEMPLATE), strict(Some(ModelRoute::Raw), Some(true), None), replies).await;
        let reported = rack.ask_with(true, json!({})).await;
        assert!(reported.content.ends_with("It is 5."), "{}", reported.content);
        let asked = rack.upstream.asked();
        let held: Vec<bool> = asked.iter().map(|asked| asked.body["grammar"].is_string()).collect();
        assert_eq!(held, [true, false, false]);
        assert!(asked.iter().all(|asked| asked.path == "/completion"));
    }
}

#[tokio::test]
async fn b14_what_a_search_finds_can_be_called_in_the_same_turn() {
    let search = "<tool_call>{\"name\": \"search_tools\", \"arguments\": {\"query\": \"tides\"}}</tool_call>";
    let upstream = Scripted::start_as(llama_cpp(TEMPLATE), [completion(search), completion("5.")]).await;
    let settings = UpstreamSettings::new(upstream.base(), Duration::from_secs(20));
    let deferred = ToolPolicy { deferred: true, ..ToolPolicy::new() };
    let setup = Setup::new().plain_tool("far.tides", deferred, |_| async { Ok(ToolResult::new("high")) });
    let setup = setup.chat(|chat| chat.models = strict(Some(ModelRoute::Raw), Some(true), None));
    let rack = setup.start_with(upstream, Upstream::server(settings).unwrap()).await;
    assert_eq!(rack.ask_with(true, json!({})).await.content, "5.");
    let asked = rack.upstream.asked();
    let allows: Vec<bool> =
        asked.iter().map(|asked| asked.body["grammar"].as_str().unwrap().contains("far_tides")).collect();
    assert_eq!(allows, [false, true]);
}
