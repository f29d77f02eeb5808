//! The tools that search documents, for tenants of one host: each sees its own documents, and is on once there are some.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use registry_core::{
    Caller, Registry, Resources, ToolCall,
    model::{LanguageModel, Model, ModelAnswer, ModelQuestion},
    prelude::*,
};
use toolrack_documents::{DocumentKind, Documents, read};

use crate::test_documents::extract;

/// What each tool is asked; both tenants ask the same.
const ASKED: [(&str, &str); 4] = [
    ("retrieve_documents", r#"{"query": "what does Toolrack use"}"#),
    ("query_documents_metadata", r#"{"sql": "SELECT path, title FROM documents"}"#),
    ("graph_search", r#"{"entity": "Toolrack"}"#),
    ("deep_analysis", r#"{"question": "What does Toolrack use?"}"#),
];

/// Keeps what it was given to read.
#[derive(Clone, Default)]
struct Reader(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl LanguageModel for Reader {
    async fn answer(&self, question: ModelQuestion) -> Result<ModelAnswer, ToolError> {
        self.0.lock().unwrap().push(question.prompt);
        async {
            Ok(ModelAnswer {
                text: "It is said there [1].".into(),
                input_tokens: 7,
                output_tokens: 3,
                truncated: false,
            })
        }
        .await
    }
}

fn user(registry: &Registry) -> ToolContext {
    registry.context(Caller::new("ada", Permission::User))
}

/// Which of the tools are off, with the reasons; listing and calling have to agree.
async fn reasons(registry: &Registry) -> Vec<String> {
    let context = user(registry);
    let mut reasons = Vec::new();
    for (name, arguments) in ASKED {
        let tool = registry.get(name).unwrap();
        let why = registry.why_not(&tool, &context).map(|error| error.message().to_owned());
        assert_eq!(registry.select(&context).get(name).is_none(), why.is_some(), "{name}: {why:?}");
        if why.is_some() {
            let arguments = serde_json::from_str(arguments).unwrap();
            let outcome = registry.execute(&context, ToolCall::new(name, arguments)).await;
            assert_eq!(outcome.result.err().map(|error| error.message().to_owned()), why);
        }
        reasons.extend(why);
    }
    reasons
}

async fn add(documents: &Documents, path: &str, uses: &str) {
    let text = format!("# About {uses}\n\nToolrack uses {uses}.\n");
    documents
        .add(read::document(path, DocumentKind::Markdown, text.as_bytes(), None).unwrap())
        .await
        .unwrap();
    extract(documents, &[["Toolrack", "uses", uses]]).await;
}

#[tokio::test]
async fn p6_a_tenant_finds_its_own_documents_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::in_file(folder.path().join("documents.db"));
    let reader = Reader::default();
    let mut resources = Resources::new().with(Model::new(reader.clone()));
    let (all, with_graph) = (documents.clone(), documents.clone());
    resources.insert_by_request(move |context| all.for_request(context));
    resources.insert_by_request(move |context| with_graph.graph_for_request(context));
    let ours = Registry::builder().resources(resources).build().unwrap();
    let theirs = ours.for_tenant("acme & co");
    for (registry, expected) in [
        (&ours, "there are none yet; add some with `toolrack documents add PATH…`"),
        (&theirs, "there are none yet; add some with `toolrack documents add --tenant \"acme & co\" PATH…`"),
    ] {
        let reasons = reasons(registry).await;
        assert!(reasons.len() == 4 && reasons.iter().all(|reason| reason.contains(expected)), "{reasons:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "asking leaves nothing behind");

    add(&documents, "ours.md", "SQLite").await;
    assert_eq!((reasons(&ours).await.len(), reasons(&theirs).await.len()), (0, 4));
    add(&documents.for_tenant("acme & co"), "theirs.md", "PostgreSQL").await;
    assert_eq!((reasons(&ours).await.len(), reasons(&theirs).await.len()), (0, 0));
    for (registry, own, other) in [
        (&ours, ["ours.md", "SQLite"], ["theirs.md", "PostgreSQL"]),
        (&theirs, ["theirs.md", "PostgreSQL"], ["ours.md", "SQLite"]),
    ] {
        for (name, arguments) in ASKED {
            let arguments = serde_json::from_str(arguments).unwrap();
            let outcome = registry.execute(&user(registry), ToolCall::new(name, arguments)).await;
            let result = json!(outcome.result.unwrap().value).to_string();
            let read = reader.0.lock().unwrap().drain(..).collect::<String>();
            assert!(result.contains(own[0]), "{name}: {result}");
            assert!(
                name == "query_documents_metadata" || format!("{result}{read}").contains(own[1]),
                "{name}"
            );
            for foreign in other {
                assert!(!format!("{result}{read}").contains(foreign), "{name}: {result} {read}");
            }
        }
    }

    documents.remove("ours.md").await.unwrap();
    let removed = Instant::now();
    while reasons(&ours).await.len() < 4 {
        assert!(removed.elapsed() < Duration::from_secs(3));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(reasons(&theirs).await.len(), 0);
}
