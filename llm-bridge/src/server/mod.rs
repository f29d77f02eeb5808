//! The HTTP server, one file for each group of routes.

mod access;
mod accounts;
mod admin;
mod answering;
mod api_error;
mod approval_rules;
mod approvals;
mod audit;
mod backup;
mod body;
mod chat;
mod chats;
mod configured;
mod connected_accounts;
mod connections;
mod conversations;
mod counts;
mod dev;
mod doctor;
#[cfg_attr(not(feature = "documents"), path = "documents/none.rs")]
mod documents;
mod erasure;
mod examinations;
mod execute;
mod files;
mod fronts;
mod gemini;
mod handover;
mod harmless;
mod health;
mod identity;
mod jobs;
mod key;
mod lifecycle;
mod mcp;
mod mcp_servers;
mod mcp_sessions;
mod message;
mod metrics;
mod models;
mod modules;
mod name;
mod ollama;
mod openapi;
mod origins;
#[cfg_attr(not(feature = "page"), path = "no_page.rs")]
mod page;
#[cfg(feature = "page")]
mod page_documents;
mod pages;
mod passed;
mod personas;
mod protected_resource;
mod public_url;
mod query;
mod questions;
mod readiness;
mod refused_keys;
mod responses;
mod restore;
mod router;
mod routes;
mod schedule;
mod seats;
mod serving;
mod session;
mod settings;
mod sign_in;
mod store_log;
mod stored;
mod timeouts;
mod tools;
mod traces;
mod trials;
mod turns;
mod unrouted;
mod users;
mod via;
mod webhooks;
mod written;

pub use access::Access;
#[cfg(feature = "cli")]
pub(crate) use audit::origin_filter;
pub use audit::{
    AuditChain, AuditFault, AuditReading, AuditVerdict, ChainFault, ChainFindings, GivenHeads, KeySuccession,
    NotedRecord, SignAudit, VerifyAudit,
};
pub use backup::{BackupFault, BackupFile, MakeBackup};
pub use configured::{Configured, SettingOrigin};
#[cfg(feature = "cli")]
pub(crate) use doctor::SECONDS as EXAMINATION_SECONDS;
pub use doctor::{ExamineModel, ModelToExamine};
#[cfg(all(feature = "cli", feature = "documents"))]
pub(crate) use documents::uploads_of;
pub use documents::{Documents, Upload, UploadLimits};
pub use erasure::{ErasePerson, Erased};
pub use examinations::Examination;
pub use lifecycle::{check_address, serve};
pub use origins::AllowedOrigin;
pub use public_url::PublicUrl;
pub use restore::{UploadBackup, UploadFault, UploadedBackup};
use router::App;
pub use router::router;
pub use seats::MAX_CONNECTIONS;
pub use settings::{GRACE, REQUEST_TIMEOUT, ServerSettings, UnknownNames, WRITE_TIMEOUT};
#[cfg(feature = "cli")]
pub(crate) use traces::{SpanReply, TraceReply};
pub use trials::TryTool;

pub use crate::takeover::Takeover;

/// The largest request that is read, in bytes: a conversation with pictures in it.
const MAX_BODY: usize = 32 * 1024 * 1024;
