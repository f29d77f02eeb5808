//! Documents over HTTP: who lists, adds and removes them, and what is refused.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use llm_bridge::{
    server::{ServerSettings, Upload, router},
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};
use registry_core::{
    Caller, Permission, Registry,
    guard::audit::{MemoryAudit, Phase},
    store::{ApiKey, MemoryStore, Store, User},
};
use reqwest::{Body, Client, RequestBuilder, Response, StatusCode, header};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;
use toolrack_documents::{DocumentFilter, DocumentKind, Documents, read};

const BYTES: &str = "application/octet-stream";
const TEA: &str = "# Tea\n\n## Green\n\nGreen tea is steeped at 75 degrees.\n";

/// A server with documents, and users who have keys.
struct Rack {
    base: String,
    client: Client,
    documents: Documents,
    store: Arc<MemoryStore>,
    audit: Arc<MemoryAudit>,
    _folder: TempDir,
}

impl Rack {
    async fn start(upload: Upload) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let documents = Documents::in_file(folder.path().join("documents.db"));
        let store = Arc::new(MemoryStore::default());
        let settings = ServerSettings {
            documents: Some(documents.clone()),
            upload,
            grace: Duration::from_secs(1),
            ..ServerSettings::new(Caller::new("local", Permission::User), store.clone())
        };
        let audit = Arc::new(MemoryAudit::new(100));
        let registry = Registry::builder().without_compiled().audit(audit.clone()).build().unwrap();
        let backend = Backend::new(registry, Upstream::demo(), ChatSettings::default());
        let app = router(backend, settings, CancellationToken::new()).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let client = toolrack_http::build_client(|| Client::builder().no_proxy()).unwrap();
        Self { base, client, documents, store, audit, _folder: folder }
    }

    async fn key(&self, user: &str, level: Permission) -> String {
        self.key_in("default", user, level).await
    }

    async fn key_in(&self, tenant: &str, user: &str, level: Permission) -> String {
        let now = Timestamp::now();
        let known = User { id: user.into(), level, personas: Vec::new(), created_at: now };
        self.store.put_user(tenant, known).await.unwrap();
        let (key, secret) = ApiKey::generate(tenant, user, false, now).unwrap();
        self.store.put_key(key).await.unwrap();
        secret
    }

    fn url(&self, parameters: &[(&str, &str)]) -> String {
        let base = format!("{}/api/documents", self.base);
        reqwest::Url::parse_with_params(&base, parameters).unwrap().into()
    }

    /// A file that is sent as the user with this key, or as the one of the configuration.
    fn post(&self, key: &str, name: &str, body: impl Into<Body>) -> RequestBuilder {
        self.client
            .post(self.url(&[("name", name)]))
            .bearer_auth(key)
            .header(header::CONTENT_TYPE, BYTES)
            .body(body)
    }

    async fn add(&self, key: &str, name: &str, text: &str) -> Value {
        let answer = self.post(key, name, text.to_owned()).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{name}");
        answer.json().await.unwrap()
    }

    async fn list(&self, key: &str, parameters: &[(&str, &str)]) -> Response {
        self.client.get(self.url(parameters)).bearer_auth(key).send().await.unwrap()
    }

    async fn remove(&self, key: &str, path: &str) -> Response {
        self.client.delete(self.url(&[("path", path)])).bearer_auth(key).send().await.unwrap()
    }

    /// The paths of all documents.
    async fn kept(&self) -> Vec<String> {
        let documents = self.documents.list(&DocumentFilter::default()).await.unwrap();
        documents.into_iter().map(|document| document.path).collect()
    }
}

/// Expects an error of this status and kind; its message.
async fn refused(answer: Response, status: StatusCode, kind: &str) -> String {
    let got = answer.status();
    let body: Value = answer.json().await.unwrap();
    assert_eq!((got, body["error"]["type"].as_str().unwrap()), (status, kind), "{body}");
    body["error"]["message"].as_str().unwrap().to_owned()
}

const LOCAL: &str = "none";

#[tokio::test]
async fn p6_a_file_that_is_sent_is_found_listed_updated_and_removed() {
    let rack = Rack::start(Upload::User).await;
    let path = "uploads/local/drinks/tea.md";
    for name in ["README", "tea.json"] {
        rack.add(LOCAL, name, "{\"wine\": 1}").await;
        rack.remove(LOCAL, &format!("uploads/local/{name}")).await;
    }
    for (text, outcome) in [(TEA, "new"), (TEA, "unchanged"), ("# Tea\n\nCold.\n", "updated")] {
        let reported = rack.add(LOCAL, "drinks/tea.md", text).await;
        assert_eq!(reported, json!({"path": path, "outcome": outcome, "passages": 1}));
        let passages = rack.documents.search("tea", 3, &DocumentFilter::default()).await.unwrap();
        assert_eq!((passages.len(), &*passages[0].path), (1, path));
    }
    rack.add(LOCAL, "prices.csv", "drink,price\ntea,2\n").await;
    let other = read::document("/srv/a.txt", DocumentKind::Text, b"Water.", None).unwrap();
    rack.documents.add(other).await.unwrap();

    let list: Value = rack.list(LOCAL, &[]).await.json().await.unwrap();
    let paths: Vec<&str> = list["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|document| document["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, [path, "uploads/local/prices.csv", "/srv/a.txt"], "one's own come first");
    let tea = &list["documents"][0];
    assert_eq!(
        (&tea["title"], &tea["kind"], &tea["bytes"], &tea["passages"], &tea["removable"]),
        (&json!("Tea"), &json!("markdown"), &json!(13), &json!(1), &json!(true))
    );
    assert_eq!(
        (&list["documents"][2]["removable"], &list["total"], &list["may_add"], &list["max_bytes"]),
        (&json!(false), &json!(3), &json!(true), &json!(50 * 1024 * 1024))
    );
    assert!(list["extensions"].as_array().unwrap().contains(&json!("pdf")));
    let below: Value = rack.list(LOCAL, &[("below", "uploads/local/drinks")]).await.json().await.unwrap();
    assert_eq!((&below["total"], &below["documents"][0]["path"]), (&json!(1), &json!(path)));

    let removed: Value = rack.remove(LOCAL, path).await.json().await.unwrap();
    assert_eq!(removed, json!({"removed": [path]}));
    refused(rack.remove(LOCAL, path).await, StatusCode::NOT_FOUND, "document_not_found").await;
    assert_eq!(rack.kept().await, ["/srv/a.txt", "uploads/local/prices.csv"]);
    let removed: Value = rack.remove(LOCAL, "uploads/local").await.json().await.unwrap();
    assert_eq!(removed, json!({"removed": ["uploads/local/prices.csv"]}), "a folder with all in it");
}

#[tokio::test]
async fn p6_a_file_keeps_the_time_when_it_was_changed() {
    let rack = Rack::start(Upload::User).await;
    let url = rack.url(&[("name", "a.txt"), ("modified", "2026-01-31T08:00:00Z")]);
    let send = |url: String| rack.client.post(url).header(header::CONTENT_TYPE, BYTES).body("Water.").send();
    assert_eq!(send(url).await.unwrap().status(), StatusCode::OK);
    let list: Value = rack.list(LOCAL, &[]).await.json().await.unwrap();
    assert_eq!(list["documents"][0]["modified"], "2026-01-31T08:00:00Z");
    let url = rack.url(&[("name", "a.txt"), ("modified", "yesterday")]);
    let message = refused(send(url).await.unwrap(), StatusCode::BAD_REQUEST, "invalid_request_error").await;
    assert!(message.contains("2026-01-31T08:00:00Z"), "{message}");
}

#[tokio::test]
async fn p6_users_have_their_own_uploads_guests_none_and_admins_all() {
    let rack = Rack::start(Upload::User).await;
    let ada = rack.key("ada", Permission::User).await;
    let bob = rack.key("bob", Permission::User).await;
    let folder = rack.key("ada/notes", Permission::User).await;
    let guest = rack.key("gil", Permission::Guest).await;
    let root = rack.key("root", Permission::Admin).await;
    rack.add(&ada, "notes/tea.md", TEA).await;
    rack.add(&bob, "tea.md", TEA).await;
    assert_eq!(rack.add(&folder, "tea.md", TEA).await["path"], "uploads/ada%2Fnotes/tea.md");

    let message = refused(rack.list(&guest, &[]).await, StatusCode::FORBIDDEN, "permission_denied").await;
    assert!(message.contains("gil has guest"), "{message}");
    let sent = rack.post(&guest, "tea.md", TEA).send().await.unwrap();
    refused(sent, StatusCode::FORBIDDEN, "permission_denied").await;
    let own = rack.remove(&guest, "uploads/gil").await;
    refused(own, StatusCode::FORBIDDEN, "permission_denied").await;

    for path in [
        "uploads/ada/notes/tea.md",
        "uploads",
        "uploads/ada/../bob/tea.md",
        "/",
        "uploads/ada%2Fnotes/tea.md",
    ] {
        let message =
            refused(rack.remove(&bob, path).await, StatusCode::FORBIDDEN, "permission_denied").await;
        assert!(message.contains("bob has not added"), "{message}");
    }
    let stays = rack.remove(&folder, "uploads/ada/notes/tea.md").await;
    refused(stays, StatusCode::FORBIDDEN, "permission_denied").await;
    assert_eq!(rack.kept().await.len(), 3, "nothing is gone");
    let list: Value = rack.list(&bob, &[]).await.json().await.unwrap();
    let removable: Vec<&Value> =
        list["documents"].as_array().unwrap().iter().map(|document| &document["removable"]).collect();
    assert_eq!(removable, [true, false, false]);
    for path in ["uploads/ada/notes/tea.md", "uploads/bob"] {
        assert_eq!(rack.remove(&root, path).await.status(), StatusCode::OK, "{path}");
    }
    assert_eq!(rack.kept().await, ["uploads/ada%2Fnotes/tea.md"]);
}

#[tokio::test]
async fn u29_who_has_added_or_removed_a_document_for_all_is_in_the_audit() {
    let rack = Rack::start(Upload::User).await;
    let root = rack.key("root", Permission::Admin).await;
    let bob = rack.key("bob", Permission::User).await;
    rack.add(&bob, "tea.md", TEA).await;
    refused(rack.remove(&root, "uploads/eve").await, StatusCode::NOT_FOUND, "document_not_found").await;
    assert_eq!(rack.remove(&root, "uploads/bob").await.status(), StatusCode::OK);
    // Who may not leaves none.
    refused(rack.remove(&bob, "uploads/eve/a.md").await, StatusCode::FORBIDDEN, "permission_denied").await;
    let seen: Vec<_> = rack
        .audit
        .records()
        .into_iter()
        .map(|record| (record.phase, record.user, record.tool, record.arguments, record.success))
        .collect();
    let pair = |user: &str, command: &str, path: &str, success| {
        [(Phase::Intent, None), (Phase::Outcome, Some(success))].map(|(phase, success)| {
            let arguments = Some(json!({"paths": [path]}));
            (phase, user.to_owned(), format!("toolrack documents {command}"), arguments, success)
        })
    };
    let expected = [
        pair("bob", "add", "uploads/bob/tea.md", true),
        pair("root", "remove", "uploads/eve", false),
        pair("root", "remove", "uploads/bob", true),
    ];
    assert_eq!(seen, expected.concat());
}

#[tokio::test]
async fn p6_a_tenant_sees_and_removes_nothing_of_anothers() {
    let rack = Rack::start(Upload::User).await;
    rack.add(LOCAL, "tea.md", TEA).await;
    let theirs = rack.key_in("acme", "local", Permission::Owner).await;
    let list: Value = rack.list(&theirs, &[]).await.json().await.unwrap();
    assert_eq!((&list["documents"], &list["total"]), (&json!([]), &json!(0)));
    let removed = rack.remove(&theirs, "uploads/local/tea.md").await;
    refused(removed, StatusCode::NOT_FOUND, "document_not_found").await;
    rack.post(&theirs, "tea.md", "# Other").send().await.unwrap();
    let passages = rack.documents.search("other", 3, &DocumentFilter::default()).await.unwrap();
    assert_eq!((passages.len(), rack.kept().await), (0, vec!["uploads/local/tea.md".to_owned()]));
}

#[tokio::test]
async fn p6_who_may_add_is_set() {
    let rack = Rack::start(Upload::Admin).await;
    let root = rack.key("root", Permission::Admin).await;
    let list: Value = rack.list(LOCAL, &[]).await.json().await.unwrap();
    assert_eq!(list["may_add"], false);
    let sent = rack.post(LOCAL, "tea.md", TEA).send().await.unwrap();
    let message = refused(sent, StatusCode::FORBIDDEN, "permission_denied").await;
    assert!(message.contains("level admin, local has user"), "{message}");
    rack.add(&root, "tea.md", TEA).await;

    let rack = Rack::start(Upload::Off).await;
    let root = rack.key("root", Permission::Admin).await;
    let sent = rack.post(&root, "tea.md", TEA).send().await.unwrap();
    let message = refused(sent, StatusCode::FORBIDDEN, "permission_denied").await;
    assert!(message.contains("`upload` under [documents]"), "{message}");
    assert_eq!(rack.kept().await, Vec::<String>::new());
}

#[tokio::test]
async fn p6_names_that_are_no_good_are_refused() {
    let rack = Rack::start(Upload::User).await;
    let long = format!("{}.md", "x".repeat(1025));
    for name in [
        "",
        "../bob/tea.md",
        "a/../../tea.md",
        "..",
        "/etc/tea.md",
        "a//tea.md",
        "a\\tea.md",
        "a\ntea.md",
        "\u{0}.md",
        &long,
    ] {
        let sent = rack.post(LOCAL, name, TEA).send().await.unwrap();
        refused(sent, StatusCode::BAD_REQUEST, "invalid_request_error").await;
    }
    for parameters in [&[][..], &[("name", "a.md"), ("name", "b.md")], &[("name", "a.md"), ("folder", "b")]] {
        let sent = rack.client.post(rack.url(parameters)).header(header::CONTENT_TYPE, BYTES).body(TEA);
        refused(sent.send().await.unwrap(), StatusCode::BAD_REQUEST, "invalid_request_error").await;
    }
    for parameters in [&[("folder", "a")][..], &[("below", "a"), ("below", "b")]] {
        refused(rack.list(LOCAL, parameters).await, StatusCode::BAD_REQUEST, "invalid_request_error").await;
    }
    refused(rack.remove(LOCAL, "").await, StatusCode::BAD_REQUEST, "invalid_request_error").await;
    assert_eq!(rack.kept().await, Vec::<String>::new());
}

#[tokio::test]
async fn p6_files_that_cannot_be_read_are_refused_with_the_reason() {
    let rack = Rack::start(Upload::User).await;
    for name in ["cat.png", "tea.zip", "tea.md.exe", "tea.doc"] {
        let sent = rack.post(LOCAL, name, TEA).send().await.unwrap();
        let message = refused(sent, StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown_kind").await;
        assert!(message.contains(".md, ") && message.contains(".pdf"), "{message}");
    }
    for kind in
        [None, Some("text/markdown"), Some("application/json"), Some("multipart/form-data; boundary=x")]
    {
        let request = rack.client.post(rack.url(&[("name", "tea.md")])).body(TEA);
        let request =
            kind.into_iter().fold(request, |request, kind| request.header(header::CONTENT_TYPE, kind));
        let answer = request.send().await.unwrap();
        let message = refused(answer, StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error").await;
        assert!(message.contains(BYTES), "{message}");
    }
    for (name, bytes, reason) in [
        ("a.pdf", &b"no pdf"[..], "it is no PDF"),
        ("b.pdf", b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog", "this program reads no PDFs"),
        ("b.docx", b"PK\x03\x04", "or office documents"),
        ("a.md", b"a\0b", "binary data"),
        ("tea", b"gr\xfcn", "binary data"),
        ("b.md", b"", "no text"),
    ] {
        let sent = rack.post(LOCAL, name, bytes.to_vec()).send().await.unwrap();
        let message = refused(sent, StatusCode::UNPROCESSABLE_ENTITY, "unreadable").await;
        assert!(message.contains(reason), "{message}");
    }
    assert_eq!(rack.kept().await, Vec::<String>::new());
}

#[tokio::test]
async fn p6_a_file_that_is_too_large_is_refused_announced_or_not() {
    let rack = Rack::start(Upload::User).await;
    let size = usize::try_from(read::MAX_BYTES).unwrap() + 1;
    let announced = rack.post(LOCAL, "a.txt", vec![b'a'; size]).send().await.unwrap();
    let message = refused(announced, StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error").await;
    assert!(message.contains("50 MiB"), "{message}");
    let pieces = (0..=50).map(|_| Ok::<_, std::io::Error>(vec![b'a'; 1024 * 1024]));
    let streamed = Body::wrap_stream(futures_util::stream::iter(pieces));
    let answer = rack.post(LOCAL, "a.txt", streamed).send().await.unwrap();
    refused(answer, StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error").await;
    assert_eq!(rack.kept().await, Vec::<String>::new());
    // One that is larger than other requests may be is looked into.
    let sent = rack.post(LOCAL, "a.txt", vec![0; 33 * 1024 * 1024]).send().await.unwrap();
    refused(sent, StatusCode::UNPROCESSABLE_ENTITY, "unreadable").await;
}

#[tokio::test]
async fn p6_a_file_that_does_not_come_whole_is_not_kept() {
    let rack = Rack::start(Upload::User).await;
    let address = rack.base.strip_prefix("http://").unwrap();
    let head = |length: &str| {
        format!(
            "POST /api/documents?name=tea.md HTTP/1.1\r\nHost: {address}\r\nContent-Type: {BYTES}\r\n{length}\r\n\r\n{TEA}"
        )
    };
    for request in [
        head("Content-Length: 1000"),
        head("Transfer-Encoding: chunked").replace(TEA, &format!("1000\r\n{TEA}")),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    assert_eq!(rack.kept().await, Vec::<String>::new());
    assert_eq!(rack.add(LOCAL, "tea.md", TEA).await["outcome"], "new");
}

#[tokio::test]
async fn p6_uploads_at_once_of_one_name_leave_one_document() {
    let rack = Rack::start(Upload::User).await;
    let texts: Vec<String> =
        (0..4).map(|number| format!("# Tea {number}\n\nSteeped {number} times.\n")).collect();
    let sent = texts.iter().map(|text| rack.add(LOCAL, "tea.md", text));
    let reported = futures_util::future::join_all(sent).await;
    let outcomes = |wanted: &str| reported.iter().filter(|reported| reported["outcome"] == wanted).count();
    assert_eq!((outcomes("new"), outcomes("updated")), (1, 3), "{reported:?}");
    assert_eq!(rack.kept().await, ["uploads/local/tea.md"]);
    let passages = rack.documents.search("steeped", 5, &DocumentFilter::default()).await.unwrap();
    assert_eq!(passages.len(), 1, "nothing is left of the others");
}

#[tokio::test]
async fn p6_more_files_at_once_than_can_be_held_are_told_to_come_back() {
    let rack = Rack::start(Upload::User).await;
    let (sender, receiver) = tokio::sync::watch::channel(false);
    // Who finds the place taken by the one that is to be turned away comes back.
    let send = |post: reqwest::RequestBuilder| async move {
        loop {
            let mut receiver = receiver.clone();
            let end = async move {
                receiver.wait_for(|go| *go).await.unwrap();
                Ok::<_, std::io::Error>(TEA)
            };
            let body = Body::wrap_stream(futures_util::stream::once(end));
            let answer = post.try_clone().unwrap().body(body).send().await.unwrap();
            if answer.status() != StatusCode::SERVICE_UNAVAILABLE {
                break answer.status();
            }
        }
    };
    // So many of one user; what others send is not held up by it.
    let waiting: Vec<_> = (0..4)
        .map(|number| tokio::spawn(send.clone()(rack.post(LOCAL, &format!("{number}.md"), ""))))
        .collect();
    // They are seen to be there by the one that is turned away.
    let turned_away = loop {
        let answer = rack.post(LOCAL, "late.md", TEA).send().await.unwrap();
        if answer.status() != StatusCode::OK {
            break answer;
        }
    };
    assert_eq!(turned_away.headers()[header::RETRY_AFTER], "2");
    refused(turned_away, StatusCode::SERVICE_UNAVAILABLE, "busy").await;
    sender.send(true).unwrap();
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap(), StatusCode::OK);
    }
    assert_eq!(rack.add(LOCAL, "late.md", TEA).await["path"], "uploads/local/late.md");
}

#[tokio::test]
async fn p6_other_pages_neither_add_nor_remove_documents() {
    let rack = Rack::start(Upload::User).await;
    rack.add(LOCAL, "tea.md", TEA).await;
    let added =
        rack.post(LOCAL, "b.md", TEA).header(header::ORIGIN, "http://evil.example").send().await.unwrap();
    refused(added, StatusCode::FORBIDDEN, "origin_not_allowed").await;
    let request = rack.client.delete(rack.url(&[("path", "uploads/local/tea.md")]));
    let removed = request.header(header::ORIGIN, "null").send().await.unwrap();
    refused(removed, StatusCode::FORBIDDEN, "origin_not_allowed").await;
    assert_eq!(rack.kept().await, ["uploads/local/tea.md"]);
}

#[tokio::test]
async fn p6_a_user_adds_so_many_documents_and_no_more() {
    let rack = Rack::start(Upload::User).await;
    for number in 0..2000 {
        let path = format!("uploads/local/{number}.txt");
        let document = read::document(&path, DocumentKind::Text, b"Water.", None).unwrap();
        rack.documents.add(document).await.unwrap();
    }
    let sent = rack.post(LOCAL, "one.md", TEA).send().await.unwrap();
    let message = refused(sent, StatusCode::CONFLICT, "too_many_documents").await;
    assert!(message.contains("2000 documents"), "{message}");
    assert_eq!(rack.add(LOCAL, "7.txt", "Wine.").await["outcome"], "updated", "none is added by this");
    let bob = rack.key("bob", Permission::User).await;
    rack.add(&bob, "one.md", TEA).await;
    let list: Value = rack.list(LOCAL, &[]).await.json().await.unwrap();
    assert_eq!((list["documents"].as_array().unwrap().len(), &list["total"]), (1000, &json!(2001)));
}

#[tokio::test]
async fn u29_documents_are_searched_as_tools_do() {
    let rack = Rack::start(Upload::User).await;
    let search = async |key: &str, query: &[(&str, &str)]| {
        let base = format!("{}/api/documents/search", rack.base);
        let url = reqwest::Url::parse_with_params(&base, query).unwrap();
        rack.client.get(url).bearer_auth(key).send().await.unwrap()
    };
    let found =
        async |query: &str| -> Value { search(LOCAL, &[("query", query)]).await.json().await.unwrap() };
    assert_eq!(found("tea").await, json!({"passages": []}), "there are none yet");
    rack.add(LOCAL, "tea.md", TEA).await;
    let passage = &found("How hot is green tea?").await["passages"][0];
    let seen = [&passage["path"], &passage["section"], &passage["place"], &passage["text"]];
    assert_eq!(
        json!(seen),
        json!(["uploads/local/tea.md", "Tea > Green", "line 5", "Green tea is steeped at 75 degrees."])
    );
    let long = "a".repeat(4097);
    let bad: [&[(&str, &str)]; 7] = [
        &[],
        &[("query", "\"((")],
        &[("query", " ")],
        &[("query", long.as_str())],
        &[("query", "tea"), ("limit", "0")],
        &[("query", "tea"), ("limit", "101")],
        &[("query", "tea"), ("below", "x")],
    ];
    for query in bad {
        refused(search(LOCAL, query).await, StatusCode::BAD_REQUEST, "invalid_request_error").await;
    }
    let guest = rack.key("gus", Permission::Guest).await;
    refused(search(&guest, &[("query", "tea")]).await, StatusCode::FORBIDDEN, "permission_denied").await;
}
