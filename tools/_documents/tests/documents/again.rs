//! Vectors that are late, or of no use any more.

use std::{sync::atomic::Ordering, time::Duration};

use sqlx::Connection;
use toolrack_documents::{DocumentFilter, Forgotten, TextRole};

use crate::{
    embedding::{Store, WordCounts, embed, first},
    place::Place,
};

#[tokio::test]
async fn p6_a_model_that_has_to_be_loaded_is_there_for_the_next_question() {
    let store = Store::with_examples(Place::file()).await;
    store.asked();
    store.embedder.state.is_unloaded.store(true, Ordering::Relaxed);
    assert_eq!(first(&store.documents, "car repaired").await, None);
    // It is asked once at a time, however many questions there are.
    assert_eq!(first(&store.documents, "car repaired").await, None);
    assert_eq!(store.asked(), [(1, TextRole::Query)]);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(first(&store.documents, "car repaired").await.as_deref(), Some("one.md"));
}

#[tokio::test]
async fn p6_a_model_of_another_length_is_noticed_by_the_first_question() {
    for place in Place::all("p6_a_model_of_another_length_is_noticed_by_the_first_question") {
        let store = Store::with_examples(place).await;
        let longer = store.again(&WordCounts { dimensions: 48, ..store.embedder.clone() });
        assert_eq!(embed(&longer).await.passages, 0, "all have vectors");
        assert_eq!(first(&longer, "car repaired").await, None);
        assert_eq!(embed(&longer).await.passages, 3);
        assert_eq!(first(&longer, "car repaired").await.as_deref(), Some("one.md"));
    }
}

#[tokio::test]
async fn p6_vectors_are_made_again_where_somebody_asks_for_it() {
    for place in Place::all("p6_vectors_are_made_again_where_somebody_asks_for_it") {
        let store = Store::with_examples(place).await;
        let forget = async |which, below: Option<&str>| {
            let filter = DocumentFilter { below: below.map(str::to_owned), ..DocumentFilter::default() };
            store.documents.forget_vectors("counts", which, &filter).await.unwrap()
        };
        let unread = store.documents.without_vectors("other", 9).await.unwrap();
        store.documents.keep_vectors("counts", vec![(unread[0].id, vec![0.0])]).await.unwrap();
        assert_eq!(forget(Forgotten::Refused, None).await, 1);
        assert_eq!(forget(Forgotten::Refused, None).await, 0);
        assert_eq!(embed(&store.documents).await.passages, 1);
        assert_eq!(forget(Forgotten::OtherThan(64), None).await, 0);
        assert_eq!(forget(Forgotten::All, Some("tea.md")).await, 1);
        assert_eq!(embed(&store.documents).await.passages, 1);
        assert_eq!(forget(Forgotten::All, None).await, 3);
        assert_eq!(
            store.documents.forget_vectors("x", Forgotten::All, &DocumentFilter::default()).await,
            Ok(0)
        );
        assert_eq!(embed(&store.documents).await.passages, 3);
    }
}

#[tokio::test]
async fn p6_a_work_is_one_servers_at_a_time() {
    for place in Place::all("p6_a_work_is_one_servers_at_a_time") {
        let (one, two) = (place.open(), place.open());
        assert!(one.claim("vectors", "one", 600).await.unwrap());
        assert!(one.claim("vectors", "one", 600).await.unwrap());
        assert!(!two.claim("vectors", "two", 600).await.unwrap());
        assert!(two.claim("names", "two", 600).await.unwrap());
        assert!(two.for_tenant("acme").claim("vectors", "two", 600).await.unwrap());
        two.release("vectors", "two").await.unwrap();
        assert!(!two.claim("vectors", "two", 600).await.unwrap(), "it is not its to give");
        one.release("vectors", "one").await.unwrap();
        // Of one that is gone nobody waits for long.
        assert!(two.claim("vectors", "two", 0).await.unwrap());
        tokio::time::sleep(Duration::from_millis(2100)).await;
        assert!(one.claim("vectors", "one", 600).await.unwrap());
    }
}

/// Whatever keeps a database from comparing: the words are there in time, and its connections are free again.
#[tokio::test]
async fn p6_vectors_that_are_not_compared_in_time_leave_the_words() {
    for place in Place::all("p6_vectors_that_are_not_compared_in_time_leave_the_words") {
        let Place::Postgres(url) = &place else { continue };
        let mut other = sqlx::PgConnection::connect(url).await.unwrap();
        let store = Store::with_examples(place).await;
        sqlx::raw_sql("BEGIN; LOCK TABLE document_embedding IN ACCESS EXCLUSIVE MODE")
            .execute(&mut other)
            .await
            .unwrap();
        let began = std::time::Instant::now();
        let questions = (0..4).map(|_| first(&store.documents, "steeped tea"));
        let found = futures_util::future::join_all(questions).await;
        assert!(found.iter().all(|found| found.as_deref() == Some("tea.md")), "{found:?}");
        assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&mut other).await.unwrap();
        assert_eq!(waiting, 0);
    }
}
