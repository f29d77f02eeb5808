//! Parses addresses and paths from flags, variables and the file.

use std::{
    net::{Ipv4Addr, SocketAddr, ToSocketAddrs},
    path::PathBuf,
};

use clap::builder::{OsStringValueParser, TypedValueParser};
use serde::{Deserialize, Deserializer, de::Error};

use crate::upstream::DEMO;

/// A path that may be empty.
pub(super) fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// An address to listen on, which may have a name such as `localhost`.
pub(super) fn parse(text: &str) -> Result<SocketAddr, String> {
    let fault = |why: String| {
        format!("cannot listen on `{text}`: {why}; write an address and a port, such as 127.0.0.1:7331")
    };
    // Many programs accept `:7331` for this machine.
    let whole =
        if text.starts_with(':') { format!("{}{text}", Ipv4Addr::LOCALHOST) } else { text.to_owned() };
    let found: Vec<SocketAddr> = whole.to_socket_addrs().map_err(|error| fault(error.to_string()))?.collect();
    // Prefer 127.0.0.1 for `localhost`.
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| fault("it has no address".to_owned()))
}

/// The same for the configuration file.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Checks the URL of an upstream.
pub(super) fn check_upstream(text: &str) -> Result<(), String> {
    const SUCH: &str = "write one such as http://127.0.0.1:8080/v1, or `demo`";
    if text == DEMO {
        return Ok(());
    }
    // A password in it stays out of the message.
    let url =
        reqwest::Url::parse(text).map_err(|error| format!("this is not an address ({error}); {SUCH}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the address has a password in it; give the key as TOOLRACK_UPSTREAM_API_KEY".to_owned());
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{text}` is not an HTTP address; {SUCH}"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("`{text}` has a `?` or a `#` in it, which no base address has; {SUCH}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_listen_on_may_have_a_name() {
        assert_eq!(parse("localhost:7331"), Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 7331))));
        assert_eq!(parse("[::1]:80").map(|address| address.port()), Ok(80));
        assert_eq!(parse(":24002"), Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 24002))), "u14");
        for bad in ["localhost", "7331", ":x", "127.0.0.1:99999"] {
            assert!(parse(bad).unwrap_err().contains("such as 127.0.0.1:7331"), "{bad}");
        }
    }
}
