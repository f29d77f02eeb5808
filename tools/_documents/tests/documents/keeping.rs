//! The document store: adding, updating, removing, searching.

#![allow(clippy::unwrap_used)]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use crate::place::{Place, add};
use sqlx::{Connection, PgConnection};
use toolrack_documents::{Added, DocumentFilter, DocumentKind, Documents, Quota, read};

struct Store {
    documents: Documents,
    place: Place,
}

impl Store {
    fn new(place: Place) -> Self {
        Self { documents: place.open(), place }
    }

    fn again(&self) -> Documents {
        self.place.open()
    }

    fn folder(&self) -> &Path {
        match &self.place {
            Place::File(folder) => folder.path(),
            Place::Postgres(url) => unreachable!("{url} is no file"),
        }
    }

    async fn add(&self, path: &str, text: &str) -> Added {
        add(&self.documents, path, text).await
    }

    async fn found(&self, question: &str) -> Vec<String> {
        let found = self.documents.search(question, 5, &DocumentFilter::default()).await.unwrap();
        found.into_iter().map(|passage| format!("{}:{}", passage.path, passage.first)).collect()
    }
}

const TEA: &str = "# Tea\n\n## Green\n\nGreen tea is steeped at 75 degrees.\n\n## Black\n\nBlack tea wants boiling water.\n";
const COFFEE: &str = "# Coffee\n\nCoffee is brewed with water of 95 degrees. Espresso needs pressure.\n";

#[tokio::test]
async fn p6_passages_are_found_with_their_place() {
    for place in Place::all("p6_passages_are_found_with_their_place") {
        let store = Store::new(place);
        assert_eq!(store.add("drinks/tea.md", TEA).await, Added::New);
        assert_eq!(store.add("drinks/coffee.md", COFFEE).await, Added::New);
        let found = store
            .documents
            .search("Which water for black tea?", 5, &DocumentFilter::default())
            .await
            .unwrap();
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
}

#[tokio::test]
async fn p6_what_is_there_already_is_left_and_what_changed_is_updated() {
    for place in Place::all("p6_what_is_there_already_is_left_and_what_changed_is_updated") {
        let store = Store::new(place);
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
}

#[tokio::test]
async fn p6_documents_are_removed_by_path_and_by_folder() {
    for place in Place::all("p6_documents_are_removed_by_path_and_by_folder") {
        let store = Store::new(place);
        for path in ["a/one.md", "a/b/two.md", "a.md", "ab/three.md", "a%/four.md"] {
            store.add(path, &format!("{TEA}\nThis is {path}.\n")).await;
        }
        assert_eq!(store.documents.remove("a/").await.unwrap(), ["a/b/two.md", "a/one.md"]);
        assert_eq!(store.documents.remove("a.md").await.unwrap(), ["a.md"]);
        assert_eq!(store.documents.remove("a_").await.unwrap(), Vec::<String>::new());
        assert_eq!(store.found("boiling").await.len(), 2);
        assert_eq!(store.documents.remove("ab").await.unwrap(), ["ab/three.md"]);
        assert_eq!(store.found("boiling").await, ["a%/four.md:9"]);
    }
}

#[tokio::test]
async fn b19_a_quota_holds_for_what_is_kept_and_for_all_that_is_added_at_once() {
    for place in Place::all("b19_a_quota_holds_for_what_is_kept_and_for_all_that_is_added_at_once") {
        let store = Store::new(place);
        let quota = |documents, bytes| Quota { folder: "uploads/ada".to_owned(), documents, bytes };
        let text = "Some words of a text that is kept. ".repeat(1000);
        let add = async |number: usize, quota: &Quota| {
            let path = format!("uploads/ada/{number}.txt");
            let document = read::document(&path, DocumentKind::Text, text.as_bytes(), None).unwrap();
            store.documents.add_within(document, Some(quota)).await.unwrap()
        };
        store.add("uploads/adam/other.txt", &text).await;
        // The passages, and the words that they are found by.
        let of_one = 2 * u64::try_from(text.len()).unwrap();
        assert_eq!(add(0, &quota(9, of_one)).await, None);
        let two = quota(9, 5 * of_one / 2);
        let added = futures_util::future::join_all((0..8).map(|number| add(number, &two))).await;
        assert_eq!(added.iter().flatten().count(), 2, "{added:?}");
        assert!(!store.documents.has_room(&two, "uploads/ada/9.txt", of_one).await.unwrap());
        let kept = added.iter().position(Option::is_some).unwrap();
        assert!(store.documents.has_room(&two, &format!("uploads/ada/{kept}.txt"), of_one).await.unwrap());
        assert_eq!(add(kept, &quota(0, 0)).await, Some(Added::Unchanged));
        assert_eq!(add(9, &quota(2, u64::MAX)).await, None);
        assert_eq!(add(9, &quota(3, u64::MAX)).await, Some(Added::New));
        // Vectors count as soon as there are any: here 4096 bytes for each passage.
        let unread = store.documents.without_vectors("m", 1).await.unwrap();
        store.documents.keep_vectors("m", vec![(unread[0].id, vec![0.5; 1024])]).await.unwrap();
        assert_eq!(add(10, &quota(9, 4 * of_one + of_one / 2)).await, None);
        assert_eq!(add(10, &quota(9, u64::MAX)).await, Some(Added::New));
    }
}

#[tokio::test]
async fn b19_removed_documents_give_their_space_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("documents.db");
    let documents = Documents::in_file(&file);
    let size = || -> u64 {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    let add = async |path: &str, seed: usize| {
        let words: Vec<String> = (0..100_000).map(|word| format!("w{}", word * seed % 50_021)).collect();
        documents
            .add(read::document(path, DocumentKind::Text, words.join(" ").as_bytes(), None).unwrap())
            .await
            .unwrap();
    };
    add("small.md", 1).await;
    let before = size();
    for number in 2..6 {
        add(&format!("large/{number}.txt"), number).await;
    }
    let full = size();
    assert!(full > 3 * before, "{before} {full}");
    assert_eq!(documents.remove("large").await.unwrap().len(), 4);
    assert!(size() < 2 * before, "{before} {full} {}", size());
}

#[tokio::test]
async fn p6_a_search_is_narrowed() {
    for place in Place::all("p6_a_search_is_narrowed") {
        let store = Store::new(place);
        for path in ["tea/one.md", "tea/two.txt", "three.md"] {
            store.add(path, &format!("{TEA}\nThis is {path}.\n")).await;
        }
        let paths = async |filter: DocumentFilter| {
            let found = store.documents.search("boiling water", 9, &filter).await.unwrap();
            let mut paths: Vec<String> = found.into_iter().map(|passage| passage.path).collect();
            let mut listed: Vec<String> = store
                .documents
                .list(&filter)
                .await
                .unwrap()
                .into_iter()
                .map(|document| document.path)
                .collect();
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
        assert_eq!(
            paths(DocumentFilter { below: Some("three.md".into()), ..all.clone() }).await,
            ["three.md"]
        );
        let day = |day: &str| Some(format!("{day}T12:00:00Z").parse().unwrap());
        assert_eq!(paths(DocumentFilter { modified_since: day("2026-03-01"), ..all.clone() }).await.len(), 3);
        assert_eq!(paths(DocumentFilter { modified_since: day("2026-03-02"), ..all.clone() }).await.len(), 0);
        assert_eq!(paths(DocumentFilter { modified_before: day("2026-03-01"), ..all }).await.len(), 0);
    }
}

#[tokio::test]
async fn p6_no_question_is_a_query_language() {
    for place in Place::all("p6_no_question_is_a_query_language") {
        let store = Store::new(place);
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
}

#[tokio::test]
async fn p6_what_was_acknowledged_is_there_for_the_next_process() {
    for place in Place::all("p6_what_was_acknowledged_is_there_for_the_next_process") {
        let store = Store::new(place);
        store.add("tea.md", TEA).await;
        // The first one is still open, as after a crash: what it wrote is beside the file.
        let other = store.again();
        let found = other.search("boiling", 1, &DocumentFilter::default()).await.unwrap();
        assert_eq!(found.len(), 1);
        add(&other, "coffee.md", COFFEE).await;
        assert_eq!(store.found("espresso").await, ["coffee.md:3"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_many_add_at_once() {
    for place in Place::all("p6_many_add_at_once") {
        let store = Store::new(place);
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
}

#[tokio::test]
async fn p6_a_file_that_is_no_store_is_reported_without_its_place() {
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

    let store = Store::new(Place::file());
    store.add("tea.md", TEA).await;
    for (name, mode) in [("a", 0o700), ("a/documents.db", 0o600), ("a/documents.db-wal", 0o600)] {
        let about = std::fs::metadata(store.folder().join(name)).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, mode, "{name}");
    }
}

/// Names of tenants that are none for a file.
fn tenants() -> [String; 10] {
    let long = "ü".repeat(128);
    ["default", "acme", "ACME", "../../acme", "a/b", "a\\b", "..", " ", "acme.db", &long].map(str::to_owned)
}

#[tokio::test]
async fn p6_tenants_have_documents_of_their_own_whatever_their_names() {
    for place in Place::all("p6_tenants_have_documents_of_their_own_whatever_their_names") {
        let store = Store::new(place);
        for name in &tenants() {
            let documents = store.documents.for_tenant(name);
            assert!(!documents.are_there(), "{name}");
            add(&documents, "tea.md", &format!("# Tea\n\nTea of {name:?}. `Code{name}`\n")).await;
            assert!(documents.are_there(), "{name}");
        }
        let all = DocumentFilter::default();
        for name in &tenants() {
            let documents = store.again().for_tenant("other").for_tenant(name);
            let found = documents.search("tea", 99, &all).await.unwrap();
            assert!(found.len() == 1 && found[0].text.contains(&format!("Tea of {name:?}.")), "{found:?}");
            let rows = documents.select("SELECT count(*) FROM documents").await.unwrap().rows;
            assert_eq!(rows, [[serde_json::Value::from(1)]]);
        }
        store.documents.for_tenant("acme").remove("tea.md").await.unwrap();
        assert_eq!(store.documents.for_tenant("acme").list(&all).await.unwrap().len(), 0);
        assert_eq!(store.documents.for_tenant("ACME").list(&all).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn p6_a_tenant_has_a_file_of_its_own_beside_the_others() {
    let store = Store::new(Place::file());
    for name in &tenants() {
        add(&store.documents.for_tenant(name), "tea.md", TEA).await;
    }
    let files = |folder: &str| {
        let entries = std::fs::read_dir(store.folder().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm")).collect::<Vec<_>>()
    };
    assert_eq!((files(""), files("a").len()), (vec!["a".to_owned()], 2), "nothing is outside of the folder");
    let mut of_tenants = files("a/documents.tenants");
    of_tenants.iter_mut().for_each(|name| name.make_ascii_lowercase());
    of_tenants.sort();
    of_tenants.dedup();
    assert_eq!(of_tenants.len(), tenants().len() - 1, "also where case does not count");
}

#[tokio::test]
async fn p6_whether_there_are_documents_is_seen_when_another_process_adds_some() {
    for place in Place::all("p6_whether_there_are_documents_is_seen_when_another_process_adds_some") {
        let (store, context) = (Store::new(place), registry_core::ToolContext::default());
        assert!(store.documents.for_request(&context).unwrap_err().contains("toolrack documents add PATH"));
        let other = store.again();
        // It has made the file, and put nothing in.
        assert!(other.list(&DocumentFilter::default()).await.unwrap().is_empty());
        assert!(!store.documents.are_there());
        // It is looked at every second, by nobody who asks.
        let is_seen = Duration::from_secs(3);
        add(&other, "tea.md", TEA).await;
        until(|| store.documents.are_there(), is_seen).await;
        assert!(store.documents.for_request(&context).is_ok());
        other.remove("tea.md").await.unwrap();
        until(|| !store.documents.are_there(), is_seen).await;
        add(&other, "tea.md", TEA).await;
        until(|| store.documents.are_there(), is_seen).await;
        // What this process does itself it knows at once.
        store.documents.remove("tea.md").await.unwrap();
        add(&store.documents, "coffee.md", COFFEE).await;
        assert!(store.documents.are_there());
    }
}

/// Waits until something holds that another process has brought about.
async fn until(holds: impl Fn() -> bool, patience: Duration) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < patience);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Of words that begin so, a passage may have several: that must make it no worse than one that has fewer.
#[tokio::test]
async fn p6_more_words_that_begin_so_are_no_reason_against_a_passage() {
    for place in Place::all("p6_more_words_that_begin_so_are_no_reason_against_a_passage") {
        let documents = place.open();
        let filler = (0..27).map(|number| format!(" w{number}")).collect::<String>();
        add(&documents, "all.txt", &format!("Plantation plantain planted planting{filler}.")).await;
        add(&documents, "one.txt", "Plantation by the sea.").await;
        for number in 0..11 {
            add(&documents, &format!("{number}.txt"), &format!("Number {number} of the others.")).await;
        }
        for words in ["plan", "plant", "planta", "sea plan"] {
            let found = documents.search(words, 5, &DocumentFilter::default()).await.unwrap();
            assert_eq!(found.len(), 2, "{place:?}, {words}: {found:?}");
            assert!(found.iter().all(|passage| passage.score > 0.0), "{place:?}, {words}: {found:?}");
        }
    }
}

#[tokio::test]
async fn b10_who_waits_in_vain_for_a_tenant_leaves_no_session_behind() {
    for place in Place::all("b10_who_waits_in_vain_for_a_tenant_leaves_no_session_behind") {
        let Place::Postgres(url) = &place else { continue };
        let documents = place.open();
        add(&documents, "tea.txt", TEA).await;
        // As a server that stands still holds it.
        let mut other = PgConnection::connect(url).await.unwrap();
        let hold = "SELECT pg_advisory_lock(1953460332, hashtext('default'))";
        sqlx::query(hold).execute(&mut other).await.unwrap();
        let coffee = read::document("coffee.txt", DocumentKind::Text, COFFEE.as_bytes(), None).unwrap();
        let waiting = tokio::time::timeout(Duration::from_secs(20), documents.add(coffee)).await;
        waiting.expect("it gives up").unwrap_err();
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let left: i64 = sqlx::query_scalar(sessions).fetch_one(&mut other).await.unwrap();
        assert_eq!(left, 0);
    }
}
