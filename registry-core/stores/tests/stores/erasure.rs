//! What is kept of a person in a database is erased: each kind of it, of nobody else.

use jiff::{SignedDuration, Timestamp};
use registry_core::{
    Permission,
    store::{
        ChatKey, ChatLimits, ChatStore, ConversationStore, Session, Shelf, Store, StoredChat,
        StoredTranscript, TranscriptLimits, User,
    },
};
use toolrack_stores::{Erased, SqlStore};

use crate::{Place, at};

const LIMITS: TranscriptLimits = TranscriptLimits {
    are_kept: true,
    max_bytes: 32 << 10,
    max_read_bytes: 40 << 10,
    max_user_transcripts: 4,
    max_user_bytes: 64 << 10,
    max_total_bytes: 1 << 20,
};

fn chat(user: &str) -> StoredChat {
    StoredChat {
        id: format!("chat of {user}"),
        title: String::new(),
        titled_by: String::new(),
        pinned: false,
        created_at: at("11:00:00"),
        updated_at: at("11:00:00"),
        leaf: String::new(),
        settings: "{}".into(),
        turn: None,
    }
}

fn text(user: &str, key: &str) -> StoredTranscript {
    StoredTranscript {
        tenant: "default".to_owned(),
        user: user.to_owned(),
        key: key.to_owned(),
        other_key: key.to_owned(),
        messages: "[]".into(),
        used_at: at("12:00:00"),
    }
}

/// What is there of a user: chats, browsers, transcripts, files.
async fn kept(store: &SqlStore, user: &str) -> [bool; 4] {
    let chat = chat(user);
    let key = ChatKey { tenant: "default", user, id: &chat.id };
    let since = at("11:00:00");
    let keys = ["turn".to_owned(), "file".to_owned()];
    let on = |shelf| store.transcripts(shelf, "default", user, &keys, since, &LIMITS);
    [
        store.chat(key).await.unwrap().is_some(),
        !store.sessions("default", user, Timestamp::now()).await.unwrap().is_empty(),
        !on(Shelf::Transcripts).await.unwrap().is_empty(),
        !on(Shelf::Files).await.unwrap().is_empty(),
    ]
}

#[tokio::test]
async fn b21_chats_browsers_transcripts_and_files_of_a_person_are_erased() {
    for place in Place::all("erasure") {
        let store = place.open("main").await;
        for user in ["ada", "bob"] {
            let (id, level) = (user.to_owned(), Permission::User);
            let added = User { id, level, personas: Vec::new(), created_at: at("11:00:00") };
            store.put_user("default", added).await.unwrap();
            store.begin_chat(("default", user), chat(user), &ChatLimits::DEFAULT).await.unwrap();
            let (session, _) =
                Session::start("default", user, Timestamp::now(), SignedDuration::from_hours(1)).unwrap();
            assert!(store.put_session(session, 9).await.unwrap());
            for (shelf, key) in [(Shelf::Transcripts, "turn"), (Shelf::Files, "file")] {
                store.keep_transcript(shelf, text(user, key), at("11:00:00"), &LIMITS).await.unwrap();
            }
            assert_eq!(kept(&store, user).await, [true; 4], "{user}");
        }
        let erased = store.erase_user("default", "ada").await.unwrap();
        let Erased { was_known, chats, sessions, transcripts, files, .. } = erased;
        assert_eq!((was_known, chats, sessions, transcripts, files), (true, 1, 1, 1, 1));
        assert_eq!(kept(&store, "ada").await, [false; 4]);
        assert_eq!(kept(&store, "bob").await, [true; 4]);
        assert!(store.erase_user("default", "ada").await.unwrap().is_nothing());
    }
}
