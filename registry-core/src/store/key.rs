//! Makes keys and finds them again by their hash.

use std::io;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::ApiKey;
use crate::id::random_id;

/// The use of a key is noted once in this time.
pub const KEY_USE_NOTED: SignedDuration = SignedDuration::from_secs(60);

/// How every key begins, so that one that has leaked can be recognised.
pub const KEY_PREFIX: &str = "trk_";

/// The hash by which a key is kept.
pub fn hash_key(secret: &str) -> String {
    format!("{:x}", Sha256::digest(secret))
}

impl ApiKey {
    /// A new key of 256 random bits that does not expire, and its secret, which is in no place but here: it is shown once.
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
            name: String::new(),
            sha256,
            delegate,
            created_at: now,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        };
        Ok((key, secret))
    }

    /// Whether it opens something: it is neither revoked nor expired.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|until| until > now)
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

    #[test]
    fn a_key_is_valid_until_it_expires_or_is_revoked() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (key, _) = ApiKey::generate("default", "ada", false, at(0)).unwrap();
        let expiring = ApiKey { expires_at: Some(at(10)), ..key.clone() };
        let revoked = ApiKey { revoked_at: Some(at(5)), ..expiring.clone() };
        let valid = |key: &ApiKey| [4, 9, 10].map(|second| key.is_valid(at(second)));
        assert_eq!([&key, &expiring, &revoked].map(valid), [[true; 3], [true, true, false], [false; 3]]);
    }
}
