//! Copies of databases, and erasure: requirement B21.

use std::sync::Mutex;

use registry_core::{
    Permission,
    guard::audit::{
        AuditRecord, AuditSink, Phase,
        chain::Fault,
        log::{AuditFilter, AuditLog, NotedHeads},
    },
    store::{Store, StoreErrorKind, User},
};
use serde_json::{Value, json};
use toolrack_stores::{
    PostgresSettings,
    backup::{BackupRows, Layout, dump_tables, load_tables, size_of_tables},
};

use crate::{Place, at, chains::tamper, servers::postgres};

fn rows(rows: Vec<(&'static str, Value)>) -> Box<BackupRows<'static>> {
    let mut rows = rows.into_iter();
    Box::new(move || {
        let row =
            |(table, row): (&str, Value)| (table.to_owned(), serde_json::value::to_raw_value(&row).unwrap());
        Ok(rows.next().map(row))
    })
}

#[tokio::test]
async fn b21_tables_of_an_older_version_are_loaded_and_brought_to_this_one() {
    let test = "b21_tables_of_an_older_version_are_loaded_and_brought_to_this_one";
    let (Some(url), Some(empty)) = (postgres(test), postgres(test)) else { return };
    let old = Layout { steps: &Layout::STORE.steps[..4], ..Layout::STORE };
    let created_at = at("12:00:00");
    let ada =
        json!({"id": "ada", "level": "admin", "allowed_modules": ["research"], "created_at": created_at});
    let kept = vec![
        ("users", json!({"tenant": "default", "id": "ada", "document": ada.to_string()})),
        ("revision", json!({"number": 41})),
        (
            "dead_letters",
            json!({"position": 7, "tenant": "default", "id": "l", "endpoint": "e", "document": "{}"}),
        ),
    ];
    load_tables(&url, &[(old, 4)], false, &mut rows(kept)).await.unwrap();

    let dumped = Mutex::new(Vec::new());
    let mut keep = |part: &'static str, table: &str, row: &str| {
        assert_eq!(part, "store");
        dumped.lock().unwrap().push((table.to_owned(), row.to_owned()));
        Ok(())
    };
    assert_eq!(dump_tables(&url, &[Layout::STORE], &mut keep).await.unwrap(), [("store", 4)]);
    let dumped = dumped.into_inner().unwrap();
    assert_eq!(dumped.len(), 3, "{dumped:?}");
    let mut again = dumped.iter().map(|(table, row)| (table.clone(), serde_json::from_str(row).unwrap()));
    load_tables(&empty, &[(Layout::STORE, 4)], false, &mut || Ok(again.next())).await.unwrap();

    let store = PostgresSettings::new(&empty, "main").open().await.unwrap();
    let users = store.users("default").await.unwrap();
    let ada = User { id: "ada".into(), level: Permission::Admin, personas: vec!["ada".into()], created_at };
    assert_eq!(users, [ada]);
    assert_eq!(store.revision().await.unwrap(), 41);
    // Numbers go on behind those of the backup.
    store.record(AuditRecord { tenant: "default".into(), ..AuditRecord::default() }).await.unwrap();

    // A server that runs, data that is there, a newer version, unknown rows: nothing is changed.
    let refused = async |of: usize, replace, kept| {
        load_tables(&empty, &[(Layout::STORE, of)], replace, &mut rows(kept)).await.unwrap_err()
    };
    let fault = refused(4, true, vec![]).await;
    assert!(
        fault.kind() == StoreErrorKind::Conflict && fault.to_string().contains("a server uses it"),
        "{fault}"
    );
    drop(store);
    let mut fault = refused(4, false, vec![]).await;
    while fault.to_string().contains("a server uses it") {
        fault = refused(4, false, vec![]).await;
    }
    assert!(fault.to_string().contains("there is data already"), "{fault}");
    let fault = refused(99, true, vec![]).await;
    assert!(fault.to_string().contains("use the newer program"), "{fault}");
    let fault = refused(13, true, vec![("pg_authid", json!({}))]).await;
    assert!(fault.to_string().contains("unknown table `pg_authid`"), "{fault}");
    let fault = refused(13, true, vec![("users", json!({"tenant": null}))]).await;
    assert_eq!(fault.kind(), StoreErrorKind::Invalid, "{fault}");
    let store = PostgresSettings::new(&empty, "main").open().await.unwrap();
    assert_eq!(store.users("default").await.unwrap().len(), 1);
}

fn sign(message: &str) -> String {
    registry_core::guard::audit::hash_arguments(&json!(["secret", message]))
}

fn check(message: &str, proof: &str) -> bool {
    sign(message) == proof
}

#[tokio::test]
async fn b21_erased_records_verify_and_nobody_can_erase_unseen() {
    for place in Place::all("b21_erased_records_verify_and_nobody_can_erase_unseen") {
        let stores = [place.open("one").await, place.open("two").await];
        for (number, store) in (0..6).zip(stores.iter().cycle()) {
            let record = AuditRecord {
                phase: Phase::Outcome,
                tool: "mail.send".into(),
                call_id: format!("c{number}"),
                tenant: "default".into(),
                user: if number % 3 == 0 { "ada" } else { "bob" }.into(),
                success: Some(true),
                arguments: Some(json!({"to": "Mill Lane"})),
                ts: at("12:00:00"),
                ..AuditRecord::default()
            };
            store.record(record).await.unwrap();
        }
        let verified = async || {
            let none = NotedHeads::new();
            let reports = stores[0].verify_with_erasures("default", &none, &check).await.unwrap();
            reports
                .into_iter()
                .map(|report| (report.records, report.erased, report.fault))
                .collect::<Vec<_>>()
        };
        let heads = stores[0].verify("default", &NotedHeads::new()).await.unwrap();
        assert_eq!(stores[0].erase_records("default", "ada", at("13:00:00"), &sign).await.unwrap(), 2);
        assert_eq!(verified().await, [(3, 1, None), (3, 1, None)]);
        // The hashes of the chains are what they were, and it goes on.
        for (before, after) in heads
            .iter()
            .zip(stores[0].verify_with_erasures("default", &NotedHeads::new(), &check).await.unwrap())
        {
            assert_eq!(before.head, after.head);
        }
        let strict = stores[0].verify("default", &NotedHeads::new()).await.unwrap();
        assert!(strict.iter().all(|report| report.fault.is_some_and(|(_, fault)| fault == Fault::Changed)));
        let records = stores[0].list(&AuditFilter::new("default")).await.unwrap();
        let with = records.iter().filter(|record| record.record.get().contains("Mill Lane")).count();
        assert_eq!((records.len(), with), (6, 4));
        assert_eq!(stores[0].erase_records("default", "ada", at("14:00:00"), &sign).await.unwrap(), 0);
        stores[1].record(AuditRecord { tenant: "default".into(), ..AuditRecord::default() }).await.unwrap();
        assert_eq!(verified().await, [(3, 1, None), (4, 1, None)]);

        // The database refuses any other change, and a proof of somebody else shows.
        assert!(!try_tamper(&place, "UPDATE audit SET record = '{}' WHERE seq = 1").await);
        assert!(!try_tamper(&place, "UPDATE audit SET user_id = 'eve', record = record || ',\"erasure_proof\":\"x\"}' WHERE seq = 1").await);
        assert!(try_tamper(&place, "UPDATE audit SET record = '{\"ts\":\"x\",\"erasure_proof\":\"AAAA\"}' WHERE seq = 2 AND server = 'one'").await);
        assert_eq!(verified().await[0].2, Some((2, Fault::Changed)));
    }
}

/// Whether the database lets somebody change it so.
async fn try_tamper(place: &Place, sql: &'static str) -> bool {
    use futures_util::FutureExt;
    std::panic::AssertUnwindSafe(tamper(place, sql)).catch_unwind().await.is_ok()
}

#[tokio::test]
async fn b21_the_size_of_tables_is_known_before_they_are_copied() {
    let Some(url) = postgres("b21_the_size_of_tables_is_known_before_they_are_copied") else { return };
    assert_eq!(size_of_tables(&url, &[Layout::STORE]).await.unwrap(), 0);
    let store = PostgresSettings::new(&url, "main").open().await.unwrap();
    let empty = size_of_tables(&url, &[Layout::STORE]).await.unwrap();
    for number in 0..200 {
        // What is all the same takes no room.
        let call_id = (0..500).map(|at| format!("{:x}", (at * 7919 + number * 104_729) % 65_521)).collect();
        store
            .record(AuditRecord { tenant: "default".to_owned(), call_id, ..AuditRecord::default() })
            .await
            .unwrap();
    }
    let grown = size_of_tables(&url, &[Layout::STORE]).await.unwrap() - empty;
    assert!(grown > 400_000, "{grown}");
}
