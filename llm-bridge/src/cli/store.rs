//! Opens the configured stores.

use std::sync::Arc;

use registry_core::{
    guard::{
        approval::Approvals,
        audit::{AuditSink, log::AuditLog},
        limits::Usage,
    },
    store::{
        ChatStore, Conversations, DeadLetters, ManifestCache, ManifestStore, MemoryManifests, StateStore,
        Store, StoreErrorKind,
    },
};
use toolrack_stores::{SqlStore, SqliteSettings, schedule::Schedule};

use super::{
    postgres, redis,
    settings::{Place, Settings},
};

/// The default file in the data folder.
const FILE: &str = "toolrack.db";

/// What Redis may stand before: counted calls, and the manifests of modules.
pub(super) type Shared = (Arc<dyn Usage>, Arc<dyn ManifestCache>);

/// The configured stores, behind the traits of their users.
#[derive(Clone)]
pub(super) struct Stores {
    /// The database behind most of them.
    pub(super) sql: Arc<SqlStore>,
    pub(super) store: Arc<dyn Store>,
    pub(super) conversations: Conversations,
    pub(super) chats: Arc<dyn ChatStore>,
    pub(super) state: Arc<dyn StateStore>,
    pub(super) usage: Arc<dyn Usage>,
    pub(super) approvals: Arc<dyn Approvals>,
    pub(super) audit: Arc<dyn AuditSink>,
    pub(super) log: Arc<dyn AuditLog>,
    pub(super) letters: Arc<dyn DeadLetters>,
    pub(super) manifest_cache: Arc<dyn ManifestCache>,
    pub(super) manifests: Arc<dyn ManifestStore>,
    pub(super) schedule: Schedule,
}

impl Stores {
    /// Whether the store exists; a database is assumed to.
    pub(super) fn are_there(settings: &Settings) -> bool {
        place(settings).map_or(true, |place| place.exists())
    }

    /// The place of the store.
    pub(super) fn place_of(settings: &Settings) -> Result<Place<'_>, String> {
        place(settings)
    }

    /// The same, for messages.
    pub(super) fn place(settings: &Settings) -> Result<String, String> {
        place(settings).map(|place| place.to_string())
    }

    /// Opens the stores; creates the file and its folder if they do not exist.
    pub(super) async fn open(settings: &Settings) -> Result<Self, String> {
        let sql = Arc::new(open(settings).await?);
        let (usage, manifest_cache): Shared = match settings.store.redis() {
            None => (sql.clone(), Arc::new(MemoryManifests::default())),
            Some(url) => redis::open(url, &sql).map_err(|fault| format!("store.redis: {fault}"))?,
        };
        Ok(Self {
            store: sql.clone(),
            conversations: Conversations::new(sql.clone(), settings.conversations.limits()),
            chats: sql.clone(),
            state: sql.clone(),
            usage,
            approvals: sql.clone(),
            audit: sql.clone(),
            log: sql.clone(),
            letters: sql.clone(),
            manifest_cache,
            manifests: sql.clone(),
            schedule: Schedule::new(sql.clone()),
            sql,
        })
    }
}

fn place(settings: &Settings) -> Result<Place<'_>, String> {
    if let Some(url) = settings.store.postgres() {
        return Ok(Place::Postgres(url));
    }
    let url = settings.store.url.as_deref().unwrap_or_default();
    match url.strip_prefix("sqlite:") {
        Some(file) => Ok(Place::File(file.strip_prefix("//").unwrap_or(file).into())),
        None if url.is_empty() => Ok(Place::File(settings.data_dir.join(FILE))),
        // The part before `@` may have a password.
        None => {
            let shown = url.rsplit('@').next().unwrap_or(url);
            Err(format!("store.url: `{shown}` is neither `sqlite:FILE` nor `postgres://…`"))
        }
    }
}

async fn open(settings: &Settings) -> Result<SqlStore, String> {
    let server = settings.store.server.clone();
    let durability = settings.store.durability;
    match place(settings)? {
        Place::Postgres(url) => postgres::open(url, server).await,
        Place::File(file) => {
            let opened = SqliteSettings { server, durability, ..SqliteSettings::new(file) }.open().await;
            opened.map_err(|fault| match fault.kind() {
                StoreErrorKind::Unavailable => {
                    format!("{fault}. Name a folder that can be written with --data-dir")
                }
                _ => fault.into(),
            })
        }
    }
}
