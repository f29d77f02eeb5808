//! Takes of what a model said what its passage bears out.

use std::collections::HashSet;

use super::{Extracted, ExtractedName, ExtractedRelation, key};
use crate::graph::MENTIONED_WITH;

/// More names, and more relations, of a passage are not kept.
const MAX: usize = 24;
/// A name has no more characters and words.
const MAX_NAME: usize = 80;
const MAX_WORDS: usize = 8;
/// A kind or relation has no more characters, so that it can be asked for.
const MAX_WORD: usize = 40;
/// Of a name of which no kind is known.
const NAME: &str = "name";

/// Other words for the kinds that are asked for. The last are said of what is no kind.
const KINDS: [(&str, &str); 16] = [
    ("per", "person"),
    ("people", "person"),
    ("human", "person"),
    ("org", "organization"),
    ("organisation", "organization"),
    ("company", "organization"),
    ("institution", "organization"),
    ("loc", "place"),
    ("gpe", "place"),
    ("geo", "place"),
    ("location", "place"),
    ("identifier", "code"),
    ("other", NAME),
    ("unknown", NAME),
    ("entity", NAME),
    ("misc", NAME),
];
/// Words that small models give as names, and that are none by themselves.
const NO_NAMES: [&str; 33] = [
    "a", "an", "and", "are", "at", "by", "for", "from", "he", "here", "i", "in", "is", "it", "of", "on",
    "or", "she", "that", "the", "their", "there", "these", "they", "this", "those", "to", "we", "who",
    "with", "you", "your", "its",
];
/// Relations that are said in other words by models that were asked for these.
const RELATIONS: [(&str, &str); 10] = [
    ("is", "is_a"),
    ("is a", "is_a"),
    ("is an", "is_a"),
    ("are", "is_a"),
    ("needs", "depends_on"),
    ("requires", "depends_on"),
    ("belongs to", "part_of"),
    ("contains", "has"),
    ("includes", "has"),
    ("makes use of", "uses"),
];
/// Words before a relation that do not change it: `is located in`, `was founded by`.
const AUXILIARIES: [&str; 5] = ["is ", "are ", "was ", "were ", "has been "];

/// The names that the passage has, and what is said of them.
pub(super) fn cleaned(said: Extracted, passage: &str) -> Extracted {
    let mut cleaning = Cleaning::of(passage);
    for ExtractedName { name, kind } in said.names {
        cleaning.name(&name, &kind);
    }
    for relation in said.relations {
        cleaning.relation(&relation);
    }
    cleaning.extracted
}

struct Cleaning {
    passage: Passage,
    extracted: Extracted,
    /// How the names and relations are looked up.
    names: HashSet<String>,
    relations: HashSet<(String, String, String)>,
}

impl Cleaning {
    fn of(passage: &str) -> Self {
        let passage = Passage::of(passage);
        Self { passage, extracted: Extracted::default(), names: HashSet::new(), relations: HashSet::new() }
    }

    /// The name as the passage writes it, kept as one of its names.
    fn name(&mut self, said: &str, kind: &str) -> Option<String> {
        let name = self.passage.written(said)?;
        let key = key(&name);
        if key.is_empty() {
            return None;
        }
        if !self.names.contains(&key) {
            if self.extracted.names.len() == MAX {
                return None;
            }
            self.names.insert(key);
            self.extracted.names.push(ExtractedName { name: name.clone(), kind: kind_of(kind) });
        }
        Some(name)
    }

    fn relation(&mut self, said: &ExtractedRelation) -> Option<()> {
        let relation = relation_of(&said.relation)?;
        if self.extracted.relations.len() == MAX {
            return None;
        }
        // Neither is kept for a relation that is not: both are looked for first.
        let ends = [&said.subject, &said.object].map(|name| self.passage.written(name));
        let [Some(subject), Some(object)] = ends else { return None };
        let (subject_key, object_key) = (key(&subject), key(&object));
        if subject_key == object_key {
            return None;
        }
        self.name(&subject, NAME)?;
        self.name(&object, NAME)?;
        if self.relations.insert((subject_key, relation.clone(), object_key)) {
            self.extracted.relations.push(ExtractedRelation { subject, relation, object });
        }
        Some(())
    }
}

/// A passage in single spaces.
struct Passage {
    text: String,
    /// In small letters.
    small: String,
}

impl Passage {
    fn of(text: &str) -> Self {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { small: text.to_lowercase(), text }
    }

    /// A name as it is written here, if it is.
    fn written(&self, said: &str) -> Option<String> {
        // A name this long is none, and is not looked through.
        if said.len() > 8 * MAX_NAME {
            return None;
        }
        let is_mark = |c: char| c.is_whitespace() || "`\"'*“”‘’«».,;:()[]{}".contains(c);
        let name = said.trim_matches(is_mark).split_whitespace().collect::<Vec<_>>().join(" ");
        let small = name.to_lowercase();
        let is_name = (2..=MAX_NAME).contains(&name.chars().count())
            && small.split(' ').count() <= MAX_WORDS
            && small.contains(char::is_alphabetic)
            && !small.split(' ').all(|word| NO_NAMES.contains(&word));
        if !is_name {
            return None;
        }
        let at = self.place(&small)?;
        // Small letters may take more bytes than large ones; then the places in both texts differ.
        let written = self.text.get(at..at + small.len()).filter(|written| written.to_lowercase() == small);
        Some(written.map_or(name, str::to_owned))
    }

    /// Where a name in small letters stands as a word of its own.
    fn place(&self, name: &str) -> Option<usize> {
        let splits =
            |one: Option<char>, other: Option<char>| one.is_some_and(joins) && other.is_some_and(joins);
        self.small.match_indices(name).map(|(at, _)| at).find(|at| {
            let before = self.small.get(..*at).and_then(|text| text.chars().next_back());
            let behind = self.small.get(at + name.len()..).and_then(|text| text.chars().next());
            !splits(before, name.chars().next()) && !splits(name.chars().next_back(), behind)
        })
    }
}

/// Whether a character makes one word with the next. Scripts without small letters may write words without spaces.
fn joins(c: char) -> bool {
    c.is_lowercase() || c.is_numeric() || c == '_'
}

fn kind_of(said: &str) -> String {
    let Some(kind) = snake_case(said) else { return NAME.to_owned() };
    KINDS.iter().find(|(other, _)| *other == kind).map_or(kind, |(_, kind)| (*kind).to_owned())
}

/// A relation in one word, and in the words that were asked for where it means one of them.
fn relation_of(said: &str) -> Option<String> {
    let words = snake_case(said)?.replace('_', " ");
    let known = RELATIONS.iter().find(|(said, _)| *said == words).map(|(_, relation)| (*relation).to_owned());
    let plain = || AUXILIARIES.iter().find_map(|auxiliary| words.strip_prefix(auxiliary));
    let relation = known.or_else(|| snake_case(plain().unwrap_or(&words)))?;
    // That is of names that nothing more is said of.
    (relation != MENTIONED_WITH).then_some(relation)
}

/// Words as one word: `Works for`, `WORKS-FOR` and `worksFor` are `works_for`. Nothing where no letter is left, or too many are.
fn snake_case(said: &str) -> Option<String> {
    let mut word = String::new();
    let mut before = ' ';
    for c in said.chars().take(4 * MAX_WORD) {
        let is_hump = before.is_lowercase() && c.is_uppercase();
        let is_gap = !c.is_alphanumeric();
        if (is_hump || is_gap) && !word.is_empty() && !word.ends_with('_') {
            word.push('_');
        }
        if !is_gap {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    let word = word.trim_end_matches('_');
    let is_word = (2..=MAX_WORD).contains(&word.chars().count()) && word.contains(char::is_alphabetic);
    is_word.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSAGE: &str = "**Ada Lovelace** met Charles\nBabbage in London. The `ToolContext` of C++ depends on Émile, and 東京にある寺 is old.";

    fn names(names: &[(&str, &str)]) -> Vec<String> {
        let said = |(name, kind): &(&str, &str)| ExtractedName { name: (*name).into(), kind: (*kind).into() };
        let said = Extracted { names: names.iter().map(said).collect(), relations: Vec::new() };
        cleaned(said, PASSAGE).names.into_iter().map(|it| format!("{} {}", it.name, it.kind)).collect()
    }

    fn relations(said: &[[&str; 3]]) -> (Vec<String>, Vec<String>) {
        let relation = |[subject, relation, object]: &[&str; 3]| ExtractedRelation {
            subject: (*subject).into(),
            relation: (*relation).into(),
            object: (*object).into(),
        };
        let said = Extracted { names: Vec::new(), relations: said.iter().map(relation).collect() };
        let extracted = cleaned(said, PASSAGE);
        let shown = |it: &ExtractedRelation| format!("{}-{}-{}", it.subject, it.relation, it.object);
        (
            extracted.relations.iter().map(shown).collect(),
            extracted.names.into_iter().map(|it| it.name).collect(),
        )
    }

    #[test]
    fn p6_only_names_of_the_passage_are_taken() {
        for (said, kind, kept) in [
            ("ada  lovelace", "Person", Some("Ada Lovelace person")),
            ("\"CHARLES BABBAGE\".", "PER", Some("Charles Babbage person")),
            ("`toolcontext`", "Data Structure", Some("ToolContext data_structure")),
            ("ÉMILE", "", Some("Émile name")),
            ("C++", "programmingLanguage", Some("C++ programming_language")),
            ("東京", "Location", Some("東京 place")),
            ("London", &"k".repeat(41), Some("London name")),
            ("London", "***", Some("London name")),
            ("London", "misc", Some("London name")),
            // Made up, or a part of a word, or no name.
            ("Grace Hopper", "person", None),
            ("Ada Byron Lovelace", "person", None),
            ("Love", "person", None),
            ("ondon", "place", None),
            ("Context", "code", None),
            ("in", "place", None),
            ("The", "x", None),
            ("of", "x", None),
            ("++", "x", None),
            ("", "x", None),
            ("`", "x", None),
            (PASSAGE, "x", None),
            ("met Charles Babbage in London. The `ToolContext` of C++", "x", None),
        ] {
            assert_eq!(names(&[(said, kind)]), Vec::from_iter(kept), "{said}");
        }
        // Each once, whatever it is called the second time.
        assert_eq!(names(&[("London", "place"), ("LONDON", "city"), ("`London`", "x")]), ["London place"]);
    }

    #[test]
    fn p6_relations_are_said_in_one_way_and_only_of_names_of_the_passage() {
        for (said, kept) in [
            ("met", Some("met")),
            ("Depends On", Some("depends_on")),
            ("requires", Some("depends_on")),
            ("is a", Some("is_a")),
            ("is_an", Some("is_a")),
            ("IS_PART_OF", Some("part_of")),
            ("was founded by", Some("founded_by")),
            ("worksFor", Some("works_for")),
            ("mentioned with", None),
            ("", None),
            ("-", None),
            ("42", None),
            (&"very ".repeat(10), None),
        ] {
            let expected = Vec::from_iter(kept.map(|kept| format!("Ada Lovelace-{kept}-London")));
            assert_eq!(relations(&[["ada lovelace", said, "london"]]).0, expected, "{said}");
        }
        let (kept, names) = relations(&[
            ["Ada Lovelace", "met", "Charles Babbage"],
            ["ADA LOVELACE", "Met", "Charles  Babbage"],
            ["Ada Lovelace", "is", "ada lovelace"],
            ["London", "has", "Buckingham Palace"],
            ["he", "met", "London"],
        ]);
        assert_eq!(kept, ["Ada Lovelace-met-Charles Babbage"]);
        assert_eq!(
            names,
            ["Ada Lovelace", "Charles Babbage"],
            "those of relations that are not kept are not"
        );
    }

    #[test]
    fn p6_of_a_passage_no_more_is_kept_than_its_share() {
        let passage: String = (0..200).map(|number| format!("Name{number}x. ")).collect();
        let said = || Extracted {
            names: (0..200)
                .map(|it| ExtractedName { name: format!("Name{it}x"), kind: "k".into() })
                .collect(),
            relations: (0..200)
                .map(|it| ExtractedRelation {
                    subject: "Name1x".into(),
                    relation: format!("r{it}"),
                    object: format!("Name{}x", it % 100),
                })
                .collect(),
        };
        let extracted = cleaned(said(), &passage);
        assert_eq!((extracted.names.len(), extracted.relations.len()), (MAX, MAX));
        assert_eq!(extracted.names.last().unwrap().kind, NAME, "a kind of one letter is none");
        let is_there = |name: &String| extracted.names.iter().any(|it| it.name == *name);
        assert!(extracted.relations.iter().all(|it| is_there(&it.subject) && is_there(&it.object)));
        assert_eq!(cleaned(said(), ""), Extracted::default());
    }
}
