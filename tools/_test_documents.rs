//! Documents for tests.

use std::path::Path;

use toolrack_documents::{
    DocumentFilter, DocumentKind, Documents, Extracted, ExtractedName, ExtractedRelation, read,
};

/// A few documents in a file in that folder.
pub(crate) async fn documents(folder: &Path) -> Documents {
    let documents = Documents::in_file(folder.join("documents.db"));
    let modified = Some("2026-03-01T12:00:00Z".parse().unwrap());
    for (path, kind, text) in [
        (
            "drinks/tea.md",
            DocumentKind::Markdown,
            "# Tea\n\n## Green\n\nGreen tea is steeped at 75 degrees. The Kyoto Tea House uses Uji Leaves.\n\n\
             ## Other\n\nAt noon the Kyoto Tea House has Espresso too. Uji Leaves is part of Japan.\n",
        ),
        ("prices.csv", DocumentKind::Csv, "drink,price\ngreen tea,3\nespresso,2\n"),
        ("history.txt", DocumentKind::Text, "Long ago there was only water.\n"),
    ] {
        documents.add(read::document(path, kind, text.as_bytes(), modified).unwrap()).await.unwrap();
    }
    documents
}

/// Keeps relations as a model extracts them: of each passage those whose names it has.
pub(crate) async fn extract(documents: &Documents, said: &[[&str; 3]]) {
    let unread = documents.unextracted(100, &DocumentFilter::default()).await.unwrap();
    let passages = unread.into_iter().map(|passage| {
        let is_there = |[subject, _, object]: &&[&str; 3]| {
            passage.text.contains(subject) && passage.text.contains(object)
        };
        let said: Vec<_> = said.iter().filter(is_there).collect();
        let name = |name: &str| ExtractedName { name: name.into(), kind: "name".into() };
        let relation = |[subject, relation, object]: &[&str; 3]| ExtractedRelation {
            subject: (*subject).into(),
            relation: (*relation).into(),
            object: (*object).into(),
        };
        let names = said.iter().flat_map(|[subject, _, object]| [name(subject), name(object)]).collect();
        (passage.id, Extracted { names, relations: said.iter().map(|said| relation(said)).collect() })
    });
    documents.keep_extracted("a model", passages.collect()).await.unwrap();
}
