//! What is kept in PostgreSQL.

#[cfg(feature = "documents")]
use toolrack_documents::{Documents, POSTGRES_SCHEMA, POSTGRES_VERSION_TABLE};
use toolrack_stores::{PostgresSettings, SqlStore};

pub(super) use toolrack_stores::backup::{Layout, dump_tables, load_tables, size_of_tables};

/// The tables of documents.
#[cfg(feature = "documents")]
pub(super) const DOCUMENTS: Option<Layout> =
    Some(Layout { name: "documents", version_table: POSTGRES_VERSION_TABLE, steps: &POSTGRES_SCHEMA });
#[cfg(not(feature = "documents"))]
pub(super) const DOCUMENTS: Option<Layout> = None;

pub(super) async fn open(url: &str, server: String) -> Result<SqlStore, String> {
    Ok(PostgresSettings::new(url, server).open().await?)
}

#[cfg(feature = "documents")]
pub(super) fn documents(url: &str) -> Result<Documents, String> {
    Documents::in_postgres(url)
}
