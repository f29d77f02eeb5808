//! The addresses of Ollama's API, before an Ollama and before other servers.

use serde_json::{Value, json};

use super::rack_before;
use crate::support::{Act, Rack, Reply, event};

async fn get(rack: &Rack, path: &str) -> Value {
    let response = rack.client.get(rack.url(path)).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.json().await.unwrap()
}

async fn post(rack: &Rack, path: &str, body: &Value) -> (u16, Value) {
    // Ollama's own examples say nothing of JSON.
    let response = rack.client.post(rack.url(path)).body(body.to_string()).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn b13_ollamas_lists_are_made_of_what_the_server_lists() {
    let rack = rack_before(None, []).await;
    let tags = get(&rack, "/api/tags").await;
    let names: Vec<&Value> = tags["models"].as_array().unwrap().iter().map(|model| &model["name"]).collect();
    assert_eq!(names.len(), 5);
    assert_eq!((names[0], names[3]), (&json!("scripted"), &json!("scripted:plain")));
    // OllamaKit reads no time without a fraction, and the command `ollama` cuts the digest after twelve digits.
    assert_eq!(tags["models"][0]["modified_at"], "1970-01-01T00:00:01.000000000Z");
    let running = &get(&rack, "/api/ps").await["models"][0];
    assert_eq!(running["model"], "scripted");
    let digest = running["digest"].as_str().unwrap();
    assert!(digest.len() == 64 && digest.bytes().all(|digit| digit.is_ascii_hexdigit()), "{digest}");
    assert_eq!(tags["models"][0]["digest"], digest);
    assert_ne!(tags["models"][1]["digest"], digest);
    // Codex refuses one before 0.13.4, which has no Responses.
    assert_eq!(get(&rack, "/api/version").await, json!({"version": "0.14.0"}));

    let (status, shown) = post(&rack, "/api/show", &json!({"model": "scripted:latest"})).await;
    assert_eq!((status, &shown["capabilities"]), (200, &json!(["completion", "tools"])));
    assert_eq!(shown["model_info"]["general.architecture"], "unknown");
    // Go's client sends all fields, and one of the two names.
    for names in [("scripted", ""), ("", "scripted")] {
        let body = json!({
            "model": names.0, "system": "", "template": "", "verbose": false, "options": null, "name": names.1,
        });
        assert_eq!(post(&rack, "/api/show", &body).await.0, 200, "{names:?}");
    }
    let (_, shown) = post(&rack, "/api/show", &json!({"name": "embed-vectors"})).await;
    assert_eq!(shown["capabilities"], json!(["embedding"]));
    let unknown = post(&rack, "/api/show", &json!({"model": "scriptd"})).await;
    assert_eq!(unknown, (404, json!({"error": "there is no model `scriptd`; did you mean `scripted`?"})));
    let (status, error) = post(&rack, "/api/show", &json!({})).await;
    assert!(status == 400 && error["error"].as_str().unwrap().contains("`model`"), "{error}");
}

#[tokio::test]
async fn b13_ollamas_vectors_are_made_by_the_embeddings_of_openai() {
    let vectors = json!({"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": [1, 2]}], "usage": {"prompt_tokens": 7}});
    let one = json!({"data": [{"index": 0, "embedding": [1, 2]}]});
    let rack = rack_before(
        None,
        [Reply::json(200, &vectors), Reply::json(200, &one), Reply::error(404, "no such model")],
    )
    .await;
    let (status, reply) =
        post(&rack, "/api/embed", &json!({"model": "e", "input": ["a", "b"], "dimensions": 2})).await;
    assert_eq!((status, &reply["embeddings"]), (200, &json!([[1.0, 2.0], [3.0, 4.0]])));
    assert_eq!(reply["prompt_eval_count"], 7);
    let (_, reply) = post(&rack, "/api/embeddings", &json!({"model": "e", "prompt": "a"})).await;
    assert_eq!(reply, json!({"embedding": [1.0, 2.0]}));
    let (status, error) = post(&rack, "/api/embed", &json!({"model": "f", "input": "a"})).await;
    assert_eq!((status, error), (404, json!({"error": "the model server answered 404: no such model"})));
    // Without a text the model is only loaded.
    assert_eq!(
        post(&rack, "/api/embed", &json!({"model": "e", "input": ""})).await.1["embeddings"],
        json!([])
    );

    let asked = rack.upstream.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[0].path, "/v1/embeddings");
    assert_eq!(
        asked[0].body,
        json!({"model": "e", "input": ["a", "b"], "dimensions": 2, "encoding_format": "float"})
    );
}

#[tokio::test]
async fn b13_what_is_for_an_ollama_is_passed_on_to_it() {
    let shown = json!({"capabilities": ["completion"], "model_info": {"llama.context_length": 8192}});
    let embedded = json!({"model": "e", "embeddings": [[1.0]], "x": 1});
    let rack = rack_before(Some("ollama"), [Reply::json(200, &shown), Reply::json(200, &embedded)]).await;
    let tags = get(&rack, "/api/tags").await;
    let names: Vec<&Value> = tags["models"].as_array().unwrap().iter().map(|model| &model["name"]).collect();
    let all = ["scripted", "org/scripted:8b", "embed-vectors", "scripted:plain", "org/scripted:8b:plain"];
    assert_eq!(names, all);
    assert_eq!(tags["models"][3]["modified_at"], "2026-01-02T03:04:05Z");
    // It is older than what answers here.
    assert_eq!(get(&rack, "/api/version").await, json!({"version": "0.14.0"}));
    assert_eq!(
        post(&rack, "/api/show", &json!({"model": "scripted:plain", "name": "", "verbose": true})).await,
        (200, shown)
    );
    let embed = json!({"model": "e", "input": "a", "keep_alive": "5m"});
    assert_eq!(post(&rack, "/api/embed", &embed).await, (200, embedded));
    let asked = rack.upstream.asked();
    assert_eq!(
        (asked[0].path.as_str(), &asked[0].body),
        ("/api/show", &json!({"model": "scripted", "verbose": true}))
    );
    assert_eq!((asked[1].path.as_str(), &asked[1].body), ("/api/embed", &embed));
}

#[tokio::test]
async fn b13_an_ollama_loads_and_unloads_models_and_continues_texts_itself() {
    let loaded = json!({"model": "scripted", "done": true, "done_reason": "load"});
    let continued = json!({"response": "b", "done": true});
    let replies = [&loaded, &loaded, &loaded, &continued, &continued].map(|reply| Reply::json(200, reply));
    let rack = rack_before(Some("ollama"), replies).await;
    let bodies = [
        ("/api/generate", json!({"model": "scripted"})),
        ("/api/generate", json!({"model": "scripted", "keep_alive": 0})),
        ("/api/chat", json!({"model": "scripted", "messages": []})),
        (
            "/api/generate",
            json!({"model": "scripted", "prompt": "a", "raw": true, "options": {"num_ctx": 9}}),
        ),
        ("/api/generate", json!({"model": "scripted", "prompt": "a", "suffix": "c", "stream": false})),
    ];
    for (at, (path, body)) in bodies.iter().enumerate() {
        let expected = if at < 3 { &loaded } else { &continued };
        assert_eq!(post(&rack, path, body).await, (200, expected.clone()));
        let asked = &rack.upstream.asked()[at];
        assert_eq!((asked.path.as_str(), &asked.body), (*path, body));
    }
    // The tools of the server have no part in it, whatever the model's name says of them.
    rack.upstream.push(Reply::json(200, &loaded));
    post(&rack, "/api/generate", &json!({"model": "scripted:plain"})).await;
    assert_eq!(rack.upstream.asked()[5].body, json!({"model": "scripted"}));
}

/// The command `ollama` reads no error of another shape.
#[tokio::test]
async fn b13_what_ollama_alone_has_is_refused_in_its_form() {
    let rack = rack_before(None, []).await;
    for path in [
        "/api/pull",
        "/api/push",
        "/api/create",
        "/api/copy",
        "/api/delete",
        "/api/blobs/sha256:1",
        "/api/me",
    ] {
        let (status, error) = post(&rack, path, &json!({"model": "m"})).await;
        assert_eq!(status, 404, "{path}");
        assert!(
            error["error"].as_str().is_some_and(|text| text.contains("`ollama pull`")),
            "{path}: {error}"
        );
    }
    let page = rack.client.get(rack.url("/")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Ollama is running"));
}

#[tokio::test]
async fn b13_models_of_other_servers_count_as_loaded() {
    let rack = rack_before(None, []).await;
    for (path, body, reason) in [
        ("/api/generate", json!({"model": "scripted"}), "load"),
        ("/api/generate", json!({"model": "scripted:latest", "prompt": "", "stream": false}), "load"),
        ("/api/generate", json!({"model": "scripted", "keep_alive": 0}), "unload"),
        ("/api/chat", json!({"model": "scripted", "messages": [], "keep_alive": "0s"}), "unload"),
        ("/api/chat", json!({"model": "scripted", "messages": [], "keep_alive": "5m"}), "load"),
    ] {
        let (status, line) = post(&rack, path, &body).await;
        assert_eq!((status, &line["model"], &line["done"]), (200, &body["model"], &json!(true)));
        assert_eq!(line["done_reason"], reason, "{body}");
        let said = if path == "/api/chat" { &line["message"]["content"] } else { &line["response"] };
        assert_eq!(said, "");
    }
    let (status, error) = post(&rack, "/api/generate", &json!({"model": "scriptd"})).await;
    assert_eq!(
        (status, error),
        (404, json!({"error": "there is no model `scriptd`; did you mean `scripted`?"}))
    );
    assert!(rack.upstream.asked().is_empty());
}

#[tokio::test]
async fn b13_other_servers_continue_texts_for_clients_of_ollama() {
    let chunk = |text: &str, finish: Value| {
        event(&json!({"choices": [{"index": 0, "text": text, "finish_reason": finish}]}))
    };
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let done = Act::Send(b"data: [DONE]\n\n".to_vec());
    let stream = [chunk("b", Value::Null), chunk("c", json!("length")), event(&usage), done];
    let whole = json!({"choices": [{"index": 0, "text": "bc", "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let broken = [chunk("b", Value::Null)];
    let replies = [
        Reply::stream(stream),
        Reply::json(200, &whole),
        Reply::error(400, "no suffix here"),
        Reply::stream(broken),
    ];
    let rack = rack_before(None, replies).await;
    let options = json!({"num_predict": 5, "temperature": 0.5, "stop": ["\n"], "num_ctx": 9});
    let asked = json!({"model": "scripted", "prompt": "a", "suffix": "d", "options": options});
    let response = rack.client.post(rack.url("/api/generate")).body(asked.to_string()).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<&Value> = lines.iter().map(|line| &line["response"]).collect();
    assert_eq!(said, ["b", "c", ""]);
    assert_eq!((&lines[2]["done"], &lines[2]["done_reason"]), (&json!(true), &json!("length")));
    assert_eq!((&lines[2]["prompt_eval_count"], &lines[2]["eval_count"]), (&json!(3), &json!(2)));

    let raw = json!({"model": "scripted:plain", "prompt": "a", "raw": true, "stream": false});
    let (status, reply) = post(&rack, "/api/generate", &raw).await;
    assert_eq!((status, &reply["response"], &reply["done_reason"]), (200, &json!("bc"), &json!("stop")));
    let refused = post(&rack, "/api/generate", &raw).await;
    assert_eq!(refused, (400, json!({"error": "no suffix here"})));
    let response = rack.client.post(rack.url("/api/generate")).body(asked.to_string()).send().await.unwrap();
    let text = response.text().await.unwrap();
    assert!(text.lines().last().unwrap().contains("\"error\""), "{text}");
    let (status, error) =
        post(&rack, "/api/generate", &json!({"model": "scripted", "raw": true, "images": ["aGk="]})).await;
    assert!(status == 400 && error["error"].as_str().unwrap().contains("`images`"), "{error}");

    let sent = rack.upstream.asked();
    assert_eq!(sent.len(), 4);
    assert_eq!(sent[0].path, "/v1/completions");
    assert_eq!(
        sent[0].body,
        json!({
            "model": "scripted", "prompt": "a", "suffix": "d", "max_tokens": 5, "temperature": 0.5, "stop": ["\n"],
            "stream": true, "stream_options": {"include_usage": true},
        })
    );
    assert_eq!(
        sent[1].body,
        json!({"model": "scripted", "prompt": "a", "max_tokens": null, "stream": false})
    );
}
