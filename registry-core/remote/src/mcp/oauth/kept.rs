//! The tokens of a user's account on an MCP server, as they are kept.

use std::time::Duration;

use jiff::Timestamp;
use registry_core::store::StoredConnection;
use serde::{Deserialize, Serialize};

use super::{
    Account, Connections,
    web::{Client, Failed, Web},
};

/// How long before its end a token is renewed, in seconds.
const EARLY: i64 = 60;
/// How long whoever renews a token has for it, in seconds. Then another may: it was killed.
const RENEWS: i64 = 30;
/// How often others look whether it has.
const LOOKS: Duration = Duration::from_millis(200);
/// The longest token that is taken, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// What an authorization server gives.
#[derive(Deserialize)]
pub(super) struct Given {
    pub(super) access_token: String,
    pub(super) token_type: String,
    pub(super) expires_in: Option<i64>,
    pub(super) refresh_token: Option<String>,
    pub(super) scope: Option<String>,
}

impl Given {
    /// # Errors
    /// Where it is of no use. The text has nothing of it.
    pub(super) fn read(body: &[u8]) -> Result<Self, Failed> {
        let wrong = |why: &str| Failed::Away(format!("it gives no token that can be used: {why}"));
        // What is wrong with it could be a part of it.
        let given: Self = serde_json::from_slice(body).map_err(|_| wrong("it is no answer of OAuth"))?;
        if !given.token_type.eq_ignore_ascii_case("bearer") {
            return Err(wrong("it is of another type than Bearer"));
        }
        if !is_token(&given.access_token) || !given.refresh_token.as_deref().is_none_or(is_token) {
            return Err(wrong("it is too long, or has characters that no token has"));
        }
        Ok(given)
    }

    pub(super) fn ends_at(&self, now: Timestamp) -> Option<i64> {
        self.expires_in.map(|seconds| now.as_second().saturating_add(seconds.clamp(0, i64::from(u32::MAX))))
    }
}

pub(super) fn is_token(text: &str) -> bool {
    (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What is kept, sealed.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The URL of the MCP server that the tokens are for. They are sent nowhere else. Empty for those of a sign-in.
    pub(super) resource: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    pub(super) revocation_endpoint: Option<String>,
    /// The authorization server that the operator has named.
    pub(super) named: Option<String>,
    pub(super) client: Client,
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// When the access token ends, in seconds since 1970.
    pub(super) ends_at: Option<i64>,
    pub(super) scope: Option<String>,
    /// Until when somebody renews it, in seconds since 1970.
    #[serde(default)]
    pub(super) renewed_until: i64,
    /// Scopes that the MCP server has asked for since.
    #[serde(default)]
    pub(super) wanted: Option<String>,
    /// When the session ends whose tokens they are, in seconds since 1970; `None` for those of an account.
    #[serde(default)]
    pub(super) session_until: Option<i64>,
}

impl Kept {
    /// Reaches the authorization server: where an MCP server has named it, within bounds; the identity provider is the operator's.
    pub(super) fn web(&self) -> Result<Web, String> {
        let named = match self.session_until {
            None => [Some(&self.resource), self.named.as_ref(), None],
            Some(_) => [Some(&self.issuer), Some(&self.token_endpoint), self.revocation_endpoint.as_ref()],
        };
        let named: Vec<_> =
            named.into_iter().flatten().filter_map(|url| reqwest::Url::parse(url).ok()).collect();
        Web::new(&named.iter().collect::<Vec<_>>())
    }
}

/// Where tokens are kept, what they are for, and how their authorization server is reached.
#[derive(Clone, Copy)]
pub(super) struct Holder<'a> {
    pub(super) server: &'a str,
    pub(super) resource: &'a str,
    /// Whether the authorization server is told of it.
    pub(super) sends_resource: bool,
    pub(super) web: &'a Web,
}

impl Account {
    pub(super) fn holder(&self) -> Holder<'_> {
        let sends_resource = self.settings.send_resource;
        Holder { server: &self.name, resource: self.url.as_str(), sends_resource, web: &self.web }
    }
}

/// Whose an account is: tenant and user, both empty for one that everybody shares.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::mcp) struct Who {
    pub(super) tenant: String,
    pub(super) user: String,
}

impl Who {
    pub(super) fn everybody() -> Self {
        Self { tenant: String::new(), user: String::new() }
    }

    pub(in crate::mcp) fn of(tenant: &str, user: &str) -> Self {
        Self { tenant: tenant.to_owned(), user: user.to_owned() }
    }
}

/// Why there is no token.
#[derive(Debug)]
pub(in crate::mcp) enum NoToken {
    /// The user has to let this server in.
    Ask,
    /// It may be there later.
    Later(String),
}

impl Connections {
    fn place<'a>(who: &'a Who, server: &'a str) -> [&'a str; 4] {
        ["connection", &who.tenant, &who.user, server]
    }

    /// What is kept of an account, with the row that has it; `None` where there is nothing that can be used.
    pub(super) async fn kept(
        &self,
        who: &Who,
        holder: Holder<'_>,
    ) -> Result<Option<(StoredConnection, Kept)>, NoToken> {
        let found = self.shared.store.connection(&who.tenant, &who.user, holder.server).await;
        let found = found.map_err(|cause| NoToken::Later(cause.to_string()))?;
        let Some(row) = found else { return Ok(None) };
        let kept: Option<Kept> = self.shared.key.open(&Self::place(who, holder.server), &row.sealed);
        // With another key, or of a server that is elsewhere now.
        Ok(kept.filter(|kept| kept.resource == holder.resource).map(|kept| (row, kept)))
    }

    pub(super) fn sealed(&self, who: &Who, server: &str, kept: &Kept) -> Result<String, String> {
        self.shared.key.seal(&Self::place(who, server), kept)
    }

    pub(super) fn opened(&self, row: &StoredConnection) -> Option<Kept> {
        let who = Who::of(&row.tenant, &row.user);
        self.shared.key.open(&Self::place(&who, &row.server), &row.sealed)
    }

    /// Changes what is kept where it is still as in the row. Gives the new row where it was.
    async fn change(&self, row: &StoredConnection, kept: &Kept) -> Result<Option<StoredConnection>, NoToken> {
        let who = Who::of(&row.tenant, &row.user);
        let sealed = self.sealed(&who, &row.server, kept).map_err(NoToken::Later)?;
        let new = StoredConnection { sealed, ..row.clone() };
        let changed = self.shared.store.change_connection(new.clone(), &row.sealed).await;
        Ok(changed.map_err(|cause| NoToken::Later(cause.to_string()))?.then_some(new))
    }

    /// The access token of an account, renewed where it ends soon, or is the one that was refused; and since when the account is connected.
    pub(super) async fn token(
        &self,
        who: &Who,
        holder: Holder<'_>,
        refused: Option<&str>,
    ) -> Result<(String, Timestamp), NoToken> {
        loop {
            let Some((row, kept)) = self.kept(who, holder).await? else { return Err(NoToken::Ask) };
            let now = self.now().as_second();
            let ends = kept.ends_at.is_some_and(|ends| ends - EARLY <= now);
            let has_ended = kept.ends_at.is_some_and(|ends| ends <= now);
            let is_refused = refused == Some(kept.access.as_str());
            if !ends && !is_refused {
                return Ok((kept.access, row.created_at));
            }
            if kept.refresh.is_none() {
                let is_over = has_ended || is_refused;
                return if is_over { Err(NoToken::Ask) } else { Ok((kept.access, row.created_at)) };
            }
            if kept.renewed_until > now {
                // Somebody renews it: a refresh token is good for one use.
                tokio::time::sleep(LOOKS).await;
                continue;
            }
            let claimed = Kept { renewed_until: now + RENEWS, ..kept.clone() };
            if let Some(row) = self.change(&row, &claimed).await? {
                let since = row.created_at;
                return self.renew(holder, row, kept).await.map(|token| (token, since));
            }
        }
    }

    async fn renew(&self, holder: Holder<'_>, row: StoredConnection, kept: Kept) -> Result<String, NoToken> {
        let answer = async {
            let url = holder.web.address(&kept.token_endpoint).map_err(Failed::Away)?;
            let token = kept.refresh.as_deref().unwrap_or_default();
            let mut fields = vec![("grant_type", "refresh_token"), ("refresh_token", token)];
            if holder.sends_resource && !kept.resource.is_empty() {
                fields.push(("resource", &kept.resource));
            }
            Given::read(&holder.web.post_form(url, &kept.client, &fields).await?)
        };
        match answer.await {
            Ok(given) => {
                let token = given.access_token.clone();
                let ends_at = given.ends_at(self.now());
                let renewed = Kept {
                    access: given.access_token,
                    refresh: given.refresh_token.or(kept.refresh),
                    ends_at,
                    scope: given.scope.or(kept.scope),
                    renewed_until: 0,
                    ..kept
                };
                // Where it was revoked meanwhile, what came is of no use.
                let kept = self.change(&row, &renewed).await?;
                kept.map(|_| token).ok_or(NoToken::Ask)
            }
            Err(Failed::Refused(_, error)) if ["invalid_grant", "invalid_client"].contains(&&*error) => {
                self.forget_registration(holder.server, &error).await;
                tracing::info!(
                    server = holder.server,
                    tenant = row.tenant,
                    user = row.user,
                    error,
                    "mcp_authorization_ended"
                );
                let removed = self.shared.store.remove_connection(&row.tenant, &row.user, &row.server).await;
                removed.map_err(|cause| NoToken::Later(cause.to_string()))?;
                Err(NoToken::Ask)
            }
            Err(failed) => {
                let cause = failed.text();
                tracing::warn!(server = holder.server, cause, "mcp_token_not_renewed");
                let is_good = kept.ends_at.is_none_or(|ends| ends > self.now().as_second());
                let access = kept.access.clone();
                self.change(&row, &Kept { renewed_until: 0, ..kept }).await?;
                if is_good { Ok(access) } else { Err(NoToken::Later(cause)) }
            }
        }
    }

    /// Keeps the scopes that a server asks for, for when the user authorizes it again.
    pub(super) async fn want(&self, who: &Who, account: &Account, scope: &str) {
        if let Ok(Some((row, kept))) = self.kept(who, account.holder()).await {
            let wanted = Some(registry_core::text::cut(scope.to_owned(), 500));
            let _ = self.change(&row, &Kept { wanted, ..kept }).await;
        }
    }

    /// Has the authorization server forget what is kept (RFC 7009), as far as it can be reached.
    pub(super) async fn revoke(&self, server: &str, kept: &Kept) {
        let revoked = async {
            let Some(endpoint) = &kept.revocation_endpoint else { return Ok(()) };
            let web = kept.web().map_err(Failed::Away)?;
            let url = web.address(endpoint).map_err(Failed::Away)?;
            // The one token takes the other with it.
            let (token, hint) = match &kept.refresh {
                Some(token) => (token, "refresh_token"),
                None => (&kept.access, "access_token"),
            };
            web.post_form(url, &kept.client, &[("token", token), ("token_type_hint", hint)]).await.map(drop)
        };
        if let Err(failed) = revoked.await {
            tracing::warn!(server, issuer = kept.issuer, cause = failed.text(), "mcp_token_not_revoked");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b21_a_token_has_so_many_bytes_and_no_more() {
        let given = |access: &str, refresh: &str| {
            let body = json!({"access_token": access, "token_type": "bearer", "refresh_token": refresh});
            Given::read(body.to_string().as_bytes()).map(|given| given.access_token.len())
        };
        let (longest, longer) = ("x".repeat(MAX_TOKEN), "x".repeat(MAX_TOKEN + 1));
        assert_eq!(given(&longest, &longest).unwrap(), MAX_TOKEN);
        for (access, refresh) in [(&*longer, "r"), ("a", &*longer), ("", "r"), ("a b", "r"), ("a", "\u{e9}")]
        {
            let refused = given(access, refresh).unwrap_err().text();
            assert!(refused.contains("too long, or has characters that no token has"), "{refused}");
        }
    }
}
