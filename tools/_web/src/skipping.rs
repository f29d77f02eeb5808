//! Where an element that is left out ends, without a tree.

use std::collections::HashMap;

use crate::elements::{Role, has_no_end, may_not_end, role};

/// An element that is left out, and what is open in it.
#[derive(Debug)]
pub(crate) struct Skipped {
    name: String,
    /// Whether its end tag may be missing. Without one it would take the rest of the page along.
    may_not_end: bool,
    open: HashMap<String, usize>,
}

/// What an end tag ends.
#[derive(Debug, PartialEq)]
pub(crate) enum Closed {
    /// Something in the element, or nothing.
    Inside,
    /// The element.
    Itself,
    /// Something around it, and so the element as well.
    Around,
}

impl Skipped {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), may_not_end: may_not_end(name), open: HashMap::new() }
    }

    /// Takes note of a start tag; `true` where the element has ended before it.
    pub(crate) fn ends_before(&mut self, name: &str) -> bool {
        if self.may_not_end && self.is_ended_by(name) {
            return true;
        }
        if !has_no_end(name) && (self.may_not_end || name == self.name) {
            *self.open.entry(name.to_owned()).or_default() += 1;
        }
        false
    }

    fn is_ended_by(&self, name: &str) -> bool {
        let no = |inside: &[&str]| inside.iter().all(|inside| !self.open.contains_key(*inside));
        let is_group = matches!(name, "thead" | "tbody" | "tfoot");
        match self.name.as_str() {
            "p" => !matches!(role(name), Role::Inline | Role::Link | Role::Code | Role::Unread),
            "li" => name == "li" && no(&["ul", "ol"]),
            "dt" | "dd" => matches!(name, "dt" | "dd") && no(&["dl"]),
            "td" | "th" => (matches!(name, "td" | "th" | "tr") || is_group) && no(&["table"]),
            "tr" => (name == "tr" || is_group) && no(&["table"]),
            "option" => matches!(name, "option" | "optgroup"),
            _ => is_group && no(&["table"]),
        }
    }

    /// What an end tag ends.
    pub(crate) fn close(&mut self, name: &str) -> Closed {
        if let Some(count) = self.open.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(name);
            }
            return Closed::Inside;
        }
        if name == self.name {
            Closed::Itself
        } else if self.may_not_end && !matches!(role(name), Role::Inline | Role::Link | Role::Code) {
            Closed::Around
        } else {
            Closed::Inside
        }
    }
}
