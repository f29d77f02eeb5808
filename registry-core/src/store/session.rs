//! Browsers in which people are signed in.

use std::io;

use jiff::{SignedDuration, Timestamp};

use super::hash_key;
use crate::id::random_id;

/// How the secret of every session begins, so that it is not taken for a key.
pub const SESSION_PREFIX: &str = "trs_";

/// A browser in which somebody is signed in. The secret that the browser has is never kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Names the session; no secret.
    pub id: String,
    /// The tenant it opens.
    pub tenant: String,
    /// The user who is signed in.
    pub user: String,
    /// SHA-256 of the secret in hex.
    pub sha256: String,
    /// When it began (UTC).
    pub created_at: Timestamp,
    /// From when on it opens nothing (UTC).
    pub expires_at: Timestamp,
}

impl Session {
    /// A new session with a secret of 256 random bits, which is in no place but here.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn start(
        tenant: impl Into<String>,
        user: impl Into<String>,
        now: Timestamp,
        lasts: SignedDuration,
    ) -> io::Result<(Self, String)> {
        let secret = format!("{SESSION_PREFIX}{}{}", random_id()?, random_id()?);
        let sha256 = hash_key(&secret);
        let id = sha256.get(..12).unwrap_or(&sha256).to_owned();
        let expires_at = now.checked_add(lasts).unwrap_or(Timestamp::MAX);
        Ok((
            Self { id, tenant: tenant.into(), user: user.into(), sha256, created_at: now, expires_at },
            secret,
        ))
    }
}
