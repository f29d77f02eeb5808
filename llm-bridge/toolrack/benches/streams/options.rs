//! The options of the command line.

use std::{str::FromStr, time::Duration};

use crate::Fault;

pub(crate) struct Options {
    /// How many streams are open at once.
    pub(crate) streams: usize,
    /// The same for LiteLLM, whose one process cannot keep up with as many.
    pub(crate) litellm_streams: usize,
    /// How many tokens each stream has.
    pub(crate) tokens: usize,
    /// The time between two tokens of a stream.
    pub(crate) interval: Duration,
    pub(crate) rounds: usize,
    pub(crate) litellm: bool,
}

impl Options {
    pub(crate) fn read() -> Result<Self, Fault> {
        let (mut streams, mut litellm_streams, mut tokens, mut interval, mut rounds) = (500, 50, 240, 50, 5);
        let mut litellm = false;
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let number = match argument.as_str() {
                // Cargo itself passes it.
                "--bench" => continue,
                "--litellm" => {
                    litellm = true;
                    continue;
                }
                "--streams" => &mut streams,
                "--litellm-streams" => &mut litellm_streams,
                "--tokens" => &mut tokens,
                "--interval-ms" => &mut interval,
                "--rounds" => &mut rounds,
                _ => return Err(format!("there is no option {argument}").into()),
            };
            let value = arguments.next().ok_or_else(|| format!("{argument} needs a number"))?;
            *number = usize::from_str(&value).map_err(|error| format!("{argument}: {error}"))?.max(1);
        }
        let interval = Duration::from_millis(u64::try_from(interval)?);
        Ok(Self { streams, litellm_streams, tokens, interval, rounds, litellm })
    }

    /// Over how long the streams begin: an eighth of the time that a stream takes.
    pub(crate) fn ramp(&self) -> Duration {
        self.length() / 8
    }

    /// How long all streams are measured while all of them are open.
    pub(crate) fn window(&self) -> Duration {
        self.length() * 5 / 8
    }

    fn length(&self) -> Duration {
        self.interval * u32::try_from(self.tokens).unwrap_or(u32::MAX)
    }
}
