//! Why a model server did not answer.

use std::{fmt, time::Duration};

use toolrack_apis::{Failure, FailureKind};

/// Why the model could not be asked, or stopped answering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamError {
    /// No connection.
    Unreachable {
        /// The address.
        base: String,
        /// Why.
        cause: String,
    },
    /// The server refused the request.
    Refused {
        /// Its HTTP status.
        status: u16,
        /// What it said.
        failure: Box<Failure>,
    },
    /// The server failed while it answered, and said so; or its answer cannot be read.
    Failed(Box<Failure>),
    /// The server sent nothing for that long.
    Stalled(Duration),
    /// The answer broke off.
    Interrupted(String),
    /// No server has the model of this name.
    NoModel(String),
}

impl UpstreamError {
    /// A failure of the server, in our words.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(Box::new(Failure::of_upstream(message)))
    }

    /// Whether another server may do better with the same request.
    pub(crate) fn is_about_server(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Stalled(_) | Self::Interrupted(_) => true,
            Self::Refused { status, .. } => is_about_server(*status),
            Self::Failed(failure) => matches!(
                failure.kind,
                FailureKind::Upstream
                    | FailureKind::Overloaded
                    | FailureKind::Timeout
                    | FailureKind::RateLimit
            ),
            Self::NoModel(_) => false,
        }
    }

    /// What the server itself said.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Refused { failure, .. } | Self::Failed(failure) => Some(&failure.message),
            Self::Unreachable { .. } | Self::Stalled(_) | Self::Interrupted(_) | Self::NoModel(_) => None,
        }
    }
}

/// Whether a status says that another server may do better with the same request.
pub(super) fn is_about_server(status: u16) -> bool {
    matches!(status, 429 | 500..=599)
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { base, cause } => {
                write!(f, "cannot reach the model server at {base}: {cause}. Is it running? See --upstream")
            }
            Self::Refused { status, failure } => {
                write!(f, "the model server answered {status}: {}", failure.message)
            }
            Self::Failed(failure) => write!(f, "the model server failed: {}", failure.message),
            Self::Stalled(idle) => write!(f, "the model server sent nothing for {} s", idle.as_secs()),
            Self::NoModel(model) => write!(
                f,
                "no model server has the model `{model}`; take one of GET /v1/models, or set `models` of the server that has it"
            ),
            Self::Interrupted(cause) => write!(f, "the model server broke off its answer: {cause}"),
        }
    }
}

impl std::error::Error for UpstreamError {}

/// The failure as a client is informed of it: with the server's own code and type.
impl From<UpstreamError> for Failure {
    fn from(error: UpstreamError) -> Self {
        let message = error.to_string();
        match error {
            UpstreamError::Refused { failure, .. } | UpstreamError::Failed(failure) => {
                Self { message, ..*failure }
            }
            UpstreamError::Stalled(_) => {
                Self { kind: FailureKind::Timeout, status: 504, ..Self::of_upstream(message) }
            }
            UpstreamError::Unreachable { .. } | UpstreamError::Interrupted(_) => Self::of_upstream(message),
            UpstreamError::NoModel(_) => Self::new(FailureKind::NotFound, message),
        }
    }
}
