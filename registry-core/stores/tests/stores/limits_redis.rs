//! Redis in front of a store: it makes a refusal faster, and never a wrong call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use registry_core::{
    guard::limits::{Charge, Limited, MemoryUsage, Usage},
    store::{MANIFEST_TTL, ManifestCache, StoreResult},
};
use toolrack_stores::{Redis, RedisManifests, RedisUsage};

use crate::{
    at,
    contract::{charge, usage_contract},
    servers,
};

/// Counts how often it is asked.
#[derive(Default)]
struct Asked {
    usage: MemoryUsage,
    times: AtomicU32,
}

#[derive(Clone, Default)]
struct Authority(Arc<Asked>);

#[async_trait]
impl Usage for Authority {
    async fn charge(&self, charge: &Charge) -> StoreResult<Option<Limited>> {
        self.0.times.fetch_add(1, Ordering::SeqCst);
        self.0.usage.charge(charge).await
    }

    async fn refund(&self, charge: &Charge) -> StoreResult<()> {
        self.0.usage.refund(charge).await
    }
}

impl Authority {
    fn times(&self) -> u32 {
        self.0.times.load(Ordering::SeqCst)
    }
}

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}/")
}

fn two(url: &str) -> (Authority, [RedisUsage<Authority>; 2]) {
    let authority = Authority::default();
    let usages = [(); 2].map(|()| RedisUsage::new(Redis::new(url).unwrap(), authority.clone()));
    (authority, usages)
}

#[tokio::test]
async fn t3_with_redis_in_front_calls_are_counted_alike() {
    let Some(server) = servers::redis("t3_with_redis_in_front_calls_are_counted_alike") else { return };
    usage_contract(&RedisUsage::new(Redis::new(&server.url).unwrap(), MemoryUsage::default())).await;
}

#[tokio::test]
async fn b10_a_limit_that_one_server_has_reached_is_known_to_all() {
    let Some(server) = servers::redis("b10_a_limit_that_one_server_has_reached_is_known_to_all") else {
        return;
    };
    let (authority, [one, other]) = two(&server.url);
    let call = charge(at("12:00:00"), 0, 1);
    assert_eq!(one.charge(&call).await, Ok(None));
    let limited = one.charge(&call).await.unwrap();
    assert!(limited.is_some());
    assert_eq!(authority.times(), 2);
    for usage in [&one, &other, &other] {
        assert_eq!(usage.charge(&call).await.unwrap(), limited);
    }
    assert_eq!(authority.times(), 2, "the store is not asked about what Redis knows");
    // A limit that the operator has raised is another one, and tomorrow is another day.
    assert_eq!(other.charge(&charge(at("12:00:00"), 0, 2)).await, Ok(None));
    let tomorrow = at("12:00:00") + Duration::from_secs(86_400);
    assert_eq!(other.charge(&charge(tomorrow, 0, 1)).await, Ok(None));
}

#[tokio::test]
async fn b10_what_is_taken_back_is_forgotten_by_redis() {
    let Some(server) = servers::redis("b10_what_is_taken_back_is_forgotten_by_redis") else { return };
    let (_, [one, other]) = two(&server.url);
    let call = charge(at("12:00:00"), 0, 1);
    for _ in 0..3 {
        assert_eq!(one.charge(&call).await, Ok(None));
        assert!(other.charge(&call).await.unwrap().is_some());
        one.refund(&call).await.unwrap();
    }
    assert_eq!(other.charge(&call).await, Ok(None));
}

/// Takes a call back while another one is refused: what the refused one knows is out of date by then.
struct RefundsMeanwhile(MemoryUsage, RedisUsage<Authority>, Authority);

#[async_trait]
impl Usage for RefundsMeanwhile {
    async fn charge(&self, charge: &Charge) -> StoreResult<Option<Limited>> {
        let limited = self.2.charge(charge).await?;
        if limited.is_some() {
            self.1.refund(charge).await?;
        }
        Ok(limited)
    }

    async fn refund(&self, charge: &Charge) -> StoreResult<()> {
        self.0.refund(charge).await
    }
}

#[tokio::test]
async fn b10_a_refusal_that_is_out_of_date_is_not_remembered() {
    let Some(server) = servers::redis("b10_a_refusal_that_is_out_of_date_is_not_remembered") else { return };
    let (authority, [one, other]) = two(&server.url);
    let call = charge(at("12:00:00"), 0, 1);
    assert_eq!(one.charge(&call).await, Ok(None));
    let meanwhile = RefundsMeanwhile(MemoryUsage::default(), one, authority);
    let late = RedisUsage::new(Redis::new(&server.url).unwrap(), meanwhile);
    assert!(late.charge(&call).await.unwrap().is_some());
    assert_eq!(other.charge(&call).await, Ok(None), "the slot was given back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b10_redis_killed_in_the_middle_lets_no_call_past_its_limit_and_comes_back() {
    let test = "b10_redis_killed_in_the_middle_lets_no_call_past_its_limit_and_comes_back";
    let port = servers::free_port();
    let Some(server) = servers::redis_on(test, port) else { return };
    let (authority, usages) = two(&url(port));
    let usages = Arc::new(usages);
    let counted = Arc::new(AtomicU32::new(0));
    let flood = |number: usize| {
        let (usages, counted) = (Arc::clone(&usages), Arc::clone(&counted));
        tokio::spawn(async move {
            for round in 0..40 {
                let call = Charge {
                    user: format!("user {}", (number + round) % 20),
                    ..charge(at("12:00:00"), 0, 3)
                };
                if usages[round % 2].charge(&call).await.unwrap().is_none() {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    };
    let calls: Vec<_> = (0..20).map(flood).collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    tokio::task::spawn_blocking(move || drop(server)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let server = tokio::task::spawn_blocking(move || servers::redis_on(test, port)).await.unwrap();
    for call in calls {
        call.await.unwrap();
    }
    // None past the limit, none lost.
    assert_eq!(counted.load(Ordering::SeqCst), 20 * 3);

    // It answers again by itself: a refusal costs the store nothing any more.
    let call = Charge { user: "user 0".to_owned(), ..charge(at("12:00:00"), 0, 3) };
    let mut known = false;
    for _ in 0..100 {
        let before = authority.times();
        assert!(usages[0].charge(&call).await.unwrap().is_some());
        known = authority.times() == before;
        if known {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(known, "Redis is not asked again");
    drop(server);
}

#[tokio::test]
async fn b10_without_redis_the_store_answers_at_once() {
    let (_, [one, _]) = two(&url(servers::free_port()));
    let began = std::time::Instant::now();
    assert_eq!(one.charge(&charge(at("12:00:00"), 0, 1)).await, Ok(None));
    for _ in 0..100 {
        assert!(one.charge(&charge(at("12:00:00"), 0, 1)).await.unwrap().is_some());
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let manifests = RedisManifests::new(Redis::new(&url(servers::free_port())).unwrap());
    assert!(manifests.get("mail").await.unwrap_err().to_string().contains("Redis"));
    assert!(Redis::new("http://127.0.0.1/").unwrap_err().to_string().contains("URL"));
}

#[tokio::test]
async fn b10_manifests_are_shared_for_an_hour() {
    let Some(server) = servers::redis("b10_manifests_are_shared_for_an_hour") else { return };
    let [one, other] = [(); 2].map(|()| RedisManifests::new(Redis::new(&server.url).unwrap()));
    assert_eq!(other.get("mail").await, Ok(None));
    one.put("mail", r#"{"old":true}"#).await.unwrap();
    one.put("mail", r#"{"tools":["ü"]}"#).await.unwrap();
    assert_eq!(other.get("mail").await.unwrap().as_deref(), Some(r#"{"tools":["ü"]}"#));
    let client = redis::Client::open(server.url.as_str()).unwrap();
    let mut plain = client.get_multiplexed_async_connection().await.unwrap();
    let left: u64 = redis::cmd("TTL").arg("module_manifest:mail").query_async(&mut plain).await.unwrap();
    assert!((MANIFEST_TTL.as_secs() - 5..=MANIFEST_TTL.as_secs()).contains(&left), "{left}");
}
