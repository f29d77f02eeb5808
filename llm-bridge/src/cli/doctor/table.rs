//! Prints what was seen.

use std::io::IsTerminal;

use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Width, presets};

use super::report::{Finding, Probe, Report, Tries, Verdict};
use crate::cli::{
    out::{print_line, table},
    terminal::one_line,
};

/// The width where standard output is not a terminal.
const WIDTH: u16 = 80;

/// Prints the table, what to do, and the settings.
pub(super) fn print(report: &Report) -> Result<(), String> {
    let kind = report.server.kind.unwrap_or("an unknown kind of server");
    let (model, address) = (one_line(&report.model), one_line(&report.server.address));
    print_line(format_args!("{model} at {address} ({kind})"))?;
    print_line(probes(report))?;
    print_line(format_args!("{} requests in {:.1} s", report.requests, report.seconds))?;
    for advice in &report.advice {
        print_line(format_args!("- {}", one_line(advice)))?;
    }
    match &report.toml {
        Some(toml) => print_line(format_args!("\nThe settings that serve it best:\n\n{}", toml.trim()))?,
        None => print_line("\nNo settings of its own would serve it better.")?,
    };
    Ok(())
}

fn probes(report: &Report) -> comfy_table::Table {
    let mut table = table(["probe", "seen", "details"]);
    table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_width(WIDTH);
        table.force_no_tty();
    }
    for (probe, finding) in &report.probes {
        table.add_row([probe.to_string(), seen(*probe, finding), one_line(&finding.note)]);
    }
    for (at, width) in [19, 18].into_iter().enumerate() {
        if let Some(column) = table.column_mut(at) {
            column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(width)));
        }
    }
    table
}

/// The verdict in a few words, or what was measured.
fn seen(probe: Probe, finding: &Finding) -> String {
    let figure = |name: &str| finding.figures.get(name)?.as_f64().map(f64::round);
    let measured = match probe {
        Probe::Speed => figure("tokens_per_second").map(|speed| format!("{speed} tokens/s")),
        Probe::Context => figure("tokens").map(|tokens| format!("{tokens} tokens")),
        _ => None,
    };
    if let Some(measured) = measured {
        return measured;
    }
    let of_tries = finding.tries.map(|Tries { right, tries }| (right < tries, format!("{right} of {tries}")));
    let word = match (finding.verdict, of_tries) {
        (Verdict::Partly, Some((_, count))) => count,
        (Verdict::Text, Some((true, count))) => format!("{count} as text"),
        (Verdict::Text, _) => "as text".to_owned(),
        (Verdict::Yes, _) => "yes".to_owned(),
        (Verdict::Partly, None) => "partly".to_owned(),
        (Verdict::No, _) => "no".to_owned(),
        (Verdict::Wrong, _) => "wrong calls".to_owned(),
        (Verdict::Refused, _) => "refused".to_owned(),
        (Verdict::Failed, _) => "failed".to_owned(),
        (Verdict::Unknown, _) => "unknown".to_owned(),
        (Verdict::NotTried, _) => "not tried".to_owned(),
    };
    match finding.dialect {
        Some(dialect) => format!("{word}: {dialect}"),
        None => word,
    }
}
