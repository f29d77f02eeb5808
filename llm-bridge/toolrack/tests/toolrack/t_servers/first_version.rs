//! The data folder of the first version (commit f98c57d), as its program left it: all that it had is there with this one.

use std::process::Command;

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::program::{Rack, client};

/// The key of ada in that folder.
const KEY: &str = "trk_59fa8b411ff8e74cc0d04d28a8d3e249b9ace4820b9c3165a03394e2ab3fc96c";
/// How many records its audit has.
const RECORDS: u64 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn u7_data_of_the_first_version_is_all_there() {
    let rack = Rack::new("", "");
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/first-version.tar.gz");
    let unpacked = Command::new("tar").args(["-xzf", archive, "-C"]).arg(rack.path("")).status().unwrap();
    assert!(unpacked.success());

    let users = rack.done(&["user", "list"]);
    assert!(users.contains("ada") && users.contains("guest1"), "{users}");
    let found = rack.done(&["documents", "search", "pressure of the boiler"]);
    assert!(found.contains("1.5 bar"), "{found}");

    let server = rack.serve();
    let client = client();
    let get = async |path: &str| -> Value {
        let sent = client.get(format!("{}{path}", server.base)).bearer_auth(KEY).send().await.unwrap();
        assert_eq!(sent.status(), StatusCode::OK, "{path}");
        sent.json().await.unwrap()
    };
    let tools = get("/api/tools").await;
    let source = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "source").unwrap();
    assert_eq!(source["enabled"], false, "what was switched off stays off");
    let jobs = get("/api/jobs").await;
    let job = &jobs["jobs"][0];
    assert_eq!((&job["tool"], &job["time_zone"]), (&json!("calculate"), &json!("Europe/Oslo")), "{jobs}");
    let call = json!({"tool_name": "calculate", "arguments": {"expression": "2 + 3"}});
    let called = server.post(&client, "/execute", KEY, &call).send().await.unwrap();
    assert_eq!(called.status(), StatusCode::OK);

    let chains = rack.verified();
    let first = chains.iter().find(|(server, _)| server == "main").unwrap();
    assert!(first.1 > RECORDS, "{chains:?}");
    let earlier = rack.export(&[]);
    assert!(earlier.iter().any(|record| record["tool"] == "file_manager.create_document"), "{earlier:?}");
}
