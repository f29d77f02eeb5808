//! The responses that are kept for clients of OpenAI's Responses: `/v1/responses/{id}` and below:
//! <https://platform.openai.com/docs/api-reference/responses>.

use std::sync::Arc;

use axum::{
    Extension, Json,
    body::Bytes,
    extract::State,
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use registry_core::store::{ConversationError, Conversations, StoredResponse};
use serde::Deserialize;
use serde_json::{Value, json};

use super::conversations::{id_of, kept, not_read};
use crate::server::{
    App,
    callers::identity::Identity,
    openapi::{JsonObject, Operation},
    requests::{
        api_error::ApiError,
        body::{Sender, decode},
        name::Name,
        query::QueryParameters,
    },
    routes::Routes,
};

const INVALID: &str = "invalid_request_error";
/// How many items a page of a list has.
const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;
/// How many times a response is in memory of which items are listed: as it is kept, as it is decoded, and as it is sent.
const WHEN_LISTED: usize = 3;

pub(in crate::server) fn routes() -> Routes {
    let operation = |method, id, summary, about| {
        Operation::new(method, "Chat", id, summary)
            .path("id", about)
            .refuses(400, "A parameter is not valid (`invalid_request_error`).")
            .refuses(404, "There is no such response of this user (`invalid_request_error`).")
    };
    Routes::new()
        .add(
            "/v1/responses/compact",
            compact,
            Operation::new(
                Method::POST,
                "Chat",
                "compact_response",
                "Refused: conversations are not made shorter here",
            )
            .answers::<JsonObject>(200, "Never.")
            .refuses(501, "Always (`not_supported`)."),
        )
        .add(
            "/v1/responses/{id}",
            retrieve,
            operation(
                Method::GET,
                "get_response",
                "A response that is kept, as it was given",
                "The response's id.",
            )
            .query_flag("stream", "Not offered: only responses in the background can be streamed again.")
            .answers::<JsonObject>(200, "The response."),
        )
        .add(
            "/v1/responses/{id}",
            delete,
            operation(
                Method::DELETE,
                "delete_response",
                "Forgets a response that is kept",
                "The response's id. What continues it cannot be continued any more.",
            )
            .answers::<JsonObject>(200, "It is deleted."),
        )
        .add(
            "/v1/responses/{id}/input_items",
            input_items,
            operation(
                Method::GET,
                "list_input_items",
                "The items that a response answers",
                "The response's id.",
            )
            .details(
                "Those of its request and, before them, the items of the conversation that it continues.",
            )
            .query("limit", "How many items, from 1 to 100; 20 by default.")
            .query("order", "`asc` for the oldest first, or `desc`, which is the default.")
            .query("after", "The id of the item after which the list goes on: `last_id` of the page before.")
            .answers::<JsonObject>(200, "A page of the list."),
        )
        .add(
            "/v1/responses/{id}/cancel",
            cancel,
            operation(
                Method::POST,
                "cancel_response",
                "Refused: only responses in the background can be cancelled",
                "The response's id.",
            )
            .answers::<JsonObject>(200, "Never: this server has no responses in the background."),
        )
}

fn no_response(id: &str) -> ApiError {
    ApiError::not_found(INVALID, format!("Response with id '{id}' not found."))
}

fn failure(id: &str, error: ConversationError) -> ApiError {
    match error {
        ConversationError::Store(cause) => cause.into(),
        ConversationError::TooLong { .. } => ApiError::invalid("id", error.to_string()),
        _ => no_response(id),
    }
}

/// The conversations that are kept, and whose they are.
struct Kept<'a> {
    conversations: &'a Conversations,
    identity: &'a Identity,
}

impl<'a> Kept<'a> {
    fn of(app: &'a App, identity: &'a Identity, id: &str) -> Result<Self, ApiError> {
        let conversations = app.settings.conversations.as_ref().ok_or_else(|| no_response(id))?;
        Ok(Self { conversations, identity })
    }

    /// A response of the user, if it is there, which is in memory so many times until the request is answered.
    async fn find(&self, id: &str, times: usize) -> Result<Option<StoredResponse>, ApiError> {
        let (conversations, id) = (self.conversations.clone(), id.to_owned());
        let (tenant, user) = (self.identity.registry.tenant().to_owned(), self.identity.caller.user.clone());
        let read = async move {
            match conversations.response(&tenant, &user, &id).await {
                Err(ConversationError::Unknown) => Ok(None),
                found => found.map(Some).map_err(|error| failure(&id, error)),
            }
        };
        let bytes = move |found: &Option<StoredResponse>| times * found.as_ref().map_or(0, in_memory);
        self.identity.read(read, bytes).await
    }

    async fn response(&self, id: &str, times: usize) -> Result<StoredResponse, ApiError> {
        self.find(id, times).await?.ok_or_else(|| no_response(id))
    }
}

fn in_memory(stored: &StoredResponse) -> usize {
    stored.messages.len() + stored.given.len()
}

/// A response as it was given, which is sent without a copy.
struct Given(Arc<str>);

impl AsRef<[u8]> for Given {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[derive(Deserialize)]
struct RetrieveQuery {
    stream: Option<bool>,
}

async fn retrieve(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
    QueryParameters(query): QueryParameters<RetrieveQuery>,
) -> Result<Response, ApiError> {
    let StoredResponse { given, .. } = Kept::of(&app, &identity, &id)?.response(&id, 1).await?;
    if query.stream == Some(true) {
        let message = "only responses in the background can be streamed again, and there are none here: leave `stream` out";
        return Err(ApiError::invalid("stream", message));
    }
    if given.is_empty() {
        let message = format!(
            "Response with id '{id}' was kept by an earlier version of this server, which did not keep all of it: it can be continued \
             with `previous_response_id`, and deleted"
        );
        return Err(ApiError::not_found(INVALID, message));
    }
    Ok(([(header::CONTENT_TYPE, "application/json")], Bytes::from_owner(Given(given))).into_response())
}

async fn delete(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
) -> Result<Json<Value>, ApiError> {
    let conversations = Kept::of(&app, &identity, &id)?.conversations;
    conversations
        .delete(identity.registry.tenant(), &identity.caller.user, &id)
        .await
        .map_err(|error| failure(&id, error))?;
    Ok(Json(json!({"id": id, "object": "response", "deleted": true})))
}

async fn compact() -> ApiError {
    let message = "Conversations are not made shorter here. Send the whole conversation: results that do not fit into the model's context are shortened \
                   on the way to it";
    ApiError::new(StatusCode::NOT_IMPLEMENTED, "not_supported", message)
}

async fn cancel(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
) -> Result<Json<Value>, ApiError> {
    Kept::of(&app, &identity, &id)?.response(&id, 1).await?;
    let message = "Cannot cancel a synchronous response: only one with `background: true` can be cancelled, and this server has none. \
                   Close the connection to cancel an answer that is being written";
    Err(ApiError::new(StatusCode::BAD_REQUEST, INVALID, message))
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
enum Order {
    Asc,
    #[default]
    Desc,
}

#[derive(Deserialize)]
struct ListQuery {
    limit: Option<usize>,
    #[serde(default)]
    order: Order,
    after: Option<String>,
}

async fn input_items(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
    QueryParameters(ListQuery { limit, order, after }): QueryParameters<ListQuery>,
) -> Result<Json<Value>, ApiError> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("`limit` has to be from 1 to {MAX_LIMIT}")));
    }
    let kept = Kept::of(&app, &identity, &id)?;
    let mut page = Page { limit, after, items: Vec::new(), has_more: false };
    let mut chain = Vec::new();
    let (mut next, mut bytes, mut responses) = (Some(id.clone()), 0, 0);
    // From the last response on: most clients want the newest items.
    while let Some(at) = next.filter(|_| !page.has_more) {
        // In the other order it is read again when it is listed.
        let times = if order == Order::Desc { WHEN_LISTED } else { 1 };
        let stored = match kept.find(&at, times).await? {
            Some(stored) => stored,
            // What was deleted ends the list.
            None if responses > 0 => break,
            None => return Err(no_response(&id)),
        };
        (bytes, responses) = (bytes + stored.size(), responses + 1);
        kept.conversations.check_read(responses, bytes).map_err(|error| failure(&id, error))?;
        next = stored.previous.clone();
        match order {
            Order::Desc => page = page.extended(identity.sender(), stored, responses == 1, true).await?,
            Order::Asc => chain.push(at),
        }
    }
    let first = chain.len().saturating_sub(1);
    for (at, response) in chain.iter().rev().enumerate() {
        if page.has_more {
            break;
        }
        let stored = kept.response(response, WHEN_LISTED).await?;
        page = page.extended(identity.sender(), stored, at == first, false).await?;
    }
    page.into_json()
}

/// A page of a list of items.
struct Page {
    limit: usize,
    /// The item that the page comes after, until it is found.
    after: Option<String>,
    items: Vec<Value>,
    has_more: bool,
}

impl Page {
    /// The same with the items of a response; without its output for the one whose input is listed.
    async fn extended(
        mut self,
        sender: Sender,
        stored: StoredResponse,
        is_listed: bool,
        is_reversed: bool,
    ) -> Result<Self, ApiError> {
        let size = in_memory(&stored);
        let read = move || {
            let kept = kept(&stored);
            let output = if is_listed { Vec::new() } else { kept.output()? };
            let mut items: Vec<Value> = kept.input()?.into_iter().chain(output).collect();
            if is_reversed {
                items.reverse();
            }
            self.extend(items);
            Ok(self)
        };
        let read: Result<Self, serde_json::Error> = decode(sender, size, read).await?;
        read.map_err(|error| ApiError::internal(not_read(&error).message))
    }

    fn extend(&mut self, items: Vec<Value>) {
        for item in items {
            match &self.after {
                Some(after) if id_of(&item) == Some(after) => self.after = None,
                Some(_) => {}
                None if self.items.len() < self.limit => self.items.push(item),
                None => {
                    self.has_more = true;
                    return;
                }
            }
        }
    }

    fn into_json(self) -> Result<Json<Value>, ApiError> {
        let Self { after, items, has_more, .. } = self;
        if let Some(after) = after {
            return Err(ApiError::invalid(
                "after",
                format!("Item with id '{after}' is not among the items of this response."),
            ));
        }
        let (first, last) = (items.first().and_then(id_of), items.last().and_then(id_of));
        Ok(Json(
            json!({"object": "list", "first_id": first, "last_id": last, "has_more": has_more, "data": items}),
        ))
    }
}
