//! Headers that an MCP server over HTTP asks for beside the key, such as the one a service knows its customers by.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use reqwest::header::{HeaderName, HeaderValue};

/// Headers of every request. In a file `headers = { "X-Team" = "tools" }`, and `headers_env = { "X-Api-Key" = "TRACKER_KEY" }` for
/// those that are secret, with the variable that has each.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// As they are sent.
    pub given: BTreeMap<String, String>,
    /// By the variables of the environment that have their values.
    pub env: BTreeMap<String, String>,
}

/// What may be a secret is not shown.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.given.keys().chain(self.env.keys())).finish()
    }
}

/// What the connection and the protocol say themselves.
const TAKEN: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

impl Headers {
    /// Whether these can be meant. The environment is not asked.
    pub(super) fn check(&self) -> Result<(), String> {
        for (name, value) in &self.given {
            header(name, value, &format!("`headers`: the value of {name}"))?;
        }
        for (name, variable) in &self.env {
            header(name, "", "")?;
            if self.given.keys().any(|given| given.eq_ignore_ascii_case(name)) {
                return Err(format!("{name} is in `headers` and in `headers_env`; leave one of them out"));
            }
            if variable.is_empty() {
                return Err(format!("`headers_env`: {name} has no name of a variable"));
            }
        }
        Ok(())
    }

    /// All of them with their values.
    pub(super) fn find(&self) -> Result<HashMap<HeaderName, HeaderValue>, String> {
        let mut all = HashMap::new();
        for (name, value) in &self.given {
            all.extend([header(name, value, &format!("`headers`: the value of {name}"))?]);
        }
        for (name, variable) in &self.env {
            let value = std::env::var(variable).unwrap_or_default();
            if value.is_empty() {
                return Err(format!("`headers_env`: {variable} is not set; put the value of {name} in it"));
            }
            let (name, mut value) = header(name, &value, &format!("`headers_env`: {variable}"))?;
            value.set_sensitive(true);
            all.insert(name, value);
        }
        Ok(all)
    }
}

fn header(name: &str, value: &str, place: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed = HeaderName::try_from(name)
        .map_err(|_| format!("`headers`: {name:?} is not the name of a header, such as X-Api-Key"))?;
    if parsed == "authorization" {
        return Err(
            "`headers`: name the variable with the token in `key_env`; it is sent as `Authorization: Bearer`"
                .to_owned(),
        );
    }
    if TAKEN.contains(&parsed.as_str()) || parsed.as_str().starts_with("mcp-") {
        return Err(format!("`headers`: {name} is the protocol's own; leave it out"));
    }
    let value = HeaderValue::try_from(value)
        .map_err(|_| format!("{place} has a character that no header has, such as the end of a line"))?;
    Ok((parsed, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(given: &[(&str, &str)], env: &[(&str, &str)]) -> Headers {
        let all = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        Headers { given: all(given), env: all(env) }
    }

    #[test]
    fn b3_headers_are_checked_and_secrets_are_not_shown() {
        // The test runner sets this one.
        let good = headers(&[("X-Team", "tr_hidden")], &[("X-Dir", "CARGO_MANIFEST_DIR")]);
        good.check().unwrap();
        let found = good.find().unwrap();
        let value = |name| &found[&HeaderName::from_static(name)];
        assert!(value("x-dir").is_sensitive() && *value("x-team") == "tr_hidden");
        assert!(!format!("{good:?}").contains("hidden"));
        for (wrong, why) in [
            (headers(&[("X Team", "a")], &[]), "not the name of a header"),
            (headers(&[("X-Team", "hidden\n")], &[]), "the end of a line"),
            (headers(&[("Authorization", "Bearer hidden")], &[]), "`key_env`"),
            (headers(&[("Mcp-Session-Id", "a")], &[]), "the protocol's own"),
            (headers(&[("Host", "a")], &[]), "the protocol's own"),
            (headers(&[("X-A", "a")], &[("x-a", "B")]), "leave one of them out"),
            (headers(&[], &[("X-A", "")]), "no name of a variable"),
        ] {
            let fault = wrong.check().unwrap_err();
            assert!(fault.contains(why) && !fault.contains("hidden"), "{wrong:?}: {fault}");
        }
        let unset = headers(&[], &[("X-A", "TOOLRACK_NO_SUCH")]);
        unset.check().unwrap();
        assert!(unset.find().unwrap_err().contains("TOOLRACK_NO_SUCH"));
    }
}
