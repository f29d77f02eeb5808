//! The address at which clients reach this server.

use std::{fmt, str::FromStr};

use axum::http::{HeaderMap, header};
use reqwest::Url;
use serde::{Deserialize, Deserializer, de::Error};

/// The address at which clients reach this server, where a proxy stands before it: `https://tools.example`, or with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// The name of the host, without a port.
    #[cfg(feature = "cli")]
    pub(crate) fn host(&self) -> Option<String> {
        Url::parse(&self.0).ok()?.host_str().map(str::to_owned)
    }

    /// The configured address; otherwise that of a request, by HTTP, which is all that this server speaks itself. What a header says of a
    /// proxy is not asked: every client can send it.
    pub(in crate::server) fn of(configured: Option<&Self>, headers: &HeaderMap) -> Option<Self> {
        configured.cloned().or_else(|| {
            let host = headers.get(header::HOST)?.to_str().ok()?;
            Some(Self(format!("http://{host}")))
        })
    }
}

/// Without a slash at its end.
impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PublicUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || {
            format!("`{text}` is not the address of a server; write one such as \"https://tools.example\"")
        };
        let url = Url::parse(text).map_err(|_| fault())?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || !is_plain {
            return Err(fault());
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}

impl<'de> Deserialize<'de> for PublicUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n13_the_address_is_the_configured_one_or_that_of_the_request() {
        let mut headers = HeaderMap::new();
        assert_eq!(PublicUrl::of(None, &headers), None);
        headers.insert(header::HOST, "rack.lan:7331".parse().unwrap());
        headers.insert("x-forwarded-proto", "https".parse().unwrap());
        assert_eq!(PublicUrl::of(None, &headers).unwrap().to_string(), "http://rack.lan:7331");
        for (text, url) in
            [("https://tools.example/", "https://tools.example"), ("http://a:1/b/", "http://a:1/b")]
        {
            let configured = text.parse().unwrap();
            assert_eq!(PublicUrl::of(Some(&configured), &headers).unwrap().to_string(), url);
        }
        for text in ["", "tools.example", "ftp://a", "https://u@a", "https://a?b", "https://a#b", "https://"]
        {
            assert!(text.parse::<PublicUrl>().is_err(), "{text}");
        }
    }
}
