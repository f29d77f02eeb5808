//! What tools keep: every store alike.

use std::sync::Arc;

use jiff::Timestamp;
use registry_core::store::{
    Expected, MemoryStore, StateError, StateLimits, StateSpace, StateStore, Store, state_size,
};

use crate::Place;

fn space(user: Option<&str>, name: &str) -> StateSpace {
    StateSpace { tenant: "default".to_owned(), user: user.map(str::to_owned), name: name.to_owned() }
}

async fn state_contract<S: StateStore + Store>(store: &S) {
    let (limits, any) = (&StateLimits::DEFAULT, Expected::Anything);
    let (ada, all) = (space(Some("ada"), "tool:a"), space(None, "tool:a"));
    let put = |space, key, value, expected| store.put_state(space, key, value, expected, limits);
    assert_eq!(store.state(&ada, "k").await, Ok(None));
    // Anything that JSON can say comes back as it was, and each space has its own.
    let odd = r#"{"ü": "\u0000 '\"🙂", "n": 1}"#;
    assert!(put(&ada, "k", Some(odd), any).await.unwrap());
    assert_eq!(store.state(&ada, "k").await.unwrap().as_deref(), Some(odd));
    let others = [
        all.clone(),
        space(Some("bob"), "tool:a"),
        space(Some("ada"), "tool:b"),
        StateSpace { tenant: "other".to_owned(), ..ada.clone() },
    ];
    for (other, number) in others.iter().zip(["0", "1", "2", "3"]) {
        assert_eq!(store.state(other, "k").await, Ok(None));
        assert!(put(other, "k", Some(number), any).await.unwrap());
    }
    assert_eq!(store.state(&ada, "k").await.unwrap().as_deref(), Some(odd));
    // A change is made where what is there is what was expected.
    for wrong in [None, Some("2"), Some("")] {
        assert!(!put(&ada, "k", Some("3"), Expected::Exactly(wrong)).await.unwrap(), "{wrong:?}");
        assert!(!put(&ada, "k", None, Expected::Exactly(wrong)).await.unwrap(), "{wrong:?}");
    }
    assert!(put(&ada, "k", Some("1"), Expected::Exactly(Some(odd))).await.unwrap());
    assert!(!put(&ada, "new", Some("1"), Expected::Exactly(Some("1"))).await.unwrap());
    assert!(put(&ada, "new", Some("1"), Expected::Exactly(None)).await.unwrap());
    for key in ["é", "Z", "'; --"] {
        assert!(put(&ada, key, Some("[]"), any).await.unwrap());
    }
    assert_eq!(store.state_keys(&ada).await.unwrap(), ["'; --", "Z", "k", "new", "é"]);
    assert!(put(&ada, "k", None, Expected::Exactly(Some("1"))).await.unwrap());
    assert!(put(&ada, "k", None, Expected::Exactly(None)).await.unwrap());
    assert!(put(&ada, "k", None, any).await.unwrap(), "what is not there is removed");
    assert_eq!(store.state_keys(&ada).await.unwrap(), ["'; --", "Z", "new", "é"]);
    // What users have under one key, without what all share and what is of other tenants and names.
    assert!(put(&space(Some("cleo"), "tool:a"), "k", Some("4"), any).await.unwrap());
    let of_users = async |after, most| {
        let kept = store.states_of_users("default", "tool:a", "k", after, most).await.unwrap();
        kept.into_iter().map(|(user, value)| format!("{user} {value}")).collect::<Vec<_>>()
    };
    assert_eq!(of_users("", 9).await, ["bob 1", "cleo 4"]);
    assert_eq!(
        (of_users("", 1).await, of_users("bob", 9).await),
        (vec!["bob 1".into()], vec!["cleo 4".into()])
    );
    assert!(of_users("cleo", 9).await.is_empty());
    // With the user goes what is the user's.
    let removed = store.remove_user("default", "ada", Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!((removed.was_known, removed.values), (false, 5));
    assert!(store.state_keys(&ada).await.unwrap().is_empty());
    let removed =
        async |user| store.remove_user("default", user, Timestamp::UNIX_EPOCH).await.unwrap().values;
    assert_eq!((removed("bob").await, removed("").await), (1, 0), "what all share is nobody's");
    assert_eq!(store.state(&all, "k").await.unwrap().as_deref(), Some("0"));
}

async fn limits_contract(store: &dyn StateStore) {
    let entry = state_size("a", "1234");
    let limits = StateLimits {
        max_keys: 2,
        max_space_bytes: 3 * entry,
        max_user_bytes: 4 * entry,
        ..StateLimits::DEFAULT
    };
    let (one, two) = (space(Some("eve"), "tool:1"), space(Some("eve"), "tool:2"));
    let put =
        async |space, key, value| store.put_state(space, key, Some(value), Expected::Anything, &limits).await;
    let is_full = |put: Result<bool, StateError>, key: &str| match put {
        Err(StateError::Full { key: of }) => assert_eq!(of, key),
        other => panic!("{other:?}"),
    };
    assert!(put(&one, "a", "1234").await.unwrap() && put(&one, "b", "1234").await.unwrap());
    is_full(put(&one, "c", "1").await, "c");
    // What is replaced makes room for what comes.
    assert!(put(&one, "b", "123456789").await.unwrap());
    is_full(put(&one, "a", "12345").await, "a");
    assert!(put(&one, "a", "5678").await.unwrap());
    assert!(put(&two, "a", "1234").await.unwrap());
    is_full(put(&two, "b", "1").await, "b");
    assert!(put(&space(Some("joe"), "tool:1"), "a", "1234").await.unwrap());
    assert_eq!(store.state(&one, "a").await.unwrap().as_deref(), Some("5678"));
}

/// Of those who change the same value at the same time, one does it.
async fn race_contract(store: Arc<dyn StateStore>) {
    let mut racing = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = Arc::clone(&store);
        racing.spawn(async move {
            let (space, value) = (space(Some("zoe"), "tool:race"), number.to_string());
            let expected = Expected::Exactly(None);
            store.put_state(&space, "k", Some(&value), expected, &StateLimits::DEFAULT).await.unwrap()
        });
    }
    assert_eq!(racing.join_all().await.into_iter().filter(|won| *won).count(), 1);
}

#[tokio::test]
async fn b19_every_store_keeps_the_values_of_tools_alike() {
    state_contract(&MemoryStore::default()).await;
    limits_contract(&MemoryStore::default()).await;
    race_contract(Arc::new(MemoryStore::default())).await;
    for place in Place::all("b19_every_store_keeps_the_values_of_tools_alike") {
        let store = place.open("main").await;
        state_contract(&store).await;
        limits_contract(&store).await;
        race_contract(Arc::new(store)).await;
        let reopened = place.open("main").await;
        let kept = reopened.state(&space(None, "tool:a"), "k").await.unwrap();
        assert_eq!(kept.as_deref(), Some("0"), "it lasts");
        // A database has no place for a NUL.
        let nul = space(Some("a\0"), "tool:a");
        assert_eq!(reopened.state(&nul, "k").await, Ok(None));
        let put = reopened.put_state(&nul, "k", Some("1"), Expected::Anything, &StateLimits::DEFAULT).await;
        assert!(matches!(put, Err(StateError::InvalidKey { .. })), "{put:?}");
    }
}
