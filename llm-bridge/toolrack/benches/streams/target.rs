//! What is measured: the model server itself, and the proxies before it.

use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    Fault, bare, client, litellm,
    options::Options,
    process::{self, Server},
    upstream::now,
};

/// The key that all clients send and Toolrack asks for.
pub(crate) const KEY: &str = "sk-streams";

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long after the streams of a round the next one begins.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) struct Target {
    pub(crate) name: &'static str,
    pid: u32,
    base: String,
    pub(crate) streams: usize,
    rounds: Vec<Round>,
    /// Memory before the first stream, in KiB.
    idle: u64,
    /// The largest memory of the first round, in KiB.
    peak: u64,
    _server: Option<(Server, Option<TempDir>)>,
}

/// What one round has shown.
struct Round {
    /// How old tokens were when they were read, in microseconds, in order.
    ages: Vec<u64>,
    /// The same for the time to the first token.
    firsts: Vec<u64>,
    /// Processor time for a token, in microseconds.
    processor: f64,
    /// Tokens for a second.
    rate: f64,
    /// Streams that did not come whole.
    broken: usize,
}

/// What a target has shown: the medians over the rounds. Times in microseconds, memory in KiB.
pub(crate) struct Figures {
    pub(crate) name: &'static str,
    pub(crate) streams: usize,
    pub(crate) first: f64,
    pub(crate) half: f64,
    pub(crate) most: f64,
    pub(crate) processor: f64,
    pub(crate) rate: f64,
    pub(crate) idle: u64,
    pub(crate) at_peak: f64,
    pub(crate) afterwards: f64,
    pub(crate) broken: usize,
}

impl Target {
    pub(crate) fn new(name: &'static str, server: &Server, base: &str, streams: usize) -> Self {
        let (pid, base) = (server.pid, base.to_owned());
        Self { name, pid, base, streams, rounds: Vec::new(), idle: 0, peak: 0, _server: None }
    }

    fn holding(self, server: Server, folder: Option<TempDir>) -> Self {
        Self { _server: Some((server, folder)), ..self }
    }

    pub(crate) async fn bare(upstream: &str, streams: usize) -> Result<Self, Fault> {
        let (server, base) = process::start_self(bare::ROLE, upstream).await?;
        Ok(Self::new("bare proxy", &server, &base, streams).holding(server, None))
    }

    pub(crate) async fn toolrack(upstream: &str, streams: usize) -> Result<Self, Fault> {
        let folder = tempfile::tempdir()?;
        let configuration = folder.path().join("toolrack.toml");
        std::fs::write(&configuration, "")?;
        let address = process::free_address().await?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        command.args(["serve", "--upstream", upstream, "--listen", &address.to_string(), "--api-key", KEY]);
        command.arg("--data-dir").arg(folder.path()).arg("--config").arg(configuration);
        let server = process::start(&mut command, address).await?;
        let base = format!("http://{address}/v1");
        Ok(Self::new("toolrack", &server, &base, streams).holding(server, Some(folder)))
    }

    pub(crate) async fn litellm(upstream: &str, streams: usize) -> Result<Self, Fault> {
        let (server, base, folder) = litellm::start(upstream).await?;
        Ok(Self::new("litellm", &server, &base, streams).holding(server, Some(folder)))
    }

    /// Asks once, so that what a server makes once is not counted as a stream's.
    pub(crate) async fn warm_up(&mut self) -> Result<(), Fault> {
        let (mut streams, _) = client::open(&self.base, 1, 10, Duration::ZERO)?;
        while let Some(stream) = streams.join_next().await {
            if !stream??.is_whole {
                return Err(format!("{} does not answer", self.name).into());
            }
        }
        self.idle = process::memory(self.pid)?;
        Ok(())
    }

    pub(crate) async fn round(&mut self, options: &Options) -> Result<(), Fault> {
        let (mut streams, progress) = client::open(&self.base, self.streams, options.tokens, options.ramp())?;
        progress.all_begun(self.streams).await;
        let (begin, tokens, processor) = (now(), progress.tokens(), process::processor_time(self.pid)?);
        let end = tokio::time::Instant::now() + options.window();
        while tokio::time::Instant::now() < end {
            tokio::time::sleep(LOOK).await;
            let memory = process::memory(self.pid)?;
            if self.rounds.is_empty() {
                self.peak = self.peak.max(memory);
            }
        }
        let (end, tokens) = (now(), progress.tokens() - tokens);
        let processor = process::processor_time(self.pid)? - processor;
        let mut round = Round {
            ages: Vec::new(),
            firsts: Vec::new(),
            processor: processor.as_secs_f64() * 1e6 / tokens as f64,
            rate: tokens as f64 * 1e6 / (end - begin) as f64,
            broken: 0,
        };
        while let Some(stream) = streams.join_next().await {
            match stream? {
                Ok(stream) => {
                    round.broken += usize::from(!stream.is_whole || stream.tokens.len() != options.tokens);
                    round.firsts.push(u64::try_from(stream.first.as_micros())?);
                    let inside = stream.tokens.iter().filter(|(time, _)| (begin..end).contains(time));
                    round.ages.extend(inside.map(|(_, age)| age));
                }
                Err(fault) => {
                    if round.broken == 0 {
                        eprintln!("{}: {fault}", self.name);
                    }
                    round.broken += 1;
                }
            }
        }
        round.ages.sort_unstable();
        round.firsts.sort_unstable();
        self.rounds.push(round);
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    pub(crate) fn figures(&self) -> Result<Figures, Fault> {
        let median = |figure: &dyn Fn(&Round) -> f64| {
            let mut figures: Vec<f64> = self.rounds.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let for_each = |memory: u64| memory.saturating_sub(self.idle) as f64 / self.streams as f64;
        Ok(Figures {
            name: self.name,
            streams: self.streams,
            first: median(&|round| quantile(&round.firsts, 50)),
            half: median(&|round| quantile(&round.ages, 50)),
            most: median(&|round| quantile(&round.ages, 99)),
            processor: median(&|round| round.processor),
            rate: median(&|round| round.rate),
            idle: self.idle,
            at_peak: for_each(self.peak),
            afterwards: for_each(process::memory(self.pid)?),
            broken: self.rounds.iter().map(|round| round.broken).sum(),
        })
    }
}

/// A percentile of figures in order.
fn quantile(sorted: &[u64], percent: usize) -> f64 {
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).map_or(f64::NAN, |figure| *figure as f64)
}
