//! `Retry-After` of an answer over HTTP (RFC 9110, 10.2.3).

use std::time::Duration;

use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};

/// A server that says more is not believed so far.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// When to ask again: the header has seconds, or a date. `None` where it has neither.
pub(super) fn retry_at(text: &str, now: Timestamp) -> Option<Timestamp> {
    let latest = now.checked_add(LONGEST).ok()?;
    let at = match text.parse() {
        Ok(seconds) => now.checked_add(Duration::from_secs(seconds)).unwrap_or(latest),
        Err(_) => DateTimeParser::new().parse_timestamp(text).ok()?,
    };
    Some(at.clamp(now, latest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b3_retry_after_is_seconds_or_a_date_and_at_most_a_day() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("7", Some("2026-03-01T12:00:07Z")),
            ("Sun, 01 Mar 2026 12:01:00 GMT", Some("2026-03-01T12:01:00Z")),
            ("Sun, 01 Mar 2026 11:00:00 GMT", Some("2026-03-01T12:00:00Z")),
            ("18446744073709551615", Some("2026-03-02T12:00:00Z")),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_at(text, now), expected.map(|at| at.parse().unwrap()), "{text}");
        }
    }
}
