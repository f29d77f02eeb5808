//! What a server is made with.

use std::{sync::Arc, time::Duration};

use registry_core::{
    Caller, Permission, Registry,
    store::{ChatStore, Conversations, Store},
};
use toolrack_http::webhook::Webhooks;
use toolrack_remote::module::Modules;
use toolrack_stores::schedule::Schedule;

use super::{
    Access, AuditReading, Configured, Documents, ErasePerson, ExamineModel, MAX_CONNECTIONS, MakeBackup,
    PublicUrl, TryTool, Upload, UploadBackup, UploadLimits,
};
use crate::{
    mcp::McpSettings, metrics::Metrics, sign_in::SignIn, takeover::Takeover, traces::Traces,
    turn::TurnsElsewhere,
};

/// The default grace period of open answers when the server stops.
pub const GRACE: Duration = Duration::from_secs(10);

/// The default time that a request may take to come.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The default time for which a client may take nothing of what is sent to it.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Warnings about names of tools and modules that a registry does not have.
pub type UnknownNames = dyn Fn(&Registry) -> Vec<String> + Send + Sync;

/// The settings of a server.
#[derive(Clone, derive_more::Debug)]
#[debug("ServerSettings({access:?})")]
pub struct ServerSettings {
    /// The caller of requests without a key.
    pub caller: Caller,
    /// The highest level of this caller once a user has a key; `None` for no limit.
    pub level_with_keys: Option<Permission>,
    /// Authentication of requests.
    pub access: Access,
    /// The people who may sign in; `None` for users with keys only.
    pub sign_in: Option<Arc<SignIn>>,
    /// The address at which clients reach this server; `None` for the one that they name.
    pub public_url: Option<PublicUrl>,
    /// The store of users and keys.
    pub store: Arc<dyn Store>,
    /// The webhooks, for the list of dead letters.
    pub webhooks: Option<Webhooks>,
    /// The modules whose tools are in the registry.
    pub modules: Option<Modules>,
    /// The metrics.
    pub metrics: Metrics,
    /// Where traces of requests go; `None` for nowhere.
    pub traces: Option<Traces>,
    /// The MCP servers whose tools are in the registry.
    pub mcp_servers: Option<toolrack_remote::mcp::McpServers>,
    /// The accounts of users on those servers; `None` where no server has such.
    pub connections: Option<toolrack_remote::mcp::oauth::Connections>,
    /// How the tools are offered to MCP clients.
    pub mcp: McpSettings,
    /// The conversations that are kept for clients of OpenAI's Responses, with what clients of any API have not seen of theirs; `None`
    /// for none.
    pub conversations: Option<Conversations>,
    /// Where the chats of the page are kept; `None` for nowhere.
    #[debug(skip)]
    pub chats: Option<Arc<dyn ChatStore>>,
    /// The documents that tools search.
    pub documents: Option<Documents>,
    /// Who may add documents.
    pub upload: Upload,
    /// How much a user may add of them.
    pub upload_limits: UploadLimits,
    /// The model that extracts names and relations from documents, with a request for each passage; `None` for none.
    pub extractor: Option<registry_core::model::Model>,
    /// Whether it does so with new documents by itself, and not only when an admin asks for it.
    pub extracts: bool,
    /// This server's name as a module of another.
    pub module_name: String,
    /// The scheduled calls that this server makes.
    pub schedule: Option<Schedule>,
    /// The audit, for admins to read; `None` where it cannot be read.
    #[debug(skip)]
    pub audit: Option<AuditReading>,
    /// How long the server goes on when it is to stop, while it says that requests had better go elsewhere.
    pub drain: Duration,
    /// The grace period of open answers when the server stops.
    pub grace: Duration,
    /// How long the head of a request may take to come, and how long its body, which gets a second more for every 16 KiB. A connection
    /// without a request is kept as long.
    pub request_timeout: Duration,
    /// How long a client may take nothing of what is sent to it before its connection is closed.
    pub write_timeout: Duration,
    /// How many connections there may be at once; a quarter of them may have requests of one user under way. For health and admins there
    /// are some more.
    pub max_connections: usize,
    /// Asks models what they can do, for admins; `None` where that is not possible.
    #[debug(skip)]
    pub doctor: Option<Arc<dyn ExamineModel>>,
    /// Tries how models choose tools, for admins; `None` where that is not possible.
    #[debug(skip)]
    pub trials: Option<Arc<dyn TryTool>>,
    /// Erases what is kept of a person, for admins; `None` where that is not possible.
    #[debug(skip)]
    pub eraser: Option<Arc<dyn ErasePerson>>,
    /// Makes backups, for the operator; `None` where that is not possible.
    #[debug(skip)]
    pub backup: Option<Arc<dyn MakeBackup>>,
    /// Takes uploaded backups for the next start, for the operator; `None` where that is not possible.
    #[debug(skip)]
    pub restore: Option<Arc<dyn UploadBackup>>,
    /// Where the turns of other servers with the same store are; `None` for a server that is alone.
    pub elsewhere: Option<TurnsElsewhere>,
    /// The settings that the server was configured with, for admins to read.
    pub configured: Arc<[Configured]>,
    /// What the configuration names and a registry does not have, for the operator to read.
    #[debug(skip)]
    pub unknown_names: Option<Arc<UnknownNames>>,
    /// What this server takes over from the one before, and hands on, under `toolrack dev`.
    pub takeover: Option<Takeover>,
}

impl ServerSettings {
    /// Settings for a server on loopback with a chat, tools and users.
    pub fn new(caller: Caller, store: Arc<dyn Store>) -> Self {
        Self {
            caller,
            level_with_keys: None,
            access: Access::default(),
            sign_in: None,
            public_url: None,
            store,
            webhooks: None,
            modules: None,
            metrics: Metrics::default(),
            traces: None,
            mcp_servers: None,
            connections: None,
            mcp: McpSettings::default(),
            conversations: None,
            chats: None,
            documents: None,
            upload: Upload::default(),
            upload_limits: UploadLimits::default(),
            extractor: None,
            extracts: false,
            module_name: "toolrack".to_owned(),
            schedule: None,
            audit: None,
            drain: Duration::ZERO,
            grace: GRACE,
            request_timeout: REQUEST_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
            max_connections: MAX_CONNECTIONS,
            doctor: None,
            trials: None,
            eraser: None,
            backup: None,
            restore: None,
            elsewhere: None,
            configured: Arc::default(),
            unknown_names: None,
            takeover: None,
        }
    }
}
