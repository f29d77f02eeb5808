//! Measures the opponents of one text in turns, so that what disturbs the machine disturbs them alike.

use std::time::Duration;

use crate::opponents::{Fault, Opponent, Seen};

/// So many samples there are of each.
pub(crate) const ROUNDS: usize = 15;
/// So long a sample takes, where one reading takes less.
const SAMPLE: Duration = Duration::from_millis(20);
/// An opponent that has taken so long altogether takes part no longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The opponents of one text.
pub(crate) struct Contest(Vec<Entry>);

struct Entry {
    opponent: Opponent,
    seen: Seen,
    readings: u32,
    spent: Duration,
    /// Nanoseconds for reading the text once.
    samples: Vec<f64>,
}

/// What was measured of one opponent: nanoseconds for reading the text once.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) title: String,
    pub(crate) ours: bool,
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) seen: Seen,
}

impl Contest {
    /// Reads the text with each of them, to warm up and to see how many readings make a sample.
    ///
    /// # Errors
    /// What a peer says is wrong.
    pub(crate) fn new(opponents: Vec<Opponent>) -> Result<Self, Fault> {
        let entry = |mut opponent: Opponent| -> Result<Entry, Fault> {
            let (first, seen) = (opponent.run)()?;
            let again = if first < SAMPLE { (opponent.run)()?.0 } else { first };
            let readings = (SAMPLE.as_nanos() / again.as_nanos().max(1)).clamp(1, 1_000_000);
            let samples = if first > PATIENCE { vec![nanoseconds(first)] } else { Vec::new() };
            Ok(Entry { opponent, seen, readings: u32::try_from(readings)?, spent: first, samples })
        };
        Ok(Self(opponents.into_iter().map(entry).collect::<Result<_, _>>()?))
    }

    /// Takes a sample of each.
    ///
    /// # Errors
    /// What a peer says is wrong.
    pub(crate) fn round(&mut self) -> Result<(), Fault> {
        for entry in self.0.iter_mut().filter(|entry| entry.spent <= PATIENCE) {
            let mut sample = Duration::ZERO;
            for _ in 0..entry.readings {
                sample += (entry.opponent.run)()?.0;
            }
            entry.spent += sample;
            entry.samples.push(nanoseconds(sample) / f64::from(entry.readings));
        }
        Ok(())
    }

    /// What came out, in the order of the opponents.
    pub(crate) fn measured(self) -> Vec<Measured> {
        let measured = |mut entry: Entry| {
            entry.samples.sort_by(f64::total_cmp);
            Measured {
                title: entry.opponent.title,
                ours: entry.opponent.ours,
                least: entry.samples.first().copied().unwrap_or(f64::NAN),
                median: entry.samples.get(entry.samples.len() / 2).copied().unwrap_or(f64::NAN),
                seen: entry.seen,
            }
        };
        self.0.into_iter().map(measured).collect()
    }
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}
