//! Why there is no answer, or no more of it.

use std::{borrow::Cow, fmt};

use crate::RawJson;

/// A request that cannot be understood: which field, and what to send.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadRequest {
    /// The path of the field, such as `messages[2].content`; `body` for all of it.
    pub param: Cow<'static, str>,
    /// What is wrong and what to send.
    pub message: String,
}

impl BadRequest {
    /// A field and what is wrong with it.
    pub fn new(param: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { param: param.into(), message: message.into() }
    }
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadRequest {}

/// What kind of [`Failure`] it is. Each front has its own words for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The request is wrong (400).
    InvalidRequest,
    /// The conversation is longer than the model can read (400).
    ContextLength,
    /// The client has no valid key (401).
    Authentication,
    /// The client may not do this (403).
    Permission,
    /// There is no such model or address (404).
    NotFound,
    /// The request is too large (413).
    TooLarge,
    /// Too many requests (429).
    RateLimit,
    /// A fault of this server (500).
    Internal,
    /// The model server fails, or refuses this server (502).
    Upstream,
    /// The model server is busy or still loads the model (503).
    Overloaded,
    /// This server is being stopped (503).
    Stopping,
    /// The model server has fallen silent (504).
    Timeout,
}

impl FailureKind {
    /// Its usual HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidRequest | Self::ContextLength => 400,
            Self::Authentication => 401,
            Self::Permission => 403,
            Self::NotFound => 404,
            Self::TooLarge => 413,
            Self::RateLimit => 429,
            Self::Internal => 500,
            Self::Upstream => 502,
            Self::Overloaded | Self::Stopping => 503,
            Self::Timeout => 504,
        }
    }
}

/// Why there is no answer, or no more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind it is.
    pub kind: FailureKind,
    /// The HTTP status of the reply, where none of the answer has been sent.
    pub status: u16,
    /// What went wrong and what to do, for the client.
    pub message: String,
    /// The path of the field that is wrong.
    pub param: Option<String>,
    /// By what clients of OpenAI's APIs tell it from others, where it is not said by its kind.
    pub code: Option<&'static str>,
    /// The model server's own error, if it said so.
    pub upstream: Option<Box<UpstreamDetails>>,
    /// `Retry-After`: seconds, or a date.
    pub retry_after: Option<String>,
    /// Whether the client should send the request again (`x-should-retry`); `None` if the status says so.
    pub should_retry: Option<bool>,
}

/// The error of a model server in its own words, which clients know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamDetails {
    /// Its `type`, such as `exceed_context_size_error`.
    pub error_type: Option<String>,
    /// Its `code`: a text or a number, such as `"context_length_exceeded"`.
    pub code: Option<RawJson>,
    /// Its other fields, such as `n_ctx`.
    pub others: Vec<(Box<str>, RawJson)>,
}

impl Failure {
    /// A failure with the usual status of its kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: kind.status(),
            message: message.into(),
            param: None,
            code: None,
            upstream: None,
            retry_after: None,
            should_retry: None,
        }
    }

    /// A failure that the model server reports in its answer, or an answer that cannot be read.
    pub fn of_upstream(message: impl Into<String>) -> Self {
        Self { upstream: Some(Box::default()), ..Self::new(FailureKind::Upstream, message) }
    }

    /// The refusal of a model server: its own refusals of the request pass through. That it refuses this server is not the client's
    /// fault, and asking again does not help.
    pub fn of_status(status: u16, message: impl Into<String>) -> Self {
        let kind = match status {
            401 | 403 | 407 => FailureKind::Upstream,
            404 => FailureKind::NotFound,
            413 => FailureKind::TooLarge,
            429 => FailureKind::RateLimit,
            400..500 => FailureKind::InvalidRequest,
            503 => FailureKind::Overloaded,
            504 => FailureKind::Timeout,
            _ => FailureKind::Upstream,
        };
        let failure = Self { upstream: Some(Box::default()), ..Self::new(kind, message) };
        match status {
            401 | 403 | 407 => failure.not_again(),
            400..500 | 503 => Self { status, ..failure },
            _ => failure,
        }
    }

    /// The same, so that no client sends the request again. Some SDKs read `x-should-retry`, others the status alone: 408, 409, 429 and
    /// all from 500 become 424 (Failed Dependency).
    #[must_use]
    pub fn not_again(mut self) -> Self {
        self.should_retry = Some(false);
        if matches!(self.status, 408 | 409 | 429 | 500..) {
            self.status = 424;
        }
        self
    }
}

impl From<BadRequest> for Failure {
    fn from(bad: BadRequest) -> Self {
        Self { param: Some(bad.param.into_owned()), ..Self::new(FailureKind::InvalidRequest, bad.message) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n4_what_must_not_be_sent_again_has_a_status_that_no_sdk_sends_again() {
        for (status, changed) in
            [(400, 400), (404, 404), (408, 424), (409, 424), (429, 424), (500, 424), (503, 424)]
        {
            let failure = Failure::of_status(status, "no").not_again();
            assert_eq!((failure.status, failure.should_retry), (changed, Some(false)), "{status}");
            assert_eq!(failure.kind, Failure::of_status(status, "no").kind, "clients read what it is");
        }
    }
}
