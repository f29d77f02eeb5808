//! A question that is being taken apart: what has been used for one argument is not used for another.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::words::{Word, is_stop, stem, words};

/// A pattern of ours. It is `None` only if it does not compile, which a test rules out.
pub(super) type Pattern = LazyLock<Option<Regex>>;

/// A user's question and which parts of it are spoken for.
#[derive(Debug, Clone)]
pub(super) struct Question<'a> {
    pub(super) text: &'a str,
    pub(super) words: Vec<Word>,
    /// Inside of quotation marks, and the same with the marks.
    pub(super) quotes: Vec<(Range<usize>, Range<usize>)>,
    taken: Vec<Range<usize>>,
    /// Stems of words that lead up to the matter and are no part of it.
    lead: Vec<String>,
}

/// A number in a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    pub(super) range: Range<usize>,
    pub(super) value: f64,
}

pub(super) static QUOTED: Pattern =
    LazyLock::new(|| Regex::new(r#""([^"]+)"|“([^”]+)”|«([^»]+)»|`([^`]+)`|(?:^|[\s:(])'([^']+)'"#).ok());
pub(super) static NUMBER: Pattern = LazyLock::new(|| Regex::new(r"-?\d+(?:,\d{3})*(?:\.\d+)?").ok());

impl<'a> Question<'a> {
    /// A question; `lead` are the stems of words that only lead up to the matter, such as the tool's own name.
    pub(super) fn new(text: &'a str, lead: Vec<String>) -> Self {
        let quotes = QUOTED.inner_and_whole(text);
        Self { text, words: words(text), quotes, taken: Vec::new(), lead }
    }

    pub(super) fn slice(&self, range: &Range<usize>) -> &'a str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// Whether nothing has used this part yet.
    pub(super) fn is_free(&self, range: &Range<usize>) -> bool {
        !self.taken.iter().any(|taken| taken.start < range.end && range.start < taken.end)
    }

    /// Whether this part is inside quotation marks.
    pub(super) fn is_quoted(&self, range: &Range<usize>) -> bool {
        self.quotes.iter().any(|(_, outer)| outer.start < range.end && range.start < outer.end)
    }

    /// Marks a part as used.
    pub(super) fn take(&mut self, range: Range<usize>) {
        self.taken.push(range);
    }

    /// The next quoted text nothing has used yet.
    pub(super) fn quoted(&self) -> Option<(Range<usize>, Range<usize>)> {
        self.quotes.iter().find(|(_, outer)| self.is_free(outer)).cloned()
    }

    /// The unused matches of a pattern.
    pub(super) fn matches(&self, pattern: &Pattern) -> Vec<Range<usize>> {
        let Some(pattern) = pattern.as_ref() else { return Vec::new() };
        pattern.find_iter(self.text).map(|found| found.range()).filter(|range| self.is_free(range)).collect()
    }

    /// The word before a place, and the one after it.
    pub(super) fn beside(&self, range: &Range<usize>) -> (Option<&Word>, Option<&Word>) {
        let before = self.words.iter().rev().find(|word| word.range.end <= range.start);
        (before, self.words.iter().find(|word| word.range.start >= range.end))
    }

    /// The unused numbers, in order; those inside quotation marks are text.
    pub(super) fn numbers(&self) -> Vec<Number> {
        let stands_alone = |range: &Range<usize>| {
            let before = self.text.get(..range.start).and_then(|text| text.chars().next_back());
            !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'))
        };
        let mut found: Vec<Number> = Vec::new();
        for mut range in self.matches(&NUMBER) {
            let minus = self.slice(&range).starts_with('-');
            if minus
                && !self.text.get(..range.start).is_none_or(|t| t.is_empty() || t.ends_with([' ', '(', '=']))
            {
                range.start += 1;
            } else if !stands_alone(&range) {
                continue;
            }
            if let Ok(value) = self.slice(&range).replace(',', "").parse() {
                found.push(Number { range, value });
            }
        }
        for word in &self.words {
            let value = match word.lower.as_str() {
                "two" => 2.0,
                "three" => 3.0,
                "four" => 4.0,
                "five" => 5.0,
                "six" => 6.0,
                "seven" => 7.0,
                "eight" => 8.0,
                "nine" => 9.0,
                "ten" => 10.0,
                "twelve" | "dozen" => 12.0,
                "twenty" => 20.0,
                "fifty" => 50.0,
                "hundred" => 100.0,
                _ => continue,
            };
            found.push(Number { range: word.range.clone(), value });
        }
        found.retain(|number| self.is_free(&number.range) && !self.is_quoted(&number.range));
        found.sort_by_key(|number| number.range.start);
        found
    }

    /// Where these words stand one after the other, unused. Outside quotation marks first.
    pub(super) fn sequence(&self, stems: &[String]) -> Vec<Range<usize>> {
        if stems.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<_> = self
            .words
            .windows(stems.len())
            .filter(|run| run.iter().zip(stems).all(|(word, stem)| word.stem == *stem))
            .filter_map(|run| Some(run.first()?.range.start..run.last()?.range.end))
            .filter(|range| self.is_free(range))
            .collect();
        found.sort_by_key(|range| self.is_quoted(range));
        found
    }

    /// What is left when everything used, the words leading up to it and those trailing off are taken away.
    /// `own` are further words that lead up to it, as stems.
    pub(super) fn rest(&self, own: &[String]) -> Option<(Range<usize>, String)> {
        const TRAIL: &[&str] = &[
            "a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "is", "my", "now", "of", "on",
            "or", "please", "right", "than", "thanks", "that", "the", "to", "with",
        ];
        let free: Vec<&Word> = self.words.iter().filter(|word| self.is_free(&word.range)).collect();
        // "Check the claim that …": what the tool is called may lead up to the matter a few words later as well.
        let named = free.windows(2).take(4).rposition(|pair| match pair {
            [word, next] => {
                let joint = matches!(next.lower.as_str(), "that" | "for" | "about" | "whether" | "if");
                let gap = self.slice(&(word.range.end..next.range.start));
                self.lead.contains(&word.stem) && (joint || gap.contains(':'))
            }
            _ => false,
        });
        let free = free.get(named.map_or(0, |at| at + 1)..)?;
        let from = free.iter().position(|word| !self.leads_up(word) && !own.contains(&word.stem))?;
        let free = free.get(from..)?;
        let kept = free.iter().rposition(|word| !TRAIL.contains(&word.lower.as_str()))?;
        let free = free.get(..=kept)?;
        let (first, last) = (free.first()?, free.last()?);
        let mut text = String::new();
        let mut end = first.range.start;
        for word in free {
            let gap = end..word.range.start;
            // Only what stands between two kept words is kept as it was written.
            if self.is_free(&gap) && !self.words.iter().any(|other| gap.contains(&other.range.start)) {
                text.push_str(self.slice(&gap));
            } else if !text.is_empty() {
                // A preposition in front of what was cut out has lost its object.
                text.push(' ');
            }
            text.push_str(self.slice(&word.range));
            end = word.range.end;
        }
        // A symbol belongs to the word it touches: `C++`, `50%`, `f(x)`.
        let mut range = first.range.start..end;
        let close: usize = self
            .text
            .get(end..)
            .unwrap_or_default()
            .chars()
            .take_while(|c| matches!(c, '+' | '#' | '%' | ')' | '*' | '°'))
            .map(char::len_utf8)
            .sum();
        let tail = last.range.end..last.range.end + close;
        if close > 0 && self.is_free(&tail) && (text.contains('(') || !self.slice(&tail).contains(')')) {
            text.push_str(self.slice(&tail));
            range.end = tail.end;
        }
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some((range, text))
    }

    /// Whether a part of the question has words, and all of them only lead up to the matter.
    pub(super) fn only_leads_up(&self, range: &Range<usize>) -> bool {
        let inside = |word: &&Word| word.range.start < range.end && range.start < word.range.end;
        let mut words = self.words.iter().filter(inside).peekable();
        words.peek().is_some() && words.all(|word| self.leads_up(word))
    }

    fn leads_up(&self, word: &Word) -> bool {
        const LEAD: &[&str] = &[
            "add", "archive", "called", "create", "display", "explain", "find", "get", "give", "google",
            "help", "keep", "know", "let", "look", "make", "named", "new", "put", "record", "remember",
            "save", "say", "search", "set", "show", "some", "start", "that", "titled", "write",
        ];
        // "who", "why", "when" and "where" are part of what is asked, the rest of these words is not.
        let asks = matches!(word.lower.as_str(), "who" | "why" | "when" | "where" | "which" | "your");
        let says =
            matches!(word.lower.as_str(), "hello" | "hey" | "hi" | "thanks" | "no" | "not" | "off" | "over");
        (is_stop(&word.lower) && !asks && !says)
            || LEAD.contains(&word.lower.as_str())
            || self.lead.contains(&word.stem)
            || self.lead.contains(&stem(word.lower.trim_end_matches("'s")))
    }
}

/// Matches with a group: the group that took part, and the whole without the space in front.
trait Groups {
    fn inner_and_whole(&self, text: &str) -> Vec<(Range<usize>, Range<usize>)>;
}

impl Groups for Pattern {
    fn inner_and_whole(&self, text: &str) -> Vec<(Range<usize>, Range<usize>)> {
        let Some(pattern) = self.as_ref() else { return Vec::new() };
        pattern
            .captures_iter(text)
            .filter_map(|found| {
                let whole = found.get(0)?.range();
                let inner = found.iter().skip(1).flatten().next()?.range();
                Some((inner, whole))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_figures_and_words() {
        let question = Question::new("Roll two dice, -3.5 or 1,200 (not v2 or \"7\")", Vec::new());
        let values: Vec<f64> = question.numbers().iter().map(|number| number.value).collect();
        assert_eq!(values, [2.0, -3.5, 1200.0]);
    }

    #[test]
    fn quotes_of_every_kind() {
        for text in ["say \"a b\"", "say “a b”", "say 'a b'", "say `a b`", "say «a b»"] {
            let question = Question::new(text, Vec::new());
            let (inner, _) = question.quoted().unwrap();
            assert_eq!(question.slice(&inner), "a b", "{text}");
        }
        assert!(Question::new("don't and won't", Vec::new()).quoted().is_none());
    }

    #[test]
    fn the_rest_is_the_matter() {
        let rest = |text: &str, lead: &[&str]| {
            let lead = lead.iter().map(|word| stem(word)).collect();
            Question::new(text, lead).rest(&[]).map(|(_, text)| text)
        };
        assert_eq!(
            rest("Search the web for rust async runtimes, please.", &["web", "search"]).unwrap(),
            "rust async runtimes"
        );
        assert_eq!(rest("What is the meaning of life?", &[]).unwrap(), "meaning of life");
        assert_eq!(rest("who won the 2022 World Cup?", &[]).unwrap(), "who won the 2022 World Cup");
        assert_eq!(rest("Find C++", &[]).unwrap(), "C++");
        assert_eq!(rest("please?", &[]), None);
    }
}
