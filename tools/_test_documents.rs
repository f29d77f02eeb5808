//! Documents for tests.

use std::path::Path;

use toolrack_documents::{DocumentKind, Documents, read};

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
