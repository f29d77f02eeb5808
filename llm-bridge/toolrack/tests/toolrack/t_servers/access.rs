//! Who is let in.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::program::{Rack, client, mock};

#[tokio::test]
async fn b10_an_open_address_is_served_with_keys_only() {
    let rack = Rack::new("", &mock("count.free", ""));
    let reported = rack.does_not_serve_on("0.0.0.0:0");
    assert!(reported.contains("refusing to serve") && reported.contains("toolrack key create"), "{reported}");
    rack.done(&["user", "add", "ada"]);
    assert!(rack.does_not_serve_on("0.0.0.0:0").contains("refusing to serve"), "a user is no key");
    let (id, ada) = rack.key("ada", &[]);

    let (mut server, client) = (rack.serve_on("0.0.0.0:0"), client());
    assert_eq!(server.call(&client, &ada, "count.free").await.status(), StatusCode::OK);
    for key in ["", "none", "trk_00"] {
        for (path, is_post) in
            [("/execute", true), ("/api/approvals", false), ("/api/tools", false), ("/v1/models", false)]
        {
            let url = format!("{}{path}", server.base);
            let request = if is_post { client.post(url).json(&json!({})) } else { client.get(url) };
            let request = if key.is_empty() { request } else { request.bearer_auth(key) };
            assert_eq!(
                request.send().await.unwrap().status(),
                StatusCode::UNAUTHORIZED,
                "{path} with {key:?}"
            );
        }
    }
    let health = client.get(format!("{}/healthz", server.base)).send().await.unwrap();
    assert_eq!(health.status(), StatusCode::OK);
    server.kill();

    rack.done(&["key", "revoke", &id]);
    assert!(rack.does_not_serve_on("0.0.0.0:0").contains("refusing to serve"), "a revoked key is none");
}

#[tokio::test]
async fn b10_other_pages_and_other_names_are_turned_away_on_every_route() {
    let rack = Rack::new("", &mock("count.free", ""));
    rack.done(&["user", "add", "root", "--level", "admin"]);
    let (_, root) = rack.key("root", &[]);
    let (server, client) = (rack.serve(), client());
    let own = server.base.strip_prefix("http://").unwrap();
    let port = own.rsplit(':').next().unwrap();
    let routes = [
        ("/execute", Some(json!({"tool_name": "count.free"})), 200),
        ("/api/tools/count.free", Some(json!({"enabled": true})), 200),
        ("/api/tools", None, 200),
        ("/api/approvals", None, 200),
        ("/api/approvals/none", Some(json!({"approve": true})), 404),
    ];
    let own_page = format!("http://{own}");
    let same_name = format!("http://localhost:{port}");
    let senders = [
        // Host, Origin, and the error that turns them away.
        (None, None, None),
        (None, Some(own_page.as_str()), None),
        (Some("localhost"), None, None),
        // A page that has bound its own name to this server has no key.
        (Some("evil.example"), None, None),
        (Some("localhost.evil.example"), Some(own_page.as_str()), Some((403, "origin_not_allowed"))),
        (None, Some("http://evil.example"), Some((403, "origin_not_allowed"))),
        (None, Some("http://127.0.0.1:1"), Some((403, "origin_not_allowed"))),
        (None, Some(same_name.as_str()), Some((403, "origin_not_allowed"))),
        (None, Some("null"), Some((403, "origin_not_allowed"))),
    ];
    for (path, ..) in &routes {
        let request = client.get(format!("{}{path}", server.base)).header("host", "evil.example");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 421, "{path} without a key");
        let reply: Value = answer.json().await.unwrap();
        assert_eq!(reply["error"]["type"], "host_not_allowed", "{path}");
    }
    for (path, body, status) in &routes {
        for (host, origin, refused) in senders {
            let url = format!("{}{path}", server.base);
            let mut request = match body {
                Some(body) => client.post(url).json(body),
                None => client.get(url),
            };
            for (name, value) in [("host", host), ("origin", origin)] {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
            let answer = request.bearer_auth(&root).send().await.unwrap();
            let (expected, kind) = refused.unwrap_or((*status, ""));
            assert_eq!(answer.status().as_u16(), expected, "{path} {host:?} {origin:?}");
            let reply: Value = answer.json().await.unwrap();
            if refused.is_some() {
                assert_eq!(reply["error"]["type"], kind, "{path} {host:?} {origin:?}: {reply}");
            }
        }
    }
    // Of the nine senders four may call and switch the tool, with two records each; nothing of the others has come so far.
    assert_eq!(rack.export(&["--origin", "http"]).len(), 2 * 2 * 4);
}

#[tokio::test]
async fn s5_without_any_key_the_local_user_is_an_admin() {
    let tools =
        mock("count.free", "") + &mock("count.wipe", "effect = \"destructive\"\npermission = \"user\"");
    let rack = Rack::new("", &tools);
    let (mut server, client) = (rack.serve(), client());
    let refresh = async |server: &super::program::Serving| {
        let answer = client.post(format!("{}/refresh-tools", server.base)).send().await.unwrap();
        let status = answer.status();
        (
            status,
            answer.json::<Value>().await.unwrap()["error"]["message"].as_str().unwrap_or_default().to_owned(),
        )
    };
    assert_eq!(refresh(&server).await.0, StatusCode::OK);
    // A person is asked all the same.
    assert_eq!(server.call(&client, "none", "count.wipe").await.status(), StatusCode::ACCEPTED);

    // As soon as somebody has a key, whoever brings none is a user.
    rack.done(&["user", "add", "ada"]);
    let (id, ada) = rack.key("ada", &[]);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let (status, reported) = refresh(&server).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(reported.contains("set `level = \"admin\"` under [user]"), "{reported}");
    let request = server.post(&client, "/api/tools/count.free", &ada, &json!({"enabled": false}));
    let refused: Value = request.send().await.unwrap().json().await.unwrap();
    let reported = refused["error"]["message"].as_str().unwrap();
    assert!(reported.contains("toolrack user promote ada admin"), "{reported}");
    rack.done(&["key", "revoke", &id]);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(refresh(&server).await.0, StatusCode::OK);
    server.kill();

    rack.write("", &(tools + "[user]\nlevel = \"user\"\n"));
    let server = rack.serve();
    assert_eq!(refresh(&server).await.0, StatusCode::FORBIDDEN);
}
