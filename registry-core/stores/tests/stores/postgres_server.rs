//! What is particular to the store on a PostgreSQL server.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use registry_core::{
    Permission, ToolLimits,
    guard::limits::{Charge, Usage},
    store::{Store, StoredTool, User},
};
use sqlx::{Connection, PgConnection};
use toolrack_stores::PostgresSettings;

use crate::{
    Place, at,
    chains::tamper,
    contract::{charge, put_tool},
    crash,
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

#[tokio::test]
async fn b10_two_servers_on_a_store_have_not_one_name() {
    let Some(place) = Place::postgres("b10_two_servers_on_a_store_have_not_one_name") else { return };
    let (one, same, other) = (place.open("one").await, place.open("one").await, place.open("other").await);
    let taken = one.take_name().await.unwrap();
    assert!(taken.is_some() && other.take_name().await.unwrap().is_some());
    assert!(same.take_name().await.unwrap().is_none());
    drop(taken);
    // The session ends when the server has heard of it.
    for _ in 0..200 {
        if same.take_name().await.unwrap().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the name is free");
}

/// How many sessions of stores the server has that are in this condition.
async fn sessions(link: &mut PgConnection, condition: &str) -> i64 {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'toolrack' AND {condition}"
    );
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(link).await.unwrap()
}

fn user(name: &str) -> User {
    User { id: name.to_owned(), level: Permission::User, personas: Vec::new(), created_at: at("12:00:00") }
}

#[tokio::test]
async fn b10_a_server_that_stands_still_in_a_transaction_does_not_stop_the_others() {
    let test = "b10_a_server_that_stands_still_in_a_transaction_does_not_stop_the_others";
    let Some(place) = Place::postgres(test) else { return };
    let store = place.open("other").await;
    let mut link = PgConnection::connect(&place.url()).await.unwrap();
    let mut child = crash::start(&place.url(), Stdio::null());
    let signal = |name: &str| {
        let id = child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    };
    let began = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        signal("-STOP");
        // What it has sent has been done by then.
        tokio::time::sleep(Duration::from_millis(100)).await;
        if sessions(&mut link, "state = 'idle in transaction'").await == 1 {
            break;
        }
        signal("-CONT");
        assert!(began.elapsed() < Duration::from_secs(60), "it is never in a transaction");
    }
    let began = Instant::now();
    let charges: Vec<Charge> = (0..1000)
        .map(|number| Charge { user: format!("user {number}"), ..charge(at("12:00:00"), 0, 1) })
        .collect();
    let answers = futures_util::future::join_all(charges.iter().map(|charge| store.charge(charge))).await;
    assert_eq!(answers.into_iter().find(|answer| *answer != Ok(None)), None);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn b10_who_waits_in_vain_for_a_lock_leaves_no_session_behind() {
    let Some(place) = Place::postgres("b10_who_waits_in_vain_for_a_lock_leaves_no_session_behind") else {
        return;
    };
    let store = place.open("main").await;
    let mut link = PgConnection::connect(&place.url()).await.unwrap();
    sqlx::query("SELECT pg_advisory_lock(1953460331, 256)").execute(&mut link).await.unwrap();
    store.put_user("default", user("ada")).await.unwrap_err();
    assert_eq!(sessions(&mut link, "wait_event_type = 'Lock'").await, 0);
    sqlx::query("SELECT pg_advisory_unlock_all()").execute(&mut link).await.unwrap();
    store.put_user("default", user("ada")).await.unwrap();
}

#[tokio::test]
async fn b10_a_session_that_is_read_only_is_given_up() {
    let Some(place) = Place::postgres("b10_a_session_that_is_read_only_is_given_up") else { return };
    let store = place.open("main").await;
    store.put_user("default", user("ada")).await.unwrap();
    // As a session on a server that has become a standby.
    tamper(
        &place,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .await;
    let cause = store.put_user("default", user("bob")).await.unwrap_err().to_string();
    assert!(cause.contains("read-only"), "{cause}");
    assert!(store.users("default").await.is_err(), "what a standby says may be old");
    tamper(
        &place,
        "BEGIN READ WRITE;
         DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$;
         COMMIT",
    )
    .await;
    store.put_user("default", user("bob")).await.unwrap();
    assert_eq!(store.users("default").await.unwrap().len(), 2);
}

#[tokio::test]
async fn b10_a_session_in_which_a_write_is_refused_as_on_a_standby_is_given_up() {
    let test = "b10_a_session_in_which_a_write_is_refused_as_on_a_standby_is_given_up";
    let Some(place) = Place::postgres(test) else { return };
    let store = place.open("main").await;
    store.put_user("default", user("ada")).await.unwrap();
    let mut link = PgConnection::connect(&place.url()).await.unwrap();
    let writer = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT'";
    let before: i32 = sqlx::query_scalar(writer).fetch_one(&mut link).await.unwrap();
    tamper(
        &place,
        "CREATE SEQUENCE refused;
         CREATE FUNCTION refuse_first() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF nextval('refused') = 1 THEN RAISE EXCEPTION 'in a read-only transaction' USING ERRCODE = '25006'; END IF;
             RETURN NEW; END $$;
         CREATE TRIGGER first_is_refused BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION refuse_first()",
    )
    .await;
    store.put_user("default", user("bob")).await.unwrap_err();
    store.put_user("default", user("bob")).await.unwrap();
    let after: i32 = sqlx::query_scalar(writer).fetch_one(&mut link).await.unwrap();
    assert_ne!(before, after);
}
