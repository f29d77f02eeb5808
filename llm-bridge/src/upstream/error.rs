//! Why a model server did not answer.

use std::time::Duration;

use toolrack_apis::{Failure, FailureKind};

/// Why the model could not be asked, or stopped answering.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// No connection.
    #[error("cannot reach the model server at {base}: {cause}. Is it running? See --upstream")]
    Unreachable {
        /// The address.
        base: String,
        /// Why.
        cause: String,
    },
    /// The server refused the request.
    #[error("the model server answered {status}: {}", failure.message)]
    Refused {
        /// Its HTTP status.
        status: u16,
        /// What it said.
        failure: Box<Failure>,
    },
    /// The server failed while it answered, and said so; or its answer cannot be read.
    #[error("the model server failed: {}", .0.message)]
    Failed(Box<Failure>),
    /// The server sent nothing for that long.
    #[error("the model server sent nothing for {} s", .0.as_secs())]
    Stalled(Duration),
    /// The answer broke off.
    #[error("the model server broke off its answer: {0}")]
    Interrupted(String),
    /// No server has the model of this name.
    #[error(
        "no model server has the model `{0}`; take one of GET /v1/models, or set `models` of the server that has it"
    )]
    NoModel(String),
    /// Another server of the same store runs this turn.
    #[error(
        "another server answers the same conversation, with calls that change something; they are not made twice. Wait for that answer, or ask again when it is there"
    )]
    AnsweredElsewhere,
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
            Self::NoModel(_) | Self::AnsweredElsewhere => false,
        }
    }

    /// What the server itself said.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Refused { failure, .. } | Self::Failed(failure) => Some(&failure.message),
            Self::Unreachable { .. }
            | Self::Stalled(_)
            | Self::Interrupted(_)
            | Self::NoModel(_)
            | Self::AnsweredElsewhere => None,
        }
    }
}

/// Whether a status says that another server may do better with the same request.
pub(super) fn is_about_server(status: u16) -> bool {
    matches!(status, 429 | 500..=599)
}

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
            // Clients repeat a 409 by themselves.
            UpstreamError::AnsweredElsewhere => {
                Self { status: 409, ..Self::new(FailureKind::InvalidRequest, message) }.not_again()
            }
        }
    }
}
