//! `POST /api/chats/{id}/turn` and `POST /api/chats/{id}/stop`.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, Method, StatusCode},
};
use jiff::{SignedDuration, Timestamp};
use registry_core::{
    json::is_within,
    random_id,
    store::{ChatChange, ChatError, ChatMessage},
    trace::Trace,
};
use schemars::JsonSchema;
use serde::Serialize;
use toolrack_apis::{BadRequest, Decoded, Front, Message, Role, openai::OpenAiFront};

use super::{
    Access, NOT_FOUND,
    keeper::Keeper,
    kept_message::Kept,
    message::{By, Shown, Status},
    plan::{Asked, GO_ON, NewTurn},
    reading,
    running::{Live, Running, said_before},
    settings::Settings,
    title,
};
use crate::{
    beside::{SMALL, beside},
    server::{
        App,
        callers::identity::Identity,
        openapi::Operation,
        requests::{
            api_error::ApiError,
            body::{JsonBody, decode},
            name::Name,
            public_url::PublicUrl,
        },
    },
    traces,
    turn::has_pictures_of_user,
};

/// The largest message of a user, in bytes.
const MAX_MESSAGE: usize = 24 << 20;
/// How long a turn on another server has to stop.
const STOPS_IN: Duration = Duration::from_secs(6);
const STOP_POLL: Duration = Duration::from_millis(200);

/// A turn that runs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ChatTurn")]
pub(super) struct TurnShown {
    /// The answer that it writes.
    pub(super) message: String,
    /// How far the chat's messages have followed its events.
    pub(super) position: u64,
    /// Whether it runs on this server.
    pub(super) here: bool,
}

/// A turn that has begun.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BegunChatTurn")]
pub(super) struct Begun {
    turn: TurnShown,
    /// The user's message, if there is a new one.
    message: Option<Shown>,
    /// The answer.
    answer: Shown,
}

pub(super) fn start_operation() -> Operation {
    Operation::new(Method::POST, "Chats", "start_chat_turn", "Ask the model in a chat")
        .details("The turn belongs to the server: it goes on without the client, until the model has answered or it is stopped.")
        .path("id", "The chat's id.")
        .reads::<NewTurn>()
        .answers::<Begun>(202, "The turn, which has begun.")
        .refuses(403, "The user may not use the persona of the chat's settings (`persona_not_allowed`).")
        .refuses(404, NOT_FOUND)
        .refuses(409, "A turn of the chat runs (`turn_running`), or there is no room for more messages (`chat_full`, `chats_full`).")
        .refuses(429, "As many turns of the user run as may (`too_many_turns`).")
}

pub(super) fn stop_operation() -> Operation {
    Operation::new(Method::POST, "Chats", "stop_chat_turn", "Stop the turn of a chat")
        .path("id", "The chat's id.")
        .answers::<Stopped>(200, "Whether a turn was running. What was done until then is kept.")
        .refuses(404, NOT_FOUND)
}

/// Whether something was stopped.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "StoppedChatTurn")]
pub(super) struct Stopped {
    stopped: bool,
}

pub(super) async fn stop(access: Access, Name(id): Name) -> Result<Json<Stopped>, ApiError> {
    let chat = access.chat_id(&id);
    access.chat(&id).await?;
    if let Some(live) = access.turns.of(&chat).filter(|live| !live.has_ended()) {
        live.stop().await;
        return Ok(Json(Stopped { stopped: true }));
    }
    let runs = async || {
        let chat = access.chat(&id).await?;
        Ok::<_, ApiError>(chat.running(access.since()).is_some())
    };
    let stopped = runs().await? && access.store.stop_chat_turn(chat.key()).await?;
    let end = tokio::time::Instant::now() + STOPS_IN;
    while stopped && runs().await? && tokio::time::Instant::now() < end {
        tokio::time::sleep(STOP_POLL).await;
    }
    Ok(Json(Stopped { stopped }))
}

fn new_id(kind: &str) -> Result<String, ApiError> {
    random_id()
        .map(|id| format!("{kind}_{id}"))
        .map_err(|_| ApiError::internal("the system gives no random numbers"))
}

fn bad(fault: BadRequest) -> ApiError {
    let param = if fault.param.starts_with("messages") { "content" } else { "settings" };
    ApiError::invalid(param, fault.message)
}

pub(super) async fn start(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    access: Access,
    Name(id): Name,
    JsonBody(new): JsonBody<NewTurn>,
) -> Result<(StatusCode, Json<Begun>), ApiError> {
    new.check()?;
    let base = PublicUrl::of(app.settings.public_url.as_ref(), &headers).map(|base| base.to_string());
    let trace = traces::of_request(app.settings.traces.as_ref(), &headers);
    let begun = begin(app, identity, (base, trace), access, id, new).await?;
    Ok((StatusCode::ACCEPTED, Json(begun)))
}

async fn begin(
    app: App,
    identity: Identity,
    (base, trace): (Option<String>, Option<Trace>),
    access: Access,
    id: String,
    mut new: NewTurn,
) -> Result<Begun, ApiError> {
    let chat = access.chat(&id).await?;
    access.documents.learn_of_chat(&identity, &id).await;
    let settings = Settings::of(&chat.settings)?;
    let all = access.whole_messages(&id).await?;
    let has_content = new.content.is_some();
    let backend = app.backend.for_request(identity.registry.clone(), identity.standing());
    let asked = Asked::of(&new, &settings, &backend, &identity.caller);
    let is_small = new.content.as_ref().is_none_or(|content| is_within(content, SMALL));
    let size = if is_small { 0 } else { MAX_MESSAGE } + all.iter().map(reading::bytes).sum::<usize>();
    let (leaf, chat_id) = (chat.leaf.clone(), id.clone());
    // All that the user has sized is done in there.
    let read = move || {
        let body = new.request(&settings, &chat_id);
        let body = serde_json::to_vec(&body).map_err(|fault| ApiError::internal(fault.to_string()))?;
        if body.len() > MAX_MESSAGE {
            let message = format!("the message is larger than {} MiB; send less at once", MAX_MESSAGE >> 20);
            let too_large = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message);
            return Err(too_large.param("content"));
        }
        let (parts, ()) = axum::http::Request::new(()).into_parts();
        let mut decoded = OpenAiFront.decode(&parts, &body).map_err(bad)?;
        let message = decoded.request.messages.pop().filter(|_| has_content);
        if message.as_ref().is_some_and(|message| message.parts.is_empty()) {
            return Err(ApiError::invalid("content", "`content` is empty; send a text, or parts"));
        }
        let plan = new.plan(&all, &leaf, message, &asked)?;
        let is_answer = |message| Shown::of(message).is_ok_and(|shown| shown.role == By::Assistant);
        let is_first = !all.iter().any(is_answer);
        Ok((decoded, plan, settings, is_first))
    };
    let (decoded, plan, settings, is_first) = decode(identity.sender(), size, read).await??;
    let Decoded { mut request, encoder } = decoded;

    let identity = match &settings.persona {
        Some(persona) => identity.under_persona(persona.clone()).await?,
        None => identity,
    };
    request.thinking = settings.thinking()?;
    let system = settings.system.as_deref().filter(|system| !system.trim().is_empty());
    request.conversation.has_instructions = system.is_some();
    request.conversation.begins_anew = true;
    request.conversation.goes_on = plan.is_amid_calls;
    request.messages =
        system.map(|system| Message::text(Role::System, system)).into_iter().chain(plan.last).collect();
    (request.conversation.earlier, request.conversation.found) = (plan.earlier, plan.found.clone());
    let has_pictures =
        has_pictures_of_user(&request.conversation.earlier) || has_pictures_of_user(&request.messages);
    let backend = app.backend.for_request(identity.registry.clone(), identity.standing());
    let backend = backend.reached_at(base).traced(trace);

    let now = access.clock.now();
    // Amid calls the turn gives all of the answer itself.
    let said = plan.goes_on.as_ref().filter(|_| !plan.is_amid_calls).map(said_before).map(|mut said| {
        said.push(Message::text(Role::User, GO_ON));
        said
    });
    let (user, written) = match plan.new {
        Some((parent, message)) => {
            let of_user = ((id.clone(), new_id("msg")?), parent, now, message);
            let (shown, written) = write(size, of_user).await?;
            (Some(shown), Some(written))
        }
        None => (None, None),
    };
    let answer = match plan.goes_on {
        Some(kept) => kept.shown,
        None => {
            let parent = user.as_ref().map(|user| user.id.clone()).or(plan.parent);
            Shown::begun(new_id("msg")?, parent, By::Assistant, after(now))
        }
    };
    let is_new = answer.parts.is_empty();
    let claim = format!("{}:{}", answer.id, new_id("turn")?);
    let key = access.key(&id);
    access.store.begin_chat_turn(key, &claim, now, &access.limits).await?;
    let live = Live::new(answer);
    let (answer, _) = live.so_far();
    let started = async {
        let turn = backend.start(request, identity.caller.clone()).map_err(bad)?;
        let begun = Kept { shown: answer.clone(), said: Vec::new(), found: Vec::new() };
        let begun = is_new.then(|| begun.stored()).transpose();
        let begun = begun.map_err(|fault| ApiError::internal(fault.to_string()))?;
        let messages: Vec<_> = written.into_iter().chain(begun).collect();
        match messages.is_empty() {
            true => {
                let change = ChatChange { leaf: Some(answer.id.clone()), ..ChatChange::default() };
                access.store.change_chat(key, change).await?;
            }
            false => access.store.add_chat_messages(key, messages, &access.limits).await?,
        }
        Ok::<_, ApiError>(turn)
    };
    let turn = match started.await {
        Ok(turn) => turn,
        Err(fault) => {
            if let Err(cause) = access.store.end_chat_turn(key, &claim).await {
                tracing::warn!(%cause, "chat_turn_not_ended");
            }
            return Err(fault);
        }
    };
    let question = user.as_ref().map(Shown::text);
    if let Some(title) = question.as_deref().filter(|_| chat.title.is_empty()).and_then(title::of_question) {
        let change = ChatChange {
            title: Some((title, title::QUESTION.to_owned())),
            if_titled_by: Some(title::QUESTION.to_owned()),
            ..ChatChange::default()
        };
        // The turn has begun, with a name or without.
        if let Err(cause) = access.store.change_chat(key, change).await {
            tracing::warn!(%cause, "chat_not_named");
        }
    }
    let chat_id = access.chat_id(&id);
    access.turns.add(chat_id.clone(), Arc::clone(&live));
    let keeper = Keeper {
        chat: chat_id.clone(),
        store: Arc::clone(&access.store),
        clock: Arc::clone(&access.clock),
        claim,
    };
    let running = Running {
        keeper,
        turns: access.turns.clone(),
        live,
        turn,
        encoder,
        said_before: said.unwrap_or_default(),
        found_before: plan.found,
        has_pictures,
        closing: app.closing.clone(),
    };
    let (upstream, store) = (app.backend.upstream().clone(), Arc::clone(&access.store));
    let closing = app.closing.clone();
    backend.spawn(async move {
        let answer = running.run().await;
        if is_first && answer.status == Status::Done && chat.titled_by == title::QUESTION {
            let question = question.unwrap_or_default();
            tokio::spawn(
                closing.run_until_cancelled_owned(title::name(upstream, store, chat_id, question, answer)),
            );
        }
    });
    let turn = TurnShown { message: answer.id.clone(), position: 0, here: true };
    Ok(Begun { turn, message: user, answer })
}

/// A message of the user, as it is shown and as it is kept.
async fn write(
    size: usize,
    (of, parent, now, message): ((String, String), Option<String>, Timestamp, Message),
) -> Result<(Shown, ChatMessage), ApiError> {
    let made = beside(size, move || {
        let kept = Kept::of_user((&of.0, of.1), parent, now, message);
        kept.stored().map(|stored| (kept.shown, stored))
    });
    let made = made.await.ok_or_else(|| ApiError::internal("this server is being stopped"))?;
    made.map_err(|fault| ApiError::internal(fault.to_string()))
}

/// An answer stands behind its question.
fn after(now: Timestamp) -> Timestamp {
    now.checked_add(SignedDuration::from_micros(1)).unwrap_or(now)
}

impl From<ChatError> for ApiError {
    fn from(fault: ChatError) -> Self {
        let (status, kind) = match &fault {
            ChatError::Store(cause) => return cause.clone().into(),
            ChatError::Unknown => (StatusCode::NOT_FOUND, "chat_not_found"),
            ChatError::TooManyChats { .. } => (StatusCode::CONFLICT, "chats_full"),
            ChatError::ChatFull { .. } => (StatusCode::CONFLICT, "chat_full"),
            ChatError::TurnRunning => (StatusCode::CONFLICT, "turn_running"),
            ChatError::TooManyTurns { .. } => (StatusCode::TOO_MANY_REQUESTS, "too_many_turns"),
            _ => return Self::internal(fault.to_string()),
        };
        Self::new(status, kind, fault.to_string())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use toolrack_apis::Content;

    use super::*;

    #[tokio::test]
    async fn b7_a_long_message_of_a_user_is_written_beside_the_runtime() {
        let message = |bytes: usize| Message::text(Role::User, "x".repeat(bytes));
        let of = |bytes: usize| {
            (("chat_1".to_owned(), "msg_1".to_owned()), None, Timestamp::UNIX_EPOCH, message(bytes))
        };
        let mut writing = std::pin::pin!(write(MAX_MESSAGE, of(1 << 20)));
        assert!(writing.as_mut().now_or_never().is_none(), "on the thread that asks");
        let (shown, stored) = writing.await.unwrap();
        assert_eq!((shown.id.as_str(), shown.text().len()), ("msg_1", 1 << 20));
        let kept = Kept::of(&stored).unwrap();
        assert!(matches!(&kept.said[0].parts[0].content, Content::Text(text) if text.len() == 1 << 20));
        assert!(write(9, of(9)).now_or_never().is_some());
    }
}
