//! What a stream costs in Toolrack beside a proxy that reads nothing of it, and beside LiteLLM's proxy: latency, processor time and
//! memory of many streams at once.
//!
//! ```sh
//! cargo bench -p toolrack --bench streams -- [--litellm] [--streams 500] [--tokens 240] [--interval-ms 50] [--rounds 5]
//! ```
//!
//! The model server, each proxy and this client are processes of their own. They are measured in turns, several rounds, so that what
//! disturbs the machine disturbs them alike. See `docs/testing.md`.
#![allow(missing_docs)]

mod bare;
mod client;
mod litellm;
mod options;
mod process;
mod report;
mod target;
mod upstream;

use std::{error::Error, process::ExitCode, time::Duration};

use options::Options;
use target::Target;

/// What can go wrong.
type Fault = Box<dyn Error + Send + Sync>;

/// How long a server may take to release the memory of its streams.
const REST: Duration = Duration::from_secs(5);

fn main() -> Result<ExitCode, Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut arguments = std::env::args().skip(1);
    let role = (arguments.next(), arguments.next(), arguments.next());
    match (role.0.as_deref(), role.1, role.2) {
        (Some(upstream::ROLE), Some(address), Some(interval)) => {
            runtime.block_on(upstream::serve(&address, &interval))?;
        }
        (Some(bare::ROLE), Some(address), Some(upstream)) => {
            runtime.block_on(bare::serve(&address, upstream))?;
        }
        _ => return runtime.block_on(measure(&Options::read()?)),
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(options: &Options) -> Result<ExitCode, Fault> {
    let interval = options.interval.as_millis().to_string();
    let (upstream, base) = process::start_self(upstream::ROLE, &interval).await?;
    let mut targets = vec![
        Target::new("direct", &upstream, &base, options.streams),
        Target::bare(&base, options.streams).await?,
        Target::toolrack(&base, options.streams).await?,
    ];
    if options.litellm {
        targets.push(Target::litellm(&base, options.litellm_streams).await?);
    } else {
        eprintln!("skipped: LiteLLM's proxy, which is installed and measured with --litellm");
    }
    for target in &mut targets {
        target.warm_up().await?;
    }
    for round in 1..=options.rounds {
        for target in &mut targets {
            eprintln!("round {round} of {}: {}", options.rounds, target.name);
            target.round(options).await?;
        }
    }
    tokio::time::sleep(REST).await;
    let figures = targets.iter().map(Target::figures).collect::<Result<Vec<_>, _>>()?;
    let report = report::Report::new(options, &figures);
    println!("{report}");
    Ok(if report.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
