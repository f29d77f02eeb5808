//! The addresses of Ollama's API, before an Ollama and before other servers.

use serde_json::{Value, json};

use super::rack_before;
use crate::support::{Rack, Reply};

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
    assert_eq!(tags["models"][0]["modified_at"], "1970-01-01T00:00:01Z");
    assert_eq!(get(&rack, "/api/ps").await["models"][0]["model"], "scripted");
    let version = get(&rack, "/api/version").await;
    assert_eq!(version["version"].as_str().unwrap().split('.').count(), 3);

    let (status, shown) = post(&rack, "/api/show", &json!({"model": "scripted:latest"})).await;
    assert_eq!((status, &shown["capabilities"]), (200, &json!(["completion", "tools"])));
    assert_eq!(shown["model_info"], json!({}));
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
    assert_eq!(get(&rack, "/api/version").await, json!({"version": "0.13.1"}));
    assert_eq!(
        post(&rack, "/api/show", &json!({"model": "scripted:plain", "verbose": true})).await,
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
