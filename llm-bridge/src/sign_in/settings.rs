//! The settings of sign-in.

use std::collections::BTreeMap;

use registry_core::{DEFAULT_TENANT, Permission, secret_variable};
use reqwest::Url;
use serde::Deserialize;

use crate::identifier::check_identifier;

/// The longest that a browser stays signed in, in hours: 90 days.
const MAX_HOURS: u32 = 2160;

/// People of an OpenID provider, and what they may do.
#[derive(Clone, Deserialize, derive_more::Debug)]
#[serde(deny_unknown_fields, default)]
pub struct SignInSettings {
    /// The provider, exactly as it calls itself in `iss` of its tokens.
    pub issuer: String,
    /// Whom access tokens have to be for: one of these has to be in `aud`. By default the public URL, and that of `/mcp` below it.
    pub audience: Vec<String>,
    /// This server's id at the provider, for sign-in on the page. Without one the page asks for a key.
    pub client_id: Option<String>,
    /// The secret for it; none for a public client.
    #[debug(skip)]
    pub client_secret: Option<String>,
    /// The environment variable with the secret, in place of `client_secret`.
    pub client_secret_env: Option<String>,
    /// Scopes that are asked for when people sign in, besides `openid`.
    pub scopes: Vec<String>,
    /// How long a browser stays signed in, in hours.
    pub session_hours: u32,
    /// Scopes that an access token has to have.
    pub required_scopes: Vec<String>,
    /// The claim that names the user; a JSON pointer if it begins with `/`.
    pub user_claim: String,
    /// The claim that lists the user's groups; a JSON pointer if it begins with `/`.
    pub groups_claim: String,
    /// What people in these groups may do. Without any, operators set the level of each user.
    pub groups: BTreeMap<String, GroupSettings>,
    /// Whether people in none of these groups are refused.
    pub groups_required: bool,
    /// The level of people in none of these groups; without groups, that of new users.
    pub level: Permission,
    /// Whether people who are no users yet become users.
    pub create_users: bool,
    /// The tenant of these users.
    pub tenant: String,
}

/// What people in a group may do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSettings {
    /// Their level.
    pub level: Permission,
    /// Their personas, the default one first.
    #[serde(default)]
    pub personas: Vec<String>,
}

impl Default for SignInSettings {
    fn default() -> Self {
        Self {
            issuer: String::new(),
            audience: Vec::new(),
            client_id: None,
            client_secret: None,
            client_secret_env: None,
            scopes: vec!["profile".to_owned(), "email".to_owned()],
            session_hours: 12,
            required_scopes: Vec::new(),
            user_claim: "sub".to_owned(),
            groups_claim: "groups".to_owned(),
            groups: BTreeMap::new(),
            groups_required: false,
            level: Permission::User,
            create_users: true,
            tenant: DEFAULT_TENANT.to_owned(),
        }
    }
}

impl SignInSettings {
    /// The secret of `client_id`; `None` for a public client.
    ///
    /// # Errors
    /// When the variable is not set.
    pub(super) fn secret(&self) -> Result<Option<String>, String> {
        let Some(variable) = &self.client_secret_env else { return Ok(self.client_secret.clone()) };
        let secret =
            secret_variable(variable).map_err(|fault| format!("sign_in.client_secret_env: {fault}"))?;
        let missing = || format!("sign_in.client_secret_env: the variable {variable} is not set");
        secret.or_else(|| self.client_secret.clone()).map(Some).ok_or_else(missing)
    }

    /// Checks values that parse but are invalid.
    ///
    /// # Errors
    /// Names the setting and says what to do.
    pub fn check(&self) -> Result<(), String> {
        endpoint(&self.issuer).map_err(|fault| format!("sign_in.issuer: {fault}"))?;
        if self.user_claim.is_empty() || self.groups_claim.is_empty() {
            return Err("sign_in: `user_claim` and `groups_claim` have to name a claim, such as \"sub\" and \"groups\"".to_owned());
        }
        if self.groups_required && self.groups.is_empty() {
            return Err("sign_in.groups_required: it lets nobody in without groups; add `[sign_in.groups.NAME]`, or leave it out".to_owned());
        }
        if self.client_id.as_ref().is_some_and(|id| self.audience.contains(id)) {
            // What a browser signs in with has this audience, and is no access token.
            return Err("sign_in.audience: it has to be another than `client_id`; have the provider issue access tokens for `public_url` with /mcp".to_owned());
        }
        if !(1..=MAX_HOURS).contains(&self.session_hours) {
            return Err(format!(
                "sign_in.session_hours: {} is not between 1 and {MAX_HOURS}",
                self.session_hours
            ));
        }
        // They stand in a header.
        let is_scope = |scope: &String| {
            !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
        };
        if let Some(scope) = self.required_scopes.iter().chain(&self.scopes).find(|scope| !is_scope(scope)) {
            return Err(format!("sign_in: `{scope}` is not a scope; write one word for each"));
        }
        check_identifier(&self.tenant).map_err(|rule| format!("sign_in.tenant: it has to be {rule}"))
    }
}

/// An address of the provider. What goes there and comes back decides who is let in, so nobody may change it on the way.
///
/// # Errors
/// When it is not one of https, or of http on this machine.
pub(super) fn endpoint(text: &str) -> Result<Url, String> {
    let fault = |why: &str| format!("`{text}` {why}; write one such as \"https://id.example/realms/home\"");
    let url = Url::parse(text).map_err(|_| fault("is not an address"))?;
    let host = url.host_str().unwrap_or_default();
    let is_loopback = host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    match url.scheme() {
        "https" => {}
        "http" if is_loopback => {}
        _ => return Err(fault("is not an address of https (http is taken on this machine only)")),
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(fault("has a user name, a password or a fragment in it"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(change: impl FnOnce(&mut SignInSettings)) -> Result<(), String> {
        let mut settings =
            SignInSettings { issuer: "https://id.example".into(), ..SignInSettings::default() };
        change(&mut settings);
        settings.check()
    }

    #[test]
    fn b21_settings_that_let_in_anybody_or_nobody_are_refused() {
        settings(|_| {}).unwrap();
        for issuer in
            ["https://id.example/realms/a", "http://127.0.0.1:4000", "http://localhost", "http://[::1]:1"]
        {
            settings(|settings| settings.issuer = issuer.into()).unwrap();
        }
        for issuer in [
            "",
            "id.example",
            "http://id.example",
            "ftp://id.example",
            "https://u:p@id.example",
            "https://a#b",
        ] {
            let fault = settings(|settings| settings.issuer = issuer.into()).unwrap_err();
            assert!(fault.starts_with("sign_in.issuer") && fault.contains("such as"), "{issuer}: {fault}");
        }
        let fault = settings(|settings| settings.groups_required = true).unwrap_err();
        assert!(fault.contains("groups.NAME"), "{fault}");
        let fault = settings(|settings| settings.required_scopes = vec!["a\"b".into()]).unwrap_err();
        assert!(fault.contains("is not a scope"), "{fault}");
        let fault = settings(|settings| settings.user_claim = String::new()).unwrap_err();
        assert!(fault.contains("user_claim"), "{fault}");
    }
}
