//! An authorization in a browser: the authorization code flow with PKCE (RFC 7636), for one MCP server (RFC 8707).
//!
//! What has to come back is sealed in a cookie of the browser that began, so that nobody else can end it, nothing waits here, and another
//! server with the same key can end it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use registry_core::{random_id, store::StoredConnection};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{
    Account, Connections,
    discovery::{Issuer, discover},
    kept::{Given, Kept, Who},
    web::{Client, Failed, error_name},
};

/// How long an authorization may take, in seconds.
pub const AUTHORIZATION_SECONDS: i64 = 600;
/// The longest cookie that a browser keeps, its name included.
const MAX_COOKIE: usize = 3900;
/// What is sealed in the cookie.
const BEGUN: [&str; 1] = ["begun"];
/// Whose the registrations of this server are.
const CLIENT: &str = "@client";

/// An authorization that a browser has begun.
#[derive(Serialize, Deserialize)]
struct Begun {
    server: String,
    tenant: String,
    user: String,
    state: String,
    verifier: String,
    redirect_uri: String,
    resource: String,
    issuer: String,
    names_itself: bool,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    client: Client,
    until: i64,
}

/// What a browser gets to begin with.
#[derive(derive_more::Debug)]
pub struct Beginning {
    /// What the browser keeps meanwhile.
    #[debug(skip)]
    pub cookie: String,
    /// Where it goes.
    pub location: String,
}

/// What the authorization server sends back with the browser.
#[derive(Default, Deserialize, derive_more::Debug)]
#[debug("AuthorizationCallback")]
pub struct AuthorizationCallback {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// Why an account was not connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectError {
    /// No server of that name wants authorization.
    Unknown,
    /// What came back belongs to no authorization of this browser and user.
    Foreign,
    /// The authorization server has refused, and how it says so.
    Refused(String),
    /// The server or its authorization server fails; the text is for operators.
    Failed(String),
}

/// A registration of this server (RFC 7591), as it is kept.
#[derive(Serialize, Deserialize)]
struct Registered {
    issuer: String,
    redirect_uri: String,
    client: Client,
    ends_at: i64,
}

#[derive(Deserialize)]
struct Registration {
    client_id: String,
    client_secret: Option<String>,
    #[serde(default)]
    client_secret_expires_at: i64,
    token_endpoint_auth_method: Option<String>,
}

impl Connections {
    /// Begins to connect a user to a server. `redirect_uri` is where the browser comes back to.
    ///
    /// # Errors
    /// When the server is not one of those, or its authorization server cannot be used.
    pub async fn begin(
        &self,
        server: &str,
        tenant: &str,
        user: &str,
        redirect_uri: &str,
    ) -> Result<Beginning, ConnectError> {
        let account =
            self.account(server).filter(|account| account.is_asked()).ok_or(ConnectError::Unknown)?;
        let begun = self.begin_with(&account, account.who(tenant, user), redirect_uri).await;
        begun.map_err(|cause| {
            tracing::warn!(server, cause, "mcp_authorization_failed");
            ConnectError::Failed(cause)
        })
    }

    async fn begin_with(&self, account: &Account, who: Who, redirect_uri: &str) -> Result<Beginning, String> {
        let issuer = discover(account).await?;
        let Some(mut url) = issuer.authorization.clone() else {
            return Err("the authorization server has no authorization_endpoint".to_owned());
        };
        if !issuer.has_pkce && !account.settings.assume_pkce {
            return Err("the authorization server does not say that it checks PKCE with S256, which MCP asks for; where you know that it \
                        does, write `assume_pkce = true`"
                .to_owned());
        }
        let client = self.client(account, &issuer, redirect_uri).await?;
        let random =
            || Ok::<_, String>(format!("{}{}", random_id().map_err(text)?, random_id().map_err(text)?));
        let begun = Begun {
            server: account.name.to_string(),
            tenant: who.tenant.clone(),
            user: who.user.clone(),
            state: random()?,
            verifier: random()?,
            redirect_uri: redirect_uri.to_owned(),
            resource: account.url.to_string(),
            issuer: issuer.name,
            names_itself: issuer.names_itself,
            token_endpoint: issuer.token.into(),
            revocation_endpoint: issuer.revocation.map(Into::into),
            client,
            until: self.now().as_second() + AUTHORIZATION_SECONDS,
        };
        let mut scopes =
            if account.settings.scopes.is_empty() { issuer.scopes } else { account.settings.scopes.clone() };
        if let Ok(Some((_, kept))) = self.kept(&who, account.holder()).await {
            let more = [kept.scope, kept.wanted].into_iter().flatten();
            for scope in
                more.flat_map(|all| all.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>())
            {
                if !scopes.contains(&scope) {
                    scopes.push(scope);
                }
            }
        }
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &begun.client.id)
                .append_pair("redirect_uri", redirect_uri)
                .append_pair("state", &begun.state)
                .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(Sha256::digest(&begun.verifier)))
                .append_pair("code_challenge_method", "S256");
            if account.settings.send_resource {
                query.append_pair("resource", &begun.resource);
            }
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
        }
        let cookie = self.shared.key.seal(&BEGUN, &begun)?;
        if cookie.len() > MAX_COOKIE {
            return Err("the authorization server's addresses are too long".to_owned());
        }
        Ok(Beginning { cookie, location: url.into() })
    }

    /// Ends an authorization with what the browser has kept. `signed_in` is whose session the browser has, where it has one. Gives the
    /// name of the server.
    ///
    /// # Errors
    /// When it is not this browser's or this user's, or the authorization server refuses or fails.
    pub async fn finish(
        &self,
        cookie: &str,
        callback: AuthorizationCallback,
        signed_in: Option<(&str, &str)>,
    ) -> Result<String, ConnectError> {
        let begun: Begun = self.shared.key.open(&BEGUN, cookie).ok_or(ConnectError::Foreign)?;
        let state = callback.state.unwrap_or_default();
        let is_same = bool::from(state.as_bytes().ct_eq(begun.state.as_bytes()));
        if !is_same || begun.until <= self.now().as_second() {
            return Err(ConnectError::Foreign);
        }
        let account = self.account(&begun.server).filter(|account| account.url.as_str() == begun.resource);
        let account = account.ok_or(ConnectError::Unknown)?;
        let who = Who { tenant: begun.tenant, user: begun.user };
        let is_own =
            signed_in.is_none_or(|(tenant, user)| account.settings.shared || who == Who::of(tenant, user));
        // RFC 9207: another authorization server could have been given the code.
        let is_issuer = match &callback.iss {
            Some(issuer) => *issuer == begun.issuer,
            None => !begun.names_itself,
        };
        if !is_own || !is_issuer {
            return Err(ConnectError::Foreign);
        }
        if let Some(error) = callback.error {
            return Err(ConnectError::Refused(error_name(&error)));
        }
        let code = callback.code.ok_or(ConnectError::Foreign)?;
        let given = async {
            let url = account.web.address(&begun.token_endpoint).map_err(Failed::Away)?;
            let mut fields = vec![
                ("grant_type", "authorization_code"),
                ("code", &*code),
                ("redirect_uri", &begun.redirect_uri),
                ("code_verifier", &begun.verifier),
            ];
            if account.settings.send_resource {
                fields.push(("resource", &begun.resource));
            }
            Given::read(&account.web.post_form(url, &begun.client, &fields).await?)
        };
        let given = given.await;
        if let Err(Failed::Refused(_, error)) = &given {
            self.forget_registration(&account.name, error).await;
        }
        let given = given.map_err(|failed| match failed {
            Failed::Refused(_, error) => ConnectError::Refused(error),
            failed => ConnectError::Failed(failed.text()),
        })?;
        let ends_at = given.ends_at(self.now());
        let kept = Kept {
            resource: begun.resource,
            issuer: begun.issuer,
            token_endpoint: begun.token_endpoint,
            revocation_endpoint: begun.revocation_endpoint,
            named: account.settings.authorization_server.clone(),
            client: begun.client,
            access: given.access_token,
            refresh: given.refresh_token,
            ends_at,
            scope: given.scope,
            renewed_until: 0,
            wanted: None,
            session_until: None,
        };
        let before = self.kept(&who, account.holder()).await.ok().flatten();
        let row = StoredConnection {
            sealed: self.sealed(&who, &account.name, &kept).map_err(ConnectError::Failed)?,
            tenant: who.tenant,
            user: who.user,
            server: account.name.to_string(),
            created_at: self.now(),
        };
        tracing::info!(server = row.server, tenant = row.tenant, user = row.user, "mcp_authorized");
        self.shared
            .store
            .put_connection(row)
            .await
            .map_err(|cause| ConnectError::Failed(cause.to_string()))?;
        if let Some((_, before)) =
            before.filter(|(_, before)| before.refresh.is_some() && before.refresh != kept.refresh)
        {
            self.revoke(&account.name, &before).await;
        }
        account.authorized.notify_waiters();
        Ok(begun.server)
    }

    /// Forgets how this server is registered where the authorization server has: it is registered anew when somebody is next sent there.
    pub(super) async fn forget_registration(&self, server: &str, error: &str) {
        if ["invalid_client", "unauthorized_client"].contains(&error)
            && let Err(cause) = self.shared.store.remove_connection("", CLIENT, server).await
        {
            tracing::warn!(server, %cause, "mcp_registration_not_forgotten");
        }
    }

    /// This server as a client: as it is configured, or registered there by itself.
    async fn client(&self, account: &Account, issuer: &Issuer, redirect_uri: &str) -> Result<Client, String> {
        if let Some(client) = account.client(issuer)? {
            return Ok(client);
        }
        let place = ["client", &*account.name];
        let found = self.shared.store.connection("", CLIENT, &account.name).await.map_err(text)?;
        let known = found.and_then(|row| self.shared.key.open::<Registered>(&place, &row.sealed));
        let now = self.now();
        let fits = |known: &Registered| {
            known.issuer == issuer.name
                && known.redirect_uri == redirect_uri
                && (known.ends_at == 0 || known.ends_at > now.as_second() + AUTHORIZATION_SECONDS)
        };
        if let Some(known) = known.filter(fits) {
            return Ok(known.client);
        }
        let Some(url) = issuer.registration.clone() else {
            return Err(format!(
                "the authorization server {} registers nobody by itself: register this server there with the address {redirect_uri} to \
                 come back to, and write its `client_id` under [mcp_servers.{}]",
                issuer.name, account.name
            ));
        };
        let wanted = json!({
            "client_name": "Toolrack",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        let given = account.web.post_json::<Registration>(url, &wanted).await;
        let given = given.map_err(|failed| {
            format!("the authorization server does not register this server: {}", failed.text())
        })?;
        let client = Client {
            id: given.client_id,
            secret: given
                .client_secret
                .filter(|_| given.token_endpoint_auth_method.as_deref() != Some("none")),
            secret_in_form: match given.token_endpoint_auth_method.as_deref() {
                Some(method) => method == "client_secret_post",
                None => issuer.secret_in_form,
            },
        };
        let registered = Registered {
            issuer: issuer.name.clone(),
            redirect_uri: redirect_uri.to_owned(),
            client: client.clone(),
            ends_at: given.client_secret_expires_at,
        };
        let row = StoredConnection {
            tenant: String::new(),
            user: CLIENT.to_owned(),
            server: account.name.to_string(),
            sealed: self.shared.key.seal(&place, &registered)?,
            created_at: now,
        };
        self.shared.store.put_connection(row).await.map_err(text)?;
        Ok(client)
    }
}

/// Whether a row is a registration of this server, and nobody's account.
pub(super) fn is_registration(row: &StoredConnection) -> bool {
    row.tenant.is_empty() && row.user == CLIENT
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Where a browser comes back to, below the address of this server.
pub const CALLBACK: &str = "/connections/callback";

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use registry_core::store::MemoryStore;

    use super::*;
    use crate::mcp::oauth::SealingKey;

    #[tokio::test]
    async fn b21_an_authorization_ends_in_its_time_and_in_its_browser() {
        let key = || SealingKey::new(&[7; 32]).unwrap();
        let all = Connections::new(&BTreeMap::new(), Arc::new(MemoryStore::default()), key(), None).unwrap();
        let text = |text: &str| text.to_owned();
        let cookie = |until: i64| {
            let begun = Begun {
                server: text("tracker"),
                tenant: text("default"),
                user: text("ada"),
                state: text("state"),
                verifier: text("verifier"),
                redirect_uri: text("https://tools.example/connections/callback"),
                resource: text("https://tracker.example/mcp"),
                issuer: text("https://id.example"),
                names_itself: true,
                token_endpoint: text("https://id.example/token"),
                revocation_endpoint: None,
                client: Client { id: text("client"), secret: None, secret_in_form: false },
                until,
            };
            key().seal(&BEGUN, &begun).unwrap()
        };
        let ends = async |cookie: String, state: &str| {
            let callback =
                AuthorizationCallback { state: Some(text(state)), ..AuthorizationCallback::default() };
            all.finish(&cookie, callback, None).await
        };
        let now = all.now().as_second();
        // It comes as far as to look for the server, of which there is none here.
        assert_eq!(ends(cookie(now + AUTHORIZATION_SECONDS), "state").await, Err(ConnectError::Unknown));
        assert_eq!(ends(cookie(now - 1), "state").await, Err(ConnectError::Foreign));
        assert_eq!(ends(cookie(now + AUTHORIZATION_SECONDS), "another").await, Err(ConnectError::Foreign));
        assert_eq!(ends(text("none"), "state").await, Err(ConnectError::Foreign));
    }
}
