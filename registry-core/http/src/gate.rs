//! A gate that is asked over HTTP.
//!
//! Each question is one `POST` of
//!
//! ```json
//! {"call_id": "…", "tool": {…}, "policy": {…}, "arguments": {…},
//!  "caller": {"user": "ada", "level": "user", "via": null, "tenant": "default"},
//!  "conversation": {"user_message": "…", "chat_id": "…", "kb_context": "…", "confidence": 0.9}}
//! ```
//!
//! with the whole [`ToolSpec`](registry_core::ToolSpec) as `tool`, the whole [`ToolPolicy`](registry_core::ToolPolicy) as `policy`, and `(secret)` in place of arguments
//! that are secret. Where there is a secret it is signed as a [webhook](crate::webhook) is. The answer is a status of 2xx with
//! `{"answer": "approved"}`, `{"answer": "blocked", "reason": "…"}` or `{"answer": "pending"}`, of 64 KiB at most; anything
//! else is a gate that has failed. Redirects are not followed.

use async_trait::async_trait;
use jiff::Timestamp;
use registry_core::{
    guard::gate::{GATE_TIMEOUT, Gate, GateAnswer, GateError, GateRequest},
    text::cut,
};
use reqwest::{Client, header::CONTENT_TYPE, redirect::Policy};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::{
    BodyError, EndpointError, Secret, build_client, describe, error::parse_url, message_id, read_body,
};

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;
/// How much of a reason is handed on, in bytes.
const MAX_REASON: usize = 2000;
/// The longest name, in bytes.
const MAX_NAME: usize = 256;
/// What the audit says where a person is asked, or has not answered.
const OF_PERSONS: [&str; 2] = ["person", "timeout"];

/// A gate at an address of the operator's.
#[derive(derive_more::Debug)]
#[debug("HttpGate({name})")]
#[must_use]
pub struct HttpGate {
    name: String,
    url: Url,
    secret: Option<Secret>,
    fails_closed: bool,
    client: Client,
}

/// What a gate answers.
#[derive(Debug, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
enum Answer {
    Approved,
    Blocked { reason: Option<String> },
    Pending,
}

impl HttpGate {
    /// A gate at this URL, which may be in a private network. Its name is the URL's host, and calls are made when it fails.
    ///
    /// # Errors
    /// When the URL is not one of `http` or `https`, or the system's TLS cannot be set up.
    pub fn new(url: &str) -> Result<Self, EndpointError> {
        let url = parse_url("gate", url)?;
        let name = match (url.scheme(), url.host_str()) {
            // A host may be called anything.
            (scheme, Some(host)) if OF_PERSONS.contains(&host) => {
                format!("{scheme}://{host}")
            }
            (_, host) => host.unwrap_or_default().to_owned(),
        };
        let client = build_client(|| Client::builder().redirect(Policy::none()).timeout(GATE_TIMEOUT));
        Ok(Self { name, url, secret: None, fails_closed: false, client: client? })
    }

    /// With this name in the audit.
    ///
    /// # Errors
    /// When the name is none, or one that the audit has for a person.
    pub fn named(self, name: &str) -> Result<Self, EndpointError> {
        let wrong = |rule| Err(EndpointError::InvalidName { name: name.to_owned(), rule });
        if name.trim().is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
            return wrong("it has to be a text of 1 to 256 bytes, without control characters");
        }
        if ["user:", "rule:"].iter().any(|of_persons| name.starts_with(of_persons))
            || OF_PERSONS.contains(&name)
        {
            return wrong("the audit uses it for the decisions of a person; choose another name");
        }
        Ok(Self { name: name.to_owned(), ..self })
    }

    /// Signing what it is asked.
    pub fn signed(self, secret: Secret) -> Self {
        Self { secret: Some(secret), ..self }
    }

    /// With calls refused when it fails.
    pub fn failing_closed(self, closed: bool) -> Self {
        Self { fails_closed: closed, ..self }
    }

    async fn ask(&self, body: String) -> Result<GateAnswer, GateError> {
        let mut request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        if let Some(secret) = &self.secret {
            let (id, timestamp) = (
                message_id().map_err(|fault| GateError::Unreachable(fault.to_string()))?,
                Timestamp::now().as_second(),
            );
            request = request
                .header("webhook-signature", secret.sign(&id, timestamp, &body))
                .header("webhook-id", id)
                .header("webhook-timestamp", timestamp);
        }
        // The URL may hold a secret.
        let sent = request.body(body).send().await;
        let mut response = sent.map_err(unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(GateError::Refused(status.to_string()));
        }
        let body = read_body(&mut response, MAX_ANSWER).await.map_err(|error| match error {
            BodyError::TooLarge(_) => GateError::InvalidAnswer(error.to_string()),
            BodyError::Broken(error) => unreachable(error),
        })?;
        let answer: Answer = serde_json::from_slice(&body).map_err(|_| {
            let wanted = r#"it has to be {"answer": "approved"}, "blocked" or "pending""#;
            GateError::InvalidAnswer(wanted.to_owned())
        })?;
        Ok(match answer {
            Answer::Approved => GateAnswer::Approved,
            Answer::Pending => GateAnswer::Pending,
            Answer::Blocked { reason } => GateAnswer::Blocked(self.reason(reason)),
        })
    }

    /// A gate's reason, or one in place of it; cut, since it goes to the model.
    fn reason(&self, reason: Option<String>) -> String {
        let given = reason.filter(|reason| !reason.trim().is_empty());
        cut(given.unwrap_or_else(|| format!("{} does not allow this call.", self.name)), MAX_REASON)
    }
}

fn unreachable(error: reqwest::Error) -> GateError {
    GateError::Unreachable(describe(error))
}

#[async_trait]
impl Gate for HttpGate {
    fn name(&self) -> &str {
        &self.name
    }

    fn fails_closed(&self) -> bool {
        self.fails_closed
    }

    async fn check(&self, request: GateRequest<'_>) -> Result<GateAnswer, GateError> {
        let (caller, conversation) = (request.context.caller(), request.context.conversation());
        let body = json!({
            "call_id": request.context.call_id(),
            "tool": request.spec,
            "policy": request.policy,
            "arguments": request.public_arguments(),
            "caller": {
                "user": caller.user, "level": caller.level, "via": caller.via, "tenant": request.tenant,
            },
            "conversation": {
                "user_message": conversation.user_message, "chat_id": conversation.chat_id,
                "kb_context": conversation.kb_context, "confidence": conversation.confidence,
            },
        });
        self.ask(body.to_string()).await
    }
}
