//! What the entry points make of odd requests, and how tools are found through them: requirements T5, L5, M8, B8.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{
    program::{Rack, client, mock},
    servers::postgres,
};

/// The same set-up on every store there is.
fn racks(test: &str, tools: &str) -> Vec<Rack> {
    let postgres = postgres(test).map(|url| format!("url = \"{url}\""));
    [Some(String::new()), postgres].into_iter().flatten().map(|store| Rack::new(&store, tools)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t5_a_call_that_is_not_understood_leaves_its_record_and_what_names_no_tool_is_none() {
    for rack in racks("t5_a_call_that_is_not_understood_leaves_its_record", &mock("count.free", "")) {
        rack.done(&["user", "add", "hop"]);
        let ((_, hop), server, client) = (rack.key("hop", &["--delegate"]), rack.serve(), client());
        let long = "x".repeat(100_000);
        for (body, param, reported) in [
            (json!({"tool_name": "count.free", "argumets": {}}), "body", "`argumets`"),
            (json!({"tool_name": "count.free", "arguments": {}, "user_id": 7}), "body", "string"),
            (json!({"tool_name": "count.free", "approval_wait_seconds": "long"}), "body", "number"),
            (json!({"tool_name": "count.free", "approval_wait_seconds": long}), "body", "…"),
            (json!({"tool_name": long, "arguments": {"n": 1}, "x": 1}), "body", "`x`"),
            (json!({"tool_name": "none\u{0}", "user_id": "a\u{0}"}), "user_id", "control characters"),
            (json!({"tool_name": "count.free", "user_id": long}), "user_id", "256 bytes"),
        ] {
            let before = rack.export(&[]).len();
            let answer = server.post(&client, "/execute", &hop, &body).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
            let reply: Value = answer.json().await.unwrap();
            assert_eq!(reply["error"]["param"], param);
            let message = reply["error"]["message"].as_str().unwrap();
            assert!(message.contains(reported) && message.len() < 1000, "{message}");
            let [record] = rack.export(&[]).split_off(before).try_into().unwrap();
            let said = |key: &str| record[key].as_str().unwrap();
            let name = body["tool_name"].as_str().unwrap();
            let name = if name.len() > 256 { format!("{}…", &name[..256]) } else { name.to_owned() };
            assert_eq!((said("user"), said("tool"), said("origin")), ("hop", &*name, "http"));
            assert_eq!((said("phase"), said("error")), ("outcome", "invalid_arguments"));
            assert_eq!(said("error_message"), message);
        }
        let before = rack.export(&[]).len();
        for body in [json!([]), json!({}), json!({"tool_name": 7}), json!({"tool_name": null}), json!("x")] {
            let answer = server.post(&client, "/execute", &hop, &body).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{body}");
        }
        let url = format!("{}/execute", server.base);
        let broken = client.post(url).bearer_auth(&hop).header("content-type", "application/json").body("{");
        assert_eq!(broken.send().await.unwrap().status(), StatusCode::BAD_REQUEST);
        assert_eq!(rack.export(&[]).len(), before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b8_no_id_has_a_nul_on_any_store() {
    for rack in racks("b8_no_id_has_a_nul_on_any_store", &mock("count.free", "")) {
        rack.done(&["user", "add", "root", "--level", "admin"]);
        let ((_, root), server, client) = (rack.key("root", &["--delegate"]), rack.serve(), client());
        for (path, body, status) in [
            ("/api/approvals/%00", json!({"approve": true}), 404),
            ("/api/approvals/a%00b", json!({"approve": false}), 404),
            ("/api/tools/%00", json!({"enabled": false}), 404),
            ("/api/tools/count.free%00", json!({"enabled": false}), 404),
            ("/api/dead-letters/%00", json!({}), 404),
            ("/execute", json!({"tool_name": "count.free", "user_id": "\u{0}"}), 400),
            ("/execute", json!({"tool_name": "count.free\u{0}"}), 404),
        ] {
            let answer = server.post(&client, path, &root, &body).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), status, "{path} {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m8_a_reply_names_its_call_as_the_audit_does() {
    let rack = Rack::new(
        "",
        &(mock("count.free", "") + &mock("count.gone", "permission = \"guest\"\neffect = \"destructive\"")),
    );
    rack.done(&["user", "add", "ada"]);
    let ((_, ada), server, client) = (rack.key("ada", &[]), rack.serve(), client());
    for (tool, status, records) in [("count.free", 200, 2), ("count.gone", 202, 1), ("count.none", 404, 1)] {
        let answer = server.call(&client, &ada, tool).await;
        assert_eq!(answer.status().as_u16(), status);
        let reply: Value = answer.json().await.unwrap();
        let id = reply["call_id"].as_str().unwrap();
        let found = rack.export(&["--call-id", id]);
        assert_eq!(found.len(), records, "{reply}");
        assert!(found.iter().all(|record| record["tool"] == tool && record["call_id"] == id), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l5_tools_are_found_by_words_and_tags_among_those_one_may_use() {
    let tagged = |tags: &str, more: &str| format!("tags = {tags}\n{more}");
    let tools = mock("mail.send", &tagged("[\"post\", \"net\"]", ""))
        + &mock("mail.read", &tagged("[\"post\"]", ""))
        + &mock("all.sender", &tagged("[\"post\", \"net\"]", "permission = \"admin\""));
    let rack = Rack::new("", &tools);
    rack.done(&["user", "add", "ada"]);
    rack.done(&["user", "add", "root", "--level", "admin"]);
    rack.done(&["tools", "disable", "mail.send"]);
    let ((_, ada), (_, root)) = (rack.key("ada", &[]), rack.key("root", &[]));
    let (server, client) = (rack.serve(), client());
    for (query, key, names) in [
        ("search=SEND", &ada, &["mail.send"][..]),
        ("search=send", &root, &["mail.send", "all.sender"]),
        ("search=mail+send", &root, &["mail.send"]),
        ("tag=Post&tag=net", &ada, &["mail.send"]),
        ("tag=post&search=mail", &ada, &["mail.read", "mail.send"]),
        ("tag=post&search=mail&tag=", &ada, &["mail.read", "mail.send"]),
        ("search=nothing+like+it", &ada, &[]),
        ("tag=pos", &ada, &[]),
        ("search=%00", &ada, &[]),
    ] {
        let url = format!("{}/api/tools?{query}", server.base);
        let answer = client.get(url).bearer_auth(key).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{query}");
        let listed: Value = answer.json().await.unwrap();
        let found: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(found, names, "{query}");
    }
    for query in ["serach=x", "search=a&search=b"] {
        let url = format!("{}/api/tools?{query}", server.base);
        let answer = client.get(url).bearer_auth(&ada).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{query}");
        let reply: Value = answer.json().await.unwrap();
        assert!(reply["error"]["message"].as_str().unwrap().contains("`search`"), "{reply}");
    }
    let everything =
        client.get(format!("{}/api/tools?", server.base)).bearer_auth(&ada).send().await.unwrap();
    let everything: Value = everything.json().await.unwrap();
    assert!(everything["tools"].as_array().unwrap().len() > 2);
}
