//! Scan options: what whoever scans a text knows and wants.

use super::{ParseOptions, table::Dialect};

/// How a text is parsed.
///
/// ```
/// use toolrack_dialects::{Offered, ScanOptions, dialect, parse};
///
/// let hermes = dialect("hermes").ok_or("there is no such dialect")?;
/// let options = ScanOptions::default().thinking(true).only(hermes);
/// let text = "<function=light><parameter=on>yes</parameter></function>";
/// assert_eq!(parse(&format!("Hm.</think>{text}"), Offered::any().into(), options).content, text);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScanOptions {
    /// The prompt has already opened the thinking block.
    pub thinking: bool,
    /// Give [`Event::CallBegin`](super::Event::CallBegin) and [`Event::CallDelta`](super::Event::CallDelta) as well. Without them a
    /// call costs no more than itself. What they have reported cannot be taken back: a call that would have to be repaired against
    /// that is aborted.
    pub deltas: bool,
    /// The name of a row.
    pub(super) only: Option<&'static str>,
    /// The most memory one unfinished call may take, in bytes; what is longer comes back as text.
    pub max_call_bytes: usize,
    /// What to decide differently where parsers disagree.
    pub parsing: ParseOptions,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            thinking: false,
            deltas: false,
            only: None,
            max_call_bytes: 8 << 20,
            parsing: ParseOptions::default(),
        }
    }
}

impl ScanOptions {
    /// The options where the prompt has opened the thinking block, or has not.
    pub fn thinking(mut self, thinking: bool) -> Self {
        self.thinking = thinking;
        self
    }

    /// The options with calls that are announced, or are not.
    pub fn deltas(mut self, deltas: bool) -> Self {
        self.deltas = deltas;
        self
    }

    /// The options under which calls are read in this dialect only, which is one of [`dialects`](super::dialects). Tag lines are
    /// read in any case.
    pub fn only(mut self, dialect: &'static Dialect) -> Self {
        self.only = Some(dialect.name);
        self
    }

    /// The options with this bound of an unfinished call, in bytes.
    pub fn max_call_bytes(mut self, bytes: usize) -> Self {
        self.max_call_bytes = bytes;
        self
    }

    /// The options with these decisions where parsers disagree.
    pub fn parsing(mut self, parsing: ParseOptions) -> Self {
        self.parsing = parsing;
        self
    }
}
