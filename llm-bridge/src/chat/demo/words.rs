//! Words: cutting a text into them, and bringing the forms of one word together.

use std::ops::Range;

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Where it stands, in bytes.
    pub(super) range: Range<usize>,
    /// As written, in lower case.
    pub(super) lower: String,
    /// What it shares with its other forms: `sides` and `sided` are one.
    pub(super) stem: String,
}

/// Cuts a text into runs of letters and digits; an apostrophe inside a word belongs to it.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut found = Vec::new();
    let mut start = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, c)| c);
        let inside = c.is_alphanumeric()
            || (matches!(c, '\'' | '’') && start.is_some() && next.is_some_and(char::is_alphabetic));
        if inside {
            start.get_or_insert(at);
        } else if let Some(from) = start.take() {
            found.extend(word(text, from..at));
        }
    }
    if let Some(from) = start {
        found.extend(word(text, from..text.len()));
    }
    found
}

fn word(text: &str, range: Range<usize>) -> Option<Word> {
    let lower = text.get(range.clone())?.to_lowercase().replace('’', "'");
    let stem = stem(&lower);
    Some(Word { range, lower, stem })
}

/// The stems of a text.
pub(super) fn stems(text: &str) -> Vec<String> {
    words(text).into_iter().map(|word| word.stem).collect()
}

/// The words of an identifier, in lower case: `maxResults`, `max_results` and `max-results` are the same.
pub(super) fn split_name(name: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(name.len() + 4);
    let mut before_is_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && before_is_lower {
            spaced.push(' ');
        }
        before_is_lower = c.is_lowercase() || c.is_ascii_digit();
        spaced.push(if c == '_' { ' ' } else { c });
    }
    words(&spaced).into_iter().map(|word| word.lower).collect()
}

/// Takes the usual English endings off a word in lower case. Rough on purpose: both sides of a comparison go
/// through it, so it has to be consistent, not right.
pub(super) fn stem(lower: &str) -> String {
    let word = lower.strip_suffix("'s").unwrap_or(lower);
    let cut = |ending: &str, least: usize| {
        word.strip_suffix(ending).filter(|rest| rest.is_ascii() && rest.len() >= least)
    };
    let mut base = if let Some(rest) = cut("ies", 2) {
        format!("{rest}y")
    } else if let Some(rest) = cut("sses", 1) {
        format!("{rest}ss")
    } else if let Some(rest) =
        cut("ings", 3).or_else(|| cut("ing", 3)).or_else(|| cut("ator", 4).filter(|_| word.len() > 6))
    {
        rest.to_owned()
    } else if let Some(rest) = cut("ations", 3).or_else(|| cut("ation", 3)).or_else(|| cut("ate", 4)) {
        rest.to_owned()
    } else if let Some(rest) = cut("ed", 3).or_else(|| cut("es", 3).filter(|r| r.ends_with(['x', 'z', 'h'])))
    {
        rest.to_owned()
    } else if let Some(rest) = cut("s", 2).filter(|rest| !rest.ends_with(['s', 'u', 'i'])) {
        rest.to_owned()
    } else {
        word.to_owned()
    };
    if base.len() > 5 && base.ends_with("at") {
        base.truncate(base.len() - 2);
    }
    if base.len() > 3 && base.ends_with('e') {
        base.pop();
    }
    let mut tail = base.chars().rev();
    if let (Some(last), Some(before)) = (tail.next(), tail.next())
        && last == before
        && last.is_ascii_lowercase()
        && base.len() > 3
    {
        base.pop();
    }
    if base.len() > 2 && base.ends_with('y') {
        base.pop();
        base.push('i');
    }
    base
}

/// Words that say nothing about what a question is about.
pub(super) fn is_stop(lower: &str) -> bool {
    const STOP: &[&str] = &[
        "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been",
        "but", "by", "can", "could", "did", "do", "does", "for", "from", "had", "has", "have", "hello",
        "hey", "hi", "how", "i", "i'd", "i'm", "if", "in", "into", "is", "it", "it's", "its", "just", "let",
        "like", "many", "may", "me", "more", "much", "must", "my", "need", "no", "not", "of", "off", "on",
        "one", "or", "our", "out", "over", "please", "s", "should", "so", "some", "such", "tell", "than",
        "thank", "thanks", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to",
        "up", "us", "use", "used", "using", "want", "was", "we", "were", "what", "what's", "when", "where",
        "which", "who", "why", "will", "with", "would", "you", "your",
    ];
    STOP.binary_search(&lower).is_ok()
}

/// Words that descriptions of tools are written in, whatever the tool.
pub(super) fn is_jargon(lower: &str) -> bool {
    const JARGON: &[&str] = &[
        "default", "defaults", "e", "eg", "etc", "example", "examples", "g", "given", "ie", "optional",
        "required", "result", "results", "return", "returned", "returns", "tool", "tools", "value", "values",
    ];
    JARGON.binary_search(&lower).is_ok()
}

/// Words that many tools and many questions have in common; they count, but little.
pub(super) fn is_weak(lower: &str) -> bool {
    const WEAK: &[&str] = &[
        "add", "check", "create", "data", "find", "get", "give", "list", "look", "make", "new", "number",
        "read", "run", "set", "show", "start", "take", "text", "write",
    ];
    WEAK.binary_search(&lower).is_ok()
}

/// Other words under which people ask for the same thing. Kept short: the tools' own words should do.
pub(super) fn akin(lower: &str) -> &'static [&'static str] {
    match lower {
        "forecast" | "temperature" | "rain" | "raining" | "sunny" | "snow" | "umbrella" => {
            &["weather", "forecast"]
        }
        "compute" | "math" | "plus" | "minus" | "times" => &["calculate"],
        "exchange" => &["convert", "currency"],
        "euro" | "euros" | "dollar" | "dollars" | "pounds" | "yen" | "money" => &["currency"],
        "clock" | "hour" | "o'clock" => &["time"],
        "today" | "now" => &["current"],
        "google" | "lookup" | "news" | "latest" | "internet" | "online" => &["search", "web"],
        "site" | "website" | "link" => &["webpage", "page", "url"],
        "summarize" | "summarise" | "open" | "browse" => &["fetch"],
        "remind" | "wake" => &["alarm", "reminder"],
        "remember" | "jot" => &["note", "memory"],
        "picture" | "photo" => &["image"],
        "mail" => &["email"],
        "throw" => &["roll"],
        "far" => &["distance"],
        "related" | "connected" => &["relation", "graph"],
        "schedule" | "recurring" => &["schedule", "job"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_word_share_a_stem() {
        for forms in [
            &["side", "sides", "sided"][..],
            &["calculate", "calculation", "calculator", "calculating", "calculated"],
            &["translate", "translation", "translating", "translated"],
            &["label", "labelled", "labels"],
            &["roll", "rolls", "rolling", "rolled"],
            &["city", "cities"],
            &["search", "searches", "searching"],
            &["note", "notes"],
        ] {
            let all: Vec<_> = forms.iter().map(|form| stem(form)).collect();
            assert!(all.iter().all(|stem| *stem == all[0]), "{forms:?} gave {all:?}");
        }
    }

    #[test]
    fn words_know_where_they_stand() {
        let text = "What's 2+2, Zoë?";
        let found: Vec<_> = words(text).into_iter().map(|word| text[word.range].to_owned()).collect();
        assert_eq!(found, ["What's", "2", "2", "Zoë"]);
    }

    #[test]
    fn names_are_split_however_they_are_written() {
        for name in ["max_results", "maxResults", "max-results", "max.results"] {
            assert_eq!(split_name(name), ["max", "results"], "{name}");
        }
    }

    #[test]
    fn lists_are_sorted() {
        for word in ["a", "what's", "your", "i'd", "is", "with"] {
            assert!(is_stop(word), "{word}");
        }
        assert!(is_jargon("default") && is_jargon("value") && is_jargon("e"));
        assert!(is_weak("add") && is_weak("write") && is_weak("make"));
    }
}
