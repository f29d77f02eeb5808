//! `GET /api/audit`, and `GET` and `POST /api/audit/verify`: the audit of a tenant, for its admins.

pub(in crate::server) mod figures;
mod findings;
pub(in crate::server) mod keys;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use axum::{
    BoxError, Json,
    body::Body,
    extract::State,
    http::{Method, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use jiff::Timestamp;
use registry_core::{
    Origin, UserPlaces,
    guard::{
        audit::log::{AuditCursor, AuditEventKind, AuditFilter, AuditLog, ChainedRecord, OriginFilter},
        gate::Verdict,
    },
    store::StoreError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    server::{
        App,
        callers::admin::{Admin, NOT_ADMIN},
        openapi::Operation,
        requests::{
            api_error::ApiError,
            body::{Body as ReadBody, JsonBody},
            query::QueryParameters,
        },
    },
    turn::known_dialect,
};

pub use findings::{ChainFault, ChainFindings, NotedRecord};
pub use keys::{KeySuccession, SignAudit};

const JSON_LINES: &str = "application/x-ndjson";

/// So many records are sent where no limit is named.
const DEFAULT_LIMIT: usize = 50;
/// So many are sent at most.
const MAX_LIMIT: usize = 1000;
/// An answer has no further ones from so many bytes of them on.
const MAX_LISTED: usize = 8 << 20;
/// So many are read at a time.
const READ_AT_ONCE: usize = 100;
/// So many signed heads can be given for a verification: each costs a check of its signature with every key.
const MAX_HEADS: usize = 10_000;
/// So many public keys can be given with them.
const MAX_KEYS: usize = 16;

/// What the server needs to read and verify the audit.
#[derive(Clone, derive_more::Debug)]
pub struct AuditReading {
    #[debug(skip)]
    log: Arc<dyn AuditLog>,
    #[debug(skip)]
    verify: Arc<dyn VerifyAudit>,
    #[debug(skip)]
    keys: Option<Arc<dyn SignAudit>>,
    /// One at a time of those that may read all records: verifications, and searches for what no column says.
    one: Arc<Semaphore>,
    /// One export of each admin.
    exports: Arc<UserPlaces>,
}

impl AuditReading {
    /// Reads this log.
    pub fn new(log: Arc<dyn AuditLog>, verify: impl VerifyAudit + 'static) -> Self {
        let verify = Arc::new(verify);
        Self { log, verify, keys: None, one: Arc::new(Semaphore::new(1)), exports: Arc::default() }
    }

    /// The same, and its heads are signed.
    #[must_use]
    pub fn signed(self, keys: impl SignAudit + 'static) -> Self {
        Self { keys: Some(Arc::new(keys)), ..self }
    }

    async fn alone(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.one).acquire_owned().await.map_err(|fault| ApiError::internal(fault.to_string()))
    }
}

/// Verifies an audit log, with the signed heads that are known of it.
#[async_trait]
pub trait VerifyAudit: Send + Sync {
    /// What came of walking along the chains of a tenant. `given` are signed heads from elsewhere, in place of those that this server knows.
    ///
    /// # Errors
    /// When the store or a file cannot be read, or what was given cannot be used.
    async fn verify(&self, tenant: &str, given: Option<GivenHeads>) -> Result<AuditVerdict, AuditFault>;
}

/// Signed heads that whoever verifies has, such as what another machine has collected.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenHeads {
    /// Lines of signed heads, as `audit.heads` writes them; empty for those that this server knows.
    #[serde(default)]
    pub heads: String,
    /// The public keys of other servers, from `toolrack audit key`; this server's own is known.
    #[serde(default)]
    #[schemars(length(max = MAX_KEYS))]
    pub public_keys: Vec<String>,
}

impl ReadBody for GivenHeads {
    const EXAMPLE: &str = "`{\"heads\": \"{…}\\n{…}\", \"public_keys\": [\"…\"]}`";
}

/// Why an audit log could not be verified.
#[derive(Debug)]
pub enum AuditFault {
    /// The store failed.
    Store(StoreError),
    /// The configuration or a key cannot be used; the text is for the operator.
    Settings(String),
    /// What was given cannot be used; the text is for who gave it.
    Given(String),
}

/// What came of a verification.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AuditVerdict {
    /// Whether every chain is whole, and every file of signed heads could be read.
    pub whole: bool,
    /// The files of signed heads that cannot be used, and why.
    pub faults: Vec<String>,
    /// The chains, by the names of the servers that write them.
    pub chains: Vec<AuditChain>,
}

/// A chain of records.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AuditChain {
    /// The server that writes it.
    pub server: String,
    /// Whether it is whole.
    pub whole: bool,
    /// What was found, in a sentence.
    pub found: String,
    /// The same, for who says it in another language.
    pub findings: ChainFindings,
}

/// Which records.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::server) struct Wanted {
    user: Option<String>,
    tool: Option<String>,
    call_id: Option<String>,
    origin: Option<String>,
    decision: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    only: Option<String>,
    before: Option<i64>,
    limit: Option<usize>,
}

impl Wanted {
    /// The records of the tenant that are wanted, oldest first.
    fn filter(self, tenant: &str) -> Result<AuditFilter, ApiError> {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let happened = given(self.only).map(|only| {
            only.parse::<AuditEventKind>()
                .map_err(|_| ApiError::invalid("only", "`only` is `intent`, `success` or `failure`"))
        });
        let origin = given(self.origin).map(|origin| origin_filter(&origin));
        let verdict = given(self.decision).map(|decision| {
            let words = "`decision` is `approved`, `blocked`, `pending` or `unanswered`";
            decision.parse::<Verdict>().map_err(|_| ApiError::invalid("decision", words))
        });
        Ok(AuditFilter {
            user: given(self.user),
            tool: given(self.tool),
            call_id: given(self.call_id),
            origin: origin.transpose().map_err(|fault| ApiError::invalid("origin", fault))?,
            verdict: verdict.transpose()?,
            since: self.since,
            until: self.until,
            happened: happened.transpose()?,
            ..AuditFilter::new(tenant)
        })
    }
}

/// Which origin of calls is meant: entry points by their names in the records, then dialects by theirs.
///
/// # Errors
/// The names that there are.
pub(crate) fn origin_filter(text: &str) -> Result<OriginFilter, String> {
    Ok(OriginFilter::Is(match text {
        "text" => return Ok(OriginFilter::Text),
        "native" => Origin::Native,
        "http" => Origin::Http,
        "mcp" => Origin::Mcp,
        "command_line" => Origin::CommandLine,
        "schedule" => Origin::Schedule,
        "tool" => Origin::Tool,
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

/// Records of the audit.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct AuditList {
    records: Vec<ListedRecord>,
    /// `before` of the next request; null where there are no more.
    next: Option<i64>,
}

/// A record, as it is kept.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AuditRecord")]
struct ListedRecord {
    /// The server that wrote it.
    server: String,
    /// Its number in the server's chain.
    seq: u64,
    /// The hash of the record before.
    previous: String,
    /// Its own hash.
    sha256: String,
    /// What happened.
    #[schemars(with = "BTreeMap<String, Value>")]
    record: Box<RawValue>,
}

impl From<ChainedRecord> for ListedRecord {
    fn from(record: ChainedRecord) -> Self {
        let ChainedRecord { position: _, server, seq, previous, sha256, record } = record;
        Self { server, seq, previous, sha256, record }
    }
}

fn filtered(operation: Operation) -> Operation {
    operation
        .query("user", "Only calls of this user.")
        .query("tool", "Only calls of this tool, or changes by this command, such as `toolrack user add`.")
        .query("call_id", "Only the call with this id.")
        .query("origin", "Only calls from this origin: `native`, `text`, the name of a dialect, `http`, `mcp`, `schedule`, `command_line`, `tool` or `library`.")
        .query_choice("decision", "Only calls of which a gate or a person said so.", &["approved", "blocked", "pending", "unanswered"])
        .query_time("since", "Only from this time on, such as `2026-03-01T12:00:00Z`.")
        .query_time("until", "Only before this time.")
        .query_choice("only", "Only records of this kind.", &["intent", "success", "failure"])
        .refuses(400, "A query parameter is unknown or not valid (`invalid_request_error`).")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "The server keeps no audit that can be read (`audit_not_kept`).")
}

pub(in crate::server) fn list_operation() -> Operation {
    filtered(Operation::new(
        Method::GET,
        "Audit",
        "list_audit",
        "The tenant's audit records, the newest first",
    ))
    .query_number("before", "Only records behind those that were read: `next` of their answer.", 0, i64::MAX)
    .query_number("limit", "At most so many, up to 1000; 50 where it is not said. Large ones are fewer: from 8 MiB on the rest comes behind `next`.", 1, MAX_LIMIT as i64)
    .answers::<AuditList>(200, "The records.")
    .refuses(503, "As much of the admin's requests is under way as may be (`server_busy`).")
    .retry_after(503)
}

pub(in crate::server) async fn list(
    State(app): State<App>,
    Admin(identity): Admin,
    QueryParameters(wanted): QueryParameters<Wanted>,
) -> Result<Response, ApiError> {
    let limit = wanted.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("`limit` goes from 1 to {MAX_LIMIT}")));
    }
    let beyond = wanted.before.map(|position| AuditCursor { position, ..AuditCursor::default() });
    let filter = wanted.filter(identity.registry.tenant())?;
    let mut filter = AuditFilter { newest_first: true, beyond, ..filter };
    let reading = reading(&app)?;
    let reads_all = filter.origin.is_some() || filter.verdict.is_some();
    let one = if reads_all { Some(reading.alone().await?) } else { None };
    let log = Arc::clone(&reading.log);
    let read = async move {
        let _one = one;
        let (mut records, mut bytes) = (Vec::new(), 0);
        loop {
            filter.limit = READ_AT_ONCE.min(limit - records.len());
            let read = log.list(&filter).await?;
            let is_last = read.len() < filter.limit;
            if let Some(last) = read.last() {
                filter.beyond = Some(AuditCursor { position: last.position, ..AuditCursor::default() });
            }
            bytes += read.iter().map(|record| record.record.get().len()).sum::<usize>();
            records.extend(read);
            if is_last || records.len() >= limit || bytes >= MAX_LISTED {
                return Ok::<_, StoreError>((records, is_last));
            }
        }
    };
    let shown = move |(records, is_last): (Vec<ChainedRecord>, bool)| {
        let next = records.last().filter(|_| !is_last).map(|record| record.position);
        AuditList { records: records.into_iter().map(ListedRecord::from).collect(), next }
    };
    identity.read_json(read, shown).await
}

pub(in crate::server) fn export_operation() -> Operation {
    filtered(Operation::new(
        Method::GET,
        "Audit",
        "export_audit",
        "The tenant's audit records, the oldest first",
    ))
    .details("As lines of JSON, to the byte as they were hashed. A failure on the way breaks the answer off.")
    .answers_with(200, JSON_LINES, "The records.")
}

pub(in crate::server) async fn export(
    State(app): State<App>,
    Admin(identity): Admin,
    QueryParameters(wanted): QueryParameters<Wanted>,
) -> Result<Response, ApiError> {
    let reading = reading(&app)?;
    let log = Arc::clone(&reading.log);
    if wanted.limit.is_some() || wanted.before.is_some() {
        return Err(ApiError::invalid("query", "an export has all records; leave out `limit` and `before`"));
    }
    let tenant = identity.registry.tenant();
    let filter = AuditFilter { limit: READ_AT_ONCE, ..wanted.filter(tenant)? };
    let place = reading.exports.enter(tenant, &identity.caller.user).await;
    // What fails at once is an error, and not an answer that breaks off.
    let first = log.list(&filter).await?;
    let pages = stream::unfold(Some((first, filter)), move |page| {
        let _place = &place;
        let log = Arc::clone(&log);
        async move {
            let (records, mut filter) = page?;
            let lines = lines_of(&records);
            if records.len() < READ_AT_ONCE {
                return Some((lines, None));
            }
            filter.beyond.get_or_insert_default().advance(&records);
            match log.list(&filter).await {
                Ok(next) => Some((lines, Some((next, filter)))),
                Err(cause) => {
                    tracing::error!(%cause, "audit_export_failed");
                    Some((Err(cause.to_string().into()), None))
                }
            }
        }
    });
    Ok(([(header::CONTENT_TYPE, JSON_LINES)], Body::from_stream(pages)).into_response())
}

fn lines_of(records: &[ChainedRecord]) -> Result<String, BoxError> {
    records.iter().try_fold(String::new(), |lines, record| Ok(lines + &serde_json::to_string(record)? + "\n"))
}

pub(in crate::server) fn verify_operation() -> Operation {
    Operation::new(Method::GET, "Audit", "verify_audit", "Whether no audit record was changed or removed")
        .details("It reads all records of the tenant, and compares them with the signed heads of this server's files.")
        .answers::<AuditVerdict>(200, "What was found.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "The server keeps no audit that can be read (`audit_not_kept`).")
}

pub(in crate::server) async fn verify(
    State(app): State<App>,
    Admin(identity): Admin,
) -> Result<Json<AuditVerdict>, ApiError> {
    verified(&app, identity.registry.tenant(), None).await
}

pub(in crate::server) fn verify_given_operation() -> Operation {
    Operation::new(Method::POST, "Audit", "verify_audit_given", "The same, with signed heads from elsewhere")
        .details("With those that another machine has collected, and the public keys of the servers that have signed them.")
        .reads::<GivenHeads>()
        .answers::<AuditVerdict>(200, "What was found.")
        .refuses(400, "A public key is none, there are too many, or there is no head of the tenant among them (`invalid_request_error`).")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "The server keeps no audit that can be read (`audit_not_kept`).")
}

pub(in crate::server) async fn verify_given(
    State(app): State<App>,
    Admin(identity): Admin,
    JsonBody(given): JsonBody<GivenHeads>,
) -> Result<Json<AuditVerdict>, ApiError> {
    if given.public_keys.len() > MAX_KEYS {
        return Err(ApiError::invalid("public_keys", format!("at most {MAX_KEYS} public keys can be given")));
    }
    if given.heads.lines().count() > MAX_HEADS {
        let message =
            format!("at most {MAX_HEADS} signed heads can be given; leave out the older ones of each chain");
        return Err(ApiError::invalid("heads", message));
    }
    verified(&app, identity.registry.tenant(), Some(given)).await
}

async fn verified(
    app: &App,
    tenant: &str,
    given: Option<GivenHeads>,
) -> Result<Json<AuditVerdict>, ApiError> {
    let reading = reading(app)?;
    let _one = reading.alone().await?;
    match reading.verify.verify(tenant, given).await {
        Ok(verdict) => Ok(Json(verdict)),
        Err(AuditFault::Store(cause)) => Err(cause.into()),
        Err(AuditFault::Given(fault)) => Err(ApiError::invalid("heads", fault)),
        Err(AuditFault::Settings(fault)) => {
            tracing::error!(fault, "audit_not_verified");
            Err(ApiError::internal("the audit cannot be verified; see the server's log"))
        }
    }
}

fn reading(app: &App) -> Result<&AuditReading, ApiError> {
    app.settings
        .audit
        .as_ref()
        .ok_or_else(|| ApiError::not_found("audit_not_kept", "this server keeps no audit that can be read"))
}
