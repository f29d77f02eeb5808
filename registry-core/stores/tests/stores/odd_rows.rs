//! Rows that this program has not written, and what it says in the log.

use std::{
    io,
    sync::{Arc, Mutex},
};

use registry_core::{
    Permission,
    store::{Persona, Store, User},
};

use crate::{Place, at, chains::tamper};

/// What is logged on this thread.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logged {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Logged {
    fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let logged = Self::default();
        let writer = logged.clone();
        let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        (logged, tracing::subscriber::set_default(log))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

#[tokio::test]
async fn l5_a_stored_tool_that_cannot_be_read_is_left_out_and_reported() {
    for place in Place::all("l5_a_stored_tool_that_cannot_be_read_is_left_out_and_reported") {
        let store = place.open("main").await;
        tamper(
            &place,
            r#"INSERT INTO tools (tenant, name, document) VALUES
               ('default', 'a', '{"tool_name":"a","enabled":false,"spec":null,"created_at":"2026-03-01T12:00:00Z"}'),
               ('default', 'b', '{"tool_name":"b","wholly":"new"}'),
               ('default', 'c', 'no JSON')"#,
        )
        .await;
        let (logged, _guard) = Logged::start();
        let names: Vec<String> =
            store.tools("default").await.unwrap().into_iter().map(|tool| tool.tool_name).collect();
        assert_eq!(names, ["a"]);
        assert_eq!(logged.text().matches("a stored tool cannot be read").count(), 2, "{}", logged.text());
    }
}

#[tokio::test]
async fn m6_a_stored_level_that_is_unknown_is_a_guest() {
    for place in Place::all("m6_a_stored_level_that_is_unknown_is_a_guest") {
        let store = place.open("main").await;
        let ada = User {
            id: "ada".into(),
            level: Permission::Owner,
            personas: Vec::new(),
            created_at: at("12:00:00"),
        };
        store.put_user("default", ada.clone()).await.unwrap();
        tamper(&place, r#"UPDATE users SET document = replace(document, '"owner"', '"emperor"')"#).await;
        let (logged, _guard) = Logged::start();
        let guest = User { level: Permission::Guest, ..ada };
        assert_eq!(store.user("default", "ada").await.unwrap(), Some(guest.clone()));
        assert_eq!(store.users("default").await.unwrap(), [guest]);
        assert!(logged.text().contains("emperor"), "{}", logged.text());
    }
}

#[tokio::test]
async fn s15_the_modules_of_a_user_become_a_persona_of_that_name() {
    for place in Place::all("s15_the_modules_of_a_user_become_a_persona_of_that_name") {
        drop(place.open("main").await);
        // As the version before has left it.
        for statement in [
            "ALTER TABLE api_keys DROP COLUMN last_used_at",
            "ALTER TABLE api_keys DROP COLUMN name",
            "ALTER TABLE api_keys DROP COLUMN expires_at",
            "DROP TABLE personas",
            "DROP TABLE chat_messages",
            "DROP TABLE chats",
            "DROP TABLE audit_starts",
            "DROP TABLE connections",
            "DROP TABLE sessions",
            "DROP TABLE files",
            "DROP TABLE tool_state",
            "DROP TABLE transcripts",
            "DROP TABLE responses",
            "DROP TABLE conversations",
            "DROP INDEX audit_by_tenant",
            "DROP INDEX audit_by_call",
            "UPDATE toolrack_schema SET version = 5",
            r#"INSERT INTO users (tenant, id, document) VALUES
               ('acme', 'ada', '{"id":"ada","level":"user","allowed_modules":["mail","local"],"created_at":"2026-03-01T12:00:00Z"}'),
               ('acme', 'bob', '{"id":"bob","level":"user","allowed_modules":null,"created_at":"2026-03-01T12:00:00Z"}'),
               ('acme', 'carl', '{"id":"carl","level":"user","allowed_modules":[],"created_at":"2026-03-01T12:00:00Z"}')"#,
        ] {
            tamper(&place, statement).await;
        }
        let store = place.open("main").await;
        let persona = |name: &str, modules: &[&str]| Persona {
            name: name.to_owned(),
            allowed_modules: modules.iter().map(|module| (*module).to_owned()).collect(),
            created_at: at("12:00:00"),
        };
        assert_eq!(
            store.personas("acme").await.unwrap(),
            [persona("ada", &["local", "mail"]), persona("carl", &[])]
        );
        let users = store.users("acme").await.unwrap();
        let personas: Vec<_> = users.into_iter().map(|user| (user.id, user.personas)).collect();
        assert_eq!(
            personas,
            [
                ("ada".to_owned(), vec!["ada".to_owned()]),
                ("bob".to_owned(), vec![]),
                ("carl".to_owned(), vec!["carl".to_owned()])
            ]
        );
    }
}

#[tokio::test]
async fn l5_a_store_that_is_opened_anew_says_nothing() {
    for place in Place::all("l5_a_store_that_is_opened_anew_says_nothing") {
        drop(place.open("main").await);
        let (logged, _guard) = Logged::start();
        assert_eq!(place.open("main").await.revision().await, Ok(0));
        assert_eq!(logged.text(), "");
    }
}
