//! The keys that sign heads of the audit: Ed25519 (RFC 8032).

use std::{fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use crate::cli::secret_file;

/// What stands before the 32 bytes of a private key in PKCS #8 (RFC 8410).
const PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Signs.
pub(in crate::cli) struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// The key in a file, which is made where there is none: PKCS #8 as PEM, as `openssl genpkey -algorithm ed25519` writes it.
    ///
    /// # Errors
    /// A text that names the file.
    pub(in crate::cli) fn open(file: &Path) -> Result<Self, String> {
        if let Some(key) = Self::read(file)? {
            return Ok(key);
        }
        Self::create(file)
            .map_err(|error| format!("audit.key_file: cannot write {}: {error}", file.display()))?;
        Self::read(file)?.ok_or_else(|| format!("audit.key_file: {} is gone again", file.display()))
    }

    /// The key in a file; `None` where there is no file.
    ///
    /// # Errors
    /// A text that names the file.
    pub(super) fn read(file: &Path) -> Result<Option<Self>, String> {
        let named = |fault: &str| format!("audit.key_file: {}: {fault}", file.display());
        let pem = match fs::read_to_string(file) {
            Ok(pem) => pem,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(named(&error.to_string())),
        };
        let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
        let key = STANDARD.decode(base64).ok();
        let key = key.and_then(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok());
        let such =
            "this is no Ed25519 key; make one with `openssl genpkey -algorithm ed25519`, or remove the file";
        key.map(|key| Some(Self(key))).ok_or_else(|| named(such))
    }

    /// The key in a file that a server has made.
    ///
    /// # Errors
    /// When there is none, or what is there is none.
    pub(super) fn existing(file: &Path) -> Result<Self, String> {
        let missing =
            || format!("there is no key in {} yet; a server makes it when it starts", file.display());
        Self::read(file)?.ok_or_else(missing)
    }

    fn create(file: &Path) -> std::io::Result<()> {
        let der = [&PKCS8[..], &secret_file::random()?].concat();
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", STANDARD.encode(der));
        secret_file::create(file, &pem)
    }

    pub(super) fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.0.sign(message))
    }

    pub(super) fn public(&self) -> PublicKey {
        PublicKey { key: self.0.public_key().as_ref().to_vec(), until: None }
    }
}

/// Checks what was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PublicKey {
    key: Vec<u8>,
    /// Until when it has signed heads (UTC), where another has followed it.
    until: Option<Timestamp>,
}

impl PublicKey {
    /// From the 32 bytes in base64.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let key = STANDARD.decode(text.trim()).ok().filter(|key| key.len() == 32);
        key.map(|key| Self { key, until: None })
            .ok_or_else(|| "this is no public key; `toolrack audit key` prints one".to_owned())
    }

    /// The same key, which has signed heads until then.
    pub(super) fn until(self, at: Timestamp) -> Self {
        Self { until: Some(at), ..self }
    }

    /// Whether it has signed heads at that time.
    pub(super) fn is_of(&self, at: Timestamp) -> bool {
        self.until.is_none_or(|until| at <= until)
    }

    pub(super) fn has_signed(&self, message: &[u8], signature: &str) -> bool {
        STANDARD.decode(signature).is_ok_and(|signature| {
            UnparsedPublicKey::new(&ED25519, &self.key).verify(message, &signature).is_ok()
        })
    }
}

impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&STANDARD.encode(&self.key))
    }
}
