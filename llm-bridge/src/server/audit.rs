//! `GET /api/audit` and `GET /api/audit/verify`: the audit of a tenant, for its admins.

use std::{collections::BTreeMap, sync::Arc};

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
    BoxFuture,
    guard::audit::log::{AuditCursor, AuditEventKind, AuditFilter, AuditLog, ChainedRecord},
    store::StoreError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use tokio::sync::Semaphore;

use super::{
    App,
    admin::{Admin, NOT_ADMIN},
    api_error::ApiError,
    openapi::Operation,
    query::QueryParameters,
};

const JSON_LINES: &str = "application/x-ndjson";

/// So many records are sent where no limit is named.
const DEFAULT_LIMIT: usize = 50;
/// So many are sent at most, and read at a time for an export.
const MAX_LIMIT: usize = 1000;

/// What the server needs to read and verify the audit.
#[derive(Clone, derive_more::Debug)]
pub struct AuditReading {
    #[debug(skip)]
    log: Arc<dyn AuditLog>,
    #[debug(skip)]
    verify: Arc<dyn VerifyAudit>,
    /// One verification at a time: each reads all records.
    one: Arc<Semaphore>,
}

impl AuditReading {
    /// Reads this log.
    pub fn new(log: Arc<dyn AuditLog>, verify: impl VerifyAudit + 'static) -> Self {
        Self { log, verify: Arc::new(verify), one: Arc::new(Semaphore::new(1)) }
    }
}

/// Verifies an audit log, with the signed heads that are known of it.
pub trait VerifyAudit: Send + Sync {
    /// What came of walking along the chains of a tenant.
    ///
    /// # Errors
    /// When the store or a file cannot be read.
    fn verify<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, Result<AuditVerdict, AuditFault>>;
}

/// Why an audit log could not be verified.
#[derive(Debug)]
pub enum AuditFault {
    /// The store failed.
    Store(StoreError),
    /// The configuration or a key cannot be used; the text is for the operator.
    Settings(String),
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
}

/// Which records.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    user: Option<String>,
    tool: Option<String>,
    call_id: Option<String>,
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
        Ok(AuditFilter {
            user: given(self.user),
            tool: given(self.tool),
            call_id: given(self.call_id),
            since: self.since,
            until: self.until,
            happened: happened.transpose()?,
            ..AuditFilter::new(tenant)
        })
    }
}

/// Records of the audit.
#[derive(Serialize, JsonSchema)]
pub(super) struct AuditList {
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
        .query_time("since", "Only from this time on, such as `2026-03-01T12:00:00Z`.")
        .query_time("until", "Only before this time.")
        .query_choice("only", "Only records of this kind.", &["intent", "success", "failure"])
        .refuses(400, "A query parameter is unknown or not valid (`invalid_request_error`).")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "The server keeps no audit that can be read (`audit_not_kept`).")
}

pub(super) fn list_operation() -> Operation {
    filtered(Operation::new(
        Method::GET,
        "Audit",
        "list_audit",
        "The tenant's audit records, the newest first",
    ))
    .query_number("before", "Only records behind those that were read: `next` of their answer.", 0, i64::MAX)
    .query_number("limit", "At most so many, up to 1000; 50 where it is not said.", 1, MAX_LIMIT as i64)
    .answers::<AuditList>(200, "The records.")
}

pub(super) async fn list(
    State(app): State<App>,
    Admin(identity): Admin,
    QueryParameters(wanted): QueryParameters<Wanted>,
) -> Result<Json<AuditList>, ApiError> {
    let limit = wanted.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("`limit` goes from 1 to {MAX_LIMIT}")));
    }
    let beyond = wanted.before.map(|position| AuditCursor { position, ..AuditCursor::default() });
    let filter = wanted.filter(identity.registry.tenant())?;
    let filter = AuditFilter { newest_first: true, beyond, limit, ..filter };
    let records = reading(&app)?.log.list(&filter).await?;
    let next = records.last().filter(|_| records.len() == limit).map(|record| record.position);
    Ok(Json(AuditList { records: records.into_iter().map(ListedRecord::from).collect(), next }))
}

pub(super) fn export_operation() -> Operation {
    filtered(Operation::new(
        Method::GET,
        "Audit",
        "export_audit",
        "The tenant's audit records, the oldest first",
    ))
    .details("As lines of JSON, to the byte as they were hashed. A failure on the way breaks the answer off.")
    .answers_with(200, JSON_LINES, "The records.")
}

pub(super) async fn export(
    State(app): State<App>,
    Admin(identity): Admin,
    QueryParameters(wanted): QueryParameters<Wanted>,
) -> Result<Response, ApiError> {
    let log = Arc::clone(&reading(&app)?.log);
    if wanted.limit.is_some() || wanted.before.is_some() {
        return Err(ApiError::invalid("query", "an export has all records; leave out `limit` and `before`"));
    }
    let filter = AuditFilter { limit: MAX_LIMIT, ..wanted.filter(identity.registry.tenant())? };
    // What fails at once is an error, and not an answer that breaks off.
    let first = log.list(&filter).await?;
    let pages = stream::unfold(Some((first, filter)), move |page| {
        let log = Arc::clone(&log);
        async move {
            let (records, mut filter) = page?;
            let lines = lines_of(&records);
            if records.len() < MAX_LIMIT {
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

pub(super) fn verify_operation() -> Operation {
    Operation::new(Method::GET, "Audit", "verify_audit", "Whether no audit record was changed or removed")
        .details("It reads all records of the tenant, and compares them with the signed heads of this server's files.")
        .answers::<AuditVerdict>(200, "What was found.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "The server keeps no audit that can be read (`audit_not_kept`).")
}

pub(super) async fn verify(
    State(app): State<App>,
    Admin(identity): Admin,
) -> Result<Json<AuditVerdict>, ApiError> {
    let reading = reading(&app)?;
    let _one = reading.one.acquire().await.map_err(|fault| ApiError::internal(fault.to_string()))?;
    match reading.verify.verify(identity.registry.tenant()).await {
        Ok(verdict) => Ok(Json(verdict)),
        Err(AuditFault::Store(cause)) => Err(cause.into()),
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
