//! `toolrack audit`: what was done, by whom.

use std::{ops::ControlFlow, process::ExitCode};

use clap::{Subcommand, ValueEnum};
use jiff::Timestamp;
use registry_core::{
    DEFAULT_TENANT, Origin,
    guard::{
        audit::{
            chain::Fault,
            log::{AuditEventKind, AuditFilter, AuditLog, OriginFilter},
        },
        gate::Verdict,
    },
};
use serde_json::Value;

use super::{
    out::{print_line, second, tell},
    tenant,
    terminal::one_line,
};
use crate::chat::known_dialect;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    filter: Filter,
}

impl Arguments {
    pub(super) fn tenant(&self) -> &str {
        &self.filter.tenant
    }
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Check that no record was changed or taken out
    Verify,
    /// Print the records as JSON lines, with their hashes
    Export,
}

/// Which records.
#[derive(Debug, Clone, clap::Args)]
struct Filter {
    /// The tenant
    #[arg(long, default_value = DEFAULT_TENANT, value_name = "NAME", global = true, value_parser = tenant::parse)]
    tenant: String,
    /// Only calls of this user
    #[arg(long, value_name = "ID", global = true)]
    user: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME", global = true)]
    tool: Option<String>,
    /// Only the call of this id
    #[arg(long, value_name = "ID", global = true)]
    call_id: Option<String>,
    /// Only calls that came so: native, text (in any dialect), the name of a dialect, http, mcp, schedule, command_line or library
    #[arg(long, value_name = "ORIGIN", global = true, value_parser = origin)]
    origin: Option<OriginFilter>,
    /// Only calls about which a gate or a person has decided so; `unanswered` by a gate that failed
    #[arg(long, value_enum, value_name = "WHAT", global = true)]
    decision: Option<Decided>,
    /// Only from this time on, such as 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME", global = true)]
    since: Option<Timestamp>,
    /// Only before this time
    #[arg(long, value_name = "TIME", global = true)]
    until: Option<Timestamp>,
    /// Only records that say this
    #[arg(long, value_enum, value_name = "WHAT", global = true)]
    only: Option<Only>,
    /// At most so many [default: 50 in a list, all in an export]
    #[arg(long, value_name = "N", global = true)]
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Only {
    /// A call was about to be made
    Intent,
    /// The tool did what it was asked
    Success,
    /// It did not, or the call was refused
    Failure,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Decided {
    Approved,
    Blocked,
    Pending,
    Unanswered,
}

/// The doors by the words that the records have for them, then the dialects by theirs.
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
                    "calls come native, text, http, mcp, schedule, command_line, library, or in a dialect, and {fault}"
                ));
            }
        },
    }))
}

impl Filter {
    /// The flags that narrow it.
    fn given(&self) -> Vec<&'static str> {
        let Self { tenant: _, user, tool, call_id, origin, decision, since, until, only, limit } = self;
        [
            ("--user", user.is_some()),
            ("--tool", tool.is_some()),
            ("--call-id", call_id.is_some()),
            ("--origin", origin.is_some()),
            ("--decision", decision.is_some()),
            ("--since", since.is_some()),
            ("--until", until.is_some()),
            ("--only", only.is_some()),
            ("--limit", limit.is_some()),
        ]
        .into_iter()
        .filter_map(|(flag, is_given)| is_given.then_some(flag))
        .collect()
    }

    fn wanted(self, limit: usize) -> AuditFilter {
        let happened = self.only.map(|only| match only {
            Only::Intent => AuditEventKind::Intent,
            Only::Success => AuditEventKind::Success,
            Only::Failure => AuditEventKind::Failure,
        });
        AuditFilter {
            user: self.user,
            tool: self.tool,
            call_id: self.call_id,
            origin: self.origin,
            verdict: self.decision.map(|decided| match decided {
                Decided::Approved => Verdict::Approved,
                Decided::Blocked => Verdict::Blocked,
                Decided::Pending => Verdict::Pending,
                Decided::Unanswered => Verdict::Unanswered,
            }),
            since: self.since,
            until: self.until,
            happened,
            limit: self.limit.unwrap_or(limit),
            ..AuditFilter::new(self.tenant)
        }
    }
}

pub(super) async fn run(arguments: Arguments, log: &dyn AuditLog) -> Result<ExitCode, String> {
    match arguments.command {
        None => list(&AuditFilter { newest_first: true, ..arguments.filter.wanted(50) }, log).await,
        Some(Command::Verify) => match arguments.filter.given().as_slice() {
            [] => verify(&arguments.filter.tenant, log).await,
            given => Err(format!("a chain can only be verified whole; leave out {}", given.join(", "))),
        },
        Some(Command::Export) => {
            let filter = arguments.filter.wanted(usize::MAX);
            let mut printed = Ok(true);
            let mut write = |line: &str| {
                printed = print_line(line);
                if printed == Ok(true) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let written = log.export(&filter, &mut write).await?;
            // Else whoever wanted a part of it has it.
            if printed? {
                tell(format_args!("{written} records"));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn list(filter: &AuditFilter, log: &dyn AuditLog) -> Result<ExitCode, String> {
    let mut records = log.list(filter).await?;
    if records.is_empty() {
        tell("There are no such records.");
    }
    // The newest were asked for; they are read from above.
    records.reverse();
    for chained in records {
        let record: Value = serde_json::from_str(chained.record.get()).map_err(|fault| {
            format!("record {} of {} cannot be read: {fault}", chained.seq, chained.server)
        })?;
        print_line(line(&record))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A record for people.
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
    // The door, or the dialect of a call in the model's text.
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

async fn verify(tenant: &str, log: &dyn AuditLog) -> Result<ExitCode, String> {
    let reports = log.verify(tenant).await?;
    if reports.is_empty() {
        tell(format_args!("There are no records of the tenant {tenant}."));
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
