//! Lists that may be long come in pages.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use llm_bridge::server::Access;
use registry_core::{
    Caller, Change, Permission, Registry, RegistryEvent,
    store::{ApiKey, DeadLetter, DeadLetters, MemoryDeadLetters, Persona, Store, StoreResult, User},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use toolrack_http::webhook::{WebhookSettings, Webhooks};
use toolrack_stores::schedule::{Job, Jobs, MemoryJobs, Schedule};

use crate::{b17_console::send, t_access::Rack};

/// All pages of a list, and how many there were.
async fn read_on(rack: &Rack, key: &str, name: &str, limit: usize) -> (Vec<Value>, usize) {
    let (mut all, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let path = format!("/api/{name}?limit={limit}{after}");
        let (status, answer) = send(rack, Method::GET, &path, key, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        let list = answer[name.replace('-', "_")].as_array().unwrap();
        assert!(list.len() <= limit, "{path}");
        all.extend(list.iter().cloned());
        pages += 1;
        match answer["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return (all, pages),
        }
    }
}

fn letter(number: i64, now: Timestamp) -> DeadLetter {
    let event = RegistryEvent {
        tenant: "default".into(),
        tool: "echo".into(),
        change: Change::Disabled,
        version: None,
        elsewhere: false,
        ts: now,
    };
    DeadLetter {
        id: format!("msg_{number}"),
        url: "http://a/hook".into(),
        event,
        attempts: 5,
        cause: "it answered 500".into(),
        ts: now + SignedDuration::from_hours(number / 3),
        endpoint: "ff00".into(),
    }
}

#[tokio::test]
async fn u29_long_lists_have_pages_and_leave_nothing_out() {
    let jobs = Arc::new(MemoryJobs::default());
    let now = Timestamp::now();
    for number in 0..7 {
        let job = Job {
            id: format!("job{number}"),
            tenant: "default".into(),
            owner: Caller::new("ada", Permission::User),
            tool: "echo".into(),
            arguments: serde_json::Map::new(),
            cron: "0 8 * * *".into(),
            time_zone: "UTC".into(),
            created_at: now,
            // Several at the same time.
            next_run: now + SignedDuration::from_hours(1 + number / 3),
            last_run: None,
        };
        assert!(jobs.add(job, 100).await.unwrap());
    }
    let schedule = Schedule::new(jobs);
    let letters = Arc::new(MemoryDeadLetters::default());
    for number in 0..7 {
        letters.push(letter(number, now), 100).await.unwrap();
    }
    let registry = Registry::builder().without_compiled().build().unwrap();
    let webhooks = Webhooks::start(&registry, Vec::new(), letters, WebhookSettings::default()).unwrap();
    let rack = Rack::start_set(Caller::new("local", Permission::User), |settings| {
        settings.access = Access::default();
        settings.schedule = Some(schedule);
        settings.webhooks = Some(webhooks);
    })
    .await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    for number in 0..5 {
        let user = User {
            id: format!("user ~{number}"),
            level: Permission::User,
            personas: Vec::new(),
            created_at: now,
        };
        rack.store.put_user("default", user).await.unwrap();
        let (name, allowed_modules) = (format!("persona{number}"), ["local".to_owned()].into());
        rack.store.put_persona("default", Persona { name, allowed_modules, created_at: now }).await.unwrap();
        let (key, _) = ApiKey::generate("default", "ada", false, now).unwrap();
        assert!(rack.store.put_key(key).await.unwrap());
        let call = json!({"tool_name": "files.erase", "arguments": {"text": format!("{number}")}});
        assert_eq!(send(&rack, Method::POST, "/execute", &ada, call).await.0, StatusCode::ACCEPTED);
    }
    for (key, name, count) in [
        (&root, "users", 7),
        (&root, "keys", 7),
        (&root, "jobs", 7),
        (&root, "dead-letters", 7),
        (&root, "personas", 5),
        (&ada, "personas", 5),
        (&root, "approvals", 5),
        (&ada, "approvals", 5),
    ] {
        let (whole, pages) = read_on(&rack, key, name, 200).await;
        assert_eq!((whole.len(), pages), (count, 1), "{name}: {whole:?}");
        let (in_parts, pages) = read_on(&rack, key, name, 2).await;
        assert_eq!((&in_parts, pages), (&whole, count.div_ceil(2)), "{name}");
        let (one_by_one, pages) = read_on(&rack, key, name, 1).await;
        assert_eq!((&one_by_one, pages), (&whole, count), "{name}");
        for query in ["limit=0", "limit=201", "limit=x", "after=2026", "after=yesterday~1", "before=1"] {
            let (status, answer) =
                send(&rack, Method::GET, &format!("/api/{name}?{query}"), key, Value::Null).await;
            assert_eq!(
                (status, &answer["error"]["type"]),
                (StatusCode::BAD_REQUEST, &json!("invalid_request_error")),
                "{query}: {answer}"
            );
        }
    }
    let (_, questions) = send(&rack, Method::GET, "/api/questions?limit=1", &ada, Value::Null).await;
    assert_eq!(questions, json!({"questions": [], "next": null}));
}

/// Dead letters that note how many were read at once.
#[derive(Default)]
struct Noted {
    kept: MemoryDeadLetters,
    read: Mutex<Vec<usize>>,
}

#[async_trait]
impl DeadLetters for Noted {
    async fn push(&self, letter: DeadLetter, most: usize) -> StoreResult<()> {
        self.kept.push(letter, most).await
    }

    async fn page(&self, tenant: &str, after: i64, most: usize) -> StoreResult<Vec<(i64, DeadLetter)>> {
        let page = self.kept.page(tenant, after, most).await?;
        self.read.lock().unwrap().push(page.len());
        Ok(page)
    }

    async fn take(&self, tenant: &str, id: &str) -> StoreResult<Option<DeadLetter>> {
        self.kept.take(tenant, id).await
    }
}

#[tokio::test]
async fn u29_of_dead_letters_a_page_is_read_and_no_more() {
    let letters = Arc::new(Noted::default());
    for number in 0..7 {
        letters.push(letter(number, Timestamp::now()), 100).await.unwrap();
    }
    let registry = Registry::builder().without_compiled().build().unwrap();
    let webhooks =
        Webhooks::start(&registry, Vec::new(), letters.clone(), WebhookSettings::default()).unwrap();
    let rack = Rack::start_set(Caller::new("local", Permission::User), |settings| {
        settings.access = Access::default();
        settings.webhooks = Some(webhooks);
    })
    .await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let (all, pages) = read_on(&rack, &root, "dead-letters", 3).await;
    assert_eq!((all.len(), pages), (7, 3));
    // One more says whether there are more.
    assert_eq!(*letters.read.lock().unwrap(), [4, 4, 1]);
    let (status, _) =
        send(&rack, Method::GET, "/api/dead-letters?after=1970-01-01T00:00:00Z~x", &root, Value::Null).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}
