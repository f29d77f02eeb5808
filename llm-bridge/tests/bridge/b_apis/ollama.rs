//! The addresses of Ollama's API, before a server that is no Ollama.

use serde_json::{Value, json};

use crate::support::{Rack, Reply, Setup};

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
async fn issue16_ollamas_lists_are_made_of_what_the_server_lists() {
    let rack = Setup::new().start([]).await;
    let tags = get(&rack, "/api/tags").await;
    let names: Vec<&Value> = tags["models"].as_array().unwrap().iter().map(|model| &model["name"]).collect();
    assert_eq!(names.len(), 5);
    assert_eq!((names[0], names[3]), (&json!("scripted"), &json!("scripted:plain")));
    assert_eq!(tags["models"][0]["modified_at"], "1970-01-01T00:00:00Z");
    assert_eq!(get(&rack, "/api/ps").await["models"][0]["model"], "scripted");
    let version = get(&rack, "/api/version").await;
    assert_eq!(version["version"].as_str().unwrap().split('.').count(), 3);

    let (status, shown) = post(&rack, "/api/show", &json!({"model": "scripted:latest"})).await;
    assert_eq!((status, &shown["capabilities"]), (200, &json!(["completion", "tools"])));
    assert_eq!(shown["model_info"], json!({}));
    let (_, shown) = post(&rack, "/api/show", &json!({"name": "scripted-embed"})).await;
    assert_eq!(shown["capabilities"], json!(["embedding"]));
    let unknown = post(&rack, "/api/show", &json!({"model": "scriptd"})).await;
    assert_eq!(unknown, (404, json!({"error": "there is no model `scriptd`; did you mean `scripted`?"})));
    let (status, error) = post(&rack, "/api/show", &json!({})).await;
    assert!(status == 400 && error["error"].as_str().unwrap().contains("`model`"), "{error}");
}

#[tokio::test]
async fn issue16_ollamas_vectors_are_made_by_the_embeddings_of_openai() {
    let vectors = json!({"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": [1, 2]}], "usage": {"prompt_tokens": 7}});
    let one = json!({"data": [{"index": 0, "embedding": [1, 2]}]});
    let rack = Setup::new().start([Reply::json(200, &vectors), Reply::json(200, &one), Reply::error(404, "no such model")]).await;
    let (status, reply) = post(&rack, "/api/embed", &json!({"model": "e", "input": ["a", "b"], "dimensions": 2})).await;
    assert_eq!((status, &reply["embeddings"]), (200, &json!([[1.0, 2.0], [3.0, 4.0]])));
    assert_eq!(reply["prompt_eval_count"], 7);
    let (_, reply) = post(&rack, "/api/embeddings", &json!({"model": "e", "prompt": "a"})).await;
    assert_eq!(reply, json!({"embedding": [1.0, 2.0]}));
    let (status, error) = post(&rack, "/api/embed", &json!({"model": "f", "input": "a"})).await;
    assert_eq!((status, error), (404, json!({"error": "the model server answered 404: no such model"})));
    // Without a text the model is only loaded.
    assert_eq!(post(&rack, "/api/embed", &json!({"model": "e", "input": ""})).await.1["embeddings"], json!([]));

    let asked = rack.upstream.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[0].path, "/v1/embeddings");
    assert_eq!(asked[0].body, json!({"model": "e", "input": ["a", "b"], "dimensions": 2, "encoding_format": "float"}));
}
