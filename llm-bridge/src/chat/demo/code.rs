//! Finds what is written in another language than the question: a program, a statement of SQL.

use std::sync::LazyLock;

use regex::Regex;

use super::find::Found;
use super::question::{Pattern, Question};

static FENCE: Pattern = LazyLock::new(|| Regex::new(r"(?s)```[A-Za-z0-9]*\n(.*?)\n?```").ok());
static SELECT: Pattern = LazyLock::new(|| Regex::new(r"(?is)\b(?:select|with\s+\w+\s+as)\b.+").ok());
static COUNTED: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)\bhow (?:many|large|big|old)\b|\b(?:count|number of|list of|largest|oldest|newest)\b")
        .ok()
});

/// A program: between fences or backticks, or all that stands behind a colon.
pub(super) fn program(question: &Question<'_>) -> Option<Found> {
    let text = question.text;
    if let Some(found) = FENCE.as_ref().and_then(|fence| fence.captures(text))
        && let (Some(whole), Some(inner)) = (found.get(0), found.get(1))
    {
        return Some((whole.range(), vec![inner.as_str().to_owned()]));
    }
    let colon = text.match_indices(':').map(|(at, _)| at + 1).find(|at| {
        let behind = text.get(*at..).unwrap_or_default();
        behind.starts_with(char::is_whitespace) && !behind.trim().is_empty()
    });
    let ticks = text.find('`').filter(|at| {
        colon.is_none_or(|colon| {
            // Behind the colon they are the marks only where they hold all of it.
            *at < colon || text.get(colon..*at).is_some_and(|gap| gap.trim().is_empty())
        })
    });
    if let Some(at) = ticks
        && let Some((inner, _)) = text.get(at + 1..).and_then(|behind| behind.split_once('`'))
        && !inner.trim().is_empty()
    {
        return Some((at..at + inner.len() + 2, vec![inner.to_owned()]));
    }
    let at = colon?;
    Some((at..text.len(), vec![text.get(at..)?.trim().to_owned()]))
}

/// A statement of SQL that reads.
pub(super) fn select(question: &Question<'_>) -> Option<Found> {
    let range = question.matches(&SELECT).into_iter().next()?;
    let text = question.slice(&range).trim_end_matches(['`', '"', '.', ' ', '\n']);
    // "Select a colour" is no statement.
    let lower = text.to_lowercase();
    lower.contains(" from ").then(|| (range.clone(), vec![text.to_owned()]))
}

/// Whether something is to be counted or measured, which is what such statements are for.
pub(super) fn counts(question: &Question<'_>) -> bool {
    !question.matches(&COUNTED).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(finder: impl Fn(&Question<'_>) -> Option<Found>, text: &str) -> Option<String> {
        finder(&Question::new(text, Vec::new())).and_then(|(_, ways)| ways.into_iter().next())
    }

    #[test]
    fn programs() {
        for (text, want) in [
            ("Run this Python: print(sum(range(101)))", "print(sum(range(101)))"),
            ("Run `print(2**64)`, please", "print(2**64)"),
            ("Run this: `a: b`", "a: b"),
            ("Run this shell: echo `date`; ls", "echo `date`; ls"),
            ("Run\n```python\nfor i in 1, 2:\n    print(i)\n```\nplease", "for i in 1, 2:\n    print(i)"),
            ("Run this:\nimport os\nprint(os.getcwd())", "import os\nprint(os.getcwd())"),
        ] {
            assert_eq!(found(program, text).as_deref(), Some(want), "{text}");
        }
        for text in ["Run the program", "Run it:", "Run ``", "at 7:30"] {
            assert_eq!(found(program, text), None, "{text}");
        }
    }

    #[test]
    fn statements() {
        for (text, want) in [
            ("Ask it SELECT path FROM documents.", Some("SELECT path FROM documents")),
            ("`select count(*) from d`", Some("select count(*) from d")),
            (
                "with a as (select 1 from d) select * from a",
                Some("with a as (select 1 from d) select * from a"),
            ),
            ("select a colour", None),
            ("How many are there?", None),
        ] {
            assert_eq!(found(select, text).as_deref(), want, "{text}");
        }
        assert!(counts(&Question::new("How many are there?", Vec::new())));
    }

    #[test]
    fn patterns_compile() {
        assert!([&FENCE, &SELECT, &COUNTED].into_iter().all(|pattern| pattern.is_some()));
    }
}
