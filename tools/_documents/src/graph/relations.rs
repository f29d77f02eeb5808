//! What the words between two names say.

use super::{names::Name, words::Word};

/// More words do not stand between two names that have to do with each other.
const MAX_BETWEEN: usize = 5;

/// Words between two names, and the relation they mean.
pub(super) const PHRASES: [(&str, &str); 62] = [
    ("is", "is_a"),
    ("are", "is_a"),
    ("is one of", "is_a"),
    ("is called", "is_a"),
    ("is also called", "is_a"),
    ("uses", "uses"),
    ("use", "uses"),
    ("using", "uses"),
    ("makes use of", "uses"),
    ("needs", "depends_on"),
    ("need", "depends_on"),
    ("requires", "depends_on"),
    ("require", "depends_on"),
    ("depends on", "depends_on"),
    ("depend on", "depends_on"),
    ("is part of", "part_of"),
    ("are part of", "part_of"),
    ("belongs to", "part_of"),
    ("belong to", "part_of"),
    ("has", "has"),
    ("have", "has"),
    ("contains", "has"),
    ("contain", "has"),
    ("holds", "has"),
    ("includes", "has"),
    ("calls", "calls"),
    ("call", "calls"),
    ("asks", "asks"),
    ("sends", "sends"),
    ("takes", "takes"),
    ("returns", "returns"),
    ("return", "returns"),
    ("gives", "returns"),
    ("give", "returns"),
    ("implements", "implements"),
    ("implement", "implements"),
    ("extends", "extends"),
    ("replaces", "replaces"),
    ("supports", "supports"),
    ("support", "supports"),
    ("speaks", "speaks"),
    ("speak", "speaks"),
    ("reads", "reads"),
    ("writes", "writes"),
    ("creates", "creates"),
    ("makes", "creates"),
    ("provides", "provides"),
    ("runs on", "runs_on"),
    ("runs in", "runs_on"),
    ("runs", "runs"),
    ("is written in", "written_in"),
    ("is based on", "based_on"),
    ("is derived from", "based_on"),
    ("derives from", "based_on"),
    ("works with", "works_with"),
    ("connects to", "connects_to"),
    ("is stored in", "stored_in"),
    ("is kept in", "stored_in"),
    ("are kept in", "stored_in"),
    ("is defined in", "defined_in"),
    ("defines", "defines"),
    ("converts into", "converts_into"),
];

/// Words that change nothing of what is said.
const FILLERS: [&str; 22] = [
    "a", "an", "the", "also", "only", "then", "its", "their", "your", "our", "own", "every", "each",
    "always", "now", "still", "usually", "often", "several", "some", "all", "both",
];

/// Words behind which a thing's name is over.
const BOUNDS: [&str; 30] = [
    "that", "which", "who", "whose", "of", "for", "with", "in", "on", "to", "and", "or", "by", "from", "as",
    "where", "when", "at", "is", "are", "it", "whether", "how", "if", "so", "such", "without", "into",
    "beside", "between",
];

/// What is said of one name with another, or of one name with a thing that has none.
pub(super) fn relations(words: &[Word<'_>], names: &[Name]) -> Vec<(String, &'static str, Name)> {
    let mut found = Vec::new();
    for (index, subject) in names.iter().enumerate() {
        if words.get(subject.end - 1).is_none_or(|word| word.ends_phrase) {
            continue;
        }
        let object = names.get(index + 1);
        let named = object.and_then(|object| {
            let between = words.get(subject.end..object.start)?;
            Some((between_names(between)?, object.clone()))
        });
        let said = named.or_else(|| {
            Some(("is_a", concept(words, subject.end, object.map_or(words.len(), |it| it.start))?))
        });
        found.extend(said.map(|(relation, object)| (subject.text.clone(), relation, object)));
    }
    found
}

fn between_names(between: &[Word<'_>]) -> Option<&'static str> {
    if between.is_empty() || between.len() > MAX_BETWEEN || between.iter().any(|word| word.ends_phrase) {
        return None;
    }
    let words: Vec<String> = between.iter().map(|word| word.text.to_lowercase()).collect();
    relation_of(words.iter().map(String::as_str))
}

/// The relation that words in small letters mean.
pub(super) fn relation_of<'w>(words: impl Iterator<Item = &'w str>) -> Option<&'static str> {
    let said = words.filter(|word| !FILLERS.contains(word)).collect::<Vec<_>>().join(" ");
    PHRASES.iter().find(|(phrase, _)| *phrase == said).map(|(_, relation)| *relation)
}

/// The thing of `is a thing`, between that word and the next name.
fn concept(words: &[Word<'_>], from: usize, to: usize) -> Option<Name> {
    let (verb, article) = (words.get(from)?, words.get(from + 1)?);
    let is_said = matches!(verb.text, "is" | "are") && matches!(article.text, "a" | "an" | "the");
    if !is_said || verb.ends_phrase || article.ends_phrase {
        return None;
    }
    let start = from + 2;
    let mut end = start;
    while let Some(word) = words.get(end).filter(|word| end < to && !BOUNDS.contains(&word.text)) {
        if !word.text.chars().all(|c| c.is_alphabetic() || c == '-') {
            return None;
        }
        end += 1;
        if word.ends_phrase {
            break;
        }
    }
    let text = words.get(start..end).filter(|words| (1..=3).contains(&words.len()))?;
    let text = text.iter().map(|word| word.text).collect::<Vec<_>>().join(" ");
    Some(Name { text, kind: "concept", start, end })
}
