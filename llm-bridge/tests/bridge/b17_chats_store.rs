//! Chats whose store fails, or takes its time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use registry_core::{BoxFuture, store::StoreError};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, Semaphore},
    time::timeout,
};

use crate::{
    b17_chats::{get, message, new_chat, post, send, settled, text, turn},
    support::{Act, Chats, Rack, Reply, Setup, text_event, within},
};

/// Half as long as a turn waits for its store.
const SOON: Duration = Duration::from_secs(5);

/// A server before such a store of chats.
async fn start(
    replies: impl IntoIterator<Item = Reply>,
    before: impl Fn(&'static str) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync + 'static,
) -> Rack {
    Setup::new().with(|setup| setup.chats = Chats::new(before)).start(replies).await
}

#[tokio::test]
async fn b17_a_turn_that_has_begun_goes_on_where_its_chat_cannot_be_named() {
    let fails = |method| {
        let fails = Err(StoreError::unavailable("the disk is full"));
        Box::pin(std::future::ready(if method == "change_chat" { fails } else { Ok(()) })) as BoxFuture<_>
    };
    let rack = start([Reply::text("Five."), Reply::text("Sums")], fails).await;
    let chat = post(&rack, "/api/chats", json!({"settings": {"model": "m"}})).await;
    let chat = format!("/api/chats/{}", chat["id"].as_str().unwrap());
    let begun = turn(&rack, &chat, json!({"content": "2 + 3?"})).await;
    let whole = settled(&rack, &chat).await;
    assert_eq!(
        (text(&message(&whole, &begun["answer"]["id"])), &whole["title"]),
        ("Five.".to_owned(), &json!(""))
    );
}

#[tokio::test]
async fn b17_a_turn_that_cannot_begin_says_why_also_where_its_claim_stays() {
    let fails = |method| {
        let fails = match method {
            "add_chat_messages" => Err(StoreError::conflict("others write")),
            "end_chat_turn" => Err(StoreError::unavailable("the disk is gone")),
            _ => Ok(()),
        };
        Box::pin(std::future::ready(fails)) as BoxFuture<_>
    };
    let rack = start([], fails).await;
    let chat = new_chat(&rack).await;
    let body = json!({"content": "2 + 3?"});
    let (status, refused) = send(&rack, Method::POST, &format!("{chat}/turn"), Some(body)).await;
    assert_eq!((status, &refused["error"]["type"]), (StatusCode::CONFLICT, &json!("store_conflict")));
}

#[tokio::test]
async fn b17_b7_a_turn_goes_on_and_is_stopped_while_its_store_does_not_answer() {
    for stalled in ["hold_chat_turn", "put_chat_message"] {
        let (asked, go_on, stall) =
            (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
        let (is_asked, ends) = (Arc::clone(&asked), Arc::clone(&stall));
        let before = move |method| -> BoxFuture<'static, _> {
            let (is_asked, ends) = (Arc::clone(&is_asked), Arc::clone(&ends));
            Box::pin(async move {
                if method == stalled {
                    is_asked.notify_one();
                    let _ = ends.acquire().await;
                }
                Ok(())
            })
        };
        let never = Act::Wait(Arc::default());
        let acts = [text_event("One"), Act::Wait(Arc::clone(&go_on)), text_event(" and two"), never];
        let rack = start([Reply::stream(acts.to_vec())], before).await;
        let chat = new_chat(&rack).await;
        let begun = turn(&rack, &chat, json!({"content": "Count."})).await;
        let answer = async || message(&get(&rack, &chat).await, &begun["answer"]["id"]);
        within(asked.notified()).await;
        go_on.notify_one();
        timeout(SOON, async { while text(&answer().await) != "One and two" {} }).await.expect(stalled);
        if stalled == "put_chat_message" {
            // What has been said has to be kept before the turn is over.
            stall.close();
        }
        let stop = format!("{chat}/stop");
        timeout(SOON, post(&rack, &stop, Value::Null)).await.expect(stalled);
        assert_eq!(answer().await["status"], "stopped");
    }
}

#[tokio::test]
async fn b17_an_answer_that_has_ended_is_kept_when_its_store_is_back() {
    let began = Instant::now();
    // As long as a database takes to start again.
    let is_away = move |method| -> BoxFuture<'static, _> {
        let away = method == "put_chat_message" && began.elapsed() < SOON + SOON / 2;
        let answer = if away { Err(StoreError::unavailable("connection refused")) } else { Ok(()) };
        Box::pin(std::future::ready(answer))
    };
    let rack = start([Reply::text("Five."), Reply::text("Sums")], is_away).await;
    let chat = new_chat(&rack).await;
    let begun = turn(&rack, &chat, json!({"content": "2 + 3?"})).await;
    let answer = message(&settled(&rack, &chat).await, &begun["answer"]["id"]);
    assert_eq!((text(&answer), &answer["status"]), ("Five.".to_owned(), &json!("done")));
}

#[tokio::test]
async fn a39_a_search_has_the_place_of_its_user_until_it_ends_also_where_its_client_is_gone() {
    let (asked, ends) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (is_asked, goes_on) = (Arc::clone(&asked), Arc::clone(&ends));
    let before = move |method| -> BoxFuture<'static, _> {
        let (is_asked, goes_on) = (Arc::clone(&is_asked), Arc::clone(&goes_on));
        Box::pin(async move {
            if method == "chats" {
                is_asked.add_permits(1);
                let _ = goes_on.acquire().await;
            }
            Ok(())
        })
    };
    let rack = Arc::new(start([], before).await);
    let search = || {
        let rack = Arc::clone(&rack);
        tokio::spawn(async move { send(&rack, Method::GET, "/api/chats?search=tea", None).await.0 })
    };
    let gone = search();
    within(asked.acquire()).await.unwrap().forget();
    gone.abort();
    let next = search();
    let another = timeout(Duration::from_millis(500), asked.acquire()).await;
    assert!(another.is_err(), "two searches of one user are made at once");
    ends.close();
    assert_eq!(within(next).await.unwrap(), StatusCode::OK);
    within(asked.acquire()).await.unwrap().forget();
}
