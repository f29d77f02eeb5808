//! The tokens of people who have signed in on the page, for servers where they are exchanged: sealed and renewed as those of accounts are, and
//! ended with their sessions.

use std::cmp::Reverse;

use jiff::Timestamp;
use registry_core::store::{StoreError, StoredConnection};

use super::{
    Connections,
    kept::{Holder, Kept, NoToken, Who, is_token},
    web::Client,
};

/// What the rows of sessions are called, before the session's id. No server has such a name.
const SESSION: &str = "@session ";

/// What the identity provider has given to this server at a sign-in.
#[derive(Clone, derive_more::Debug)]
pub struct SignedIn {
    /// The provider.
    pub issuer: String,
    /// Where it renews tokens.
    pub token_endpoint: String,
    /// Where it revokes them, if it does.
    pub revocation_endpoint: Option<String>,
    /// This server, as a client of the provider.
    pub client_id: String,
    /// Its secret.
    #[debug(skip)]
    pub client_secret: Option<String>,
    /// Whether that goes into the form, not into a header.
    pub secret_in_form: bool,
    /// The token that is exchanged.
    #[debug(skip)]
    pub access_token: String,
    /// What renews it.
    #[debug(skip)]
    pub refresh_token: Option<String>,
    /// How long the access token holds, in seconds.
    pub expires_in: Option<i64>,
}

/// A token to exchange, and the row that it is kept in where it is one of a session.
pub(super) struct Subject {
    pub(super) token: String,
    pub(super) row: Option<String>,
}

/// Whether a row is of a session, and nobody's account on an MCP server.
pub(super) fn is_session(row: &StoredConnection) -> bool {
    is_reserved(&row.server)
}

/// Whether no server can have this name.
pub(super) fn is_reserved(server: &str) -> bool {
    server.starts_with(SESSION)
}

fn row_of(session: &str) -> String {
    format!("{SESSION}{session}")
}

impl Connections {
    /// Whether there are servers where what people sign in with is exchanged.
    pub fn exchanges(&self) -> bool {
        self.shared.accounts.values().any(|account| !account.is_asked())
    }

    /// Keeps what a user was given who has signed in on the page, as long as the session lasts; nothing where nothing is exchanged.
    pub async fn signed_in(
        &self,
        tenant: &str,
        user: &str,
        session: &str,
        until: Timestamp,
        given: SignedIn,
    ) {
        if !self.exchanges() {
            return;
        }
        if let Err(cause) = self.keep_session(&Who::of(tenant, user), session, until, given).await {
            tracing::warn!(tenant, user, session, cause, "sign_in_not_kept_for_exchange");
            return;
        }
        let exchanging = self.shared.accounts.values().filter(|account| !account.is_asked());
        exchanging.for_each(|account| account.authorized.notify_waiters());
    }

    async fn keep_session(
        &self,
        who: &Who,
        session: &str,
        until: Timestamp,
        given: SignedIn,
    ) -> Result<(), String> {
        if !is_token(&given.access_token) || !given.refresh_token.as_deref().is_none_or(is_token) {
            return Err("the provider's token is too long, or has characters that no token has".to_owned());
        }
        let now = self.now();
        let kept = Kept {
            resource: String::new(),
            issuer: given.issuer,
            token_endpoint: given.token_endpoint,
            revocation_endpoint: given.revocation_endpoint,
            named: None,
            client: Client {
                id: given.client_id,
                secret: given.client_secret,
                secret_in_form: given.secret_in_form,
            },
            access: given.access_token,
            refresh: given.refresh_token,
            ends_at: given.expires_in.map(|seconds| now.as_second().saturating_add(seconds)),
            scope: None,
            renewed_until: 0,
            wanted: None,
            session_until: Some(until.as_second()),
        };
        let server = row_of(session);
        let row = StoredConnection {
            sealed: self.sealed(who, &server, &kept)?,
            tenant: who.tenant.clone(),
            user: who.user.clone(),
            server,
            created_at: now,
        };
        self.shared.store.put_connection(row).await.map_err(|cause| cause.to_string())
    }

    /// Forgets what was kept for a session that has ended, and has the provider forget it too.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn signed_out(&self, tenant: &str, user: &str, session: &str) -> Result<(), StoreError> {
        self.shared.exchanged.forget_given(&Who::of(tenant, user));
        if let Some(row) = self.shared.store.connection(tenant, user, &row_of(session)).await? {
            self.end(&row).await?;
        }
        Ok(())
    }

    /// The same for all sessions of a user but these.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn signed_in_only(
        &self,
        tenant: &str,
        user: &str,
        sessions: &[String],
    ) -> Result<(), StoreError> {
        for row in self.shared.store.connections(tenant, user).await? {
            let session = row.server.strip_prefix(SESSION);
            if session.is_some_and(|session| sessions.iter().all(|known| known != session)) {
                self.end(&row).await?;
            }
        }
        Ok(())
    }

    /// Whether a row is of a session that has not ended by itself, with a key that is here.
    pub(super) fn is_open_session(&self, row: &StoredConnection) -> bool {
        let now = self.now().as_second();
        let is_open = |kept: Kept| kept.session_until.is_some_and(|until| until > now);
        is_session(row) && self.opened(row).is_some_and(is_open)
    }

    /// The token of a user who has come with one, or signed in on the page; another than the one that was refused.
    pub(super) async fn subject(&self, who: &Who, refused: Option<&str>) -> Result<Subject, NoToken> {
        let came = self.shared.exchanged.came(who, self.now().as_second());
        if let Some(token) = came.filter(|token| Some(&**token) != refused) {
            return Ok(Subject { token, row: None });
        }
        let later = |cause: StoreError| NoToken::Later(cause.to_string());
        let mut rows = self.shared.store.connections(&who.tenant, &who.user).await.map_err(later)?;
        rows.retain(is_session);
        rows.sort_by_key(|row| Reverse(row.created_at));
        let mut fault = NoToken::Ask;
        for row in rows {
            if !self.is_open_session(&row) {
                self.end(&row).await.map_err(later)?;
                continue;
            }
            match self.token_of_session(who, &row, refused).await {
                Ok(token) if Some(&*token) != refused => {
                    return Ok(Subject { token, row: Some(row.server) });
                }
                Ok(_) | Err(NoToken::Ask) => {}
                Err(away) => fault = away,
            }
        }
        Err(fault)
    }

    async fn token_of_session(
        &self,
        who: &Who,
        row: &StoredConnection,
        refused: Option<&str>,
    ) -> Result<String, NoToken> {
        let kept = self.opened(row).ok_or(NoToken::Ask)?;
        let web = kept.web().map_err(NoToken::Later)?;
        let holder = Holder { server: &row.server, resource: "", sends_resource: false, web: &web };
        self.token(who, holder, refused).await.map(|(token, _)| token)
    }

    /// Whether what a token was exchanged for is still there.
    pub(super) async fn is_kept(&self, who: &Who, row: Option<&str>) -> Result<bool, NoToken> {
        let Some(row) = row else { return Ok(true) };
        let found = self.shared.store.connection(&who.tenant, &who.user, row).await;
        let found = found.map_err(|cause| NoToken::Later(cause.to_string()))?;
        Ok(found.is_some_and(|row| self.is_open_session(&row)))
    }
}
