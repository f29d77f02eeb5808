//! How calls went, counted in the audit.

use registry_core::{
    ErrorKind,
    guard::audit::{
        AuditRecord, AuditSink, Phase,
        log::{AuditLog, CallFigures},
    },
};

use crate::{
    Place, at,
    chains::{record, tamper},
};

/// Name, calls, failures and median.
fn seen(figures: &CallFigures) -> Vec<(&str, u64, u64, Option<u64>)> {
    figures.tools.iter().map(|one| (&*one.tool, one.calls, one.failed, one.median_ms)).collect()
}

#[tokio::test]
async fn u29_calls_are_counted_by_their_tools() {
    for place in Place::all("u29_calls_are_counted_by_their_tools") {
        let store = place.open("main").await;
        for (second, tool, duration_ms, success) in [
            (0, "weather", Some(900), true),
            (1, "weather", Some(100), false),
            (2, "weather", Some(200), true),
            (3, "add", None, false),
        ] {
            let outcome = record("default", tool, second);
            let intent = AuditRecord { phase: Phase::Intent, success: None, ..outcome.clone() };
            store.record(intent).await.unwrap();
            store.record(AuditRecord { duration_ms, success: Some(success), ..outcome }).await.unwrap();
        }
        let waits =
            AuditRecord { error: Some(ErrorKind::ApprovalPending), ..record("default", "weather", 5) };
        store.record(waits).await.unwrap();
        store.record(record("other", "weather", 0)).await.unwrap();

        let all = store.figures("default", None, None).await.unwrap();
        assert_eq!(seen(&all), [("weather", 3, 1, Some(200)), ("add", 1, 1, None)]);
        assert_eq!(all.counted_since, None);
        let some = store.figures("default", Some(at("12:00:01")), Some(at("12:00:03"))).await.unwrap();
        assert_eq!(seen(&some), [("weather", 2, 1, Some(200))]);

        // Many more, of which the last are counted, and as many tools.
        tamper(
            &place,
            "INSERT INTO audit (tenant, server, seq, ts, user_id, tool, call_id, happened, previous, sha256, record)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
             SELECT 'default', 'many', i, '2026-03-02T12:00:00.000000000Z', 'ada', 'tool-' || CAST(i % 2000 AS TEXT), 'c',
                    'success', 'p', 's', '{\"duration_ms\": 5}' FROM n",
        )
        .await;
        let last = store.figures("default", None, None).await.unwrap();
        assert_eq!((last.tools.len(), seen(&last)[0].1), (1000, 50));
        assert_eq!(last.counted_since, Some("2026-03-02T12:00:00Z".parse().unwrap()));
    }
}
