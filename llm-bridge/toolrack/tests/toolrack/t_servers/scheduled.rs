//! The schedule of two servers on one PostgreSQL: who makes a job, as whom, and how often. Requirements B5, B10. And of programs that take over
//! from one another: B18.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use toolrack_stores::{
    PostgresSettings, SqlStore, SqliteSettings,
    schedule::{Job, Jobs},
};

use super::{
    program::{Rack, Serving, client, mock},
    servers::postgres,
};

async fn execute(server: &Serving, key: &str, tool: &str, arguments: Value) -> Value {
    let body = json!({"tool_name": tool, "arguments": arguments});
    server.post(&client(), "/execute", key, &body).send().await.unwrap().json().await.unwrap()
}

/// The only job.
async fn job(store: &SqlStore) -> Job {
    store.of_tenant("default").await.unwrap().pop().unwrap()
}

/// Puts the only job's time back, and waits until a server has made it again.
async fn made(store: &SqlStore) -> Job {
    let known = job(store).await;
    assert!(store.claim(&known, Timestamp::now() - Duration::from_secs(60)).await.unwrap());
    let began = Instant::now();
    loop {
        let now = job(store).await;
        if now.last_run != known.last_run {
            return now;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "it was not made: {now:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b10_a_job_is_made_once_and_as_its_owner() {
    let Some(url) = postgres("b10_a_job_is_made_once_and_as_its_owner") else { return };
    let tools = mock("count.admins", "permission = \"admin\"");
    let [one, two] =
        ["one", "two"].map(|server| Rack::new(&format!("url = \"{url}\"\nserver = \"{server}\""), &tools));
    one.done(&["user", "add", "ada"]);
    one.done(&["user", "add", "root", "--level", "admin"]);
    let ((_, ada), (root_key, root)) = (one.key("ada", &[]), one.key("root", &[]));
    let servers = [one.serve(), two.serve()];

    let wanted =
        json!({"tool": "count.admins", "cron": "0 0 1 1 *", "arguments": {"n": "7"}, "time_zone": "UTC"});
    let refused = execute(&servers[0], &ada, "scheduler.add_job", wanted.clone()).await;
    assert_eq!(refused["success"], false, "{refused}");
    let added = execute(&servers[0], &root, "scheduler.add_job", wanted).await;
    assert_eq!(added["success"], true, "{added}");
    let id = added["result"]["job"].as_str().unwrap().to_owned();
    assert_eq!(added["side_effects"], json!([format!("created:job/{id}")]));

    let store = PostgresSettings::new(&url, "three").open().await.unwrap();
    let run = made(&store).await.last_run.unwrap();
    assert!(run.success, "{run:?}");
    // Both have looked meanwhile.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let listed = execute(&servers[1], &root, "scheduler.list_jobs", json!({})).await;
    let listed = &listed["result"][0];
    assert_eq!((&listed["owner"], &listed["arguments"]), (&json!("root"), &json!({"n": 7})));
    assert_eq!(listed["last_run"]["success"], true);
    let records = one.export(&["--origin", "schedule"]);
    let outcomes: Vec<&Value> = records.iter().filter(|record| record["phase"] == "outcome").collect();
    assert_eq!(outcomes.len(), 1, "{records:?}");
    assert_eq!((&outcomes[0]["user"], &outcomes[0]["success"]), (&json!("root"), &json!(true)));
    assert_eq!(outcomes[0]["call_id"], run.call_id);

    // A15: not for an owner whose keys were all revoked, until there is one again.
    one.done(&["key", "revoke", &root_key]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let run = made(&store).await.last_run.unwrap();
    assert!(!run.success && run.error.as_deref().unwrap().contains("may not call anything"), "{run:?}");
    let _ = one.key("root", &[]);
    let run = made(&store).await.last_run.unwrap();
    assert!(run.success, "{run:?}");

    // With no more than its owner may do by then.
    one.done(&["user", "promote", "root", "user"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let run = made(&store).await.last_run.unwrap();
    assert!(!run.success && run.error.as_deref().unwrap().contains("it needs the level admin"), "{run:?}");
    // Also where another has got the name since.
    one.done(&["user", "remove", "root"]);
    one.done(&["user", "add", "root", "--level", "admin"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let run = made(&store).await.last_run.unwrap();
    assert!(!run.success && run.error.as_deref().unwrap().contains("may not call anything"), "{run:?}");
    let records = one.export(&["--origin", "schedule"]);
    assert_eq!(records.iter().filter(|record| record["phase"] == "outcome").count(), 5);

    one.done(&["user", "add", "boss", "--level", "admin"]);
    let (_, boss) = one.key("boss", &[]);
    let removed = execute(&servers[0], &boss, "scheduler.remove_job", json!({"job": id})).await;
    assert_eq!(removed["side_effects"], json!([format!("removed:job/{id}")]), "{removed}");
    let again = execute(&servers[1], &boss, "scheduler.remove_job", json!({"job": id})).await;
    assert!(again["error"].as_str().unwrap().contains("there is no job"), "{again}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_a_schedule_goes_on_in_the_next_program_and_makes_each_call_once() {
    use super::reload::{children, eventually, has_taken_over, tools, waiting_call};

    let tools = |number| tools(number) + "[user]\nlevel = \"admin\"\n";
    let rack = Rack::new("", &tools(0));
    let (server, client) = (rack.dev(), client());
    let wanted = json!({"tool": "count.free", "cron": "0 0 1 1 *", "time_zone": "UTC"});
    let added = execute(&server, "", "scheduler.add_job", wanted).await;
    assert_eq!(added["success"], true, "{added}");
    let store = SqliteSettings::new(rack.path(".toolrack/toolrack.db")).open().await.unwrap();

    // The program before finishes a call, and the one that took over is there.
    let (call, id) = waiting_call(&server, &client).await;
    rack.write("", &tools(1));
    eventually("no program takes over", &server, || has_taken_over(&server, 1)).await;
    assert_eq!(children(server.id()).len(), 2);
    let run = made(&store).await.last_run.unwrap();
    assert!(run.success, "{run:?}");
    // Both would have looked meanwhile.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(outcomes(&rack), 1);

    // It is gone, and with it what the schedule was begun by.
    let refused = server.post(&client, &format!("/api/approvals/{id}"), "", &json!({"approve": false}));
    assert!(refused.send().await.unwrap().status().is_success());
    call.await.unwrap();
    let alone = || async { (children(server.id()).len() == 1).then_some(()) };
    eventually("the program before does not end", &server, alone).await;
    let run = made(&store).await.last_run.unwrap();
    assert!(run.success, "{run:?}");
    assert_eq!(outcomes(&rack), 2);
}

/// How many calls the schedule has made.
fn outcomes(rack: &Rack) -> usize {
    let records = rack.export(&["--origin", "schedule"]);
    records.iter().filter(|record| record["phase"] == "outcome").count()
}
