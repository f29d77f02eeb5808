//! Tags that a value opens. A value may have very many ends that are none, and is looked through once for all of them.

use std::{collections::BTreeSet, ops::Bound};

use memchr::memmem;

use super::stop::slip;
use crate::body::{cut, rest};

/// A search for one text in a value.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Up to here it has been looked for.
    seen: usize,
    found: bool,
}

impl Search {
    /// In a value that begins here.
    pub(super) fn from(at: usize) -> Self {
        Self { seen: at, found: false }
    }

    /// Whether the value has it before this place.
    pub(super) fn finds(&mut self, text: &str, start: usize, to: usize, sought: &str) -> bool {
        if !self.found {
            // It may have begun before.
            let from = self.seen.saturating_sub(sought.len()).max(start);
            let area = text.as_bytes().get(from..to).unwrap_or_default();
            self.found = memmem::find(area, sought.as_bytes()).is_some();
            self.seen = to.max(self.seen);
        }
        self.found
    }
}

/// The tags in a value whose names begin as that of its end.
#[derive(Debug, Default)]
pub(super) struct Tags {
    /// Up to here they are collected.
    seen: usize,
    /// What their names have behind that.
    names: BTreeSet<String>,
    /// One has been closed.
    closed: bool,
}

impl Tags {
    /// None yet in a value that begins here.
    pub(super) fn from(at: usize) -> Self {
        Self { seen: at, ..Self::default() }
    }

    /// Whether the value opens a tag before this place whose name begins with `stem` and this `more`, or has closed one.
    pub(super) fn closes(&mut self, text: &str, to: usize, stem: &str, more: &str) -> bool {
        if !self.closed {
            self.collect(text, to, stem);
            let next = self.names.range::<str, _>((Bound::Included(more), Bound::Unbounded)).next();
            self.closed = next.is_some_and(|name| name.starts_with(more));
        }
        self.closed
    }

    fn collect(&mut self, text: &str, to: usize, stem: &str) {
        let area = cut(text, self.seen..to);
        for at in memmem::find_iter(area.as_bytes(), stem.as_bytes()) {
            let behind = rest(area, at + stem.len());
            if cut(area, 0..at).ends_with('<') {
                self.names.insert(cut(behind, 0..slip(behind)).to_owned());
            }
        }
        self.seen = to.max(self.seen);
    }
}
