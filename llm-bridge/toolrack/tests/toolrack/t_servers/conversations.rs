//! What the program does with the conversations that it keeps.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use registry_core::store::{ConversationError, ConversationLimits, Conversations, StoredResponse};
use serde_json::{Value, json};
use toolrack_stores::SqliteSettings;

use super::program::{Rack, Serving, client};

fn response(user: &str, id: &str, previous: Option<&str>) -> StoredResponse {
    StoredResponse {
        id: id.to_owned(),
        tenant: "default".to_owned(),
        user: user.to_owned(),
        previous: previous.map(str::to_owned),
        model: "demo".to_owned(),
        messages: "[]".into(),
        given: "".into(),
        created_at: Timestamp::now(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b13_conversations_go_with_their_user_and_when_none_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolrack.db");
    let url = format!("url = 'sqlite:{}'", file.display());
    let rack = Rack::new(&url, "");
    rack.done(&["user", "add", "ada"]);
    let store = Arc::new(SqliteSettings::new(&file).open().await.unwrap());
    let conversations = Conversations::new(store, ConversationLimits::default());
    for (user, id, previous) in
        [("ada", "r1", None), ("ada", "r2", Some("r1")), ("local", "r1", None), ("bob", "r1", None)]
    {
        conversations.keep(response(user, id, previous)).await.unwrap();
    }
    let removed = |user: &str| {
        let output = rack.run(&["user", "remove", user]);
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (_, reported) = removed("ada");
    assert!(reported.contains("removed ada") && reported.contains("which had 2 responses"), "{reported}");
    // The user of requests without a key is not stored.
    let (succeeded, reported) = removed("local");
    assert!(
        succeeded && reported.contains("no stored user") && reported.contains("had 1 response"),
        "{reported}"
    );
    assert!(removed("local").1.contains("there is no user `local`"));
    for (user, is_there) in [("ada", false), ("local", false), ("bob", true)] {
        assert_eq!(conversations.response("default", user, "r1").await.is_ok(), is_there, "{user}");
    }

    // A server that keeps none deletes those that were kept.
    rack.write(&url, "[conversations]\nretention_days = 0");
    let _server = rack.serve();
    let begun = Instant::now();
    while conversations.response("default", "bob", "r1").await != Err(ConversationError::Unknown) {
        assert!(begun.elapsed() < Duration::from_secs(10), "still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b13_a_kept_response_and_its_items_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("url = 'sqlite:{}'", folder.path().join("toolrack.db").display());
    let (rack, client) = (Rack::new(&url, ""), client());
    let ask = async |server: &Serving, body: Value| -> Value {
        let reply = client.post(format!("{}/v1/responses", server.base)).json(&body).send().await.unwrap();
        assert!(reply.status().is_success(), "{reply:?}");
        reply.json().await.unwrap()
    };
    let mut server = rack.serve();
    let given = ask(&server, json!({"input": "Hello", "metadata": {"a": "b"}})).await;
    // Whatever has been acknowledged is kept.
    server.kill();
    let server = rack.serve();
    let address = format!("{}/v1/responses/{}", server.base, given["id"].as_str().unwrap());
    let kept: Value = client.get(&address).send().await.unwrap().json().await.unwrap();
    assert_eq!(kept, given);
    let reference = json!({"type": "item_reference", "id": given["output"][0]["id"]});
    let input =
        json!([{"role": "user", "content": "Hello"}, reference, {"role": "user", "content": "Again"}]);
    let next = ask(&server, json!({ "input": input })).await;
    let listed =
        format!("{}/v1/responses/{}/input_items?order=asc", server.base, next["id"].as_str().unwrap());
    let items: Value = client.get(&listed).send().await.unwrap().json().await.unwrap();
    assert_eq!(items["data"][1], given["output"][0]);
}
