//! Text for a regular expression. A required argument with a pattern has to get something that matches.

use std::ops::Range;

use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

/// A text made up is not longer than this.
const LIMIT: usize = 10_000;

/// Whether a text matches. What this engine cannot read (look-around) is left to whoever validates.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    Regex::new(&ascii_classes(pattern)).map_or(true, |regex| regex.is_match(text))
}

/// The pattern as JSON Schema means it: there a digit is one of ten, and a letter of a word one of 52.
fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        match escaped {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            other => out.extend([Some(c), other].into_iter().flatten()),
        }
    }
    out
}

/// A text that matches and has the right length: a part of `question` if there is one, else made up.
pub(super) fn sample(pattern: &str, question: &str, least: usize, most: usize) -> Option<String> {
    let meant = ascii_classes(pattern);
    let regex = Regex::new(&meant).ok()?;
    let hir = regex_syntax::parse(&meant).ok()?;
    let right = |text: &str| {
        let length = text.chars().count();
        (least..=most).contains(&length) && regex.is_match(text)
    };
    let parts = part(pattern, question);
    // Repetitions may go beyond what they must, as far as the length asks for it.
    let mut made = (0..=least.min(300)).map(|more| {
        let mut text = String::new();
        write(&hir, more as u32, &mut text);
        text
    });
    parts.filter(|text| right(text)).or_else(|| made.find(|text| right(text)))
}

/// The first part of a question that matches a pattern.
fn part(pattern: &str, question: &str) -> Option<String> {
    parts(pattern, question).into_iter().next().and_then(|range| question.get(range)).map(str::to_owned)
}

/// Where the parts of a question are that match a pattern.
pub(super) fn parts(pattern: &str, question: &str) -> Vec<Range<usize>> {
    // Anchors speak of the argument; inside a question it stands between other words.
    let bare = ascii_classes(pattern.trim_start_matches('^').trim_end_matches('$'));
    let Ok(regex) = Regex::new(&format!(r"(?:^|\b)(?:{bare})(?:\b|$)")) else { return Vec::new() };
    regex.find_iter(question).map(|found| found.range()).filter(|range| !range.is_empty()).collect()
}

fn write(hir: &Hir, more: u32, out: &mut String) {
    if out.len() > LIMIT {
        return;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => out.extend(one_of(class)),
        HirKind::Capture(capture) => write(&capture.sub, more, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, more, out)),
        HirKind::Alternation(parts) => {
            if let Some(part) = parts.first() {
                write(part, more, out);
            }
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX);
            for _ in 0..repetition.min.saturating_add(more).min(most) {
                let before = out.len();
                write(&repetition.sub, more.min(1), out);
                if out.len() == before || out.len() > LIMIT {
                    break;
                }
            }
        }
    }
}

/// A character of a class: a readable one if there is one.
fn one_of(class: &Class) -> Option<char> {
    let Class::Unicode(class) = class else { return None };
    let has = |c: char| class.iter().any(|range| (range.start()..=range.end()).contains(&c));
    ['a', 'A', '1', 'x', '0', '-', '_', ' ']
        .into_iter()
        .find(|&c| has(c))
        .or_else(|| class.iter().next().map(|range| range.start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_a_text_for_a_pattern() {
        for pattern in [
            "^[A-Z]{3}$",
            "^\\d{4}-\\d{2}$",
            "^(a|b)+c?$",
            "^v\\d+\\.\\d+\\.\\d+$",
            "^[^\\s@]+@[^\\s@]+$",
            "x{2,5}",
        ] {
            let text = sample(pattern, "", 0, 100).unwrap();
            assert!(fits(pattern, &text), "{pattern}: {text}");
        }
        assert_eq!(sample("^[a-z]*$", "", 4, 10).unwrap().len(), 4);
    }

    #[test]
    fn takes_the_part_of_the_question() {
        assert_eq!(part("^[A-Z]{3}-\\d+$", "close ABC-12 now").unwrap(), "ABC-12");
        assert_eq!(part("^\\d{5}$", "call 123456"), None);
    }

    #[test]
    fn digits_and_letters_of_words_are_those_of_json_schema() {
        for (pattern, text, is_fit) in [
            ("^\\d$", "7", true),
            ("^\\d$", "০", false),
            ("^[\\d.]+$", "1.2", true),
            ("^[^\\d]$", "০", true),
            ("^\\W$", "ä", true),
            ("^\\\\d$", "\\d", true),
        ] {
            assert_eq!(fits(pattern, text), is_fit, "{pattern} {text}");
        }
        assert_eq!(sample("^[A-Z]{2}\\d+$", "¡AA০", 0, 9).as_deref(), Some("AA1"));
    }

    #[test]
    fn hostile_patterns_end() {
        for pattern in ["(((a{1000}){1000}){1000})", "(?=x)y", "((){1000}){1000}", "["] {
            let _ = sample(pattern, "a", 0, 10);
        }
    }
}
