//! Lists of models in the form of each SDK, and requests without the server's tools.

use serde_json::{Value, json};

use super::rack_before;
use crate::support::{Rack, Reply, user};

async fn get(rack: &Rack, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let request = headers
        .iter()
        .fold(rack.client.get(rack.url(path)), |request, (name, value)| request.header(*name, *value));
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn ids<'v>(list: &'v Value, of: &str, field: &str) -> Vec<&'v str> {
    list[of].as_array().unwrap().iter().map(|model| model[field].as_str().unwrap()).collect()
}

const ANTHROPIC: &[(&str, &str)] = &[("anthropic-version", "2023-06-01")];
const GEMINI: &[(&str, &str)] = &[("x-goog-api-key", "k")];

#[tokio::test]
async fn b13_each_sdk_gets_the_models_in_its_form() {
    let rack = rack_before(None, []).await;
    let all = ["scripted", "org/scripted:8b", "embed-vectors", "scripted:plain", "org/scripted:8b:plain"];
    let (status, list) = get(&rack, "/v1/models", &[]).await;
    assert_eq!((status, list["object"].as_str().unwrap()), (200, "list"));
    assert_eq!(ids(&list, "data", "id"), all);
    assert!(list["data"][3]["created"].is_i64() && list["data"][3]["owned_by"].is_string(), "{list}");

    let (_, list) = get(&rack, "/v1/models?limit=1000", ANTHROPIC).await;
    assert_eq!(ids(&list, "data", "id"), all);
    assert_eq!(list["has_more"], false);
    assert_eq!((&list["first_id"], &list["last_id"]), (&json!(all[0]), &json!(all[4])));
    assert_eq!(
        (&list["data"][0]["type"], &list["data"][0]["created_at"]),
        (&json!("model"), &json!("1970-01-01T00:00:01Z"))
    );

    let prefixed = all.map(|id| format!("models/{id}"));
    for (path, headers) in
        [("/v1/models", GEMINI), ("/v1beta/models", &[]), ("/v1/models?pageSize=5&key=k", &[])]
    {
        let (_, list) = get(&rack, path, headers).await;
        assert_eq!(ids(&list, "models", "name"), prefixed, "{path}");
        assert_eq!(list["models"][2]["supportedGenerationMethods"], json!([]));
    }
}

#[tokio::test]
async fn b13_one_model_is_found_by_a_name_with_slashes_and_colons() {
    let rack = rack_before(None, []).await;
    for name in ["scripted", "org/scripted:8b", "org%2Fscripted%3A8b", "org/scripted:8b:plain", "scripted/"] {
        let id = name.replace("%2F", "/").replace("%3A", ":");
        let id = id.trim_end_matches('/');
        let one = |list: &str| format!("{list}/{name}");
        let (status, model) = get(&rack, &one("/v1/models"), &[]).await;
        assert_eq!((status, &model["id"], &model["object"]), (200, &json!(id), &json!("model")), "{name}");
        assert_eq!(get(&rack, &one("/v1/models"), ANTHROPIC).await.1["display_name"], id);
        assert_eq!(get(&rack, &one("/v1beta/models"), &[]).await.1["name"], format!("models/{id}"));
    }
}

#[tokio::test]
async fn b13_an_unknown_model_is_a_404_in_the_form_of_the_sdk() {
    let rack = rack_before(None, []).await;
    let (status, error) = get(&rack, "/v1/models/scriptd", &[]).await;
    assert_eq!((status, &error["error"]["type"]), (404, &json!("invalid_request_error")));
    assert_eq!(error["error"]["message"], "there is no model `scriptd`; did you mean `scripted`?");
    let (status, error) = get(&rack, "/v1/models/scriptd", ANTHROPIC).await;
    assert_eq!(
        (status, &error["type"], &error["error"]["type"]),
        (404, &json!("error"), &json!("not_found_error"))
    );
    let (status, error) = get(&rack, "/v1/models/scriptd", GEMINI).await;
    assert_eq!(
        (status, &error["error"]["code"], &error["error"]["status"]),
        (404, &json!(404), &json!("NOT_FOUND"))
    );
}

#[tokio::test]
async fn n14_a_header_or_an_alias_keeps_the_tools_of_the_server_away() {
    let rack = rack_before(None, [Reply::text("A title"), Reply::text("A title"), Reply::text("Hi")]).await;
    let body = |model: &str| json!({"model": model, "messages": [user("Title this.")]});
    let post = |model: &str, path: &str| rack.client.post(rack.url(path)).json(&body(model));
    let chat = "/v1/chat/completions";
    assert_eq!(post("scripted:plain", chat).send().await.unwrap().status(), 200);
    let by_header = post("scripted", "/v1/messages").header("x-toolrack-tools", "none").send().await.unwrap();
    assert_eq!(by_header.status(), 200);
    assert_eq!(post("scripted", chat).send().await.unwrap().status(), 200);
    let asked = rack.upstream.asked();
    let models: Vec<&Value> = asked.iter().map(|asked| &asked.body["model"]).collect();
    assert_eq!(models, ["scripted"; 3]);
    assert!(asked[0].tools().is_empty() && asked[1].tools().is_empty());
    assert_eq!(asked[2].tools(), ["add", "math_gcd"]);
    let wrong = post("scripted", chat).header("x-toolrack-tools", "all").send().await.unwrap();
    assert_eq!(wrong.status(), 400);
    let error: Value = wrong.json().await.unwrap();
    assert_eq!(error["error"]["param"], "x-toolrack-tools");
}
