//! The cookie of a browser in which somebody is signed in.
//!
//! A browser sends it with whatever a page asks for, also the page of somebody else. So it counts only where this server's own page asks.

use axum::http::{HeaderMap, HeaderValue, Method, header};
use registry_core::{
    Permission,
    store::{SESSION_PREFIX, Session, hash_key},
};

/// The longest cookie that is read, in bytes.
const MAX_COOKIE: usize = 4096;

/// What a cookie is for.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) enum Cookie {
    /// The session.
    Session,
    /// A sign-in that has begun.
    Begun,
    /// A connection to an account elsewhere that has begun.
    Connecting,
}

impl Cookie {
    /// Its name. With the prefix a browser takes it over https only, and from no other host.
    fn name(self, is_https: bool) -> &'static str {
        match (self, is_https) {
            (Self::Session, true) => "__Host-toolrack-session",
            (Self::Session, false) => "toolrack-session",
            (Self::Begun, true) => "__Host-toolrack-sign-in",
            (Self::Begun, false) => "toolrack-sign-in",
            (Self::Connecting, true) => "__Host-toolrack-connect",
            (Self::Connecting, false) => "toolrack-connect",
        }
    }

    /// The value that a request has.
    pub(in crate::server) fn read(self, headers: &HeaderMap, is_https: bool) -> Option<String> {
        let wanted = self.name(is_https);
        let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == wanted)?;
        (value.len() <= MAX_COOKIE).then(|| value.to_owned())
    }

    /// The header that sets it for so many seconds; 0 removes it.
    pub(in crate::server) fn set(self, value: &str, seconds: i64, is_https: bool) -> Option<HeaderValue> {
        let (name, secure) = (self.name(is_https), if is_https { "; Secure" } else { "" });
        let cookie = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::try_from(cookie).ok()
    }
}

/// A session that gives no more than a level, whatever the user's becomes. The level stands in the secret, of which the store has the hash, so that
/// nobody can change it.
pub(in crate::server) fn at_most(level: Permission, session: Session, secret: &str) -> (Session, String) {
    let secret = format!("{secret}-{level}");
    (Session { sha256: hash_key(&secret), ..session }, secret)
}

/// The level that a session gives at most, where its secret has one.
pub(in crate::server) fn level_of(secret: &str) -> Option<Permission> {
    secret.rsplit_once('-')?.1.parse().ok()
}

/// The secret of the session of a request that this server's own page makes.
pub(in crate::server) fn sent(method: &Method, headers: &HeaderMap, is_https: bool) -> Option<String> {
    let secret = Cookie::Session.read(headers, is_https).filter(|value| value.starts_with(SESSION_PREFIX))?;
    is_own(method, headers).then_some(secret)
}

/// Whether no other page can have made a request. Browsers say so in `Sec-Fetch-Site`, but over plain HTTP on this machine only; otherwise
/// in `Origin` wherever something could be changed.
fn is_own(method: &Method, headers: &HeaderMap) -> bool {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin" || (site == "none" && reads);
    }
    match headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default()) {
        Some(origin) => {
            let page = origin.split_once("://").map(|(_, host)| host);
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            page.is_some() && page == host
        }
        None => reads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(method: Method, headers: &[(&'static str, &str)]) -> Option<String> {
        let headers = headers.iter().map(|(name, value)| {
            (header::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        sent(&method, &headers.collect(), false)
    }

    #[test]
    fn b21_the_cookie_counts_for_this_servers_own_page_alone() {
        let cookie = ("cookie", "a=b; toolrack-session=trs_1; c=d");
        let host = ("host", "tools.example");
        let (own, foreign) = (("origin", "https://tools.example"), ("origin", "https://evil.example"));
        let site = |site: &'static str| ("sec-fetch-site", site);
        let some = Some("trs_1".to_owned());
        for method in [Method::GET, Method::POST] {
            assert_eq!(session(method.clone(), &[cookie, host, site("same-origin")]), some);
            assert_eq!(session(method.clone(), &[cookie, host, own]), some);
            for other in [
                site("cross-site"),
                site("same-site"),
                foreign,
                ("origin", "null"),
                ("origin", "tools.example"),
            ] {
                assert_eq!(session(method.clone(), &[cookie, host, other]), None, "{method} {other:?}");
            }
            // A browser that says both is believed in what is worse.
            assert_eq!(session(method, &[cookie, host, own, site("cross-site")]), None);
        }
        assert_eq!(session(Method::GET, &[cookie, host]), some);
        assert_eq!(session(Method::GET, &[cookie, host, site("none")]), some);
        assert_eq!(session(Method::POST, &[cookie, host]), None);
        assert_eq!(session(Method::DELETE, &[cookie, host, site("none")]), None);
        // Over https a cookie that another host could have set is none.
        let headers =
            HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("toolrack-session=trs_1"))]);
        assert_eq!(sent(&Method::GET, &headers, true), None);
        // What is no session is none.
        for value in
            ["toolrack-session=trk_1", "toolrack-session=", "xtoolrack-session=trs_1", "toolrack-session"]
        {
            assert_eq!(session(Method::GET, &[("cookie", value), host]), None, "{value}");
        }
        let long = format!("toolrack-session=trs_{}", "1".repeat(MAX_COOKIE));
        assert_eq!(session(Method::GET, &[("cookie", &long), host]), None);
    }

    #[test]
    fn b21_no_script_reads_the_cookie_and_no_plain_connection_carries_it() {
        let secure = Cookie::Session.set("trs_1", 60, true).unwrap();
        assert_eq!(
            secure,
            "__Host-toolrack-session=trs_1; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"
        );
        let plain = Cookie::Begun.set("x", 0, false).unwrap();
        assert_eq!(plain, "toolrack-sign-in=x; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    }
}
