//! Servers that freeze or are restarted while calls come: nobody waits for long, none too many run, and all goes on by itself.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use registry_core::{
    Caller, ErrorKind, Permission, Registry, ToolCall, ToolPolicy, ToolResult, ToolSpec,
    guard::{
        audit::log::{AuditFilter, AuditLog, NotedHeads},
        limits::{Charge, MemoryUsage, Usage},
    },
    handler_fn,
};
use serde_json::json;
use toolrack_stores::{Redis, RedisUsage};

use crate::{at, contract::charge, open, servers};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b10_redis_frozen_under_load_holds_nobody_up_and_comes_back() {
    const USERS: usize = 20;
    const LIMIT: u32 = 3;
    let test = "b10_redis_frozen_under_load_holds_nobody_up_and_comes_back";
    let port = servers::free_port();
    let Some(server) = servers::redis_on(test, port) else { return };
    let redis = || Redis::new(&format!("redis://127.0.0.1:{port}/")).unwrap();
    let authority = Arc::new(MemoryUsage::default());
    let usages = Arc::new([(); 2].map(|()| RedisUsage::new(redis(), Arc::clone(&authority))));
    let (counted, made) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let over = Arc::new(AtomicBool::new(false));
    let calls = (0..USERS).map(|number| {
        let (usages, over) = (Arc::clone(&usages), Arc::clone(&over));
        let (counted, made) = (Arc::clone(&counted), Arc::clone(&made));
        tokio::spawn(async move {
            let mut slowest = Duration::ZERO;
            let mut round = 0;
            while !over.load(Ordering::SeqCst) {
                // A user's calls come while Redis answers, while it does not, and after that.
                let user = format!("user {}", (number + round / 8) % USERS + USERS * (round / 24));
                let call = Charge { user, ..charge(at("12:00:00"), 0, LIMIT) };
                let asked = Instant::now();
                if usages[round % 2].charge(&call).await.unwrap().is_none() {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                made.fetch_add(1, Ordering::SeqCst);
                slowest = slowest.max(asked.elapsed());
                round += 1;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            slowest
        })
    });
    let calls: Vec<_> = calls.collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.signal("STOP");
    let before = made.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let meanwhile = made.load(Ordering::SeqCst) - before;
    server.signal("CONT");
    tokio::time::sleep(Duration::from_millis(500)).await;
    over.store(true, Ordering::SeqCst);
    let mut slowest = Duration::ZERO;
    for call in calls {
        slowest = slowest.max(call.await.unwrap());
    }
    // Once when asked what it knows, once when something is written.
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    assert!(meanwhile > 200, "calls go on: {meanwhile}");
    // The store has the count: whoever asks it now is over the limit exactly where so many were let through.
    let mut let_through = 0;
    for user in 0.. {
        let call =
            |daily_limit| Charge { user: format!("user {user}"), ..charge(at("12:00:00"), 0, daily_limit) };
        let mut left = 0;
        while authority.charge(&call(LIMIT)).await.unwrap().is_none() {
            left += 1;
        }
        let_through += LIMIT - left;
        if left == LIMIT && user > USERS * 100 {
            break;
        }
    }
    assert_eq!(counted.load(Ordering::SeqCst), let_through);

    // It is asked again by itself: what one server has found out the other knows.
    let call = Charge { user: "late".to_owned(), ..charge(at("12:00:00"), 0, 1) };
    authority.charge(&call).await.unwrap();
    let began = Instant::now();
    loop {
        assert!(usages[0].charge(&call).await.unwrap().is_some());
        authority.refund(&call).await.unwrap();
        let known = usages[1].charge(&call).await.unwrap().is_some();
        if known {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "Redis is not asked again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("{meanwhile} calls while it was frozen, the slowest took {slowest:.0?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b10_postgres_restarted_under_load_fails_clearly_and_is_found_again() {
    const LIMIT: u32 = 5;
    let test = "b10_postgres_restarted_under_load_fails_clearly_and_is_found_again";
    let Some(server) = servers::own_postgres(test) else { return };
    let server = Arc::new(server);
    let url = server.new_database();
    let stores = [Arc::new(open(&url, "one").await), Arc::new(open(&url, "two").await)];
    let ran = Arc::new(Mutex::new(BTreeMap::<String, u32>::new()));
    let racks = stores.clone().map(|store| {
        let registry = Registry::builder().without_compiled();
        let registry = registry.usage(store.clone()).audit(store).build().unwrap();
        let ran = Arc::clone(&ran);
        let handler = handler_fn(move |context, _| {
            *ran.lock().unwrap().entry(context.caller().user.clone()).or_default() += 1;
            async { Ok(ToolResult::new("done")) }
        });
        let policy = ToolPolicy { daily_limit: LIMIT, ..ToolPolicy::new() };
        registry.register(ToolSpec::new("act", json!({"type": "object"})), policy, Some(handler)).unwrap();
        registry
    });
    let mut attached = Vec::new();
    for (registry, store) in racks.iter().zip(&stores) {
        attached.push(registry.attach(store.clone()).await.unwrap());
    }

    // New users come all the time, so that there are always calls that may run.
    let over = Arc::new(AtomicBool::new(false));
    let failed = Arc::new(Mutex::new(BTreeMap::<String, u32>::new()));
    let calls = (0..8).map(|number: usize| {
        let (racks, over, failed) = (racks.clone(), Arc::clone(&over), Arc::clone(&failed));
        tokio::spawn(async move {
            let (mut done, mut slowest) = (0, Duration::ZERO);
            for round in 0.. {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let registry = &racks[(number + round) % 2];
                let user = format!("user {} of {}", round / 12, number / 2);
                let context = registry.context(Caller::new(user, Permission::User));
                let asked = Instant::now();
                let outcome = registry.execute(&context, ToolCall::new("act", json!({}))).await;
                slowest = slowest.max(asked.elapsed());
                match &outcome.result {
                    Ok(_) => done += 1,
                    Err(error) => {
                        let shown = serde_json::to_string(&outcome.to_reply()).unwrap();
                        assert!(!shown.contains("127.0.0.1"), "{shown}");
                        let kind = error.kind();
                        *failed.lock().unwrap().entry(format!("{kind:?}")).or_default() += 1;
                        if kind != ErrorKind::ToolRateLimited {
                            tokio::time::sleep(Duration::from_millis(10)).await;
                        }
                    }
                }
            }
            (done, slowest)
        })
    });
    let calls: Vec<_> = calls.collect();
    let failures = || {
        let failed = failed.lock().unwrap();
        failed.iter().filter(|(kind, _)| *kind != "ToolRateLimited").map(|(_, count)| count).sum::<u32>()
    };
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(failures(), 0, "{failed:?}");
    for _ in 0..2 {
        let stopped = Arc::clone(&server);
        tokio::task::spawn_blocking(move || stopped.stop()).await.unwrap();
        let before = failures();
        tokio::time::sleep(Duration::from_millis(1200)).await;
        assert!(failures() > before + 8, "calls fail while it is away, and none of them waits: {failed:?}");
        let started = Arc::clone(&server);
        tokio::task::spawn_blocking(move || started.start_again()).await.unwrap();
        let back = Instant::now();
        let ran_until = || ran.lock().unwrap().values().sum::<u32>();
        let before = ran_until();
        while ran_until() < before + 20 {
            assert!(back.elapsed() < Duration::from_secs(20), "no call runs again: {failed:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    // A change by one server is seen by the other as before.
    attached[0].set_enabled("act", false).await.unwrap();
    let switched = Instant::now();
    while attached[1].registry().get("act").unwrap().is_enabled() {
        assert!(switched.elapsed() < Duration::from_secs(3), "the change is not seen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    over.store(true, Ordering::SeqCst);
    let (mut done, mut slowest) = (0, Duration::ZERO);
    for call in calls {
        let (of_one, slowest_of_one) = call.await.unwrap();
        done += of_one;
        slowest = slowest.max(slowest_of_one);
    }
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    let ran = ran.lock().unwrap().clone();
    assert!(ran.values().all(|calls| *calls <= LIMIT), "{ran:?}");
    assert!(ran.values().filter(|calls| **calls == LIMIT).count() > 0);
    // Whatever was acknowledged is in the audit, and its chains are whole.
    let records = stores[0].list(&AuditFilter::new("default")).await.unwrap();
    let succeeded = records.iter().filter(|record| record.record.get().contains("\"success\":true")).count();
    assert!(succeeded >= done, "{succeeded} of {done}");
    for report in stores[0].verify("default", &NotedHeads::new()).await.unwrap() {
        assert_eq!(report.fault, None, "{report:?}");
    }
    println!("{done} calls done, the slowest took {slowest:.1?}; {:?}", failed.lock().unwrap());
}
