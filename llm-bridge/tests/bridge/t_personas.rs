//! Personas through the entry points of the server: review row S15.

use std::time::Duration;

use llm_bridge::server::Access;
use registry_core::{
    Origin, Permission,
    guard::audit::Phase,
    store::{Persona, Store, User},
};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::t_access::Rack;

const HEADER: &str = "x-toolrack-persona";

async fn persona(rack: &Rack, name: &str, modules: &[&str]) {
    let allowed_modules = modules.iter().map(|module| (*module).to_owned()).collect();
    let persona = Persona { name: name.to_owned(), allowed_modules, created_at: jiff::Timestamp::now() };
    rack.store.put_persona("default", persona).await.unwrap();
}

/// A user with these personas; gives the key.
async fn user(rack: &Rack, id: &str, level: Permission, personas: &[&str]) -> String {
    let key = rack.user("default", id, level).await;
    let known = rack.store.user("default", id).await.unwrap().unwrap();
    let personas = personas.iter().map(|name| (*name).to_owned()).collect();
    rack.store.put_user("default", User { personas, ..known }).await.unwrap();
    key
}

async fn sent(request: RequestBuilder) -> (StatusCode, Value) {
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap_or_default())
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// A rack with the personas `plain` (tools without a module) and `filing` (`files`).
async fn rack() -> Rack {
    let rack = Rack::start(Access::default()).await;
    persona(&rack, "plain", &["local"]).await;
    persona(&rack, "filing", &["files"]).await;
    persona(&rack, "ruling", &["admins"]).await;
    rack
}

fn call(tool: &str) -> Value {
    json!({"tool_name": tool, "arguments": {}})
}

#[tokio::test]
async fn s15_a_request_may_name_a_persona_of_its_user() {
    let rack = rack().await;
    let ada = user(&rack, "ada", Permission::User, &["plain", "filing"]).await;
    assert_eq!(rack.tools(&ada).await, ["echo", "once"], "the first one is the default");
    let named =
        |name: &'static str, tool: &str| rack.post("/execute", &ada, &call(tool)).header(HEADER, name);
    assert_eq!(sent(named("filing", "echo")).await.0, StatusCode::FORBIDDEN);
    assert_eq!(sent(named("filing", "files.erase")).await.0, StatusCode::ACCEPTED);
    assert_eq!(sent(named("plain", "echo")).await.0, StatusCode::OK);
    let listed =
        rack.client.get(format!("{}/api/tools", rack.base)).bearer_auth(&ada).header(HEADER, "filing");
    assert!(sent(listed).await.1.to_string().contains("files.erase"));

    // Over MCP, with and without.
    let over_mcp = |persona: Option<&'static str>| {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }}});
        let request = rack.post("/mcp", &ada, &list).header("accept", "application/json, text/event-stream");
        let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/list");
        persona.map_or(request.try_clone().unwrap(), |name| request.header(HEADER, name))
    };
    for (persona, has, has_not) in [(None, "echo", "erase"), (Some("filing"), "erase", "echo")] {
        let listed = over_mcp(persona).send().await.unwrap().text().await.unwrap();
        assert!(listed.contains(has) && !listed.contains(has_not), "{persona:?}: {listed}");
    }

    // In a chat: what the demo model is asked to call.
    let chat = |toolrack: Value| {
        let question = json!([{"role": "user", "content": "Use echo: hello"}]);
        rack.post("/v1/chat/completions", &ada, &json!({"messages": question, "toolrack": toolrack}))
    };
    let called = |answer: &Value| {
        answer["x_toolrack"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|event| event["name"] == "echo" && event["type"] == "call_finished")
    };
    let (status, answer) = sent(chat(json!({}))).await;
    assert!(status == StatusCode::OK && called(&answer), "{answer}");
    let (status, answer) = sent(chat(json!({"persona": "filing"}))).await;
    assert!(status == StatusCode::OK && !called(&answer), "{answer}");
    let (status, answer) = sent(chat(json!({"persona": "ruling"}))).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert_eq!(
        message(&answer),
        "ada may not use the persona `ruling`: use `filing` or `plain`, or leave it out"
    );
}

#[tokio::test]
async fn s15_a_persona_that_a_user_does_not_have_is_refused_with_those_the_user_has() {
    let rack = rack().await;
    let ada = user(&rack, "ada", Permission::Admin, &["plain"]).await;
    for (name, path) in
        [("ruling", "/execute"), ("nothing", "/execute"), ("ruling", "/mcp"), ("", "/execute")]
    {
        let (status, answer) = sent(rack.post(path, &ada, &call("echo")).header(HEADER, name)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{name}: {answer}");
        assert_eq!(answer["error"]["type"], "persona_not_allowed");
        let expected = format!("ada may not use the persona `{name}`: use `plain`, or leave it out");
        assert_eq!(message(&answer), expected);
    }
    // Without any every one may be named, as it can only take something away.
    let bob = user(&rack, "bob", Permission::User, &[]).await;
    let named =
        |name: &'static str, tool: &str| rack.post("/execute", &bob, &call(tool)).header(HEADER, name);
    assert_eq!(sent(named("plain", "echo")).await.0, StatusCode::OK);
    assert_eq!(sent(named("filing", "echo")).await.0, StatusCode::FORBIDDEN);
    assert_eq!(sent(named("ruling", "admins.only")).await.0, StatusCode::FORBIDDEN, "the level stays");
    let (_, answer) = sent(named("nothing", "echo")).await;
    assert!(message(&answer).contains("`filing` or `plain` or `ruling`"), "{answer}");
    // Nor does the user without a key get more than it has.
    let keyless = rack.client.post(format!("{}/execute", rack.base)).json(&call("echo"));
    assert_eq!(sent(keyless.try_clone().unwrap()).await.0, StatusCode::OK);
    assert_eq!(sent(keyless.header(HEADER, "filing")).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn s15_a_persona_that_is_gone_allows_nothing() {
    let rack = rack().await;
    let ada = user(&rack, "ada", Permission::User, &["plain", "filing"]).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let delete = |query: &str| {
        rack.client.delete(format!("{}/api/personas/plain{query}", rack.base)).bearer_auth(&root)
    };
    let (status, answer) = sent(delete("")).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(
        message(&answer),
        "the persona `plain` is that of ada; give them another one first, or send `?force=true`"
    );
    assert_eq!(rack.tools(&ada).await, ["echo", "once"]);
    assert_eq!(sent(delete("?force=true")).await.0, StatusCode::NO_CONTENT);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(rack.tools(&ada).await.is_empty());
    assert_eq!(sent(delete("")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn s15_admins_keep_personas_over_http_and_each_change_is_audited() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    rack.user("default", "boss", Permission::Owner).await;
    let new = json!({"name": "reading", "allowed_modules": ["local"]});
    for (path, body) in [
        ("/api/personas", &new),
        ("/api/personas/reading", &json!({"allowed_modules": []})),
        ("/api/users/ada/personas", &json!({"personas": []})),
    ] {
        let (status, answer) = sent(rack.post(path, &ada, body)).await;
        assert!(
            status == StatusCode::FORBIDDEN && message(&answer).contains("user promote ada admin"),
            "{answer}"
        );
    }
    let (status, added) = sent(rack.post("/api/personas", &root, &new)).await;
    assert_eq!(
        (status, &added["name"], &added["allowed_modules"]),
        (StatusCode::CREATED, &json!("reading"), &json!(["local"]))
    );
    assert_eq!(sent(rack.post("/api/personas", &root, &new)).await.0, StatusCode::CONFLICT);
    let modules = json!({"allowed_modules": ["files", "local"]});
    let (status, changed) = sent(rack.post("/api/personas/reading", &root, &modules)).await;
    assert_eq!((status, &changed["allowed_modules"]), (StatusCode::OK, &json!(["files", "local"])));
    for (path, body, status, told) in [
        ("/api/personas/raeding", &modules, StatusCode::NOT_FOUND, "did you mean `reading`?"),
        ("/api/personas", &json!({"name": ""}), StatusCode::BAD_REQUEST, "allowed_modules"),
        (
            "/api/personas",
            &json!({"name": "", "allowed_modules": []}),
            StatusCode::BAD_REQUEST,
            "1 to 256 bytes",
        ),
        (
            "/api/personas",
            &json!({"name": "a", "allowed_modules": [""]}),
            StatusCode::BAD_REQUEST,
            "1 to 256 bytes",
        ),
        (
            "/api/users/ada/personas",
            &json!({"personas": ["none"]}),
            StatusCode::NOT_FOUND,
            "no persona `none`",
        ),
        (
            "/api/users/eve/personas",
            &json!({"personas": ["reading"]}),
            StatusCode::NOT_FOUND,
            "no user `eve`",
        ),
        ("/api/users/boss/personas", &json!({"personas": []}), StatusCode::FORBIDDEN, "above yours"),
    ] {
        let (answered, answer) = sent(rack.post(path, &root, body)).await;
        assert!(answered == status && message(&answer).contains(told), "{path} {body}: {answer}");
    }
    let (status, given) =
        sent(rack.post("/api/users/ada/personas", &root, &json!({"personas": ["reading"]}))).await;
    assert_eq!((status, given), (StatusCode::OK, json!({"personas": ["reading"]})));
    let list = async |key: &str| {
        sent(rack.client.get(format!("{}/api/personas", rack.base)).bearer_auth(key)).await.1
    };
    assert_eq!(list(&root).await["personas"][0]["users"], json!(["ada"]));
    let own = list(&ada).await;
    assert!(own["personas"][0]["name"] == "reading" && own["personas"][0].get("users").is_none(), "{own}");

    let records = rack.audit.records();
    let done: Vec<(&str, &str)> = records
        .iter()
        .filter(|record| record.phase == Phase::Outcome && record.success == Some(true))
        .map(|record| (&*record.user, &*record.tool))
        .collect();
    let commands = ["persona add", "persona modules", "user persona"].map(|name| format!("toolrack {name}"));
    assert_eq!(done, commands.each_ref().map(|command| ("root", command.as_str())));
    assert!(records.iter().all(|record| record.origin == Origin::Http), "{records:?}");
    assert_eq!(records[0].arguments, Some(new));
}
