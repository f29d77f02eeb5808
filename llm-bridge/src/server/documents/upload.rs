//! Who may add documents over HTTP, and how many.

use serde::{Deserialize, Serialize};

/// The limit of documents of a user.
const KEPT: u64 = 2000;
/// The limit of what is kept of them, in MiB.
const KEPT_MEBIBYTES: u64 = 1024;

/// Who may add documents over HTTP. Users list all and remove their own; admins remove any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Upload {
    /// Users and above.
    #[default]
    User,
    /// Admins.
    Admin,
    /// Nobody.
    Off,
}

/// How much each user may add over HTTP. It holds for all that a user adds at once, on however many servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadLimits {
    /// How many documents.
    pub(super) documents: u64,
    /// How many MiB are kept of them: passages, words and vectors by which they are found, metadata; or the files, where they are larger.
    pub(super) mebibytes: u64,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self { documents: KEPT, mebibytes: KEPT_MEBIBYTES }
    }
}

impl UploadLimits {
    /// So many documents, of which so many MiB are kept; by default 2000 and 1024.
    pub fn new(documents: Option<u64>, mebibytes: Option<u64>) -> Self {
        let Self { documents: kept, mebibytes: size } = Self::default();
        Self { documents: documents.unwrap_or(kept), mebibytes: mebibytes.unwrap_or(size) }
    }
}
