//! Finds how often something is to happen, and writes it as a cron pattern.

use std::sync::LazyLock;

use regex::Regex;

use super::find::{self, Found};
use super::question::{Pattern, Question};

static CRON: Pattern = LazyLock::new(|| {
    Regex::new(r"(?:^|[^\w*])((?:\d[\d,-]*|\*)(?:/\d+)?(?:[ \t]+(?:\d[\d,-]*|\*)(?:/\d+)?){2}(?:[ \t]+(?:\d[\d,-]*|\*|[A-Z]{3}[A-Z,-]*)(?:/\d+)?){2})(?:[^\w*]|$)").ok()
});
static EVERY: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:every|each)\s+(?:(\d+)\s+)?(minute|hour|day|weekday|morning|evening|month|(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b|\b(hourly|daily|monthly)\b").ok()
});
static AT: Pattern = LazyLock::new(|| Regex::new(r"(?i)\bat\s+(\d{1,2})(?:\s*o'clock)?(?:[\s.!?]|$)").ok());

/// A cron pattern, as it stands there or as it is said: `every day at 8`, `every 5 minutes`.
pub(super) fn recurrence(question: &Question<'_>) -> Option<Found> {
    let written = CRON.as_ref()?.captures(question.text).and_then(|found| found.get(1));
    // With signs between all of its numbers it is a sum.
    if let Some(written) = written.filter(|written| !is_sum(written.as_str())) {
        return Some((written.range(), vec![written.as_str().to_owned()]));
    }
    let found = EVERY.as_ref()?.captures(question.text)?;
    let whole = found.get(0)?.range();
    let number = found.get(1).and_then(|number| number.as_str().parse::<u32>().ok());
    let unit = found.get(2).or_else(|| found.get(3))?.as_str().to_lowercase();
    let at = time_of_day(question);
    let (hour, minute, end) = at.unwrap_or((if unit == "evening" { 18 } else { 8 }, 0, whole.end));
    let day = format!("{minute} {hour}");
    let pattern = match (unit.as_str(), number) {
        ("minute", Some(number)) if (2..60).contains(&number) => format!("*/{number} * * * *"),
        ("minute", _) => "* * * * *".to_owned(),
        ("hour" | "hourly", Some(number)) if (2..24).contains(&number) => format!("0 */{number} * * *"),
        ("hour" | "hourly", _) => "0 * * * *".to_owned(),
        ("day" | "daily" | "morning" | "evening", _) => format!("{day} * * *"),
        ("weekday", _) => format!("{day} * * MON-FRI"),
        ("month" | "monthly", _) => format!("{day} 1 * *"),
        (name, _) => format!("{day} * * {}", name.get(..3)?.to_uppercase()),
    };
    Some((whole.start..whole.end.max(end), vec![pattern]))
}

fn is_sum(text: &str) -> bool {
    let parts: Vec<bool> = text.split_whitespace().map(|part| part == "*").collect();
    parts == [false, true, false, true, false]
}

/// Hour and minute, and where they end.
fn time_of_day(question: &Question<'_>) -> Option<(u32, u32, usize)> {
    if let Some((range, ways)) = find::time(question) {
        let (hour, minute) = ways.first()?.split_once(':')?;
        return Some((hour.parse().ok()?, minute.get(..2)?.parse().ok()?, range.end));
    }
    let hour = AT.as_ref()?.captures(question.text)?.get(1)?;
    let number: u32 = hour.as_str().parse().ok()?;
    (number < 24).then_some((number, 0, hour.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_compile() {
        assert!([&CRON, &EVERY, &AT].into_iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn what_recurs_is_a_cron_pattern() {
        for (text, want) in [
            ("with cron \"30 8 * * MON-FRI\"", "30 8 * * MON-FRI"),
            ("at */5 * * * * please", "*/5 * * * *"),
            ("every minute", "* * * * *"),
            ("every 5 minutes", "*/5 * * * *"),
            ("every hour", "0 * * * *"),
            ("every day at 8", "0 8 * * *"),
            ("every day at 8.", "0 8 * * *"),
            ("daily at 17:45", "45 17 * * *"),
            ("at 7 pm every weekday", "0 19 * * MON-FRI"),
            ("every Monday at 9:05", "5 9 * * MON"),
            ("each evening", "0 18 * * *"),
            ("every month", "0 8 1 * *"),
        ] {
            let found = recurrence(&Question::new(text, Vec::new()));
            assert_eq!(found.and_then(|(_, ways)| ways.into_iter().next()).as_deref(), Some(want), "{text}");
        }
        for text in ["everything", "every word of it", "at 8", "2 * 3 * 4", "2 * 3", "today"] {
            assert!(recurrence(&Question::new(text, Vec::new())).is_none(), "{text}");
        }
    }
}
