//! Tools that admins register, switch and remove over HTTP: review row S13.

use llm_bridge::server::Access;
use registry_core::{Permission, guard::audit::Phase};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::t_access::Rack;

#[tokio::test]
async fn s13_admins_register_switch_and_remove_tools_over_http() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let post = async |path: &str, key: &str, body: &Value| -> (StatusCode, Value) {
        let answer = rack.post(path, key, body).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    };
    let delete = async |name: &str, key: &str| {
        let request = rack.client.delete(format!("{}/api/tools/{name}", rack.base)).bearer_auth(key);
        let answer = request.send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    // The spec of the seed.
    let spec = json!({
        "tool_name": "weather_lookup",
        "version": "1.0.0",
        "description": "Look up weather data",
        "input_schema": {"city": "string"},
        "output_schema": {"temp": "number"},
        "tags": ["weather", "api"],
    });
    assert_eq!(post("/api/tools", &ada, &spec).await.0, StatusCode::FORBIDDEN);
    let (status, registered) = post("/api/tools", &root, &spec).await;
    assert_eq!((status, &registered["spec"], &registered["enabled"]), (StatusCode::OK, &spec, &json!(true)));
    let created_at = registered["created_at"].as_str().unwrap().to_owned();
    assert_eq!(
        post("/api/tools", &root, &spec).await,
        (StatusCode::OK, registered),
        "the same spec: unchanged"
    );
    for enabled in [false, false, true] {
        let (status, switched) = post("/api/tools/weather_lookup", &root, &json!({"enabled": enabled})).await;
        let registration = json!({"spec": spec, "enabled": enabled, "created_at": created_at});
        assert_eq!((status, switched), (StatusCode::OK, registration));
    }
    let limited = json!({"limits": {"daily_limit": 2, "cooldown_seconds": 0}});
    assert_eq!(post("/api/tools/weather_lookup", &ada, &limited).await.0, StatusCode::FORBIDDEN);
    let (status, set) = post("/api/tools/weather_lookup", &root, &limited).await;
    assert_eq!((status, &set["limits"]), (StatusCode::OK, &limited["limits"]));
    let listed = rack.client.get(format!("{}/api/tools", rack.base)).bearer_auth(&root).send().await.unwrap();
    let listed: Value = listed.json().await.unwrap();
    let listed = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "weather_lookup");
    let daily = json!({"value": 2, "from": "admin", "own": 0});
    assert_eq!(listed.unwrap()["limits"]["daily_limit"], daily);
    let (status, both) =
        post("/api/tools/weather_lookup", &root, &json!({"limits": {}, "enabled": true})).await;
    assert_eq!((status, both.get("limits")), (StatusCode::OK, None));
    for nothing in [json!({}), json!({"limits": {"daily_limit": -1}}), json!({"limits": {"weekly": 1}})] {
        let (status, _) = post("/api/tools/weather_lookup", &root, &nothing).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{nothing}");
    }
    let with = |field: &str, value: Value| {
        let mut spec = spec.clone();
        spec[field] = value;
        spec
    };
    for (body, status, told) in [
        (with("input_schema", json!({})), StatusCode::CONFLICT, "give the new one another version"),
        (with("input_schema", json!(7)), StatusCode::BAD_REQUEST, "an object or a boolean"),
        (with("input_schema", json!(null)), StatusCode::BAD_REQUEST, "an object or a boolean"),
        (with("output_schema", json!("x")), StatusCode::BAD_REQUEST, "an object or a boolean"),
        (with("output_schema", json!(null)), StatusCode::BAD_REQUEST, "an object or a boolean"),
        (with("color", json!("red")), StatusCode::BAD_REQUEST, "unknown field `color`"),
        (with("tool_name", json!(" ")), StatusCode::BAD_REQUEST, "1 to 256 bytes"),
        (with("tool_name", json!("weather lookup")), StatusCode::BAD_REQUEST, "letters, digits, `_` and `-`"),
        (with("tool_name", json!("weather.")), StatusCode::BAD_REQUEST, "with dots between them"),
        (with("tool_name", json!("w\u{e9}ather")), StatusCode::BAD_REQUEST, "letters, digits, `_` and `-`"),
        (json!({"tool_name": "x"}), StatusCode::BAD_REQUEST, "missing field `input_schema`"),
        (with("description", json!("x".repeat(300_000))), StatusCode::BAD_REQUEST, "over 256 KiB"),
    ] {
        let (answered, answer) = post("/api/tools", &root, &body).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(answered == status && message.contains(told), "{answered}: {message}");
    }
    let newer = with("version", json!("2.0.0"));
    assert_eq!(post("/api/tools", &root, &newer).await.1["spec"], newer);

    assert_eq!(delete("weather_lookup", &ada).await.0, StatusCode::FORBIDDEN);
    for _ in 0..2 {
        assert_eq!(delete("weather_lookup", &root).await, (StatusCode::NO_CONTENT, String::new()));
    }
    assert_eq!(
        post("/api/tools/weather_lookup", &root, &json!({"enabled": true})).await.0,
        StatusCode::NOT_FOUND
    );

    let records = rack.audit.records();
    let outcomes =
        records.iter().filter(|record| record.phase == Phase::Outcome && record.success == Some(true));
    let made: Vec<&str> = outcomes.filter_map(|record| record.tool.strip_prefix("toolrack tools ")).collect();
    let expected = [
        "register", "register", "disable", "disable", "enable", "limit", "limit", "enable", "register",
        "remove", "remove",
    ];
    assert_eq!(made, expected);
}
