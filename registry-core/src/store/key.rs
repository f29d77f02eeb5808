//! Makes keys and finds them again by their hash.

use std::io;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::ApiKey;
use crate::id::random_id;

/// How every key begins, so that one that has leaked can be recognised.
pub const KEY_PREFIX: &str = "trk_";

/// The hash by which a key is kept.
pub fn hash_key(secret: &str) -> String {
    format!("{:x}", Sha256::digest(secret))
}

impl ApiKey {
    /// A new key of 256 random bits, and its secret, which is in no place but here: it is shown once.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn generate(
        tenant: impl Into<String>,
        user: impl Into<String>,
        delegate: bool,
        now: Timestamp,
    ) -> io::Result<(Self, String)> {
        let secret = format!("{KEY_PREFIX}{}{}", random_id()?, random_id()?);
        let sha256 = hash_key(&secret);
        let id = sha256.get(..12).unwrap_or(&sha256).to_owned();
        let key = Self {
            id,
            tenant: tenant.into(),
            user: user.into(),
            sha256,
            delegate,
            created_at: now,
            revoked_at: None,
        };
        Ok((key, secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_long_random_and_found_by_its_hash() {
        let (one, secret) = ApiKey::generate("default", "ada", false, Timestamp::UNIX_EPOCH).unwrap();
        let (other, _) = ApiKey::generate("default", "ada", false, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(secret.len(), KEY_PREFIX.len() + 64);
        assert_eq!(hash_key(&secret), one.sha256);
        assert_eq!(hash_key("a"), "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
        assert!(one.id != other.id && !format!("{one:?}").contains(&secret));
    }
}
