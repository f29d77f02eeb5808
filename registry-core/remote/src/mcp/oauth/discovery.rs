//! Finding the authorization server of an MCP server: RFC 9728, then RFC 8414 or OpenID Connect Discovery.

use reqwest::{
    StatusCode, Url,
    header::{ACCEPT, WWW_AUTHENTICATE},
};
use serde::Deserialize;
use serde_json::json;

use super::{
    Account,
    web::{Failed, Web},
};
use crate::text::shown;

/// How many scopes are asked for.
const MAX_SCOPES: usize = 50;

/// What an MCP server says of who gives tokens for it.
#[derive(Deserialize)]
struct Resource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// What an authorization server says of itself.
#[derive(Debug, Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: String,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

/// An authorization server, with addresses that were checked.
#[derive(Debug, Clone)]
pub(super) struct Issuer {
    /// What it calls itself.
    pub(super) name: String,
    pub(super) authorization: Option<Url>,
    pub(super) token: Url,
    pub(super) registration: Option<Url>,
    pub(super) revocation: Option<Url>,
    /// Whether it says who it is where it sends people back (RFC 9207).
    pub(super) names_itself: bool,
    /// Whether it checks that who ends an authorization has begun it (RFC 7636).
    pub(super) has_pkce: bool,
    pub(super) secret_in_form: bool,
    /// The scopes that the MCP server names.
    pub(super) scopes: Vec<String>,
}

/// The authorization server of an MCP server.
///
/// # Errors
/// Why there is none that can be used.
pub(super) async fn discover(account: &Account) -> Result<Issuer, String> {
    let (web, server) = (&account.web, &account.url);
    let (names, mut scopes) = match &account.settings.authorization_server {
        Some(named) => (vec![named.clone()], Vec::new()),
        None => of_resource(account).await?,
    };
    // Servers of the revision 2025-03-26 are their own.
    let own = server.origin().ascii_serialization();
    let name = names.into_iter().next().unwrap_or(own);
    let metadata = metadata_of(web, &name, account.settings.issuer.as_deref()).await?;
    let optional = |what: &'static str, text: Option<String>| {
        text.map(|text| web.address(&text)).transpose().map_err(fault(what))
    };
    let methods = &metadata.token_endpoint_auth_methods_supported;
    let takes = |wanted: &str| methods.iter().any(|method| method == wanted);
    scopes.truncate(MAX_SCOPES);
    Ok(Issuer {
        secret_in_form: takes("client_secret_post") && !takes("client_secret_basic"),
        authorization: optional("authorization_endpoint", metadata.authorization_endpoint)?,
        token: web.address(&metadata.token_endpoint).map_err(fault("token_endpoint"))?,
        registration: optional("registration_endpoint", metadata.registration_endpoint)?,
        revocation: optional("revocation_endpoint", metadata.revocation_endpoint)?,
        names_itself: metadata.authorization_response_iss_parameter_supported,
        has_pkce: metadata.code_challenge_methods_supported.iter().any(|method| method == "S256"),
        name: metadata.issuer,
        scopes,
    })
}

fn fault(what: &'static str) -> impl Fn(String) -> String {
    move |fault| format!("{what} of the authorization server: {fault}")
}

/// The issuers that an MCP server names, and the scopes.
async fn of_resource(account: &Account) -> Result<(Vec<String>, Vec<String>), String> {
    let (web, server) = (&account.web, &account.url);
    let challenge = challenge_of(account).await;
    let places = match &challenge.metadata {
        Some(place) => {
            vec![web.address(place).map_err(|fault| format!("the MCP server's metadata: {fault}"))?]
        }
        None => well_known(server, "oauth-protected-resource"),
    };
    for place in places {
        match web.get::<Resource>(place).await {
            Ok(found) if !is_of(&found.resource, server) => {
                return Err(format!(
                    "the MCP server's metadata is of another server: {}",
                    shown(&found.resource)
                ));
            }
            Ok(found) => {
                let scopes =
                    if challenge.scopes.is_empty() { found.scopes_supported } else { challenge.scopes };
                return Ok((found.authorization_servers, scopes));
            }
            // Some answer every address with a page.
            Err(Failed::Refused(..) | Failed::Other) => {}
            Err(failed) => return Err(format!("the MCP server's metadata: {}", failed.text())),
        }
    }
    Ok((Vec::new(), challenge.scopes))
}

/// Whether metadata is of a server: for its URL, or for one above it on the same host.
fn is_of(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (above, path) = (resource.path().trim_end_matches('/'), server.path());
    let rest = path.strip_prefix(above);
    resource.origin() == server.origin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What an authorization server says of itself. It calls itself by its name, or as the operator says.
async fn metadata_of(web: &Web, name: &str, issuer: Option<&str>) -> Result<Metadata, String> {
    let named = |fault: String| format!("the authorization server {}: {fault}", shown(name));
    let url = web.address(name).map_err(named)?;
    let mut places = well_known(&url, "oauth-authorization-server");
    places.truncate(1);
    places.extend(well_known(&url, "openid-configuration").into_iter().take(1));
    let path = url.path().trim_end_matches('/');
    if !path.is_empty() {
        let mut below = url.clone();
        below.set_path(&format!("{path}/.well-known/openid-configuration"));
        places.push(below);
    }
    for place in places {
        match web.get::<Metadata>(place).await {
            // RFC 8414, section 3.3: or another could speak in its name.
            Ok(metadata)
                if metadata.issuer.trim_end_matches('/') != issuer.unwrap_or(name).trim_end_matches('/') =>
            {
                let itself = shown(&metadata.issuer);
                return Err(named(format!(
                    "it calls itself {itself}; where that is right, write `issuer = \"{itself}\"`"
                )));
            }
            Ok(metadata) => return Ok(metadata),
            Err(Failed::Refused(..) | Failed::Other) => {}
            Err(failed) => return Err(named(failed.text())),
        }
    }
    Err(named("it has no metadata (RFC 8414)".to_owned()))
}

/// Where the metadata of a URL is, that of its path first.
fn well_known(url: &Url, what: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let mut place = url.clone();
    place.set_query(None);
    let mut paths = vec![format!("/.well-known/{what}{path}")];
    if !path.is_empty() {
        paths.push(format!("/.well-known/{what}"));
    }
    let at = |path: String| {
        place.set_path(&path);
        place.clone()
    };
    paths.into_iter().map(at).collect()
}

/// What a server says where it wants a token.
#[derive(Debug, Default, PartialEq)]
struct Challenge {
    metadata: Option<String>,
    scopes: Vec<String>,
}

async fn challenge_of(account: &Account) -> Challenge {
    let get = account.http.get(account.url.clone()).header(ACCEPT, "text/event-stream");
    // Some look at the method before they look for a token.
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let post = account.http.post(account.url.clone()).header(ACCEPT, "application/json, text/event-stream");
    for request in [get, post.json(&hello)] {
        if let Ok(answer) = request.send().await
            && answer.status() == StatusCode::UNAUTHORIZED
        {
            let header = answer.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
            return header.map(read_challenge).unwrap_or_default();
        }
    }
    Challenge::default()
}

fn read_challenge(header: &str) -> Challenge {
    let scopes = parameter(header, "scope").unwrap_or_default();
    Challenge {
        metadata: parameter(header, "resource_metadata"),
        scopes: scopes.split_ascii_whitespace().take(MAX_SCOPES).map(str::to_owned).collect(),
    }
}

/// A quoted parameter of a challenge.
fn parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header;
    loop {
        let at = rest.find(name)?;
        let (before, from) = rest.split_at(at);
        let after = from.get(name.len()..)?;
        let is_whole = before.is_empty() || before.ends_with([' ', ',']);
        if let Some(value) = after.strip_prefix("=\"").filter(|_| is_whole) {
            return value.split_once('"').map(|(value, _)| value.to_owned());
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_a_challenge_is_read() {
        let header = r#"Bearer error="invalid_token", x_scope="no", scope="a b", resource_metadata="https://a/b?c=d,e""#;
        let scopes = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(
            read_challenge(header),
            Challenge { metadata: Some("https://a/b?c=d,e".to_owned()), scopes }
        );
        for odd in ["", "Bearer", "Bearer scope=", "Basic realm=\"x", "scope=\"open", "scopescopescope"] {
            assert_eq!(read_challenge(odd), Challenge::default(), "{odd}");
        }
    }

    #[test]
    fn b21_metadata_is_of_its_own_server() {
        let server = Url::parse("https://a.example/mcp/x?k=1").unwrap();
        for own in [
            "https://a.example",
            "https://a.example/mcp",
            "https://a.example/mcp/x",
            "https://a.example/mcp/",
        ] {
            assert!(is_of(own, &server), "{own}");
        }
        for other in [
            "https://a.example/mc",
            "https://b.example/mcp",
            "http://a.example/mcp",
            "https://a.example:1/mcp",
            "",
        ] {
            assert!(!is_of(other, &server), "{other}");
        }
        let places: Vec<_> = well_known(&server, "x").iter().map(Url::to_string).collect();
        assert_eq!(places, ["https://a.example/.well-known/x/mcp/x", "https://a.example/.well-known/x"]);
    }
}
