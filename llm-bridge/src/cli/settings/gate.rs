//! The gate that is asked before calls of tools that require it.

use serde::Deserialize;
use toolrack_http::HttpGate;

use super::{flags::Secret, webhooks::signing_secret};

/// A gate that is asked over HTTP.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateSettings {
    /// Its URL.
    pub url: String,
    /// Its name in the audit; by default the URL's host.
    pub name: Option<String>,
    /// The secret that signs requests: `whsec_` and 24 to 64 random bytes in base64. Without one they are not signed.
    pub secret: Option<Secret>,
    /// The environment variable with the secret, in place of `secret`.
    pub secret_env: Option<String>,
    /// Whether calls are refused when it fails.
    #[serde(default)]
    pub fails_closed: bool,
}

impl GateSettings {
    /// The gate.
    ///
    /// # Errors
    /// When a setting is invalid; the message does not show the secret.
    pub fn gate(&self) -> Result<HttpGate, String> {
        let gate = self.unsigned()?;
        let secret = signing_secret("gate", self.secret.as_ref(), self.secret_env.as_deref())?;
        Ok(match secret {
            Some(secret) => gate.signed(secret),
            None => gate,
        })
    }

    /// Checks the settings without the environment: a command that calls no tool needs no secret.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.secret_env.is_none() || self.secret.is_some() {
            return self.gate().map(drop);
        }
        self.unsigned().map(drop)
    }

    fn unsigned(&self) -> Result<HttpGate, String> {
        let gate = HttpGate::new(&self.url).map_err(|fault| format!("gate.url: {fault}"))?;
        let gate = match &self.name {
            Some(name) => gate.named(name).map_err(|fault| format!("gate.name: {fault}"))?,
            None => gate,
        };
        Ok(gate.failing_closed(self.fails_closed))
    }
}
