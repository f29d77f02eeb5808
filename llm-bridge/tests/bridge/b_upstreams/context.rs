//! The size of a model's context: asked from its server, asked for at Ollama, and compared with what the server has read.

use std::{collections::BTreeMap, num::NonZeroU64, time::Duration};

use llm_bridge::{
    turn::{ModelSettings, Models},
    upstream::{KINDS, Upstream, UpstreamSettings},
};
use serde_json::{Value, json};

use crate::support::{Answer, Log, Rack, Reply, Scripted, Setup, Site, until, user, within};

const IDLE: Duration = Duration::from_secs(20);

async fn rack_of(setup: Setup, site: Site, change: impl FnOnce(&mut UpstreamSettings)) -> Rack {
    let upstream = Scripted::start_as(site, []).await;
    let mut settings = UpstreamSettings::new(upstream.base(), IDLE);
    change(&mut settings);
    setup.start_with(upstream, Upstream::server(settings).unwrap()).await
}

fn models(context: u64) -> Models {
    let settings = ModelSettings { context: NonZeroU64::new(context), ..ModelSettings::default() };
    Models::try_from(BTreeMap::from([("m*".to_owned(), settings)])).unwrap()
}

/// Asks with so many words, about five tokens for four; the server says that it has read so many tokens. Gives the notices.
async fn notices(rack: &Rack, words: usize, read: Option<u64>) -> Vec<String> {
    let answer = Answer::text("Hi.");
    rack.upstream.push(match read {
        Some(read) => answer.usage(read, 2),
        None => answer,
    });
    let body = json!({"model": "m", "stream": true, "messages": [user(&"word ".repeat(words))]});
    let reported = rack.chat(body).await;
    reported.expect("Hi.");
    let texts = reported.details_of("notice").into_iter();
    texts.map(|notice| notice["message"].as_str().unwrap().to_owned()).collect()
}

/// Asks so that the server is looked at.
async fn prepare(rack: &Rack, kind: &str) {
    assert!(notices(rack, 1, Some(9)).await.is_empty());
    let page = match kind {
        "koboldcpp" => "/api/extra/true_max_context_length",
        "ollama" => "/api/ps",
        "llamafile" | "llama.cpp" => "/props",
        "lmstudio" => "/api/v0/models",
        _ => "/v1/models",
    };
    until(|| rack.upstream.looked().iter().any(|path| path == page)).await;
    // What it said has come with the connection's end.
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn b11_every_kind_of_server_says_how_large_the_context_is_and_who_cuts_is_found_out() {
    for kind in &KINDS {
        let site = Site::of_kind(kind.id, &["m"]).with_context(kind.id, 4096);
        // Ollama is left to itself, and gives what is loaded.
        let rack = rack_of(Setup::new(), site, |settings| settings.max_num_ctx = 0).await;
        prepare(&rack, kind.id).await;
        let cut = notices(&rack, 4000, Some(2050)).await;
        assert_eq!(cut.len(), 1, "{}", kind.id);
        for word in ["only 2050 of about 5", "context has 4096", "To fix it, "] {
            assert!(cut[0].contains(word), "{}: {}", kind.id, cut[0]);
        }
        // Who counts whole requests, or does not count, has cut nothing; nor who counts only what was not in its cache.
        for (words, read) in
            [(4000, Some(5000)), (4000, Some(2700)), (4000, Some(0)), (4000, None), (2500, Some(7))]
        {
            assert_eq!(notices(&rack, words, read).await, [""; 0], "{}: {words} {read:?}", kind.id);
        }
    }
}

#[tokio::test]
async fn b11_a_server_that_says_nothing_of_its_context_is_found_out_by_what_it_cannot_have_cached() {
    let rack = rack_of(Setup::new(), Site::default(), |_| ()).await;
    let cut = notices(&rack, 4000, Some(2050)).await;
    assert!(cut[0].contains("2050") && !cut[0].contains("context has"), "{cut:?}");
    // What stands before the last answer may be in its cache.
    rack.upstream.push(Answer::text("Hi.").usage(2050, 2));
    let long = "word ".repeat(4000);
    let messages = json!([user(&long), {"role": "assistant", "content": "Yes."}, user("And?")]);
    let reported = rack.chat(json!({"model": "m", "stream": true, "messages": messages})).await;
    assert!(reported.expect("Hi.").details_of("notice").is_empty());
}

#[tokio::test]
async fn b11_pictures_and_what_was_thought_before_are_no_sign_of_a_cut() {
    let site = Site::of_kind("vllm", &["m"]).with_context("vllm", 8192);
    let rack = rack_of(Setup::new(), site, |_| ()).await;
    prepare(&rack, "vllm").await;
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}});
    let mut pictures = vec![picture; 20];
    pictures.push(json!({"type": "text", "text": "word ".repeat(1600)}));
    let thought = "hm ".repeat(20_000);
    let thinking = json!({"role": "assistant", "content": "Yes.", "reasoning_content": thought});
    for messages in [
        json!([{"role": "user", "content": pictures}]),
        json!([user("word "), thinking, user(&"word ".repeat(1600))]),
    ] {
        rack.upstream.push(Answer::text("Hi.").usage(2100, 2));
        let reported = rack.chat(json!({"model": "m", "stream": true, "messages": messages})).await;
        assert!(reported.expect("Hi.").details_of("notice").is_empty());
    }
}

#[tokio::test]
async fn b11_a_refusal_of_a_large_request_says_what_to_change() {
    for (kind, message, hint) in [
        ("llama.cpp", "the request exceeds the available context size (4096 tokens)", "--ctx-size"),
        ("vllm", "This model's maximum context length is 4096 tokens", "--max-model-len"),
        ("ollama", "the request exceeds the available context size", "`max_num_ctx`"),
    ] {
        let with_all_tools = Setup::new().chat(|chat| chat.limits.max_tools_percent = 100);
        let rack = rack_of(with_all_tools, Site::of_kind(kind, &["m"]), |_| ()).await;
        for (message, is_hinted) in [(message, true), ("the context is missing", false)] {
            rack.upstream.push(Reply::error(400, message));
            let failure = rack.ask(true).await.failure();
            assert!(failure.contains(message) && failure.contains(hint) == is_hinted, "{kind}: {failure}");
        }
    }
}

#[tokio::test]
async fn b11_the_settings_go_before_what_the_server_says() {
    let setup = Setup::new().chat(|chat| chat.models = models(20_000));
    let rack = rack_of(setup, Site::of_kind("vllm", &["m"]).with_context("vllm", 4096), |_| ()).await;
    prepare(&rack, "vllm").await;
    assert!(notices(&rack, 4000, Some(2050)).await.is_empty(), "it fits in what is set");
    let cut = notices(&rack, 20_000, Some(2050)).await;
    assert!(cut[0].contains("context has 20000"), "{cut:?}");
    let listed = within(rack.client.get(rack.url("/api/ps")).send()).await.unwrap();
    let listed: Value = within(listed.json()).await.unwrap();
    assert_eq!(listed["models"][0]["context_length"], 20_000);
}

/// llama.cpp says in its list what the model was trained with, which is more than it has here.
#[tokio::test]
async fn b11_clients_are_told_the_context_that_was_found() {
    let rack =
        rack_of(Setup::new(), Site::of_kind("llama.cpp", &["m"]).with_context("llama.cpp", 4096), |_| ())
            .await;
    prepare(&rack, "llama.cpp").await;
    let get = async |path: &str| -> Value {
        within(within(rack.client.get(rack.url(path)).send()).await.unwrap().json()).await.unwrap()
    };
    let listed = &get("/v1/models").await["data"][0];
    assert_eq!(
        (&listed["context_length"], &listed["max_model_len"]),
        (&json!(4096), &json!(4096)),
        "{listed}"
    );
    assert_eq!(get("/api/ps").await["models"][0]["context_length"], 4096);
}

/// As it is set, and as the model server says.
#[tokio::test]
async fn g12_clients_are_told_whether_a_model_sees_pictures() {
    let settings = ModelSettings { pictures: Some(false), ..ModelSettings::default() };
    let set = Models::try_from(BTreeMap::from([("m".to_owned(), settings)])).unwrap();
    let setup = Setup::new().chat(|chat| chat.models = set);
    let rack = rack_of(setup, Site::of_kind("vllm", &["m", "n"]), |_| ()).await;
    let listed: Value =
        within(within(rack.client.get(rack.url("/v1/models")).send()).await.unwrap().json()).await.unwrap();
    let pictures = |name: &str| {
        let models = listed["data"].as_array().unwrap();
        models.iter().find(|model| model["id"] == name).unwrap().get("pictures").cloned()
    };
    assert_eq!(
        (pictures("m"), pictures("m:plain"), pictures("n")),
        (Some(false.into()), Some(false.into()), None)
    );
}

#[tokio::test]
async fn b11_a_cut_is_shown_once_in_a_turn_and_the_model_does_not_hear_of_it() {
    let log = Log::start();
    let site = Site::of_kind("lmstudio", &["m"]).with_context("lmstudio", 4096);
    let rack = rack_of(Setup::new(), site, |_| ()).await;
    prepare(&rack, "lmstudio").await;
    for stream in [true, false] {
        let call = |id: &str, a: u64| Answer::new().call(id, "add", &json!({"a": a, "b": 1})).usage(2050, 9);
        rack.upstream.push(call("1", 1));
        rack.upstream.push(call("2", 2));
        rack.upstream.push(Answer::text("Hi.").usage(2050, 2));
        let body = json!({"model": "m", "stream": stream, "messages": [user(&"word ".repeat(8000))]});
        let reported = rack.chat(body).await;
        reported.expect("Hi.");
        assert_eq!(reported.details_of("notice").len(), 1, "stream: {stream}");
        let last = rack.upstream.asked().pop().unwrap();
        assert!(!last.text.contains("2050") && !last.text.contains("To fix it"));
    }
    let text = log.text();
    assert!(
        text.contains("request_cut_by_model_server") && text.contains("larger context length in LM Studio")
    );
}

#[tokio::test]
async fn b11_tools_that_crowd_a_small_context_are_warned_of_once() {
    for (size, warnings) in [(300, 1), (8000, 0)] {
        let log = Log::start();
        let site = Site::of_kind("vllm", &["m"]).with_context("vllm", size);
        let rack = rack_of(Setup::new(), site, |_| ()).await;
        prepare(&rack, "vllm").await;
        for _ in 0..2 {
            notices(&rack, 1, None).await;
        }
        assert_eq!(log.text().matches("more than a quarter").count(), warnings, "{size}");
    }
}

/// The `num_ctx` that a request with so many words gets.
async fn num_ctx(rack: &Rack, words: usize) -> Value {
    assert!(notices(rack, words, Some(words as u64 * 5 / 4)).await.is_empty());
    rack.upstream.asked().pop().unwrap().body["options"]["num_ctx"].clone()
}

async fn ollama(site: Site, change: impl FnOnce(&mut UpstreamSettings)) -> Rack {
    let rack = rack_of(Setup::new(), site, change).await;
    prepare(&rack, "ollama").await;
    rack
}

fn shown(site: Site, shown: Value) -> Site {
    let mut site = site;
    site.pages.retain(|(path, _)| *path != "/api/show");
    site.pages.push(("/api/show", shown));
    site
}

#[tokio::test]
async fn b14_ollama_is_asked_for_the_context_that_a_request_needs_in_steps_that_never_shrink() {
    let site = || Site::of_kind("ollama", &["m"]);
    let rack = ollama(site(), |_| ()).await;
    // What fits in the smallest default is left to Ollama.
    assert_eq!(num_ctx(&rack, 100).await, Value::Null);
    for (words, expected) in
        [(2500, 8192), (5000, 16384), (100, 16384), (5500, 16384), (12_000, 32768), (40_000, 32768)]
    {
        assert_eq!(num_ctx(&rack, words).await, expected, "{words}");
    }
    let rack = ollama(site(), |settings| settings.max_num_ctx = 10_000).await;
    assert_eq!(num_ctx(&rack, 20_000).await, 10_000);
    let rack = ollama(site(), |settings| settings.max_num_ctx = 0).await;
    assert_eq!(num_ctx(&rack, 20_000).await, Value::Null);
    let most = json!({"model_info": {"general.architecture": "llama", "llama.context_length": 8192}});
    let rack = ollama(shown(site(), most), |_| ()).await;
    assert_eq!(num_ctx(&rack, 20_000).await, 8192);
    let of_file = json!({"parameters": "stop    \"<|end|>\"\nnum_ctx                        12288\n"});
    let rack = ollama(shown(site(), of_file), |_| ()).await;
    assert_eq!((num_ctx(&rack, 100).await, num_ctx(&rack, 5000).await), (json!(12288), json!(12288)));
    // Ollama leaves half of the context to what does not fit, which may be more than half of what was sent.
    let rack = ollama(site().with_context("ollama", 8192), |settings| settings.max_num_ctx = 8192).await;
    assert_eq!(notices(&rack, 6000, Some(4098)).await.len(), 1);
    assert_eq!(notices(&rack, 6000, Some(7500)).await, [""; 0]);
    // A larger one that is loaded stays loaded.
    let rack = ollama(site().with_context("ollama", 65536), |_| ()).await;
    assert_eq!((num_ctx(&rack, 100).await, num_ctx(&rack, 20_000).await), (json!(65536), json!(65536)));
}

#[tokio::test]
async fn b14_the_client_and_the_settings_say_first_how_large_ollamas_context_is() {
    let setup = || Setup::new().chat(|chat| chat.models = models(12_345));
    let rack = rack_of(setup(), Site::of_kind("ollama", &["m"]), |_| ()).await;
    prepare(&rack, "ollama").await;
    assert_eq!(num_ctx(&rack, 5000).await, 12_345);
    // As some clients write what they leave to the server.
    for (said, expected) in
        [(json!(2048), json!(2048)), (json!(2048.0), json!(2048.0)), (Value::Null, json!(12_345))]
    {
        rack.upstream.push(Answer::text("Hi.").usage(1026, 2));
        let body = json!({"model": "m", "stream": false, "options": {"num_ctx": said},
            "messages": [user(&"word ".repeat(5000))]});
        let reply = within(rack.client.post(rack.url("/api/chat")).json(&body).send()).await.unwrap();
        assert_eq!(reply.status(), 200);
        assert_eq!(rack.upstream.asked().pop().unwrap().body["options"], json!({"num_ctx": expected}));
    }
}
