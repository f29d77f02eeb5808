//! PostgreSQL in a program that was built without the feature `postgres`.

use std::io;

use registry_core::store::StoreError;
use serde_json::value::RawValue;
use toolrack_stores::SqlStore;

use super::features::missing;

/// Tables of a part; here they are nowhere.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) name: &'static str,
}

impl Layout {
    pub(super) const STORE: Self = Self { name: "store" };
}

pub(super) const DOCUMENTS: Option<Layout> = None;

pub(super) async fn open(_: &str, _: String) -> Result<SqlStore, String> {
    Err(missing("postgres"))
}

#[cfg(feature = "documents")]
pub(super) fn documents(_: &str) -> Result<toolrack_documents::Documents, String> {
    Err(missing("postgres"))
}

pub(super) async fn size_of_tables(_: &str, _: &[Layout]) -> Result<u64, StoreError> {
    Err(StoreError::invalid(missing("postgres")))
}

pub(super) async fn dump_tables(
    _: &str,
    _: &[Layout],
    _: &mut (dyn FnMut(&'static str, &str, &str) -> io::Result<()> + Send),
) -> Result<Vec<(&'static str, usize)>, StoreError> {
    Err(StoreError::invalid(missing("postgres")))
}

pub(super) async fn load_tables(
    _: &str,
    _: &[(Layout, usize)],
    _: bool,
    _: &mut (dyn FnMut() -> io::Result<Option<(String, Box<RawValue>)>> + Send),
) -> Result<(), StoreError> {
    Err(StoreError::invalid(missing("postgres")))
}
