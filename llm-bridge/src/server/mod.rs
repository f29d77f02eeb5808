//! The HTTP server: a file for each group of routes, in folders by what they are about.
//!
//! A connection is taken in `transport`, its requests are read and checked in `requests` and `callers`, and `router` has all routes.

mod apis;
mod callers;
mod calls;
mod chats;
#[cfg_attr(not(feature = "documents"), path = "documents/none.rs")]
mod documents;
mod mcp;
mod openapi;
mod operating;
#[cfg_attr(not(feature = "page"), path = "no_page.rs")]
mod page;
#[cfg(feature = "page")]
mod page_documents;
mod requests;
mod router;
mod routes;
mod settings;
mod transport;
mod unrouted;

pub use callers::{
    access::Access,
    erasure::{ErasePerson, Erased},
};
pub use calls::trials::TryTool;
#[cfg(all(feature = "cli", feature = "documents"))]
pub(crate) use documents::uploads_of;
pub use documents::{Documents, Upload, UploadLimits};
#[cfg(feature = "cli")]
pub(crate) use operating::{
    audit::origin_filter,
    doctor::SECONDS as EXAMINATION_SECONDS,
    traces::{SpanReply, TraceReply},
};
pub use operating::{
    audit::{
        AuditChain, AuditFault, AuditReading, AuditVerdict, ChainFault, ChainFindings, GivenHeads,
        KeySuccession, NotedRecord, SignAudit, VerifyAudit,
    },
    backup::{BackupFault, BackupFile, MakeBackup},
    configured::{Configured, SettingOrigin},
    doctor::{ExamineModel, ModelToExamine},
    examinations::Examination,
    restore::{UploadBackup, UploadFault, UploadedBackup},
};
pub use requests::{origins::AllowedOrigin, public_url::PublicUrl};
use router::App;
pub use router::router;
pub use settings::{GRACE, REQUEST_TIMEOUT, ServerSettings, UnknownNames, WRITE_TIMEOUT};
pub use transport::{
    lifecycle::{check_address, serve},
    seats::MAX_CONNECTIONS,
};

pub use crate::takeover::Takeover;

/// The largest request that is read, in bytes: a conversation with pictures in it.
const MAX_BODY: usize = 32 * 1024 * 1024;
