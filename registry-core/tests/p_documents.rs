//! The document store: adding, updating, removing, searching.

#![allow(clippy::unwrap_used)]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use registry_core::documents::{Added, DocumentFilter, DocumentKind, Documents, read};
use tempfile::TempDir;

struct Store {
    documents: Documents,
    folder: TempDir,
}

impl Store {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { documents: Documents::in_file(folder.path().join("a/documents.db")), folder }
    }

    fn again(&self) -> Documents {
        Documents::in_file(self.folder.path().join("a/documents.db"))
    }

    async fn add(&self, path: &str, text: &str) -> Added {
        add(&self.documents, path, text).await
    }

    async fn found(&self, question: &str) -> Vec<String> {
        let found = self.documents.search(question, 5, &DocumentFilter::default()).await.unwrap();
        found.into_iter().map(|passage| format!("{}:{}", passage.path, passage.first)).collect()
    }
}

async fn add(documents: &Documents, path: &str, text: &str) -> Added {
    let kind = DocumentKind::of(Path::new(path)).unwrap();
    let modified = Some("2026-03-01T12:00:00Z".parse().unwrap());
    documents.add(read::document(path, kind, text.as_bytes(), modified).unwrap()).await.unwrap()
}

const TEA: &str = "# Tea\n\n## Green\n\nGreen tea is steeped at 75 degrees.\n\n## Black\n\nBlack tea wants boiling water.\n";
const COFFEE: &str = "# Coffee\n\nCoffee is brewed with water of 95 degrees. Espresso needs pressure.\n";

#[tokio::test]
async fn p6_passages_are_found_with_their_place() {
    let store = Store::new();
    assert_eq!(store.add("drinks/tea.md", TEA).await, Added::New);
    assert_eq!(store.add("drinks/coffee.md", COFFEE).await, Added::New);
    let found =
        store.documents.search("Which water for black tea?", 5, &DocumentFilter::default()).await.unwrap();
    let best = found.first().unwrap();
    assert_eq!(
        (best.path.as_str(), best.title.as_str(), best.section.as_str()),
        ("drinks/tea.md", "Tea", "Tea > Black")
    );
    assert_eq!((best.first, best.last, best.text.as_str()), (9, 9, "Black tea wants boiling water."));
    assert!(best.score > found[1].score, "{found:?}");
    // Words are stemmed, accents and case do not matter, and the beginning of a word will do.
    for question in ["steeping", "STEEPED", "steèped", "degree", "green teas", "steepe"] {
        assert_eq!(
            store.found(question).await.first().map(String::as_str),
            Some("drinks/tea.md:5"),
            "{question}"
        );
    }
    assert_eq!(store.found("espresso").await, ["drinks/coffee.md:3"]);
    assert_eq!(store.found("nothing of this").await, Vec::<String>::new());
}

#[tokio::test]
async fn p6_what_is_there_already_is_left_and_what_changed_is_updated() {
    let store = Store::new();
    assert_eq!(store.add("tea.md", TEA).await, Added::New);
    assert_eq!(store.add("tea.md", TEA).await, Added::Unchanged);
    assert_eq!(store.add("tea.md", "# Tea\n\nOolong is between.\n").await, Added::Updated);
    assert_eq!(store.found("oolong").await, ["tea.md:3"]);
    assert_eq!(store.found("boiling").await, Vec::<String>::new());
    let list = store.documents.list(&DocumentFilter::default()).await.unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!((list[0].passages, list[0].bytes, list[0].kind), (1, 26, DocumentKind::Markdown));
    assert!(store.documents.has("tea.md", &list[0].hash).await.unwrap());
    assert!(!store.documents.has("tea.md", "other").await.unwrap());
}

#[tokio::test]
async fn p6_documents_are_removed_by_path_and_by_folder() {
    let store = Store::new();
    for path in ["a/one.md", "a/b/two.md", "a.md", "ab/three.md", "a%/four.md"] {
        store.add(path, TEA).await;
    }
    assert_eq!(store.documents.remove("a/").await.unwrap(), ["a/b/two.md", "a/one.md"]);
    assert_eq!(store.documents.remove("a.md").await.unwrap(), ["a.md"]);
    assert_eq!(store.documents.remove("a_").await.unwrap(), Vec::<String>::new());
    assert_eq!(store.found("boiling").await.len(), 2);
    assert_eq!(store.documents.remove("ab").await.unwrap(), ["ab/three.md"]);
    assert_eq!(store.found("boiling").await, ["a%/four.md:9"]);
}

#[tokio::test]
async fn p6_a_search_is_narrowed() {
    let store = Store::new();
    store.add("tea/one.md", TEA).await;
    store.add("tea/two.txt", TEA).await;
    store.add("three.md", TEA).await;
    let paths = async |filter: DocumentFilter| {
        let found = store.documents.search("boiling water", 9, &filter).await.unwrap();
        let mut paths: Vec<String> = found.into_iter().map(|passage| passage.path).collect();
        let mut listed: Vec<String> =
            store.documents.list(&filter).await.unwrap().into_iter().map(|document| document.path).collect();
        paths.sort();
        listed.sort();
        assert_eq!(paths, listed);
        paths
    };
    let all = DocumentFilter::default();
    assert_eq!(paths(all.clone()).await.len(), 3);
    assert_eq!(
        paths(DocumentFilter { kinds: vec![DocumentKind::Text], ..all.clone() }).await,
        ["tea/two.txt"]
    );
    assert_eq!(
        paths(DocumentFilter { below: Some("tea".into()), ..all.clone() }).await,
        ["tea/one.md", "tea/two.txt"]
    );
    assert_eq!(paths(DocumentFilter { below: Some("three.md".into()), ..all.clone() }).await, ["three.md"]);
    let day = |day: &str| Some(format!("{day}T12:00:00Z").parse().unwrap());
    assert_eq!(paths(DocumentFilter { modified_since: day("2026-03-01"), ..all.clone() }).await.len(), 3);
    assert_eq!(paths(DocumentFilter { modified_since: day("2026-03-02"), ..all.clone() }).await.len(), 0);
    assert_eq!(paths(DocumentFilter { modified_before: day("2026-03-01"), ..all }).await.len(), 0);
}

#[tokio::test]
async fn p6_no_question_is_a_query_language() {
    let store = Store::new();
    store.add("tea.md", TEA).await;
    for question in [
        "green OR",
        "\"",
        "green\"",
        "NEAR(",
        "title:green",
        "*",
        "green*",
        "(green",
        "green)",
        "{title}: green",
        "^green",
        "a AND NOT b",
        "green \u{0} tea",
        "-green",
        "green + tea",
        "'; DROP TABLE document; --",
        "green::tea",
        "\u{ffff}green",
        "🙂 green",
    ] {
        match store.documents.search(question, 5, &DocumentFilter::default()).await {
            Ok(_) => {}
            Err(error) => assert!(error.message().contains("no word to look for"), "{question}: {error}"),
        }
    }
    assert_eq!(store.found("boiling").await, ["tea.md:9"]);
}

#[tokio::test]
async fn p6_what_was_acknowledged_is_there_for_the_next_process() {
    let store = Store::new();
    store.add("tea.md", TEA).await;
    // The first one is still open, as after a crash: what it wrote is beside the file.
    let other = store.again();
    let found = other.search("boiling", 1, &DocumentFilter::default()).await.unwrap();
    assert_eq!(found.len(), 1);
    add(&other, "coffee.md", COFFEE).await;
    assert_eq!(store.found("espresso").await, ["coffee.md:3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_many_add_at_once() {
    let store = Store::new();
    let (one, two) = (store.again(), store.again());
    let add_all = async |documents: &Documents, name: &str| {
        for number in 0..20 {
            add(
                documents,
                &format!("{name}/{number}.md"),
                &format!("# {name}\n\nNumber {number} of Tea Rooms.\n"),
            )
            .await;
        }
    };
    tokio::join!(
        add_all(&one, "one"),
        add_all(&two, "two"),
        add_all(&one, "one"),
        add_all(&store.documents, "three")
    );
    assert_eq!(store.documents.list(&DocumentFilter::default()).await.unwrap().len(), 60);
}

#[tokio::test]
async fn p6_a_file_that_is_no_store_is_told_without_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("documents.db");
    std::fs::write(&file, "not a database, but long enough to be looked at as one".repeat(40)).unwrap();
    let error = Documents::in_file(&file).list(&DocumentFilter::default()).await.unwrap_err();
    assert!(error.message().contains(file.to_str().unwrap()), "{error}");
    assert!(
        !error.feedback().contains("documents.db") && error.feedback().contains("Do without"),
        "{}",
        error.feedback()
    );
    let error = Documents::in_file(file.join("below")).list(&DocumentFilter::default()).await.unwrap_err();
    assert!(error.message().contains("documents.db"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn p6_nobody_else_reads_the_documents() {
    use std::os::unix::fs::PermissionsExt;

    let store = Store::new();
    store.add("tea.md", TEA).await;
    for (name, mode) in [("a", 0o700), ("a/documents.db", 0o600), ("a/documents.db-wal", 0o600)] {
        let about = std::fs::metadata(store.folder.path().join(name)).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, mode, "{name}");
    }
}

#[tokio::test]
async fn p6_tenants_have_documents_of_their_own_whatever_their_names() {
    let store = Store::new();
    let long = "ü".repeat(128);
    let names = ["default", "acme", "ACME", "../../acme", "a/b", "a\\b", "..", " ", "acme.db", &long];
    for name in names {
        let documents = store.documents.for_tenant(name);
        assert!(!documents.are_there(), "{name}");
        add(&documents, "tea.md", &format!("# Tea\n\nTea of {name:?}.\n")).await;
    }
    for name in names {
        let found =
            store.again().for_tenant(name).search("tea", 99, &DocumentFilter::default()).await.unwrap();
        let texts: Vec<&str> = found.iter().map(|passage| passage.text.as_str()).collect();
        assert_eq!(texts, [format!("Tea of {name:?}.")]);
    }
    let files = |folder: &str| {
        let entries = std::fs::read_dir(store.folder.path().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm")).collect::<Vec<_>>()
    };
    assert_eq!(files("").len() + files("a").len(), 3, "nothing is outside of the folder");
    let mut of_tenants = files("a/documents.tenants");
    assert_eq!(of_tenants.len(), names.len() - 1);
    of_tenants.iter_mut().for_each(|name| name.make_ascii_lowercase());
    of_tenants.sort();
    of_tenants.dedup();
    assert_eq!(of_tenants.len(), names.len() - 1, "also where case does not count");
    assert_eq!(
        store
            .documents
            .for_tenant("acme")
            .for_tenant("default")
            .list(&DocumentFilter::default())
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn p6_whether_there_are_documents_is_seen_when_another_process_adds_some() {
    let (store, context) = (Store::new(), registry_core::ToolContext::default());
    assert!(store.documents.missing(&context).unwrap().contains("toolrack documents add PATH"));
    let other = store.again();
    // It has made the file, and put nothing in.
    assert!(other.list(&DocumentFilter::default()).await.unwrap().is_empty());
    assert!(!store.documents.are_there());
    add(&other, "tea.md", TEA).await;
    assert!(store.documents.are_there() && store.documents.missing(&context).is_none());
    other.remove("tea.md").await.unwrap();
    let removed = Instant::now();
    while store.documents.are_there() {
        assert!(removed.elapsed() < Duration::from_secs(3));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    add(&other, "tea.md", TEA).await;
    assert!(store.documents.are_there());
}
