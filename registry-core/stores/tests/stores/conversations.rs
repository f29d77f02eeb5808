//! Conversations: in every store alike.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use jiff::Timestamp;
use registry_core::{
    Permission,
    store::{
        ConversationError, ConversationLimits, ConversationStore, Conversations, MemoryStore, RemovedUser,
        Store, StoreErrorKind, StoredResponse, TranscriptLimits, User,
    },
    testing::TestClock,
};

use crate::{Place, at, chains::tamper};

const HOUR: Duration = Duration::from_secs(3600);

/// Room for what a test keeps, for an hour.
const LIMITS: ConversationLimits = ConversationLimits {
    retention: HOUR,
    max_response_bytes: 1 << 20,
    max_chain_responses: 3,
    max_chain_bytes: 1 << 20,
    max_user_conversations: 3,
    max_user_bytes: 64 << 10,
    transcripts: TranscriptLimits::DEFAULT,
};

fn response(user: &str, id: &str, previous: Option<&str>) -> StoredResponse {
    StoredResponse {
        id: id.to_owned(),
        tenant: "default".to_owned(),
        user: user.to_owned(),
        previous: previous.map(str::to_owned),
        model: "qwen3".to_owned(),
        messages: format!(r#"["{id} ü \u0000 '\""]"#).into(),
        given: format!(r#"{{"id": "{id} ü \u0000 '\""}}"#).into(),
        created_at: at("11:00:00.5"),
    }
}

fn messages(user: &str, ids: &[&str]) -> Vec<Arc<str>> {
    ids.iter().map(|id| response(user, id, None).messages).collect()
}

/// A store of conversations that go with their user.
trait WithUsers: ConversationStore + Store {}

impl<S: ConversationStore + Store> WithUsers for S {}

/// The questions to one store, of a test that does not look at the limits.
struct Asked<'s> {
    store: &'s dyn WithUsers,
    limits: ConversationLimits,
}

impl Asked<'_> {
    async fn keep(&self, response: StoredResponse, now: &str) -> Result<(), ConversationError> {
        self.store.keep_response(response, at(now), &self.limits).await
    }

    async fn chain(&self, user: &str, id: &str, now: &str) -> Result<Vec<Arc<str>>, ConversationError> {
        let since = self.limits.since(at(now));
        self.store.response_chain("default", user, id, since, &self.limits).await
    }

    async fn knows(&self, user: &str, id: &str, now: &str) -> bool {
        let since = self.limits.since(at(now));
        self.store.response("default", user, id, since).await.unwrap().is_some()
    }

    /// Removes a user, and gives how many responses went with the user.
    async fn removed(&self, user: &str) -> usize {
        self.store.remove_user("default", user, at("11:00:00")).await.unwrap().responses
    }
}

const UNKNOWN: Result<Vec<Arc<str>>, ConversationError> = Err(ConversationError::Unknown);

async fn conversations_contract(store: &dyn WithUsers) {
    let asked = Asked { store, limits: LIMITS };
    chains_are_whole(&asked).await;
    what_has_expired_is_gone(&asked).await;
    the_oldest_give_way(&asked).await;
    one_response_is_deleted(&asked).await;
    too_much_is_refused(&asked).await;
}

async fn chains_are_whole(asked: &Asked<'_>) {
    let first = response("ada", "r1", None);
    asked.keep(first.clone(), "12:00:00").await.unwrap();
    asked.keep(response("ada", "r2", Some("r1")), "12:01:00").await.unwrap();
    asked.keep(response("ada", "r3", Some("r2")), "12:02:00").await.unwrap();
    // Another one continues the same response.
    asked.keep(response("ada", "r2b", Some("r1")), "12:03:00").await.unwrap();
    for ids in [&["r1"][..], &["r1", "r2"], &["r1", "r2", "r3"], &["r1", "r2b"]] {
        let chain = asked.chain("ada", ids.last().unwrap(), "12:04:00").await;
        assert_eq!(chain, Ok(messages("ada", ids)));
    }
    let kept = asked.store.response("default", "ada", "r1", at("11:00:00")).await.unwrap();
    assert_eq!(kept, Some(first));
    let kept = asked.store.response("default", "ada", "r3", at("11:00:00")).await.unwrap();
    assert_eq!(kept, Some(response("ada", "r3", Some("r2"))));

    // The ids of others are unknown, to be read, continued and deleted, and may be the same.
    for id in ["r1", "r2", "none", "", "r1\0"] {
        let whose = if id.contains('1') || id.contains('2') { "bob" } else { "ada" };
        assert_eq!(asked.chain(whose, id, "12:04:00").await, UNKNOWN, "{id:?}");
        assert!(!asked.knows(whose, id, "12:04:00").await, "{id:?}");
        assert!(!asked.store.delete_response("default", whose, id).await.unwrap(), "{id:?}");
    }
    let of_another_tenant =
        asked.store.response_chain("other", "ada", "r1", at("11:00:00"), &asked.limits).await;
    assert_eq!(of_another_tenant, UNKNOWN);
    for previous in ["r1", "none", "", "r1\0"] {
        let continued = asked.keep(response("bob", "b1", Some(previous)), "12:05:00").await;
        assert_eq!(continued, Err(ConversationError::Unknown), "{previous:?}");
        assert!(!asked.knows("bob", "b1", "12:05:00").await);
    }
    asked.keep(response("bob", "r1", None), "12:05:00").await.unwrap();
    assert_eq!(asked.chain("bob", "r1", "12:05:00").await, Ok(messages("bob", &["r1"])));
    // An id names one response.
    for previous in [None, Some("r1")] {
        let again = asked.keep(response("ada", "r2", previous), "12:05:00").await.unwrap_err();
        let ConversationError::Store(fault) = again else { panic!("{again}") };
        assert_eq!(fault.kind(), StoreErrorKind::Invalid, "{fault}");
    }
    assert_eq!(asked.chain("ada", "r3", "12:05:00").await, Ok(messages("ada", &["r1", "r2", "r3"])));
}

async fn what_has_expired_is_gone(asked: &Asked<'_>) {
    asked.keep(response("eve", "old", None), "13:00:00").await.unwrap();
    asked.keep(response("eve", "used", None), "13:00:00").await.unwrap();
    asked.keep(response("eve", "used-2", Some("used")), "13:30:00").await.unwrap();
    assert!(asked.knows("eve", "old", "13:59:59").await);
    // A conversation is used as a whole.
    for (id, is_there) in [("old", false), ("used", true), ("used-2", true)] {
        assert_eq!(asked.knows("eve", id, "14:00:00").await, is_there, "{id}");
        assert_eq!(asked.chain("eve", id, "14:00:00").await.is_ok(), is_there, "{id}");
    }
    let late = asked.keep(response("eve", "old-2", Some("old")), "14:00:00").await;
    assert_eq!(late, Err(ConversationError::Unknown));
    // It is deleted, not only hidden: also by what somebody else keeps.
    assert!(!asked.knows("eve", "old", "13:00:00").await);
    asked.store.delete_expired(at("13:30:00")).await.unwrap();
    assert_eq!(asked.removed("eve").await, 0);
}

async fn the_oldest_give_way(asked: &Asked<'_>) {
    for (id, previous, now) in [
        ("a", None, "15:00:00"),
        ("b", None, "15:01:00"),
        ("c", None, "15:02:00"),
        ("a2", Some("a"), "15:03:00"),
        ("d", None, "15:04:00"),
    ] {
        asked.keep(response("guy", id, previous), now).await.unwrap();
    }
    // Three conversations, the one that was used again among them, and its responses with it.
    for (id, is_there) in [("a", true), ("a2", true), ("b", false), ("c", true), ("d", true)] {
        assert_eq!(asked.knows("guy", id, "15:05:00").await, is_there, "{id}");
    }
    // By their size: two of these and the small ones, but not three.
    let large = |id: &str, previous| StoredResponse {
        messages: "x".repeat(25 << 10).into(),
        ..response("guy", id, previous)
    };
    asked.keep(large("e", None), "15:06:00").await.unwrap();
    asked.keep(large("f", None), "15:07:00").await.unwrap();
    asked.keep(large("g", None), "15:08:00").await.unwrap();
    for (id, is_there) in [("a", false), ("a2", false), ("d", false), ("e", false), ("f", true), ("g", true)]
    {
        assert_eq!(asked.knows("guy", id, "15:09:00").await, is_there, "{id}");
    }
    // Never the one that is in use, not even by a clock that was set back.
    asked.keep(response("guy", "f2", Some("f")), "14:30:00").await.unwrap();
    asked.keep(large("f3", Some("f2")), "14:30:00").await.unwrap();
    assert_eq!(asked.chain("guy", "f3", "14:31:00").await.map(|chain| chain.len()), Ok(3));
    assert!(!asked.knows("guy", "g", "14:31:00").await);
    let max = asked.limits.max_user_bytes;
    let full = asked.keep(large("f4", Some("f3")), "14:32:00").await;
    assert_eq!(full, Err(ConversationError::Full { max }));
    asked.keep(response("guy", "f4", Some("f3")), "14:32:00").await.unwrap();
    // What was refused has changed nothing, and other users have room of their own.
    assert_eq!(asked.chain("guy", "f3", "14:33:00").await.map(|chain| chain.len()), Ok(3));
    asked.keep(StoredResponse { user: "hal".into(), ..large("f4", None) }, "14:33:00").await.unwrap();
    assert!(asked.knows("guy", "f4", "14:33:00").await);
    // What is deleted makes room.
    assert!(asked.store.delete_response("default", "guy", "f3").await.unwrap());
    asked.keep(large("f5", Some("f2")), "14:34:00").await.unwrap();
    assert_eq!(asked.removed("guy").await, 4);
}

async fn one_response_is_deleted(asked: &Asked<'_>) {
    for (id, previous) in [("1", None), ("2", Some("1")), ("3", Some("2"))] {
        asked.keep(response("kim", id, previous), "16:00:00").await.unwrap();
    }
    assert!(asked.store.delete_response("default", "kim", "2").await.unwrap());
    assert!(!asked.store.delete_response("default", "kim", "2").await.unwrap());
    // The chain is broken, and what is left of it is there.
    assert_eq!(asked.chain("kim", "3", "16:01:00").await, UNKNOWN);
    assert!(asked.knows("kim", "3", "16:01:00").await);
    assert_eq!(asked.chain("kim", "1", "16:01:00").await, Ok(messages("kim", &["1"])));
    // The id of the first one names the conversation as long as that is there.
    assert!(asked.store.delete_response("default", "kim", "1").await.unwrap());
    let again = asked.keep(response("kim", "1", None), "16:01:00").await;
    assert!(matches!(again, Err(ConversationError::Store(_))), "{again:?}");
    // With the last one goes the conversation, so that its id is free.
    assert!(asked.store.delete_response("default", "kim", "3").await.unwrap());
    asked.keep(response("kim", "1", None), "16:02:00").await.unwrap();
    assert_eq!(asked.removed("kim").await, 1);
    assert_eq!(asked.removed("kim").await, 0);
}

async fn too_much_is_refused(asked: &Asked<'_>) {
    for (id, previous) in [("1", None), ("2", Some("1")), ("3", Some("2")), ("4", Some("3"))] {
        asked.keep(response("lea", id, previous), "17:00:00").await.unwrap();
    }
    assert_eq!(asked.chain("lea", "3", "17:01:00").await.map(|chain| chain.len()), Ok(3));
    let error = asked.chain("lea", "4", "17:01:00").await.unwrap_err();
    assert_eq!(error, ConversationError::TooLong { responses: 3, bytes: 1 << 20 });
    assert!(error.to_string().contains("more than 3 responses"), "{error}");
    let size =
        ["1", "2"].map(|id| u64::try_from(response("lea", id, None).messages.len()).unwrap()).iter().sum();
    let of_bytes = |max_chain_bytes| ConversationLimits { max_chain_bytes, ..asked.limits };
    for (limits, fits) in [(of_bytes(size), true), (of_bytes(size - 1), false)] {
        let chain = asked.store.response_chain("default", "lea", "2", at("16:30:00"), &limits).await;
        assert_eq!(chain.is_ok(), fits, "{chain:?}");
    }
    asked.removed("lea").await;
}

#[tokio::test]
async fn b13_every_store_keeps_conversations_alike() {
    conversations_contract(&MemoryStore::default()).await;
    for place in Place::all("b13_every_store_keeps_conversations_alike") {
        let store = place.open("main").await;
        conversations_contract(&store).await;
        assert_eq!(store.revision().await, Ok(5), "registrations are read again for the removals alone");
        // They outlive the process, and another server continues them.
        let asked = Asked { store: &store, limits: LIMITS };
        asked.keep(response("ada", "s1", None), "18:00:00").await.unwrap();
        drop(store);
        let reopened = place.open("other").await;
        let asked = Asked { store: &reopened, limits: LIMITS };
        asked.keep(response("ada", "s2", Some("s1")), "18:01:00").await.unwrap();
        assert_eq!(asked.chain("ada", "s2", "18:02:00").await, Ok(messages("ada", &["s1", "s2"])));
    }
}

async fn removal_contract<S: Store + ConversationStore>(store: &S) {
    let user = |id: &str| User {
        id: id.to_owned(),
        level: Permission::User,
        personas: Vec::new(),
        created_at: at("12:00:00"),
    };
    let asked = Asked { store, limits: LIMITS };
    for id in ["ada", "bob"] {
        store.put_user("default", user(id)).await.unwrap();
        asked.keep(response(id, "r1", None), "12:00:00").await.unwrap();
        asked.keep(response(id, "r2", Some("r1")), "12:00:00").await.unwrap();
    }
    // Of a user whom only a key that delegates names.
    asked.keep(response("guest", "r1", None), "12:00:00").await.unwrap();
    for (id, removed) in [
        ("ada", RemovedUser { was_known: true, responses: 2, transcripts: 0, files: 0, values: 0, chats: 0 }),
        (
            "ada",
            RemovedUser { was_known: false, responses: 0, transcripts: 0, files: 0, values: 0, chats: 0 },
        ),
        (
            "guest",
            RemovedUser { was_known: false, responses: 1, transcripts: 0, files: 0, values: 0, chats: 0 },
        ),
    ] {
        assert_eq!(store.remove_user("default", id, at("12:01:00")).await, Ok(removed));
        assert_eq!(asked.chain(id, "r1", "12:01:00").await, UNKNOWN);
    }
    assert!(asked.knows("bob", "r2", "12:01:00").await);
    // Whoever gets the name later has nothing of it.
    store.put_user("default", user("ada")).await.unwrap();
    assert!(!asked.knows("ada", "r2", "12:01:00").await);
    let late = asked.keep(response("ada", "r3", Some("r2")), "12:02:00").await;
    assert_eq!(late, Err(ConversationError::Unknown), "a turn that was running ends too late");
}

#[tokio::test]
async fn b13_conversations_go_with_their_user() {
    removal_contract(&MemoryStore::default()).await;
    for place in Place::all("b13_conversations_go_with_their_user") {
        removal_contract(&place.open("main").await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b13_servers_that_keep_at_once_keep_within_the_limits() {
    for place in Place::all("b13_servers_that_keep_at_once_keep_within_the_limits") {
        let servers = [place.open("one").await, place.open("two").await];
        let limits = ConversationLimits { max_chain_responses: 100, ..LIMITS };
        let kept = (0..40_usize).map(|number| {
            let (store, id) = (servers[number % 2].clone(), format!("r{number}"));
            tokio::spawn(async move {
                store.keep_response(response("ada", &id, None), at("12:00:00"), &limits).await
            })
        });
        for kept in join_all(kept).await {
            kept.unwrap().unwrap();
        }
        let [one, other] = &servers;
        assert_eq!(Asked { store: one, limits: LIMITS }.removed("ada").await, 3);
        // Of two that take the same id one has it; both may continue one response.
        one.keep_response(response("ada", "first", None), at("12:00:00"), &limits).await.unwrap();
        let next = || response("ada", "next", Some("first"));
        let (a, b) = tokio::join!(
            one.keep_response(next(), at("12:00:01"), &limits),
            other.keep_response(next(), at("12:00:01"), &limits)
        );
        assert_ne!(a.is_ok(), b.is_ok(), "{a:?} {b:?}");
    }
}

#[tokio::test]
async fn b13_a_database_of_the_version_before_gets_the_tables() {
    for place in Place::all("b13_a_database_of_the_version_before_gets_the_tables") {
        drop(place.open("main").await);
        for statement in [
            "ALTER TABLE api_keys DROP COLUMN last_used_at",
            "ALTER TABLE api_keys DROP COLUMN name",
            "ALTER TABLE api_keys DROP COLUMN expires_at",
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
            "UPDATE toolrack_schema SET version = 6",
        ] {
            tamper(&place, statement).await;
        }
        let store = place.open("main").await;
        let asked = Asked { store: &store, limits: LIMITS };
        asked.keep(response("ada", "r1", None), "12:00:00").await.unwrap();
        assert!(asked.knows("ada", "r1", "12:01:00").await);
    }
}

#[tokio::test]
async fn b13_what_was_kept_before_responses_were_is_continued() {
    for place in Place::all("b13_what_was_kept_before_responses_were_is_continued") {
        let store = place.open("main").await;
        let asked = Asked { store: &store, limits: LIMITS };
        asked.keep(response("ada", "r1", None), "12:00:00").await.unwrap();
        drop(store);
        for statement in [
            "ALTER TABLE api_keys DROP COLUMN last_used_at",
            "ALTER TABLE api_keys DROP COLUMN name",
            "ALTER TABLE api_keys DROP COLUMN expires_at",
            // While the triggers of the audit have all their tables.
            "ALTER TABLE responses DROP COLUMN given",
            "DROP TABLE chat_messages",
            "DROP TABLE chats",
            "DROP TABLE audit_starts",
            "DROP TABLE connections",
            "DROP TABLE sessions",
            "DROP TABLE files",
            "DROP TABLE tool_state",
            "DROP TABLE transcripts",
            "DROP INDEX audit_by_tenant",
            "DROP INDEX audit_by_call",
            "UPDATE toolrack_schema SET version = 7",
        ] {
            tamper(&place, statement).await;
        }
        let store = place.open("main").await;
        let asked = Asked { store: &store, limits: LIMITS };
        asked.keep(response("ada", "r2", Some("r1")), "12:01:00").await.unwrap();
        assert_eq!(asked.chain("ada", "r2", "12:02:00").await, Ok(messages("ada", &["r1", "r2"])));
        let before = store.response("default", "ada", "r1", at("11:00:00")).await.unwrap();
        assert_eq!(before, Some(StoredResponse { given: "".into(), ..response("ada", "r1", None) }));
    }
}

#[tokio::test]
async fn b13_more_than_one_sweep_of_expired_conversations_is_deleted() {
    for place in Place::all("b13_more_than_one_sweep_of_expired_conversations_is_deleted") {
        let store = place.open("main").await;
        let limits = ConversationLimits { max_user_conversations: 1000, max_user_bytes: 1 << 30, ..LIMITS };
        let kept = (0..600).map(|number| {
            let store = store.clone();
            let response = response("ada", &format!("r{number}"), None);
            async move { store.keep_response(response, at("12:00:00"), &limits).await }
        });
        for kept in join_all(kept).await {
            kept.unwrap();
        }
        store.delete_expired(at("11:59:59")).await.unwrap();
        assert!(store.response("default", "ada", "r599", at("11:00:00")).await.unwrap().is_some());
        store.delete_expired(at("12:00:00")).await.unwrap();
        assert_eq!(Asked { store: &store, limits: LIMITS }.removed("ada").await, 0);
    }
}

#[tokio::test]
async fn b13_what_is_kept_can_be_switched_off() {
    let store = Arc::new(MemoryStore::default());
    let time = |time: &str| -> Arc<TestClock> { Arc::new(TestClock::at(at(time))) };
    let on = Conversations::new(store.clone(), LIMITS);
    on.clone().with_clock(time("12:00:00")).keep(response("ada", "r1", None)).await.unwrap();
    let off = Conversations::new(store, ConversationLimits { retention: Duration::ZERO, ..LIMITS });
    let off = off.with_clock(time("12:00:01"));
    assert!(on.are_kept() && !off.are_kept());
    off.keep(response("ada", "r2", None)).await.unwrap();
    assert_eq!(off.chain("default", "ada", "r1").await, Err(ConversationError::Disabled));
    assert_eq!(off.response("default", "ada", "r1").await, Err(ConversationError::Unknown));

    let on = on.with_clock(time("12:00:02"));
    assert_eq!(on.response("default", "ada", "r2").await, Err(ConversationError::Unknown));
    assert_eq!(on.chain("default", "ada", "r1").await, Ok(messages("ada", &["r1"])));
    // What was kept before goes at once.
    off.delete_expired().await.unwrap();
    assert_eq!(on.chain("default", "ada", "r1").await, UNKNOWN);

    let large = StoredResponse { messages: "x".repeat(1 << 20).into(), ..response("ada", "r3", None) };
    let error = on.keep(large).await.unwrap_err();
    assert!(matches!(error, ConversationError::TooLarge { max, .. } if max == 1 << 20), "{error}");
    on.keep(response("ada", "r4", None)).await.unwrap();
    on.delete("default", "ada", "r4").await.unwrap();
    assert_eq!(on.delete("default", "ada", "r4").await, Err(ConversationError::Unknown));
    assert_eq!(
        ConversationLimits { retention: Duration::MAX, ..LIMITS }.since(Timestamp::MIN),
        Timestamp::MIN
    );
}
