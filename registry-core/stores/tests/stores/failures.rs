//! What kind of failure a store reports, by which its callers decide.

use std::{error::Error, time::Duration};

use registry_core::{
    Permission,
    guard::limits::Usage,
    store::{Store, StoreErrorKind, User},
};
use sqlx::Connection;
use toolrack_stores::{PostgresSettings, Redis, RedisManifests, SqliteSettings};

use crate::{Place, at, chains::tamper, contract::charge};

fn ada(id: &str) -> User {
    User { id: id.into(), level: Permission::User, personas: Vec::new(), created_at: at("12:00:00") }
}

#[tokio::test]
async fn k24_a_store_that_cannot_be_reached_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let error = SqliteSettings::new(folder.path()).open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    // A port that nobody listens on.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = format!("127.0.0.1:{free}");
    let error =
        PostgresSettings::new(format!("postgres://ada@{nobody}/db"), "main").open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains(&nobody) && error.is_transient(), "{error}");
    let cause = error.source().and_then(|cause| cause.downcast_ref::<sqlx::Error>());
    assert!(matches!(cause, Some(sqlx::Error::Io(_))), "{cause:?}");
    let redis = RedisManifests::new(Redis::new(&format!("redis://{nobody}/")).unwrap());
    let error = registry_core::store::ManifestCache::get(&redis, "mail").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn k24_a_store_that_cannot_be_understood_is_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "No database, but a text that could be taken for one. ".repeat(30)).unwrap();
    let error = SqliteSettings::new(&text).open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    for place in Place::all("k24_a_store_that_cannot_be_understood_is_corrupt") {
        let store = place.open("main").await;
        store.put_user("default", ada("ada")).await.unwrap();
        tamper(&place, "UPDATE users SET document = 'no JSON'").await;
        let error = store.user("default", "ada").await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
        assert!(!error.is_transient());
        tamper(&place, "DROP TABLE users").await;
        tamper(&place, "UPDATE toolrack_schema SET version = 99").await;
        let opened = match &place {
            Place::File(_) => SqliteSettings::new(place.url()).open().await,
            Place::Postgres(url) => PostgresSettings::new(url, "main").open().await,
        };
        assert_eq!(opened.unwrap_err().kind(), StoreErrorKind::Corrupt);
    }
}

#[tokio::test]
async fn k24_what_a_store_has_no_place_for_is_invalid() {
    let error = PostgresSettings::new("not a URL", "main").open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid, "{error}");
    assert_eq!(Redis::new("not a URL").unwrap_err().kind(), StoreErrorKind::Invalid);
    // A file, which would have a place for it, keeps no more than a database that has none.
    for place in Place::all("k24_what_a_store_has_no_place_for_is_invalid") {
        let store = place.open("main").await;
        let (bad, good) =
            tokio::join!(store.put_user("default", ada("a\0b")), store.put_user("default", ada("b")));
        let error = bad.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid, "{error}");
        assert_eq!(good, Ok(()), "what is written beside it does not suffer");
    }
}

#[tokio::test]
async fn k24_a_file_that_somebody_else_writes_to_is_a_conflict() {
    let place = Place::file();
    let busy_timeout = Duration::from_millis(50);
    let store = SqliteSettings { busy_timeout, ..SqliteSettings::new(place.url()) }.open().await.unwrap();
    let mut holder = sqlx::SqliteConnection::connect(&format!("sqlite:{}", place.url())).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut holder).await.unwrap();
    let error = store.charge(&charge(at("12:00:00"), 0, 1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
    assert!(error.is_transient());
}
