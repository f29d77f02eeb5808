//! What is particular to the store on a PostgreSQL server.

use std::time::{Duration, Instant};

use registry_core::{
    ToolLimits,
    guard::limits::{Charge, Usage},
    store::{Store, StoredTool},
};
use toolrack_stores::PostgresSettings;

use crate::{
    Place, at,
    chains::tamper,
    contract::{charge, put_tool},
    servers::free_port,
};

#[tokio::test]
async fn b10_connections_that_were_cut_are_made_anew() {
    let Some(place) = Place::postgres("b10_connections_that_were_cut_are_made_anew") else { return };
    let (one, other) = (place.open("one").await, place.open("other").await);
    for turn in 0..3 {
        assert_eq!(one.charge(&charge(at("12:00:00"), 0, 100)).await, Ok(None));
        let since = other.revision().await.unwrap();
        tamper(
            &place,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
        assert_eq!(one.charge(&charge(at("12:00:00"), 0, 100)).await, Ok(None), "turn {turn}");
        let tool = StoredTool {
            tool_name: "a".into(),
            enabled: turn == 1,
            limits: ToolLimits::default(),
            spec: None,
            created_at: at("12:00:00"),
        };
        put_tool(&one, "default", tool).await;
        tokio::time::timeout(Duration::from_secs(1), other.changed(since))
            .await
            .expect("seen within a second");
    }
    // Six calls were counted, each once.
    assert_eq!(one.charge(&charge(at("12:00:00"), 0, 7)).await, Ok(None));
    assert!(one.charge(&charge(at("12:00:00"), 0, 7)).await.unwrap().is_some());
}

#[tokio::test]
async fn b10_a_server_that_is_not_there_is_named_without_its_password() {
    let port = free_port();
    let began = Instant::now();
    let url = format!("postgres://toolrack:hush@127.0.0.1:{port}/tools");
    let settings = PostgresSettings::new(url, "main");
    let cause = settings.open().await.unwrap_err().to_string();
    assert!(cause.contains(&format!("tools on 127.0.0.1:{port}")), "{cause}");
    assert!(!cause.contains("hush") && !format!("{settings:?}").contains("hush"), "{cause} {settings:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
    let cause = PostgresSettings::new("nothing like it", "main").open().await.unwrap_err().to_string();
    assert!(cause.contains("URL"), "{cause}");
}

#[tokio::test]
async fn t3_a_call_that_cannot_be_counted_is_refused_and_harms_no_other() {
    let Some(place) = Place::postgres("t3_a_call_that_cannot_be_counted_is_refused_and_harms_no_other")
    else {
        return;
    };
    let store = place.open("main").await;
    // PostgreSQL has no place for a NUL in a text.
    let charges: Vec<Charge> = (0..50)
        .map(|number| Charge {
            user: if number % 10 == 3 { "a\0b".to_owned() } else { format!("user {number}") },
            ..charge(at("12:00:00"), 0, 1)
        })
        .collect();
    let answers = futures_util::future::join_all(charges.iter().map(|charge| store.charge(charge))).await;
    for (charge, answer) in charges.iter().zip(answers) {
        assert_eq!(answer.is_err(), charge.user.contains('\0'), "{:?}: {answer:?}", charge.user);
        assert!(matches!(answer, Err(_) | Ok(None)));
    }
}
