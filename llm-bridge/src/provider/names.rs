//! Names that every provider takes, and the way back.
//!
//! The set that all of them accept is `[A-Za-z_][A-Za-z0-9_-]{0,63}`: no dot, which is what stands between a module and
//! its tool here.

use std::collections::{HashMap, HashSet};

/// The longest name that every provider takes.
const MAX_LENGTH: usize = 64;

/// Makes a name legal: other characters become `_`, and a long name keeps its end, which is the tool's own.
pub fn legal(name: &str) -> String {
    let mut legal: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .collect();
    if !legal.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        legal.insert(0, '_');
    }
    if legal.len() > MAX_LENGTH {
        // All characters are ASCII by now.
        let tail = legal.split_off(legal.len() - (MAX_LENGTH - 1));
        legal = format!("_{tail}");
    }
    legal
}

/// Gives out names for one request and knows whose they are.
#[derive(Debug, Default, Clone)]
pub struct WireNames {
    taken: HashSet<String>,
    original: HashMap<String, String>,
}

impl WireNames {
    /// Names of which some belong to others already, such as the client's own tools.
    pub fn reserving<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self { taken: names.into_iter().map(str::to_owned).collect(), original: HashMap::new() }
    }

    /// The name to use on the wire. Where two names become the same, the later gets `_2`, `_3` and so on.
    pub fn assign(&mut self, name: &str) -> String {
        let base = legal(name);
        let mut wire = base.clone();
        let mut number = 2_u32;
        while self.taken.contains(&wire) {
            let suffix = format!("_{number}");
            let keep = base.len().min(MAX_LENGTH - suffix.len());
            wire = format!("{}{suffix}", base.get(..keep).unwrap_or(&base));
            number += 1;
        }
        self.taken.insert(wire.clone());
        self.original.insert(wire.clone(), name.to_owned());
        wire
    }

    /// The name on the wire of an original.
    pub fn wire(&self, original: &str) -> Option<&str> {
        self.original.iter().find(|(_, name)| *name == original).map(|(wire, _)| wire.as_str())
    }

    /// The original of a name on the wire.
    pub fn original(&self, wire: &str) -> Option<&str> {
        self.original.get(wire).map(String::as_str)
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
    fn names_that_collide_are_told_apart_and_found_again() {
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
}
