//! Signed heads of the audit: where a chain ended at a time. Kept where the database's owner cannot write, they show what was cut off or
//! hashed anew.
//!
//! A signed head is a line of JSON. The signature, in base64, is over `toolrack audit head`, a newline, and the line's JSON without the
//! member `signature`.

use std::{collections::BTreeMap, fs, path::Path};

use jiff::Timestamp;
use registry_core::guard::audit::{chain::Head, log::NotedHeads};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use toolrack_stores::HeadStore;

use super::{
    key::{PublicKey, SigningKey},
    sending::Place,
};

/// How many heads of each chain are read from a database: the last says what all before it say.
const MAX_READ: usize = 10_000;

/// What is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeadStatement {
    pub(super) tenant: String,
    pub(super) server: String,
    /// The number of the chain's last record.
    pub(super) seq: u64,
    /// Its hash.
    pub(super) sha256: String,
    /// When it was signed.
    pub(super) ts: Timestamp,
    /// Whether this record and those before it were removed because they had become too old.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) removed: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SignedHead {
    #[serde(flatten)]
    pub(super) statement: HeadStatement,
    signature: String,
}

impl HeadStatement {
    fn message(&self) -> Vec<u8> {
        // Texts and numbers can always be written as JSON.
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("toolrack audit head\n{json}").into_bytes()
    }

    /// As a line, without its end.
    pub(super) fn signed(self, key: &SigningKey) -> String {
        let signature = key.sign(&self.message());
        serde_json::to_string(&SignedHead { statement: self, signature }).unwrap_or_default()
    }

    pub(super) fn head(&self) -> Head {
        Head { seq: self.seq, sha256: self.sha256.clone() }
    }
}

/// Reads a line.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read_line(line: &str, keys: &[PublicKey]) -> Result<HeadStatement, String> {
    let signed: SignedHead =
        serde_json::from_str(line).map_err(|error| format!("this is no signed head: {error}"))?;
    let message = signed.statement.message();
    let is_by =
        |key: &&PublicKey| key.is_of(signed.statement.ts) && key.has_signed(&message, &signed.signature);
    match keys.iter().any(|key| is_by(&key)) {
        true => Ok(signed.statement),
        false => {
            Err("it is not signed by this server's key; name the key of another with --public-key".to_owned())
        }
    }
}

/// Reads a file of signed heads and the one before it; there may be none of either.
///
/// # Errors
/// With file and line: when a file cannot be read, or a line that is whole is no head that one of the keys has signed.
pub(super) fn read_file(file: &Path, keys: &[PublicKey]) -> Result<Vec<HeadStatement>, String> {
    let mut heads = Vec::new();
    for file in [super::sending::before(file), file.to_owned()] {
        let text = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("{}: {error}", file.display())),
        };
        let text = String::from_utf8_lossy(&text);
        // A full disk or a loss of power has left a part of a head, which vouches for nothing.
        let is_whole = |(line, _): &(&str, usize)| serde_json::from_str::<IgnoredAny>(line).is_ok();
        let (whole, cut_off): (Vec<_>, Vec<_>) = text.lines().zip(1..).partition(is_whole);
        // Where none is whole, it is another file.
        let lines = if whole.is_empty() {
            cut_off
        } else {
            for (_, line) in cut_off {
                tracing::warn!(file = %file.display(), line, "audit_head_cut_off");
            }
            whole
        };
        heads.extend(read_lines(lines, keys).map_err(|fault| format!("{}, {fault}", file.display()))?);
    }
    Ok(heads)
}

/// Reads lines of signed heads.
///
/// # Errors
/// With the line: when it cannot be read, or is not signed by one of the keys.
pub(super) fn read_text(text: &str, keys: &[PublicKey]) -> Result<Vec<HeadStatement>, String> {
    read_lines(text.lines().zip(1..), keys)
}

fn read_lines<'t>(
    lines: impl IntoIterator<Item = (&'t str, usize)>,
    keys: &[PublicKey],
) -> Result<Vec<HeadStatement>, String> {
    let read = |(line, number)| read_line(line, keys).map_err(|fault| format!("line {number}: {fault}"));
    lines.into_iter().map(read).collect()
}

/// Reads the signed heads that a database has.
///
/// # Errors
/// When it cannot be read, or a line of it cannot, or is not signed by one of the keys.
pub(super) async fn read_store(store: &HeadStore, keys: &[PublicKey]) -> Result<Vec<HeadStatement>, String> {
    read_last(store, keys, MAX_READ).await
}

async fn read_last(store: &HeadStore, keys: &[PublicKey], most: usize) -> Result<Vec<HeadStatement>, String> {
    let lines = store.lines(most).await.map_err(|error| error.to_string())?;
    let read = lines.iter().map(|line| read_line(line, keys).map_err(|fault| format!("{store}: {fault}")));
    read.collect()
}

/// Reads what a place has of signed heads; the others only take them.
///
/// # Errors
/// As [`read_file`] and [`read_store`].
pub(super) async fn read(place: &Place, keys: &[PublicKey]) -> Result<Vec<HeadStatement>, String> {
    match place {
        Place::File(file) => read_file(file, keys),
        Place::Store(store) => read_store(store, keys).await,
        Place::Syslog | Place::SyslogServer(_) | Place::Http(_) => Ok(Vec::new()),
    }
}

/// The heads of a tenant, to compare its chains with.
pub(super) fn noted(heads: &[HeadStatement], tenant: &str) -> NotedHeads {
    let mut noted: NotedHeads = BTreeMap::new();
    for head in heads.iter().filter(|head| head.tenant == tenant) {
        noted.entry(head.server.clone()).or_default().insert(head.seq, head.sha256.clone());
    }
    noted
}

#[cfg(test)]
mod tests {
    use toolrack_stores::KeptHead;

    use super::*;

    #[tokio::test]
    async fn b21_of_the_signed_heads_of_a_chain_the_last_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let key = SigningKey::open(&folder.path().join("key.pem")).unwrap();
        let store =
            HeadStore::parse(&format!("sqlite:{}", folder.path().join("heads.db").display())).unwrap();
        let head = |server: &str, seq: u64| {
            let statement = HeadStatement {
                tenant: "default".to_owned(),
                server: server.to_owned(),
                seq,
                sha256: seq.to_string(),
                ts: Timestamp::UNIX_EPOCH,
                removed: false,
            };
            let (tenant, server) = (statement.tenant.clone(), statement.server.clone());
            KeptHead { tenant, server, seq, removed: false, line: statement.signed(&key) }
        };
        let heads: Vec<_> = (1..=7).map(|seq| head("a", seq)).chain([head("b", 1)]).collect();
        store.add(&heads).await.unwrap();
        let keys = [key.public()];
        let read = read_last(&store, &keys, 5).await.unwrap();
        let numbers: Vec<_> = read.iter().map(|head| (head.server.as_str(), head.seq)).collect();
        assert_eq!(numbers, [("a", 3), ("a", 4), ("a", 5), ("a", 6), ("a", 7), ("b", 1)]);
        assert_eq!(read_store(&store, &keys).await.unwrap().len(), 8);
        // What is not signed is not read, also of one chain among several.
        let forged = KeptHead { seq: 8, line: head("a", 8).line.replace(":8", ":9"), ..head("a", 8) };
        store.add(&[forged]).await.unwrap();
        assert!(read_store(&store, &keys).await.unwrap_err().contains("not signed"));
    }
}
