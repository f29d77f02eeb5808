//! How far a turn may go before it is stopped.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use serde_json::Value;

/// The bounds of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// How often the model may be asked.
    pub max_rounds: u32,
    /// How many calls it may make.
    pub max_calls: u32,
    /// How often it may make the same call; one more is answered with a warning, the next ends the turn.
    pub max_identical_calls: u32,
    /// How many seconds the tools of a turn may run in all. The time in which the model answers, or a call waits for a person, does not
    /// count.
    pub max_seconds: u64,
    /// How many characters of a result the model is given; what is left out it can read with `read_result`.
    pub max_result_characters: usize,
    /// How much of the model's context the definitions of the tools may take, in percent; where they take more, the model looks for the server's
    /// tools with `search_tools`. With 100 they are always sent.
    pub max_tools_percent: u8,
    /// How many pictures of results the model is sent in a request: the last ones. The others are described to it.
    pub max_pictures: usize,
    /// How many pixels their longer edge has at most; larger ones are scaled. What Anthropic's models look at, and 56 patches of Qwen's: local
    /// models see no more, and some scale it down further.
    pub max_picture_edge: u32,
    /// How many seconds the model server may send nothing.
    pub idle_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_rounds: 10,
            max_calls: 32,
            max_identical_calls: 2,
            max_seconds: 600,
            max_result_characters: 60_000,
            max_tools_percent: 50,
            max_pictures: 8,
            max_picture_edge: 1568,
            idle_seconds: 300,
        }
    }
}

impl Limits {
    pub(super) fn tool_time(&self) -> Duration {
        Duration::from_secs(self.max_seconds)
    }
}

/// What may be done with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is run.
    Run,
    /// It is not run; the model is informed that it repeats itself.
    Warn,
    /// The turn ends.
    Stop(Reached),
}

/// The limit that ended a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    Rounds(u32),
    Calls(u32),
    Identical(u32),
    Time(u64),
}

impl Reached {
    /// The last message of the turn.
    pub(super) fn message(self) -> String {
        let what = match self {
            Self::Rounds(limit) => {
                format!("the model called tools in {limit} rounds without coming to an answer")
            }
            Self::Calls(limit) => format!("the model made {limit} tool calls without coming to an answer"),
            Self::Identical(times) => format!("the model made the same tool call {times} times"),
            Self::Time(seconds) => format!("its tools took longer than {seconds} s"),
        };
        format!("[Stopped: {what}. The limits are set under `limits` in the configuration.]")
    }
}

/// Counts what a turn has done.
#[derive(Debug)]
pub(super) struct Meter {
    limits: Limits,
    rounds: u32,
    calls: u32,
    seen: HashMap<u64, u32>,
}

impl Meter {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, rounds: 0, calls: 0, seen: HashMap::new() }
    }

    /// Counts what a turn before this one has done that it goes on with. One more round is there in any case.
    pub(super) fn resume(&mut self, rounds: u32, calls: &[(String, Value)]) {
        self.rounds = rounds.min(self.limits.max_rounds.saturating_sub(1));
        for (name, arguments) in calls {
            self.count_call(name, arguments);
        }
    }

    /// Counts a round; says when it is one too many.
    pub(super) fn begin_round(&mut self) -> Result<u32, Reached> {
        if self.rounds == self.limits.max_rounds {
            return Err(Reached::Rounds(self.limits.max_rounds));
        }
        self.rounds += 1;
        Ok(self.rounds)
    }

    /// Counts a call.
    pub(super) fn count_call(&mut self, name: &str, arguments: &Value) -> Verdict {
        if self.calls == self.limits.max_calls {
            return Verdict::Stop(Reached::Calls(self.limits.max_calls));
        }
        self.calls += 1;
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        // `Value` hashes objects without regard to the order of their keys.
        arguments.hash(&mut hasher);
        let times = self.seen.entry(hasher.finish()).or_insert(0);
        *times += 1;
        match self.limits.max_identical_calls {
            allowed if *times <= allowed => Verdict::Run,
            allowed if *times == allowed + 1 => Verdict::Warn,
            _ => Verdict::Stop(Reached::Identical(*times)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_call_is_run_then_warned_of_then_the_end() {
        let mut meter = Meter::new(Limits::default());
        let verdicts: Vec<_> = (0..4)
            .map(|turn| {
                let arguments = if turn % 2 == 0 { json!({"a": 1, "b": 2}) } else { json!({"b": 2, "a": 1}) };
                meter.count_call("f", &arguments)
            })
            .collect();
        assert_eq!(
            verdicts,
            [Verdict::Run, Verdict::Run, Verdict::Warn, Verdict::Stop(Reached::Identical(4))]
        );
        assert_eq!(meter.count_call("f", &json!({"a": 2})), Verdict::Run);
    }

    #[test]
    fn rounds_and_calls_are_bounded() {
        let mut meter = Meter::new(Limits { max_rounds: 1, max_calls: 1, ..Limits::default() });
        assert_eq!(meter.begin_round(), Ok(1));
        assert_eq!(meter.begin_round(), Err(Reached::Rounds(1)));
        assert_eq!(meter.count_call("f", &json!({})), Verdict::Run);
        assert_eq!(meter.count_call("g", &json!({})), Verdict::Stop(Reached::Calls(1)));
    }
}
