//! What is read from the store for requests: row A41.

use std::sync::Arc;

use registry_core::{
    BoxFuture, Caller, File, Permission, ToolPolicy, ToolResult,
    store::{ConversationLimits, ConversationStore, MemoryStore, StoredResponse},
};
use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    time::{Duration, timeout},
};

use crate::support::{Answer, Chats, Rack, Reply, Setup, Slow, user, within};

const MIB: usize = 1 << 20;

fn caller() -> Caller {
    Caller::new("ada", Permission::User)
}

async fn post(rack: &Rack, path: &str, body: Value) -> Value {
    let answer = within(rack.client.post(rack.url(path)).json(&body).send()).await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    within(answer.json()).await.unwrap()
}

/// A new chat with this message: its path, and the turn that has begun.
async fn chat(rack: &Rack, content: Value) -> (String, Value) {
    let chat = post(rack, "/api/chats", json!({"title": "Cat", "settings": {"model": "m"}})).await;
    let path = format!("/api/chats/{}", chat["id"].as_str().unwrap());
    let begun = post(rack, &format!("{path}/turn"), json!({"content": content})).await;
    (path, begun)
}

/// The path of a picture of so many bytes in a chat.
async fn picture(rack: &Rack, bytes: usize) -> String {
    let url = format!("data:image/png;base64,{}", "A".repeat(bytes / 3 * 4));
    let picture = json!([{"type": "image_url", "image_url": {"url": url}}]);
    let (_, begun) = chat(rack, picture).await;
    format!("/{}", begun["message"]["parts"][0]["path"].as_str().unwrap())
}

/// Has so many clients ask and read nothing; the next one is refused.
async fn is_counted(rack: &Rack, path: &str, most: usize) {
    let mut slow = Vec::new();
    let mut next = async || {
        let mut one = Slow::get(rack.address, path).await;
        let status = one.take(12).await;
        slow.push(one);
        status
    };
    let mut answered = 0;
    within(async {
        while answered < most {
            match next().await.as_str() {
                "HTTP/1.1 200" => answered += 1,
                // It is not yet known that those before are gone.
                "HTTP/1.1 503" => tokio::time::sleep(Duration::from_millis(20)).await,
                other => panic!("{path}: {other}"),
            }
        }
    })
    .await;
    assert_eq!(next().await, "HTTP/1.1 503", "{path}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a41_what_clients_ask_for_and_do_not_read_is_counted() {
    let setup = Setup::bare().with(|setup| setup.caller = caller());
    let setup = setup.plain_tool("save", ToolPolicy::new(), |_| async {
        Ok(ToolResult::new("saved").with_content(File::new("large.bin", vec![7; 15 * MIB])))
    });
    let store = setup.store.clone();
    let replies: Vec<Reply> = vec![
        Answer::new().call("c", "save", &json!({})).into(),
        Reply::text("There."),
        Reply::text("A cat."),
        Reply::text("Long."),
    ];
    let rack = setup.start(replies).await;
    let asked = json!({"model": "m", "messages": [user("Go.")]});
    let saved = post(&rack, "/v1/chat/completions", asked).await;
    let text = saved["choices"][0]["message"]["content"].as_str().unwrap();
    let file = text.split_once("/api/files/").unwrap().1.split([')', ' ']).next().unwrap().to_owned();
    let stored = StoredResponse {
        id: "resp_0123456789abcdef0123456789abcdef".into(),
        tenant: "default".into(),
        user: "ada".into(),
        previous: None,
        model: "m".into(),
        messages: "[]".into(),
        given: format!("\"{}\"", "a".repeat(60 * MIB)).into(),
        created_at: jiff::Timestamp::now(),
    };
    let (response, now) = (format!("/v1/responses/{}", stored.id), stored.created_at);
    store.keep_response(stored, now, &ConversationLimits::default()).await.unwrap();
    let picture = picture(&rack, 15 * MIB).await;
    let (long, _) = chat(&rack, Value::from("a".repeat(15 * MIB))).await;
    // 256 MiB are the most that one user has under way.
    is_counted(&rack, &format!("/api/files/{file}"), 17).await;
    is_counted(&rack, &response, 4).await;
    is_counted(&rack, &picture, 4).await;
    is_counted(&rack, &format!("{long}/export?format=json"), 4).await;
}

#[tokio::test]
async fn a41_a_user_reads_one_thing_at_once_also_where_the_client_is_gone() {
    let (asked, ends) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (is_asked, goes_on) = (Arc::clone(&asked), Arc::clone(&ends));
    let before = move |method| -> BoxFuture<'static, _> {
        let (is_asked, goes_on) = (Arc::clone(&is_asked), Arc::clone(&goes_on));
        Box::pin(async move {
            if method == "chat_message" {
                is_asked.add_permits(1);
                let _ = goes_on.acquire().await;
            }
            Ok(())
        })
    };
    let store = Arc::new(MemoryStore::default());
    let chats = Chats::new(before);
    let setup = Setup::bare().with(|setup| {
        setup.caller = caller();
        setup.store = store;
        setup.chats = chats;
    });
    let rack = setup.start([Reply::text("A cat.")]).await;
    let picture = rack.url(&picture(&rack, 3).await);
    let gone = tokio::spawn(rack.client.get(&picture).send());
    within(asked.acquire()).await.unwrap().forget();
    gone.abort();
    let next = tokio::spawn(rack.client.get(&picture).send());
    let another = timeout(Duration::from_millis(500), asked.acquire()).await;
    assert!(another.is_err(), "two are read at once");
    ends.close();
    assert_eq!(within(next).await.unwrap().unwrap().status(), 200);
}
