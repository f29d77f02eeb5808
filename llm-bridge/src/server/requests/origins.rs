//! The web pages of other origins that may use this server, and the headers that let them: <https://fetch.spec.whatwg.org/#http-cors-protocol>.

use std::{str::FromStr, time::Duration};

use axum::http::{HeaderName, header};
use reqwest::Url;
use serde::{Deserialize, Deserializer, de::Error};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

/// How long a browser may remember the answer to a preflight request.
const PREFLIGHT_KEPT: Duration = Duration::from_secs(600);
/// Headers of answers that a script may read, besides those that it always may.
const EXPOSED: [HeaderName; 4] = [
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("x-request-id"),
];

/// An origin whose pages may use the server: `http://localhost:3000`, `app://obsidian.md`, `null`, or all hosts of a scheme that only
/// applications have, such as `vscode-webview://*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedOrigin(Pattern);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// As browsers send it.
    Exact(String),
    /// All hosts of this scheme.
    Scheme(String),
}

impl AllowedOrigin {
    /// Whether this is the origin of a request.
    pub(in crate::server) fn matches(&self, origin: &str) -> bool {
        match &self.0 {
            Pattern::Exact(exact) => origin.eq_ignore_ascii_case(exact),
            Pattern::Scheme(scheme) => {
                origin.split_once("://").is_some_and(|(of, _)| of.eq_ignore_ascii_case(scheme))
            }
        }
    }
}

impl FromStr for AllowedOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "null" {
            return Ok(Self(Pattern::Exact(text.to_owned())));
        }
        let fault = |why: &str| {
            format!(
                "`{text}` is not an origin: {why}; write a scheme and a host, such as \"http://localhost:3000\", \
                 \"app://obsidian.md\" or \"vscode-webview://*\", or \"null\""
            )
        };
        let url = Url::parse(text).map_err(|error| fault(&error.to_string()))?;
        let is_of_the_web = matches!(url.scheme(), "http" | "https");
        let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        if !is_bare || !url.username().is_empty() || url.password().is_some() || !text.contains("://") {
            return Err(fault("it has more than a scheme, a host and a port"));
        }
        match url.host_str() {
            Some("*") if is_of_the_web => Err(fault("every page of the web would be let in")),
            Some("*") if url.port().is_none() => Ok(Self(Pattern::Scheme(url.scheme().to_owned()))),
            Some(host) if host.contains('*') => Err(fault("`*` stands for a whole host only")),
            // A browser leaves out the port that the scheme has anyway, and writes other alphabets in Punycode.
            Some(_) if is_of_the_web => Ok(Self(Pattern::Exact(url.origin().ascii_serialization()))),
            Some(host) => {
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                Ok(Self(Pattern::Exact(format!("{}://{host}{port}", url.scheme()))))
            }
            None if url.scheme() == "file" => Ok(Self(Pattern::Exact("file://".to_owned()))),
            None => Err(fault("it has no host")),
        }
    }
}

impl<'de> Deserialize<'de> for AllowedOrigin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Answers preflight requests, and lets pages of these origins read what they ask for. Others must not come here. `None` without any origin.
pub(in crate::server) fn cors(origins: &[AllowedOrigin]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let origins = origins.to_vec();
    let is_allowed = AllowOrigin::predicate(move |origin, _| {
        origin.to_str().is_ok_and(|origin| origins.iter().any(|allowed| allowed.matches(origin)))
    });
    // The methods and headers that a page asks for: what a route does not take is refused when it is sent. The key is in a header, never
    // in a cookie, so credentials are not allowed.
    let cors = CorsLayer::new()
        .allow_origin(is_allowed)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(EXPOSED)
        .max_age(PREFLIGHT_KEPT);
    Some(cors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> AllowedOrigin {
        text.parse().unwrap()
    }

    #[test]
    fn n11_an_origin_is_exact_or_all_hosts_of_a_scheme() {
        for (allowed, same, others) in [
            (
                "http://localhost:3000",
                "http://localhost:3000",
                ["http://localhost", "https://localhost:3000"],
            ),
            (
                "HTTPS://Chat.Example:443/",
                "https://chat.example",
                ["https://a.chat.example", "http://chat.example"],
            ),
            ("https://bücher.example", "https://xn--bcher-kva.example", ["https://bücher.example", "null"]),
            ("app://obsidian.md", "app://obsidian.md", ["app://obsidian.md.example", "app://obsidian"]),
            (
                "chrome-extension://abc",
                "chrome-extension://abc",
                ["chrome-extension://abd", "chrome-extension://"],
            ),
            ("vscode-webview://*", "vscode-webview://1a2b", ["vscode-webview:1a2b", "vscode://1a2b"]),
            ("tauri://localhost", "tauri://localhost", ["http://tauri.localhost", "tauri://localhost:1"]),
            ("file://", "file://", ["null", "file://a"]),
            ("null", "null", ["", "http://null"]),
        ] {
            assert!(origin(allowed).matches(same), "{allowed} and {same}");
            for other in others {
                assert!(!origin(allowed).matches(other), "{allowed} and {other}");
            }
        }
    }

    #[test]
    fn n11_what_is_no_origin_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "such as"),
            ("*", "such as"),
            ("localhost:3000", "more than"),
            ("rack.lan", "such as"),
            ("http://a/chat", "more than"),
            ("http://a?b", "more than"),
            ("http://a#b", "more than"),
            ("http://u:p@a", "more than"),
            ("http://*", "every page"),
            ("https://*", "every page"),
            ("https://*.example", "a whole host"),
            ("vscode-webview://a*", "a whole host"),
            ("vscode-webview://*:1", "a whole host"),
            ("app://", "no host"),
            ("http://", "such as"),
        ] {
            let fault = text.parse::<AllowedOrigin>().unwrap_err();
            assert!(fault.contains(why) && fault.contains("vscode-webview://*"), "{text}: {fault}");
        }
    }
}
