//! What is left of a record when a person's data is erased.
//!
//! The record keeps what says that a call was made, by whom, when, and how it ended. All else goes: the arguments and their hash, what
//! the tool and the person said. A change that somebody made as an admin keeps its arguments too, which say whom it is about: nobody
//! hides what they did to others by being erased. Its hash in the chain is that of the whole record, so that the records around it still follow one
//! another; that this is a part of what was hashed is vouched for by a signature, which is put behind it:
//!
//! ```text
//! {"phase": …, "erased_at": …, "erasure_proof": "…"}
//! ```
//!
//! The proof signs `toolrack audit erasure`, the server's name, the number and the hash of the record, and the record without the
//! member `erasure_proof`, with a newline between them.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::store::StoreError;

/// What is kept of a record.
const KEPT: [&str; 15] = [
    "phase",
    "tool",
    "version",
    "call_id",
    "parent_call_id",
    "attempt",
    "tenant",
    "user",
    "via",
    "credential",
    "level",
    "origin",
    "success",
    "error",
    "duration_ms",
];
/// What the names of commands begin with, and those of no tools, which have no spaces.
const COMMAND: &str = "toolrack ";
/// What is kept of a command besides.
const KEPT_OF_COMMAND: [&str; 2] = ["arguments_sha256", "arguments"];
/// What is kept of a decision.
const KEPT_OF_DECISION: [&str; 2] = ["verdict", "by"];
/// What stands before the proof.
const PROOF: &str = ",\"erasure_proof\":\"";

/// A record that is in a chain.
#[derive(Debug, Clone, Copy)]
pub struct RecordPlace<'a> {
    /// The server whose chain it is.
    pub server: &'a str,
    /// Its number in that chain.
    pub seq: u64,
    /// Its hash, in hex.
    pub sha256: &'a str,
}

impl RecordPlace<'_> {
    fn message(&self, left: &str) -> String {
        let Self { server, seq, sha256 } = self;
        format!("toolrack audit erasure\n{server}\n{seq}\n{sha256}\n{left}")
    }
}

/// Signs a message; the result has no quotes and backslashes in it, such as base64.
pub type SignErasure<'a> = dyn Fn(&str) -> String + Send + Sync + 'a;

/// Whether a message has this signature.
pub type CheckErasure<'a> = dyn Fn(&str, &str) -> bool + Send + Sync + 'a;

/// The record without what is personal in it; `None` where that was erased before.
///
/// # Errors
/// When it is not a JSON object.
pub fn erase(
    record: &str,
    place: RecordPlace<'_>,
    at: Timestamp,
    sign: &SignErasure<'_>,
) -> Result<Option<String>, StoreError> {
    let Value::Object(mut whole) = serde_json::from_str(record).map_err(StoreError::corrupt)? else {
        return Err(StoreError::corrupt("a record of the audit is not a JSON object"));
    };
    if is_erased(record) {
        return Ok(None);
    }
    let mut left = Map::new();
    let is_command = whole.get("tool").and_then(Value::as_str).is_some_and(|tool| tool.starts_with(COMMAND));
    let of_command = KEPT_OF_COMMAND.into_iter().filter(|_| is_command);
    for name in KEPT.into_iter().chain(of_command) {
        left.extend(whole.remove(name).map(|value| (name.to_owned(), value)));
    }
    left.extend(whole.remove("decision").map(|decision| ("decision".to_owned(), outline(decision))));
    left.extend(whole.remove("ts").map(|value| ("ts".to_owned(), value)));
    left.insert("erased_at".to_owned(), at.to_string().into());
    let left = Value::Object(left).to_string();
    let proof = sign(&place.message(&left));
    let open = left.strip_suffix('}').unwrap_or(&left);
    Ok(Some(format!("{open}{PROOF}{proof}\"}}")))
}

fn outline(decision: Value) -> Value {
    let Value::Object(mut decision) = decision else { return Value::Null };
    let gate = decision.remove("gate").map(|gate| ("gate".to_owned(), outline(gate)));
    decision.retain(|name, _| KEPT_OF_DECISION.contains(&name.as_str()));
    decision.extend(gate);
    decision.into()
}

/// Whether what is personal in a record was erased.
pub fn is_erased(record: &str) -> bool {
    split(record).is_some()
}

/// Whether a record is what was left of the one in this place, as its signature says.
pub fn is_proven(record: &str, place: RecordPlace<'_>, check: &CheckErasure<'_>) -> bool {
    split(record).is_some_and(|(left, proof)| check(&place.message(&left), proof))
}

/// What was left, and its proof.
fn split(record: &str) -> Option<(String, &str)> {
    // A quote within a value of the record is escaped, so this stands in it as a member alone.
    let (open, proof) = record.rsplit_once(PROOF)?;
    let proof = proof.strip_suffix("\"}").filter(|proof| !proof.contains('"'))?;
    Some((format!("{open}}}"), proof))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: RecordPlace<'_> = RecordPlace { server: "main", seq: 7, sha256: "ab" };

    fn sign(message: &str) -> String {
        format!("{:x}", <sha2::Sha256 as sha2::Digest>::digest(format!("secret{message}")))
    }

    fn check(message: &str, proof: &str) -> bool {
        sign(message) == proof
    }

    #[test]
    fn b21_what_an_admin_did_to_others_stays_in_an_erased_record() {
        let record = |tool: &str| {
            format!(
                r#"{{"phase":"intent","tool":"{tool}","user":"mallory","arguments_sha256":"12","arguments":{{"user":"eve","level":"admin"}},"error_message":"x"}}"#
            )
        };
        let at = "2026-11-25T12:00:00Z".parse().unwrap();
        let left = |tool: &str| -> Value {
            let left = erase(&record(tool), PLACE, at, &sign).unwrap().unwrap();
            assert!(is_proven(&left, PLACE, &check));
            serde_json::from_str(&left).unwrap()
        };
        let kept = left("toolrack user promote");
        assert_eq!(kept["arguments"], serde_json::json!({"user": "eve", "level": "admin"}));
        assert_eq!((&kept["arguments_sha256"], kept.get("error_message")), (&"12".into(), None));
        assert_eq!(left("toolrack_user.promote").get("arguments"), None);
    }

    #[test]
    fn b21_of_an_erased_record_the_fact_of_the_call_is_left_and_proven() {
        let whole = r#"{"phase":"outcome","tool":"mail.send","version":null,"call_id":"c1","user":"ada","origin":{"text":"hermes"},"arguments_sha256":"12","arguments":{"to":"bob","erasure_proof":",\"erasure_proof\":\"x\"}"},"decision":{"verdict":"blocked","by":"user:eve","reason":"no mail to bob"},"success":false,"error_message":"bob's box is full","side_effects":["sent:bob"],"audit":{"to":"bob"},"ts":"2026-11-24T12:00:00Z"}"#;
        let at = "2026-11-25T12:00:00Z".parse().unwrap();
        let left = erase(whole, PLACE, at, &sign).unwrap().unwrap();
        assert!(!left.contains("bob") && !left.contains("12\""), "{left}");
        let read: Value = serde_json::from_str(&left).unwrap();
        assert_eq!((&read["user"], &read["tool"]), (&"ada".into(), &"mail.send".into()));
        assert_eq!(read["decision"], serde_json::json!({"verdict": "blocked", "by": "user:eve"}));
        assert_eq!((&read["success"], &read["erased_at"]), (&false.into(), &"2026-11-25T12:00:00Z".into()));

        assert!(is_proven(&left, PLACE, &check));
        assert_eq!(erase(&left, PLACE, at, &sign).unwrap(), None);
        for changed in [left.replace("mail.send", "mail.read"), left.replace("ada", "eve"), whole.to_owned()]
        {
            assert!(!is_proven(&changed, PLACE, &check), "{changed}");
        }
        for moved in [RecordPlace { seq: 8, ..PLACE }, RecordPlace { server: "spare", ..PLACE }] {
            assert!(!is_proven(&left, moved, &check));
        }
        assert!(!is_erased(whole) && erase("[]", PLACE, at, &sign).is_err());
    }
}
