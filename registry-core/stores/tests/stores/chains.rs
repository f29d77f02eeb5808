//! The audit in a database: read, exported, and verified after somebody has been at it.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc, time::Duration};

use registry_core::{
    Origin, Permission, ToolCall,
    guard::{
        audit::{
            AuditRecord, AuditSink, Phase,
            chain::{Fault, link, origin},
            log::{
                AuditCursor, AuditEventKind, AuditFilter, AuditLog, ChainedRecord, NotedHeads, OriginFilter,
            },
        },
        gate::{Decision, Verdict},
        limits::{MemoryUsage, Usage},
    },
};
use serde_json::{Map, Value, json};
use sqlx::{Connection, PgConnection, SqliteConnection};
use toolrack_stores::SqlStore;

use crate::{Place, at, call, contract::charge, registry, user};

/// Runs statements behind the store's back.
pub(crate) async fn tamper(place: &Place, sql: &'static str) {
    let url = place.url();
    match place {
        Place::File(_) => {
            let mut link = SqliteConnection::connect(&format!("sqlite:{url}")).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut link).await.unwrap();
        }
        Place::Postgres(_) => {
            let mut link = PgConnection::connect(&url).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut link).await.unwrap();
        }
    }
}

/// Takes away what protects the audit.
async fn unlock(place: &Place) {
    match place {
        Place::File(_) => {
            tamper(place, "DROP TRIGGER audit_is_not_changed; DROP TRIGGER audit_is_not_removed").await;
        }
        Place::Postgres(_) => tamper(place, "DROP TRIGGER audit_is_not_changed ON audit").await,
    }
}

pub(crate) fn record(tenant: &str, tool: &str, second: u32) -> AuditRecord {
    AuditRecord {
        phase: Phase::Outcome,
        tool: tool.to_owned(),
        version: None,
        call_id: format!("call-{second}"),
        parent_call_id: None,
        asked_for: None,
        asked_for_sha256: None,
        questions: Vec::new(),
        has_read: Default::default(),
        model_usage: None,
        attempt: 1,
        tenant: tenant.to_owned(),
        user: "ada".to_owned(),
        via: None,
        credential: None,
        level: Permission::User,
        origin: ToolCall::new(tool, json!({})).origin,
        arguments_sha256: "00".to_owned(),
        arguments: Some(json!({"text": "ü \u{0} ' \" \\ 🙂"})),
        decision: None,
        success: Some(second.is_multiple_of(2)),
        error: None,
        error_message: None,
        side_effects: Vec::new(),
        audit: Map::new(),
        duration_ms: Some(1),
        ts: at(&format!("12:00:{second:02}")),
    }
}

/// Ten records of tenant `default`, and two of another.
async fn filled(place: &Place) -> SqlStore {
    let store = place.open("main").await;
    for second in 0..10 {
        store.record(record("default", if second < 5 { "early" } else { "late" }, second)).await.unwrap();
    }
    for second in 0..2 {
        store.record(record("other", "early", second)).await.unwrap();
    }
    store
}

#[tokio::test]
async fn t5_records_are_found_by_what_is_asked_for() {
    for place in Place::all("t5_records_are_found_by_what_is_asked_for") {
        let store = filled(&place).await;
        let all = AuditFilter::new("default");
        let seqs = async |filter: AuditFilter| -> Vec<u64> {
            store.list(&filter).await.unwrap().iter().map(|record| record.seq).collect()
        };
        assert_eq!(seqs(all.clone()).await, (1..=10).collect::<Vec<_>>());
        assert_eq!(seqs(AuditFilter { newest_first: true, limit: 2, ..all.clone() }).await, [10, 9]);
        let newest = AuditFilter { newest_first: true, limit: 2, ..all.clone() };
        let beyond = beyond(&store.list(&newest).await.unwrap());
        assert_eq!(seqs(AuditFilter { beyond, ..newest }).await, [8, 7]);
        assert_eq!(seqs(AuditFilter { tool: Some("late".into()), ..all.clone() }).await, [6, 7, 8, 9, 10]);
        assert_eq!(seqs(AuditFilter { user: Some("bob".into()), ..all.clone() }).await, [0; 0]);
        assert_eq!(seqs(AuditFilter { call_id: Some("call-3".into()), ..all.clone() }).await, [4]);
        let some = AuditFilter { since: Some(at("12:00:02")), until: Some(at("12:00:05")), ..all.clone() };
        assert_eq!(seqs(some.clone()).await, [3, 4, 5]);
        assert_eq!(seqs(AuditFilter { happened: Some(AuditEventKind::Success), ..some }).await, [3, 5]);
        assert_eq!(seqs(AuditFilter { happened: Some(AuditEventKind::Intent), ..all }).await, [0; 0]);
        assert_eq!(seqs(AuditFilter::new("nobody's")).await, [0; 0]);
    }
}

fn beyond(page: &[ChainedRecord]) -> Option<AuditCursor> {
    let mut cursor = AuditCursor::default();
    cursor.advance(page);
    Some(cursor)
}

#[tokio::test]
async fn k10_a_record_that_is_committed_late_is_on_a_later_page() {
    let Some(place) = Place::postgres("k10_a_record_that_is_committed_late_is_on_a_later_page") else {
        return;
    };
    let (one, two) = (place.open("one").await, place.open("two").await);
    one.record(record("default", "first", 0)).await.unwrap();
    // Another server has taken its position and does not commit yet.
    let mut late = PgConnection::connect(&place.url()).await.unwrap();
    sqlx::raw_sql(
        "BEGIN; INSERT INTO audit (tenant, server, seq, ts, user_id, tool, call_id, happened, previous, sha256, record)
         VALUES ('default', 'late', 1, '2026-03-01T12:00:00.000000000Z', 'ada', 'late', 'c', 'success', 'p', 's', '{}')",
    )
    .execute(&mut late)
    .await
    .unwrap();
    two.record(record("default", "second", 1)).await.unwrap();
    one.record(record("default", "third", 2)).await.unwrap();

    let all = AuditFilter::new("default");
    let mut cursor = AuditCursor::default();
    let mut pages = Vec::new();
    let next = async |cursor: &mut AuditCursor| -> Vec<(String, u64)> {
        let filter = AuditFilter { limit: 2, beyond: Some(cursor.clone()), ..all.clone() };
        let page = two.list(&filter).await.unwrap();
        cursor.advance(&page);
        page.into_iter().map(|record| (record.server, record.seq)).collect()
    };
    pages.extend(next(&mut cursor).await);
    sqlx::raw_sql("COMMIT").execute(&mut late).await.unwrap();
    pages.extend(next(&mut cursor).await);
    pages.extend(next(&mut cursor).await);
    let expected = [("one", 1), ("two", 1), ("late", 1), ("one", 2)];
    assert_eq!(pages, expected.map(|(server, seq)| (server.to_owned(), seq)));
}

#[tokio::test]
async fn t5_records_are_found_by_origin_and_decision_however_far_apart() {
    for place in Place::all("t5_records_are_found_by_origin_and_decision") {
        let store = place.open("main").await;
        // What a tool notes says nothing about the call.
        let notes = json!({"origin": "mcp", "decision": {"verdict": "blocked"}});
        let other = AuditRecord { audit: notes.as_object().unwrap().clone(), ..record("default", "x", 1) };
        let keep = async |records: Vec<AuditRecord>| {
            let kept = records.into_iter().map(|record| store.record(record));
            assert!(futures_util::future::join_all(kept).await.iter().all(Result::is_ok));
        };
        let by = |verdict| Some(Decision::new(verdict, "gate"));
        let blocked = AuditRecord { origin: Origin::Mcp, decision: by(Verdict::Blocked), ..other.clone() };
        let written = AuditRecord { origin: Origin::Text("hermes".into()), ..blocked.clone() };
        let approved = AuditRecord { decision: by(Verdict::Approved), ..written.clone() };
        // One after another where the order counts, with more between than are read at a time.
        keep(vec![blocked]).await;
        keep(vec![other.clone(); 1500]).await;
        keep(vec![written]).await;
        keep(vec![other; 1100]).await;
        keep(vec![approved]).await;

        let all = AuditFilter::new("default");
        let seqs = async |filter: &AuditFilter| -> Vec<u64> {
            store.list(filter).await.unwrap().iter().map(|record| record.seq).collect()
        };
        let mcp = AuditFilter { origin: Some(OriginFilter::Is(Origin::Mcp)), ..all.clone() };
        assert_eq!(seqs(&mcp).await, [1]);
        let text = AuditFilter { origin: Some(OriginFilter::Text), ..all.clone() };
        assert_eq!(seqs(&text).await, [1502, 2603]);
        let newest = AuditFilter { newest_first: true, limit: 1, ..text.clone() };
        assert_eq!(seqs(&newest).await, [2603]);
        let beyond = beyond(&store.list(&newest).await.unwrap());
        assert_eq!(seqs(&AuditFilter { beyond, ..newest }).await, [1502]);
        assert_eq!(seqs(&AuditFilter { limit: 0, ..text.clone() }).await, [0; 0]);
        let dialect = |name: &'static str| Some(OriginFilter::Is(Origin::Text(name.into())));
        assert_eq!(seqs(&AuditFilter { origin: dialect("hermes"), ..all.clone() }).await, [1502, 2603]);
        assert_eq!(seqs(&AuditFilter { origin: dialect("kimi_k2"), ..all.clone() }).await, [0; 0]);
        let blocked = AuditFilter { verdict: Some(Verdict::Blocked), ..all.clone() };
        assert_eq!(seqs(&blocked).await, [1, 1502]);
        assert_eq!(seqs(&AuditFilter { origin: text.origin, ..blocked }).await, [1502]);
        let library = AuditFilter { origin: Some(OriginFilter::Is(Origin::Library)), ..all };
        let mut lines = 0;
        let mut count = |_: &str| {
            lines += 1;
            ControlFlow::Continue(())
        };
        assert_eq!(store.export(&library, &mut count).await.unwrap(), 2600);
        assert_eq!(lines, 2600);
    }
}

#[tokio::test]
async fn t5_an_export_can_be_verified_by_whoever_can_hash() {
    for place in Place::all("t5_an_export_can_be_verified_by_whoever_can_hash") {
        let store = filled(&place).await;
        // More than are read at a time.
        let many = (0..1100).map(|_| store.record(record("default", "many", 11)));
        assert!(futures_util::future::join_all(many).await.iter().all(Result::is_ok));
        let mut lines = Vec::new();
        let mut keep = |line: &str| {
            lines.push(line.to_owned());
            ControlFlow::Continue(())
        };
        let written = store.export(&AuditFilter::new("default"), &mut keep).await.unwrap();
        assert_eq!((written, lines.len()), (1110, 1110));
        let mut previous = origin("default", "main");
        for (line, seq) in lines.iter().zip(1..) {
            let read: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&read["seq"], &read["server"]), (&json!(seq), &json!("main")));
            assert_eq!(read["record"]["arguments"]["text"], "ü \u{0} ' \" \\ 🙂");
            // The text of the record is the rest of its line, to the byte.
            let text = line.split_once(r#""record":"#).unwrap().1.strip_suffix('}').unwrap();
            previous = link(&previous, seq, text);
            assert_eq!(read["sha256"], json!(previous));
        }
        let report = store.verify("default", &NotedHeads::new()).await.unwrap();
        assert_eq!((report[0].records, &report[0].head.sha256), (1110, &previous));
        let mut two = 0;
        let few = AuditFilter { limit: 2, ..AuditFilter::new("default") };
        let mut count = |_: &str| {
            two += 1;
            ControlFlow::Continue(())
        };
        assert_eq!(store.export(&few, &mut count).await.unwrap(), 2);
        assert_eq!(store.export(&few, &mut |_: &str| ControlFlow::Break(())).await.unwrap(), 0);
        assert_eq!(two, 2);
    }
}

#[tokio::test]
async fn t5_what_was_done_to_a_chain_shows() {
    const REFUSED: &str = "the audit is only ever added to";
    let cases: [(&'static str, Option<(u64, Fault)>); 7] = [
        (
            "UPDATE audit SET record = replace(record, 'ada', 'bob') WHERE seq = 4 AND tenant = 'default'",
            Some((4, Fault::Changed)),
        ),
        ("DELETE FROM audit WHERE seq = 4 AND tenant = 'default'", Some((4, Fault::Missing))),
        ("DELETE FROM audit WHERE seq = 1 AND tenant = 'default'", Some((1, Fault::Missing))),
        (
            "UPDATE audit SET seq = -seq WHERE seq IN (4, 5) AND tenant = 'default'; \
             UPDATE audit SET seq = 9 + seq WHERE seq IN (-4, -5) AND tenant = 'default'",
            Some((4, Fault::WrongLink)),
        ),
        ("UPDATE audit SET sha256 = '00' WHERE seq = 4 AND tenant = 'default'", Some((4, Fault::Changed))),
        ("UPDATE audit SET tool = 'other' WHERE seq = 4 AND tenant = 'default'", Some((4, Fault::Changed))),
        // Cut off at the end: the chain is whole, and shorter than the head that was noted.
        ("DELETE FROM audit WHERE seq > 8 AND tenant = 'default'", None),
    ];
    for (sql, fault) in cases {
        for place in Place::all("t5_what_was_done_to_a_chain_shows") {
            let store = filled(&place).await;
            let noted = store.verify("default", &NotedHeads::new()).await.unwrap().remove(0);
            assert_eq!((noted.records, noted.fault), (10, None));
            let refused = match &place {
                Place::File(_) => {
                    let mut link =
                        SqliteConnection::connect(&format!("sqlite:{}", place.url())).await.unwrap();
                    sqlx::raw_sql(sql).execute(&mut link).await.unwrap_err()
                }
                Place::Postgres(url) => {
                    let mut link = PgConnection::connect(url).await.unwrap();
                    sqlx::raw_sql(sql).execute(&mut link).await.unwrap_err()
                }
            };
            assert!(refused.to_string().contains(REFUSED), "{refused}");
            assert_eq!(
                store.verify("default", &NotedHeads::new()).await.unwrap(),
                std::slice::from_ref(&noted)
            );
            unlock(&place).await;
            tamper(&place, sql).await;
            let reports = store.verify("default", &NotedHeads::new()).await.unwrap();
            assert_eq!(reports[0].fault, fault, "{sql}");
            assert_ne!(reports[0].head, noted.head, "{sql}");
            // The other tenant's chain is another one.
            assert_eq!(store.verify("other", &NotedHeads::new()).await.unwrap()[0].fault, None);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t5_two_processes_on_one_chain_keep_it_whole() {
    for place in Place::all("t5_two_processes_on_one_chain_keep_it_whole") {
        let stores = [place.open("main").await, place.open("main").await, place.open("spare").await];
        let tasks: Vec<_> = (0..300)
            .map(|number| {
                let store = stores[number % 3].clone();
                tokio::spawn(async move { store.record(record("default", "act", 1)).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        let reports = stores[0].verify("default", &NotedHeads::new()).await.unwrap();
        let seen: Vec<_> =
            reports.iter().map(|report| (report.server.as_str(), report.records, report.fault)).collect();
        assert_eq!(seen, [("main", 200, None), ("spare", 100, None)]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t5_a_record_that_cannot_be_kept_harms_no_other() {
    let place = Place::file();
    let store = place.open("main").await;
    tamper(
        &place,
        "CREATE TRIGGER poison BEFORE INSERT ON audit WHEN NEW.tool = 'poison' BEGIN SELECT RAISE(ABORT, 'poison'); END",
    )
    .await;
    let write = |number: u32| {
        let tool = if number % 10 == 3 { "poison" } else { "act" };
        let store = store.clone();
        async move {
            (
                tool,
                store.record(record("default", tool, 1)).await,
                store.charge(&charge(at("12:00:00"), 0, 100)).await,
            )
        }
    };
    for (tool, kept, counted) in futures_util::future::join_all((0..100).map(write)).await {
        assert_eq!(kept.is_ok(), tool == "act", "{kept:?}");
        assert_eq!(counted, Ok(None));
    }
    let report = store.verify("default", &NotedHeads::new()).await.unwrap().remove(0);
    assert_eq!((report.records, report.fault), (90, None));
    // As many calls as were counted, and no more.
    assert!(store.charge(&charge(at("12:00:00"), 0, 100)).await.unwrap().is_some());
}

#[tokio::test]
async fn t5_a_call_that_a_model_named_with_a_nul_leaves_its_record() {
    for place in Place::all("t5_a_call_that_a_model_named_with_a_nul_leaves_its_record") {
        let store = Arc::new(place.open("main").await);
        let registry = registry(Arc::new(MemoryUsage::default()), store.clone(), 0);
        let odd = ToolCall::new("a\0ct", json!({}));
        assert!(!registry.execute(&user(&registry, "ada"), odd).await.is_success());
        assert!(call(&registry, &user(&registry, "ada")).await.is_success());
        let named = AuditFilter { tool: Some("a\0ct".into()), ..AuditFilter::new("default") };
        let found = store.list(&named).await.unwrap();
        let read: Value = serde_json::from_str(found[0].record.get()).unwrap();
        assert_eq!((found.len(), &read["tool"]), (1, &json!("a\0ct")));
        assert_eq!(store.verify("default", &NotedHeads::new()).await.unwrap()[0].records, 3);
    }
}

#[tokio::test]
async fn t5_nothing_is_acknowledged_when_the_runtime_of_the_store_is_gone() {
    let place = Place::file();
    let url = place.url();
    let store = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(crate::open(&url, "main"))
    })
    .join()
    .unwrap();
    let kept = tokio::time::timeout(Duration::from_secs(5), store.record(record("default", "act", 1))).await;
    assert!(kept.unwrap().unwrap_err().to_string().contains("closed"));
}

/// The head of the chain of the tenant `default`, as it was noted elsewhere.
async fn noted(store: &SqlStore) -> NotedHeads {
    let head = store.heads().await.unwrap().remove("default").unwrap();
    NotedHeads::from([("main".to_owned(), BTreeMap::from([(head.seq, head.sha256)]))])
}

#[tokio::test]
async fn a20_a_noted_head_shows_what_a_whole_chain_does_not() {
    let removed = "DELETE FROM audit WHERE tenant = 'default'";
    let cases = [
        ("DELETE FROM audit WHERE seq > 8 AND tenant = 'default'", (10, Fault::CutOff)),
        (removed, (10, Fault::CutOff)),
        // Given to another tenant, whose chain does not take them either.
        ("UPDATE audit SET tenant = 'moved' WHERE tenant = 'default'", (10, Fault::CutOff)),
    ];
    for (sql, fault) in cases {
        for place in Place::all("a20_a_noted_head_shows_what_a_whole_chain_does_not") {
            let store = filled(&place).await;
            let noted = noted(&store).await;
            assert_eq!(store.verify("default", &noted).await.unwrap()[0].fault, None);
            unlock(&place).await;
            tamper(&place, sql).await;
            assert_eq!(store.verify("default", &noted).await.unwrap()[0].fault, Some(fault), "{sql}");
            for report in store.verify("moved", &NotedHeads::new()).await.unwrap() {
                assert_eq!(report.fault, Some((1, Fault::WrongLink)));
            }
        }
    }
    // All hashed anew: the program itself has written other records.
    for place in Place::all("a20_a_noted_head_shows_what_a_whole_chain_does_not_2") {
        let store = filled(&place).await;
        let noted = noted(&store).await;
        unlock(&place).await;
        tamper(&place, removed).await;
        for second in 0..12 {
            store.record(record("default", "another", second)).await.unwrap();
        }
        assert_eq!(store.verify("default", &NotedHeads::new()).await.unwrap()[0].fault, None);
        let report = store.verify("default", &noted).await.unwrap().remove(0);
        assert_eq!((report.records, report.fault), (9, Some((10, Fault::Rewritten))));
    }
}

#[tokio::test]
async fn k25_old_records_are_removed_with_a_proof_and_the_chain_stays_whole() {
    for place in Place::all("k25_old_records_are_removed_with_a_proof_and_the_chain_stays_whole") {
        let store = filled(&place).await;
        let noted = noted(&store).await;
        let newest =
            |wanted: usize| AuditFilter { newest_first: true, limit: wanted, ..AuditFilter::new("default") };
        let records = store.list(&newest(10)).await.unwrap();
        let ts = |record: &ChainedRecord| -> jiff::Timestamp {
            let said: Value = serde_json::from_str(record.record.get()).unwrap();
            said["ts"].as_str().unwrap().parse().unwrap()
        };
        let written_fifth = ts(&records[10 - 5]);
        assert_eq!(store.last_before("default", ts(&records[9])).await.unwrap(), None);
        let up_to = store.last_before("default", written_fifth).await.unwrap().unwrap();
        assert_eq!((up_to.seq, &up_to.sha256), (4, &records[10 - 4].sha256));
        // All but the last, whatever the time.
        let all = store.last_before("default", jiff::Timestamp::MAX).await.unwrap().unwrap();
        assert_eq!(all.seq, 9);

        store.remove("default", &up_to, "a proof").await.unwrap();
        assert_eq!(store.hash("default", 4).await.unwrap(), Some(up_to.sha256.clone()));
        assert_eq!(store.hash("default", 3).await.unwrap(), None);
        let report = store.verify("default", &noted).await.unwrap().remove(0);
        assert_eq!((report.records, report.fault), (6, None));
        let start = report.start.unwrap();
        assert_eq!((&start.after, start.proof.as_str()), (&up_to, "a proof"));
        assert_eq!(store.verify("other", &NotedHeads::new()).await.unwrap()[0].records, 2);
        store.record(record("default", "act", 20)).await.unwrap();
        let report = store.verify("default", &noted).await.unwrap().remove(0);
        assert_eq!((report.records, report.head.seq, report.fault), (7, 11, None));

        // More than was proven stays protected.
        let refused = match &place {
            Place::File(_) => {
                let mut link = SqliteConnection::connect(&format!("sqlite:{}", place.url())).await.unwrap();
                sqlx::raw_sql("DELETE FROM audit WHERE seq = 5").execute(&mut link).await.unwrap_err()
            }
            Place::Postgres(url) => {
                let mut link = PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql("DELETE FROM audit WHERE seq = 5").execute(&mut link).await.unwrap_err()
            }
        };
        assert!(refused.to_string().contains("only ever added to"), "{refused}");
        unlock(&place).await;
        tamper(&place, "DELETE FROM audit WHERE tenant = 'default'").await;
        let report = store.verify("default", &NotedHeads::new()).await.unwrap().remove(0);
        assert_eq!(report.fault, Some((5, Fault::CutOff)));
    }
}

#[tokio::test]
async fn b21_records_that_were_made_old_are_not_removed() {
    let cases = [
        "UPDATE audit SET ts = (SELECT min(ts) FROM audit) WHERE tenant = 'default'",
        "UPDATE audit SET record = replace(record, '12:00:04', '12:00:00'), ts = (SELECT min(ts) FROM audit) \
         WHERE tenant = 'default' AND seq = 5",
    ];
    for (number, sql) in cases.into_iter().enumerate() {
        for place in Place::all(&format!("b21_records_that_were_made_old_are_not_removed_{number}")) {
            let store = filled(&place).await;
            unlock(&place).await;
            tamper(&place, sql).await;
            let up_to = store.last_before("default", at("12:00:06")).await.unwrap();
            assert_eq!(up_to, None, "{sql}");
        }
    }
}

#[tokio::test]
async fn b21_the_erasure_of_a_person_vouches_for_nothing_that_was_changed() {
    for place in Place::all("b21_the_erasure_of_a_person_vouches_for_nothing_that_was_changed") {
        let store = filled(&place).await;
        unlock(&place).await;
        tamper(
            &place,
            "UPDATE audit SET record = replace(record, 'early', 'other'), tool = 'other' WHERE tenant = 'default' AND seq = 2",
        )
        .await;
        let (sign, check) = (|_: &str| "signed".to_owned(), |_: &str, proof: &str| proof == "signed");
        let refused = store.erase_records("default", "ada", at("13:00:00"), &sign).await.unwrap_err();
        assert!(
            refused.to_string().contains("record 2 in the audit of main is not what was written"),
            "{refused}"
        );
        let report =
            store.verify_with_erasures("default", &NotedHeads::new(), &check).await.unwrap().remove(0);
        assert_eq!(report.fault, Some((2, Fault::Changed)));
        let kept = store.list(&AuditFilter::new("default")).await.unwrap();
        let with: Vec<u64> = kept
            .iter()
            .filter(|record| record.record.get().contains("arguments"))
            .map(|record| record.seq)
            .collect();
        assert_eq!(with, [2], "what else there was of the person is erased");
    }
}

#[tokio::test]
async fn k25_old_records_are_removed_some_at_a_time() {
    for place in Place::all("k25_old_records_are_removed_some_at_a_time") {
        let store = place.open("main").await;
        let records = (0..5003).map(|_| store.record(record("default", "act", 1)));
        for recorded in futures_util::future::join_all(records).await {
            recorded.unwrap();
        }
        for last in [5000, 5002] {
            let up_to = store.last_before("default", jiff::Timestamp::MAX).await.unwrap().unwrap();
            assert_eq!(up_to.seq, last);
            store.remove("default", &up_to, "a proof").await.unwrap();
            let report = store.verify("default", &NotedHeads::new()).await.unwrap().remove(0);
            assert_eq!((report.records, report.fault), (5003 - last, None));
        }
        assert_eq!(store.last_before("default", jiff::Timestamp::MAX).await.unwrap(), None);
    }
}
