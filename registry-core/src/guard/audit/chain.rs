//! What makes tampering with the audit show: every record carries a hash over itself and the record before it.
//!
//! There is one chain for each tenant and server. The records of a chain are numbered from 1, and
//!
//! ```text
//! sha256(0)   = SHA-256("toolrack audit\n" tenant "\n" server)
//! sha256(seq) = SHA-256(sha256(seq - 1) "\n" seq "\n" record)
//! ```
//!
//! where hashes are written in hex, `seq` in decimal, and `record` is the JSON text to the byte as it is kept. Whoever changes,
//! removes or reorders records breaks the chain at that place. Records cut off its end leave a shorter chain that is whole: that
//! shows only against a [`Head`] noted elsewhere.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// The hash that stands before a chain's first record.
pub fn origin(tenant: &str, server: &str) -> String {
    format!("{:x}", Sha256::digest(format!("toolrack audit\n{tenant}\n{server}")))
}

/// The hash of a record: `previous` is that of the one before, `record` its JSON text.
pub fn link(previous: &str, seq: u64, record: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update(format!("\n{seq}\n"));
    hash.update(record);
    format!("{:x}", hash.finalize())
}

/// Where a chain ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The number of the last record; 0 where there is none.
    pub seq: u64,
    /// Its hash; [`origin`] where there is none.
    pub sha256: String,
}

/// What is wrong at a place in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The record of this number is not there.
    Missing,
    /// The record does not follow the one before it: that one was changed and hashed anew, or either was moved.
    WrongLink,
    /// The record is not what was written.
    Changed,
    /// The chain was hashed anew: at this number another hash was noted.
    Rewritten,
    /// The chain once went on to this number.
    CutOff,
}

/// Goes along a chain, record by record.
#[derive(Debug, Clone)]
pub struct Walk {
    head: Head,
}

impl Walk {
    /// At the beginning of a chain.
    pub fn new(tenant: &str, server: &str) -> Self {
        Self { head: Head { seq: 0, sha256: origin(tenant, server) } }
    }

    /// Behind records that are kept no longer.
    pub fn after(head: Head) -> Self {
        Self { head }
    }

    /// Where the walk is.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Goes on to the next record that is kept.
    ///
    /// # Errors
    /// When it is not the one that belongs here: the number of the place, and what is wrong there.
    pub fn step(&mut self, seq: u64, previous: &str, sha256: &str, record: &str) -> Result<(), (u64, Fault)> {
        let expected = self.head.seq + 1;
        if seq == expected && previous == self.head.sha256 && sha256 != link(previous, seq, record) {
            return Err((seq, Fault::Changed));
        }
        self.step_over(seq, previous, sha256)
    }

    /// The same for a record whose text is not what was hashed, for a reason that the caller has checked.
    ///
    /// # Errors
    /// When it is not in its place.
    pub fn step_over(&mut self, seq: u64, previous: &str, sha256: &str) -> Result<(), (u64, Fault)> {
        let expected = self.head.seq + 1;
        if seq != expected {
            return Err((expected, Fault::Missing));
        }
        if previous != self.head.sha256 {
            return Err((seq, Fault::WrongLink));
        }
        self.head = Head { seq, sha256: sha256.to_owned() };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number, hash of the one before, hash, record.
    type Kept = (u64, String, String, String);

    fn chain(records: &[&str]) -> Vec<Kept> {
        let mut previous = origin("t", "s");
        records
            .iter()
            .zip(1..)
            .map(|(record, seq)| {
                let sha256 = link(&previous, seq, record);
                (seq, std::mem::replace(&mut previous, sha256.clone()), sha256, (*record).to_owned())
            })
            .collect()
    }

    fn walk(rows: &[Kept]) -> Result<u64, (u64, Fault)> {
        let mut walk = Walk::new("t", "s");
        rows.iter()
            .try_for_each(|(seq, previous, sha256, record)| walk.step(*seq, previous, sha256, record))?;
        Ok(walk.head().seq)
    }

    #[test]
    fn t5_every_kind_of_tampering_shows_at_its_place() {
        let whole = chain(&["{}", "[1]", "[2]", "[3]"]);
        assert_eq!(walk(&whole), Ok(4));
        assert_eq!(walk(&[]), Ok(0));
        let with = |change: &dyn Fn(&mut Vec<Kept>)| {
            let mut rows = whole.clone();
            change(&mut rows);
            walk(&rows)
        };
        assert_eq!(with(&|rows| rows[1].3 = "[9]".into()), Err((2, Fault::Changed)));
        assert_eq!(with(&|rows| drop(rows.remove(1))), Err((2, Fault::Missing)));
        assert_eq!(with(&|rows| drop(rows.remove(0))), Err((1, Fault::Missing)));
        assert_eq!(with(&|rows| rows.insert(1, rows[1].clone())), Err((3, Fault::Missing)));
        let hashed_anew = |rows: &mut Vec<Kept>| {
            rows[1].3 = "[9]".into();
            rows[1].2 = link(&rows[1].1, 2, "[9]");
        };
        assert_eq!(with(&hashed_anew), Err((3, Fault::WrongLink)));
        let moved = |rows: &mut Vec<Kept>| {
            rows.swap(1, 2);
            (rows[1].0, rows[2].0) = (2, 3);
        };
        assert_eq!(with(&moved), Err((2, Fault::WrongLink)));
        // A chain that is given to another server is none of that server's.
        assert_eq!(
            Walk::new("t", "other").step(1, &whole[0].1, &whole[0].2, "{}"),
            Err((1, Fault::WrongLink))
        );
        // What is cut off its end does not show.
        assert_eq!(with(&|rows| drop(rows.pop())), Ok(3));
    }
}
