//! A server that is killed at any moment: what it has acknowledged is there, and its limits are not forgotten.
//!
//! The child is this program again, with the place of its store in its environment. It makes calls without end, and prints a line for each
//! that was acknowledged. `TOOLRACK_KILLS` says how often it is killed; ten times where nothing is said.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use registry_core::guard::audit::log::{AuditFilter, AuditLog, NotedHeads};
use serde_json::Value;
use sqlx::{Connection, PgConnection, Row, SqliteConnection};

use crate::{Place, call, registry, user};

const CHILD: &str = "REGISTRY_CORE_TEST_CHILD";
const USERS: u64 = 40;
const DAILY_LIMIT: u32 = 200;

/// What the killed program does: no test, unless its environment says where.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(url) = std::env::var(CHILD) else { return };
    let store = Arc::new(crate::open(&url, "main").await);
    let registry = registry(store.clone(), store, DAILY_LIMIT);
    let seed = u64::from(std::process::id());
    let callers = (0..32).map(|number| {
        let registry = registry.clone();
        tokio::spawn(async move {
            for turn in 0.. {
                let user = user(&registry, &format!("user {}", (seed + number + turn) % USERS));
                let outcome = call(&registry, &user).await;
                let word = if outcome.is_success() { "ran" } else { "refused" };
                // One write for the line, so that it is there whole or not at all.
                let line = format!("{word} {}\n", outcome.call_id);
                std::io::stdout().write_all(line.as_bytes()).unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

/// Starts the child.
pub(crate) fn start(url: &str, stdout: Stdio) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, url)
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Starts the child, kills it so long after its first acknowledged call, and gives what it has acknowledged.
fn run_and_kill(url: &str, after: Duration) -> Vec<(String, String)> {
    let mut child = start(url, Stdio::piped());
    let output = child.stdout.take().unwrap();
    let (first, seen) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut acknowledged = Vec::new();
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8(line.unwrap()).unwrap();
            if let Some((word @ ("ran" | "refused"), id)) = line.split_once(' ') {
                let _ = first.send(());
                acknowledged.push((id.to_owned(), word.to_owned()));
            }
        }
        acknowledged
    });
    seen.recv_timeout(Duration::from_secs(60)).expect("the child makes calls");
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut acknowledged = reader.join().unwrap();
    // A line that was cut off has no whole id: ids have one length.
    let length = acknowledged.first().map_or(0, |(id, _)| id.len());
    acknowledged.retain(|(id, _)| id.len() == length);
    acknowledged
}

/// How many calls of each user are counted.
async fn counted(place: &Place) -> BTreeMap<String, i64> {
    const SQL: &str = "SELECT user_id, calls FROM call_counts";
    let url = place.url();
    match place {
        Place::File(_) => {
            let mut link = SqliteConnection::connect(&format!("sqlite:{url}")).await.unwrap();
            let rows = sqlx::query(SQL).fetch_all(&mut link).await.unwrap();
            rows.iter().map(|row| (row.get(0), row.get(1))).collect()
        }
        Place::Postgres(_) => {
            let mut link = PgConnection::connect(&url).await.unwrap();
            let rows = sqlx::query(SQL).fetch_all(&mut link).await.unwrap();
            rows.iter().map(|row| (row.get(0), row.get(1))).collect()
        }
    }
}

async fn killed_at_any_moment(place: Place) {
    let kills: u64 = std::env::var("TOOLRACK_KILLS").map_or(10, |kills| kills.parse().unwrap());
    let mut acknowledged = Vec::new();
    let began = Instant::now();
    for kill in 0..kills {
        // Spread over a third of a second, in no order.
        let after = Duration::from_micros(kill * 7_919_003 % 333_333);
        let url = place.url();
        acknowledged.extend(tokio::task::spawn_blocking(move || run_and_kill(&url, after)).await.unwrap());
    }
    // What the last one was committing when it was killed may still be under way at a server.
    tokio::time::sleep(Duration::from_millis(500)).await;

    let store = place.open("main").await;
    let reports = store.verify("default", &NotedHeads::new()).await.unwrap();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].fault, None, "the chain is whole");

    let (mut intents, mut outcomes, mut runs) =
        (BTreeSet::new(), BTreeSet::new(), BTreeMap::<String, u32>::new());
    let mut read = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        let (id, phase) = (record["record"]["call_id"].as_str().unwrap(), &record["record"]["phase"]);
        if phase == "intent" {
            intents.insert(id.to_owned());
            *runs.entry(record["record"]["user"].as_str().unwrap().to_owned()).or_default() += 1;
        } else {
            outcomes.insert(id.to_owned());
        }
        std::ops::ControlFlow::Continue(())
    };
    store.export(&AuditFilter::new("default"), &mut read).await.unwrap();
    for (id, word) in &acknowledged {
        assert!(outcomes.contains(id), "{id} was acknowledged and left no outcome");
        assert_eq!(intents.contains(id), word == "ran", "{id} {word}");
    }
    let counted = counted(&place).await;
    for (user, runs) in &runs {
        assert!(*runs <= DAILY_LIMIT, "{user} has run {runs} calls");
        assert!(
            counted[user] >= i64::from(*runs),
            "{user} has run {runs} calls, of which {} are counted",
            counted[user]
        );
    }
    let ran = acknowledged.iter().filter(|(_, word)| word == "ran").count();
    let refused = acknowledged.len() - ran;
    assert!(ran > 0);
    println!(
        "{kills} kills in {:.1?}: {ran} calls acknowledged, {refused} refused, {} records, chain whole",
        began.elapsed(),
        reports[0].records
    );
}

#[tokio::test]
async fn t5_killed_at_any_moment_sqlite_has_what_was_acknowledged() {
    killed_at_any_moment(Place::file()).await;
}

#[tokio::test]
async fn t5_killed_at_any_moment_postgres_has_what_was_acknowledged() {
    let place = Place::postgres("t5_killed_at_any_moment_postgres_has_what_was_acknowledged");
    if let Some(place) = place {
        killed_at_any_moment(place).await;
    }
}
