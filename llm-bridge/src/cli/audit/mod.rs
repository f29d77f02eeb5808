//! `toolrack audit`: the audit log, and the signed heads that prove its end.

mod erasure;
mod findings;
mod head;
mod key;
mod rotation;
mod sending;
mod signer;

use std::{
    collections::BTreeSet,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
    str::FromStr,
    sync::Arc,
};

use async_trait::async_trait;
use clap::{
    Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use jiff::Timestamp;
use registry_core::{
    guard::{
        audit::log::{AuditEventKind, AuditFilter, AuditLog, OriginFilter},
        gate::Verdict,
    },
    store::StoreResult,
};
use serde_json::Value;
use strum::VariantNames;
use toolrack_stores::HeadStore;

use super::{
    Settings,
    out::{print_line, second, tell},
    tenant::Tenant,
    terminal::one_line,
};
use crate::server::{AuditChain, AuditFault, AuditVerdict, GivenHeads, VerifyAudit, origin_filter};
pub(super) use erasure::{erase, public_key_of};
use head::HeadStatement;
use key::{PublicKey, SigningKey};
pub(super) use rotation::ServedKeys;
use rotation::Successor;
pub(super) use sending::Place;
pub(super) use signer::HeadSigner;

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
            Some(Command::Verify(verify)) => &verify.tenant.tenant,
            Some(Command::Key | Command::RotateKey) => registry_core::DEFAULT_TENANT,
            Some(Command::Export(filter)) => &filter.tenant.tenant,
            None => &self.filter.tenant.tenant,
        }
    }

    /// Prints the public key, where that is asked for.
    pub(super) fn key(&self, settings: &Settings) -> Option<Result<ExitCode, String>> {
        let Some(Command::Key) = self.command else { return None };
        let key = SigningKey::existing(&settings.audit.key_file(&settings.data_dir));
        Some(key.and_then(|key| print_line(key.public())).map(|_| ExitCode::SUCCESS))
    }

    /// The key that is to take the place of the one that signs, where that is asked for.
    pub(super) fn successor(&self, settings: &Settings) -> Option<Result<Successor, String>> {
        let Some(Command::RotateKey) = self.command else { return None };
        Some(Successor::new(settings.audit.key_file(&settings.data_dir)))
    }

    /// Whether records are to be verified of which there are signed heads.
    pub(super) fn expects_records(&self, settings: &Settings) -> Result<bool, String> {
        match &self.command {
            Some(Command::Verify(verify)) => {
                let is_there = |place: &Place| match place {
                    Place::File(file) => file.exists(),
                    other => matches!(other, Place::Store(_)),
                };
                Ok(places(&verify.heads, settings)?.iter().any(is_there))
            }
            _ => Ok(false),
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that no record was changed or removed, and compare the end with the signed heads
    Verify(Verify),
    /// Print the records as JSON lines, with their hashes
    Export(Filter),
    /// Print the public key of the signed heads
    Key,
    /// Make another key for signed heads; what the one before has signed stays proven
    RotateKey,
}

#[derive(Debug, clap::Args)]
struct Verify {
    #[command(flatten)]
    tenant: Tenant,
    /// All tenants of which there are records or signed heads
    #[arg(long, conflicts_with = "tenant")]
    all_tenants: bool,
    /// A file of signed heads, such as one that another machine has collected, or a database of them [default: those of `audit.heads`]
    #[arg(long, value_name = "FILE", value_parser = place)]
    heads: Vec<Place>,
    /// The public key of another server, from `toolrack audit key`
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    public_key: Vec<PublicKey>,
}

fn place(text: &str) -> Result<Place, String> {
    Ok(HeadStore::parse(text).map_or_else(|| Place::File(text.into()), Place::Store))
}

fn public_key(text: &str) -> Result<PublicKey, String> {
    PublicKey::parse(text)
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
    /// Only calls from this origin: native, text (in any dialect), the name of a dialect, http, mcp, schedule, command_line, library or tool
    #[arg(long, value_name = "ORIGIN", value_parser = origin_filter)]
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

pub(super) async fn run(
    arguments: Arguments,
    log: &dyn AuditLog,
    settings: &Settings,
    place: &str,
) -> Result<ExitCode, String> {
    match arguments.command {
        None => list(&AuditFilter { newest_first: true, ..arguments.filter.wanted(50) }, log, place).await,
        Some(Command::Verify(arguments)) => verify(arguments, log, settings, place).await,
        // These need no records: see `Arguments::key` and `Arguments::successor`.
        Some(Command::Key | Command::RotateKey) => Ok(ExitCode::SUCCESS),
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
    let erased = match text("/erased_at") {
        at if at.is_empty() => at,
        at => format!(", erased on {}", at.parse().map(second).unwrap_or(at)),
    };
    let (user, level, tool) = (text("/user"), text("/level"), text("/tool"));
    let via = match text("/via") {
        via if via.is_empty() => via,
        via => format!(" via {via}"),
    };
    format!("{ts}  {user} ({level}){via}  {tool}  {}  {origin}  {what}{decision}{erased}", text("/call_id"))
}

async fn verify(
    arguments: Verify,
    log: &dyn AuditLog,
    settings: &Settings,
    place: &str,
) -> Result<ExitCode, String> {
    let keys = known_keys(&settings.audit.key_file(&settings.data_dir), arguments.public_key)?;
    let heads = Heads::read(&places(&arguments.heads, settings)?, &keys).await;
    heads.faults.iter().try_for_each(|fault| print_line(fault).map(drop))?;
    let mut tenants = BTreeSet::from([arguments.tenant.tenant]);
    if arguments.all_tenants {
        tenants = log.tenants().await?.into_iter().collect();
        tenants.extend(heads.heads.iter().map(|head| head.tenant.clone()));
        if tenants.is_empty() {
            tell(format_args!("There are no records in {place}."));
        }
    }
    let mut whole = heads.faults.is_empty();
    for tenant in &tenants {
        if head::noted(&heads.heads, tenant).is_empty() && !arguments.heads.is_empty() {
            let missing = format!("there is no head of the tenant {tenant} in these files");
            if !arguments.all_tenants {
                return Err(missing);
            }
            print_line(missing)?;
            whole = false;
        }
        let verdict = verified(log, tenant, &heads, &keys).await?;
        if verdict.chains.is_empty() {
            tell(format_args!("There are no records of the tenant {tenant} in {place}."));
        }
        let of_tenant = if arguments.all_tenants { format!("{tenant}, ") } else { String::new() };
        for AuditChain { server, found, .. } in &verdict.chains {
            print_line(format_args!("{of_tenant}{server}: {found}"))?;
        }
        whole &= verdict.whole;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// This server's public key, where it has one, those before it, and those of others.
fn known_keys(file: &Path, others: Vec<PublicKey>) -> Result<Vec<PublicKey>, String> {
    Ok(rotation::public_keys(file)?.into_iter().chain(others).collect())
}

/// The signed heads of some places.
struct Heads {
    heads: Vec<HeadStatement>,
    /// Why some places cannot be used.
    faults: Vec<String>,
}

impl Heads {
    async fn read(places: &[Place], keys: &[PublicKey]) -> Self {
        let (mut heads, mut faults) = (Vec::new(), Vec::new());
        for place in places {
            match head::read(place, keys).await {
                Ok(read) => heads.extend(read),
                Err(fault) => faults.push(fault),
            }
        }
        Self { heads, faults }
    }

    /// Reads lines that somebody has given.
    ///
    /// # Errors
    /// When no head of the tenant is among them.
    async fn given(lines: String, keys: Vec<PublicKey>, tenant: &str) -> Result<Self, String> {
        // Each signature is checked.
        let read = move || head::read_text(&lines, &keys);
        let (heads, faults) =
            match tokio::task::spawn_blocking(read).await.map_err(|fault| fault.to_string())? {
                Ok(heads) => (heads, Vec::new()),
                Err(fault) => (Vec::new(), vec![fault]),
            };
        if faults.is_empty() && head::noted(&heads, tenant).is_empty() {
            return Err(format!("there is no head of the tenant {tenant} among those that were given"));
        }
        Ok(Self { heads, faults })
    }
}

/// Walks along the chains of a tenant, and compares them with signed heads.
async fn verified(
    log: &dyn AuditLog,
    tenant: &str,
    Heads { heads, faults }: &Heads,
    keys: &[PublicKey],
) -> StoreResult<AuditVerdict> {
    let noted = head::noted(heads, tenant);
    let check =
        |message: &str, signature: &str| keys.iter().any(|key| key.has_signed(message.as_bytes(), signature));
    let reports = log.verify_with_erasures(tenant, &noted, &check).await?;
    let chains: Vec<AuditChain> = reports
        .into_iter()
        .map(|report| {
            let head = heads.iter().rfind(|head| head.tenant == *tenant && head.server == report.server);
            let findings = findings::of(&report, tenant, head, keys);
            let (whole, found) = (findings.fault.is_none(), findings::sentence(&findings));
            AuditChain { server: report.server, whole, found, findings }
        })
        .collect();
    let whole = faults.is_empty() && chains.iter().all(|chain| chain.whole);
    Ok(AuditVerdict { whole, faults: faults.clone(), chains })
}

/// Verifies the audit for a running server, with its own key and the places that it sends signed heads to.
pub(super) struct Verifier {
    log: Arc<dyn AuditLog>,
    key_file: PathBuf,
    places: Vec<Place>,
}

impl Verifier {
    pub(super) fn new(log: Arc<dyn AuditLog>, settings: &Settings) -> Result<Self, String> {
        let key_file = settings.audit.key_file(&settings.data_dir);
        Ok(Self { log, key_file, places: places(&[], settings)? })
    }
}

#[async_trait]
impl VerifyAudit for Verifier {
    async fn verify(&self, tenant: &str, given: Option<GivenHeads>) -> Result<AuditVerdict, AuditFault> {
        let GivenHeads { heads: lines, public_keys } = given.unwrap_or_default();
        let others = public_keys.iter().map(|key| PublicKey::parse(key.trim()));
        let others = others.collect::<Result<_, _>>().map_err(AuditFault::Given)?;
        let keys = known_keys(&self.key_file, others).map_err(AuditFault::Settings)?;
        let heads = match lines.trim().is_empty() {
            true => Heads::read(&self.places, &keys).await,
            false => Heads::given(lines, keys.clone(), tenant).await.map_err(AuditFault::Given)?,
        };
        verified(self.log.as_ref(), tenant, &heads, &keys).await.map_err(AuditFault::Store)
    }
}

/// The places that signed heads are read from.
fn places(named: &[Place], settings: &Settings) -> Result<Vec<Place>, String> {
    match named {
        [] => settings.audit.places(&settings.data_dir),
        named => Ok(named.to_vec()),
    }
}

#[cfg(test)]
mod tests;
