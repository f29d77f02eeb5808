//! Measures the opponents of one text in turns, so that what disturbs the machine disturbs them alike.

use std::time::Duration;

use crate::opponents::{Fault, Opponent, Seen};

/// So long a sample takes, where one reading takes less.
const SAMPLE: Duration = Duration::from_millis(20);
/// So many samples there are of each.
const ROUNDS: usize = 15;
/// An opponent that has taken so long altogether takes part no longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was measured of one opponent: nanoseconds for reading the text once.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) title: String,
    pub(crate) ours: bool,
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) seen: Seen,
}

/// Reads a text with each of them.
///
/// # Errors
/// What a peer says is wrong.
pub(crate) fn measure(opponents: Vec<Opponent>) -> Result<Vec<Measured>, Fault> {
    let mut entries = Vec::new();
    for mut opponent in opponents {
        // The first reading warms up, and says how many make a sample.
        let (first, seen) = (opponent.run)()?;
        let times = if first < SAMPLE { (opponent.run)()?.0 } else { first };
        let readings = (SAMPLE.as_nanos() / times.as_nanos().max(1)).clamp(1, 1_000_000);
        let samples = if first > PATIENCE { vec![nanoseconds(first)] } else { Vec::new() };
        entries.push((opponent, seen, u32::try_from(readings)?, first, samples));
    }
    for _ in 0..ROUNDS {
        for (opponent, _, readings, spent, samples) in &mut entries {
            if *spent > PATIENCE {
                continue;
            }
            let mut sample = Duration::ZERO;
            for _ in 0..*readings {
                sample += (opponent.run)()?.0;
            }
            *spent += sample;
            samples.push(nanoseconds(sample) / f64::from(*readings));
        }
    }
    let measured = entries.into_iter().map(|(opponent, seen, _, _, mut samples)| {
        samples.sort_by(f64::total_cmp);
        Measured {
            title: opponent.title,
            ours: opponent.ours,
            least: samples.first().copied().unwrap_or(f64::NAN),
            median: samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN),
            seen,
        }
    });
    Ok(measured.collect())
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}
