//! Chats whose store fails, or takes its time.

use std::sync::Arc;

use registry_core::{
    BoxFuture,
    store::{MemoryStore, StoreError},
};
use serde_json::json;

use crate::{
    b17_chats::{get, message, post, settled, text, turn},
    support::{Chats, Rack, Reply, Setup, within},
};

/// A server before such a store of chats.
async fn start(
    replies: impl IntoIterator<Item = Reply>,
    before: impl Fn(&'static str) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync + 'static,
) -> Rack {
    let store = Arc::new(MemoryStore::default());
    let chats = Chats::new(store.clone(), before);
    let setup = Setup::new().with(|setup| (setup.store, setup.chats) = (store, Some(chats)));
    setup.start(replies).await
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
