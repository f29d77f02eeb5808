//! Settings: the flags and `TOOLRACK_*` variables of the command line over `toolrack.toml` over the defaults.

use std::{
    convert::Infallible,
    fmt,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use registry_core::{Caller, Permission, store::Store};
use serde::{Deserialize, de::DeserializeOwned};
use toml::de::{DeTable, Deserializer};

use super::address;
use crate::{
    chat::{ChatSettings, Limits, Models, ToolStyle, Upstream, known_dialect, upstream::DEMO},
    dialect::{self, Reading},
    server::{self, Access, ServerSettings},
};

/// The file that is read where none is named.
const DEFAULT_FILE: &str = "toolrack.toml";

const API_KEY_VARIABLE: &str = "TOOLRACK_API_KEY";

/// A key, which no log shows.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// What can be set on the command line and in the environment, for every command. What is empty counts as not set: that is how
/// tools that start containers write it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// Configuration file [default: toolrack.toml where there is one]
    #[arg(long, env = "TOOLRACK_CONFIG", global = true, value_name = "FILE", value_parser = address::path())]
    pub config: Option<PathBuf>,
    /// Address to serve on [default: 127.0.0.1:7331]
    #[arg(long, env = "TOOLRACK_LISTEN", global = true, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Base address of an OpenAI-compatible server such as http://127.0.0.1:8080/v1, or `demo` for the built-in model
    /// [default: the first found on the usual local ports, else demo]
    #[arg(long, env = "TOOLRACK_UPSTREAM", global = true, value_name = "URL")]
    pub upstream: Option<String>,
    /// Key for the upstream
    #[arg(
        long,
        env = "TOOLRACK_UPSTREAM_API_KEY",
        global = true,
        value_name = "KEY",
        hide_env_values = true
    )]
    pub upstream_api_key: Option<Secret>,
    /// Model to ask for where the client names none [default: the upstream's first]
    #[arg(long, env = "TOOLRACK_MODEL", global = true, value_name = "NAME")]
    pub model: Option<String>,
    /// Folder for what is kept [default: .toolrack]
    #[arg(long, env = "TOOLRACK_DATA_DIR", global = true, value_name = "DIR", value_parser = address::path())]
    pub data_dir: Option<PathBuf>,
    /// Key that clients have to bring
    #[arg(long, env = API_KEY_VARIABLE, global = true, value_name = "KEY", hide_env_values = true)]
    pub api_key: Option<Secret>,
}

/// All settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Address to serve on.
    #[serde(deserialize_with = "address::deserialize")]
    pub listen: SocketAddr,
    /// Base address of the upstream, or `demo`; `None` to look for one.
    pub upstream: Option<String>,
    /// Key for the upstream.
    pub upstream_api_key: Option<Secret>,
    /// Model to ask for where the client names none.
    pub model: Option<String>,
    /// Folder for what is kept.
    pub data_dir: PathBuf,
    /// Key that clients have to bring.
    pub api_key: Option<Secret>,
    /// Names of this server beside `localhost` and plain addresses.
    pub allowed_hosts: Vec<String>,
    /// Who uses this server.
    pub user: User,
    /// How chats are conducted.
    pub chat: Chat,
    /// How far a turn may go.
    pub limits: Limits,
    /// What is set for single models.
    pub models: Models,
    /// The tables that belong to the host's own resources.
    #[serde(skip)]
    host: toml::Table,
    /// The file that was read.
    #[serde(skip)]
    file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7331)),
            upstream: None,
            upstream_api_key: None,
            model: None,
            data_dir: ".toolrack".into(),
            api_key: None,
            allowed_hosts: Vec::new(),
            user: User::default(),
            chat: Chat::default(),
            limits: Limits::default(),
            models: Models::default(),
            host: toml::Table::new(),
            file: None,
        }
    }
}

/// Who uses this server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct User {
    /// The user's id.
    pub id: String,
    /// How far the user is trusted.
    pub level: Permission,
    /// The modules that may be used; all where nothing is said.
    pub allowed_modules: Option<Vec<String>>,
}

impl Default for User {
    fn default() -> Self {
        Self { id: "local".into(), level: Permission::User, allowed_modules: None }
    }
}

/// How chats are conducted; see [`ChatSettings`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Chat {
    /// Put before a conversation without a system message when no tool is offered.
    pub system_prompt: Option<String>,
    /// The same when tools are offered.
    pub system_prompt_with_tools: Option<String>,
    /// `auto`, `native` or `prompt`.
    pub tool_style: ToolStyle,
    /// The one dialect in which text calls are read; every one where nothing is said.
    pub dialect: Option<String>,
    /// Whether the server's template opens the model's thinking.
    pub thinking: bool,
    /// What is decided otherwise than by default where readers of text calls disagree.
    pub reading: Reading,
}

impl Settings {
    /// Reads the file and lays the flags over it. `host_tables` are the tables of the file that are the host's own.
    ///
    /// # Errors
    /// A text with file, line and what to do.
    pub fn load(flags: &Flags, host_tables: &[&str]) -> Result<Self, String> {
        let mut settings = match flags.config.as_ref().filter(|file| !file.as_os_str().is_empty()) {
            Some(file) => Self::from_file(file, host_tables)?,
            None if Path::new(DEFAULT_FILE).exists() => {
                Self::from_file(Path::new(DEFAULT_FILE), host_tables)?
            }
            None => Self::default(),
        };
        settings.lay_over(flags.clone())?;
        Ok(settings)
    }

    /// What is set in the flags wins.
    fn lay_over(&mut self, flags: Flags) -> Result<(), String> {
        let set = |text: Option<String>| text.filter(|text| !text.is_empty());
        let key = |key: Option<Secret>| key.filter(|key| !key.0.is_empty());
        if let Some(text) = set(flags.listen) {
            self.listen = address::parse(&text).map_err(|error| format!("--listen: {error}"))?;
        }
        if let Some(upstream) = set(flags.upstream) {
            address::check_upstream(&upstream).map_err(|error| format!("--upstream: {error}"))?;
            self.upstream = Some(upstream);
        }
        self.upstream = set(self.upstream.take());
        self.model = set(flags.model).or_else(|| set(self.model.take()));
        self.upstream_api_key = key(flags.upstream_api_key).or_else(|| key(self.upstream_api_key.take()));
        // An empty flag hides the variable; it must not switch the key off.
        let variable = || std::env::var(API_KEY_VARIABLE).ok().map(Secret);
        let given = flags.api_key.and_then(|flag| key(Some(flag)).or_else(|| key(variable())));
        self.api_key = given.or_else(|| key(self.api_key.take()));
        if let Some(folder) = flags.data_dir.filter(|folder| !folder.as_os_str().is_empty()) {
            self.data_dir = folder;
        }
        Ok(())
    }

    fn from_file(file: &Path, host_tables: &[&str]) -> Result<Self, String> {
        let place = file.display();
        let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {place}: {error}"))?;
        let mut settings = Self::from_toml(&text, host_tables)
            .and_then(|settings| settings.check().map(|()| settings))
            .map_err(|error| format!("{place}: {error}"))?;
        settings.file = Some(file.to_owned());
        Ok(settings)
    }

    fn from_toml(text: &str, host_tables: &[&str]) -> Result<Self, String> {
        let with_text = |mut error: toml::de::Error| {
            // The error shows the line it is about.
            error.set_input(Some(text));
            error.to_string()
        };
        let mut tables = DeTable::parse(text).map_err(with_text)?;
        for table in host_tables {
            tables.get_mut().remove(*table);
        }
        let mut settings = Self::deserialize(Deserializer::from(tables)).map_err(with_text)?;
        settings.host = toml::from_str(text).map_err(with_text)?;
        settings.host.retain(|name, _| host_tables.contains(&name));
        Ok(settings)
    }

    /// What can be written in the file and cannot be meant.
    fn check(&self) -> Result<(), String> {
        if let Some(name) = &self.chat.dialect {
            known_dialect(name).map_err(|error| format!("chat.dialect: {error}"))?;
        }
        let (limits, usual) = (&self.limits, Limits::default());
        for (key, value, usual) in [
            ("max_rounds", limits.max_rounds.into(), usual.max_rounds.into()),
            ("max_calls", limits.max_calls.into(), usual.max_calls.into()),
            ("max_identical_calls", limits.max_identical_calls.into(), usual.max_identical_calls.into()),
            ("max_seconds", limits.max_seconds, usual.max_seconds),
            ("idle_seconds", limits.idle_seconds, usual.idle_seconds),
        ] {
            if value == 0 {
                return Err(format!(
                    "limits.{key}: 0 lets nothing through; write 1 or more, or leave it out for {usual}"
                ));
            }
        }
        if let Some(upstream) = self.upstream.as_deref().filter(|upstream| !upstream.is_empty()) {
            address::check_upstream(upstream).map_err(|error| format!("upstream: {error}"))?;
        }
        if let Some(host) = self.allowed_hosts.iter().find(|host| host.is_empty() || host.contains('/')) {
            return Err(format!(
                "allowed_hosts: `{host}` is not the name of a host; write it without `http://`, such as \"rack.lan\""
            ));
        }
        Ok(())
    }

    /// A table of the host's own.
    ///
    /// # Errors
    /// What does not fit.
    pub fn host_table<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, String> {
        match self.host.get(name) {
            None => Ok(T::default()),
            Some(table) => {
                let file = self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE)).display();
                let fault = |error: toml::de::Error| format!("{file}: [{name}]: {}", error.message());
                table.clone().try_into().map_err(fault)
            }
        }
    }

    /// The user as a caller.
    pub fn caller(&self) -> Caller {
        let caller = Caller::new(&self.user.id, self.user.level);
        match &self.user.allowed_modules {
            Some(modules) => caller.only_modules(modules),
            None => caller,
        }
    }

    /// The model to stand in front of.
    ///
    /// # Errors
    /// When the upstream's address is none.
    pub async fn upstream(&self) -> Result<Upstream, String> {
        let idle = Duration::from_secs(self.limits.idle_seconds);
        let key = self.upstream_api_key.clone().map(|key| key.0);
        match self.upstream.as_deref() {
            Some(DEMO) => Ok(Upstream::demo()),
            Some(base) => Upstream::http(base, key, idle).map_err(|error| format!("upstream: {error}")),
            None => Ok(Upstream::find(key, idle).await),
        }
    }

    /// How chats are conducted.
    pub fn chat_settings(&self) -> ChatSettings {
        let defaults = ChatSettings::default();
        let chat = self.chat.clone();
        ChatSettings {
            model: self.model.clone(),
            limits: self.limits,
            system_prompt: chat.system_prompt.unwrap_or(defaults.system_prompt),
            system_prompt_with_tools: chat
                .system_prompt_with_tools
                .unwrap_or(defaults.system_prompt_with_tools),
            tool_style: chat.tool_style,
            dialect: chat.dialect.and_then(|name| dialect::dialect(&name)).map(|row| row.name),
            models: self.models.clone(),
            thinking: chat.thinking,
            reading: chat.reading,
        }
    }

    /// What the server needs to know.
    pub fn server_settings(&self, store: Arc<dyn Store>) -> ServerSettings {
        ServerSettings {
            caller: self.caller(),
            store,
            access: Access {
                api_key: self.api_key.clone().map(|key| key.0),
                key_required: !self.listen.ip().is_loopback(),
                allowed_hosts: self.allowed_hosts.clone(),
            },
            grace: server::GRACE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Search {
        engine: String,
    }

    #[test]
    fn a_file_is_read_and_flags_win() {
        let text = "model = \"a\"\nlisten = \"127.0.0.1:1\"\n\n[user]\nlevel = \"admin\"\n\n[search]\nengine = \"x\"\n\n[limits]\nmax_rounds = 3\n";
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let flags = Flags { config: Some(file.path().into()), model: Some("b".into()), ..Flags::default() };
        let settings = Settings::load(&flags, &["search"]).unwrap();
        assert_eq!(settings.model.as_deref(), Some("b"));
        assert_eq!(settings.listen.port(), 1);
        assert_eq!(settings.caller().level, Permission::Admin);
        assert_eq!(settings.limits.max_rounds, 3);
        assert_eq!(settings.host_table::<Search>("search"), Ok(Search { engine: "x".into() }));
        assert_eq!(settings.host_table::<Search>("other"), Ok(Search::default()));
    }

    #[test]
    fn a_fault_names_its_line() {
        let error = Settings::from_toml("[search]\nengine = 1\n\n[user]\nlevl = \"admin\"\n", &["search"])
            .unwrap_err();
        assert!(error.contains("line 5") && error.contains("levl") && error.contains("level"), "{error}");
        let error = Settings::from_toml("[user]\nlevel = \"king\"", &[]).unwrap_err();
        assert!(error.contains("guest"), "{error}");
        let error = Settings::from_toml("search.engine = 1\nmodl = 2", &["search"]).unwrap_err();
        assert!(error.contains("line 2") && error.contains("modl"), "{error}");
        let error =
            Settings::from_toml("[models.m]\ndialect = \"hermes\"\n[models.n]\ndialect = \"hermed\"", &[]);
        let error = error.unwrap_err();
        assert!(
            error.contains("line 4") && error.contains("`hermed`") && error.contains("qwen3_coder"),
            "{error}"
        );
        let error = Settings::from_toml("[models.m]\ndialekt = \"hermes\"", &[]).unwrap_err();
        assert!(
            error.contains("line 2") && error.contains("dialekt") && error.contains("`dialect`"),
            "{error}"
        );
        let error = Settings::from_toml("[models.m]", &[]).unwrap_err();
        assert!(error.contains("line 1") && error.contains("`dialect`"), "{error}");
        let error = Settings::from_toml("[models.\"a*b\"]\ndialect = \"hermes\"", &[]).unwrap_err();
        assert!(error.contains("`a*b`"), "{error}");
        let error = Settings::from_toml("upstream = ", &[]).unwrap_err();
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn the_reading_is_handed_on() {
        let text = "[chat.reading]\nonly_closed = true\ntrim_values = true\n";
        let settings = Settings::from_toml(text, &[]).unwrap().chat_settings();
        assert_eq!(Ok(settings.reading), "only_closed,trim_values".parse());
        assert_eq!(Settings::default().chat_settings().reading, Reading::default());
        let error = Settings::from_toml("[chat.reading]\nonly_close = true", &[]).unwrap_err();
        assert!(error.contains("line 2") && error.contains("`only_closed`"), "{error}");
        let error = Settings::from_toml("[chat.reading]\nonly_closed = \"yes\"", &[]).unwrap_err();
        assert!(error.contains("line 2") && error.contains("boolean"), "{error}");
    }

    #[test]
    fn a_model_has_its_own_dialect() {
        let text = "[chat]\ndialect = \"hermes\"\n[models.\"gemma-4*\"]\ndialect = \"gemma4\"";
        let chat = Settings::from_toml(text, &[]).unwrap().chat_settings();
        assert_eq!(
            (chat.dialect_of("gemma-4-9b"), chat.dialect_of("other")),
            (Some("gemma4"), Some("hermes"))
        );
    }

    #[test]
    fn an_unknown_dialect_names_the_known_ones() {
        let settings =
            Settings { chat: Chat { dialect: Some("x".into()), ..Chat::default() }, ..Settings::default() };
        assert!(settings.check().unwrap_err().contains("hermes"));
    }

    /// The settings of a file with this text and of these flags.
    fn load(text: &str, flags: Flags) -> Result<Settings, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Settings::load(&Flags { config: Some(file.path().into()), ..flags }, &[])
    }

    #[test]
    fn what_is_empty_is_not_set() {
        let empty = || Flags {
            config: None,
            listen: Some(String::new()),
            upstream: Some(String::new()),
            upstream_api_key: Some(Secret(String::new())),
            model: Some(String::new()),
            data_dir: Some(PathBuf::new()),
            api_key: Some(Secret(String::new())),
        };
        let text = "listen = \"127.0.0.1:1\"\nupstream = \"demo\"\nupstream_api_key = \"u\"\nmodel = \"m\"\n\
                    data_dir = \"d\"\napi_key = \"k\"";
        let settings = load(text, empty()).unwrap();
        assert_eq!((settings.listen.port(), settings.upstream.as_deref()), (1, Some("demo")));
        assert_eq!((settings.model.as_deref(), settings.data_dir), (Some("m"), PathBuf::from("d")));
        assert_eq!(
            (settings.api_key.unwrap().0, settings.upstream_api_key.unwrap().0),
            ("k".into(), "u".into())
        );
        let settings = load("upstream = \"\"\nmodel = \"\"\napi_key = \"\"", empty()).unwrap();
        assert!(settings.upstream.is_none() && settings.model.is_none() && settings.api_key.is_none());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_key() {
        for (text, told) in [
            ("[limits]\nmax_rounds = 0", "limits.max_rounds: 0"),
            ("[limits]\nmax_calls = 0", "limits.max_calls: 0"),
            ("[limits]\nmax_identical_calls = 0", "limits.max_identical_calls: 0"),
            ("[limits]\nmax_seconds = 0", "limits.max_seconds: 0"),
            ("[limits]\nidle_seconds = 0", "limits.idle_seconds: 0"),
            ("[chat]\ndialect = \"x\"", "chat.dialect"),
            ("upstream = \"localhost:8080\"", "upstream: "),
            ("upstream = \"ftp://a/v1\"", "not an HTTP address"),
            ("upstream = \"http://a:b@c/v1\"", "TOOLRACK_UPSTREAM_API_KEY"),
            ("upstream = \"http://c/v1?key=x\"", "no base address has"),
            ("listen = \"7331\"", "127.0.0.1:7331"),
            ("allowed_hosts = [\"http://rack.lan\"]", "allowed_hosts"),
        ] {
            let error = load(text, Flags::default()).unwrap_err();
            assert!(error.contains(told) && error.contains(": ") && error.contains("tmp"), "{text}: {error}");
        }
        let flags = Flags { upstream: Some("8080".into()), ..Flags::default() };
        assert!(load("", flags).unwrap_err().starts_with("--upstream: "));
    }
}
