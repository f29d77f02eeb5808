//! Events as signed webhooks: requirement L5.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::FutureExt;
use registry_core::{
    Registry, ToolLimits, ToolPolicy, ToolSpec,
    store::{DeadLetter, DeadLetters, MemoryDeadLetters, MemoryStore, Store, StoreResult, StoredTool},
    testing::TestClock,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use toolrack_http::{
    Secret,
    webhook::{WebhookEndpoint, WebhookSettings, Webhooks, deliver_now},
};

const NOON: &str = "2026-03-01T12:00:00Z";
const NOON_SECONDS: i64 = 1_772_366_400;

fn secret() -> Secret {
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap()
}

fn registry() -> Registry {
    let clock = Arc::new(TestClock::at(NOON.parse().unwrap()));
    Registry::builder().without_compiled().clock(clock).build().unwrap()
}

fn letters() -> Arc<MemoryDeadLetters> {
    Arc::default()
}

/// The dead letters of the default tenant.
fn buried(webhooks: &Webhooks) -> Vec<DeadLetter> {
    block(webhooks.dead_letters("default")).unwrap()
}

fn redeliver(webhooks: &Webhooks, id: &str) -> bool {
    block(webhooks.redeliver("default", id)).unwrap()
}

/// What is kept in memory is there at once.
fn block<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

/// Patient enough for a test.
fn hasty() -> WebhookSettings {
    WebhookSettings {
        first_pause: Duration::from_millis(10),
        timeout: Duration::from_millis(500),
        ..WebhookSettings::default()
    }
}

/// What came in: headers and body.
#[derive(Debug, Clone)]
struct Received {
    headers: HashMap<String, String>,
    body: String,
}

impl Received {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A server that gives the prepared answers, the last one from then on.
struct Receiver {
    url: String,
    received: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<Vec<&'static str>>>,
}

impl Receiver {
    async fn new(answers: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://user:pass@{}/hook?token=hidden", listener.local_addr().unwrap());
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let answers = Arc::new(Mutex::new(answers.to_vec()));
        let (kept, prepared) = (Arc::clone(&received), Arc::clone(&answers));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (kept, prepared) = (Arc::clone(&kept), Arc::clone(&prepared));
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let (head, body) = loop {
                        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
                            return;
                        }
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                        if body.len() == length.unwrap().parse::<usize>().unwrap() {
                            break (head.to_owned(), body.to_owned());
                        }
                    };
                    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
                    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                    kept.lock().unwrap().push(Received { headers, body });
                    let answer = {
                        let mut prepared = prepared.lock().unwrap();
                        if prepared.len() > 1 { prepared.remove(0) } else { prepared[0] }
                    };
                    if answer == "sleep" {
                        tokio::time::sleep(Duration::from_secs(60)).await;
                    }
                    let reply = format!(
                        "HTTP/1.1 {answer}\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                    );
                    stream.write_all(reply.as_bytes()).await.unwrap();
                });
            }
        });
        Self { url, received, answers }
    }

    fn endpoint(&self) -> WebhookEndpoint {
        WebhookEndpoint::new(&self.url, secret()).unwrap()
    }

    fn count(&self) -> usize {
        self.received.lock().unwrap().len()
    }
}

async fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never came");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn add(registry: &Registry, name: &str) {
    registry.register(ToolSpec::new(name, json!({})), ToolPolicy::new(), None).unwrap();
}

#[tokio::test]
async fn l5_each_change_is_posted_once_in_order_and_signed() {
    let receiver = Receiver::new(&["200 OK"]).await;
    let registry = registry();
    let webhooks = Webhooks::start(&registry, vec![receiver.endpoint()], letters(), hasty()).unwrap();
    add(&registry, "f");
    registry.set_enabled("f", false).unwrap();
    registry.set_enabled("f", false).unwrap();
    registry.remove("f");
    until(|| receiver.count() == 3).await;
    let received = receiver.received.lock().unwrap().clone();
    let kinds: Vec<Value> = received.iter().map(|message| message.json()["type"].clone()).collect();
    assert_eq!(kinds, ["tool.registered", "tool.disabled", "tool.removed"]);
    assert_eq!(
        received[1].json(),
        json!({
            "type": "tool.disabled",
            "timestamp": NOON,
            "data": {"tenant": "default", "tool": "f", "kind": "disabled", "version": null, "elsewhere": false, "ts": NOON},
        })
    );
    for message in &received {
        let header = |name: &str| message.headers[name].clone();
        assert_eq!(header("content-type"), "application/json");
        assert_eq!(header("webhook-timestamp"), NOON_SECONDS.to_string());
        let (id, signature) = (header("webhook-id"), header("webhook-signature"));
        assert!(secret().verify(&id, NOON_SECONDS, &message.body, &signature), "{signature}");
        assert!(!secret().verify(&id, NOON_SECONDS + 1, &message.body, &signature));
    }
    assert_ne!(received[0].headers["webhook-id"], received[1].headers["webhook-id"]);
    assert_eq!(buried(&webhooks), []);
}

#[tokio::test]
async fn l5_what_is_not_taken_is_sent_again_with_its_id() {
    let receiver = Receiver::new(&["500 No", "sleep", "429 Later", "204 Fine"]).await;
    let registry = registry();
    let webhooks = Webhooks::start(&registry, vec![receiver.endpoint()], letters(), hasty()).unwrap();
    add(&registry, "f");
    until(|| receiver.count() == 4).await;
    let received = receiver.received.lock().unwrap().clone();
    let ids: Vec<&String> = received.iter().map(|message| &message.headers["webhook-id"]).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!((receiver.count(), buried(&webhooks).len()), (4, 0));
}

#[tokio::test]
async fn l5_what_nobody_takes_is_a_dead_letter_and_can_be_sent_again() {
    let receiver = Receiver::new(&["307 There"]).await;
    let registry = registry();
    let webhooks = Webhooks::start(&registry, vec![receiver.endpoint()], letters(), hasty()).unwrap();
    add(&registry, "f");
    until(|| buried(&webhooks).len() == 1).await;
    assert_eq!(receiver.count(), 5);
    let letter: DeadLetter = buried(&webhooks).remove(0);
    assert_eq!((letter.attempts, letter.event.tool.as_str()), (5, "f"));
    assert!(letter.cause.contains("307") && letter.cause.contains("not followed"), "{}", letter.cause);
    let shown = serde_json::to_string(&letter).unwrap();
    assert!(letter.url.ends_with("/hook") && !shown.contains("pass") && !shown.contains("hidden"), "{shown}");

    assert!(!redeliver(&webhooks, "msg_unknown"));
    assert!(redeliver(&webhooks, &letter.id));
    until(|| buried(&webhooks).len() == 1).await;
    *receiver.answers.lock().unwrap() = vec!["200 OK"];
    assert!(redeliver(&webhooks, &letter.id));
    until(|| receiver.count() == 11).await;
    assert_eq!(receiver.received.lock().unwrap()[10].headers["webhook-id"], letter.id);
    assert!(buried(&webhooks).is_empty() && !redeliver(&webhooks, &letter.id));
}

#[tokio::test]
async fn l5_who_is_gone_for_good_is_not_asked_again_and_nobody_waits_for_another() {
    let (gone, well) = (Receiver::new(&["410 Gone"]).await, Receiver::new(&["200 OK"]).await);
    let nobody = WebhookEndpoint::new("http://127.0.0.1:1/hook", secret()).unwrap();
    let slow = WebhookSettings { first_pause: Duration::from_secs(60), ..hasty() };
    let registry = registry();
    let endpoints = vec![nobody, gone.endpoint(), well.endpoint()];
    let webhooks = Webhooks::start(&registry, endpoints, letters(), slow).unwrap();
    add(&registry, "f");
    add(&registry, "g");
    until(|| well.count() == 2 && buried(&webhooks).len() == 2).await;
    assert_eq!(gone.count(), 2);
    assert!(buried(&webhooks).iter().all(|letter| letter.attempts == 1 && letter.cause.contains("410")));
}

#[tokio::test]
async fn l5_no_more_waits_than_may_and_the_oldest_dead_letters_go() {
    let nobody = WebhookEndpoint::new("http://127.0.0.1:1/hook", secret()).unwrap();
    let settings =
        WebhookSettings { queue: 1, dead_letters: 2, first_pause: Duration::from_secs(60), ..hasty() };
    let registry = registry();
    let webhooks = Webhooks::start(&registry, vec![nobody], letters(), settings).unwrap();
    for name in ["a", "b", "c", "d", "e", "f"] {
        add(&registry, name);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // One is being sent, one waits.
    let dead = buried(&webhooks);
    assert_eq!(dead.iter().map(|letter| &*letter.event.tool).collect::<Vec<_>>(), ["e", "f"]);
    assert!(dead[0].attempts == 0 && dead[0].cause.contains("wait"), "{dead:?}");
    // There is no room for it either; it stays.
    assert!(!redeliver(&webhooks, &dead[0].id));
    assert_eq!(buried(&webhooks), dead);
}

#[tokio::test]
async fn u29_each_tenant_sees_where_its_events_go_and_no_secret() {
    let endpoint = |name: &str| {
        let url = format!("http://ada:hush@127.0.0.1:1/{name}?key=hush");
        WebhookEndpoint::new(&url, secret()).unwrap()
    };
    let settings = WebhookSettings { first_pause: Duration::from_secs(60), ..hasty() };
    let registry = registry();
    let all = vec![endpoint("own"), endpoint("acme").of_tenant("acme"), endpoint("all").of_all_tenants()];
    let webhooks = Webhooks::start(&registry, all, letters(), settings).unwrap();
    for name in ["a", "b", "c"] {
        add(&registry, name);
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let seen = |tenant: &str| -> Vec<_> {
        let endpoints = webhooks.endpoints(tenant).into_iter();
        endpoints.map(|seen| (seen.url, seen.all_tenants, seen.waiting)).collect()
    };
    let url = |name: &str| format!("http://127.0.0.1:1/{name}");
    // One message is being sent, two wait.
    assert_eq!(seen(registry.tenant()), [(url("own"), false, 2), (url("all"), true, 2)]);
    assert_eq!(seen("acme"), [(url("acme"), false, 0), (url("all"), true, 2)]);
}

/// Dead letters in a store that takes its time.
struct Slow(MemoryDeadLetters);

#[async_trait]
impl DeadLetters for Slow {
    async fn push(&self, letter: DeadLetter, most: usize) -> StoreResult<()> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.0.push(letter, most).await
    }

    async fn page(&self, tenant: &str, after: i64, most: usize) -> StoreResult<Vec<(i64, DeadLetter)>> {
        self.0.page(tenant, after, most).await
    }

    async fn take(&self, tenant: &str, id: &str) -> StoreResult<Option<DeadLetter>> {
        self.0.take(tenant, id).await
    }
}

#[tokio::test]
async fn k9_a_slow_store_loses_no_event() {
    const EVENTS: usize = 3000;
    let nobody = WebhookEndpoint::new("http://127.0.0.1:1/hook", secret()).unwrap();
    let settings =
        WebhookSettings { queue: 1, dead_letters: EVENTS, first_pause: Duration::from_secs(60), ..hasty() };
    let registry = registry();
    let kept = Arc::new(Slow(MemoryDeadLetters::default()));
    let webhooks = Webhooks::start(&registry, vec![nobody], kept.clone(), settings).unwrap();
    for number in 0..EVENTS {
        add(&registry, &format!("t{number}"));
        if number % 100 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    webhooks.close().await;
    let mut tools: Vec<_> =
        block(kept.list("default")).unwrap().into_iter().map(|letter| letter.event.tool).collect();
    tools.sort_unstable();
    tools.dedup();
    assert_eq!(tools.len(), EVENTS);
}

#[tokio::test]
async fn k9_what_waits_at_the_stop_is_a_dead_letter() {
    let nobody = WebhookEndpoint::new("http://127.0.0.1:1/hook", secret()).unwrap();
    let patient = WebhookSettings { first_pause: Duration::from_secs(60), ..hasty() };
    let (registry, kept) = (registry(), letters());
    let webhooks = Webhooks::start(&registry, vec![nobody], kept.clone(), patient).unwrap();
    ["a", "b", "c"].iter().for_each(|name| add(&registry, name));
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Whether one that was just being sent came before the stop or not.
    add(&registry, "d");
    webhooks.close().await;
    let kept = block(kept.list("default")).unwrap();
    let mut tools: Vec<_> = kept.iter().map(|letter| &*letter.event.tool).collect();
    tools.sort_unstable();
    assert_eq!(tools, ["a", "b", "c", "d"]);
    assert!(kept.iter().all(|letter| letter.cause.contains("stopped")), "{kept:?}");
}

#[tokio::test]
async fn l5_the_server_that_made_a_change_tells_it_and_no_other() {
    let receiver = Receiver::new(&["200 OK"]).await;
    let store = Arc::new(MemoryStore::default());
    let registry = registry();
    let webhooks = Webhooks::start(&registry, vec![receiver.endpoint()], letters(), hasty()).unwrap();
    let stored = registry.attach(store.clone()).await.unwrap();
    let created_at = NOON.parse().unwrap();
    let spec = Some(ToolSpec::new("elsewhere", json!({})));
    let row = StoredTool {
        tool_name: "elsewhere".into(),
        enabled: true,
        limits: ToolLimits::default(),
        spec,
        created_at,
    };
    store.put_tool("default", row, store.revision().await.unwrap()).await.unwrap();
    until(|| registry.get("elsewhere").is_some()).await;
    stored.register(ToolSpec::new("here", json!({})), ToolPolicy::new(), None).await.unwrap();
    until(|| receiver.count() == 1).await;
    assert_eq!(receiver.received.lock().unwrap()[0].json()["data"]["tool"], "here");
    // Nothing is sent once nobody holds it.
    drop(webhooks);
    stored.remove("here").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(receiver.count(), 1);
}

#[test]
fn l5_an_endpoint_is_an_http_url() {
    for (bad, said) in
        [("", "URL"), ("hook", "URL"), ("file:///etc/passwd", "file"), ("ftp://a/b", "http or https")]
    {
        let error = WebhookEndpoint::new(bad, secret()).unwrap_err().to_string();
        assert!(error.contains(said), "{bad}: {error}");
    }
    // A URL may hold secrets.
    let endpoint = WebhookEndpoint::new("https://user:pass@example.org/hook?token=hidden", secret()).unwrap();
    assert_eq!(format!("{endpoint:?}"), "WebhookEndpoint(https://example.org/hook)");
}

#[tokio::test]
async fn l5_no_tenants_events_go_to_an_endpoint_that_is_for_another() {
    let own = Receiver::new(&["200 OK"]).await;
    let acme = Receiver::new(&["410 Gone"]).await;
    let all = Receiver::new(&["200 OK"]).await;
    let endpoints = vec![own.endpoint(), acme.endpoint().of_tenant("acme"), all.endpoint().of_all_tenants()];
    let registry = registry();
    let kept = letters();
    let webhooks = Webhooks::start(&registry, endpoints.clone(), kept.clone(), hasty()).unwrap();
    let of = ["acme", "umbrella"].map(|tenant| registry.for_tenant(tenant));
    add(&registry, "ours");
    add(&of[0], "theirs");
    add(&of[1], "nobodys");
    until(|| all.count() == 3 && own.count() == 1 && acme.count() == 1).await;
    until(|| !block(webhooks.dead_letters("acme")).unwrap().is_empty()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let events_at = |receiver: &Receiver| -> Vec<String> {
        let received = receiver.received.lock().unwrap();
        let events_at = received.iter().map(|message| message.json()["data"].clone());
        events_at
            .map(|data| format!("{}: {}", data["tenant"].as_str().unwrap(), data["tool"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(
        (events_at(&own), events_at(&acme)),
        (vec!["default: ours".to_owned()], vec!["acme: theirs".to_owned()])
    );
    assert_eq!(events_at(&all), ["default: ours", "acme: theirs", "umbrella: nobodys"]);

    let letter = block(webhooks.dead_letters("acme")).unwrap().remove(0);
    assert_eq!(letter.event.tenant, "acme");
    for other in ["default", "umbrella", ""] {
        assert_eq!(block(webhooks.dead_letters(other)).unwrap(), []);
        assert!(!block(webhooks.redeliver(other, &letter.id)).unwrap());
    }
    // An endpoint that is another tenant's now is not sent what was for the one before.
    let moved = vec![acme.endpoint().of_tenant("umbrella"), own.endpoint().of_tenant("acme")];
    let later = Webhooks::start(&registry, moved, kept.clone(), hasty()).unwrap();
    assert!(!block(later.redeliver("acme", &letter.id)).unwrap());
    drop(later);
    // Another process with the same endpoint sends it.
    *acme.answers.lock().unwrap() = vec!["200 OK"];
    let later = Webhooks::start(&registry, endpoints, kept, hasty()).unwrap();
    assert!(block(later.redeliver("acme", &letter.id)).unwrap());
    until(|| acme.count() == 2).await;
    assert_eq!(block(later.dead_letters("acme")).unwrap(), []);
    // For the registry of a tenant, an endpoint of which nothing is said is the tenant's.
    drop((webhooks, later));
    let _theirs = Webhooks::start(&of[0], vec![own.endpoint()], letters(), hasty()).unwrap();
    add(&registry, "ours2");
    add(&of[0], "theirs2");
    until(|| own.count() == 2).await;
    assert_eq!(events_at(&own)[1], "acme: theirs2");
}

#[tokio::test]
async fn l5_a_process_that_ends_tells_of_its_change_first() {
    let well = Receiver::new(&["500 No", "200 OK"]).await;
    let ill = Receiver::new(&["500 No"]).await;
    let foreign = Receiver::new(&["200 OK"]).await;
    let registry = registry();
    let mut events = registry.subscribe();
    add(&registry, "f");
    let event = events.recv().await.unwrap();
    let endpoints = vec![well.endpoint(), ill.endpoint(), foreign.endpoint().of_tenant("acme")];
    let kept = letters();
    let settings = WebhookSettings { attempts: 2, ..hasty() };
    let dead = deliver_now(&registry, endpoints, kept.clone(), settings, &event).await.unwrap();
    assert_eq!((well.count(), ill.count(), foreign.count()), (2, 2, 0));
    assert_eq!((dead.len(), dead[0].attempts), (1, 2));
    assert_eq!(block(kept.list("default")).unwrap(), dead);
}
