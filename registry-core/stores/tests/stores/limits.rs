//! Limits that hold however many calls come at once, over two stores on one database, as two servers have them.

use std::sync::Arc;

use registry_core::{
    ErrorKind,
    guard::{audit::MemoryAudit, limits::Usage},
};

use crate::{Place, at, call, contract::charge, registry, user};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t3_two_servers_let_exactly_as_many_calls_run_as_may() {
    for place in Place::all("t3_two_servers_let_exactly_as_many_calls_run_as_may") {
        let servers = [place.open("one").await, place.open("two").await].map(|store| {
            let store = Arc::new(store);
            registry(store.clone(), store, 3)
        });
        let calls: Vec<_> = (0..200)
            .map(|number| {
                let registry = servers[number % 2].clone();
                tokio::spawn(async move { call(&registry, &user(&registry, "ada")).await })
            })
            .collect();
        let mut ran = 0;
        for outcome in calls {
            match outcome.await.unwrap().result {
                Ok(_) => ran += 1,
                Err(error) => assert_eq!(error.kind(), ErrorKind::ToolRateLimited, "{}", error.message()),
            }
        }
        assert_eq!(ran, 3);
        // A server that starts later knows of them.
        let late = registry(Arc::new(place.open("three").await), Arc::new(MemoryAudit::new(8)), 3);
        assert!(!call(&late, &user(&late, "ada")).await.is_success());
        assert!(call(&late, &user(&late, "bob")).await.is_success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t3_of_calls_and_refunds_at_once_no_slot_is_lost() {
    for place in Place::all("t3_of_calls_and_refunds_at_once_no_slot_is_lost") {
        let stores = [place.open("one").await, place.open("two").await];
        let tasks: Vec<_> = (0..100)
            .map(|number| {
                let store = stores[number % 2].clone();
                tokio::spawn(async move {
                    let charge = charge(at("12:00:00"), 0, 5);
                    let counted = store.charge(&charge).await.unwrap().is_none();
                    if counted {
                        store.refund(&charge).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let mut left = 0;
        while stores[0].charge(&charge(at("12:00:00"), 0, 5)).await.unwrap().is_none() {
            left += 1;
        }
        assert_eq!(left, 5);
    }
}
