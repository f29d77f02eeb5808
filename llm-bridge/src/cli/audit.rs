//! `toolrack audit`: the audit log.

use std::{ops::ControlFlow, process::ExitCode, str::FromStr};

use clap::{
    Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use jiff::Timestamp;
use registry_core::{
    Origin,
    guard::{
        audit::{
            chain::Fault,
            log::{AuditEventKind, AuditFilter, AuditLog, OriginFilter},
        },
        gate::Verdict,
    },
};
use serde_json::Value;
use strum::VariantNames;

use super::{
    out::{print_line, second, tell},
    tenant::Tenant,
    terminal::one_line,
};
use crate::turn::known_dialect;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    filter: Filter,
}

impl Arguments {
    pub(super) fn tenant(&self) -> &str {
        match &self.command {
            Some(Command::Verify(tenant)) => &tenant.tenant,
            Some(Command::Export(filter)) => &filter.tenant.tenant,
            None => &self.filter.tenant.tenant,
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that no record was changed or removed
    Verify(Tenant),
    /// Print the records as JSON lines, with their hashes
    Export(Filter),
}

/// Which records.
#[derive(Debug, clap::Args)]
struct Filter {
    #[command(flatten)]
    tenant: Tenant,
    /// Only calls of this user
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only the call with this id
    #[arg(long, value_name = "ID")]
    call_id: Option<String>,
    /// Only calls from this origin: native, text (in any dialect), the name of a dialect, http, mcp, schedule, command_line or library
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    origin: Option<OriginFilter>,
    /// Only calls with this decision of a gate or a person; pending where a person has not answered yet, unanswered where the gate failed
    #[arg(long, value_name = "WHAT", value_parser = word::<Verdict>())]
    decision: Option<Verdict>,
    /// Only from this time on, such as 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<Timestamp>,
    /// Only before this time
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
    /// Only records of this kind: of calls that are about to run, that succeeded, or that failed or were refused
    #[arg(long, value_name = "WHAT", value_parser = word::<AuditEventKind>())]
    only: Option<AuditEventKind>,
    /// At most so many [default: 50 in a list, all in an export]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// One of the words that the records have.
fn word<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantNames + FromStr<Err = strum::ParseError> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(T::VARIANTS).try_map(|word| word.parse())
}

/// Entry points by their names in the records, then dialects by theirs.
fn origin(text: &str) -> Result<OriginFilter, String> {
    Ok(OriginFilter::Is(match text {
        "text" => return Ok(OriginFilter::Text),
        "native" => Origin::Native,
        "http" => Origin::Http,
        "mcp" => Origin::Mcp,
        "command_line" => Origin::CommandLine,
        "schedule" => Origin::Schedule,
        "library" => Origin::Library,
        dialect => match known_dialect(dialect) {
            Ok(row) => Origin::Text(row.name.into()),
            Err(fault) => {
                return Err(format!(
                    "origins are native, text, http, mcp, schedule, command_line, library and the dialects; {fault}"
                ));
            }
        },
    }))
}

impl Filter {
    fn wanted(self, limit: usize) -> AuditFilter {
        AuditFilter {
            user: self.user,
            tool: self.tool,
            call_id: self.call_id,
            origin: self.origin,
            verdict: self.decision,
            since: self.since,
            until: self.until,
            happened: self.only,
            limit: self.limit.unwrap_or(limit),
            ..AuditFilter::new(self.tenant.tenant)
        }
    }
}

pub(super) async fn run(arguments: Arguments, log: &dyn AuditLog, place: &str) -> Result<ExitCode, String> {
    match arguments.command {
        None => list(&AuditFilter { newest_first: true, ..arguments.filter.wanted(50) }, log, place).await,
        Some(Command::Verify(tenant)) => verify(&tenant.tenant, log, place).await,
        Some(Command::Export(filter)) => {
            let filter = filter.wanted(usize::MAX);
            let mut printed = Ok(true);
            let mut write = |line: &str| {
                printed = print_line(line);
                if printed == Ok(true) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let written = log.export(&filter, &mut write).await?;
            // `toolrack audit export | head` is not an error.
            if printed? {
                tell(format_args!("{written} records"));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn list(filter: &AuditFilter, log: &dyn AuditLog, place: &str) -> Result<ExitCode, String> {
    let mut records = log.list(filter).await?;
    if records.is_empty() {
        tell(format_args!("There are no such records in {place}."));
    }
    // The newest records, in the order of their times.
    records.reverse();
    for chained in records {
        let record: Value = serde_json::from_str(chained.record.get()).map_err(|fault| {
            format!("record {} of {} cannot be read: {fault}", chained.seq, chained.server)
        })?;
        print_line(line(&record))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A record as one line.
fn line(record: &Value) -> String {
    let text = |pointer: &str| match record.pointer(pointer) {
        Some(Value::String(text)) => one_line(text),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let what = match (text("/phase").as_str(), text("/success").as_str()) {
        ("intent", _) => "about to run".to_owned(),
        (_, "true") => format!("done in {} ms", text("/duration_ms")),
        _ if record.pointer("/error").is_some_and(Value::is_string) => text("/error_message"),
        _ => "not done".to_owned(),
    };
    let decision = match record.get("decision") {
        Some(Value::Object(decision)) => {
            let gate = match decision.get("gate") {
                Some(_) => {
                    format!(" after {} by {}", text("/decision/gate/verdict"), text("/decision/gate/by"))
                }
                None => String::new(),
            };
            format!(", {} by {}{gate}", text("/decision/verdict"), text("/decision/by"))
        }
        _ => String::new(),
    };
    let origin = match record.pointer("/origin/text") {
        Some(_) => text("/origin/text"),
        None => text("/origin"),
    };
    let ts = text("/ts");
    let ts = ts.parse().map(second).unwrap_or(ts);
    let (user, level, tool) = (text("/user"), text("/level"), text("/tool"));
    let via = match text("/via") {
        via if via.is_empty() => via,
        via => format!(" via {via}"),
    };
    format!("{ts}  {user} ({level}){via}  {tool}  {}  {origin}  {what}{decision}", text("/call_id"))
}

async fn verify(tenant: &str, log: &dyn AuditLog, place: &str) -> Result<ExitCode, String> {
    let reports = log.verify(tenant).await?;
    if reports.is_empty() {
        tell(format_args!("There are no records of the tenant {tenant} in {place}."));
    }
    let mut whole = true;
    for report in reports {
        let found = match &report.fault {
            None => {
                format!("{} records, whole; the last has the hash {}", report.records, report.head.sha256)
            }
            Some((seq, fault)) => {
                whole = false;
                let what = match fault {
                    Fault::Missing => "is missing",
                    Fault::WrongLink => "does not follow the one before it",
                    Fault::Changed => "is not what was written",
                };
                format!("{} records are whole, then record {seq} {what}", report.records)
            }
        };
        print_line(format_args!("{}: {found}", report.server))?;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
