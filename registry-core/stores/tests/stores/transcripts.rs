//! Transcripts of turns: in every store alike.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use registry_core::store::{
    ConversationLimits, ConversationStore, Conversations, MemoryStore, Shelf, Store, StoredTranscript,
    TranscriptLimits,
};
use registry_core::testing::TestClock;

use crate::{Place, at, chains::tamper};

const LIMITS: TranscriptLimits = TranscriptLimits {
    are_kept: true,
    max_bytes: 32 << 10,
    max_read_bytes: 40 << 10,
    max_user_transcripts: 4,
    max_user_bytes: 64 << 10,
    max_total_bytes: 1 << 20,
};

fn transcript(user: &str, keys: [&str; 2], messages: &str, time: &str) -> StoredTranscript {
    let [key, other_key] = keys.map(str::to_owned);
    StoredTranscript {
        tenant: "default".to_owned(),
        user: user.to_owned(),
        key,
        other_key,
        messages: messages.into(),
        used_at: at(time),
    }
}

struct Asked<'s>(&'s dyn ConversationStore);

impl Asked<'_> {
    async fn keep(&self, user: &str, keys: [&str; 2], messages: &str, time: &str) {
        let kept = transcript(user, keys, messages, time);
        self.0.keep_transcript(Shelf::Transcripts, kept, at("11:00:00"), &LIMITS).await.unwrap();
    }

    /// The messages that are found, sorted.
    async fn found(&self, user: &str, keys: &[&str]) -> Vec<String> {
        self.found_since(user, keys, "11:00:00").await
    }

    async fn found_since(&self, user: &str, keys: &[&str], since: &str) -> Vec<String> {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let found =
            self.0.transcripts(Shelf::Transcripts, "default", user, &keys, at(since), &LIMITS).await.unwrap();
        let mut messages: Vec<String> = found.iter().map(|found| found.messages.to_string()).collect();
        messages.sort();
        messages
    }
}

async fn transcripts_contract(store: &dyn ConversationStore) {
    let asked = Asked(store);
    asked.keep("ada", ["a", "a"], "[1] ü \\u0000 '\"", "12:00:00").await;
    asked.keep("ada", ["b", "b2"], "[2]", "12:01:00").await;
    asked.keep("bob", ["a", "a"], "[of bob]", "12:01:00").await;
    // Many keys are asked for at once, and a transcript is given once, whichever of its keys it is found by.
    let many: Vec<String> = (0..700).map(|number| format!("key{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).chain(["a", "b2", "b"]).collect();
    assert_eq!(asked.found("ada", &many).await, ["[1] ü \\u0000 '\"", "[2]"]);
    assert_eq!(asked.found("ada", &["b2"]).await, ["[2]"]);
    let whole = store
        .transcripts(Shelf::Transcripts, "default", "ada", &["b".to_owned()], at("11:00:00"), &LIMITS)
        .await;
    assert_eq!(whole, Ok(vec![transcript("ada", ["b", "b2"], "[2]", "12:01:00")]));
    for (user, keys) in [("bob", &["b", "b2"][..]), ("eve", &["a"]), ("ada", &[]), ("ada\0", &["a"])] {
        assert_eq!(asked.found(user, keys).await, [""; 0], "{user:?}");
    }
    let elsewhere = store
        .transcripts(Shelf::Transcripts, "other", "ada", &["a".to_owned()], at("11:00:00"), &LIMITS)
        .await;
    assert_eq!(elsewhere, Ok(Vec::new()));

    // The last one wins, by either key.
    asked.keep("ada", ["c", "b2"], "[3]", "12:02:00").await;
    assert_eq!(asked.found("ada", &["b"]).await, [""; 0]);
    assert_eq!(asked.found("ada", &["b2"]).await, ["[3]"]);
    store.delete_transcripts("default", "ada", &["b2".to_owned()]).await.unwrap();
    assert_eq!(asked.found("ada", &["c", "b2"]).await, [""; 0]);
    assert_eq!(asked.found("bob", &["a"]).await, ["[of bob]"]);

    // What has expired is not found, and is deleted; what is used stays.
    asked.keep("ada", ["d", "d"], "[4]", "12:03:00").await;
    assert_eq!(asked.found_since("ada", &["a", "d"], "12:00:00").await, ["[4]"]);
    store.use_transcripts("default", "ada", &["a".to_owned()], at("12:04:00")).await.unwrap();
    store.sweep_transcripts(Shelf::Transcripts, at("12:03:00"), LIMITS.max_total_bytes).await.unwrap();
    assert_eq!(asked.found("ada", &["a", "d"]).await, ["[1] ü \\u0000 '\""]);
    assert_eq!(asked.found("bob", &["a"]).await, [""; 0]);

    // Those that were not used for longest give way: by their number and by their size.
    for (key, time) in [("e", "13:00:00"), ("f", "13:01:00"), ("g", "13:02:00"), ("h", "13:03:00")] {
        asked.keep("guy", [key, key], key, time).await;
    }
    store.use_transcripts("default", "guy", &["e".to_owned()], at("13:04:00")).await.unwrap();
    asked.keep("guy", ["i", "i"], "i", "13:05:00").await;
    assert_eq!(asked.found("guy", &["e", "f", "g", "h", "i"]).await, ["e", "g", "h", "i"]);
    let large = "x".repeat(25 << 10);
    for (key, time) in [("j", "13:06:00"), ("k", "13:07:00"), ("l", "13:08:00")] {
        asked.keep("guy", [key, key], &format!("{key}{large}"), time).await;
    }
    let found = asked.found("guy", &["e", "g", "h", "i", "j", "k"]).await;
    assert_eq!(found, [format!("k{large}")]);
    // No more than fits is read into one conversation: what was used last.
    assert_eq!(asked.found("guy", &["k", "l"]).await, [format!("l{large}")]);

    // Room is made for a while at once.
    let more = TranscriptLimits { max_user_transcripts: 16, ..LIMITS };
    for number in 0..17 {
        let key = format!("n{number}");
        let kept = transcript("lea", [&key, &key], "n", &format!("13:00:{number:02}"));
        store.keep_transcript(Shelf::Transcripts, kept, at("11:00:00"), &more).await.unwrap();
    }
    let all: Vec<String> = (0..17).map(|number| format!("n{number}")).collect();
    let left =
        store.transcripts(Shelf::Transcripts, "default", "lea", &all, at("11:00:00"), &LIMITS).await.unwrap();
    assert_eq!(left.len(), 14);

    // All users together have a bound as well.
    asked.keep("kim", ["m", "m"], &large, "14:00:00").await;
    store.sweep_transcripts(Shelf::Transcripts, at("11:00:00"), 60 << 10).await.unwrap();
    assert_eq!(asked.found("kim", &["m"]).await, [large.as_str()]);
    assert_eq!(asked.found("guy", &["k"]).await, [""; 0]);
    assert_eq!(asked.found("guy", &["l"]).await, [format!("l{large}")]);
    store.sweep_transcripts(Shelf::Transcripts, at("14:00:00"), 0).await.unwrap();
}

#[tokio::test]
async fn b15_every_store_keeps_transcripts_alike() {
    transcripts_contract(&MemoryStore::default()).await;
    for place in Place::all("b15_every_store_keeps_transcripts_alike") {
        let store = place.open("main").await;
        transcripts_contract(&store).await;
        assert_eq!(store.revision().await, Ok(0), "registrations are not read again for a transcript");
        // They outlive the process, and another server finds them.
        Asked(&store).keep("ada", ["s", "s"], "[5]", "18:00:00").await;
        drop(store);
        assert_eq!(Asked(&place.open("other").await).found("ada", &["s"]).await, ["[5]"]);
    }
}

async fn removal_contract<S: Store + ConversationStore>(store: &S) {
    let asked = Asked(store);
    for user in ["ada", "bob"] {
        asked.keep(user, ["a", "a"], "[1]", "12:00:00").await;
        asked.keep(user, ["b", "b"], "[2]", "12:00:00").await;
    }
    let removed = store.remove_user("default", "ada", at("12:01:00")).await.unwrap();
    assert_eq!((removed.was_known, removed.responses, removed.transcripts), (false, 0, 2));
    assert_eq!(asked.found("ada", &["a", "b"]).await, [""; 0]);
    assert_eq!(asked.found("bob", &["a", "b"]).await, ["[1]", "[2]"]);
}

#[tokio::test]
async fn b15_transcripts_go_with_their_user() {
    removal_contract(&MemoryStore::default()).await;
    for place in Place::all("b15_transcripts_go_with_their_user") {
        removal_contract(&place.open("main").await).await;
    }
}

#[tokio::test]
async fn b15_a_database_of_the_version_before_gets_the_table_of_transcripts() {
    for place in Place::all("b15_a_database_of_the_version_before_gets_the_table_of_transcripts") {
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
            "DROP INDEX audit_by_tenant",
            "DROP INDEX audit_by_call",
            "UPDATE toolrack_schema SET version = 8",
        ] {
            tamper(&place, statement).await;
        }
        let store = place.open("main").await;
        Asked(&store).keep("ada", ["a", "a"], "[1]", "12:00:00").await;
        assert_eq!(Asked(&store).found("ada", &["a"]).await, ["[1]"]);
    }
}

const ADA: (&str, &str) = ("default", "ada");

#[tokio::test]
async fn b15_transcripts_are_bounded_and_can_be_switched_off() {
    let store = Arc::new(MemoryStore::default());
    let with = |transcripts, time: &str| {
        let limits = ConversationLimits {
            retention: Duration::from_secs(72 * 3600),
            transcripts,
            ..Default::default()
        };
        Conversations::new(store.clone(), limits).with_clock(Arc::new(TestClock::at(at(time))))
    };
    let keys = |keys: &[&str]| -> Vec<String> { keys.iter().map(|key| (*key).to_owned()).collect() };
    let on = with(LIMITS, "12:00:00");
    on.keep_transcript(ADA, ("a".into(), None), "[1]".into()).await.unwrap();
    on.keep_transcript(ADA, ("b".into(), Some("c".into())), "[2]".into()).await.unwrap();
    let found = on.transcripts(ADA, &keys(&["a", "c"])).await.unwrap();
    assert_eq!(found.len(), 2);

    // What is too large is not kept, and neither is what it would have replaced.
    on.keep_transcript(ADA, ("a".into(), None), "x".repeat(32 << 10).into()).await.unwrap();
    assert_eq!(on.transcripts(ADA, &keys(&["a"])).await, Ok(Vec::new()));

    // What is found is in use: noted once a day, and kept from then on.
    let day = Duration::from_secs(24 * 3600);
    let used_at = |conversations: Conversations| {
        let key = keys(&["b"]);
        async move { conversations.transcripts(ADA, &key).await.unwrap().first().map(|found| found.used_at) }
    };
    let later = |days: u32| -> Timestamp { at("12:00:00") + day * days };
    let at_time = |time: Timestamp| on.clone().with_clock(Arc::new(TestClock::at(time)));
    assert_eq!(used_at(at_time(later(2))).await, Some(later(0)));
    assert_eq!(used_at(at_time(later(4))).await, Some(later(2)));
    assert_eq!(used_at(at_time(later(8))).await, None);

    // Switched off, nothing is kept or found, and what was kept goes.
    on.keep_transcript(ADA, ("d".into(), None), "[3]".into()).await.unwrap();
    let off = with(TranscriptLimits { are_kept: false, ..LIMITS }, "12:00:01");
    off.keep_transcript(ADA, ("e".into(), None), "[4]".into()).await.unwrap();
    assert_eq!(off.transcripts(ADA, &keys(&["d", "e"])).await, Ok(Vec::new()));
    off.delete_expired().await.unwrap();
    assert_eq!(on.transcripts(ADA, &keys(&["d", "e"])).await, Ok(Vec::new()));

    // All users together have their bound without waiting for the sweep.
    let few = with(TranscriptLimits { max_total_bytes: 16 << 10, ..LIMITS }, "13:00:00");
    for number in 0..40 {
        let user = format!("user{number}");
        few.keep_transcript(("default", &user), ("a".into(), None), "[5]".into()).await.unwrap();
    }
    let mut left = 0;
    for number in 0..40 {
        let user = format!("user{number}");
        left += few.transcripts(("default", &user), &keys(&["a"])).await.unwrap().len();
    }
    assert!((8..=16).contains(&left), "{left}");
}

async fn files_contract<S: ConversationStore + Store>(store: &S) {
    let limits = &LIMITS;
    let keep = |user: &str, id: &str, file: &str, time: &str| {
        store.keep_transcript(Shelf::Files, transcript(user, [id, id], file, time), at("11:00:00"), limits)
    };
    let find = async |user: &str, id: &str, since: &str| {
        let keys = [id.to_owned()];
        let found = store.transcripts(Shelf::Files, "default", user, &keys, at(since), limits).await.unwrap();
        found.first().map(|file| file.messages.to_string())
    };
    keep("ada", "a", "one ü \\u0000", "12:00:00").await.unwrap();
    keep("ada", "a", "one ü \\u0000", "12:00:01").await.unwrap();
    assert_eq!(find("ada", "a", "11:00:00").await.as_deref(), Some("one ü \\u0000"));
    for (user, id, since) in [
        ("bob", "a", "11:00:00"),
        ("ada", "b", "11:00:00"),
        ("ada", "a", "12:00:01"),
        ("ada", "a\0", "11:00:00"),
    ] {
        assert_eq!(find(user, id, since).await, None, "{user} {id:?} {since}");
    }
    // They are no transcripts, and give way to their like alone: the oldest first, by number and by size.
    Asked(store).keep("ada", ["a", "a"], "[1]", "11:30:00").await;
    for (second, id) in (10..).zip(["b", "c", "d", "e"]) {
        keep("ada", id, "small", &format!("12:00:{second}")).await.unwrap();
    }
    assert_eq!(find("ada", "a", "11:00:00").await, None);
    assert_eq!(find("ada", "e", "11:00:00").await.as_deref(), Some("small"));
    for (second, id) in (20..).zip(["f", "g", "h"]) {
        keep("ada", id, &"x".repeat(30 << 10), &format!("12:00:{second}")).await.unwrap();
    }
    assert_eq!(find("ada", "f", "11:00:00").await, None);
    assert!(find("ada", "h", "11:00:00").await.is_some());
    assert_eq!(Asked(store).found("ada", &["a"]).await, ["[1]"]);
    // All that has expired goes, then what is beyond the bytes of all.
    keep("bob", "old", "x", "11:10:00").await.unwrap();
    keep("bob", "new", "x", "12:01:00").await.unwrap();
    store.sweep_transcripts(Shelf::Files, at("11:20:00"), 2048).await.unwrap();
    assert_eq!((find("bob", "old", "11:00:00").await, find("ada", "h", "11:00:00").await), (None, None));
    assert!(find("bob", "new", "11:00:00").await.is_some());
    // With the user goes what is the user's.
    let removed = store.remove_user("default", "bob", at("12:02:00")).await.unwrap();
    assert_eq!((removed.files, find("bob", "new", "11:00:00").await), (1, None));
}

#[tokio::test]
async fn b19_every_store_keeps_the_files_of_results_alike() {
    files_contract(&MemoryStore::default()).await;
    for place in Place::all("b19_every_store_keeps_the_files_of_results_alike") {
        let store = place.open("main").await;
        files_contract(&store).await;
        let conversations = Conversations::new(Arc::new(store), ConversationLimits::default());
        conversations.keep_file(("default", "ada"), "kept", "bytes".into()).await.unwrap();
        // Another server, or the same after a restart.
        let other = Conversations::new(Arc::new(place.open("other").await), ConversationLimits::default());
        assert_eq!(other.file(("default", "ada"), "kept").await.unwrap().as_deref(), Some("bytes"));
        assert_eq!(other.file(("acme", "ada"), "kept").await.unwrap(), None);
        let large = "x".repeat(49 << 20);
        other.keep_file(("default", "ada"), "large", large.into()).await.unwrap();
        assert_eq!(other.file(("default", "ada"), "large").await.unwrap(), None, "it is too large");
        let none = ConversationLimits { retention: Duration::ZERO, ..ConversationLimits::default() };
        let none = Conversations::new(Arc::new(place.open("main").await), none);
        none.keep_file(("default", "ada"), "none", "bytes".into()).await.unwrap();
        assert_eq!(none.file(("default", "ada"), "kept").await.unwrap(), None);
        assert_eq!(other.file(("default", "ada"), "none").await.unwrap(), None);
    }
}

#[tokio::test]
async fn b19_a_database_of_the_version_before_gets_the_table_of_files() {
    for place in Place::all("b19_a_database_of_the_version_before_gets_the_table_of_files") {
        drop(place.open("main").await);
        for statement in [
            "ALTER TABLE api_keys DROP COLUMN last_used_at",
            "ALTER TABLE api_keys DROP COLUMN name",
            "ALTER TABLE api_keys DROP COLUMN expires_at",
            "DROP TABLE connections",
            "DROP TABLE sessions",
            "DROP TABLE chat_messages",
            "DROP TABLE chats",
            "DROP TABLE files",
            "DROP INDEX audit_by_tenant",
            "DROP INDEX audit_by_call",
            "UPDATE toolrack_schema SET version = 11",
        ] {
            tamper(&place, statement).await;
        }
        let store = place.open("main").await;
        let file = transcript("ada", ["a", "a"], "bytes", "12:00:00");
        store.keep_transcript(Shelf::Files, file, at("11:00:00"), &LIMITS).await.unwrap();
        let (keys, since) = (["a".to_owned()], at("11:00:00"));
        let found = store.transcripts(Shelf::Files, "default", "ada", &keys, since, &LIMITS).await.unwrap();
        assert_eq!(found.len(), 1);
    }
}
