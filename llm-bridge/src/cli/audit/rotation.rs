//! Another key in place of the one that signs heads. What the one before has signed until then stays proven: it and the new one have both signed that
//! one follows the other, in a line of JSON beside the key.

use std::{
    ffi::OsString,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use jiff::Timestamp;
use registry_core::{
    DEFAULT_TENANT,
    clock::{Clock, SystemClock},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::key::{PublicKey, SigningKey};
use crate::{
    cli::{out::print_line, settings::Settings},
    recorded::Change,
    server::{KeySuccession, SignAudit},
};

/// How much later than it was retired a key may have signed: a server notices it when it signs next.
const NOTICED: jiff::SignedDuration = jiff::SignedDuration::from_secs(60);

/// What both keys sign.
#[derive(Debug, Serialize, Deserialize)]
struct Statement {
    /// The one before.
    public_key: String,
    successor: String,
    /// Until when the one before has signed (UTC).
    retired_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
struct Rotation {
    #[serde(flatten)]
    statement: Statement,
    /// By the one before.
    signature: String,
    /// By its successor.
    accepted: String,
}

impl Statement {
    fn message(&self) -> Vec<u8> {
        // Texts and times can always be written as JSON.
        format!("toolrack audit key\n{}", serde_json::to_string(self).unwrap_or_default()).into_bytes()
    }
}

impl Rotation {
    /// The key before, if both have signed and the successor is trusted.
    fn retired(&self, trusted: &[PublicKey]) -> Option<PublicKey> {
        let (before, message) =
            (PublicKey::parse(&self.statement.public_key).ok()?, self.statement.message());
        let successor = trusted.iter().find(|key| key.to_string() == self.statement.successor)?;
        let is_signed =
            before.has_signed(&message, &self.signature) && successor.has_signed(&message, &self.accepted);
        is_signed.then(|| before.until(self.statement.retired_at + NOTICED))
    }
}

/// A file beside the key.
fn beside(key_file: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(key_file);
    name.push(end);
    name.into()
}

/// A key that is about to take the place of another.
pub(in crate::cli) struct Successor {
    key_file: PathBuf,
    before: SigningKey,
    after: SigningKey,
}

impl Successor {
    /// A new key, for the place of the one in a file. It waits in a file beside it.
    ///
    /// # Errors
    /// When there is none yet, or a file cannot be written.
    pub(super) fn new(key_file: PathBuf) -> Result<Self, String> {
        let before = SigningKey::existing(&key_file)?;
        let after = SigningKey::open(&beside(&key_file, ".new"))?;
        Ok(Self { key_file, before, after })
    }

    /// What the audit has of it.
    pub(in crate::cli) fn change(&self) -> Change {
        let [before, after] = self.public_keys();
        Change {
            command: "toolrack audit rotate-key",
            tenant: DEFAULT_TENANT.to_owned(),
            arguments: json!({"before": before, "after": after}),
        }
    }

    /// Of the one before and of this one.
    fn public_keys(&self) -> [String; 2] {
        [&self.before, &self.after].map(|key| key.public().to_string())
    }

    /// Puts the key into its place and prints its public key.
    ///
    /// # Errors
    /// When a file cannot be written: then the one before stays.
    pub(in crate::cli) fn succeed(self) -> Result<ExitCode, String> {
        print_line(self.put()?).map(|_| ExitCode::SUCCESS)
    }

    fn put(self) -> Result<PublicKey, String> {
        let Self { key_file, before, after } = self;
        let statement = Statement {
            public_key: before.public().to_string(),
            successor: after.public().to_string(),
            retired_at: SystemClock.now(),
        };
        let message = statement.message();
        let rotation =
            Rotation { statement, signature: before.sign(&message), accepted: after.sign(&message) };
        let retired = beside(&key_file, ".retired");
        let named = |error: std::io::Error| format!("cannot write {}: {error}", retired.display());
        let mut line = serde_json::to_vec(&rotation).unwrap_or_default();
        line.push(b'\n');
        // Before the key: a line about one that never came into its place says nothing.
        let mut list = fs::OpenOptions::new().create(true).append(true).open(&retired).map_err(named)?;
        list.write_all(&line).and_then(|()| list.sync_all()).map_err(named)?;
        let put = fs::rename(beside(&key_file, ".new"), &key_file);
        put.map_err(|error| format!("cannot write {}: {error}", key_file.display()))?;
        Ok(after.public())
    }
}

/// The keys of a running server.
pub(in crate::cli) struct ServedKeys {
    key_file: PathBuf,
}

impl ServedKeys {
    pub(in crate::cli) fn new(settings: &Settings) -> Self {
        Self { key_file: settings.audit.key_file(&settings.data_dir) }
    }
}

impl SignAudit for ServedKeys {
    fn public_key(&self) -> Result<Option<String>, String> {
        Ok(SigningKey::read(&self.key_file)?.map(|key| key.public().to_string()))
    }

    fn successor(&self) -> Result<KeySuccession, String> {
        let successor = Successor::new(self.key_file.clone())?;
        let [before, after] = successor.public_keys();
        Ok(KeySuccession { before, after, put: Box::new(|| successor.put().map(drop)) })
    }
}

/// The public key of the one in a file, where there is one, and of those before it.
///
/// # Errors
/// When a file cannot be read, or is no key.
pub(super) fn public_keys(key_file: &Path) -> Result<Vec<PublicKey>, String> {
    let Some(own) = SigningKey::read(key_file)? else { return Ok(Vec::new()) };
    let retired = beside(key_file, ".retired");
    let lines = match fs::read_to_string(&retired) {
        Ok(lines) => lines,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("{}: {error}", retired.display())),
    };
    let mut keys = vec![own.public()];
    // Each is vouched for by the one after it. What is no such line is passed over, as is one whose key never came into its place.
    for rotation in lines.lines().rev().filter_map(|line| serde_json::from_str::<Rotation>(line).ok()) {
        keys.extend(rotation.retired(&keys));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::cli::audit::head::{HeadStatement, read_line};

    #[test]
    fn b21_a_key_that_another_has_followed_signs_no_later_head() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.pem");
        let before = SigningKey::open(&file).unwrap();
        let head = |seconds: i64, key: &SigningKey| {
            let statement = HeadStatement {
                tenant: "default".to_owned(),
                server: "main".to_owned(),
                seq: 1,
                sha256: "1".to_owned(),
                ts: SystemClock.now() + SignedDuration::from_secs(seconds),
                removed: false,
            };
            statement.signed(key)
        };
        let after = Successor::new(file.clone()).unwrap().put().unwrap();
        let keys = public_keys(&file).unwrap();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0], after);
        assert!(read_line(&head(-3600, &before), &keys).is_ok());
        assert!(read_line(&head(120, &before), &keys).is_err());
        assert!(read_line(&head(120, &SigningKey::open(&file).unwrap()), &keys).is_ok());
    }
}
