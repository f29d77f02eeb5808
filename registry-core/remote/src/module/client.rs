//! Speaks HTTP with modules: bounded in time and size, and only with the address that was configured.

use std::{fmt, sync::Arc, time::Duration};

use registry_core::{ToolContext, ToolError, flow::Reads, text::cut};
use reqwest::{
    Method, RequestBuilder, Response, StatusCode, Url,
    header::{self, HeaderMap, HeaderValue},
    redirect,
};
use serde_json::Value;
use toolrack_http::{BodyError, build_client, read_body};

use crate::{breaker::Outage, settings::RemoteKey};

/// Says through how many servers a request has gone already.
pub const HOPS_HEADER: &str = "x-toolrack-hops";
/// Says for how many milliseconds a call may wait for a person's approval. A module that knows nothing of it answers as it does.
pub const APPROVAL_WAIT_HEADER: &str = "x-toolrack-approval-wait-ms";
/// The header that says what was read: in a call before it, in an answer by it. `private`, `untrusted` or both with a comma.
pub const READS_HEADER: &str = "x-toolrack-reads";

/// What the [`READS_HEADER`] of a request or answer says, all of them together; `None` where there is none. What is not understood says that
/// both may have been read.
pub fn reads_of(headers: &HeaderMap) -> Option<Reads> {
    let said = |value: &HeaderValue| value.to_str().ok()?.parse().ok();
    headers.get_all(READS_HEADER).iter().map(|value| said(value).unwrap_or(Reads::BOTH)).reduce(Reads::and)
}
/// How large a manifest may be, in bytes after decompression.
pub const MAX_MANIFEST: usize = 2 * 1024 * 1024;
/// How large the reply to a call may be, in bytes after decompression.
pub const MAX_REPLY: usize = 4 * 1024 * 1024;
/// How much of an answer with an error is shown, in bytes.
const MAX_ERROR: usize = 4096;
/// Servers close connections that idle, uvicorn after 5 s; a request on one that is just being closed would fail.
const IDLE: Duration = Duration::from_secs(4);

/// Why a module's answer is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// Another status than 200, with the beginning of the body.
    Status(StatusCode, String),
    /// It took longer than this.
    Timeout(Duration),
    /// It could not be reached, or the connection broke.
    Network(String),
    /// It answered, and what it said cannot be used.
    Content(String),
}

impl Fault {
    /// Whether the module is in trouble, and not only this one request.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Status(status, _) => status.is_server_error(),
            Self::Timeout(_) | Self::Network(_) => true,
            Self::Content(_) => false,
        }
    }

    /// What the registry reports of it, in the seed's words.
    pub(super) fn error(&self) -> ToolError {
        let error = match self {
            Self::Status(..) => ToolError::failed(self.to_string()),
            Self::Timeout(limit) => ToolError::timed_out(*limit),
            Self::Network(cause) | Self::Content(cause) => {
                ToolError::failed(format!("Tool execution error: {cause}"))
            }
        };
        if self.is_outage() { error.retryable() } else { error }
    }

    /// Whether it is the same once more. What comes with a status may have the time in it.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Status(one, _), Self::Status(other, _)) => one == other,
            (one, other) => one == other,
        }
    }
}

impl From<Fault> for Outage {
    fn from(fault: Fault) -> Self {
        let error = fault.error();
        match fault {
            // What comes with a status may have the time in it.
            Fault::Status(status, _) => Self { mark: status.to_string(), error },
            _ => error.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status, text) => write!(f, "Module returned status {}: {text}", status.as_u16()),
            Self::Timeout(limit) => write!(f, "it took longer than {} s", limit.as_secs_f64()),
            Self::Network(cause) | Self::Content(cause) => f.write_str(cause),
        }
    }
}

impl From<reqwest::Error> for Fault {
    fn from(error: reqwest::Error) -> Self {
        // The address is the operator's own affair, and the cause goes to the model as well.
        Self::Network(ToolError::from(error.without_url()).message().to_owned())
    }
}

/// Speaks with one module.
#[derive(Debug)]
pub(super) struct Client {
    module: Arc<str>,
    http: reqwest::Client,
    base: Url,
    key: Option<RemoteKey>,
}

/// The connections to all modules.
///
/// # Errors
/// When the system's TLS cannot be set up.
pub(super) fn connections() -> Result<reqwest::Client, reqwest::Error> {
    build_client(|| {
        // Wherever a module sends us, the operator has not said that we may go there, nor that it gets the key and the arguments.
        reqwest::Client::builder().redirect(redirect::Policy::none()).referer(false).pool_idle_timeout(IDLE)
    })
}

impl Client {
    pub(super) fn new(module: Arc<str>, http: reqwest::Client, base: Url, key: Option<RemoteKey>) -> Self {
        Self { module, http, base, key }
    }

    /// The module's name.
    pub(super) fn module(&self) -> &str {
        &self.module
    }

    /// What the module says of itself.
    pub(super) async fn manifest(&self, timeout: Duration) -> Result<Vec<u8>, Fault> {
        let request = self.request(Method::GET, "manifest", 1);
        within(timeout, async { body_of(request.send().await?, MAX_MANIFEST).await }).await
    }

    /// The answer to a call that has come through `hops` servers, this one not counted. What was read goes with it, and what a Toolrack there
    /// has read comes back.
    pub(super) async fn execute(
        &self,
        context: &ToolContext,
        call: &Value,
        hops: u8,
        wait: Duration,
        timeout: Duration,
    ) -> Result<Vec<u8>, Fault> {
        let mut request = self.request(Method::POST, "execute", hops.saturating_add(1)).json(call);
        if !wait.is_zero() {
            request = request.header(APPROVAL_WAIT_HEADER, wait.as_millis().to_string());
        }
        let reads = context.read_so_far();
        if !reads.is_nothing() {
            request = request.header(READS_HEADER, reads.to_string());
        }
        if let Some(trace) = context.trace() {
            request = trace.headers().fold(request, |request, (name, value)| request.header(name, value));
        }
        let answer = async {
            let response = request.send().await?;
            context.has_read(reads_of(response.headers()).unwrap_or_default(), &self.module);
            body_of(response, MAX_REPLY).await
        };
        within(timeout, answer).await
    }

    fn request(&self, method: Method, path: &str, hops: u8) -> RequestBuilder {
        let url = format!("{}/{path}", self.base.as_str().trim_end_matches('/'));
        let request = self.http.request(method, url).header(HOPS_HEADER, u16::from(hops));
        let request = request.header(header::ACCEPT, "application/json");
        match &self.key {
            Some(key) => request.bearer_auth(key.as_str()),
            None => request,
        }
    }
}

async fn body_of(mut response: Response, most: usize) -> Result<Vec<u8>, Fault> {
    let status = response.status();
    if status != StatusCode::OK {
        let text = beginning(&mut response).await;
        return Err(Fault::Status(status, text));
    }
    read_body(&mut response, most).await.map_err(|error| match error {
        BodyError::TooLarge(_) => Fault::Content(error.to_string()),
        BodyError::Broken(error) => error.into(),
    })
}

async fn within<T>(timeout: Duration, answer: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::time::timeout(timeout, answer).await.unwrap_or(Err(Fault::Timeout(timeout)))
}

/// As much of a body as is shown, whether or not the rest would come.
async fn beginning(response: &mut Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece);
        if body.len() >= MAX_ERROR {
            break;
        }
    }
    cut(String::from_utf8_lossy(&body).into_owned(), MAX_ERROR)
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderName;

    use super::*;

    #[test]
    fn b20_what_a_header_says_was_read_only_adds() {
        let of = |values: &[&str]| {
            let values =
                values.iter().map(|value| (HeaderName::from_static(READS_HEADER), value.parse().unwrap()));
            reads_of(&values.collect())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["nothing"]), Some(Reads::NOTHING));
        assert_eq!(of(&["nothing", "private"]), Some(Reads::PRIVATE));
        assert_eq!(of(&["private", "untrusted"]), Some(Reads::BOTH));
        for unknown in ["private, confidential", "PRIVATE", "\"private\""] {
            assert_eq!(of(&[unknown]), Some(Reads::BOTH), "{unknown}");
        }
    }
}
