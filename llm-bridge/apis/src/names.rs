//! Tool names that a provider accepts, mapped back to the tools' own.

use std::collections::{HashMap, HashSet};

/// The names that a provider accepts: ASCII letters, digits, `_` and some more characters, up to a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameRule {
    /// The characters that are legal besides letters, digits and `_`.
    pub(crate) extra: &'static str,
    /// Whether a name has to start with a letter or `_`.
    pub(crate) begins_with_letter: bool,
    /// The maximum length.
    pub(crate) max_length: usize,
}

impl NameRule {
    /// Legal for every provider: `[A-Za-z_][A-Za-z0-9_-]{0,63}`. It has no dot, which separates a module from its tool.
    pub(crate) const COMMON: Self = Self { extra: "-", begins_with_letter: true, max_length: 64 };

    /// Legal in the Model Context Protocol itself, dots included.
    const DOTTED: Self = Self { extra: ".-", begins_with_letter: false, max_length: 128 };

    /// Whether a name is legal.
    pub(crate) fn allows(&self, name: &str) -> bool {
        !name.is_empty()
            && name.len() <= self.max_length
            && name.chars().all(|c| self.allows_char(c))
            && self.allows_beginning(name)
    }

    fn allows_char(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_' || self.extra.contains(c)
    }

    fn allows_beginning(&self, name: &str) -> bool {
        !self.begins_with_letter || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }

    /// Makes a name legal: other characters become `_`, and a long name keeps its end, which is the most specific part.
    pub(crate) fn legal(&self, name: &str) -> String {
        let mut legal: String = name.chars().map(|c| if self.allows_char(c) { c } else { '_' }).collect();
        if legal.is_empty() || !self.allows_beginning(&legal) {
            legal.insert(0, '_');
        }
        if legal.len() > self.max_length {
            // All characters are ASCII by now.
            let tail = legal.split_off(legal.len() - self.max_length.saturating_sub(1));
            legal = format!("_{tail}");
        }
        legal
    }
}

/// Makes a name legal for every provider: other characters become `_`, and a long name keeps its end.
pub fn legal(name: &str) -> String {
    NameRule::COMMON.legal(name)
}

/// The names of one request, mapped to the tools' own.
#[derive(Debug, Clone)]
pub struct WireNames {
    rule: NameRule,
    taken: HashSet<String>,
    original: HashMap<String, String>,
    wire: HashMap<String, String>,
}

impl Default for WireNames {
    fn default() -> Self {
        Self::new(NameRule::COMMON)
    }
}

impl WireNames {
    /// No names yet, under a provider's rule.
    pub(crate) fn new(rule: NameRule) -> Self {
        Self { rule, taken: HashSet::new(), original: HashMap::new(), wire: HashMap::new() }
    }

    /// No names yet, under the rule of the Model Context Protocol, by which a tool keeps its dots.
    pub fn dotted() -> Self {
        Self::new(NameRule::DOTTED)
    }

    /// No names yet, under the rule that satisfies every provider, avoiding those in use, such as the client's own tools.
    pub fn reserving<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut all = Self::default();
        all.reserve(names);
        all
    }

    /// Marks names as in use.
    pub(crate) fn reserve<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        self.taken.extend(names.into_iter().map(str::to_owned));
    }

    /// Assigns a name for the wire. If two names collide, the later gets `_2`, `_3` and so on.
    fn assign(&mut self, name: &str) -> String {
        let base = self.rule.legal(name);
        let mut wire = base.clone();
        let mut number = 2_u32;
        while self.taken.contains(&wire) {
            let suffix = format!("_{number}");
            let keep = base.len().min(self.rule.max_length.saturating_sub(suffix.len()));
            wire = format!("{}{suffix}", base.get(..keep).unwrap_or(&base));
            number += 1;
        }
        self.taken.insert(wire.clone());
        self.original.insert(wire.clone(), name.to_owned());
        self.wire.insert(name.to_owned(), wire.clone());
        wire
    }

    /// Assigns names to all of these, in their order. Legal names are assigned first, so that they never change because of
    /// another. One that has its name already keeps it.
    pub fn assign_all<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
        let (rule, names): (NameRule, Vec<&str>) = (self.rule, names.into_iter().collect());
        let mut wire = vec![String::new(); names.len()];
        for legal in [true, false] {
            for (name, wire) in names.iter().zip(&mut wire).filter(|(name, _)| rule.allows(name) == legal) {
                *wire = self.wire(name).map(str::to_owned).unwrap_or_else(|| self.assign(name));
            }
        }
        wire
    }

    /// The name on the wire of a tool.
    pub fn wire(&self, original: &str) -> Option<&str> {
        self.wire.get(original).map(String::as_str)
    }

    /// The tool's own name of a name on the wire.
    pub fn original(&self, wire: &str) -> Option<&str> {
        self.original.get(wire).map(String::as_str)
    }

    /// A message in which tools stand by their own names, each as `` `name` ``, with their names on the wire instead.
    pub fn in_message<'n>(&self, message: String, names: impl IntoIterator<Item = &'n str>) -> String {
        names.into_iter().fold(message, |message, name| match self.wire(name) {
            Some(wire) if wire != name => message.replace(&format!("`{name}`"), &format!("`{wire}`")),
            _ => message,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_legal() {
        assert_eq!(legal("research.web_search"), "research_web_search");
        assert_eq!(legal("2fa"), "_2fa");
        assert_eq!(legal("größe"), "gr__e");
        assert_eq!(legal(""), "_");
        let long = legal(&format!("{}.tool", "m".repeat(80)));
        assert_eq!(long.len(), 64);
        assert!(long.ends_with("m_tool"));
    }

    #[test]
    fn what_is_legal_stays() {
        for name in ["a.b", "2fa", "_", "a-b"] {
            assert!(NameRule::DOTTED.allows(name), "{name}");
            assert_eq!(NameRule::DOTTED.legal(name), name);
        }
        for name in ["", "a b", "é", "2fa", "a.b"] {
            assert!(!NameRule::COMMON.allows(name), "{name}");
            assert!(NameRule::COMMON.allows(&legal(name)), "{name}");
        }
    }

    #[test]
    fn names_that_collide_get_numbers_and_map_back() {
        let mut names = WireNames::reserving(["search"]);
        assert_eq!(names.assign("math.gcd"), "math_gcd");
        assert_eq!(names.assign("math_gcd"), "math_gcd_2");
        assert_eq!(names.assign("search"), "search_2");
        assert_eq!(names.original("math_gcd"), Some("math.gcd"));
        assert_eq!(names.original("math_gcd_2"), Some("math_gcd"));
        assert_eq!(names.original("search"), None);
        assert_eq!(names.wire("math_gcd"), Some("math_gcd_2"));
        let long = "x".repeat(64);
        names.assign(&long);
        assert_eq!(names.assign(&long).len(), 64);
    }

    #[test]
    fn n8_a_tool_keeps_the_name_that_it_has() {
        let mut names = WireNames::default();
        let first = names.assign_all(["a.b", "a_b"]);
        assert_eq!(first, ["a_b_2", "a_b"]);
        assert_eq!(names.assign_all(["a_b", "a.b", "a.c"]), ["a_b", "a_b_2", "a_c"]);
        assert_eq!(WireNames::dotted().assign_all(["a.b", "a_b", "a b"]), ["a.b", "a_b", "a_b_2"]);
    }

    #[test]
    fn n8_a_message_has_the_names_on_the_wire() {
        let mut names = WireNames::default();
        names.assign_all(["math.gcd", "sum"]);
        let message = "`math.gcd` or `sum`, not math.gcd".to_owned();
        assert_eq!(
            names.in_message(message, ["math.gcd", "sum", "other"]),
            "`math_gcd` or `sum`, not math.gcd"
        );
    }
}
