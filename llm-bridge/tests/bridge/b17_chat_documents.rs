//! Documents that the tools of one chat find, and nobody else: requirement B17.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use llm_bridge::{
    server::{ServerSettings, UploadLimits, router},
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};
use registry_core::{
    Caller, Conversation, Permission, Registry,
    store::{ApiKey, MemoryStore, Store, User},
};
use reqwest::{Client, Method, StatusCode, header};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use toolrack_documents::{DocumentFilter, Documents};

use crate::support::Chats;

const TEA: &str = "# Tea\n\nGreen tea is steeped at 75 degrees.\n";

/// A server with documents and chats, and users who have keys.
struct Rack {
    base: String,
    client: Client,
    documents: Documents,
    registry: Registry,
    store: Arc<MemoryStore>,
    _folder: TempDir,
}

impl Rack {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let documents = Documents::in_file(folder.path().join("documents.db"));
        let store = Arc::new(MemoryStore::default());
        let settings = ServerSettings {
            documents: Some(documents.clone()),
            upload_limits: UploadLimits::new(Some(2), None),
            chats: Some(Chats::in_memory()),
            grace: Duration::from_secs(1),
            ..ServerSettings::new(Caller::new("local", Permission::User), store.clone())
        };
        let registry = Registry::builder().without_compiled().build().unwrap();
        let backend = Backend::new(registry.clone(), Upstream::demo(), ChatSettings::default());
        let app = router(backend, settings, CancellationToken::new()).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let client = toolrack_http::build_client(|| Client::builder().no_proxy()).unwrap();
        Self { base, client, documents, registry, store, _folder: folder }
    }

    async fn key(&self, user: &str, level: Permission) -> String {
        let now = Timestamp::now();
        let known = User { id: user.into(), level, personas: Vec::new(), created_at: now };
        self.store.put_user("default", known).await.unwrap();
        let (key, secret) = ApiKey::generate("default", user, false, now).unwrap();
        self.store.put_key(key).await.unwrap();
        secret
    }

    async fn send(&self, key: &str, method: Method, path: &str, body: Option<&str>) -> (StatusCode, Value) {
        let request = self.client.request(method, format!("{}{path}", self.base)).bearer_auth(key);
        let request = match body {
            Some(body) => {
                request.header(header::CONTENT_TYPE, "application/octet-stream").body(body.to_owned())
            }
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    async fn new_chat(&self, key: &str) -> String {
        let request = self.client.post(format!("{}/api/chats", self.base)).bearer_auth(key);
        let chat: Value = request.json(&json!({"title": "Tea"})).send().await.unwrap().json().await.unwrap();
        format!("/api/chats/{}", chat["id"].as_str().unwrap())
    }

    async fn add(&self, key: &str, chat: &str, name: &str) -> (StatusCode, Value) {
        self.send(key, Method::POST, &format!("{chat}/documents?name={name}"), Some(TEA)).await
    }

    async fn listed(&self, key: &str, chat: &str) -> Vec<String> {
        let (status, list) = self.send(key, Method::GET, &format!("{chat}/documents"), None).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        let names = list["documents"].as_array().unwrap().iter();
        names.map(|document| document["name"].as_str().unwrap().to_owned()).collect()
    }

    /// What the tools of a user find in a chat; nothing where they are off there.
    async fn found(&self, user: &str, chat: &str) -> Vec<String> {
        let chat_id = chat.strip_prefix("/api/chats/").map(str::to_owned);
        let context = self
            .registry
            .context(Caller::new(user, Permission::User))
            .with_conversation(Conversation { chat_id, ..Conversation::default() });
        let Ok(documents) = self.documents.for_request(&context) else { return Vec::new() };
        let found = documents.search_for(&context, "tea", 10, &DocumentFilter::default()).await.unwrap();
        found.into_iter().map(|passage| passage.path).collect()
    }
}

#[tokio::test]
async fn b17_a_document_is_added_to_a_chat_for_its_tools_alone_and_deleted_with_it() {
    let rack = Rack::start().await;
    let (ada, bob) = (rack.key("ada", Permission::User).await, rack.key("bob", Permission::User).await);
    let (one, two) = (rack.new_chat(&ada).await, rack.new_chat(&ada).await);
    let (status, added) = rack.add(&ada, &one, "tea.md").await;
    assert_eq!((status, added), (StatusCode::OK, json!({"name": "tea.md", "outcome": "new", "passages": 1})));
    assert_eq!(rack.listed(&ada, &one).await, ["tea.md"]);
    assert_eq!(rack.found("ada", &one).await, ["this chat/tea.md"]);
    // Not in another chat, for nobody else, and not among the shared ones.
    assert!(rack.listed(&ada, &two).await.is_empty() && rack.found("ada", &two).await.is_empty());
    assert!(rack.found("bob", &one).await.is_empty());
    for (method, path) in [
        (Method::GET, format!("{one}/documents")),
        (Method::POST, format!("{one}/documents?name=a.md")),
        (Method::DELETE, format!("{one}/documents?name=tea.md")),
    ] {
        let body = (method == Method::POST).then_some(TEA);
        let (status, said) = rack.send(&bob, method, &path, body).await;
        assert_eq!(
            (status, &said["error"]["type"]),
            (StatusCode::NOT_FOUND, &json!("chat_not_found")),
            "{path}"
        );
    }
    let (_, shared) = rack.send(&ada, Method::GET, "/api/documents", None).await;
    assert_eq!(shared["total"], 0);
    // What is no name, or of no kind that can be read.
    for (name, refusal) in [
        ("..%2Ftwo%2Ftea.md", StatusCode::BAD_REQUEST),
        ("tea.exe", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("", StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(rack.add(&ada, &one, name).await.0, refusal, "{name}");
    }
    // All chats of a user share a limit.
    assert_eq!(rack.add(&ada, &two, "more.md").await.0, StatusCode::OK);
    let (status, said) = rack.add(&ada, &two, "most.md").await;
    assert_eq!((status, &said["error"]["type"]), (StatusCode::CONFLICT, &json!("too_many_documents")));
    let gone = format!("{two}/documents?name=more.md");
    assert_eq!(rack.send(&ada, Method::DELETE, &gone, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(rack.send(&ada, Method::DELETE, &gone, None).await.0, StatusCode::NOT_FOUND);
    assert!(rack.found("ada", &two).await.is_empty());
    // With the chat they are gone.
    assert_eq!(rack.send(&ada, Method::DELETE, &one, None).await.0, StatusCode::NO_CONTENT);
    assert!(rack.found("ada", &one).await.is_empty());
    assert_eq!(
        rack.send(&ada, Method::GET, &format!("{one}/documents"), None).await.0,
        StatusCode::NOT_FOUND
    );
    let all = rack.documents.of_chat(("default", "ada"), "any").unwrap();
    assert!(all.all().list(&DocumentFilter::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn b17_documents_of_chats_go_with_a_user_who_is_removed() {
    let rack = Rack::start().await;
    let (ada, root) = (rack.key("ada", Permission::User).await, rack.key("root", Permission::Admin).await);
    let (hers, theirs) = (rack.new_chat(&ada).await, rack.new_chat(&root).await);
    for (key, chat) in [(&ada, &hers), (&root, &theirs)] {
        assert_eq!(rack.add(key, chat, "tea.md").await.0, StatusCode::OK);
    }
    assert_eq!(rack.send(&root, Method::DELETE, "/api/users/ada", None).await.0, StatusCode::NO_CONTENT);
    assert!(rack.found("ada", &hers).await.is_empty());
    let all = rack.documents.of_chat(("default", "ada"), "any").unwrap();
    let left = all.all().list(&DocumentFilter::default()).await.unwrap();
    assert_eq!(left.len(), 1);
    assert!(left[0].path.starts_with("root/"), "{left:?}");
}
