//! Stores that an older program has made: nothing that was added is lost.

use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use toolrack_documents::{DocumentFilter, Documents, Graph, GraphQuery};

use crate::{
    finding::{TEXTS, finds_all},
    place::Place,
};

/// Two documents: a model has been through the passage of the first.
const SQLITE_ROWS: &str = "
    INSERT INTO document VALUES
        (7, 'tea.md', 'Tea', 'markdown', 9, 1, NULL, NULL, '2026-01-01T00:00:00Z', 'x', '{}'),
        (8, 'dog.txt', 'dog', 'text', 9, 1, NULL, NULL, '2026-01-01T00:00:00Z', 'y', '{}');
    INSERT INTO chunk VALUES
        (41, 7, 0, 'Tea', 3, 3, 'The Tea House uses Uji Leaves.'), (42, 8, 0, '', 1, 1, 'The Hound uses Bones.');
    INSERT INTO chunk_words (rowid, title, section, text) SELECT id, 'Tea tea.md', section, text FROM chunk;
    INSERT INTO entity VALUES
        (1, 'tea house', 'Tea House', 'place'), (2, 'uji leaves', 'Uji Leaves', 'product'), (3, 'x.md', 'x.md', 'link'),
        (4, 'hound', 'Hound', 'name'), (5, 'bones', 'Bones', 'name');
    INSERT INTO mention VALUES (1, 41, 2), (2, 41, 1), (3, 41, 1), (4, 42, 1), (5, 42, 1);
    INSERT INTO relation VALUES (1, 1, 'uses', 2, 41), (2, 1, 'links_to', 3, 41), (3, 4, 'uses', 5, 42);";

const POSTGRES_ROWS: &str = "
    INSERT INTO document OVERRIDING SYSTEM VALUE VALUES
        (7, 'default', 'tea.md', 'Tea', 'markdown', 9, 1, 6, NULL, NULL, '2026-01-01T00:00:00Z', 'x', '{}'),
        (8, 'default', 'dog.txt', 'dog', 'text', 9, 1, 4, NULL, NULL, '2026-01-01T00:00:00Z', 'y', '{}');
    INSERT INTO document_chunk OVERRIDING SYSTEM VALUE VALUES
        (41, 7, 0, 'Tea', 3, 3, 'The Tea House uses Uji Leaves.'), (42, 8, 0, '', 1, 1, 'The Hound uses Bones.');
    INSERT INTO document_words SELECT id, 'default', 6, to_tsvector('toolrack_words', text) FROM document_chunk;
    INSERT INTO document_entity OVERRIDING SYSTEM VALUE VALUES
        (1, 'default', 'tea house', 'Tea House', 'place'), (2, 'default', 'uji leaves', 'Uji Leaves', 'product'),
        (3, 'default', 'x.md', 'x.md', 'link'), (4, 'default', 'hound', 'Hound', 'name'),
        (5, 'default', 'bones', 'Bones', 'name');
    INSERT INTO document_mention VALUES (1, 41, 2), (2, 41, 1), (3, 41, 1), (4, 42, 1), (5, 42, 1);
    INSERT INTO document_relation VALUES (1, 'uses', 2, 41), (1, 'links_to', 3, 41), (4, 'uses', 5, 42);
    INSERT INTO document_extraction VALUES (41, 'm');
    INSERT INTO document_embedding VALUES (41, 'default', 'm', 1, 1, '\\x0000803f');
    CREATE TABLE toolrack_documents_schema (version BIGINT NOT NULL);
    INSERT INTO toolrack_documents_schema VALUES (1);";

async fn make_file(folder: &std::path::Path, scripts: &[&'static str]) -> Documents {
    let file = folder.join("documents.db");
    let url = format!("sqlite:{}?mode=rwc", file.display());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    for script in scripts {
        sqlx::raw_sql(*script).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
    Documents::in_file(file)
}

async fn graph(documents: &Documents, entity: &str) -> Option<Graph> {
    documents.graph(&GraphQuery { entity: entity.into(), depth: 2, relation: None, limit: 9 }).await.ok()
}

/// What was added is found and can be read by models; of the graph there is what a model extracted.
async fn is_whole(documents: &Documents) {
    let all = DocumentFilter::default();
    for (question, path) in [("which leaves", "tea.md"), ("what has the hound", "dog.txt")] {
        let found = documents.search(question, 1, &all).await.unwrap();
        assert_eq!(found.first().map(|passage| passage.path.as_str()), Some(path), "{question}");
    }
    assert_eq!(documents.list(&all).await.unwrap().len(), 2);
    assert_eq!(
        documents.select("SELECT count(*) FROM documents").await.unwrap().rows,
        [[serde_json::json!(2)]]
    );
    assert!(graph(documents, "Hound").await.is_none(), "no model has read of it");
    assert!(graph(documents, "x.md").await.is_none(), "no link is a name");
}

async fn has_graph(documents: &Documents) {
    let shown: Vec<String> = graph(documents, "Tea House")
        .await
        .unwrap()
        .relations
        .iter()
        .map(|it| format!("{} {} {}", it.subject, it.relation, it.object))
        .collect();
    assert_eq!(shown, ["Tea House uses Uji Leaves"]);
    documents.refresh().await;
    assert!(documents.graph_for_request(&registry_core::ToolContext::default()).is_ok());
    let unread = documents.unextracted(9, &DocumentFilter::default()).await.unwrap();
    assert_eq!(unread.iter().map(|passage| passage.id).collect::<Vec<_>>(), [42]);
}

#[tokio::test]
async fn p6_a_file_of_the_first_version_is_brought_up() {
    let folder = tempfile::tempdir().unwrap();
    let schema = include_str!("../../src/sqlite/schema_1.sql");
    let documents = make_file(folder.path(), &[schema, SQLITE_ROWS, "PRAGMA user_version = 1"]).await;
    is_whole(&documents).await;
    assert_eq!(documents.unextracted(9, &DocumentFilter::default()).await.unwrap().len(), 2);
    assert!(graph(&documents, "Tea House").await.is_none());
}

#[tokio::test]
async fn p6_a_file_of_the_second_version_keeps_its_vectors_and_what_a_model_extracted() {
    let folder = tempfile::tempdir().unwrap();
    let scripts = [
        include_str!("../../src/sqlite/schema_1.sql"),
        include_str!("../../src/sqlite/schema_2.sql"),
        SQLITE_ROWS,
        "INSERT INTO extraction VALUES (41, 'm');
         INSERT INTO embedding VALUES (41, 'm', 2, 1, x'0000803f00000000'), (42, 'm', 2, 1, x'000000000000803f');
         PRAGMA user_version = 2",
    ];
    let documents = make_file(folder.path(), &scripts).await;
    is_whole(&documents).await;
    has_graph(&documents).await;
    let near = documents.nearest("m", &[0.1, 1.0], 2, &DocumentFilter::default()).await.unwrap();
    assert_eq!(near.iter().map(|passage| passage.path.as_str()).collect::<Vec<_>>(), ["dog.txt", "tea.md"]);
}

#[tokio::test]
async fn p6_a_database_of_the_first_version_is_brought_up() {
    for place in Place::all("p6_a_database_of_the_first_version_is_brought_up") {
        let Place::Postgres(url) = &place else { continue };
        let mut connection = PgConnection::connect(url).await.unwrap();
        let schema = include_str!("../../src/postgres/schema_1.sql");
        for script in [schema, POSTGRES_ROWS] {
            sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut connection).await.unwrap();
        }
        let documents = place.open();
        is_whole(&documents).await;
        has_graph(&documents).await;
        assert_eq!(documents.without_vectors("m", 9).await.unwrap().len(), 2, "vectors are made anew");
    }
}

/// The words of some scripts are found in files of before, too.
#[tokio::test]
async fn p6_a_file_of_the_fourth_version_is_looked_up_by_letters() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (1..).zip(TEXTS).map(|(id, (path, text))| format!(
        "INSERT INTO document VALUES ({id}, '{path}', 't', 'text', 9, 1, NULL, NULL, '2026-01-01T00:00:00Z', '{id}', '{{}}', 9);
         INSERT INTO chunk VALUES ({id}, {id}, 0, '', 1, 1, '{text}');
         INSERT INTO chunk_words (rowid, title, section, text) VALUES ({id}, 't {path}', '', '{text}');"
    )).collect();
    let file = folder.path().join("documents.db");
    let mut connection =
        SqliteConnection::connect(&format!("sqlite:{}?mode=rwc", file.display())).await.unwrap();
    for script in [
        include_str!("../../src/sqlite/schema_1.sql"),
        include_str!("../../src/sqlite/schema_2.sql"),
        include_str!("../../src/sqlite/schema_3.sql"),
        include_str!("../../src/sqlite/schema_4.sql"),
        &rows,
        "PRAGMA user_version = 4",
    ] {
        sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
    finds_all(&Documents::in_file(file)).await;
}

#[tokio::test]
async fn p6_a_database_of_the_third_version_is_looked_up_by_letters() {
    for place in Place::all("p6_a_database_of_the_third_version_is_looked_up_by_letters") {
        let Place::Postgres(url) = &place else { continue };
        let rows: String = (1..).zip(TEXTS).map(|(id, (path, text))| format!(
            "INSERT INTO document OVERRIDING SYSTEM VALUE
                 VALUES ({id}, 'default', '{path}', 't', 'text', 9, 1, NULL, NULL, '2026-01-01T00:00:00Z', '{id}', '{{}}', 9);
             INSERT INTO document_chunk OVERRIDING SYSTEM VALUE VALUES ({id}, {id}, 0, '', 1, 1, '{text}');
             INSERT INTO document_words VALUES ({id}, 'default', to_tsvector('toolrack_words', '{text}'));"
        )).collect();
        let version = "CREATE TABLE toolrack_documents_schema (version BIGINT NOT NULL);
                       INSERT INTO toolrack_documents_schema VALUES (3);";
        let mut connection = PgConnection::connect(url).await.unwrap();
        for script in [
            include_str!("../../src/postgres/schema_1.sql"),
            include_str!("../../src/postgres/schema_2.sql"),
            include_str!("../../src/postgres/schema_3.sql"),
            &rows,
            version,
        ] {
            sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut connection).await.unwrap();
        }
        finds_all(&place.open()).await;
    }
}
