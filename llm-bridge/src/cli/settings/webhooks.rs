//! The webhook endpoints, and the secrets that sign their messages.

use registry_core::DEFAULT_TENANT;
use reqwest::Url;
use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use toolrack_http::webhook::WebhookEndpoint;

use super::flags::Secret;
use crate::cli::tenant;

/// What stands for every tenant.
const ALL_TENANTS: &str = "*";

/// An endpoint that is notified when tools are registered, switched or removed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSettings {
    /// Where to.
    pub url: String,
    /// `whsec_` and 24 to 64 random bytes in base64, by which the receiver knows the message.
    pub secret: Option<Secret>,
    /// The variable of the environment that holds the secret, in place of `secret`.
    pub secret_env: Option<String>,
    /// Whose events: those of this tenant, or of every one with `*`; those of the default tenant where nothing is said.
    pub tenant: Option<String>,
}

impl WebhookSettings {
    /// The endpoint.
    ///
    /// # Errors
    /// What cannot be meant, without the secret.
    pub fn endpoint(&self) -> Result<WebhookEndpoint, String> {
        let secret = signing_secret("webhooks", self.secret.as_ref(), self.secret_env.as_deref())?;
        let missing = || format!("webhooks.secret: it is missing; {MAKE_ONE}");
        self.with_secret(secret.ok_or_else(missing)?)
    }

    /// Whether this can be meant. The environment is not asked: a command that tells nobody needs no secret.
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

/// The line of the file in which each endpoint's URL is.
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

/// Whether each URL has one secret, by which its receiver knows every message. The secrets themselves are compared as they are written.
///
/// # Errors
/// The lines of two that differ.
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
/// In the form of a secret; nothing is ever signed with it.
const STAND_IN: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The secret that a table names itself or by a variable of the environment; `None` where it does neither.
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
            let text = std::env::var(variable).unwrap_or_default();
            if text.is_empty() {
                return Err(format!("{table}.secret_env: the variable `{variable}` is not set; {MAKE_ONE}"));
            }
            ("secret_env", text)
        }
    };
    text.parse().map(Some).map_err(|fault| format!("{table}.{key}: {fault}"))
}
