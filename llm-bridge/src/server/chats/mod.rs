//! `/api/chats`: chats that the server keeps for their users, with turns that go on without a client.

mod export;
mod keeper;
mod kept_message;
mod list;
mod message;
mod messages;
mod plan;
mod readers;
mod reading;
mod record;
mod running;
mod settings;
mod stream;
mod title;
mod tree;
mod turn;

use std::{collections::HashSet, sync::Arc};

use axum::{
    Json,
    extract::FromRequestParts,
    http::{Method, StatusCode, request::Parts},
};
use jiff::Timestamp;
use registry_core::{
    clock::Clock,
    random_id,
    store::{ChatChange, ChatError, ChatKey, ChatLimits, ChatStore, StoreError, StoredChat},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    App,
    callers::identity::Identity,
    documents::DocumentAccess,
    openapi::Operation,
    requests::{
        api_error::ApiError,
        body::{Body, JsonBody, decode},
        name::Name,
    },
    routes::Routes,
};
use message::{Shown, Status};
use running::ChatId;
pub(super) use running::Turns;
use settings::{Settings, SettingsChange};
use tree::Tree;
use turn::TurnShown;

/// How often a change of settings is begun anew because others were changed meanwhile.
const TRIES: u32 = 100;

/// Why a chat is not found.
const NOT_FOUND: &str = "The user has no such chat (`chat_not_found`) or message (`message_not_found`), or this server keeps none (`chats_disabled`).";

/// The routes of chats.
pub(super) fn routes() -> Routes {
    Routes::new()
        .add("/api/chats", list::list, list::operation())
        .add("/api/chats", create, create_operation())
        .add("/api/chats/{id}", read, read_operation())
        .add("/api/chats/{id}", change, change_operation())
        .add("/api/chats/{id}", delete, delete_operation())
        .add("/api/chats/{id}/export", export::export, export::operation())
        .add("/api/chats/{id}/turn", turn::start, turn::start_operation())
        .add("/api/chats/{id}/turn", stream::events, stream::operation())
        .add("/api/chats/{id}/stop", turn::stop, turn::stop_operation())
        .add("/api/chats/{id}/messages/{message}", messages::delete, messages::delete_operation())
        .add("/api/chats/{id}/messages/{message}/files/{number}", messages::file, messages::file_operation())
}

/// Whether the server keeps a chat of the caller of that id.
pub(super) async fn is_kept(app: &App, identity: &Identity, chat: &str) -> Result<bool, ApiError> {
    let Some(chats) = &app.settings.chats else { return Ok(false) };
    let key = ChatKey { tenant: identity.registry.tenant(), user: &identity.caller.user, id: chat };
    Ok(chats.chat(key).await?.is_some())
}

/// The chats of the user of a request.
struct Access {
    store: Arc<dyn ChatStore>,
    clock: Arc<dyn Clock>,
    turns: Turns,
    documents: DocumentAccess,
    limits: ChatLimits,
    tenant: String,
    user: String,
    identity: Identity,
}

impl FromRequestParts<App> for Access {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let identity = parts.extensions.get::<Identity>();
        let identity = identity.ok_or_else(|| ApiError::internal("the caller is not known"))?;
        let store = app.settings.chats.clone().ok_or_else(|| {
            let message = "this server keeps no chats: its operator has switched them off";
            ApiError::not_found("chats_disabled", message)
        })?;
        Ok(Self {
            store,
            clock: Arc::clone(identity.registry.clock()),
            turns: app.chat_turns.clone(),
            documents: app.documents.clone(),
            limits: ChatLimits::DEFAULT,
            tenant: identity.registry.tenant().to_owned(),
            user: identity.caller.user.clone(),
            identity: identity.clone(),
        })
    }
}

impl Access {
    fn owner(&self) -> (&str, &str) {
        (&self.tenant, &self.user)
    }

    fn key<'a>(&'a self, id: &'a str) -> ChatKey<'a> {
        ChatKey { tenant: &self.tenant, user: &self.user, id }
    }

    fn chat_id(&self, id: &str) -> ChatId {
        ChatId { tenant: self.tenant.clone(), user: self.user.clone(), id: id.to_owned() }
    }

    /// A turn whose server was last heard of at this time or before runs no more.
    fn since(&self) -> Timestamp {
        self.limits.since(self.clock.now())
    }

    /// Ends messages whose server has ended. What their tools have asked can still be answered where the calls are kept.
    async fn cut_off(&self, messages: Vec<&mut Shown>) -> Result<(), ApiError> {
        let mut open = HashSet::new();
        if messages.iter().any(|message| message.questions().next().is_some()) {
            let own = self.identity.registry.pending_questions_of(&self.user).await?;
            open.extend(own.into_iter().filter(|asked| asked.call.is_some()).map(|asked| asked.id));
        }
        messages.into_iter().for_each(|message| message.end(Status::CutOff, &open));
        Ok(())
    }

    /// The chat of that id.
    async fn chat(&self, id: &str) -> Result<StoredChat, ApiError> {
        Ok(self.store.chat(self.key(id)).await?.ok_or(ChatError::Unknown)?)
    }
}

/// A chat in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ChatHead")]
struct Head {
    id: String,
    /// Its name; empty as long as it has no message.
    title: String,
    /// `question`, `model` or `user`.
    titled_by: String,
    pinned: bool,
    /// Whether a turn of it runs.
    running: bool,
    /// When it was begun (UTC).
    created_at: Timestamp,
    /// When a message was last added (UTC).
    updated_at: Timestamp,
}

impl Head {
    fn of(chat: &StoredChat, since: Timestamp) -> Self {
        Self {
            id: chat.id.clone(),
            title: chat.title.clone(),
            titled_by: chat.titled_by.clone(),
            pinned: chat.pinned,
            running: chat.running(since).is_some(),
            created_at: chat.created_at,
            updated_at: chat.updated_at,
        }
    }
}

/// A chat without its messages.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Chat")]
struct ChatShown {
    #[serde(flatten)]
    head: Head,
    settings: Settings,
    /// The last message of the branch that is shown.
    leaf: Option<String>,
}

impl ChatShown {
    fn of(chat: &StoredChat, since: Timestamp) -> Result<Self, ApiError> {
        let leaf = Some(chat.leaf.clone()).filter(|leaf| !leaf.is_empty());
        Ok(Self { head: Head::of(chat, since), settings: Settings::of(&chat.settings)?, leaf })
    }
}

/// A chat with its messages.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WholeChat")]
struct Whole {
    #[serde(flatten)]
    chat: ChatShown,
    /// The turn that runs.
    turn: Option<TurnShown>,
    /// A tree, oldest first.
    messages: Vec<Shown>,
    /// How large the messages are as they are kept.
    #[serde(skip)]
    bytes: usize,
}

/// A new chat.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewChat")]
struct New {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    settings: SettingsChange,
}

impl Body for New {
    const EXAMPLE: &str = "`{}`, or `{\"title\": \"…\", \"settings\": {\"model\": \"…\"}}`";
}

fn create_operation() -> Operation {
    Operation::new(Method::POST, "Chats", "create_chat", "Begin a chat")
        .reads::<New>()
        .answers::<ChatShown>(201, "The chat.")
        .refuses(404, NOT_FOUND)
        .refuses(409, "The user has as many chats as one may have (`chats_full`).")
}

async fn create(
    access: Access,
    JsonBody(New { title, settings }): JsonBody<New>,
) -> Result<(StatusCode, Json<ChatShown>), ApiError> {
    let now = access.clock.now();
    let settings = Settings::default().changed(settings)?.json()?;
    let title = title.as_deref().map(checked_title).transpose()?;
    let titled_by = if title.is_some() { title::USER } else { title::QUESTION };
    let id = random_id().map_err(|_| ApiError::internal("the system gives no random numbers"))?;
    let chat = StoredChat {
        id: format!("chat_{id}"),
        title: title.unwrap_or_default(),
        titled_by: titled_by.to_owned(),
        pinned: false,
        created_at: now,
        updated_at: now,
        leaf: String::new(),
        settings: settings.into(),
        turn: None,
    };
    let shown = ChatShown::of(&chat, access.since())?;
    access.store.begin_chat(access.owner(), chat, &access.limits).await?;
    Ok((StatusCode::CREATED, Json(shown)))
}

/// A title that somebody has written.
fn checked_title(title: &str) -> Result<String, ApiError> {
    let title = title.trim();
    let length = title.chars().count();
    if length == 0 || length > title::MAX_TITLE || title.contains(title::is_unseen) {
        let message =
            format!("`title` has to have 1 to {} characters, and no control characters", title::MAX_TITLE);
        return Err(ApiError::invalid("title", message));
    }
    Ok(title.to_owned())
}

fn read_operation() -> Operation {
    Operation::new(Method::GET, "Chats", "read_chat", "A chat with all of its messages")
        .path("id", "The chat's id.")
        .answers::<Whole>(200, "The chat.")
        .refuses(404, NOT_FOUND)
}

async fn read(access: Access, Name(id): Name) -> Result<Json<Whole>, ApiError> {
    Ok(Json(whole(&access, &id).await?))
}

/// A chat with its messages, as they are at this moment.
async fn whole(access: &Access, id: &str) -> Result<Whole, ApiError> {
    let mut whole = as_kept(access, id).await?;
    let is_lost = |whole: &Whole| {
        whole.turn.is_none() && whole.messages.iter().any(|message| message.status == Status::Running)
    };
    if is_lost(&whole) {
        // Its turn may have begun or ended between the two questions to the store.
        whole = as_kept(access, id).await?;
    }
    let Whole { turn, messages, .. } = &mut whole;
    let mut cut = Vec::new();
    for message in messages {
        match message.status {
            _ if turn.as_ref().is_some_and(|turn| turn.message == message.id) => {
                message.status = Status::Running
            }
            Status::Running | Status::CutOff => cut.push(message),
            _ => {}
        }
    }
    access.cut_off(cut).await?;
    Ok(whole)
}

async fn as_kept(access: &Access, id: &str) -> Result<Whole, ApiError> {
    let chat = access.chat(id).await?;
    let all = access.messages(id).await?;
    let size = all.iter().map(|message| message.document.len()).sum();
    let read = move || all.iter().map(Shown::of).collect::<Result<Vec<_>, _>>();
    let mut messages = decode(access.identity.sender(), size, read).await??;
    let since = access.since();
    let mut turn = chat.running(since).map(|turn| TurnShown {
        message: running::answer_of(&turn.id).to_owned(),
        position: 0,
        here: false,
    });
    let live = access.turns.of(&access.chat_id(id)).filter(|live| !live.has_ended());
    if let (Some(live), Some(turn)) = (live, &mut turn) {
        let (shown, position) = live.so_far();
        if shown.id == turn.message {
            (turn.position, turn.here) = (position, true);
            if let Some(message) = messages.iter_mut().find(|message| message.id == shown.id) {
                *message = shown;
            }
        }
    }
    Ok(Whole { chat: ChatShown::of(&chat, since)?, turn, messages, bytes: size })
}

/// What changes of a chat: that which is named.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ChatChange")]
struct Change {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    pinned: Option<bool>,
    /// A message of the branch that is to be shown.
    #[serde(default)]
    leaf: Option<String>,
    #[serde(default)]
    settings: Option<SettingsChange>,
}

impl Body for Change {
    const EXAMPLE: &str =
        "`{\"title\": \"…\"}`, `{\"pinned\": true}`, `{\"leaf\": \"msg_…\"}` or `{\"settings\": {…}}`";
}

fn change_operation() -> Operation {
    Operation::new(
        Method::POST,
        "Chats",
        "change_chat",
        "Rename or pin a chat, change its settings, or show another branch",
    )
    .path("id", "The chat's id.")
    .reads::<Change>()
    .answers::<ChatShown>(200, "The chat as it is now.")
    .refuses(404, NOT_FOUND)
    .refuses(409, "The user's chats have no room for these settings (`chats_full`).")
}

async fn change(
    access: Access,
    Name(id): Name,
    JsonBody(Change { title, pinned, leaf, settings }): JsonBody<Change>,
) -> Result<Json<ChatShown>, ApiError> {
    access.chat(&id).await?;
    let leaf = match leaf {
        Some(leaf) => {
            let all = access.messages(&id).await?;
            let tree = Tree::of(&all);
            let last = tree.leaf_below(&leaf).ok_or_else(|| messages::unknown().param("leaf"))?;
            Some(last.id.clone())
        }
        None => None,
    };
    let title = title.as_deref().map(checked_title).transpose()?;
    let title = title.map(|title| (title, title::USER.to_owned()));
    let change = ChatChange { title, pinned, leaf, ..ChatChange::default() };
    match settings {
        None => {
            access.store.change_chat(access.key(&id), change).await?;
        }
        Some(settings) => change_with_settings(&access, &id, change, &settings).await?,
    }
    Ok(Json(ChatShown::of(&access.chat(&id).await?, access.since())?))
}

/// Changes settings as they are by now, and the rest with them.
async fn change_with_settings(
    access: &Access,
    id: &str,
    change: ChatChange,
    settings: &SettingsChange,
) -> Result<(), ApiError> {
    for _ in 0..TRIES {
        let before = access.chat(id).await?.settings;
        let now = Settings::of(&before)?.changed(settings.clone())?.json()?;
        let ChatLimits { max_chats, max_user_bytes, .. } = access.limits;
        let change = ChatChange {
            settings: Some(now.into()),
            if_settings: Some(Arc::clone(&before)),
            max_user_bytes: Some(max_user_bytes),
            ..change.clone()
        };
        if access.store.change_chat(access.key(id), change).await? {
            return Ok(());
        }
        if access.chat(id).await?.settings == before {
            return Err(ChatError::TooManyChats { max: max_chats, bytes: max_user_bytes }.into());
        }
    }
    Err(StoreError::conflict(format!("the settings of {id} are changed all the time")).into())
}

fn delete_operation() -> Operation {
    Operation::new(Method::DELETE, "Chats", "delete_chat", "Delete a chat for good, and stop its turn")
        .path("id", "The chat's id.")
        .answers_nothing(204, "It is gone.")
        .refuses(404, NOT_FOUND)
}

async fn delete(access: Access, Name(id): Name) -> Result<StatusCode, ApiError> {
    if !access.store.delete_chat(access.key(&id)).await? {
        return Err(ChatError::Unknown.into());
    }
    // A turn on another server stops when it next asks whether it has to.
    if let Some(live) = access.turns.of(&access.chat_id(&id)) {
        live.stop().await;
    }
    access.documents.forget_chat(&access.identity, &id).await;
    // What was allowed in it alone. The chat is gone in any case, and its id is of no other.
    let forgotten = access.identity.registry.forget_chat_rules(&access.user, &id).await;
    if let Err(cause) = forgotten {
        tracing::warn!(%cause, "rules_of_chat_not_deleted");
    }
    Ok(StatusCode::NO_CONTENT)
}
