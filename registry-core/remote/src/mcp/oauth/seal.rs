//! Sealing what opens accounts: ChaCha20-Poly1305 (RFC 8439) with a key that is kept outside of the database.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

/// The key that connections are sealed with: 32 random bytes.
pub struct SealingKey(LessSafeKey);

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey")
    }
}

impl SealingKey {
    /// How long the key is, in bytes.
    pub const LEN: usize = 32;

    /// From its bytes.
    ///
    /// # Errors
    /// Where they are not so many.
    pub fn new(bytes: &[u8]) -> Result<Self, String> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, bytes);
        let key = key.map_err(|_| format!("the key has to have {} bytes", Self::LEN))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Seals a value for one place. It can be opened for that place alone.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub(super) fn seal(&self, place: &[&str], value: &impl Serialize) -> Result<String, String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| "the system gives no random numbers")?;
        let mut sealed = serde_json::to_vec(value).map_err(|error| error.to_string())?;
        let nonce_used = Nonce::assume_unique_for_key(nonce);
        let done = self.0.seal_in_place_append_tag(nonce_used, Aad::from(bound(place)), &mut sealed);
        done.map_err(|_| "it cannot be sealed")?;
        Ok(URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// What was sealed for a place; `None` for what was not, or with another key.
    pub(super) fn open<T: DeserializeOwned>(&self, place: &[&str], sealed: &str) -> Option<T> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self.0.open_in_place(nonce, Aad::from(bound(place)), sealed).ok()?;
        serde_json::from_slice(opened).ok()
    }
}

/// As JSON, so that no two places are the same text.
fn bound(place: &[&str]) -> String {
    json!(place).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_what_is_sealed_opens_with_its_key_in_its_place_alone() {
        let (key, other) = (SealingKey::new(&[7; 32]).unwrap(), SealingKey::new(&[8; 32]).unwrap());
        let sealed = key.seal(&["a", "b"], &"secret").unwrap();
        assert!(!sealed.contains("secret") && sealed != key.seal(&["a", "b"], &"secret").unwrap());
        assert_eq!(key.open::<String>(&["a", "b"], &sealed).as_deref(), Some("secret"));
        assert_eq!(key.open::<String>(&["ab", ""], &sealed), None);
        assert_eq!(other.open::<String>(&["a", "b"], &sealed), None);
        for wrong in ["", "AAAA", "%", &sealed[1..], &sealed[..sealed.len() - 2]] {
            assert_eq!(key.open::<String>(&["a", "b"], wrong), None, "{wrong}");
        }
        assert!(SealingKey::new(&[7; 31]).is_err());
    }
}
