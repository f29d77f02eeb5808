//! The database goes away in the middle of chats and calls, and comes back.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{
    program::{Rack, client, mock},
    servers::own_postgres,
};

/// How long the database is away.
const AWAY: Duration = Duration::from_secs(4);
/// What a request may take while it is: the few that find out wait for a connection.
const SLOWEST: Duration = Duration::from_secs(15);

/// How often each answer was given, and what took longest.
#[derive(Default)]
struct Seen {
    answers: BTreeMap<String, usize>,
    /// The calls whose results were handed out.
    done: Vec<String>,
    slowest: Duration,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b10_a_database_that_goes_away_and_comes_back_loses_no_record_and_needs_no_restart() {
    let test = "b10_a_database_that_goes_away_and_comes_back_loses_no_record_and_needs_no_restart";
    let Some(postgres) = own_postgres(test) else { return };
    let url = postgres.new_database();
    let rack = Rack::new(&format!("url = \"{url}\""), &mock("count.free", "permission = \"guest\""));
    rack.done(&["user", "add", "ada"]);
    let (_, ada) = rack.key("ada", &[]);
    let (server, client) = (Arc::new(rack.serve()), client());
    let (over, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Seen::default())));

    let asked = (0..8).map(|number| {
        let (server, client, ada) = (Arc::clone(&server), client.clone(), ada.clone());
        let (over, seen) = (Arc::clone(&over), Arc::clone(&seen));
        tokio::spawn(async move {
            for round in 0.. {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let chat =
                    json!({"messages": [{"role": "user", "content": format!("Hello {number} {round}")}]});
                let call = json!({"tool_name": "count.free", "arguments": {"n": round}});
                let (path, body) =
                    if number % 2 == 0 { ("/v1/chat/completions", chat) } else { ("/execute", call) };
                let began = Instant::now();
                let answer = server.post(&client, path, &ada, &body).send().await.unwrap();
                let status = answer.status();
                let body: Value = answer.json().await.unwrap_or_default();
                let kind = match status {
                    StatusCode::OK => body["error"].as_str().or(body["error_kind"].as_str()).unwrap_or(""),
                    _ => body["error"]["type"].as_str().unwrap_or("no error of ours"),
                };
                let mut seen = seen.lock().await;
                *seen.answers.entry(format!("{path} {status} {kind}")).or_default() += 1;
                if body["success"] == true {
                    seen.done.push(body["call_id"].as_str().unwrap().to_owned());
                }
                seen.slowest = seen.slowest.max(began.elapsed());
                drop(seen);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    });
    let asked: Vec<_> = asked.collect();
    let state =
        async |path: &str| client.get(format!("{}{path}", server.base)).send().await.unwrap().status();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(state("/readyz").await, StatusCode::OK);
    postgres.stop();
    tokio::time::sleep(AWAY).await;
    assert_eq!(state("/healthz").await, StatusCode::OK, "it runs");
    assert_eq!(state("/readyz").await, StatusCode::SERVICE_UNAVAILABLE, "and is not ready");
    let meanwhile = seen.lock().await.done.len();
    postgres.start_again();
    let back = Instant::now();
    while seen.lock().await.done.len() < meanwhile + 4 {
        assert!(
            back.elapsed() < SLOWEST,
            "it does not recover: {:?}\n{}",
            seen.lock().await.answers,
            server.log()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let recovered = back.elapsed();
    while state("/readyz").await != StatusCode::OK {
        assert!(back.elapsed() < SLOWEST, "it is not ready again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    over.store(true, Ordering::SeqCst);
    join_all(asked).await.into_iter().for_each(Result::unwrap);

    let Seen { answers, done, slowest } = std::mem::take(&mut *seen.lock().await);
    println!("recovered after {recovered:.1?}, the slowest took {slowest:.1?}: {answers:#?}");
    assert!(slowest < SLOWEST, "{slowest:?}");
    for answer in answers.keys() {
        let is_served = answer.ends_with(" 200 OK ");
        let is_told = answer.contains(" 503 ") && !answer.ends_with("no error of ours")
            || answer.contains("audit")
            || answer.contains("store");
        assert!(is_served || is_told, "{answer}: {answers:#?}");
    }
    assert!(answers.keys().any(|answer| answer.contains(" 503 ")), "{answers:#?}");

    // Whatever was handed out is in the audit with both its records, in chains that are whole.
    let mut records: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in rack.exported_calls(&[]) {
        let [id, phase] = ["call_id", "phase"].map(|name| record[name].as_str().unwrap().to_owned());
        records.entry(id).or_default().push(phase);
    }
    for call in &done {
        assert_eq!(
            records.get(call).map(Vec::as_slice),
            Some(&["intent".to_owned(), "outcome".to_owned()][..]),
            "{call}"
        );
    }
    rack.verified();
    let log = Arc::into_inner(server).unwrap().end();
    assert!(log.contains("store_back"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}
