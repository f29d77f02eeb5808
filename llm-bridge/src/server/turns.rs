//! `GET /api/turns` and `DELETE /api/turns/{id}`: the turns that run on this server, for a tenant's admins.

use axum::{
    Json,
    extract::State,
    http::{Method, StatusCode},
};
use jiff::Timestamp;
use registry_core::store::StoreError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    App,
    admin::{self, Admin, NOT_ADMIN},
    api_error::ApiError,
    name::Name,
    openapi::Operation,
};
use crate::turn::LiveTurn;

/// A turn that runs.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LiveTurn")]
struct ListedTurn {
    /// Names it on this server, until the server stops.
    id: String,
    /// Whose it is.
    user: String,
    /// When it began (UTC).
    since: Timestamp,
    /// The chat of the page that it is in.
    chat: Option<String>,
    /// The model, once it is chosen.
    model: Option<String>,
    /// How often the model was asked so far.
    rounds: u32,
    /// The tools that run now.
    tools: Vec<String>,
    /// The id of its trace, where traces are kept.
    trace_id: Option<String>,
}

impl From<LiveTurn> for ListedTurn {
    fn from(turn: LiveTurn) -> Self {
        Self {
            id: turn.id.to_string(),
            user: turn.user,
            since: turn.since,
            chat: turn.chat,
            model: turn.model,
            rounds: turn.rounds,
            tools: turn.tools,
            trace_id: turn.trace.map(|place| format!("{:032x}", place.trace_id)),
        }
    }
}

/// The turns that run.
#[derive(Serialize, JsonSchema)]
pub(super) struct TurnList {
    turns: Vec<ListedTurn>,
}

pub(super) fn list_operation() -> Operation {
    Operation::new(Method::GET, "Server", "list_turns", "The tenant's turns that run on this server")
        .answers::<TurnList>(200, "The turns, the oldest first.")
        .refuses(403, NOT_ADMIN)
}

pub(super) async fn list(State(app): State<App>, Admin(identity): Admin) -> Json<TurnList> {
    let turns = app.backend.live_turns().of_tenant(identity.registry.tenant());
    Json(TurnList { turns: turns.into_iter().map(ListedTurn::from).collect() })
}

pub(super) fn stop_operation() -> Operation {
    Operation::new(Method::DELETE, "Server", "stop_turn", "Stop a turn that runs on this server")
        .details("Its client is told that an admin has stopped it. Its calls are cancelled.")
        .path("id", "The turn's id.")
        .answers_nothing(204, "It is being stopped.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "No such turn runs here (`turn_not_found`).")
}

pub(super) async fn stop(
    State(app): State<App>,
    Admin(identity): Admin,
    Name(id): Name,
) -> Result<StatusCode, ApiError> {
    let missing = || ApiError::not_found("turn_not_found", format!("no turn `{id}` runs on this server"));
    let number: u64 = id.parse().map_err(|_| missing())?;
    let (turns, tenant) = (app.backend.live_turns(), identity.registry.tenant());
    let found = turns.of_tenant(tenant).into_iter().find(|turn| turn.id == number).ok_or_else(missing)?;
    let arguments = json!({"id": id, "user": found.user});
    // It may have ended meanwhile.
    let stop = async { Ok::<_, StoreError>(turns.stop(tenant, number)) };
    match admin::change(&identity, "turns.stop", arguments, stop).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing()),
    }
}
