//! Draws the names in a passage and what is said of one with another, by their form alone: without a model, and the same each time.

mod names;
mod relations;
mod words;

use serde::Serialize;

use names::names;
use relations::relations;
use words::{links, words};

/// More names of a passage are not kept.
const MAX_NAMES: usize = 48;

/// A name in a passage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Mention {
    /// By which it is found, however it is written: small letters, single spaces.
    pub(crate) key: String,
    pub(crate) name: String,
    /// `name`, `code`, `concept`, `link` or `document`.
    pub(crate) kind: &'static str,
    pub(crate) times: u32,
}

/// What a passage says of one name with another. Both are mentioned in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Relation {
    pub(crate) subject: String,
    pub(crate) relation: &'static str,
    pub(crate) object: String,
}

/// What is drawn from one passage.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) mentions: Vec<Mention>,
    pub(crate) relations: Vec<Relation>,
}

/// How a name is looked up.
pub(crate) fn key(name: &str) -> String {
    let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '.' | ','));
    let name = name.strip_suffix("()").unwrap_or(name);
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The relation that words between two names mean.
pub(crate) fn relation_of(words: &str) -> Option<&'static str> {
    relations::relation_of(words.split(' '))
}

/// Whether a word, in small letters, is no name and no part of one.
pub(crate) fn names_nothing(word: &str) -> bool {
    names::NO_NAMES.contains(&word)
}

/// The names and relations of a passage of the document with that title.
pub(crate) fn drawn(title: &str, text: &str) -> Drawn {
    let mut drawn = Drawn::default();
    let words = words(text);
    let names = names(&words);
    for name in &names {
        drawn.mention(&name.text, name.kind);
    }
    for (subject, relation, object) in relations(&words, &names) {
        if object.kind == "concept" {
            drawn.mention(&object.text, object.kind);
        }
        drawn.relate(&subject, relation, &object.text);
    }
    for target in links(text) {
        drawn.mention(title, "document");
        drawn.mention(target, "link");
        drawn.relate(title, "links_to", target);
    }
    drawn
}

impl Drawn {
    fn mention(&mut self, name: &str, kind: &'static str) {
        let key = key(name);
        if let Some(known) = self.mentions.iter_mut().find(|mention| mention.key == key) {
            known.times += 1;
        } else if self.mentions.len() < MAX_NAMES && !key.is_empty() {
            self.mentions.push(Mention { key, name: name.to_owned(), kind, times: 1 });
        }
    }

    fn relate(&mut self, subject: &str, relation: &'static str, object: &str) {
        let (subject, object) = (key(subject), key(object));
        let is_mentioned = |key: &str| self.mentions.iter().any(|mention| mention.key == key);
        let drawn = Relation { subject, relation, object };
        let holds =
            drawn.subject != drawn.object && is_mentioned(&drawn.subject) && is_mentioned(&drawn.object);
        if holds && !self.relations.contains(&drawn) {
            self.relations.push(drawn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(text: &str) -> Vec<(String, &'static str)> {
        drawn("T", text).mentions.into_iter().map(|mention| (mention.name, mention.kind)).collect()
    }

    fn relations_of(text: &str) -> Vec<String> {
        let shown = |it: Relation| format!("{} {} {}", it.subject, it.relation, it.object);
        drawn("The Guide", text).relations.into_iter().map(shown).collect()
    }

    #[test]
    fn p6_names_are_known_by_their_form() {
        for (text, names) in [
            ("We speak the Model Context Protocol here.", &["Model Context Protocol name"][..]),
            ("The Bank of England met.", &["Bank of England name"]),
            ("Servers start. They ask Redis, and Redis answers.", &["Redis name"]),
            (
                "PostgreSQL and SQLite keep it; JSON is read.",
                &["PostgreSQL name", "SQLite name", "JSON name"],
            ),
            (
                "Call `serve` or tool_name or a::b, or ToolContext.",
                &["serve code", "tool_name code", "a::b code", "ToolContext code"],
            ),
            ("`run()` is run.", &["run code"]),
            (
                "Columns: Stadt, Einwohner, Fluss\nStadt: Köln; Fluss: Rhein",
                &["Einwohner name", "Fluss name", "Stadt name"],
            ),
            ("Nothing to see. The end. I am. A b.", &[]),
            ("See [the page](stores.md#file) there.", &["T document", "stores.md link"]),
        ] {
            let found: Vec<String> =
                names_of(text).into_iter().map(|(name, kind)| format!("{name} {kind}")).collect();
            assert_eq!(found, names, "{text}");
        }
    }

    #[test]
    fn p6_relations_are_known_by_their_words() {
        for (text, relations) in [
            ("The bridge: Toolrack uses SQLite.", &["toolrack uses sqlite"][..]),
            ("Toolrack is written in Rust.", &["toolrack written_in rust"]),
            (
                "Every `ToolContext` has a `Caller`, and Toolrack also needs the Registry Core.",
                &["toolcontext has caller", "toolrack depends_on registry core"],
            ),
            ("SQLite is a small database engine that works.", &["sqlite is_a small database engine"]),
            ("Toolrack. SQLite uses it", &[]),
            ("Use Toolrack, SQLite", &[]),
            ("See [it](https://a.example/x).", &["the guide links_to https://a.example/x"]),
        ] {
            assert_eq!(relations_of(text), relations, "{text}");
        }
    }

    #[test]
    fn p6_a_name_is_found_however_it_is_written() {
        assert_eq!(key(" `Tool  Context` "), "tool context");
        assert_eq!(key("run()"), "run");
        let drawn = drawn("T", "`SQLite` and SQLite");
        assert_eq!(drawn.mentions.len(), 1);
        assert_eq!(drawn.mentions[0].times, 2);
    }

    #[test]
    fn p6_no_text_is_too_much() {
        for piece in ["Aa ", "`a` ", "](", "[x](y)", "is a ", "A is a b ", "é", "\n", "... ", "Ab-Cd_ef "] {
            let drawn = drawn("T", &piece.repeat(3000));
            assert!(drawn.mentions.len() <= MAX_NAMES, "{piece}");
        }
    }
}
