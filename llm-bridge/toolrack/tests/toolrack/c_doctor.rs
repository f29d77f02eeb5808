//! `toolrack doctor` before models of several characters.

use std::{path::Path, process::Command};

use serde_json::{Map, Value, json};
use toolrack_dialects::dialect;

use crate::{
    support::{Act, Answer, Asked, Character, Reply, Scripted, Site, event},
    t_servers::program::{Rack, client},
};

/// What the program has printed and how it ended.
struct Ran {
    code: Option<i32>,
    output: String,
    reported: String,
}

fn run(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLRACK_")) {
        command.env_remove(name);
    }
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let reported = text(output.stderr);
    assert!(!reported.contains("panicked"), "{reported}");
    Ran { code: output.status.code(), output: text(output.stdout), reported }
}

/// Has a model of this character looked at, in a folder of its own; the report in JSON, which fits its schema.
async fn examined(site: Site, character: Character) -> Value {
    let scripted = Scripted::acting(site, character).await;
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["doctor", "scripted", "--json", "--upstream", &scripted.base()]);
    assert_eq!(ran.code, Some(0), "{}", ran.reported);
    let report: Value = serde_json::from_str(&ran.output).unwrap();
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/doctor.schema.json")).unwrap();
    let valid = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = valid.iter_errors(&report).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}: {report:#}");
    assert_eq!(report["complete"], true, "{report:#}");
    assert_eq!(report["requests"], json!(asked_to_answer(&scripted)), "{report:#}");
    report
}

fn asked_to_answer(scripted: &Scripted) -> usize {
    let paths = ["/v1/chat/completions", "/api/chat", "/completion", "/api/generate"];
    scripted.asked().iter().filter(|asked| paths.contains(&asked.path.as_str())).count()
}

/// The probe with its verdict, as in `native: yes`.
fn verdicts(report: &Value) -> Vec<String> {
    let probes = report["probes"].as_object().unwrap();
    probes
        .iter()
        .map(|(probe, finding)| format!("{probe}: {}", finding["verdict"].as_str().unwrap()))
        .collect()
}

/// The settings that are recommended: these, and no others.
fn settings(these: Value) -> Value {
    let mut all = no_settings();
    all.as_object_mut().unwrap().extend(these.as_object().unwrap().clone());
    all
}

fn no_settings() -> Value {
    json!({"tool_style": null, "dialect": null, "route": null, "template": null})
}

/// The text of the last message, or of the last one in a prompt of [`TEMPLATE`].
fn question(asked: &Asked) -> String {
    if let Some(prompt) = asked.body["prompt"].as_str() {
        return prompt.rsplit("<|user|>").next().unwrap().to_owned();
    }
    let content = &asked.messages().last().unwrap()["content"];
    let parts = content.as_array().into_iter().flatten();
    let text = parts.filter_map(|part| part["text"].as_str()).collect::<String>();
    content.as_str().map_or(text, str::to_owned)
}

/// The calls that fit a question.
fn calls(asked: &Asked) -> Vec<(&'static str, Value)> {
    let question = question(asked);
    let mut calls = Vec::new();
    for (word, city) in [("Reykjavik", "Reykjav\u{ed}k"), ("Antananarivo", "antananarivo")] {
        if question.contains(word) {
            calls.push(("weather", json!({"city": city})));
        }
    }
    if question.contains("4711") {
        calls.push(("add", json!({"a": 1889, "b": "4711"})));
    }
    calls
}

fn natively(calls: Vec<(&'static str, Value)>) -> Reply {
    let answer = calls.into_iter().enumerate().fold(Answer::new(), |answer, (at, (name, arguments))| {
        answer.call(&format!("call_{at}"), name, &arguments)
    });
    answer.into()
}

fn written(name: &str, calls: Vec<(&'static str, Value)>) -> Reply {
    Reply::text(&text_of(name, &calls))
}

/// Calls in a dialect.
fn text_of(name: &str, calls: &[(&str, Value)]) -> String {
    let row = dialect(name).unwrap();
    let text = calls.iter().map(|(name, arguments)| row.call(name, arguments.as_object().unwrap()).unwrap());
    text.collect::<Vec<_>>().join("\n")
}

/// An answer of `/completion`.
fn completed(text: &str) -> Reply {
    let last = json!({"content": "", "stop": true, "stop_type": "eos", "tokens_evaluated": 10, "tokens_predicted": 5});
    Reply::stream([event(&json!({"index": 0, "content": text, "stop": false})), event(&last)])
}

/// An answer without tools, as a good server gives it.
fn plain(asked: &Asked) -> Reply {
    if asked.body.get("response_format").is_some() {
        return Reply::text("{\"city\": \"Oslo\", \"is_capital\": true}");
    }
    let words = match asked.text.contains("image_url") {
        true if asked.text.contains("YrsKZ") => "Red.".to_owned(),
        true => "It is blue.".to_owned(),
        false => "one, two, three, four, five, six, seven, eight, nine, ten".to_owned(),
    };
    let answer = words.split_inclusive(' ').fold(Answer::new(), Answer::say);
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 990}});
    answer.extra(json!({"usage": usage})).into()
}

/// Does all that it is asked for in the fields of the API, and thinks before.
fn able(asked: &Asked) -> Reply {
    if asked.tools().is_empty() {
        return match asked.body["reasoning_effort"] == "none" {
            true => plain(asked),
            false => match plain(asked) {
                Reply::Answer(answer) => answer.delta(json!({"reasoning_content": "Hm."})).into(),
                reply => reply,
            },
        };
    }
    match &asked.body["tool_choice"] {
        Value::Object(named) => {
            assert_eq!(named["function"]["name"], "add");
            natively(vec![("add", json!({"a": 1, "b": 2}))])
        }
        choice if choice == "required" => natively(vec![("weather", json!({"city": "Oslo"}))]),
        _ => natively(calls(asked)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_a_model_that_is_able_needs_no_settings() {
    let site = Site {
        server: "llama.cpp",
        pages: vec![
            (
                "/v1/models",
                json!({"data": [{"id": "scripted", "owned_by": "llamacpp", "meta": {"n_ctx_train": 40960}}]}),
            ),
            ("/props", json!({"default_generation_settings": {"n_ctx": 16384}})),
        ],
    };
    let report = examined(site, able).await;
    let expected = [
        "template: not_tried",
        "native: yes",
        "text: no",
        "route: not_tried",
        "parallel: yes",
        "required: yes",
        "named: yes",
        "streams: yes",
        "speed: yes",
        "thinking: yes",
        "pictures: yes",
        "structured: yes",
        "context: yes",
        "cache: yes",
    ];
    assert_eq!(verdicts(&report), expected, "{report:#}");
    assert_eq!(report["settings"], no_settings());
    assert_eq!((&report["toml"], &report["advice"]), (&Value::Null, &json!([])));
    let probes = &report["probes"];
    assert_eq!((&probes["native"]["right"], &probes["native"]["tries"]), (&json!(3), &json!(3)));
    assert_eq!(
        (&probes["thinking"]["place"], &probes["thinking"]["can_be_off"]),
        (&json!("field"), &json!(true))
    );
    assert_eq!(
        (&probes["context"]["tokens"], &probes["context"]["trained_tokens"]),
        (&json!(16384), &json!(40960))
    );
    assert_eq!(probes["cache"]["cached_tokens"], 990);
    assert_eq!(report["server"]["kind"], "llama.cpp");
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_calls_that_a_server_leaves_in_the_text_are_seen_with_their_dialect() {
    let report = examined(Site::default(), |asked| match calls(asked) {
        calls if calls.is_empty() => plain(asked),
        calls => written("hermes", calls),
    })
    .await;
    let verdicts = verdicts(&report);
    let expected = [
        "template: not_tried",
        "native: text",
        "text: yes",
        "route: not_tried",
        "parallel: yes",
        "required: no",
    ];
    assert_eq!(verdicts[..6], expected, "{report:#}");
    let dialects = [&report["probes"]["native"]["dialect"], &report["probes"]["text"]["dialect"]];
    assert_eq!(dialects, ["hermes", "hermes"]);
    // Whatever it writes is read.
    assert_eq!((&report["settings"], &report["toml"]), (&no_settings(), &Value::Null));
}

/// Calls in Python, and only where it was described to it that way.
fn pythonic(asked: &Asked) -> Reply {
    let system = asked.messages()[0]["content"].as_str().unwrap_or_default();
    let row = dialect("pythonic").unwrap();
    let is_described = !row.instructions(&[]).is_empty() && system.contains(&form(&row.instructions(&[])));
    match calls(asked) {
        calls if calls.is_empty() || !is_described => plain(asked),
        calls => {
            let call = |(name, arguments): &(&str, Value)| {
                let arguments = arguments.as_object().unwrap().iter();
                let arguments: Vec<String> =
                    arguments.map(|(name, value)| format!("{name}={value}")).collect();
                format!("{name}({})", arguments.join(", "))
            };
            Reply::text(&format!("[{}]", calls.iter().map(call).collect::<Vec<_>>().join(", ")))
        }
    }
}

/// The last line of instructions, which shows how a call is written.
fn form(instructions: &str) -> String {
    instructions.trim().lines().last().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_the_dialect_that_a_model_answers_in_is_found() {
    let report = examined(Site::default(), pythonic).await;
    let verdicts = verdicts(&report);
    let expected = [
        "template: not_tried",
        "native: no",
        "text: yes",
        "route: not_tried",
        "parallel: yes",
        "required: no",
    ];
    assert_eq!(verdicts[..6], expected, "{report:#}");
    let text = &report["probes"]["text"];
    assert_eq!((&text["dialect"], &text["right"]), (&json!("pythonic"), &json!(3)), "{report:#}");
    assert_eq!(text["tried"].as_array().unwrap().first(), Some(&json!("hermes")));
    assert_eq!(report["settings"], settings(json!({"tool_style": "prompt", "dialect": "pythonic"})));
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_a_server_that_refuses_tools_gets_them_in_the_prompt() {
    let report = examined(Site::of_kind("vllm", &["scripted"]), |asked| {
        if !asked.tools().is_empty() {
            return Reply::error(400, "\"auto\" tool choice requires --enable-auto-tool-choice");
        }
        match calls(asked) {
            calls if calls.is_empty() => plain(asked),
            calls => written("hermes", calls),
        }
    })
    .await;
    let verdicts = verdicts(&report);
    let expected = [
        "template: not_tried",
        "native: refused",
        "text: yes",
        "route: not_tried",
        "parallel: yes",
        "required: not_tried",
        "named: not_tried",
    ];
    assert_eq!(verdicts[..7], expected, "{report:#}");
    let note = report["probes"]["native"]["note"].as_str().unwrap();
    assert!(note.starts_with("400: \"auto\" tool choice"), "{note}");
    assert_eq!(report["settings"], settings(json!({"tool_style": "prompt", "dialect": "hermes"})));
    assert!(report["advice"][0].as_str().unwrap().contains("--tool-call-parser"), "{report:#}");
}

/// <https://github.com/block/goose/issues/4485>: that a model cannot call tools shows only when it is at work.
#[tokio::test(flavor = "multi_thread")]
async fn b16_a_model_that_never_calls_is_said_to_be_one() {
    let report = examined(Site::default(), plain).await;
    let verdicts = verdicts(&report);
    let expected = [
        "template: not_tried",
        "native: no",
        "text: no",
        "route: not_tried",
        "parallel: not_tried",
        "required: no",
        "named: no",
    ];
    assert_eq!(verdicts[..7], expected, "{report:#}");
    assert!(report["probes"]["text"]["tried"].as_array().unwrap().len() > 5, "{report:#}");
    assert_eq!(report["settings"], no_settings());
    assert!(report["advice"][0].as_str().unwrap().contains("no right call"), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_what_a_server_overlooks_or_refuses_is_seen() {
    let report = examined(Site::with_models(&["other"]), |asked| {
        let is_choice = asked.body.get("tool_choice").is_some();
        if asked.text.contains("image_url") {
            return Reply::error(500, "image input is not supported");
        }
        match calls(asked) {
            calls if calls.is_empty() || is_choice || asked.tools().is_empty() => {
                Reply::text("Hello, and one two three four five six seven eight.")
            }
            // One at a time, and the third time wrong.
            mut calls => {
                calls.truncate(1);
                if question(asked).contains("warm") {
                    calls[0].1 = json!({"city": "Oslo"});
                }
                natively(calls)
            }
        }
    })
    .await;
    let expected = [
        "template: not_tried",
        "native: partly",
        "text: no",
        "route: not_tried",
        "parallel: no",
        "required: no",
        "named: no",
        "streams: no",
        "speed: unknown",
        "thinking: no",
        "pictures: refused",
        "structured: no",
        "context: unknown",
        "cache: unknown",
    ];
    assert_eq!(verdicts(&report), expected, "{report:#}");
    let probes = &report["probes"];
    assert_eq!((&probes["native"]["right"], &probes["native"]["tries"]), (&json!(2), &json!(3)));
    assert_eq!(probes["parallel"]["note"], "one call only");
    assert!(
        probes["pictures"]["note"].as_str().unwrap().contains("image input is not supported"),
        "{report:#}"
    );
    assert!(probes["named"]["note"].as_str().unwrap().contains("answered: Hello"), "{report:#}");
    assert_eq!(report["server"]["lists_model"], false);
    assert!(report["advice"][0].as_str().unwrap().contains("does not list a model `scripted`"), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_ollama_is_asked_for_the_context() {
    let mut site = Site::of_kind("ollama", &["scripted"]);
    site.pages.push(("/api/ps", json!({"models": [{"name": "scripted", "context_length": 4096}]})));
    site.pages.push(("/api/show", json!({"model_info": {"qwen3.context_length": 40960}})));
    let answer = |_: &Asked| Answer::text("<think>Hm.</think>\nHello.").usage(9, 3).into();
    let report = examined(site, answer).await;
    let context = &report["probes"]["context"];
    assert_eq!(context["loaded_tokens"], 4096, "{report:#}");
    assert_eq!(
        (&context["tokens"], &context["trained_tokens"]),
        (&json!(32768), &json!(40960)),
        "{report:#}"
    );
    let thinking = &report["probes"]["thinking"];
    assert_eq!((&thinking["place"], &thinking["can_be_off"]), (&json!("text"), &json!(false)), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_the_settings_are_written_and_used() {
    let scripted = Scripted::acting(Site::with_models(&["scripted:8b"]), pythonic).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolrack.toml");
    let before = format!(
        "# Ours.\nupstream = \"{}\" # the model server\n\n[search] # kept\nengine = \"brave\"\napi_key = \"k\"\n",
        scripted.base()
    );
    let doctor = ["doctor", "scripted:8b", "--write"];
    let without = run(folder.path(), &[&doctor[..], &["--upstream", &scripted.base()]].concat());
    assert_eq!(without.code, Some(1));
    assert!(without.reported.contains("there is no configuration file"), "{}", without.reported);
    std::fs::write(&file, &before).unwrap();
    let ran = run(folder.path(), &doctor);
    assert_eq!(ran.code, Some(0), "{}", ran.reported);
    let added = "[models.\"scripted:8b\"]\ntool_style = \"prompt\"\ndialect = \"pythonic\"\n";
    assert!(ran.output.contains(added), "{}", ran.output);
    assert!(
        ran.output.lines().all(|line| line.chars().count() <= 80 || line.starts_with('-')),
        "{}",
        ran.output
    );
    assert!(
        ran.reported.contains("toolrack.toml") && ran.reported.contains("tool_style"),
        "{}",
        ran.reported
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{before}\n{added}"));
    let again = run(folder.path(), &doctor);
    assert!(again.reported.contains("has these settings already"), "{}", again.reported);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{before}\n{added}"));

    let ran = run(folder.path(), &["chat", "--model", "scripted:8b", "Say hello."]);
    assert!(ran.code == Some(0) && ran.output.contains("one, two"), "{}", ran.reported);
    let asked = scripted.asked().pop().unwrap();
    assert!(asked.tools().is_empty(), "{:?}", asked.tools());
    let form = form(&dialect("pythonic").unwrap().instructions(&[]));
    assert!(asked.messages()[0]["content"].as_str().unwrap().contains(&form), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_without_a_server_or_the_model_it_is_said_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let scripted = Scripted::acting(Site::with_models(&["one", "other"]), |_| {
        Reply::error(404, "model \"scripted\" not found, try pulling it first")
    })
    .await;
    let base = scripted.base();
    for (arguments, parts) in [
        (&["doctor", "--upstream", "http://127.0.0.1:9/v1"][..], &["cannot reach", "--upstream"][..]),
        (&["doctor", "--upstream", "demo"], &["no model server", "start a model server"]),
        (&["doctor", "scripted", "--upstream", &base], &["no model `scripted`", "try pulling", "one, other"]),
    ] {
        let ran = run(folder.path(), arguments);
        assert_eq!((ran.code, ran.output.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(parts.iter().all(|part| ran.reported.contains(part)), "{arguments:?}: {}", ran.reported);
    }
}

const TEMPLATE: &str = "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}\
    {% for m in messages %}<|{{ m.role }}|>{{ m.content }}\
    {% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}{% endfor %}\
    {% if add_generation_prompt %}<|assistant|>{% endif %}";

/// A llama.cpp server with this template.
fn llama_cpp(template: &str) -> Site {
    let mut site = Site::of_kind("llama.cpp", &["scripted"]);
    site.pages.retain(|(path, _)| *path != "/props");
    site.pages.push(("/props", json!({"chat_template": template, "eos_token": "<|end|>"})));
    site
}

/// Its server's parser fails at whatever it calls.
fn killed(asked: &Asked) -> Reply {
    const UNREAD: &str = "The model produced output that does not match the expected peg-native format";
    match (asked.path.as_str(), calls(asked)) {
        ("/v1/chat/completions", calls) if calls.is_empty() => plain(asked),
        ("/v1/chat/completions", _) => Reply::error(500, UNREAD),
        (_, calls) => completed(&text_of("hermes", &calls)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_the_raw_route_is_set_where_the_chat_endpoint_kills_calls() {
    let report = examined(llama_cpp(TEMPLATE), killed).await;
    let expected = [
        "template: yes",
        "native: failed",
        "text: no",
        "route: yes",
        "parallel: yes",
        "required: no",
        "named: failed",
    ];
    assert_eq!(verdicts(&report)[..7], expected, "{report:#}");
    assert_eq!(report["probes"]["template"]["dialect"], "hermes");
    let route = &report["probes"]["route"];
    assert_eq!(
        (&route["right"], &route["chat_right"], &route["dialect"]),
        (&json!(3), &json!(0), &json!("hermes"))
    );
    assert_eq!(report["settings"], settings(json!({"route": "raw"})));
    assert_eq!(report["toml"], "[models.scripted]\nroute = \"raw\"\n");
    assert_eq!(report["advice"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_a_template_in_a_file_is_tried_and_written_and_used() {
    let scripted = Scripted::acting(llama_cpp(""), killed).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolrack.toml");
    std::fs::write(&file, format!("upstream = \"{}\"\n", scripted.base())).unwrap();
    let without = run(folder.path(), &["doctor", "scripted", "--json"]);
    let report: Value = serde_json::from_str(&without.output).unwrap();
    let route = &report["probes"]["route"];
    assert_eq!(route["verdict"], "not_tried", "{report:#}");
    assert!(route["note"].as_str().unwrap().contains("set its file as `template`"), "{route}");
    assert_eq!(report["settings"], no_settings());

    std::fs::write(folder.path().join("own.jinja"), TEMPLATE).unwrap();
    let ran = run(folder.path(), &["doctor", "scripted", "--write", "--template", "own.jinja"]);
    assert_eq!(ran.code, Some(0), "{}", ran.reported);
    assert!(ran.output.contains("raw route") && ran.output.contains("more often right"), "{}", ran.output);
    let written: toml::Table = std::fs::read_to_string(&file).unwrap().parse().unwrap();
    let model = &written["models"]["scripted"];
    assert_eq!(model["route"].as_str(), Some("raw"));
    let template = Path::new(model["template"].as_str().unwrap());
    assert!(template.is_absolute() && template.ends_with("own.jinja"), "{model}");

    // The next chat is asked that way, from any folder.
    let elsewhere = tempfile::tempdir().unwrap();
    let config = file.to_str().unwrap();
    let ran = run(elsewhere.path(), &["chat", "--config", config, "--model", "scripted", "Say hello."]);
    assert_eq!(ran.code, Some(0), "{}", ran.reported);
    assert_eq!(scripted.asked().pop().unwrap().path, "/completion");

    let broken = run(folder.path(), &["doctor", "scripted", "--json", "--template", "none.jinja"]);
    let report: Value = serde_json::from_str(&broken.output).unwrap();
    assert!(report["probes"]["route"]["note"].as_str().unwrap().contains("none.jinja: "), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn u29_a_template_that_is_sent_is_tried_and_kept_where_it_serves_best() {
    let scripted = Scripted::acting(llama_cpp(""), killed).await;
    let rack = Rack::new("", "");
    rack.file("toolrack.toml", &format!("upstream = \"{}\"\n", scripted.base()));
    let (server, client) = (rack.serve(), client());
    let address = format!("{}/api/doctor", server.base);
    let ask = async |template: &str| -> Value {
        let asked = json!({"model": "scripted", "template": template, "seconds": 60});
        let begun = client.post(&address).json(&asked).send().await.unwrap();
        assert_eq!(begun.status(), 202);
        loop {
            let state: Value = client.get(&address).send().await.unwrap().json().await.unwrap();
            if state["running"] == false {
                break state;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let kept = || {
        let files = std::fs::read_dir(rack.path(".toolrack/templates")).unwrap();
        files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    let broken = ask("{% if %}").await;
    assert_eq!(broken["report"]["probes"]["route"]["verdict"], "not_tried", "{broken:#}");
    assert!(kept().is_empty(), "what serves nobody is removed");
    let seen = ask(TEMPLATE).await;
    assert_eq!(seen["report"]["settings"]["route"], "raw", "{seen:#}");
    let named = seen["report"]["settings"]["template"].as_str().unwrap();
    assert!(Path::new(named).is_absolute() && seen["report"]["toml"].as_str().unwrap().contains(named));
    assert_eq!(kept(), [Path::new(named)]);
    assert_eq!(std::fs::read_to_string(named).unwrap(), TEMPLATE);
    let written = client.post(format!("{address}/settings")).send().await.unwrap();
    assert_eq!(written.status(), 200);
    // It holds from the next start on.
    server.end();
    assert_eq!(rack.run(&["chat", "--model", "scripted", "Say hello."]).status.code(), Some(0));
    assert_eq!(scripted.asked().pop().unwrap().path, "/completion");
}

/// A server that breaks down in another way at each question.
#[tokio::test(flavor = "multi_thread")]
async fn b16_whatever_a_server_answers_the_report_is_whole() {
    let scripted = Scripted::acting(Site::default(), |asked| {
        let question = question(asked);
        if question.starts_with("Count") {
            return plain(asked);
        }
        let body = |body: &str| Reply::body(200, "text/event-stream", body);
        if asked.text.contains("image_url") {
            return Reply::stream([Act::Stall]);
        }
        if asked.body.get("response_format").is_some() {
            return Reply::stream([Act::Cut]);
        }
        match (asked.tools().is_empty(), question.as_bytes()[0]) {
            (false, b'A') => body("data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 99999999999, \"function\": {\"name\": \"add\", \"arguments\": \"{\\\"a\\\":\"}}]}}]}\n\n"),
            (false, b'H') => Reply::json(200, &json!([1, 2, 3])),
            (false, b'W') => Reply::stream([Act::Reset]),
            (false, _) => body("data: {\"choices\": 7}\n\ndata: nothing\n\n"),
            (true, b'N') => Reply::body(502, "text/html", "<html>\u{1b}[31mBad gateway</html>"),
            (true, _) => body("data: {\"choices\": [{\"delta\": {\"content\": \"<tool_call>{\\\"name\\\": <tool_call>\"}}]}\n\n"),
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let base = scripted.base();
    let ran = run(folder.path(), &["doctor", "--seconds", "10", "--upstream", &base, "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.reported);
    let report: Value = serde_json::from_str(&ran.output).unwrap();
    let probes: &Map<String, Value> = report["probes"].as_object().unwrap();
    assert_eq!(probes.len(), 14, "{report:#}");
    assert_eq!(probes["pictures"]["verdict"], "failed", "{report:#}");
    assert_eq!(probes["pictures"]["note"], "no answer in 2 s", "{report:#}");
    assert_eq!(probes["native"]["verdict"], "failed", "{report:#}");
    assert_eq!(probes["cache"]["verdict"], "refused", "{report:#}");
    assert!(!ran.output.contains('\u{1b}'), "{}", ran.output);
}

/// What there was no time for is not seen, and said so, whether it was begun or not.
#[tokio::test(flavor = "multi_thread")]
async fn b16_a_report_with_probes_that_there_was_no_time_for_is_not_complete() {
    let scripted = Scripted::acting(Site::default(), |asked| match question(asked) {
        question if question.starts_with("Count") => plain(asked),
        _ => Reply::stream([Act::Stall]),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["doctor", "--seconds", "10", "--upstream", &scripted.base(), "--json"]);
    let report: Value = serde_json::from_str(&ran.output).unwrap();
    let late = |finding: &Value| finding["note"] == "there was no time for it";
    assert!(report["probes"].as_object().unwrap().values().any(late), "{report:#}");
    assert_eq!(report["complete"], false, "{report:#}");
}
