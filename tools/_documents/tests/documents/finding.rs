//! What is found among copies, in scripts without spaces, and of many documents.

use sqlx::Connection;
use toolrack_documents::{DocumentFilter, Documents};

use crate::place::{Place, add};

const TEA: &str = "# Tea\n\n## Green\n\nGreen tea is steeped at 75 degrees.\n";

async fn found(documents: &Documents, question: &str) -> Vec<String> {
    let found = documents.search(question, 5, &DocumentFilter::default()).await.unwrap();
    found.into_iter().map(|passage| passage.path).collect()
}

#[tokio::test]
async fn p6_copies_leave_room_for_what_else_there_is() {
    for place in Place::all("p6_copies_leave_room_for_what_else_there_is") {
        let documents = place.open();
        for user in 0..30 {
            add(&documents, &format!("uploads/{user}/tea.md"), TEA).await;
        }
        add(&documents, "other.md", "# Leaves\n\nBlack leaves are for another tea.\n").await;
        let passages = documents.search("green tea", 2, &DocumentFilter::default()).await.unwrap();
        let shown: Vec<_> = passages.iter().map(|it| (it.path.as_str(), it.also_in.len())).collect();
        assert_eq!(shown, [("uploads/0/tea.md", 5), ("other.md", 0)], "{place:?}");
        assert_eq!(found(&documents, "green tea").await.len(), 2, "{place:?}");
    }
}

#[tokio::test]
async fn p6_words_are_found_in_scripts_without_spaces_and_before_endings() {
    for place in Place::all("p6_words_are_found_in_scripts_without_spaces_and_before_endings") {
        let documents = place.open();
        for (path, text) in TEXTS {
            add(&documents, path, text).await;
        }
        add(&documents, "ja.txt", "社員は十日の休暇を取れる").await;
        finds_all(&documents).await;
        assert_eq!(found(&documents, "休暇").await, ["ja.txt"]);
    }
}

/// A text in each script, and a word of it.
pub(crate) const TEXTS: [(&str, &str); 5] = [
    ("ko.txt", "연차 휴가를 신청하는 방법"),
    ("th.txt", "พนักงานทุกคนลาพักร้อนได้สิบวัน"),
    ("lo.txt", "ພະນັກງານທຸກຄົນມີວັນພັກ"),
    ("km.txt", "និយោជិតម្នាក់ៗមានថ្ងៃឈប់សម្រាក"),
    ("my.txt", "ဝန်ထမ်းတိုင်းခွင့်ရက်ရှိသည်"),
];

pub(crate) async fn finds_all(documents: &Documents) {
    for (path, question) in [
        ("ko.txt", "휴가"),
        ("th.txt", "พนักงาน"),
        ("th.txt", "พักร้อน"),
        ("lo.txt", "ວັນພັກ"),
        ("km.txt", "ថ្ងៃឈប់"),
        ("my.txt", "ခွင့်ရက်"),
    ] {
        assert_eq!(found(documents, question).await, [path], "{question}");
    }
}

#[tokio::test]
async fn p6_a_list_has_ones_own_first_and_so_many() {
    for place in Place::all("p6_a_list_has_ones_own_first_and_so_many") {
        let documents = place.open();
        for path in ["a.md", "uploads/ada/z.md", "uploads/adam/a.md", "uploads/ada/b/c.md", "z.md"] {
            add(&documents, path, "---\nauthor: Ada\n---\n# Tea\n").await;
        }
        let all = DocumentFilter::default();
        let (listed, total) = documents.first("uploads/ada", 4, &all).await.unwrap();
        let paths: Vec<&str> = listed.iter().map(|document| document.path.as_str()).collect();
        assert_eq!(
            (paths.as_slice(), total),
            (&["uploads/ada/b/c.md", "uploads/ada/z.md", "a.md", "uploads/adam/a.md"][..], 5)
        );
        assert!(listed.iter().all(|document| document.metadata.is_empty()));
        let below = DocumentFilter { below: Some("uploads/adam".into()), ..all };
        let (listed, total) = documents.first("uploads/ada", 4, &below).await.unwrap();
        assert_eq!((listed.len(), total), (1, 1));
    }
}

#[tokio::test]
async fn p6_rows_that_are_too_large_to_be_copied_are_refused() {
    for place in Place::all("p6_rows_that_are_too_large_to_be_copied_are_refused") {
        let Place::Postgres(url) = &place else { continue };
        let documents = place.open();
        add(&documents, "tea.md", TEA).await;
        let sql = "SELECT count(*) FROM documents";
        assert_eq!(documents.select(sql).await.unwrap().rows, [[serde_json::json!(1)]]);
        let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
        let fill = "UPDATE document SET metadata = '\"' || repeat('x', 65 * 1024 * 1024) || '\"'";
        sqlx::raw_sql(fill).execute(&mut connection).await.unwrap();
        let refused = documents.select(sql).await.unwrap_err();
        assert!(refused.feedback().contains("64 are the most"), "{refused}");
    }
}
