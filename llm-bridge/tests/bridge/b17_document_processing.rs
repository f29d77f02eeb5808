//! What models do with documents on an admin's word: vectors are computed again, names extracted. Review row U29.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use registry_core::{
    Caller, Permission, ToolError,
    guard::audit::Phase,
    model::{LanguageModel, Model, ModelAnswer, ModelQuestion},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use toolrack_documents::{DocumentKind, Documents, EmbedError, Embedder, TextRole, read::document};

use crate::{b17_console::send, support::until, t_access::Rack};

/// Finds a name in a passage for each permit.
struct Reader(Arc<Semaphore>);

#[async_trait]
impl LanguageModel for Reader {
    async fn answer(&self, _: ModelQuestion) -> Result<ModelAnswer, ToolError> {
        self.0.acquire().await.unwrap().forget();
        let text = json!({"names": [{"name": "Uji", "kind": "place"}], "relations": []}).to_string();
        Ok(ModelAnswer { text, input_tokens: 7, output_tokens: 3, truncated: false })
    }
}

/// Counts the passages that it gives vectors.
struct Counting(Arc<AtomicUsize>);

#[async_trait]
impl Embedder for Counting {
    fn model(&self) -> &str {
        "m"
    }

    async fn embed(&self, texts: Vec<String>, _: TextRole) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.0.fetch_add(texts.len(), Ordering::SeqCst);
        Ok(vec![vec![1.0]; texts.len()])
    }
}

async fn add(documents: &Documents, name: &str) {
    let text = format!("# {name}\n\nTea of Uji.\n");
    documents.add(document(name, DocumentKind::Markdown, text.as_bytes(), None).unwrap()).await.unwrap();
}

async fn documents() -> (TempDir, Documents) {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::in_file(folder.path().join("documents.db"));
    add(&documents, "sencha.md").await;
    add(&documents, "matcha.md").await;
    (folder, documents)
}

async fn state(rack: &Rack, key: &str) -> Value {
    let (status, state) = send(rack, Method::GET, "/api/documents/processing", key, Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{state}");
    state
}

/// The state once nothing is extracted any more.
async fn ended(rack: &Rack, key: &str) -> Value {
    loop {
        let state = state(rack, key).await;
        if state["extraction"]["running"] == false {
            return state;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn u29_an_admin_has_names_extracted_sees_how_far_it_is_and_stops_it() {
    let (_folder, documents) = documents().await;
    add(&documents.for_tenant("acme"), "mate.md").await;
    let (kept, answers) = (documents.clone(), Arc::new(Semaphore::new(0)));
    let model = Model::new(Reader(answers.clone()));
    let rack = Rack::start_set(Caller::new("local", Permission::User), |settings| {
        settings.documents = Some(kept);
        settings.extractor = Some(model);
    })
    .await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let eve = rack.user("acme", "eve", Permission::Admin).await;
    for (method, path) in [
        (Method::GET, "processing"),
        (Method::POST, "embed-again"),
        (Method::POST, "extract"),
        (Method::DELETE, "extract"),
    ] {
        let (status, _) = send(&rack, method, &format!("/api/documents/{path}"), &ada, Value::Null).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
    }
    let none = json!({"embedding_model": null, "unextracted": 2, "extracts": false, "extraction": null});
    assert_eq!(state(&rack, &root).await, none);
    let extract =
        async |key: &str| send(&rack, Method::POST, "/api/documents/extract", key, Value::Null).await;
    let (status, begun) = extract(&root).await;
    assert_eq!((status, &begun["extraction"]["running"]), (StatusCode::ACCEPTED, &json!(true)), "{begun}");
    for key in [&root, &eve] {
        let (status, busy) = extract(key).await;
        assert_eq!((status, &busy["error"]["type"]), (StatusCode::CONFLICT, &json!("extraction_busy")));
    }
    assert_eq!(state(&rack, &eve).await["extraction"], Value::Null, "another tenant's");
    let stop =
        async |key: &str| send(&rack, Method::DELETE, "/api/documents/extract", key, Value::Null).await.0;
    assert_eq!(stop(&eve).await, StatusCode::NO_CONTENT);
    answers.add_permits(2);
    let done = ended(&rack, &root).await;
    let extraction = &done["extraction"];
    assert_eq!((&done["unextracted"], &extraction["error"]), (&json!(0), &Value::Null), "{done}");
    assert_eq!((&extraction["passages"], &extraction["tokens"]), (&json!(2), &json!(20)), "{done}");

    add(&documents, "assam.md").await;
    // Those of one document alone.
    for (below, status) in [("assam.md", StatusCode::ACCEPTED), ("none", StatusCode::NOT_FOUND)] {
        let path = format!("/api/documents/extract?below={below}");
        assert_eq!(send(&rack, Method::POST, &path, &root, Value::Null).await.0, status, "{below}");
        if status == StatusCode::ACCEPTED {
            stop(&root).await;
            ended(&rack, &root).await;
        }
    }
    let left = async |below: &str| {
        let path = format!("/api/documents/processing?below={below}");
        send(&rack, Method::GET, &path, &root, Value::Null).await.1["unextracted"].clone()
    };
    assert_eq!(
        (left("assam.md").await, left("sencha.md").await, left("").await),
        (json!(1), json!(0), json!(1))
    );
    assert_eq!(extract(&root).await.0, StatusCode::ACCEPTED);
    assert_eq!(stop(&root).await, StatusCode::NO_CONTENT);
    let stopped = ended(&rack, &root).await;
    assert_eq!(
        (&stopped["unextracted"], &stopped["extraction"]["error"]),
        (&json!(1), &json!("it was stopped")),
        "{stopped}"
    );
    let records = rack.audit.records();
    let begun = records
        .iter()
        .filter(|record| record.phase == Phase::Intent && record.tool == "toolrack documents extract");
    let begun = begun.map(|record| (&*record.user, record.arguments.as_ref().unwrap().to_string()));
    let all = |user| (user, "{}".to_owned());
    let one = ("root", r#"{"paths":["assam.md"]}"#.to_owned());
    assert_eq!(begun.collect::<Vec<_>>(), [all("root"), all("root"), all("eve"), one, all("root")]);
}

#[tokio::test]
async fn u29_an_admin_has_all_vectors_computed_again() {
    let (_folder, documents) = documents().await;
    let embedded = Arc::<AtomicUsize>::default();
    let documents = documents.with_embedder(Counting(embedded.clone()));
    let rack = Rack::start_set(Caller::new("local", Permission::User), |settings| {
        settings.documents = Some(documents);
    })
    .await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let again = async |rack: &Rack, key: &str| {
        send(rack, Method::POST, "/api/documents/embed-again", key, Value::Null).await
    };
    until(|| embedded.load(Ordering::SeqCst) == 2).await;
    let known = state(&rack, &root).await;
    assert_eq!((&known["embedding_model"], &known["unextracted"]), (&json!("m"), &Value::Null), "{known}");
    // They are kept a moment after the model has given them.
    let forgotten = loop {
        match again(&rack, &root).await {
            (StatusCode::ACCEPTED, forgotten) if forgotten["vectors"] != 0 => break forgotten,
            (status, _) => assert_eq!(status, StatusCode::ACCEPTED),
        }
    };
    assert_eq!(forgotten, json!({"vectors": 2}));
    until(|| embedded.load(Ordering::SeqCst) >= 4).await;
    let of_one = async |below: &str| {
        let path = format!("/api/documents/embed-again?below={below}");
        send(&rack, Method::POST, &path, &root, Value::Null).await
    };
    assert_eq!(of_one("none").await.0, StatusCode::NOT_FOUND);
    let forgotten = loop {
        match of_one("sencha.md").await {
            (StatusCode::ACCEPTED, forgotten) if forgotten["vectors"] != 0 => break forgotten,
            (status, _) => assert_eq!(status, StatusCode::ACCEPTED),
        }
    };
    assert_eq!(forgotten, json!({"vectors": 1}));
    until(|| embedded.load(Ordering::SeqCst) >= 5).await;
    let (status, refused) = send(&rack, Method::POST, "/api/documents/extract", &root, Value::Null).await;
    assert_eq!((status, &refused["error"]["type"]), (StatusCode::NOT_FOUND, &json!("extraction_not_found")));

    let without = Rack::start_set(Caller::new("local", Permission::User), |_| {}).await;
    let root = without.user("default", "root", Permission::Admin).await;
    let (status, refused) = again(&without, &root).await;
    assert_eq!((status, &refused["error"]["type"]), (StatusCode::NOT_FOUND, &json!("documents_not_found")));
}
