//! What may be asked about documents in SQL, and what may not.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use crate::place::{Place, add};
use registry_core::ErrorKind;
use serde_json::{Value, json};
use toolrack_documents::{Added, DocumentFilter, Documents, METADATA_COLUMNS};

async fn documents(place: &Place, count: u32) -> Documents {
    let documents = place.open();
    for number in 0..count {
        let text = format!(
            "---\nauthor: Ada {number}\n---\n# Title {number}\n\nSecret text of ToolContext {number}.\n"
        );
        assert_eq!(add(&documents, &format!("docs/{number:04}.md"), &text).await, Added::New);
    }
    documents
}

#[tokio::test]
async fn p6_every_attack_on_the_metadata_is_refused_with_a_message() {
    for place in Place::all("p6_every_attack_on_the_metadata_is_refused_with_a_message") {
        let documents = documents(&place, 3).await;
        let before = documents.list(&DocumentFilter::default()).await.unwrap();
        let table = include_str!("../data/metadata_attacks.txt");
        let attacks = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut count = 0;
        let mut through = Vec::new();
        for attack in attacks {
            count += 1;
            match documents.select(&attack.replace("\\n", "\n")).await {
                Ok(rows) => through.push((attack, rows)),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{attack}: {error}");
                    assert!(error.feedback().len() > 10, "{attack}: {error}");
                }
            }
        }
        assert!(through.is_empty(), "{through:#?}");
        assert!(count > 150, "{count}");
        assert_eq!(documents.list(&DocumentFilter::default()).await.unwrap(), before);
        if let Place::File(folder) = &place {
            let files = std::fs::read_dir(folder.path().join("a")).unwrap();
            let names: Vec<_> = files.map(|entry| entry.unwrap().file_name()).collect();
            assert!(names.iter().all(|name| name.to_string_lossy().starts_with("documents.db")), "{names:?}");
        }
    }
}

#[tokio::test]
async fn p6_what_is_asked_about_documents_is_answered() {
    for place in Place::all("p6_what_is_asked_about_documents_is_answered") {
        let documents = documents(&place, 3).await;
        for (sql, rows) in [
            ("SELECT count(*) FROM documents", json!([[3]])),
            // Deep ones are SQLite's to parse.
            (&format!("SELECT {}1", "NOT ".repeat(40)), json!([[1]])),
            (&format!("SELECT {}'A'{}", "lower(".repeat(40), ")".repeat(40)), json!([["a"]])),
            (&format!("SELECT {}1", "1 AND ".repeat(245)), json!([[1]])),
            ("SELECT - -1, 0x1F", json!([[1, 31]])),
            ("WITH n (a) AS (SELECT 15) SELECT sum(a) FROM n", json!([[15]])),
            ("select count(*) as n from Documents;", json!([[3]])),
            (
                "SELECT path, title FROM documents ORDER BY path DESC LIMIT 1",
                json!([["docs/0002.md", "Title 2"]]),
            ),
            ("SELECT metadata ->> 'author' FROM documents WHERE title LIKE '%1'", json!([["Ada 1"]])),
            (
                "SELECT json_extract(metadata, '$.author') FROM documents WHERE path GLOB '*0.md'",
                json!([["Ada 0"]]),
            ),
            (
                "SELECT kind, sum(bytes) > 100, avg(passages) FROM documents GROUP BY kind HAVING count(*) > 1",
                json!([["markdown", 1, 1.0]]),
            ),
            (
                "WITH d AS (SELECT * FROM documents) SELECT upper(a.title) FROM d AS a JOIN d AS b ON a.path = b.path ORDER BY 1 LIMIT 1",
                json!([["TITLE 0"]]),
            ),
            (
                "SELECT date(modified), strftime('%Y', modified) FROM documents LIMIT 1",
                json!([["2026-03-01", "2026"]]),
            ),
            (
                "SELECT path, row_number() OVER (ORDER BY path) FROM documents ORDER BY 2 LIMIT 1 OFFSET 1",
                json!([["docs/0001.md", 2]]),
            ),
            (
                "SELECT title FROM documents WHERE bytes = (SELECT max(bytes) FROM documents) AND path IN (SELECT path FROM documents) ORDER BY title LIMIT 1",
                json!([["Title 0"]]),
            ),
            (
                "SELECT CASE WHEN language IS NULL THEN 'none' ELSE language END FROM documents LIMIT 1",
                json!([["none"]]),
            ),
            ("SELECT title FROM documents WHERE title = 'a''b -- DROP TABLE document'", json!([])),
            (
                "SELECT path FROM documents UNION SELECT title FROM documents ORDER BY 1 LIMIT 1",
                json!([["Title 0"]]),
            ),
            (
                "SELECT CAST('7' AS INTEGER), 1.5, x'00ff', NULL -- a word",
                json!([[7, 1.5, "(2 bytes)", null]]),
            ),
            ("SELECT DISTINCT substr(hash, 1, 0) FROM documents", json!([[""]])),
        ] {
            let answered = documents.select(sql).await.map(|answer| json!(answer.rows));
            assert_eq!(answered, Ok(rows), "{sql}");
        }
        let answer = documents.select("SELECT * FROM documents WHERE FALSE").await.unwrap();
        let known: Vec<&str> = METADATA_COLUMNS.iter().map(|(name, _, _)| *name).collect();
        assert_eq!(answer.columns, known);
    }
}

#[tokio::test]
async fn p6_a_mistake_is_reported_in_the_words_of_sqlite() {
    for place in Place::all("p6_a_mistake_is_reported_in_the_words_of_sqlite") {
        let documents = documents(&place, 1).await;
        for (sql, expected) in [
            (
                "WITH a AS (SELECT 1), b AS MATERIALIZED (SELECT 1), c AS NOT\tMATERIALIZED\n(SELECT 2) SELECT 1",
                "WITH may give 2 names",
            ),
            ("WITH a AS /**/ (SELECT 1) SELECT 1", "may have no comments"),
            ("SELECT author FROM documents", "SQLite says: no such column: author"),
            ("SELECT sum() FROM documents", "SQLite says: wrong number of arguments to function"),
            ("DELETE FROM documents", "only SELECT is allowed"),
            ("SELECT 1; SELECT 2", "write one SELECT without `;`"),
            ("", "write one SELECT over `documents`"),
            ("SELECT text FROM chunk", "there is only `documents` to read"),
            (
                "SELECT group_concat(path) FROM documents",
                "the function `group_concat` is not allowed; there are abs, ",
            ),
            (&format!("SELECT '{}'", "a".repeat(5000)), "4000 are the most"),
            (&format!("SELECT {}1{}", "(".repeat(60), ")".repeat(60)), "nested over 50 deep"),
        ] {
            let error = documents.select(sql).await.unwrap_err();
            assert!(error.feedback().contains(expected), "{sql}: {error}");
        }
    }
}

/// Whether SQLite accepts the deepest statements is its own affair, but it answers, and the process lives.
#[tokio::test]
async fn p6_the_deepest_statements_are_answered() {
    let place = Place::all("p6_the_deepest_statements_are_answered").remove(0);
    let documents = documents(&place, 1).await;
    let shapes = [
        ("(", "1", ")"),
        ("- ", "1", ""),
        ("~", "1", ""),
        ("NOT ", "1", ""),
        ("1+(", "1", ")"),
        ("1 AND ", "1", ""),
        ("1=", "1", ""),
        ("lower(", "'a'", ")"),
        ("(SELECT ", "1", ")"),
        ("(SELECT 1+", "1", ")"),
        ("EXISTS(SELECT ", "1", ")"),
        ("* FROM (SELECT ", "1", ")"),
        ("path FROM documents WHERE path IN (SELECT ", "path FROM documents", ")"),
        ("CASE WHEN 1 THEN ", "1", " END"),
        ("CASE ", "1", " WHEN 1 THEN 1 END"),
        ("1 UNION SELECT ", "1", ""),
        ("1 UNION ALL SELECT ", "1", ""),
        ("sum(1) OVER (ORDER BY ", "1", ")"),
        ("1 COLLATE nocase AND ", "1", ""),
        ("CAST(", "1", " AS INT)"),
        ("'{}'->", "1", ""),
        ("(WITH a AS (SELECT 1) SELECT ", "1", ")"),
        ("CASE 1 WHEN ", "1", " THEN 1 END"),
    ];
    let nested = shapes.into_iter().flat_map(|(open, inner, close)| {
        let fits = (3990 - inner.len()) / (open.len() + close.len());
        [fits, 49].map(|count| format!("SELECT {}{inner}{}", open.repeat(count), close.repeat(count)))
    });
    let chained = [
        (",a".repeat(60), ",b".repeat(60)),
        (" JOIN a".repeat(63), " JOIN b".repeat(63)),
        (" UNION SELECT 1 FROM a".repeat(90), " UNION SELECT 1 FROM b".repeat(80)),
    ]
    .map(|(a, b)| format!("WITH a AS (SELECT 1), b AS (SELECT 1 FROM a{a}) SELECT 1 FROM b{b}"));
    for sql in nested.chain(chained) {
        let answer = tokio::time::timeout(Duration::from_secs(60), documents.select(&sql)).await;
        if let Err(error) = answer.unwrap_or_else(|_| panic!("no answer: {sql}")) {
            assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{sql}: {error}");
        }
    }
}

#[tokio::test]
async fn p6_rows_bytes_and_time_have_bounds() {
    for place in Place::all("p6_rows_bytes_and_time_have_bounds") {
        let documents = documents(&place, 300).await;
        let answer = documents.select("SELECT path FROM documents").await.unwrap();
        assert_eq!((answer.rows.len(), answer.truncated), (200, true));
        let answer = documents.select("SELECT path FROM documents LIMIT 200").await.unwrap();
        assert_eq!((answer.rows.len(), answer.truncated), (200, false));
        let long = format!("SELECT '{}' FROM documents LIMIT 100", "é".repeat(1500));
        let answer = documents.select(&long).await.unwrap();
        assert!(answer.truncated && answer.rows.len() < 30, "{}", answer.rows.len());
        assert_eq!(answer.rows[0][0].as_str().map(|text| text.chars().count()), Some(1001));
        let started = Instant::now();
        let error = documents
        .select("SELECT count(*) FROM documents a, documents b, documents c, documents d WHERE a.bytes + b.bytes + c.bytes > d.bytes * 9")
        .await
        .unwrap_err();
        assert!(error.feedback().contains("was ended after 2 s"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(10));
        // The connection is as good as before.
        for _ in 0..4 {
            assert_eq!(
                documents.select("SELECT count(*) FROM documents").await.unwrap().rows,
                [[Value::from(300)]]
            );
        }
    }
}
