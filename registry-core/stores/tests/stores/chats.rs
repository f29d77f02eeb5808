//! Chats: in every store alike.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use registry_core::{
    Permission,
    store::{
        ChatChange, ChatError, ChatKey, ChatLimits, ChatMessage, ChatQuery, ChatStore, Store, StoreErrorKind,
        StoredChat, User, fold,
    },
};

use crate::{Place, at, chains::tamper};

const ADA: (&str, &str) = ("default", "ada");

fn key(id: &str) -> ChatKey<'_> {
    ChatKey { tenant: "default", user: "ada", id }
}

fn chat(id: &str, updated_at: &str) -> StoredChat {
    StoredChat {
        id: id.to_owned(),
        title: format!("About {id}"),
        titled_by: "question".to_owned(),
        pinned: false,
        created_at: at("11:00:00"),
        updated_at: at(updated_at),
        leaf: String::new(),
        settings: r#"{"model": "ü \u0000"}"#.into(),
        turn: None,
    }
}

fn message(id: &str, parent: Option<&str>, time: &str, text: &str) -> ChatMessage {
    ChatMessage {
        id: id.to_owned(),
        parent: parent.map(str::to_owned),
        created_at: at(time),
        text: text.to_owned(),
        document: format!(r#"{{"id": "{id} '\u0000"}}"#).into(),
        context: format!(r#"{{"said": "{id} '\u0000"}}"#).into(),
    }
}

async fn ids(store: &dyn ChatStore, words: &str) -> Vec<String> {
    let words = words.split_whitespace().map(fold).collect();
    let query = ChatQuery { words, after: None, limit: 10 };
    store.chats(ADA, &query).await.unwrap().into_iter().map(|found| found.chat.id).collect()
}

/// Removes a user, and gives how many chats went with the user.
async fn removed(store: &impl Store, user: &str) -> usize {
    store.remove_user("default", user, Timestamp::UNIX_EPOCH).await.unwrap().chats
}

async fn contract(store: &(impl ChatStore + Store)) {
    let limits = &ChatLimits::DEFAULT;
    for (id, updated_at) in [("a", "12:00:00"), ("b", "12:00:01"), ("c", "12:00:02")] {
        store.begin_chat(ADA, chat(id, updated_at), limits).await.unwrap();
    }
    assert_eq!(store.chat(key("a")).await, Ok(Some(chat("a", "12:00:00"))));
    for other in [
        ChatKey { user: "bob", ..key("a") },
        ChatKey { tenant: "acme", ..key("a") },
        key("nothing"),
        key("a\0"),
    ] {
        assert_eq!(store.chat(other).await, Ok(None));
        assert_eq!(store.change_chat(other, ChatChange::default()).await, Ok(false));
        assert_eq!(store.delete_chat(other).await, Ok(false));
        assert_eq!(store.chat_messages(other).await, Ok(Vec::new()));
        assert_eq!(store.chat_message(other, "m1").await, Ok(None));
        assert_eq!(store.stop_chat_turn(other).await, Ok(false));
        let added = store.add_chat_messages(other, vec![message("m", None, "12:00:00", "x")], limits).await;
        assert_eq!(added, Err(ChatError::Unknown));
        let begun = store.begin_chat_turn(other, "t", at("12:00:00"), limits).await;
        assert_eq!(begun, Err(ChatError::Unknown));
        assert_eq!(store.hold_chat_turn(other, "t", at("12:00:00")).await, Ok(true));
        assert_eq!(store.end_chat_turn(other, "t").await, Ok(()));
    }
    assert_eq!(removed(store, "a\0").await, 0);

    let pair = vec![
        message("m1", None, "12:01:00", "Grüner TEE\0 kostet 100%"),
        message("m2", Some("m1"), "12:01:01", "75 Grad"),
    ];
    store.add_chat_messages(key("a"), pair.clone(), limits).await.unwrap();
    let messages = store.chat_messages(key("a")).await.unwrap();
    assert_eq!(
        messages.iter().map(|message| &message.document).collect::<Vec<_>>(),
        [&pair[0].document, &pair[1].document]
    );
    assert_eq!(messages[1].parent.as_deref(), Some("m1"));
    assert!(messages.iter().all(|message| message.context.is_empty()), "what the model gets is not read");
    let contexts = |messages: &[ChatMessage]| -> Vec<_> {
        messages.iter().map(|message| Arc::clone(&message.context)).collect()
    };
    assert_eq!(contexts(&store.whole_chat_messages(key("a")).await.unwrap()), contexts(&pair));
    let shown = store.chat(key("a")).await.unwrap().unwrap();
    assert_eq!((shown.leaf.as_str(), shown.updated_at), ("m2", at("12:01:01")));
    assert_eq!(ids(store, "").await, ["a", "c", "b"], "the one that was updated last comes first");

    let pinned = ChatChange { pinned: Some(true), ..ChatChange::default() };
    assert_eq!(store.change_chat(key("b"), pinned).await, Ok(true));
    assert_eq!(ids(store, "").await, ["b", "a", "c"]);
    let query = ChatQuery { words: Vec::new(), after: Some((true, at("12:00:01"), "b".into())), limit: 1 };
    let page = store.chats(ADA, &query).await.unwrap();
    assert_eq!(page[0].chat.id, "a", "the list goes on behind a place in it");
    assert_eq!(page.len(), 1);
    assert_eq!(&*page[0].chat.settings, "", "a list reads no settings");

    assert_eq!(ids(store, "grüner tee").await, ["a"], "whatever its case");
    assert_eq!(ids(store, "tee grad").await, [""; 0], "all words are in one message");
    assert_eq!(ids(store, "100%").await, ["a"]);
    assert_eq!(ids(store, "1%0 _").await, [""; 0], "no pattern");
    assert_eq!(ids(store, "about C").await, ["c"], "in a title");
    let query = ChatQuery { words: vec!["grad".into()], after: None, limit: 10 };
    let found = store.chats(ADA, &query).await.unwrap().pop().unwrap();
    assert_eq!(found.message, Some(("m2".into(), "75 Grad".into())));
    assert!(store.chats(("default", "bob"), &query).await.unwrap().is_empty());

    let by_model = ChatChange {
        title: Some(("Tea".into(), "model".into())),
        if_titled_by: Some("question".into()),
        ..ChatChange::default()
    };
    assert_eq!(store.change_chat(key("a"), by_model.clone()).await, Ok(true));
    assert_eq!(store.change_chat(key("a"), by_model).await, Ok(false), "it has a name by then");
    let settings = |new: &str, old: &str| ChatChange {
        settings: Some(new.into()),
        if_settings: Some(old.into()),
        ..ChatChange::default()
    };
    let before = store.chat(key("a")).await.unwrap().unwrap().settings;
    assert_eq!(store.change_chat(key("a"), settings("{\"top_p\":1}", &before)).await, Ok(true));
    assert_eq!(store.change_chat(key("a"), settings("{}", &before)).await, Ok(false), "others were faster");
    assert_eq!(&*store.chat(key("a")).await.unwrap().unwrap().settings, "{\"top_p\":1}");
    let put = ChatMessage { text: "80 Grad".into(), ..pair[1].clone() };
    assert_eq!(store.put_chat_message(key("a"), put.clone()).await, Ok(true));
    assert_eq!(store.chat_message(key("a"), "m2").await, Ok(Some(put)));
    assert_eq!(store.put_chat_message(key("a"), message("m9", None, "12:02:00", "")).await, Ok(false));
    assert_eq!(ids(store, "75").await, [""; 0]);

    store.delete_chat_messages(key("a"), &["m2".to_owned()], "m1").await.unwrap();
    assert_eq!(store.chat_messages(key("a")).await.unwrap().len(), 1);
    assert_eq!(store.chat(key("a")).await.unwrap().unwrap().leaf, "m1");
    assert_eq!(store.delete_chat(key("a")).await, Ok(true));
    assert_eq!(store.chat_messages(key("a")).await, Ok(Vec::new()));
    assert_eq!(removed(store, "ada").await, 2);
}

#[tokio::test]
async fn b17_chats_are_kept_listed_and_found() {
    for place in Place::all("b17_chats_are_kept_listed_and_found") {
        let store = place.open("main").await;
        contract(&store).await;
        store.begin_chat(ADA, chat("kept", "13:00:00"), &ChatLimits::DEFAULT).await.unwrap();
        drop(store);
        let store = place.open("other").await;
        assert_eq!(store.chat(key("kept")).await, Ok(Some(chat("kept", "13:00:00"))));
    }
}

async fn turns(store: &dyn ChatStore) {
    let limits = &ChatLimits { max_turns: 2, ..ChatLimits::DEFAULT };
    for id in ["a", "b", "c"] {
        store.begin_chat(ADA, chat(id, "12:00:00"), limits).await.unwrap();
    }
    assert_eq!(store.stop_chat_turn(key("a")).await, Ok(false), "none runs");
    store.begin_chat_turn(key("a"), "t1", at("12:00:00"), limits).await.unwrap();
    let again = store.begin_chat_turn(key("a"), "t2", at("12:00:14"), limits).await;
    assert_eq!(again, Err(ChatError::TurnRunning));
    store.begin_chat_turn(key("b"), "t3", at("12:00:01"), limits).await.unwrap();
    let third = store.begin_chat_turn(key("c"), "t4", at("12:00:02"), limits).await;
    assert_eq!(third, Err(ChatError::TooManyTurns { max: 2 }));
    assert_eq!(store.hold_chat_turn(key("b"), "t3", at("12:00:10")).await, Ok(false));
    assert_eq!(store.stop_chat_turn(key("b")).await, Ok(true));
    assert_eq!(store.hold_chat_turn(key("b"), "t3", at("12:00:11")).await, Ok(true), "it has to stop");
    // The server of the first was not heard of for 15 s.
    let chat = store.chat(key("a")).await.unwrap().unwrap();
    assert!(chat.running(limits.since(at("12:00:14"))).is_some());
    assert!(chat.running(limits.since(at("12:00:15"))).is_none());
    store.begin_chat_turn(key("a"), "t5", at("12:00:15"), limits).await.unwrap();
    assert_eq!(store.hold_chat_turn(key("a"), "t1", at("12:00:16")).await, Ok(true), "it has lost the chat");
    store.end_chat_turn(key("a"), "t1").await.unwrap();
    assert_eq!(store.chat(key("a")).await.unwrap().unwrap().turn.unwrap().id, "t5");
    store.end_chat_turn(key("a"), "t5").await.unwrap();
    assert_eq!(store.chat(key("a")).await.unwrap().unwrap().turn, None);
    store.begin_chat_turn(key("b"), "t6", at("12:01:00"), limits).await.unwrap();
    assert_eq!(
        store.hold_chat_turn(key("b"), "t6", at("12:01:00")).await,
        Ok(false),
        "another one was stopped"
    );
    store.delete_chat(key("b")).await.unwrap();
    assert_eq!(store.hold_chat_turn(key("b"), "t6", at("12:01:01")).await, Ok(true));
}

#[tokio::test]
async fn b17_one_turn_of_a_chat_runs_and_one_whose_server_is_gone_does_not() {
    for place in Place::all("b17_one_turn_of_a_chat_runs_and_one_whose_server_is_gone_does_not") {
        turns(&place.open("main").await).await;
    }
}

async fn bounds(store: &dyn ChatStore) {
    let size = message("m1", None, "12:00:00", "").size();
    let settings = u64::try_from(chat("a", "12:00:00").settings.len()).unwrap();
    let limits = &ChatLimits {
        max_chats: 2,
        max_messages: 3,
        max_chat_bytes: settings + size * 2,
        max_user_bytes: settings * 2 + size * 3,
        ..ChatLimits::DEFAULT
    };
    for id in ["a", "b"] {
        store.begin_chat(ADA, chat(id, "12:00:00"), limits).await.unwrap();
    }
    let full = Err(ChatError::TooManyChats { max: 2, bytes: limits.max_user_bytes });
    assert_eq!(store.begin_chat(ADA, chat("c", "12:00:00"), limits).await, full);
    let add = |chat, ids: &[&str]| {
        let messages = ids.iter().map(|id| message(id, None, "12:00:00", "")).collect();
        store.add_chat_messages(key(chat), messages, limits)
    };
    let chat_full = Err(ChatError::ChatFull { max: 3, bytes: limits.max_chat_bytes });
    assert_eq!(add("a", &["m1", "m2", "m3"]).await, chat_full);
    assert!(store.chat_messages(key("a")).await.unwrap().is_empty(), "all or none");
    add("a", &["m1", "m2"]).await.unwrap();
    assert_eq!(add("a", &["m3"]).await, chat_full);
    assert_eq!(add("b", &["m1", "m2"]).await, full);
    add("b", &["m1"]).await.unwrap();
    store.delete_chat_messages(key("a"), &["m1".to_owned()], "").await.unwrap();
    add("b", &["m2"]).await.unwrap();
    store.delete_chat_messages(key("b"), &["m1".to_owned(), "m2".to_owned()], "").await.unwrap();
    let long = Some("x".repeat(usize::try_from(size).unwrap()).into());
    let long = ChatChange { settings: long, ..ChatChange::default() };
    assert_eq!(store.change_chat(key("a"), long).await, Ok(true));
    assert_eq!(add("a", &["m1"]).await, chat_full, "the settings count");
    assert_eq!(add("b", &["m1", "m2"]).await, full, "also for the user");
    let longer = |size: usize, max_user_bytes: u64| {
        let settings = Some("x".repeat(size).into());
        store.change_chat(
            key("b"),
            ChatChange { settings, max_user_bytes: Some(max_user_bytes), ..ChatChange::default() },
        )
    };
    let before = store.chat(key("b")).await.unwrap().unwrap().settings;
    assert_eq!(longer(100_000, 100_000).await, Ok(false), "settings alone do not pass the bound of the user");
    assert_eq!(store.chat(key("b")).await.unwrap().unwrap().settings, before);
    assert_eq!(longer(100_000, 1_000_000).await, Ok(true));
    assert_eq!(longer(before.len(), 0).await, Ok(true), "what takes no more is kept in any case");
    let short = ChatChange { settings: Some("{}".into()), ..ChatChange::default() };
    assert_eq!(store.change_chat(key("a"), short).await, Ok(true));
    add("b", &["m1", "m2"]).await.unwrap();
    let limits = &ChatLimits { max_messages: 2, ..ChatLimits::DEFAULT };
    let messages = vec![message("m3", None, "12:00:00", "")];
    let long = Err(ChatError::ChatFull { max: 2, bytes: limits.max_chat_bytes });
    assert_eq!(store.add_chat_messages(key("b"), messages, limits).await, long);
}

#[tokio::test]
async fn b17_chats_have_bounds_and_none_gives_way() {
    for place in Place::all("b17_chats_have_bounds_and_none_gives_way") {
        bounds(&place.open("main").await).await;
    }
}

async fn removal<S: Store + ChatStore>(store: &S) {
    let created_at = at("12:00:00");
    let user = User { id: "ada".into(), level: Permission::User, personas: Vec::new(), created_at };
    store.put_user("default", user).await.unwrap();
    store.begin_chat(ADA, chat("a", "12:00:00"), &ChatLimits::DEFAULT).await.unwrap();
    let messages = vec![message("m1", None, "12:00:00", "secret")];
    store.add_chat_messages(key("a"), messages, &ChatLimits::DEFAULT).await.unwrap();
    let removed = store.remove_user("default", "ada", Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(removed.chats, 1);
    assert_eq!(store.chat(key("a")).await, Ok(None));
    assert_eq!(store.chat_messages(key("a")).await, Ok(Vec::new()));
    let late = vec![message("m2", None, "12:00:00", "too late")];
    let late = store.add_chat_messages(key("a"), late, &ChatLimits::DEFAULT).await;
    assert_eq!(late, Err(ChatError::Unknown), "a turn that was running ends too late");
}

#[tokio::test]
async fn b17_chats_go_with_their_user() {
    for place in Place::all("b17_chats_go_with_their_user") {
        removal(&place.open("main").await).await;
    }
}

#[tokio::test]
async fn b17_a_database_without_chats_gets_their_tables() {
    for place in Place::all("b17_a_database_without_chats_gets_their_tables") {
        drop(place.open("main").await);
        for statement in [
            "ALTER TABLE api_keys DROP COLUMN last_used_at",
            "ALTER TABLE api_keys DROP COLUMN name",
            "ALTER TABLE api_keys DROP COLUMN expires_at",
            "DROP TABLE connections",
            "DROP TABLE sessions",
            "DROP TABLE chat_messages",
            "DROP TABLE chats",
            "DROP INDEX audit_by_tenant",
            "DROP INDEX audit_by_call",
            "UPDATE toolrack_schema SET version = 13",
        ] {
            tamper(&place, statement).await;
        }
        let store = place.open("main").await;
        store.begin_chat(ADA, chat("a", "12:00:00"), &ChatLimits::DEFAULT).await.unwrap();
    }
}

#[tokio::test]
async fn a25_messages_that_were_kept_with_their_context_stay() {
    for place in Place::all("a25_messages_that_were_kept_with_their_context_stay") {
        let store = place.open("main").await;
        store.begin_chat(ADA, chat("a", "12:00:00"), &ChatLimits::DEFAULT).await.unwrap();
        let before = message("m1", None, "12:00:00", "x");
        store.add_chat_messages(key("a"), vec![before.clone()], &ChatLimits::DEFAULT).await.unwrap();
        drop(store);
        for statement in [
            "ALTER TABLE api_keys DROP COLUMN last_used_at",
            "ALTER TABLE api_keys DROP COLUMN name",
            "ALTER TABLE api_keys DROP COLUMN expires_at",
            "ALTER TABLE chat_messages DROP COLUMN context",
            "DROP INDEX audit_by_tenant",
            "DROP INDEX audit_by_call",
            "UPDATE toolrack_schema SET version = 16",
        ] {
            tamper(&place, statement).await;
        }
        let store = place.open("main").await;
        let kept = vec![ChatMessage { context: "".into(), ..before }];
        assert_eq!(store.whole_chat_messages(key("a")).await, Ok(kept));
    }
}

#[tokio::test]
async fn a39_searches_end_in_time_and_hold_up_nobody_who_reads() {
    for place in Place::all("a39_searches_end_in_time_and_hold_up_nobody_who_reads") {
        let store = place.open("main").await;
        store.begin_chat(ADA, chat("a", "12:00:00"), &ChatLimits::DEFAULT).await.unwrap();
        // Each of them is looked through for about a tenth of a second.
        let text = "a".repeat(64 << 10);
        let messages = (0..200).map(|number| message(&format!("m{number}"), None, "12:00:00", &text));
        store.add_chat_messages(key("a"), messages.collect(), &ChatLimits::DEFAULT).await.unwrap();
        let query = ChatQuery { words: vec!["a".repeat(990) + "b"], after: None, limit: 10 };
        let search = || {
            let (store, query) = (store.clone(), query.clone());
            tokio::spawn(async move { store.chats(ADA, &query).await })
        };
        let searches: Vec<_> = (0..8).map(|_| search()).collect();
        tokio::time::sleep(Duration::from_millis(200)).await;
        store.chat(key("a")).await.unwrap().unwrap();
        assert!(!searches.iter().any(|search| search.is_finished()), "reading has waited for a search");
        let (first, _, others) = futures_util::future::select_all(searches).await;
        let ended = first.unwrap().unwrap_err();
        assert_eq!(ended.kind(), StoreErrorKind::Unavailable, "{ended}");
        others.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
