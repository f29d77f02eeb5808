//! Conversations of OpenAI's Responses, which the server keeps: `previous_response_id`, `store`, and items of type `item_reference`:
//! <https://platform.openai.com/docs/api-reference/responses>.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use axum::{body::Bytes, http::HeaderMap, response::Response};
use jiff::Timestamp;
use registry_core::{
    CallerAuthority,
    store::{ConversationError, Conversations, StoredResponse},
};
use serde_json::Value;
use toolrack_apis::{
    Decoded, EarlierAnswer, Failure, FailureKind, Message, RawJson, Request,
    responses::{Addition, KeptItems, KeptResponse, ResponsesFront, read_addition, response_of_item},
};

use super::fronts::{StaticFront, reply};
use crate::{
    server::{
        callers::identity::Identity,
        requests::{
            api_error::ApiError,
            body::{Sender, decode},
            store_log,
        },
    },
    turn::{TurnAnswer, write_within},
};

/// More than a kept response has beside its messages and itself, in bytes.
const OTHER_BYTES: u64 = 2048;

/// An answer that is to be kept with the input of its request.
pub(in crate::server) struct Keeping {
    conversations: Conversations,
    /// Who says whether the user is still there.
    standing: Option<Arc<dyn CallerAuthority>>,
    tenant: String,
    user: String,
    previous: Option<String>,
    input: RawJson,
}

/// Why a request with a conversation is not answered.
pub(in crate::server) enum NotBegun {
    /// In the API's shape.
    Failure(Failure),
    Error(ApiError),
}

impl NotBegun {
    /// The answer instead.
    pub(in crate::server) fn answered(self, front: StaticFront) -> Result<Response, ApiError> {
        match self {
            Self::Failure(failure) => Ok(reply(front.failure(&failure))),
            Self::Error(error) => Err(error),
        }
    }
}

impl From<Failure> for NotBegun {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<ApiError> for NotBegun {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

/// Puts what is kept of a conversation before a request; what has to be kept of it.
///
/// # Errors
/// When the conversation is not kept.
pub(in crate::server) async fn begin(
    conversations: Option<&Conversations>,
    identity: &Identity,
    request: &mut Request,
) -> Result<Option<Keeping>, NotBegun> {
    let (tenant, user) = (identity.registry.tenant().to_owned(), identity.caller.user.clone());
    let previous = request.conversation.previous_response_id.take();
    if let Some(id) = &previous {
        let conversations = conversations.ok_or_else(|| not_continued(id, ConversationError::Disabled))?;
        let texts =
            conversations.chain(&tenant, &user, id).await.map_err(|error| not_continued(id, error))?;
        let size: usize = texts.iter().map(|text| text.len()).sum();
        identity.hold(2 * size)?;
        let read = move || texts.iter().map(|text| read_addition(text)).collect::<Result<Vec<_>, _>>();
        let mut earlier = decode(identity.sender(), size, read).await?.map_err(|error| not_read(&error))?;
        let conversation = &mut request.conversation;
        // Each has what was found before, too.
        conversation.found =
            earlier.last_mut().map(|last| std::mem::take(&mut last.found)).unwrap_or_default();
        for added in earlier {
            let begin = conversation.earlier.len();
            let EarlierAnswer { messages: Range { start, end }, seen } = added.answer;
            conversation.answers.push(EarlierAnswer { messages: begin + start..begin + end, seen });
            conversation.earlier.extend(added.messages);
        }
    }
    let conversations = conversations.filter(|conversations| conversations.are_kept());
    let keeping = conversations.zip(request.conversation.input.take());
    Ok(keeping.map(|(conversations, input)| Keeping {
        conversations: conversations.clone(),
        standing: identity.standing(),
        tenant,
        user,
        previous,
        input,
    }))
}

/// Decodes a request again, with the kept items that its input refers to.
///
/// # Errors
/// When one of them is not kept.
pub(in crate::server) async fn with_items(
    conversations: Option<&Conversations>,
    identity: &Identity,
    headers: HeaderMap,
    body: Bytes,
    ids: Vec<String>,
) -> Result<Decoded, NotBegun> {
    let first = ids.first().map(String::as_str).unwrap_or_default();
    let conversations = conversations.ok_or_else(|| no_item(first, ConversationError::Disabled))?;
    let (tenant, user) = (identity.registry.tenant(), &identity.caller.user);
    let mut by_response: HashMap<String, HashSet<String>> = HashMap::new();
    for id in ids {
        let response = response_of_item(&id).ok_or_else(|| no_item(&id, ConversationError::Unknown))?;
        by_response.entry(response).or_default().insert(id);
    }
    let (mut kept, mut marks, mut read) = (KeptItems::new(), Vec::new(), 0);
    for (at, (response, mut wanted)) in by_response.into_iter().enumerate() {
        let any = wanted.iter().next().cloned().unwrap_or_default();
        let failed = |error| no_item(&any, error);
        let stored = conversations.response(tenant, user, &response).await.map_err(failed)?;
        read += stored.size();
        conversations.check_read(at + 1, read).map_err(failed)?;
        identity.hold(stored.messages.len() + stored.given.len())?;
        let size = stored.messages.len() + stored.given.len();
        let find = move || {
            let found = items_of(&stored, |item| wanted.take(id_of(item)?))?;
            Ok((found, wanted, self::kept(&stored).read()?))
        };
        let (found, missing, read_by) =
            decode(identity.sender(), size, find).await?.map_err(|error| not_read(&error))?;
        if let Some(id) = missing.iter().next() {
            return Err(no_item(id, ConversationError::Unknown).into());
        }
        kept.extend(found);
        marks.extend(read_by);
    }
    let body_size = body.len();
    let read = move || ResponsesFront.decode_with(&headers, &body, &kept);
    let mut decoded = decode(identity.sender(), body_size, read).await?.map_err(Failure::from)?;
    // An item may be all of its conversation that comes.
    decoded.request.conversation.read = marks;
    Ok(decoded)
}

/// The items of a response that `wanted` gives an id for.
fn items_of(
    stored: &StoredResponse,
    mut wanted: impl FnMut(&Value) -> Option<String>,
) -> Result<Vec<(String, RawJson)>, serde_json::Error> {
    let kept = kept(stored);
    let items = kept.output()?.into_iter().chain(kept.input()?);
    Ok(items.filter_map(|item| Some((wanted(&item)?, RawJson::of(&item)))).collect())
}

/// A stored response, to be read.
pub(in crate::server) fn kept(stored: &StoredResponse) -> KeptResponse<'_> {
    KeptResponse { id: &stored.id, addition: &stored.messages, given: &stored.given }
}

/// The id of an item.
pub(in crate::server) fn id_of(item: &Value) -> Option<&str> {
    item.get("id")?.as_str()
}

fn not_continued(id: &str, error: ConversationError) -> Failure {
    let not_found = format!("Previous response with id '{id}' not found: {error}");
    let code = (error == ConversationError::Unknown).then_some("previous_response_not_found");
    Failure { code, ..failure("previous_response_id", FailureKind::InvalidRequest, not_found, error) }
}

fn no_item(id: &str, error: ConversationError) -> Failure {
    let not_found = format!(
        "Item with id '{id}' not found: it was deleted or has expired, belongs to another user, or its response was made with \
         `store: false`; send the item itself"
    );
    failure("input", FailureKind::InvalidRequest, not_found, error)
}

fn failure(param: &str, kind: FailureKind, not_found: String, error: ConversationError) -> Failure {
    let (kind, message) = match error {
        ConversationError::Unknown => (kind, not_found),
        ConversationError::Store(cause) => {
            store_log::failed(&cause);
            (FailureKind::Overloaded, "the server's store does not answer; try again".to_owned())
        }
        other => (FailureKind::InvalidRequest, other.to_string()),
    };
    Failure { param: Some(param.to_owned()), ..Failure::new(kind, message) }
}

/// What is kept is not what this version writes.
pub(in crate::server) fn not_read(error: &serde_json::Error) -> Failure {
    tracing::error!(%error, "kept_response_not_read");
    let message = "the server's store holds something that this server cannot read";
    Failure::new(FailureKind::Internal, message)
}

impl Keeping {
    /// Keeps an answer of about this size in bytes. The answer stands, whether that works or not.
    pub(in crate::server) async fn keep(self, given: Value, answer: TurnAnswer, size: usize) {
        // A user who was removed meanwhile has no conversations.
        if let Some(standing) = &self.standing
            && !matches!(standing.caller().await, Ok(Some(_)))
        {
            return;
        }
        let conversations = self.conversations.clone();
        let sender = Sender { tenant: self.tenant.clone(), user: self.user.clone(), _requests: None };
        let size = size + self.input.get().len();
        let kept = match decode(sender, size, move || self.stored(&given, &answer)).await {
            Ok(Ok(response)) => conversations.keep(response).await.map_err(|error| error.to_string()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the server is being stopped".to_owned()),
        };
        if let Err(error) = kept {
            tracing::warn!(%error, "response_not_kept");
        }
    }

    fn stored(self, given: &Value, answer: &TurnAnswer) -> Result<StoredResponse, serde_json::Error> {
        let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let Self { tenant, user, previous, input, conversations, .. } = self;
        let given_text = given.to_string();
        let beside = u64::try_from(given_text.len()).unwrap_or(u64::MAX).saturating_add(OTHER_BYTES);
        let max = conversations.limits().max_response_bytes.saturating_sub(beside);
        let TurnAnswer { messages, found, seen } = answer;
        let seen = seen.as_ref();
        let write =
            |answer: &[Message]| serde_json::to_string(&Addition { input: &input, answer, found, seen });
        Ok(StoredResponse {
            id: text("id"),
            tenant,
            user,
            previous,
            model: text("model"),
            messages: write_within(max, messages, write)?.into(),
            given: given_text.into(),
            created_at: Timestamp::now(),
        })
    }
}
