//! Authentication: the key, and the checks that keep other web pages out.
//!
//! A browser lets any page send requests to a server on this machine. Two headers cannot be forged by a page: `Origin` names the page, and
//! `Host` reveals a page that has bound its own name to this machine's address (DNS rebinding).

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, LazyLock},
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};

use super::{
    identity::{Identities, IdentityError},
    protected_resource, session,
};
use crate::{
    logged::Logged,
    server::{
        ServerSettings, page,
        requests::{
            api_error::{ApiError, CHALLENGE},
            key::SentKey,
            origins::AllowedOrigin,
        },
        transport::handover::Requests,
    },
    sign_in::TokenError,
};

/// The origins that have been logged as refused.
static REFUSED: LazyLock<Logged> = LazyLock::new(Logged::default);

/// How requests authenticate.
#[derive(Clone, Default, derive_more::Debug)]
pub struct Access {
    /// The configured user's key.
    #[debug(skip)]
    pub api_key: Option<String>,
    /// A key that opens `/metrics` and nothing else.
    #[debug(skip)]
    pub metrics_key: Option<String>,
    /// Whether every request needs a key, as it does if `api_key` is set. Otherwise a request without one is the configured user's,
    /// which is for loopback only.
    pub key_required: bool,
    /// Names of this server besides `localhost` and IP addresses; a port is ignored. Requests with a valid key may use any name.
    pub allowed_hosts: Vec<String>,
    /// Origins besides this server's own whose pages may use it. Without a key they act as the configured user.
    pub allowed_origins: Vec<AllowedOrigin>,
}

impl Access {
    /// Checks that this is safe on an address; `has_keys` is whether any user has a key.
    ///
    /// # Errors
    /// When the tools would be open to the network, or nobody could use them.
    pub fn check_address(&self, address: SocketAddr, has_keys: bool) -> Result<(), String> {
        if address.ip().is_loopback() {
            return Ok(());
        }
        if self.api_key.is_some() || self.key_required && has_keys {
            return Ok(());
        }
        Err(format!(
            "refusing to serve on {address} without a key: anybody who reaches it could run the tools. \
             Set TOOLRACK_API_KEY, make a key with `toolrack key create USER`, or listen on 127.0.0.1"
        ))
    }

    /// Whether a request without a key is refused.
    pub(in crate::server) fn requires_key(&self) -> bool {
        self.key_required || self.api_key.is_some()
    }

    fn knows_host(&self, host: &str) -> bool {
        address_of(name_of(host)).is_some() || self.is_own_host(host)
    }

    /// Whether a request to this host can only have been meant for this server: this machine itself, or a name from the configuration.
    /// Any other is whatever a client likes to send.
    pub(in crate::server) fn is_own_host(&self, host: &str) -> bool {
        let name = name_of(host);
        name.eq_ignore_ascii_case("localhost")
            || address_of(name).is_some_and(|address| address.is_loopback())
            || self.allowed_hosts.iter().any(|allowed| name_of(allowed).eq_ignore_ascii_case(name))
    }
}

fn address_of(name: &str) -> Option<IpAddr> {
    name.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// The host without its port, and without the dot that ends a complete name.
fn name_of(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name)
}

/// The name by which a request calls this server. Without the header (HTTP/1.0) there is no name that could have been rebound.
pub(in crate::server) fn host_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST).map(|value| value.to_str().unwrap_or_default())
}

/// Refuses requests of pages that are neither this server's own nor of an allowed origin, and those that name two hosts, of which a proxy
/// before this server may have looked at the other one (RFC 9112, section 3.2).
pub(in crate::server) async fn check_origin(
    State(settings): State<Arc<ServerSettings>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let headers = request.headers();
    if headers.get_all(header::HOST).iter().nth(1).is_some() {
        let message = "the request has more than one `Host` header";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_request_error", message));
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let sender = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let is_own = sender.is_some() && sender == host_of(headers);
        // The frame that draws diagrams has no origin, and reads only what everybody may.
        let is_frame = origin == "null" && page::is_file(request.method(), request.uri().path());
        if !is_own
            && !is_frame
            && !settings.access.allowed_origins.iter().any(|allowed| allowed.matches(origin))
        {
            // The browser shows the user neither status nor text.
            if let Some(origin) = REFUSED.first(origin) {
                tracing::warn!(origin, "a page was refused; see `allowed_origins`");
            }
            let message = format!(
                "pages of `{origin}` may not use this server; see `allowed_origins` in the configuration"
            );
            return Err(ApiError::new(StatusCode::FORBIDDEN, "origin_not_allowed", message));
        }
    }
    Ok(next.run(request).await)
}

/// Reads the key, and refuses requests without a valid one that call this server by another name: a page that has rebound its name has
/// no key.
pub(in crate::server) async fn check_host(
    State(identities): State<Arc<Identities>>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let mut key = SentKey::take(&mut request);
    if let Some(sign_in) = identities.sign_in() {
        key = key.or_session(|| session::sent(request.method(), request.headers(), sign_in.is_https()));
    }
    let host = host_of(request.headers()).filter(|host| !identities.access().knows_host(host));
    if let Some(host) = host.map(str::to_owned)
        && !identities.accepts(&key).await?
    {
        let message = format!(
            "this server does not go by the name `{host}`: send a valid key, or see `allowed_hosts` in the configuration"
        );
        return Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", message));
    }
    request.extensions_mut().insert(key);
    Ok(next.run(request).await)
}

/// Finds out who sends a request, and refuses one without a valid key where a key is needed.
pub(in crate::server) async fn check_key(
    State(identities): State<Arc<Identities>>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let key = request.extensions().get::<SentKey>().cloned().unwrap_or_default();
    let mut identity = identities.of(&key, request.headers()).await.map_err(|error| {
        let challenge = challenge(&identities, request.uri().path(), &error);
        ApiError::from(error).challenge(challenge)
    })?;
    if let Some(requests) = request.extensions().get::<Arc<Requests>>() {
        identities.shares.enter(&identity, requests)?;
        identity = identity.on(requests);
    }
    request.extensions_mut().insert(identity);
    Ok(next.run(request).await)
}

/// Says where to get a token, and what is wrong with the one that was sent: RFC 6750 and RFC 9728.
fn challenge(identities: &Identities, path: &str, error: &IdentityError) -> Option<HeaderValue> {
    let sign_in = identities.sign_in()?;
    let mut challenge = CHALLENGE.to_owned();
    match error {
        IdentityError::NoKey => {}
        IdentityError::Token(TokenError::Invalid(why)) => {
            // Quotes would end the text.
            challenge += &format!(
                ", error=\"invalid_token\", error_description=\"{}\"",
                why.replace(['"', '\\'], "'")
            );
        }
        IdentityError::Token(TokenError::Scope) => challenge += ", error=\"insufficient_scope\"",
        _ => return None,
    }
    if !sign_in.required_scopes().is_empty() {
        challenge += &format!(", scope=\"{}\"", sign_in.required_scopes().join(" "));
    }
    challenge += &format!(", resource_metadata=\"{}\"", protected_resource::metadata_url(sign_in, path));
    HeaderValue::try_from(challenge).ok()
}

impl From<IdentityError> for ApiError {
    fn from(error: IdentityError) -> Self {
        match error {
            IdentityError::NoKey => {
                let message =
                    "this server requires a valid key: send `Authorization: Bearer KEY` or `x-api-key: KEY`";
                Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", message)
            }
            IdentityError::Token(TokenError::Invalid(why)) => {
                Self::new(StatusCode::UNAUTHORIZED, "invalid_token", why)
            }
            IdentityError::Token(TokenError::Scope) => {
                let message = "the token has not all scopes that this server needs; the header `WWW-Authenticate` names them";
                Self::new(StatusCode::FORBIDDEN, "insufficient_scope", message)
            }
            IdentityError::Token(TokenError::NotAllowed(message)) => {
                Self::new(StatusCode::FORBIDDEN, "sign_in_not_allowed", message)
            }
            IdentityError::Token(TokenError::Provider(cause)) => {
                tracing::debug!(%cause, "token_not_checked");
                let message =
                    "the identity provider does not answer, so the token cannot be checked; try again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "identity_provider_unavailable", message)
                    .retry_after(10)
            }
            IdentityError::Persona(message) => {
                Self::new(StatusCode::FORBIDDEN, "persona_not_allowed", message).param("persona")
            }
            IdentityError::Store(cause) => cause.into(),
            IdentityError::Audit(cause) => {
                tracing::error!(cause, "user_not_added");
                Self::internal("the audit cannot be written, so no user was added; see the server's log")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_ours_is_not_known() {
        let access = Access { allowed_hosts: vec!["rack.lan:7331".into()], ..Access::default() };
        for host in [
            "localhost:7331",
            "localhost.",
            "localhost.:7331",
            "rack.lan",
            "127.0.0.1",
            "[::1]:7331",
            "192.168.1.4:80",
            "Rack.lan:7331",
        ] {
            assert!(access.knows_host(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:7331", "localhost..", "", "."] {
            assert!(!access.knows_host(host), "{host}");
        }
        for host in ["localhost:7331", "rack.lan", "127.0.0.1:7331", "[::1]:7331"] {
            assert!(access.is_own_host(host), "{host}");
        }
        // Whoever is at that address, a client may name it.
        for host in ["192.168.1.4:80", "[2001:db8::1]", "evil.example", ""] {
            assert!(!access.is_own_host(host), "{host}");
        }
    }

    #[test]
    fn an_open_address_needs_a_key() {
        let with_key = Access { api_key: Some("k".into()), ..Access::default() };
        let required = Access { key_required: true, ..Access::default() };
        let open: SocketAddr = "0.0.0.0:7331".parse().unwrap();
        assert!(Access::default().check_address(open, true).is_err());
        assert!(required.check_address(open, false).is_err());
        assert!(Access::default().check_address("127.0.0.1:7331".parse().unwrap(), false).is_ok());
        assert!(with_key.check_address(open, false).is_ok());
        assert!(required.check_address(open, true).is_ok());
    }
}
