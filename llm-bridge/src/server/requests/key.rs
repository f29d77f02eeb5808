//! Where a request has its key: each API that clients speak has a place of its own for it.

use axum::{
    extract::Request,
    http::{HeaderMap, Uri, header},
};
use form_urlencoded::parse;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

/// A place of a key.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) enum Place {
    /// `Authorization: Bearer KEY`, as clients of OpenAI and MCP send it.
    Bearer,
    /// A header with nothing but the key.
    Header(&'static str),
    /// A query parameter.
    Parameter(&'static str),
}

/// The query parameter of Gemini's API.
const PARAMETER: &str = "key";
/// The paths of Gemini's API, where the parameter is read: elsewhere it may mean something else.
const PATHS_WITH_PARAMETER: [&str; 3] = ["/v1beta", "/v1alpha", "/v1/models"];

/// All places of keys. The first that has one counts, valid or not.
pub(in crate::server) const PLACES: [Place; 5] = [
    Place::Bearer,
    // Anthropic, Azure, Gemini.
    Place::Header("x-api-key"),
    Place::Header("api-key"),
    Place::Header("x-goog-api-key"),
    Place::Parameter(PARAMETER),
];

/// What the document says of all places but the query parameter.
const ABOUT: &str = "A user's key, which begins with `trk_`, or the `api_key` of the configuration. On loopback none \
    is needed unless `api_key` is configured.";
const ABOUT_PARAMETER: &str = "The same in the query, which is read below `/v1beta`, `/v1alpha` and `/v1/models` only. Prefer a header: \
    proxies write queries to their logs.";

impl Place {
    /// The name of the security scheme in the OpenAPI document.
    pub(in crate::server) fn scheme_name(self) -> &'static str {
        match self {
            Self::Bearer => "key",
            Self::Header(name) => name,
            Self::Parameter(_) => "key-parameter",
        }
    }

    /// The security scheme: <https://spec.openapis.org/oas/v3.1.1.html#security-scheme-object>.
    pub(in crate::server) fn scheme(self) -> Value {
        match self {
            Self::Bearer => json!({"type": "http", "scheme": "bearer", "description": ABOUT}),
            Self::Header(name) => {
                json!({"type": "apiKey", "in": "header", "name": name, "description": ABOUT})
            }
            Self::Parameter(name) => {
                json!({"type": "apiKey", "in": "query", "name": name, "description": ABOUT_PARAMETER})
            }
        }
    }

    /// Whether a key is read here on this path.
    pub(in crate::server) fn is_read_at(self, path: &str) -> bool {
        match self {
            Self::Bearer | Self::Header(_) => true,
            Self::Parameter(_) => PATHS_WITH_PARAMETER.iter().any(|below| {
                path.strip_prefix(below).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }),
        }
    }

    fn find(self, headers: &HeaderMap, parameter: Option<&str>) -> Option<String> {
        let key = match self {
            Self::Bearer => {
                let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
                Some(key).filter(|_| scheme.eq_ignore_ascii_case("Bearer"))
            }
            Self::Header(name) => headers.get(name)?.to_str().ok(),
            Self::Parameter(_) => parameter,
        };
        key.map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned)
    }
}

/// The key of a request, which no log shows.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("SentKey({})", if key.is_some() || session.is_some() { "secret" } else { "none" })]
pub(in crate::server) struct SentKey {
    key: Option<String>,
    /// The session of a browser that sends no key.
    session: Option<String>,
}

impl SentKey {
    /// Reads the key. One in the query is taken out of it, so that nothing that repeats the address repeats the key.
    pub(in crate::server) fn take(request: &mut Request) -> Self {
        let parameter = take_parameter(request.uri_mut());
        let headers = request.headers();
        let key = PLACES.into_iter().find_map(|place| place.find(headers, parameter.as_deref()));
        Self { key, session: None }
    }

    /// With the session of a browser, which counts where there is no key.
    pub(in crate::server) fn or_session(self, session: impl FnOnce() -> Option<String>) -> Self {
        let session = if self.key.is_none() { session() } else { None };
        Self { session, ..self }
    }

    pub(in crate::server) fn as_str(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Whether it is this one, where one is configured: in constant time for keys of equal length.
    pub(in crate::server) fn is(&self, configured: Option<&str>) -> bool {
        let (Some(wanted), Some(given)) = (configured, self.as_str()) else { return false };
        given.as_bytes().ct_eq(wanted.as_bytes()).into()
    }

    /// The secret of the browser's session.
    pub(in crate::server) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

/// Takes the parameter out of an address that has one; its first value.
fn take_parameter(uri: &mut Uri) -> Option<String> {
    let query = uri.query().filter(|_| Place::Parameter(PARAMETER).is_read_at(uri.path()))?;
    let is_key = |pair: &&str| parse(pair.as_bytes()).next().is_some_and(|(name, _)| name == PARAMETER);
    let (keys, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(is_key);
    let (_, value) = parse(keys.first()?.as_bytes()).next()?;
    let value = value.into_owned();
    let path = uri.path();
    let target = if others.is_empty() { path.to_owned() } else { format!("{path}?{}", others.join("&")) };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = target.parse().ok();
    // A shorter query makes no address invalid. If it did, losing the address is better than keeping the key in it.
    *uri = Uri::from_parts(parts).unwrap_or_default();
    Some(value)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn sent(uri: &str, headers: &[(&str, &str)]) -> (Option<String>, String) {
        let request = headers
            .iter()
            .fold(Request::builder().uri(uri), |request, (name, value)| request.header(*name, *value));
        let mut request = request.body(Body::empty()).unwrap();
        let key = SentKey::take(&mut request);
        (key.key, request.uri().to_string())
    }

    #[test]
    fn n16_a_key_in_the_query_is_taken_out_of_it() {
        for (uri, key, left) in [
            ("/v1beta/models/m:generateContent?key=k", Some("k"), "/v1beta/models/m:generateContent"),
            ("/v1beta/models?alt=sse&key=a%2Bb&x=1", Some("a+b"), "/v1beta/models?alt=sse&x=1"),
            ("/v1alpha/models?key=k", Some("k"), "/v1alpha/models"),
            ("/v1/models/?%6Bey=k&key=l", Some("k"), "/v1/models/"),
            ("http://a:80/v1/models?key=k&alt=sse", Some("k"), "http://a/v1/models?alt=sse"),
            ("/v1/models?key=", None, "/v1/models"),
            ("/v1/models?keys=k&", None, "/v1/models?keys=k&"),
            ("/v1/modelsx?key=k", None, "/v1/modelsx?key=k"),
            ("/v1/chat/completions?key=k", None, "/v1/chat/completions?key=k"),
        ] {
            let left = left.replace("http://a/", "http://a:80/");
            assert_eq!(sent(uri, &[]), (key.map(str::to_owned), left), "{uri}");
        }
    }

    #[test]
    fn n16_the_first_place_with_a_key_counts() {
        let all =
            [("authorization", "bearer a"), ("x-api-key", "b"), ("api-key", "c"), ("x-goog-api-key", "d")];
        for (at, (_, value)) in all.iter().enumerate() {
            let found = sent("/v1/models?key=e", &all[at..]).0;
            assert_eq!(found.as_deref(), value.strip_prefix("bearer ").or(Some(*value)));
        }
        // What is no key does not hide one.
        let basic = [("authorization", "Basic a"), ("x-api-key", " "), ("api-key", "c")];
        assert_eq!(sent("/", &basic).0.as_deref(), Some("c"));
        assert_eq!(format!("{:?}", SentKey { key: Some("c".into()), session: None }), "SentKey(secret)");
    }
}
