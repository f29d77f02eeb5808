//! Which MCP servers there are, how they are reached, and what the operator says of their tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt, io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use registry_core::{Effect, Permission};
use reqwest::Url;
use serde::{Deserialize, Deserializer, de};
use tokio::io::DuplexStream;

use super::headers::Headers;
use crate::settings::{self, BreakerSettings, RemoteKey, check_name};

/// One MCP server. In a file:
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
#[derive(Debug, Clone)]
pub struct McpServerSettings {
    /// How it is reached.
    pub transport: McpTransport,
    /// How long it may take until it has said what tools it has; in a file in seconds. 60 s, as a command may have to be
    /// fetched first.
    pub start_timeout: Duration,
    /// How long a call may take; in a file in seconds. 30 s.
    pub timeout: Duration,
    /// How many calls run there at once; as many more wait. 16.
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
    /// Whether the server is believed where it says that a tool only reads, or may be called twice. Where it says that one is
    /// destructive it is always believed.
    pub trust_annotations: bool,
    /// Whether a tool that is new, or has changed since it was accepted, is off until it is accepted.
    pub pin: bool,
    /// When a server that fails is left alone.
    pub breaker: BreakerSettings,
}

impl McpServerSettings {
    /// A server that is reached in this way, with nothing else said.
    pub fn new(transport: McpTransport) -> Self {
        Self {
            transport,
            start_timeout: Duration::from_secs(60),
            timeout: Duration::from_secs(30),
            concurrency: 16,
            permission: Permission::User,
            daily_limit: 0,
            requires_gate: false,
            allow: None,
            deny: BTreeSet::new(),
            effects: BTreeMap::new(),
            trust_annotations: false,
            pin: false,
            breaker: BreakerSettings::default(),
        }
    }

    /// A server that is a program.
    pub fn command<S: Into<String>>(
        command: impl Into<String>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self::new(McpTransport::Stdio(McpCommand {
            command: command.into(),
            arguments,
            ..McpCommand::default()
        }))
    }

    /// A server at a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self::new(McpTransport::Http {
            url: url.into(),
            key_env: None,
            key: None,
            headers: Headers::default(),
        })
    }

    /// Whether this can be meant. The environment is not asked: a command that reaches no server needs no key.
    ///
    /// # Errors
    /// What is wrong with it under that name.
    pub fn check(&self, name: &str) -> Result<(), McpSettingsError> {
        let reported = |message| McpSettingsError { server: name.to_owned(), message };
        check_name(name).map_err(reported)?;
        self.transport.check().map_err(reported)
    }
}

/// How a server is reached.
#[derive(Clone)]
pub enum McpTransport {
    /// A program that is started here and spoken with over its standard input and output.
    Stdio(McpCommand),
    /// An address, over streamable HTTP.
    Http {
        /// Where it is. It may be a private address: it is the operator's word.
        url: String,
        /// The variable of the environment with the key that it asks for, sent as `Authorization: Bearer KEY`.
        key_env: Option<String>,
        /// The key itself, for a host that has it from elsewhere; it goes before `key_env` and cannot be in a file.
        key: Option<RemoteKey>,
        /// Further headers that every request has.
        headers: Headers,
    },
    /// A server in this process: gives a new connection each time it is asked. Not in a file.
    InProcess(Connector),
}

/// Gives a connection to a server in this process.
pub type Connector = Arc<dyn Fn() -> io::Result<DuplexStream> + Send + Sync>;

/// A program that is a server.
#[derive(Clone, Default)]
pub struct McpCommand {
    /// The program, found by `PATH` where it has no `/`.
    pub command: String,
    /// What it is started with.
    pub arguments: Vec<String>,
    /// Variables for it. It gets these, those of [`pass_env`](Self::pass_env) and a few that every program needs, and nothing
    /// else of this process's environment.
    pub env: BTreeMap<String, String>,
    /// The variables of this process's environment that it gets as they are.
    pub pass_env: BTreeSet<String>,
    /// The folder it is started in; this process's where nothing is said.
    pub cwd: Option<PathBuf>,
}

/// What may be a secret is not shown.
impl fmt::Debug for McpCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpCommand").field("command", &self.command).finish_non_exhaustive()
    }
}

impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio(command) => command.fmt(f),
            other => f.write_str(&other.address()),
        }
    }
}

impl McpTransport {
    /// Where it is, for people: without arguments, query or anything else that may be a secret.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Stdio(command) => command.command.clone(),
            Self::Http { url, .. } => match Url::parse(url) {
                Ok(mut url) => {
                    url.set_query(None);
                    url.to_string()
                }
                Err(_) => "an address that is none".to_owned(),
            },
            Self::InProcess(_) => "this process".to_owned(),
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Stdio(command) => command.check(),
            Self::Http { url, headers, .. } => {
                parse_url(url)?;
                headers.check()
            }
            Self::InProcess(_) => Ok(()),
        }
    }
}

impl McpCommand {
    fn check(&self) -> Result<(), String> {
        if self.command.is_empty() {
            return Err("`command` is empty; name a program, such as \"npx\"".to_owned());
        }
        let has_nul = |text: &String| text.contains('\0');
        if has_nul(&self.command) || self.arguments.iter().any(has_nul) || self.env.values().any(has_nul) {
            return Err("`command`, `args` and `env` cannot have a NUL character".to_owned());
        }
        let is_legal = |name: &&String| !name.is_empty() && !name.contains(['=', '\0']);
        match self.env.keys().chain(&self.pass_env).find(|name| !is_legal(name)) {
            Some(name) => Err(format!("{name:?} is not the name of a variable")),
            None => Ok(()),
        }
    }
}

/// The URL, checked.
pub(super) fn parse_url(url: &str) -> Result<Url, String> {
    settings::parse_url(url, "http://tracker:8000/mcp")
}

impl<'de> Deserialize<'de> for McpServerSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            command: Option<String>,
            args: Option<Vec<String>>,
            env: Option<BTreeMap<String, String>>,
            pass_env: Option<BTreeSet<String>>,
            cwd: Option<PathBuf>,
            url: Option<String>,
            key_env: Option<String>,
            start_timeout: Option<f64>,
            timeout: Option<f64>,
            concurrency: Option<usize>,
            permission: Option<Permission>,
            #[serde(default)]
            daily_limit: u32,
            #[serde(default)]
            requires_gate: bool,
            allow: Option<BTreeSet<String>>,
            #[serde(default)]
            deny: BTreeSet<String>,
            #[serde(default)]
            effects: BTreeMap<String, Effect>,
            #[serde(default)]
            trust_annotations: bool,
            #[serde(default)]
            pin: bool,
            #[serde(default)]
            breaker: BreakerSettings,
            headers: Option<BTreeMap<String, String>>,
            headers_env: Option<BTreeMap<String, String>>,
        }
        let table = Table::deserialize(deserializer)?;
        let of_command = table.args.is_some() || table.env.is_some() || table.cwd.is_some();
        let has_headers = table.headers.is_some() || table.headers_env.is_some();
        let headers =
            Headers { given: table.headers.unwrap_or_default(), env: table.headers_env.unwrap_or_default() };
        let transport = match (table.command, table.url) {
            (Some(_), None) if has_headers => {
                return Err(de::Error::custom("`headers` and `headers_env` go with `url`"));
            }
            (Some(_), None) if table.key_env.is_some() => {
                return Err(de::Error::custom("`key_env` goes with `url`; a command gets it by `pass_env`"));
            }
            (Some(command), None) => McpTransport::Stdio(McpCommand {
                command,
                arguments: table.args.unwrap_or_default(),
                env: table.env.unwrap_or_default(),
                pass_env: table.pass_env.unwrap_or_default(),
                cwd: table.cwd,
            }),
            (None, Some(_)) if of_command || table.pass_env.is_some() => {
                return Err(de::Error::custom("`args`, `env`, `pass_env` and `cwd` go with `command`"));
            }
            (None, Some(url)) => McpTransport::Http { url, key_env: table.key_env, key: None, headers },
            _ => return Err(de::Error::custom("expected either `command` or `url`")),
        };
        let usual = Self::new(transport);
        let seconds = |given: Option<f64>, usual: Duration| match given.map(Duration::try_from_secs_f64) {
            None => Ok(usual),
            Some(Ok(duration)) if !duration.is_zero() => Ok(duration),
            _ => Err(de::Error::custom("expected a number of seconds greater than 0")),
        };
        Ok(Self {
            start_timeout: seconds(table.start_timeout, usual.start_timeout)?,
            timeout: seconds(table.timeout, usual.timeout)?,
            concurrency: table.concurrency.unwrap_or(usual.concurrency),
            permission: table.permission.unwrap_or(usual.permission),
            daily_limit: table.daily_limit,
            requires_gate: table.requires_gate,
            allow: table.allow,
            deny: table.deny,
            effects: table.effects,
            trust_annotations: table.trust_annotations,
            pin: table.pin,
            breaker: table.breaker,
            ..usual
        })
    }
}

/// What is wrong with the settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSettingsError {
    /// The server's name.
    pub server: String,
    /// What is wrong and what to write.
    pub message: String,
}

impl fmt::Display for McpSettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mcp_servers.{}: {}", self.server, self.message)
    }
}

impl Error for McpSettingsError {}

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
    fn b3_a_wrong_setting_is_told() {
        for (settings, fault) in [
            (json!({}), "either `command` or `url`"),
            (json!({"command": "a", "url": "http://a"}), "either `command` or `url`"),
            (json!({"url": "http://a", "args": []}), "go with `command`"),
            (json!({"command": "a", "key_env": "K"}), "goes with `url`"),
            (json!({"command": "a", "headers": {}}), "go with `url`"),
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
        ] {
            let error = read(settings.clone()).unwrap().check(name).unwrap_err();
            assert!(error.to_string().starts_with(&format!("mcp_servers.{name}: ")), "{settings}: {error}");
        }
        assert!(find_key(None, Some("TOOLRACK_NO_SUCH")).unwrap_err().contains("TOOLRACK_NO_SUCH"));
        assert!(find_key(Some(&RemoteKey::new("a\n")), None).is_err());
    }
}
