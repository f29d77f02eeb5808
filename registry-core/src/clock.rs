//! The time, handed in so that a test can hold it still.

use jiff::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's own clock, in milliseconds: nobody needs the digits behind in a record, an answer or a model's prompt.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u16_times_have_at_most_milliseconds() {
        for _ in 0..20 {
            let text = SystemClock.now().to_string();
            let digits = text.split_once('.').map_or(0, |(_, rest)| rest.trim_end_matches('Z').len());
            assert!(digits <= 3, "{text}");
        }
    }
}
