//! `kill -9` under load, at any moment: what was acknowledged is in the audit, and no limit is forgotten.
//!
//! `TOOLRACK_KILLS` says how often; ten times where nothing is said.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{
    program::{Rack, Serving, away_from_midnight, client, mock},
    servers::postgres,
};

const FREE: &str = "count.free";
const LIMITED: &str = "count.limited";
/// So few that some users have used them up before the last kill.
const LIMIT: usize = 10;
const USERS: u64 = 20;
const CLIENTS: usize = 12;
/// The longest time between the first answer and the kill.
const LOAD: Duration = Duration::from_millis(300);

/// A call that was answered.
struct Acknowledged {
    n: u64,
    user: String,
    tool: &'static str,
    ran: bool,
}

/// What the clients of one server share, from its start to its kill.
struct Round {
    base: String,
    hop: String,
    client: reqwest::Client,
    killed: AtomicBool,
    answers: Mutex<Vec<Acknowledged>>,
}

impl Round {
    /// Makes a call; `None` where the server was gone before it had answered.
    async fn call(&self, n: u64, user: &str, tool: &'static str) -> Option<Acknowledged> {
        let body = json!({"tool_name": tool, "arguments": {"n": n}, "user_id": user});
        let request = self.client.post(format!("{}/execute", self.base)).bearer_auth(&self.hop).json(&body);
        let answered = async {
            let answer = request.send().await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.json::<Value>().await?))
        };
        match answered.await {
            Ok((status, reply)) => {
                let ran = status == StatusCode::OK;
                assert!(
                    ran || tool == LIMITED && status == StatusCode::TOO_MANY_REQUESTS,
                    "{status}: {reply}"
                );
                assert_eq!(reply["success"], ran, "{reply}");
                Some(Acknowledged { n, user: user.to_owned(), tool, ran })
            }
            Err(fault) => {
                assert!(self.killed.load(Ordering::SeqCst), "no answer from a server that lives: {fault:?}");
                None
            }
        }
    }

    /// One client, until the server is gone.
    async fn call_without_end(&self, next: &AtomicU64) {
        loop {
            let n = next.fetch_add(1, Ordering::SeqCst);
            let user = format!("user {}", fastrand::u64(..USERS));
            let tool = if n.is_multiple_of(2) { FREE } else { LIMITED };
            let Some(answer) = self.call(n, &user, tool).await else { return };
            self.answers.lock().unwrap().push(answer);
        }
    }
}

/// Serves under load, and kills the server at a random moment; gives what was answered.
async fn serve_and_kill(mut server: Serving, hop: &str, next: &Arc<AtomicU64>) -> Vec<Acknowledged> {
    let round = Arc::new(Round {
        base: server.base.clone(),
        hop: hop.to_owned(),
        client: client(),
        killed: AtomicBool::new(false),
        answers: Mutex::default(),
    });
    let callers: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (round, next) = (Arc::clone(&round), Arc::clone(next));
            tokio::spawn(async move { round.call_without_end(&next).await })
        })
        .collect();
    let began = Instant::now();
    while round.answers.lock().unwrap().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "no answer: {}", server.log());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(LOAD.mul_f64(fastrand::f64())).await;
    round.killed.store(true, Ordering::SeqCst);
    server.kill();
    for caller in callers {
        caller.await.unwrap();
    }
    std::mem::take(&mut *round.answers.lock().unwrap())
}

/// What an export says of the calls, each by its number.
#[derive(Default)]
struct Reported {
    /// Who was about to run a call.
    intents: BTreeMap<u64, String>,
    /// How often each user was about to run the limited tool.
    limited: BTreeMap<String, usize>,
    successes: BTreeSet<u64>,
    refused: BTreeSet<u64>,
}

fn reported(records: &[Value]) -> Reported {
    let mut reported = Reported::default();
    for record in records {
        let n = record["arguments"]["n"].as_u64().unwrap();
        let user = record["user"].as_str().unwrap().to_owned();
        if record["phase"] == "intent" && record["tool"] == LIMITED {
            *reported.limited.entry(user.clone()).or_default() += 1;
        }
        let first = match (record["phase"].as_str().unwrap(), record["error"].as_str()) {
            ("intent", _) => reported.intents.insert(n, user).is_none(),
            ("outcome", None) => reported.successes.insert(n),
            ("outcome", Some("tool_rate_limited")) => reported.refused.insert(n),
            _ => panic!("{record}"),
        };
        assert!(first, "twice in the audit: {record}");
    }
    reported
}

impl Reported {
    fn has(&self, answers: &[Acknowledged]) {
        for Acknowledged { n, user, ran, .. } in answers {
            assert_eq!(self.intents.get(n), ran.then_some(user), "the intent of call {n}, which ran: {ran}");
            assert_eq!(self.successes.contains(n), *ran, "the outcome of call {n}");
            assert_eq!(self.refused.contains(n), !ran, "the refusal of call {n}");
        }
    }
}

async fn killed_at_any_moment(name: &str, rack: Rack) {
    let kills: usize = std::env::var("TOOLRACK_KILLS").map_or(10, |kills| kills.parse().unwrap());
    away_from_midnight().await;
    rack.top("default_guest_modules = \"count\"");
    rack.done(&["user", "add", "hop"]);
    let (_, hop) = rack.key("hop", &["--delegate"]);
    let next = Arc::new(AtomicU64::new(0));
    let (mut answers, mut used_up) = (Vec::new(), BTreeSet::new());
    let (began, mut starting) = (Instant::now(), Duration::ZERO);

    let mut server = rack.serve();
    for kill in 0..kills {
        let since = Timestamp::now().to_string();
        let round = serve_and_kill(server, &hop, &next).await;
        let starts = Instant::now();
        server = rack.serve();
        starting += starts.elapsed();

        // Each is looked at with the server up again.
        assert_eq!(rack.verified().len(), 1, "one chain, whole after kill {kill}");
        reported(&rack.exported_calls(&["--since", &since])).has(&round);
        let limited = || round.iter().filter(|answer| answer.tool == LIMITED);
        if let Some(late) = limited().find(|answer| answer.ran && used_up.contains(&answer.user)) {
            panic!(
                "{} had used up the limit before kill {kill} and has run call {} after",
                late.user, late.n
            );
        }
        used_up.extend(limited().filter(|answer| !answer.ran).map(|answer| answer.user.clone()));
        answers.extend(round);
    }
    let took = began.elapsed();
    let early = used_up.len();

    // What is left of every user's limit is no more than what was not used before.
    let last = Round {
        base: server.base.clone(),
        hop,
        client: client(),
        killed: AtomicBool::new(false),
        answers: Mutex::default(),
    };
    let (last, next) = (&last, &next);
    let drained = stream::iter(0..USERS).map(|user| async move {
        let user = format!("user {user}");
        let mut answers = Vec::new();
        while answers.last().is_none_or(|answer: &Acknowledged| answer.ran) {
            let n = next.fetch_add(1, Ordering::SeqCst);
            answers.push(last.call(n, &user, LIMITED).await.unwrap());
        }
        answers
    });
    let drained: Vec<Vec<Acknowledged>> = drained.buffer_unordered(CLIENTS).collect().await;
    answers.extend(drained.into_iter().flatten());

    let chains = rack.verified();
    let reported = reported(&rack.exported_calls(&[]));
    reported.has(&answers);
    assert!(
        reported.successes.iter().all(|n| reported.intents.contains_key(n)),
        "no outcome without its intent"
    );
    assert_eq!(reported.limited.len() as u64, USERS);
    assert!(reported.limited.values().all(|calls| *calls <= LIMIT), "{:?}", reported.limited);
    let (ran, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.ran);
    let unfinished = reported.intents.len() - reported.successes.len();
    println!(
        "{name}: {kills} kills in {took:.1?}, {:.0?} to start again; {} calls acknowledged as run and {} as refused, \
         {unfinished} cut off after their intent, {early} of {USERS} users at their limit before the end; {} records, \
         chain whole",
        starting / u32::try_from(kills.max(1)).unwrap(),
        ran.len(),
        refused.len(),
        chains[0].1,
    );
}

fn tools() -> String {
    mock(FREE, "") + &mock(LIMITED, &format!("daily_limit = {LIMIT}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t5_a_server_killed_at_any_moment_has_what_it_acknowledged_in_sqlite() {
    killed_at_any_moment("SQLite", Rack::new("", &tools())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t5_a_server_killed_at_any_moment_has_what_it_acknowledged_in_postgres() {
    let test = "t5_a_server_killed_at_any_moment_has_what_it_acknowledged_in_postgres";
    let Some(postgres) = postgres(test) else { return };
    let store = format!("url = \"{postgres}\"");
    killed_at_any_moment("PostgreSQL", Rack::new(&store, &tools())).await;
}
