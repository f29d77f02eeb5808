//! Differences that people have explained, one a line: peer, dialect, case and reason, with tabs between them.
//! `*` stands for any peer or dialect, and for any text within the id of a case.

use std::{cell::Cell, error::Error};

use crate::{case::Case, peer::Peer};

/// The lines of such a file.
#[derive(Debug, Default)]
pub struct Explained(Vec<Line>);

#[derive(Debug)]
struct Line {
    peer: String,
    dialect: String,
    case: String,
    reason: String,
    used: Cell<bool>,
}

impl Explained {
    /// Reads the lines; empty ones and those that begin with `#` say nothing.
    ///
    /// # Errors
    /// A line with more or fewer than four fields, or one for a peer there is not.
    pub fn read(text: &str) -> Result<Self, Box<dyn Error>> {
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
            let &[peer, dialect, case, reason] = fields.as_slice() else {
                return Err(format!("not four fields with tabs between them: {line}").into());
            };
            if peer != "*" && !Peer::ALL.iter().any(|known| known.title() == peer) {
                return Err(format!("there is no peer \"{peer}\": {line}").into());
            }
            lines.push(Line {
                peer: peer.into(),
                dialect: dialect.into(),
                case: case.into(),
                reason: reason.into(),
                used: Cell::new(false),
            });
        }
        Ok(Self(lines))
    }

    /// Why the peer reads this case in another way, if somebody has said so.
    pub fn reason(&self, peer: Peer, case: &Case) -> Option<&str> {
        let fits = |line: &&Line| {
            (line.peer == "*" || line.peer == peer.title())
                && (line.dialect == "*" || line.dialect == case.dialect)
                && matches(&line.case, &case.id)
        };
        let line = self.0.iter().find(fits)?;
        line.used.set(true);
        Some(&line.reason)
    }

    /// The lines that have explained nothing.
    pub fn unused(&self) -> Vec<String> {
        let unused = self.0.iter().filter(|line| !line.used.get());
        unused.map(|line| format!("{}\t{}\t{}", line.peer, line.dialect, line.case)).collect()
    }
}

/// Whether the text is as the pattern says, where `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = tail.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text) in
            [("a", "a"), ("*", ""), ("*", "ab"), ("a*c", "abc"), ("a*b*c*", "a-b-c"), ("*#1", "x#1")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "b"), ("a*c", "ab"), ("a*a", "a"), ("*b*", "a"), ("*#1", "x#12")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn lines_are_checked() {
        assert!(Explained::read("# note\n\ntool-parser\t*\tx\tbecause").is_ok());
        assert!(Explained::read("tool-parser\t*\tx").is_err());
        assert!(Explained::read("nobody\t*\tx\tbecause").is_err());
    }
}
