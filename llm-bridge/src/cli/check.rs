//! `toolrack tools check`: what the compiler does not find.

use std::process::ExitCode;

use registry_core::Registry;

use super::{
    Settings,
    names::Known,
    out::{count, print_line, tell},
};
use crate::checking::{self, Checked};

#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    /// The limit of tokens for all definitions together
    #[arg(long, default_value_t = checking::BUDGET, value_name = "TOKENS")]
    budget: usize,
}

pub(super) fn check(
    arguments: &CheckArguments,
    settings: &Settings,
    registry: &Registry,
) -> Result<ExitCode, String> {
    let Checked { tools, tokens, budget, faults, warnings } = checking::check(registry, arguments.budget);
    for fault in &faults {
        print_line(fault)?;
    }
    for warning in warnings.into_iter().chain(Known::new(settings, registry).unknown_in(settings)) {
        tell(format_args!("warning: {warning}"));
    }
    let (tools, found) = (count(tools, "tool"), count(faults.len(), "fault"));
    print_line(format_args!("{tools}, {found}, about {tokens} tokens of {budget}"))?;
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
