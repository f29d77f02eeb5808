//! Tags that a value opens. A value may have very many ends that are none, and is looked through once for all of them.

use std::{
    collections::BTreeSet,
    ops::{Bound, Range},
};

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
            let area = text.as_bytes().get(self.area(start, to, sought)).unwrap_or_default();
            self.found = memmem::find(area, sought.as_bytes()).is_some();
            self.seen = to.max(self.seen);
        }
        self.found
    }

    /// Where it is looked for next. It may have begun in what has been seen.
    fn area(&self, start: usize, to: usize, sought: &str) -> Range<usize> {
        self.seen.saturating_sub(sought.len()).max(start)..to
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b1_a_value_is_looked_through_once_for_all_of_its_ends() {
        let text = "</a> <aa".repeat(10_000);
        let (mut search, mut looked) = (Search::from(0), 0);
        for to in (0..text.len()).step_by(8) {
            looked += search.area(0, to, "<aaa").len();
            assert!(!search.finds(&text, 0, to, "<aaa"));
        }
        assert!(looked < 2 * text.len(), "{looked} of {} bytes", text.len());
        // Also where one part ends in it.
        let mut search = Search::from(1);
        assert!(!search.finds("<a <a", 1, 4, "<a"));
        assert!(search.finds("<a <a", 1, 5, "<a"));
        assert!(!Search::from(1).finds("<a", 1, 2, "<a"));
    }

    #[test]
    fn tags_are_told_by_how_their_names_begin() {
        let text = "<parameters> <parameter> </parameterx";
        for (more, closes) in [("s", true), ("sx", false), ("x", false), ("t", false)] {
            let mut tags = Tags::from(0);
            assert!(!tags.closes(text, 0, "parameter", more), "{more}");
            assert_eq!(tags.closes(text, text.len(), "parameter", more), closes, "{more}");
        }
    }
}
