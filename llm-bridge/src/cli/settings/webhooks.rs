//! The webhook endpoints, and the secrets that sign their messages.

use registry_core::{DEFAULT_TENANT, secret_variable};
use reqwest::Url;
use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use toolrack_http::webhook::WebhookEndpoint;

use super::flags::Secret;
use crate::cli::tenant;

/// Matches every tenant.
const ALL_TENANTS: &str = "*";

/// An endpoint that is notified when tools are registered, switched or removed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSettings {
    /// The endpoint's URL.
    pub url: String,
    /// The secret that signs messages: `whsec_` and 24 to 64 random bytes in base64.
    pub secret: Option<Secret>,
    /// The environment variable with the secret, in place of `secret`.
    pub secret_env: Option<String>,
    /// The tenant whose events are sent, or `*` for all; by default the default tenant.
    pub tenant: Option<String>,
}

impl WebhookSettings {
    /// The endpoint.
    ///
    /// # Errors
    /// When a setting is invalid; the message does not show the secret.
    pub fn endpoint(&self) -> Result<WebhookEndpoint, String> {
        let secret = signing_secret("webhooks", self.secret.as_ref(), self.secret_env.as_deref())?;
        let missing = || format!("webhooks.secret: it is missing; {MAKE_ONE}");
        self.with_secret(secret.ok_or_else(missing)?)
    }

    /// Checks the settings without the environment: a command that changes nothing needs no secret.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.secret_env.is_none() || self.secret.is_some() {
            return self.endpoint().map(drop);
        }
        self.with_secret(STAND_IN.parse().map_err(|_| MAKE_ONE.to_owned())?).map(drop)
    }

    fn with_secret(&self, secret: toolrack_http::Secret) -> Result<WebhookEndpoint, String> {
        let endpoint =
            WebhookEndpoint::new(&self.url, secret).map_err(|fault| format!("webhooks.url: {fault}"))?;
        match self.tenant.as_deref() {
            Some(ALL_TENANTS) => Ok(endpoint.of_all_tenants()),
            Some(name) => match tenant::parse(name) {
                Ok(name) => Ok(endpoint.of_tenant(name)),
                Err(fault) => Err(format!("webhooks.tenant: {fault}")),
            },
            None => Ok(endpoint.of_tenant(DEFAULT_TENANT)),
        }
    }
}

/// The line number of each endpoint's URL.
pub(super) fn lines(file: &DeTable<'_>, text: &str) -> Vec<usize> {
    let endpoints = file.get("webhooks").and_then(|endpoints| endpoints.get_ref().as_array());
    let line = |at: usize| text.get(..at).unwrap_or_default().matches('\n').count() + 1;
    endpoints
        .into_iter()
        .flat_map(|endpoints| endpoints.iter())
        .map(|endpoint| {
            let url = endpoint.get_ref().as_table().and_then(|table| table.get("url"));
            line(url.map_or(endpoint.span(), toml::Spanned::<DeValue<'_>>::span).start)
        })
        .collect()
}

/// Checks that a URL that is configured twice has the same secret, so that its receiver can verify every message.
///
/// # Errors
/// The lines of two endpoints with different secrets.
pub(super) fn check_secrets(endpoints: &[WebhookSettings], lines: &[usize]) -> Result<(), String> {
    let parsed = |endpoint: &WebhookSettings| Url::parse(&endpoint.url).ok();
    let secret = |endpoint: &WebhookSettings| {
        (endpoint.secret.clone().map(|secret| secret.0), endpoint.secret_env.clone())
    };
    for (at, (endpoint, line)) in endpoints.iter().zip(lines).enumerate() {
        let mut before = endpoints.iter().zip(lines).take(at);
        let is_other = |known: &WebhookSettings| {
            parsed(known).is_some() && parsed(known) == parsed(endpoint) && secret(known) != secret(endpoint)
        };
        if let Some((_, first)) = before.find(|(known, _)| is_other(known)) {
            return Err(format!(
                "line {line}: webhooks.url: it is that of line {first}, with another secret; give both the same, or each a URL of its own"
            ));
        }
    }
    Ok(())
}

const MAKE_ONE: &str = "make one with `echo whsec_$(openssl rand -base64 32)`";
/// A valid secret for checks; nothing is signed with it.
const STAND_IN: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The secret of a table, from `secret` or the environment variable; `None` if it has neither.
pub(super) fn signing_secret(
    table: &str,
    secret: Option<&Secret>,
    variable: Option<&str>,
) -> Result<Option<toolrack_http::Secret>, String> {
    let (key, text) = match (secret, variable) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(format!("{table}: it has `secret` and `secret_env`; leave one of them out"));
        }
        (Some(secret), None) => ("secret", secret.0.clone()),
        (None, Some(variable)) => {
            let text = secret_variable(variable).map_err(|fault| format!("{table}.secret_env: {fault}"))?;
            let missing = || format!("{table}.secret_env: the variable `{variable}` is not set; {MAKE_ONE}");
            ("secret_env", text.ok_or_else(missing)?)
        }
    };
    text.parse().map(Some).map_err(|fault| format!("{table}.{key}: {fault}"))
}
