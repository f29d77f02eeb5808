//! How the end of the audit is proven, and how long records are kept.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::SignedDuration;
use serde::Deserialize;

use crate::cli::audit::Place;

/// The file of signed heads in the data folder.
const HEADS: &str = "audit-heads.jsonl";
/// The key that signs them, in the data folder.
const KEY: &str = "audit-key.pem";

/// Signed heads of the audit, and its retention.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSettings {
    /// Where signed heads go: `file:PATH`, `syslog`, `syslog://HOST:PORT`, `https://…`, `sqlite:FILE`, `postgres://…`; by default a file in the data folder.
    pub heads: Option<Vec<String>>,
    /// How often heads are signed, in seconds.
    pub heads_seconds: u64,
    /// The private key: PKCS #8 as PEM. It is made where there is none; by default a file in the data folder.
    pub key_file: Option<PathBuf>,
    /// How long records are kept, in days; 0 keeps all.
    pub retention_days: u32,
}

impl AuditSettings {
    /// Where signed heads go.
    ///
    /// # Errors
    /// Names the setting.
    pub(in crate::cli) fn places(&self, data: &Path) -> Result<Vec<Place>, String> {
        match &self.heads {
            None => Ok(vec![Place::File(data.join(HEADS))]),
            Some(heads) => heads
                .iter()
                .map(|text| Place::parse(text).map_err(|fault| format!("audit.heads: {fault}")))
                .collect(),
        }
    }

    /// The file with the private key.
    pub fn key_file(&self, data: &Path) -> PathBuf {
        self.key_file.clone().unwrap_or_else(|| data.join(KEY))
    }

    /// How often heads are signed.
    pub fn interval(&self) -> Duration {
        Duration::from_secs(self.heads_seconds)
    }

    /// How long records are kept; `None` for all.
    pub fn retention(&self) -> Option<SignedDuration> {
        (self.retention_days > 0).then(|| SignedDuration::from_hours(i64::from(self.retention_days) * 24))
    }

    /// Checks values that parse but are invalid.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.heads_seconds == 0 {
            return Err("audit.heads_seconds: write 1 or more, or `heads = []` to sign none".to_owned());
        }
        self.places(Path::new("")).map(drop)
    }
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self { heads: None, heads_seconds: 10, key_file: None, retention_days: 0 }
    }
}
