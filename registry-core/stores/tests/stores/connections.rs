//! Connections to accounts elsewhere: every store alike.

use registry_core::store::{ConnectionStore, MemoryStore, Store, StoredConnection};

use crate::{Place, at, chains::tamper};

fn connection(tenant: &str, user: &str, server: &str, sealed: &str) -> StoredConnection {
    StoredConnection {
        tenant: tenant.to_owned(),
        user: user.to_owned(),
        server: server.to_owned(),
        sealed: sealed.to_owned(),
        created_at: at("12:00:00"),
    }
}

async fn connection_contract<S: ConnectionStore + Store>(store: &S) {
    let of = async |tenant: &str, user: &str| {
        let all = store.connections(tenant, user).await.unwrap();
        all.into_iter().map(|kept| (kept.server, kept.sealed)).collect::<Vec<_>>()
    };
    let pair = |server: &str, sealed: &str| (server.to_owned(), sealed.to_owned());
    for (tenant, user, server) in [
        ("default", "ada", "b"),
        ("default", "ada", "a"),
        ("default", "bob", "a"),
        ("other", "ada", "a"),
        ("", "", "a"),
    ] {
        store.put_connection(connection(tenant, user, server, "1")).await.unwrap();
    }
    let first = connection("default", "ada", "a", "1");
    assert_eq!(store.connection("default", "ada", "a").await.unwrap(), Some(first.clone()));
    assert!(!format!("{first:?}").contains("\"1\""), "what is sealed is not shown");
    assert_eq!(store.connection("default", "ada", "c").await.unwrap(), None);
    assert_eq!(store.connection("default", "a\0", "a").await.unwrap(), None);
    assert!(!store.change_connection(connection("default", "a\0", "a", "2"), "1").await.unwrap());
    assert!(!store.remove_connection("default", "a\0", "a").await.unwrap());
    assert_eq!(of("default", "ada").await, [pair("a", "1"), pair("b", "1")]);
    // Of two that renew it one does.
    assert!(store.change_connection(connection("default", "ada", "a", "2"), "1").await.unwrap());
    assert!(!store.change_connection(connection("default", "ada", "a", "3"), "1").await.unwrap());
    assert!(!store.change_connection(connection("default", "ada", "c", "3"), "1").await.unwrap());
    assert_eq!(of("default", "ada").await, [pair("a", "2"), pair("b", "1")]);
    store.put_connection(connection("default", "ada", "a", "4")).await.unwrap();
    assert_eq!(of("default", "ada").await, [pair("a", "4"), pair("b", "1")]);
    assert_eq!(store.all_connections().await.unwrap().len(), 5);
    assert!(store.remove_connection("default", "ada", "b").await.unwrap());
    assert!(!store.remove_connection("default", "ada", "b").await.unwrap());
    // With the user goes what is the user's.
    store.remove_user("default", "ada", at("13:00:00")).await.unwrap();
    assert_eq!(of("default", "ada").await, []);
    for (tenant, user) in [("default", "bob"), ("other", "ada"), ("", "")] {
        assert_eq!(of(tenant, user).await, [pair("a", "1")]);
    }
}

#[tokio::test]
async fn b21_connections_in_memory() {
    connection_contract(&MemoryStore::default()).await;
}

#[tokio::test]
async fn b21_connections_in_databases_also_of_the_version_before() {
    for place in Place::all("b21_connections_in_databases_also_of_the_version_before") {
        drop(place.open("main").await);
        for statement in [
            "ALTER TABLE api_keys DROP COLUMN last_used_at",
            "ALTER TABLE api_keys DROP COLUMN name",
            "ALTER TABLE api_keys DROP COLUMN expires_at",
            "DROP TABLE connections",
            "ALTER TABLE chat_messages DROP COLUMN context",
            "DROP INDEX audit_by_tenant",
            "DROP INDEX audit_by_call",
            "UPDATE toolrack_schema SET version = 15",
        ] {
            tamper(&place, statement).await;
        }
        let store = place.open("main").await;
        connection_contract(&store).await;
        let erased = store.erase_user("default", "bob").await.unwrap();
        assert_eq!((erased.connections, erased.was_known), (1, false));
        assert_eq!(store.connections("default", "bob").await.unwrap(), []);
    }
}
