//! Settings: the flags and `TOOLRACK_*` variables of the command line over `toolrack.toml` over the defaults.

mod audit;
mod check;
mod connections;
mod conversations;
#[cfg_attr(not(feature = "documents"), path = "documents/none.rs")]
mod documents;
mod flags;
mod gate;
mod language_model;
mod load;
mod modules;
mod open_files;
mod origins;
mod resource_tables;
mod resources;
mod store;
mod tables;
#[cfg(test)]
mod tests;
mod traces;
mod unknown_key;
mod upstreams;
mod variables;
mod webhooks;

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use registry_core::{Caller, Permission, ToolPattern, flow::FlowRules, store::Store};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::OnceCell;

pub use audit::AuditSettings;
pub use connections::ConnectionSettings;
pub use conversations::ConversationSettings;
pub use documents::DocumentSettings;
#[cfg(feature = "documents")]
pub use documents::EmbeddingSettings;
pub(super) use documents::migrate_documents;
pub use flags::{Flags, Secret};
pub use gate::GateSettings;
pub(super) use resource_tables::check as check_resource_tables;
pub use store::StoreSettings;
pub(super) use store::{Place, is_postgres};
pub use tables::{Chat, Guard, User};
use toolrack_dialects as dialect;
use toolrack_remote::{mcp::McpServerSettings, module::ModulesSettings};
pub use traces::TracesSettings;
pub use upstreams::UpstreamTable;
use variables::Unread;
pub use webhooks::WebhookSettings;

use super::address;
use crate::{
    mcp::McpSettings,
    server::{Access, AllowedOrigin, Configured, GRACE, PublicUrl, ServerSettings},
    sign_in::{SignIn, SignInSettings},
    turn::{ChatSettings, Limits, Models},
    upstream::Upstream,
};

/// All settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Address to serve on.
    #[serde(deserialize_with = "address::deserialize")]
    pub listen: SocketAddr,
    /// Base URL of the upstream, or `demo`; `None` to look for one.
    pub upstream: Option<String>,
    /// The upstreams by their names, where `upstream` is not set. The table `[upstream]` is the one named `default`.
    pub upstreams: BTreeMap<String, UpstreamTable>,
    /// Key for the upstream.
    pub upstream_api_key: Option<Secret>,
    /// Model for requests that name none.
    pub model: Option<String>,
    /// Data folder.
    pub data_dir: PathBuf,
    /// Key that clients must send.
    pub api_key: Option<Secret>,
    /// Key that opens `/metrics` and nothing else.
    pub metrics_key: Option<Secret>,
    /// Names of this server besides `localhost` and IP addresses.
    pub allowed_hosts: Vec<String>,
    /// Origins besides this server's own whose pages may use it.
    pub allowed_origins: Vec<AllowedOrigin>,
    /// A PEM file with certificate authorities that are trusted beside the system's, for all that is asked over TLS.
    pub ca_file: Option<PathBuf>,
    /// How many connections there may be at once; by default half of the files that the program may have open, at most 4096.
    pub max_connections: Option<usize>,
    /// How long the server goes on when it is stopped, while `/readyz` sends balancers elsewhere.
    pub drain_seconds: u64,
    /// How long open answers have when the server stops.
    pub shutdown_seconds: u64,
    /// The address at which clients reach this server; `None` for the one that they name.
    pub public_url: Option<PublicUrl>,
    /// The user of requests without a key.
    pub user: User,
    /// The people who may sign in with a provider; none by default.
    pub sign_in: Option<SignInSettings>,
    /// How chats are conducted.
    pub chat: Chat,
    /// The limits of a turn.
    pub limits: Limits,
    /// Settings of single models.
    pub models: Models,
    /// The persistent state.
    pub store: StoreSettings,
    /// What is kept of conversations.
    pub conversations: ConversationSettings,
    /// The documents that tools search.
    pub documents: DocumentSettings,
    /// Approval, concurrency and audit of calls.
    pub guard: Guard,
    /// What happens to calls that would send out what was read, or act after untrusted text.
    pub flow: FlowRules,
    /// Signed heads of the audit, and its retention.
    pub audit: AuditSettings,
    /// Traces for OpenTelemetry.
    pub traces: TracesSettings,
    /// The gate for calls of tools that require one; none by default.
    pub gate: Option<GateSettings>,
    /// The endpoints that are notified when tools change.
    pub webhooks: Vec<WebhookSettings>,
    /// MCP servers by the prefix of their tools.
    pub mcp_servers: BTreeMap<String, McpServerSettings>,
    /// How the accounts of users on MCP servers are kept.
    pub connections: ConnectionSettings,
    /// How the tools are offered to MCP clients.
    pub mcp: McpSettings,
    /// Files with tools; relative to this file.
    pub tool_files: Vec<PathBuf>,
    /// Tools that are left out of prompts until a search finds them.
    pub deferred_tools: Vec<ToolPattern>,
    /// This server's name as a module of another.
    pub module_name: String,
    /// The modules; their settings are top-level keys of the file.
    #[serde(skip)]
    pub modules: ModulesSettings,
    /// The host's own tables.
    #[serde(skip)]
    host: toml::Table,
    /// The file that was read.
    #[serde(skip)]
    file: Option<PathBuf>,
    /// What the file says.
    #[serde(skip)]
    written: Vec<Configured>,
    /// What was said on the command line and in the environment.
    #[serde(skip)]
    given: Vec<origins::Given>,
    /// The variables that the file names.
    #[serde(skip)]
    named_variables: Vec<String>,
    /// The variables that look like the program's and that nothing reads.
    #[serde(skip)]
    unread_variables: Unread,
    /// Whether the file has `[[tools]]`.
    #[serde(skip)]
    defines_tools: bool,
    /// The upstream, once found.
    #[serde(skip)]
    found_upstream: Arc<OnceCell<Upstream>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7331)),
            upstream: None,
            upstreams: BTreeMap::new(),
            upstream_api_key: None,
            model: None,
            data_dir: ".toolrack".into(),
            api_key: None,
            metrics_key: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            ca_file: None,
            max_connections: None,
            drain_seconds: 0,
            shutdown_seconds: GRACE.as_secs(),
            public_url: None,
            user: User::default(),
            sign_in: None,
            chat: Chat::default(),
            limits: Limits::default(),
            models: Models::default(),
            store: StoreSettings::default(),
            conversations: ConversationSettings::default(),
            documents: DocumentSettings::default(),
            guard: Guard::default(),
            flow: FlowRules::default(),
            audit: AuditSettings::default(),
            traces: TracesSettings::default(),
            gate: None,
            mcp_servers: BTreeMap::new(),
            connections: ConnectionSettings::default(),
            mcp: McpSettings::default(),
            tool_files: Vec::new(),
            deferred_tools: Vec::new(),
            module_name: "toolrack".to_owned(),
            modules: ModulesSettings::default(),
            webhooks: Vec::new(),
            host: toml::Table::new(),
            file: None,
            written: Vec::new(),
            given: Vec::new(),
            named_variables: Vec::new(),
            unread_variables: Unread::default(),
            defines_tools: false,
            found_upstream: Arc::default(),
        }
    }
}

impl Settings {
    /// One of the host's own tables.
    ///
    /// # Errors
    /// When it does not deserialize.
    pub fn host_table<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, String> {
        match self.host.get(name) {
            None => Ok(T::default()),
            Some(table) => {
                let file = self.file.as_deref().unwrap_or(Path::new(Self::DEFAULT_FILE)).display();
                let fault = |error: toml::de::Error| {
                    format!(
                        "{file}: [{name}]: {}",
                        unknown_key::hint(error.message(), &[]).unwrap_or_else(|| error.message().to_owned())
                    )
                };
                table.clone().try_into().map_err(fault)
            }
        }
    }

    /// Trusts the configured certificate authorities, before anything is asked.
    pub(super) fn trust(self) -> Result<Self, String> {
        let file = self.ca_file.as_deref().filter(|file| !file.as_os_str().is_empty());
        let trusted = file.map(toolrack_http::trust_ca_file).unwrap_or(Ok(()));
        trusted.map(|()| self).map_err(|error| format!("ca_file: {error}"))
    }

    /// Warns of variables that look like the program's and that nothing reads.
    pub(super) fn warn_of_unread_variables(&self) {
        self.unread_variables.warn();
    }

    /// The configuration file that was read.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The files that define tools: the configuration itself, if it has `[[tools]]`, and those it names.
    pub fn tool_files(&self) -> Vec<PathBuf> {
        let own = self.file.iter().filter(|_| self.defines_tools).cloned();
        let folder = self.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        own.chain(self.tool_files.iter().map(|file| folder.join(file))).collect()
    }

    /// The user as a caller.
    pub fn caller(&self) -> Caller {
        let usual = if self.is_local() { Permission::Admin } else { Permission::User };
        self.caller_at(self.user.level.unwrap_or(usual))
    }

    /// Whether the server is on loopback and needs no key.
    fn is_local(&self) -> bool {
        self.api_key.is_none() && self.listen.ip().is_loopback()
    }

    /// The user as a caller of another level.
    pub fn caller_at(&self, level: Permission) -> Caller {
        let caller = Caller::new(&self.user.id, level);
        let caller = match &self.user.allowed_modules {
            Some(modules) => caller.only_modules(modules),
            None => caller,
        };
        self.modules.for_guest(caller)
    }

    /// The model server. Without a configured URL it is looked for, once.
    ///
    /// # Errors
    /// When the configured URL is invalid.
    pub async fn upstream(&self) -> Result<Upstream, String> {
        let idle = Duration::from_secs(self.limits.idle_seconds);
        let key = self.upstream_api_key.clone().map(|key| key.0);
        let find = async || match self.configured_upstream()? {
            Some(upstream) => Ok(upstream),
            None => Ok(Upstream::find(key, idle).await),
        };
        self.found_upstream.get_or_try_init(find).await.cloned()
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
            parsing: chat.parsing,
        }
    }

    /// The people who may sign in; `None` for users with keys only.
    ///
    /// # Errors
    /// Names the setting and says what to do.
    pub(super) fn sign_in(&self) -> Result<Option<Arc<SignIn>>, String> {
        let Some(sign_in) = &self.sign_in else { return Ok(None) };
        Ok(Some(Arc::new(SignIn::new(sign_in.clone(), &self.sign_in_url()?)?)))
    }

    /// Tokens are for an address, which no request may choose.
    fn sign_in_url(&self) -> Result<String, String> {
        self.public_url.as_ref().map(PublicUrl::to_string).ok_or_else(|| {
            format!("sign_in: `public_url` is missing, the address at which clients reach this server, such as \"http://{}\"", self.listen)
        })
    }

    /// How many connections there may be.
    fn most_connections(&self) -> usize {
        self.max_connections.unwrap_or_else(open_files::most_connections)
    }

    /// The settings of the server.
    pub fn server_settings(&self, store: Arc<dyn Store>) -> ServerSettings {
        // People who sign in come by this name.
        let public = self.sign_in.as_ref().and(self.public_url.as_ref()).and_then(PublicUrl::host);
        self.with_uploads(ServerSettings {
            access: Access {
                api_key: self.api_key.clone().map(|key| key.0),
                metrics_key: self.metrics_key.clone().map(|key| key.0),
                // Behind a proxy everybody comes from this machine.
                key_required: self.sign_in.is_some() || !self.listen.ip().is_loopback(),
                allowed_hosts: self.allowed_hosts.iter().cloned().chain(public).collect(),
                allowed_origins: self.allowed_origins.clone(),
            },
            max_connections: self.most_connections(),
            drain: Duration::from_secs(self.drain_seconds),
            grace: Duration::from_secs(self.shutdown_seconds),
            public_url: self.public_url.clone(),
            mcp: self.mcp.clone(),
            module_name: self.module_name.clone(),
            level_with_keys: self.user.level.is_none().then_some(Permission::User),
            ..ServerSettings::new(self.caller(), store)
        })
    }
}
