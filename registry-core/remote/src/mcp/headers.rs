//! Headers that an MCP server over HTTP asks for beside the key, such as the one a service knows its customers by.

use std::collections::HashMap;

use registry_core::secret_variable;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::McpServerSettings;

/// What the connection and the protocol say themselves.
const TAKEN: &str = "accept connection content-length content-type host last-event-id transfer-encoding";

/// Whether these can be meant. The environment is not asked.
pub(super) fn check(settings: &McpServerSettings) -> Result<(), String> {
    given(settings)?;
    for (name, variable) in &settings.headers_env {
        let (parsed, _) = header(name, "", "")?;
        let has_key = settings.key_env.is_some() || settings.key.is_some() || settings.auth.is_some();
        if parsed == AUTHORIZATION && has_key {
            return Err(format!(
                "{name} in `headers_env`, `key_env` and `auth` are ways to be let in; leave all but one out"
            ));
        }
        if settings.headers.keys().any(|given| given.eq_ignore_ascii_case(name)) {
            return Err(format!("{name} is in `headers` and in `headers_env`; leave one of them out"));
        }
        if variable.is_empty() {
            return Err(format!("`headers_env`: {name} has no name of a variable"));
        }
    }
    Ok(())
}

/// All of them with their values.
pub(super) fn find(settings: &McpServerSettings) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut all = given(settings)?;
    for (name, variable) in &settings.headers_env {
        let missing = || format!("`headers_env`: {variable} is not set; put the value of {name} in it");
        let value = secret_variable(variable).map_err(|fault| format!("`headers_env`: {fault}"))?;
        let value = value.ok_or_else(missing)?;
        let (name, mut value) = header(name, &value, &format!("`headers_env`: {variable}"))?;
        value.set_sensitive(true);
        all.insert(name, value);
    }
    Ok(all)
}

/// Those whose values stand in the settings.
fn given(settings: &McpServerSettings) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let headers = settings.headers.iter();
    let headers = headers.map(|(name, value)| {
        if name.eq_ignore_ascii_case(AUTHORIZATION.as_str()) {
            let secret = "`headers`: name the variable with the token in `key_env`; it is sent as `Authorization: Bearer`. One with another \
                          scheme goes whole into a variable that `headers_env` names";
            return Err(secret.to_owned());
        }
        header(name, value, &format!("`headers`: the value of {name}"))
    });
    headers.collect()
}

fn header(name: &str, value: &str, place: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed = HeaderName::try_from(name)
        .map_err(|_| format!("`headers`: {name:?} is not the name of a header, such as X-Api-Key"))?;
    if TAKEN.split(' ').any(|taken| taken == parsed.as_str()) || parsed.as_str().starts_with("mcp-") {
        return Err(format!("`headers`: {name} is the protocol's own; leave it out"));
    }
    let value = HeaderValue::try_from(value)
        .map_err(|_| format!("{place} has a character that no header has, such as the end of a line"))?;
    Ok((parsed, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(given: &[(&str, &str)], env: &[(&str, &str)]) -> McpServerSettings {
        let all = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        McpServerSettings { headers: all(given), headers_env: all(env), ..McpServerSettings::url("http://a") }
    }

    #[test]
    fn b3_headers_are_checked_and_secrets_are_not_shown() {
        // The test runner sets this one.
        let good = headers(&[("X-Team", "tr_hidden")], &[("X-Dir", "CARGO_MANIFEST_DIR")]);
        check(&good).unwrap();
        let found = find(&good).unwrap();
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
            let fault = check(&wrong).unwrap_err();
            assert!(fault.contains(why) && !fault.contains("hidden"), "{wrong:?}: {fault}");
        }
        let basic = headers(&[], &[("Authorization", "CARGO_MANIFEST_DIR")]);
        check(&basic).unwrap();
        assert!(find(&basic).unwrap()[&AUTHORIZATION].is_sensitive());
        let two = McpServerSettings { key_env: Some("K".to_owned()), ..basic };
        assert!(check(&two).unwrap_err().contains("leave all but one out"));
        let unset = headers(&[], &[("X-A", "TOOLRACK_NO_SUCH")]);
        check(&unset).unwrap();
        assert!(find(&unset).unwrap_err().contains("TOOLRACK_NO_SUCH"));
    }
}
