//! Finds what has a form of its own in a question: addresses, dates, times, sums.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::question::{Pattern, Question};

/// Something found: where it stands, and the ways to write it, the likeliest first.
pub(super) type Found = (Range<usize>, Vec<String>);

static URL: Pattern = LazyLock::new(|| {
    Regex::new(r#"(?i)\bhttps?://[^\s<>"'`]+|\b(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|edu|gov|info|de|uk|fr|eu)\b(?:/[^\s<>"'`]*)?"#).ok()
});
static EMAIL: Pattern =
    LazyLock::new(|| Regex::new(r"(?i)\b[a-z0-9._%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+\b").ok());
static ZONE: Pattern = LazyLock::new(|| {
    Regex::new(r"\b(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)/[A-Za-z_]+(?:/[A-Za-z_]+)?\b|\b(?:UTC|GMT)(?:[+-]\d{1,2}(?::\d\d)?)?").ok()
});
static PATH: Pattern = LazyLock::new(|| {
    Regex::new(r"(?:~|\.\.?)?(?:/[\w.@-]*\w)+/?|\b[\w.-]+(?:/[\w.-]*\w)+|\b[\w-]+\.[A-Za-z]\w{0,4}\b").ok()
});
static IDENTIFIER: Pattern =
    LazyLock::new(|| Regex::new(r"\b[a-z][a-z0-9]*(?:[._][a-z0-9]+)+\b|\btool\s+([a-z][a-z0-9]*)\b").ok());
static TIME: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?:\s*[ap]m\b)?|\b(?:1[0-2]|0?[1-9])\s*[ap]m\b|\bnoon\b|\bmidnight\b").ok()
});
static DATE: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)\b\d{4}-\d\d-\d\d\b|\b\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*,?\s+\d{4}\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\s+\d{1,2}(?:st|nd|rd|th)?,?\s+\d{4}\b|\b(?:day after )?tomorrow\b|\btoday\b|\btonight\b|\byesterday\b|\b(?:next |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\bnext (?:week|month|year)\b").ok()
});
static SUM: Pattern = LazyLock::new(|| {
    const NUMBER: &str =
        r"(?:\d+(?:,\d{3})*(?:\.\d+)?|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b)";
    const FUNCTION: &str = r"(?:sqrt|abs|sin|cos|tan|log|ln|exp|floor|ceil|round|min|max|pow)\s*\(";
    const BETWEEN: &str = r"(?:\*\*|//|[-+*/^%×÷−·,]|\b(?:plus|minus|times|x|mod)\b|\b(?:multiplied|divided) by\b|\bto the power of\b|\bpercent of\b|% of\b)";
    let operand = format!(r"[-−]?\s*(?:(?:{FUNCTION}|\()\s*)*[-−]?\s*(?:{NUMBER}|\bpi\b)(?:\s*\))*");
    Regex::new(&format!(r"(?i){operand}(?:\s*{BETWEEN}\s*{operand})*(?:\s*(?:squared|cubed)\b)?")).ok()
});
static ROOT: Pattern =
    LazyLock::new(|| Regex::new(r"(?i)\b(?:square root|sqrt) (?:of )?(\d[\d,]*(?:\.\d+)?)").ok());

/// A web address.
pub(super) fn url(question: &Question<'_>) -> Option<Found> {
    let mail = question.matches(&EMAIL);
    question.matches(&URL).into_iter().find_map(|range| {
        if mail.iter().any(|mail| mail.start < range.end && range.start < mail.end) {
            return None;
        }
        let mut text = question.slice(&range).trim_end_matches(['.', ',', ';', ':', '!', '?', '*']);
        if !text.contains('(') {
            text = text.trim_end_matches(')');
        }
        let full = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
        Some((range.start..range.start + text.len(), vec![full]))
    })
}

/// An e-mail address.
pub(super) fn email(question: &Question<'_>) -> Option<Found> {
    first(question, &EMAIL)
}

/// A path in a file system.
pub(super) fn path(question: &Question<'_>) -> Option<Found> {
    first(question, &PATH)
}

/// A name in the manner of programs: `current_time`, `files.read`, or what is said to be a tool's.
pub(super) fn identifier(question: &Question<'_>) -> Option<Found> {
    let found = IDENTIFIER.as_ref()?.captures(question.text)?;
    let whole = found.get(0)?;
    let name = found.get(1).unwrap_or(whole);
    Some((whole.range(), vec![name.as_str().to_owned()]))
}

/// A time zone by its name in the IANA database.
pub(super) fn zone(question: &Question<'_>) -> Option<Found> {
    first(question, &ZONE)
}

/// A time of day, as `07:30`, with seconds, and as it was written.
pub(super) fn time(question: &Question<'_>) -> Option<Found> {
    let (range, mut ways) = first(question, &TIME)?;
    let text = question.slice(&range).to_lowercase();
    let (hour, minute, second) = match text.as_str() {
        "noon" => (12, 0, 0),
        "midnight" => (0, 0, 0),
        clock => {
            let digits = clock.trim_end_matches(|c: char| !c.is_ascii_digit());
            let mut parts = digits.split(':').map(|part| part.parse::<u32>().unwrap_or(0));
            let hour = parts.next().unwrap_or(0);
            let hour = match (clock.ends_with("pm"), clock.ends_with("am")) {
                (true, _) if hour < 12 => hour + 12,
                (_, true) if hour == 12 => 0,
                _ => hour,
            };
            (hour, parts.next().unwrap_or(0), parts.next().unwrap_or(0))
        }
    };
    ways.insert(0, format!("{hour:02}:{minute:02}:{second:02}"));
    if second == 0 {
        ways.insert(0, format!("{hour:02}:{minute:02}"));
    }
    ways.push(format!("{hour:02}:{minute:02}:{second:02}Z"));
    Some((range, ways))
}

/// A date, as `2026-05-01` where it says which year, else as it was written.
pub(super) fn date(question: &Question<'_>) -> Option<Found> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let (range, mut ways) = first(question, &DATE)?;
    let text = question.slice(&range).to_lowercase();
    let parts: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let month = parts.iter().find_map(|part| MONTHS.iter().position(|month| part.starts_with(month)));
    let figures: Vec<u32> = parts
        .iter()
        .filter_map(|part| part.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok())
        .collect();
    if let (Some(month), [day, year]) = (month, figures.as_slice()) {
        ways.insert(0, format!("{year:04}-{:02}-{day:02}", month + 1));
    }
    Some((range, ways))
}

/// A sum to work out, words for signs written as signs.
pub(super) fn sum(question: &Question<'_>) -> Option<Found> {
    let root = ROOT.as_ref().and_then(|root| root.captures(question.text));
    if let Some(found) = root
        && let (Some(whole), Some(number)) = (found.get(0), found.get(1))
        && question.is_free(&whole.range())
    {
        return Some((whole.range(), vec![format!("sqrt({})", plain(number.as_str()))]));
    }
    let dates = question.matches(&DATE);
    question
        .matches(&SUM)
        .into_iter()
        .map(|range| {
            let text = question.slice(&range);
            range.start + text.len() - text.trim_start().len()..range.end
        })
        .filter(|range| !dates.iter().any(|date| date.start < range.end && range.start < date.end))
        .filter(|range| {
            // A digit inside a word or an address is no operand.
            let before = question.text.get(..range.start).and_then(|text| text.chars().next_back());
            let after = question.text.get(range.end..).and_then(|text| text.chars().next());
            !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '_' | '.' | ':'))
                && !after.is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '_' | ':'))
        })
        .filter_map(|range| {
            let text = balance(&signs(question.slice(&range)));
            let inner = text.trim_start_matches(['-', '(']);
            let works = inner.contains(['+', '-', '*', '/', '^', '%'])
                || (inner.contains('(') && inner.starts_with(|c: char| c.is_ascii_alphabetic()));
            works.then(|| (range.clone(), vec![text]))
        })
        .max_by_key(|(range, _)| range.len())
}

/// `1,200 times 3` as `1200 * 3`; what is in signs already stays as it was written.
fn signs(text: &str) -> String {
    let mut text = plain(&text.to_lowercase());
    for (word, sign) in [
        ("multiplied by", "*"),
        ("divided by", "/"),
        ("to the power of", "^"),
        ("percent of", "/ 100 *"),
        ("% of", " / 100 *"),
        ("plus", "+"),
        ("minus", "-"),
        ("times", "*"),
        (" squared", "^2"),
        (" cubed", "^3"),
        ("mod", "%"),
        (" x ", " * "),
        ("×", "*"),
        ("·", "*"),
        ("÷", "/"),
        ("−", "-"),
        ("**", "^"),
        ("one", "1"),
        ("two", "2"),
        ("three", "3"),
        ("four", "4"),
        ("five", "5"),
        ("six", "6"),
        ("seven", "7"),
        ("eight", "8"),
        ("nine", "9"),
        ("ten", "10"),
    ] {
        text = text.replace(word, sign);
    }
    text.trim().to_owned()
}

/// Takes the commas out of `1,200,000` and leaves those of `max(1, 2)`.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(',') {
        out.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if !(before.ends_with(|c: char| c.is_ascii_digit()) && digits == 3) {
            out.push(',');
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Takes off the brackets at the ends that have no partner.
fn balance(text: &str) -> String {
    let mut text = text.trim();
    loop {
        let (open, close) = (text.matches('(').count(), text.matches(')').count());
        let shorter = if close > open {
            text.strip_suffix(')')
        } else if open > close {
            text.strip_prefix('(')
        } else {
            None
        };
        match shorter {
            Some(shorter) => text = shorter.trim(),
            None => break,
        }
    }
    let missing = text.matches('(').count().saturating_sub(text.matches(')').count());
    format!("{text}{}", ")".repeat(missing))
}

fn first(question: &Question<'_>, pattern: &Pattern) -> Option<Found> {
    let range = question.matches(pattern).into_iter().next()?;
    Some((range.clone(), vec![question.slice(&range).to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(finder: impl Fn(&Question<'_>) -> Option<Found>, text: &str) -> Option<String> {
        finder(&Question::new(text, Vec::new())).and_then(|(_, ways)| ways.into_iter().next())
    }

    #[test]
    fn patterns_compile() {
        use super::super::question::{NUMBER, QUOTED};
        for pattern in [&URL, &EMAIL, &PATH, &IDENTIFIER, &ZONE, &TIME, &DATE, &SUM, &ROOT, &NUMBER, &QUOTED]
        {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn sums() {
        for (text, want) in [
            ("What is 21 * 23?", "21 * 23"),
            ("what is 2+2", "2+2"),
            ("compute (3 + 4) * 2.", "(3 + 4) * 2"),
            ("how much is 12 times 3", "12 * 3"),
            ("1,200 divided by 4", "1200 / 4"),
            ("What is 15% of 80?", "15 / 100 * 80"),
            ("7 squared", "7^2"),
            ("what is two plus seven", "2 + 7"),
            ("square root of 144", "sqrt(144)"),
            ("work out sqrt(16) + max(1, 2)", "sqrt(16) + max(1, 2)"),
            ("what is 2**10 (exactly)", "2^10"),
        ] {
            assert_eq!(found(sum, text).as_deref(), Some(want), "{text}");
        }
        for text in
            ["on 2024-05-01", "at 7:30", "3 apples and 4 pears", "v1.2.3", "https://a.io/3/4", "5", "-5"]
        {
            assert_eq!(found(sum, text), None, "{text}");
        }
    }

    #[test]
    fn addresses() {
        assert_eq!(found(url, "read (https://a.io/x?y=1).").unwrap(), "https://a.io/x?y=1");
        assert_eq!(found(url, "open example.com/page please").unwrap(), "https://example.com/page");
        assert_eq!(found(url, "write to ann@example.com"), None);
        assert_eq!(found(email, "write to ann@example.com.").unwrap(), "ann@example.com");
    }

    #[test]
    fn times_and_dates() {
        for (text, want) in [
            ("at 7:30", "07:30"),
            ("at 7 pm", "19:00"),
            ("at 12am", "00:00"),
            ("noon", "12:00"),
            ("1:02:03", "01:02:03"),
        ] {
            assert_eq!(found(time, text).unwrap(), want, "{text}");
        }
        for (text, want) in [
            ("on 2026-05-01", "2026-05-01"),
            ("on May 1st, 2026", "2026-05-01"),
            ("on 24 December 2026", "2026-12-24"),
            ("see you tomorrow", "tomorrow"),
        ] {
            assert_eq!(found(date, text).unwrap(), want, "{text}");
        }
    }
}
