//! All that a module may try, at once and time and again, while a hundred chats go on: requirements M1, M3, M8, B5.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    peer::{Malice, Peer},
    program::{Rack, Serving, client},
};

const CHATS: usize = 100;
/// How long a module may take to answer, as the configuration says.
const TIMEOUT: Duration = Duration::from_secs(4);
/// How much longer anything may take than it is given, on a machine that has other things to do.
const SLACK: Duration = Duration::from_secs(20);
/// Calls of one hostile tool that are under way at once.
const CALLERS: usize = 2;

/// What is said of any module that did not answer in time, as one may not where the machine has too much to do.
const LATE: [&str; 2] = ["it took longer than 4 s", "timed out (4s)"];

/// The hostile modules: what each is called and does, what the log says of its manifest, what a caller gets, and whether it is
/// no longer called in the end.
const HOSTILE: [(&str, Malice, &str, &str, bool); 11] = [
    ("fails", Malice::Fails, "module_manifest_error module=\"fails\" status=500", "status 500: oops", true),
    (
        "garbage",
        Malice::Garbage,
        "module_unreachable module=\"garbage\" error=\"the manifest is not UTF-8\"",
        "answer cannot be read",
        false,
    ),
    ("noise", Malice::Noise, "module_unreachable module=\"noise\" error=", "invalid HTTP", true),
    (
        "gigabyte",
        Malice::Gigabyte,
        "module_unreachable module=\"gigabyte\" error=\"the answer is larger than 2097152 bytes\"",
        "larger than 4194304 bytes",
        false,
    ),
    (
        "drip",
        Malice::Drip,
        "module_unreachable module=\"drip\" error=\"it took longer than 4 s\"",
        "timed out (4s)",
        true,
    ),
    (
        "silence",
        Malice::Silence,
        "module_unreachable module=\"silence\" error=\"it took longer than 4 s\"",
        "timed out (4s)",
        true,
    ),
    (
        "redirect",
        Malice::Redirect,
        "module_manifest_error module=\"redirect\" status=307",
        "status 307",
        false,
    ),
    (
        "half_answer",
        Malice::HalfAnswer,
        "module_unreachable module=\"half_answer\" error=",
        "before message length reached",
        true,
    ),
    (
        "no_answer",
        Malice::NoAnswer,
        "module_unreachable module=\"no_answer\" error=",
        "closed before message completed",
        true,
    ),
    ("gone", Malice::Gone, "module_unreachable module=\"gone\" error=", "onnection refused", true),
    (
        "fickle",
        Malice::Fickle,
        "tool_changed module=\"fickle\" tool=\"fickle.stock\" parts=\"description\" off=true",
        "its description changed",
        false,
    ),
];

/// The address of every module, for the configuration.
fn configuration<'a>(modules: impl Iterator<Item = (&'a str, &'a Peer)>) -> Rack {
    let mut tables =
        "[user]\nlevel = \"admin\"\n[breaker]\nfailures = 3\nrest = 1\n[module_services]\n".to_owned();
    for (name, peer) in modules {
        let pin = name == "fickle";
        // None of the chats is to be turned away for another's sake.
        tables += &format!("{name} = {{ url = \"{}\", pin = {pin}, concurrency = {CHATS} }}\n", peer.url);
    }
    let rack = Rack::new("", &tables);
    rack.top(&format!("module_timeout = {0}\ndiscovery_timeout = {0}", TIMEOUT.as_secs()));
    rack
}

/// A chat in which the model calls a tool. Gives the time it took.
async fn chat(server: &Serving, client: &reqwest::Client, number: usize) -> Duration {
    let (question, tool, expected) = match number % 2 {
        0 => (format!("What is {number} * 1009?"), "calculate", (number * 1009).to_string()),
        _ => (
            format!("Use good.stock for article \"A-{number}\""),
            "good.stock",
            format!("plenty of A-{number}\n"),
        ),
    };
    let stream = number % 4 < 2;
    let body =
        json!({"model": "demo", "stream": stream, "messages": [{"role": "user", "content": question}]});
    let began = Instant::now();
    let answer = server.post(client, "/v1/chat/completions", "", &body).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200, "{question}");
    let text = answer.text().await.unwrap();
    let took = began.elapsed();
    let (content, details, finish) = if stream { of_stream(&text) } else { of_whole(&text) };
    assert_eq!(finish, "stop", "{question}: {text}");
    assert!(content.contains(&expected), "{question}: {content}");
    let [call] = details.iter().filter(|details| details["type"] == "call_finished").collect::<Vec<_>>()[..]
    else {
        panic!("{question}: {details:?}");
    };
    assert_eq!((&call["name"], &call["success"]), (&json!(tool), &json!(true)), "{question}: {call}");
    took
}

/// What the user reads, what programs read of the tools, and why it ended.
fn of_whole(text: &str) -> (String, Vec<Value>, String) {
    let reply: Value = serde_json::from_str(text).unwrap();
    let choice = &reply["choices"][0];
    let details = reply["x_toolrack"].as_array().cloned().unwrap_or_default();
    let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (said(&choice["message"]["content"]), details, said(&choice["finish_reason"]))
}

fn of_stream(text: &str) -> (String, Vec<Value>, String) {
    let (mut content, mut details, mut finish) = (String::new(), Vec::new(), String::new());
    assert!(text.trim_end().ends_with("data: [DONE]"), "{text}");
    for chunk in text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]")
    {
        let chunk: Value = serde_json::from_str(chunk).unwrap();
        content += chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        details.extend(chunk.get("x_toolrack").cloned());
        finish += chunk["choices"][0]["finish_reason"].as_str().unwrap_or_default();
    }
    (content, details, finish)
}

/// A hundred chats at once. Gives their times, shortest first.
async fn chats(server: &Arc<Serving>) -> Vec<Duration> {
    let client = client();
    let mut running = JoinSet::new();
    for number in 0..CHATS {
        let (server, client) = (Arc::clone(server), client.clone());
        running.spawn(async move { chat(&server, &client, number).await });
    }
    let mut took = Vec::new();
    while let Some(ended) = running.join_next().await {
        took.push(ended.unwrap());
    }
    took.sort();
    took
}

fn tell(what: &str, took: &[Duration], process: &Process) {
    let (half, most, all) = (took[took.len() / 2], took[took.len() * 95 / 100], took[took.len() - 1]);
    println!(
        "{what}: half within {half:.1?}, 95 of 100 within {most:.1?}, all within {all:.1?}; {process:?}"
    );
}

/// What a process holds.
#[derive(Debug)]
struct Process {
    files: usize,
    threads: usize,
    /// Memory now and at its most, in MiB.
    resident: u64,
    peak: u64,
}

impl Process {
    fn of(server: &Serving) -> Self {
        let folder = format!("/proc/{}", server.id());
        let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
        let mib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
        };
        let count = |folder: String| std::fs::read_dir(folder).unwrap().count();
        Self {
            files: count(format!("{folder}/fd")),
            threads: count(format!("{folder}/task")),
            resident: mib("VmRSS:"),
            peak: mib("VmHWM:"),
        }
    }
}

async fn refreshed(server: &Serving, client: &reqwest::Client) -> BTreeMap<String, Value> {
    let began = Instant::now();
    let answer = server.post(client, "/refresh-tools", "", &json!({})).send().await.unwrap();
    let mut reported: Value = answer.json().await.unwrap();
    // One that began before has to end first.
    assert!(began.elapsed() < 2 * TIMEOUT + SLACK, "{:?}", began.elapsed());
    let Value::Array(modules) = reported["modules"].take() else { panic!("{reported}") };
    modules.into_iter().map(|module| (module["name"].as_str().unwrap().to_owned(), module)).collect()
}

async fn stock(server: &Serving, client: &reqwest::Client, module: &str) -> Value {
    let body = json!({"tool_name": format!("{module}.stock"), "arguments": {"article": "A"}});
    let began = Instant::now();
    let answer = server.post(client, "/execute", "", &body).send().await.unwrap();
    let reply = answer.json().await.unwrap();
    assert!(began.elapsed() < TIMEOUT + SLACK, "{module}: {:?}", began.elapsed());
    reply
}

/// Calls a hostile tool until it is stopped. Gives the number of calls that said what was expected.
async fn call_on(
    server: Arc<Serving>,
    module: &'static str,
    expected: &'static str,
    stop: Arc<AtomicBool>,
) -> usize {
    let (client, mut as_expected) = (client(), 0);
    while !stop.load(Ordering::SeqCst) {
        let reply = stock(&server, &client, module).await;
        let error = reply["error"].as_str().unwrap_or_else(|| panic!("{module}: {reply}"));
        let is_open = error.contains("the circuit of");
        let is_expected = error.contains(expected);
        assert!(is_expected || is_open || is_late(error), "{module}: {reply}");
        as_expected += usize::from(is_expected && !is_open);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    as_expected
}

/// Refreshes and calls of hostile tools, going on and on.
struct Siege {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
    refreshing: tokio::task::JoinHandle<()>,
    calling: Vec<(&'static str, tokio::task::JoinHandle<usize>)>,
}

impl Siege {
    fn begin(server: &Arc<Serving>) -> Self {
        let (stop, rounds) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (refreshed_server, stopped, round) = (Arc::clone(server), Arc::clone(&stop), Arc::clone(&rounds));
        let refreshing = tokio::spawn(async move {
            let client = client();
            while !stopped.load(Ordering::SeqCst) {
                refreshed(&refreshed_server, &client).await;
                round.fetch_add(1, Ordering::SeqCst);
            }
        });
        let calling = HOSTILE.iter().flat_map(|(module, _, _, expected, _)| {
            (0..CALLERS).map(|_| {
                (*module, tokio::spawn(call_on(Arc::clone(server), module, expected, Arc::clone(&stop))))
            })
        });
        Self { calling: calling.collect(), stop, rounds, refreshing }
    }

    async fn rounds(&self, count: usize) {
        while self.rounds.load(Ordering::SeqCst) < count {
            assert!(!self.refreshing.is_finished(), "a refresh has failed");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.refreshing.await.unwrap();
        let mut by_module = BTreeMap::<_, usize>::new();
        for (module, calling) in self.calling {
            *by_module.entry(module).or_default() += calling.await.unwrap();
        }
        assert!(by_module.values().all(|calls| *calls > 0), "{by_module:?}");
    }
}

fn is_late(text: &str) -> bool {
    LATE.iter().any(|late| text.contains(late))
}

/// Whether the expected faults are reported, and none twice in a row.
fn is_told_once(reported: &[&str], expected: &str) -> bool {
    let causes: Vec<&str> =
        reported.iter().filter_map(|line| line.split_once(" module=")).map(|(_, cause)| cause).collect();
    reported.iter().any(|line| line.contains(expected))
        && reported.iter().all(|line| line.contains(expected) || is_late(line))
        && causes.windows(2).all(|two| two[0] != two[1])
}

/// How many lines of the log say this.
fn lines(log: &str, what: &str) -> usize {
    log.lines().filter(|line| line.contains(what)).count()
}

/// Waits until something holds.
async fn in_time(what: &str, holds: impl Fn() -> bool, reported: impl Fn() -> String) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: {}", reported());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m8_a_hundred_chats_go_on_while_every_module_but_one_is_hostile() {
    let private = Peer::start(Malice::None, "stock", "").await;
    let good = Peer::start(Malice::None, "stock", "").await;
    let thief = Peer::start(Malice::None, "fetch_webpage", "").await;
    let starting = HOSTILE.iter().map(|(name, malice, ..)| {
        let private = &private;
        async move { (*name, Peer::start(*malice, "stock", &private.url).await) }
    });
    let hostile: BTreeMap<&str, Peer> = join_all(starting).await.into_iter().collect();

    let rack = configuration([("good", &good)].into_iter());
    let alone = Arc::new(rack.serve());
    chats(&alone).await;
    tell("with a good module alone", &chats(&alone).await, &Process::of(&alone));
    drop(alone);

    let all = hostile.iter().map(|(name, peer)| (*name, peer)).chain([("good", &good), ("research", &thief)]);
    let rack = configuration(all);
    let server = Arc::new(rack.serve());
    let admin = client();
    // All of them behave at first, so that there are tools to be called.
    let reports = refreshed(&server, &admin).await;
    assert!(reports.values().all(|report| report["error"].is_null() && report["tools"] == 1), "{reports:?}");
    chats(&server).await;
    for name in hostile.keys() {
        assert_eq!(stock(&server, &admin, name).await["result"], "plenty of A", "{name}");
    }
    let took = chats(&server).await;
    // The connections that idle are closed.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let before = Process::of(&server);
    tell("while all modules behave", &took, &before);

    hostile.values().for_each(Peer::turn_hostile);
    // From here on a tool that has changed is off.
    refreshed(&server, &admin).await;
    let mut sizes = Vec::new();
    for siege in ["besieged", "besieged again"] {
        let under = Siege::begin(&server);
        under.rounds(1).await;
        let took = chats(&server).await;
        under.rounds(2).await;
        under.end().await;
        let process = Process::of(&server);
        tell(siege, &took, &process);
        sizes.push(process);
    }

    // Nothing stays: not the connections, nor what they brought.
    let settled = || {
        let now = Process::of(&server);
        now.files <= before.files && now.threads <= before.threads + 2
    };
    in_time("files and threads", settled, || format!("{before:?} {:?}", Process::of(&server))).await;
    let quiet = || hostile.values().all(|peer| peer.connections() == 0);
    let open =
        || format!("{:?}", hostile.iter().map(|(name, peer)| (name, peer.connections())).collect::<Vec<_>>());
    in_time("connections", quiet, open).await;
    let (first, last) = (&sizes[0], &sizes[1]);
    assert!(last.peak < before.peak + 256, "{before:?} {sizes:?}");
    assert!(last.resident < first.resident + 64, "{sizes:?}");
    // The rest is what the system holds between the two.
    assert!(hostile["gigabyte"].most_taken() < 32 << 20, "{}", hostile["gigabyte"].most_taken());
    assert_eq!((private.manifests_asked(), private.calls()), (0, 0), "nobody is sent elsewhere");

    // The tools are still there, as they were, and a prefix is the configured module's.
    let tools: Value =
        admin.get(format!("{}/api/tools", server.base)).send().await.unwrap().json().await.unwrap();
    let tools = tools["tools"].as_array().unwrap();
    let find =
        |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}"));
    for name in hostile.keys() {
        assert_eq!(find(&format!("{name}.stock"))["enabled"], *name != "fickle");
    }
    let stolen = find("research.fetch_webpage");
    assert!(stolen["source"].as_str().unwrap().starts_with("module research at"), "{stolen}");
    assert!(stolen["replaces"].as_str().unwrap().starts_with("tools/research/fetch_webpage.rs"), "{stolen}");
    assert_eq!(thief.calls(), 0);

    // Each fault is reported once, with its cause.
    let log = server.log();
    for (name, _, manifest, _, is_open) in HOSTILE {
        let of_kinds = |kinds: &[&str]| -> Vec<&str> {
            let is_one =
                |line: &&str| kinds.iter().any(|kind| line.contains(&format!("{kind} module=\"{name}\"")));
            log.lines().filter(is_one).collect()
        };
        let reported = of_kinds(&["module_manifest_error", "module_unreachable", "tool_changed"]);
        assert!(is_told_once(&reported, manifest), "{name}: {reported:#?}");
        let reported = of_kinds(&["circuit_open"]);
        let is_as_expected = if is_open {
            is_told_once(&reported, "cause=")
        } else {
            reported.iter().all(|line| is_late(line))
        };
        assert!(is_as_expected, "{name}: {reported:#?}");
    }
    let stolen: Vec<&str> =
        log.lines().filter(|line| line.contains("Replaced tool: research.fetch_webpage")).collect();
    assert!(stolen.len() == 1 && stolen[0].contains("by the module research"), "{stolen:#?}");
    for never in ["panicked", "module_discovery_failed"] {
        assert!(!log.contains(never), "{log}");
    }

    // And when they behave again, all is as it was.
    hostile.values().for_each(Peer::behave);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let reports = refreshed(&server, &admin).await;
    for (name, _, _, _, is_open) in HOSTILE.iter().filter(|(name, ..)| *name != "gone") {
        assert!(reports[*name]["error"].is_null(), "{}", reports[*name]);
        if *name == "fickle" {
            let seen = json!({"digest": reports[*name]["digest"]});
            let accept = server.post(&admin, "/api/modules/fickle/accept", "", &seen);
            assert_eq!(accept.send().await.unwrap().status().as_u16(), 200);
        }
        assert_eq!(stock(&server, &admin, name).await["result"], "plenty of A", "{name}");
        // The log is read while it is written.
        let again = || lines(&server.log(), &format!("circuit_closed module=\"{name}\""));
        in_time("circuit_closed", || again() == 1 || !is_open, || format!("{name}: {}", again())).await;
    }
}
