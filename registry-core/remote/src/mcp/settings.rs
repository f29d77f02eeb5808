//! Which MCP servers there are, how they are reached, and what the operator says of their tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use registry_core::{
    Effect, Permission,
    flow::{Reads, Sends},
};
use reqwest::Url;
use serde::{Deserialize, Deserializer, de};
use tokio::io::DuplexStream;

use super::{headers, oauth::McpAuth};
use crate::settings::{self, BreakerSettings, RemoteKey, SettingsError, check_name, seconds};

/// One MCP server: a [`command`](Self::command), an address under [`url`](Self::url), or [in this process](Self::in_process). In a
/// file:
///
/// ```toml
/// [mcp_servers.files]
/// command = "npx"
/// args = ["-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"]
/// env = { LOG_LEVEL = "warn" }
/// pass_env = ["FILES_TOKEN"]
/// deny = ["move_file"]
///
/// [mcp_servers.tracker]
/// url = "https://tracker.lan/mcp"
/// key_env = "TRACKER_KEY"
/// headers_env = { "X-Workspace-Token" = "TRACKER_TOKEN" }
/// effects = { search = "read" }
/// pin = true
/// ```
#[derive(Clone, Deserialize, derive_more::Debug)]
#[debug("McpServerSettings({})", self.address())]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct McpServerSettings {
    /// Whether it is reached at all. True.
    pub enabled: bool,
    /// The program, found by `PATH` where it has no `/`. It is spoken with over its standard input and output.
    pub command: Option<String>,
    /// What it is started with.
    pub args: Vec<String>,
    /// Variables for it. It gets these, those of [`pass_env`](Self::pass_env) and a few that every program needs, and nothing
    /// else of this process's environment.
    pub env: BTreeMap<String, String>,
    /// The variables of this process's environment that it gets as they are.
    pub pass_env: BTreeSet<String>,
    /// The folder it is started in; by default this process's.
    pub cwd: Option<PathBuf>,
    /// Where it is, over streamable HTTP. It may be a private address: it is the operator's word.
    pub url: Option<String>,
    /// The variable of the environment with the key that it asks for, sent as `Authorization: Bearer KEY`.
    pub key_env: Option<String>,
    /// The key itself, for a host that has it from elsewhere; it goes before `key_env` and cannot be in a file.
    #[serde(skip)]
    pub key: Option<RemoteKey>,
    /// How it knows whose calls these are; not with a key.
    pub auth: Option<McpAuth>,
    /// With `auth`: this server's id at the authorization server. With `auth = "oauth"` it registers itself where that is left out.
    pub client_id: Option<String>,
    /// With `auth`: the variable of the environment with the secret of `client_id`; none for a public client. It needs an
    /// [`authorization_server`](Self::authorization_server).
    pub client_secret_env: Option<String>,
    /// With `auth`: the scopes that are asked for. Those that the server names, where none are given.
    pub scopes: Vec<String>,
    /// With `auth = "oauth"`: whether an operator lets this server into one account, which serves the calls of all users.
    pub shared: bool,
    /// With `auth`: the authorization server, as it calls itself, in place of the one that the server names. It may be at a private address.
    /// With `auth = "exchange"` or a secret there has to be one: neither the tokens of users nor the secret go where the MCP server says.
    pub authorization_server: Option<String>,
    /// With `auth`: what the authorization server may call itself, where that is not the name by which it is found.
    pub issuer: Option<String>,
    /// With `auth = "oauth"`: whether the authorization server checks PKCE though it does not say so.
    pub assume_pkce: bool,
    /// With `auth = "oauth"`: whether the authorization server is told for which server a token is (RFC 8707). True; some refuse that.
    pub send_resource: bool,
    /// Further headers of every request, as they are sent.
    pub headers: BTreeMap<String, String>,
    /// Further headers that are secret, by the variables of the environment that have their values.
    pub headers_env: BTreeMap<String, String>,
    /// Gives a new connection to a server in this process each time it is asked. It cannot be in a file.
    #[serde(skip)]
    pub connector: Option<Connector>,
    /// How long it may take until it has said what tools it has; in a file in seconds. 60 s, as a command may have to be
    /// fetched first.
    #[serde(deserialize_with = "seconds")]
    pub start_timeout: Duration,
    /// How long a call may take; in a file in seconds. 30 s.
    #[serde(deserialize_with = "seconds")]
    pub timeout: Duration,
    /// How many calls run there at once, of one user half of them; of each user twice the number run and wait. 16.
    pub concurrency: usize,
    /// The level that its tools ask for. User.
    pub permission: Permission,
    /// Calls of each of its tools that a user may make in a day (UTC); 0 for any number.
    pub daily_limit: u32,
    /// Whether the gate is asked before a call.
    pub requires_gate: bool,
    /// The tools that are taken, by the names that the server gives them; `None` for all.
    pub allow: Option<BTreeSet<String>>,
    /// The tools that are left out.
    pub deny: BTreeSet<String>,
    /// What tools do, by the names that the server gives them. This is the operator's word, and goes before every other.
    pub effects: BTreeMap<String, Effect>,
    /// What the results of tools may hold, by the names that the server gives them, and `*` for all others. Both, where nothing is said.
    pub reads: BTreeMap<String, Reads>,
    /// Where the arguments of tools go, in the same way. Outside, where nothing is said.
    pub sends: BTreeMap<String, Sends>,
    /// Whether the server is believed where it says that a tool only reads, sends nothing out, or may be called twice. Where it says that one is
    /// destructive it is always believed.
    pub trust_annotations: bool,
    /// Whether a tool that is new, or has changed since it was accepted, is off until it is accepted.
    pub pin: bool,
    /// When the circuit of a server that fails opens.
    pub breaker: BreakerSettings,
}

/// Gives a connection to a server in this process.
pub type Connector = Arc<dyn Fn() -> io::Result<DuplexStream> + Send + Sync>;

/// Without a way to reach it.
impl Default for McpServerSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            pass_env: BTreeSet::new(),
            cwd: None,
            url: None,
            key_env: None,
            key: None,
            auth: None,
            client_id: None,
            client_secret_env: None,
            scopes: Vec::new(),
            shared: false,
            authorization_server: None,
            issuer: None,
            assume_pkce: false,
            send_resource: true,
            headers: BTreeMap::new(),
            headers_env: BTreeMap::new(),
            connector: None,
            start_timeout: Duration::from_secs(60),
            timeout: Duration::from_secs(30),
            concurrency: 16,
            permission: Permission::User,
            daily_limit: 0,
            requires_gate: false,
            allow: None,
            deny: BTreeSet::new(),
            effects: BTreeMap::new(),
            reads: BTreeMap::new(),
            sends: BTreeMap::new(),
            trust_annotations: false,
            pin: false,
            breaker: BreakerSettings::default(),
        }
    }
}

impl McpServerSettings {
    /// A server that is a program.
    pub fn command<S: Into<String>>(command: impl Into<String>, args: impl IntoIterator<Item = S>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self { command: Some(command.into()), args, ..Self::default() }
    }

    /// A server at a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }

    /// A server in this process.
    pub fn in_process(connect: impl Fn() -> io::Result<DuplexStream> + Send + Sync + 'static) -> Self {
        Self { connector: Some(Arc::new(connect)), ..Self::default() }
    }

    /// Whether this can be meant. The environment is not asked: a command that reaches no server needs no key.
    ///
    /// # Errors
    /// What is wrong with it under that name.
    pub fn check(&self, name: &str) -> Result<(), SettingsError> {
        let checked = check_name(name).map_err(|error| error.to_string()).and_then(|()| {
            self.check_placeholders()?;
            match self.transport()? {
                McpTransport::Command(command) => self.check_command(command),
                McpTransport::Http(url) => {
                    parse_url(url).and_then(|_| headers::check(self)).and_then(|()| self.check_auth())
                }
                McpTransport::InProcess(_) => Ok(()),
            }
        });
        checked.map_err(wrong(name))
    }

    /// How it is reached, where just one way is given, and nothing that goes with another.
    pub(super) fn transport(&self) -> Result<McpTransport<'_>, String> {
        let is_program = !self.args.is_empty() || !self.env.is_empty() || self.cwd.is_some();
        let has_headers = !self.headers.is_empty() || !self.headers_env.is_empty();
        match (&self.command, &self.url, &self.connector) {
            (Some(_), None, None) if has_headers => {
                Err("`headers` and `headers_env` go with `url`".to_owned())
            }
            (Some(_), None, None) if self.auth.is_some() => Err("`auth` goes with `url`".to_owned()),
            (Some(_), None, None) if self.key_env.is_some() => {
                Err("`key_env` goes with `url`; a command gets it by `pass_env`".to_owned())
            }
            (Some(command), None, None) => Ok(McpTransport::Command(command)),
            (None, Some(_), None) if is_program || !self.pass_env.is_empty() => {
                Err("`args`, `env`, `pass_env` and `cwd` go with `command`".to_owned())
            }
            (None, Some(url), None) => Ok(McpTransport::Http(url)),
            (None, None, Some(connector)) => Ok(McpTransport::InProcess(connector)),
            _ => Err("expected either `command` or `url`".to_owned()),
        }
    }

    /// Other programs put variables of the environment in place of `${NAME}`; nobody does here.
    fn check_placeholders(&self) -> Result<(), String> {
        // A shell does it by itself.
        let is_shell = self.args.iter().any(|arg| matches!(arg.as_str(), "-c" | "-lc"));
        let args = self.args.iter().filter(|_| !is_shell).map(|arg| ("args", arg));
        let others = self.env.values().map(|value| ("env", value));
        let others = others.chain(self.headers.values().map(|value| ("headers", value)));
        let others = others.chain(self.command.iter().map(|value| ("command", value)));
        let mut all = args.chain(others).chain(self.url.iter().map(|value| ("url", value)));
        let Some((setting, _)) = all.find(|(_, value)| value.contains("${")) else { return Ok(()) };
        Err(format!(
            "`{setting}` has a `${{…}}`, which is not replaced here; name the variable in `pass_env`, `key_env` or `headers_env`"
        ))
    }

    /// Where it is, for people: without arguments, query or anything else that may be a secret.
    pub(super) fn address(&self) -> String {
        match self.transport() {
            Ok(McpTransport::Command(command)) => command.to_owned(),
            Ok(McpTransport::Http(url)) => match Url::parse(url) {
                Ok(mut url) => {
                    url.set_query(None);
                    url.to_string()
                }
                Err(_) => "an invalid address".to_owned(),
            },
            Ok(McpTransport::InProcess(_)) => "this process".to_owned(),
            Err(_) => "nowhere".to_owned(),
        }
    }

    pub(super) fn check_auth(&self) -> Result<(), String> {
        let has_more =
            self.client_id.is_some() || self.client_secret_env.is_some() || !self.scopes.is_empty();
        let has_more = has_more || self.shared || self.authorization_server.is_some();
        let has_more = has_more || self.issuer.is_some() || self.assume_pkce || !self.send_resource;
        let is_token = |text: &str| {
            !text.is_empty()
                && text.len() <= 500
                && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')
        };
        match self.auth {
            None if has_more => {
                let all = "`client_id`, `client_secret_env`, `scopes`, `shared`, `authorization_server`, `issuer`, `assume_pkce` and \
                           `send_resource`";
                Err(format!("{all} go with `auth = \"oauth\"`"))
            }
            None => Ok(()),
            Some(_) if self.key_env.is_some() || self.key.is_some() => {
                Err("`auth` and `key_env` are two ways to be let in; leave one of them out".to_owned())
            }
            Some(_) if self.client_secret_env.is_some() && self.client_id.is_none() => {
                Err("`client_secret_env` goes with `client_id`".to_owned())
            }
            Some(McpAuth::Exchange) if self.shared || self.client_id.is_none() => {
                Err("`auth = \"exchange\"` needs a `client_id`, and has no `shared` account".to_owned())
            }
            // An MCP server may name anybody, itself too.
            Some(auth)
                if self.authorization_server.is_none()
                    && (auth == McpAuth::Exchange || self.client_secret_env.is_some()) =>
            {
                Err("`auth = \"exchange\"` and `client_secret_env` need an `authorization_server`: what users sign in with, and the secret, \
                     go to none that the MCP server names; write its address, such as that of `issuer` under [sign_in]"
                    .to_owned())
            }
            Some(_) if !self.scopes.iter().all(|scope| is_token(scope)) => {
                Err("`scopes` has one with a space or a character that no scope has".to_owned())
            }
            Some(_) => self.authorization_server.as_deref().map_or(Ok(()), |url| {
                parse_url(url).map(drop).map_err(|fault| fault.replace("`url`", "`authorization_server`"))
            }),
        }
    }

    fn check_command(&self, command: &str) -> Result<(), String> {
        if command.is_empty() {
            return Err("`command` is empty; name a program, such as \"npx\"".to_owned());
        }
        let mut texts = self.args.iter().chain(self.env.values()).map(String::as_str).chain([command]);
        if texts.any(|text| text.contains('\0')) {
            return Err("`command`, `args` and `env` cannot have a NUL character".to_owned());
        }
        let is_legal = |name: &&String| !name.is_empty() && !name.contains(['=', '\0']);
        match self.env.keys().chain(&self.pass_env).find(|name| !is_legal(name)) {
            Some(name) => Err(format!("{name:?} is not the name of a variable")),
            None => Ok(()),
        }
    }
}

/// How a server is reached.
pub(super) enum McpTransport<'s> {
    Command(&'s str),
    Http(&'s str),
    InProcess(&'s Connector),
}

/// What is wrong with a server's settings.
pub(super) fn wrong(server: &str) -> impl Fn(String) -> SettingsError {
    move |message| SettingsError { setting: format!("mcp_servers.{server}"), message }
}

/// The URL, checked.
pub(super) fn parse_url(url: &str) -> Result<Url, String> {
    settings::parse_url(url, "http://tracker:8000/mcp")
}

impl<'de> Deserialize<'de> for McpServerSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let settings = Self::deserialize(deserializer)?;
        settings.transport().map_err(de::Error::custom)?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::find_key;

    fn read(settings: serde_json::Value) -> Result<McpServerSettings, String> {
        serde_json::from_value(settings).map_err(|error| error.to_string())
    }

    #[test]
    fn b3_a_server_is_a_command_or_an_address() {
        let files = json!({"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "tr_hidden"},
            "pass_env": ["LANG"], "timeout": 2.5, "allow": ["read"], "effects": {"read": "read"}, "permission": "admin"});
        let files = read(files).unwrap();
        assert_eq!((files.timeout.as_secs_f64(), files.permission), (2.5, Permission::Admin));
        assert!(!files.trust_annotations && files.effects["read"] == Effect::Read);
        assert!(!format!("{files:?}").contains("hidden"));
        let tracker = read(json!({"url": "http://tracker/mcp?key=hidden", "key_env": "K"})).unwrap();
        assert_eq!(tracker.permission, Permission::User);
        assert!(
            format!("{tracker:?}").contains("http://tracker/mcp")
                && !format!("{tracker:?}").contains("hidden")
        );
    }

    #[test]
    fn b21_accounts_are_asked_for_whole() {
        let at = |more: serde_json::Value| {
            let mut all = json!({"url": "https://a/mcp"});
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(all).and_then(|settings| settings.check("a").map_err(|fault| fault.to_string()))
        };
        for good in [
            json!({"auth": "oauth"}),
            json!({"auth": "oauth", "shared": true, "scopes": ["a:b"], "authorization_server": "http://idp.lan"}),
            json!({"auth": "oauth", "client_id": "c"}),
            json!({"auth": "oauth", "client_id": "c", "client_secret_env": "S", "authorization_server": "http://idp.lan"}),
            json!({"auth": "exchange", "client_id": "c", "authorization_server": "http://idp.lan"}),
        ] {
            assert_eq!(at(good.clone()), Ok(()), "{good}");
        }
        for (wrong, why) in [
            (json!({"auth": "basic"}), "unknown variant `basic`"),
            (json!({"scopes": ["a"]}), "go with `auth"),
            (json!({"shared": true}), "go with `auth"),
            (json!({"assume_pkce": true}), "go with `auth"),
            (json!({"send_resource": false}), "go with `auth"),
            (json!({"auth": "oauth", "key_env": "K"}), "two ways"),
            (json!({"auth": "oauth", "client_secret_env": "S"}), "goes with `client_id`"),
            (json!({"auth": "exchange"}), "needs a `client_id`"),
            (json!({"auth": "exchange", "client_id": "c", "shared": true}), "no `shared` account"),
            (
                json!({"auth": "exchange", "client_id": "c", "issuer": "https://a"}),
                "need an `authorization_server`",
            ),
            (
                json!({"auth": "oauth", "client_id": "c", "client_secret_env": "S"}),
                "need an `authorization_server`",
            ),
            (json!({"auth": "oauth", "scopes": ["a b"]}), "`scopes`"),
            (json!({"auth": "oauth", "authorization_server": "idp"}), "`authorization_server`"),
        ] {
            let fault = at(wrong.clone()).unwrap_err();
            assert!(fault.contains(why), "{wrong}: {fault}");
        }
        assert!(read(json!({"command": "a", "auth": "oauth"})).unwrap_err().contains("goes with `url`"));
    }

    #[test]
    fn b3_a_wrong_setting_is_reported() {
        for (settings, fault) in [
            (json!({}), "either `command` or `url`"),
            (json!({"command": "a", "url": "http://a"}), "either `command` or `url`"),
            (json!({"url": "http://a", "args": ["b"]}), "go with `command`"),
            (json!({"command": "a", "key_env": "K"}), "goes with `url`"),
            (json!({"command": "a", "headers": {"A": "b"}}), "go with `url`"),
            (json!({"command": "a", "breaker": {"failure": 1}}), "unknown field `failure`"),
            (json!({"command": "a", "timeout": 0}), "greater than 0"),
            (json!({"command": "a", "comand": "b"}), "unknown field `comand`"),
        ] {
            let error = read(settings.clone()).unwrap_err();
            assert!(error.contains(fault), "{settings}: {error}");
        }
        for (name, settings) in [
            ("a.b", json!({"command": "a"})),
            ("local", json!({"command": "a"})),
            ("a", json!({"command": ""})),
            ("a", json!({"command": "a", "env": {"A=B": "c"}})),
            ("a", json!({"command": "a", "args": ["b\0"]})),
            ("a", json!({"url": "tracker:8000"})),
            ("a", json!({"url": "http://u:p@tracker"})),
            ("a", json!({"url": "http://a", "headers": {"A B": "c"}})),
            ("a", json!({"url": "http://a", "headers": {"A": "${env:TOKEN}"}})),
            ("a", json!({"command": "a", "args": ["--token=${TOKEN}"]})),
        ] {
            let error = read(settings.clone()).unwrap().check(name).unwrap_err();
            assert!(error.to_string().starts_with(&format!("mcp_servers.{name}: ")), "{settings}: {error}");
        }
        let shell = json!({"command": "sh", "args": ["-c", "exec a ${HOME}"]});
        read(shell).unwrap().check("a").unwrap();
        assert!(find_key(None, Some("TOOLRACK_NO_SUCH")).unwrap_err().contains("TOOLRACK_NO_SUCH"));
        assert!(find_key(Some(&RemoteKey::new("a\n")), None).is_err());
    }
}
