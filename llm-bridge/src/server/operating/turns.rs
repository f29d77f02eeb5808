//! `GET /api/turns` and `DELETE /api/turns/{id}`: the turns that run, on this server and those that share its store, for a tenant's admins.

use axum::{
    Json,
    extract::State,
    http::{Method, StatusCode},
};
use jiff::Timestamp;
use registry_core::store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    server::{
        App,
        callers::admin::{self, Admin, NOT_ADMIN},
        openapi::Operation,
        requests::{api_error::ApiError, name::Name, query::QueryParameters},
    },
    turn::{LiveTurn, ToldTurn},
};

/// A turn that runs.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LiveTurn")]
struct ListedTurn {
    /// Names it on its server, until the server stops.
    id: String,
    /// The other server that it runs on; null where it runs on this one.
    server: Option<String>,
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
    /// The id of its trace, where traces are kept; of another server's turn it is known there.
    trace_id: Option<String>,
}

impl From<LiveTurn> for ListedTurn {
    fn from(turn: LiveTurn) -> Self {
        Self {
            id: turn.id.to_string(),
            server: None,
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

impl From<(String, ToldTurn)> for ListedTurn {
    fn from((server, turn): (String, ToldTurn)) -> Self {
        let ToldTurn { id, user, chat, since, model, rounds, tools } = turn;
        let (id, server) = (id.to_string(), Some(server));
        Self { id, server, user, since, chat, model, rounds, tools, trace_id: None }
    }
}

/// The turns that run.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct TurnList {
    turns: Vec<ListedTurn>,
}

pub(in crate::server) fn list_operation() -> Operation {
    Operation::new(Method::GET, "Server", "list_turns", "The tenant's turns that run")
        .details("On this server, and with PostgreSQL on those that share it, which tell every two seconds what runs there.")
        .answers::<TurnList>(200, "The turns, the oldest first.")
        .refuses(403, NOT_ADMIN)
}

pub(in crate::server) async fn list(
    State(app): State<App>,
    Admin(identity): Admin,
) -> Result<Json<TurnList>, ApiError> {
    let tenant = identity.registry.tenant();
    let here = app.backend.live_turns().of_tenant(tenant);
    let mut turns: Vec<_> = here.into_iter().map(ListedTurn::from).collect();
    if let Some(elsewhere) = &app.settings.elsewhere {
        turns.extend(elsewhere.of_tenant(tenant).await?.into_iter().map(ListedTurn::from));
        turns.sort_by_key(|turn| turn.since);
    }
    Ok(Json(TurnList { turns }))
}

/// Where a turn runs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::server) struct Place {
    server: Option<String>,
}

pub(in crate::server) fn stop_operation() -> Operation {
    Operation::new(Method::DELETE, "Server", "stop_turn", "Stop a turn that runs")
        .details("Its client is told that an admin has stopped it. Its calls are cancelled. Another server does it within some seconds.")
        .path("id", "The turn's id.")
        .query("server", "The other server that it runs on.")
        .answers_nothing(204, "It is being stopped.")
        .refuses(400, "A query parameter is unknown (`invalid_request_error`).")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "No such turn runs there (`turn_not_found`).")
}

pub(in crate::server) async fn stop(
    State(app): State<App>,
    Admin(identity): Admin,
    Name(id): Name,
    QueryParameters(Place { server }): QueryParameters<Place>,
) -> Result<StatusCode, ApiError> {
    let missing = || ApiError::not_found("turn_not_found", format!("no turn `{id}` runs there"));
    let number: u64 = id.parse().map_err(|_| missing())?;
    let tenant = identity.registry.tenant();
    if let Some(server) = server.filter(|server| !server.is_empty()) {
        let elsewhere = app.settings.elsewhere.as_ref().ok_or_else(missing)?;
        let found = elsewhere.find(tenant, &server, number).await?.ok_or_else(missing)?;
        let arguments = json!({"id": id, "user": found.user, "server": server});
        let stop = elsewhere.ask_to_stop(tenant, &server, &found);
        admin::change(&identity, "turns.stop", arguments, stop).await?;
        return Ok(StatusCode::NO_CONTENT);
    }
    let turns = app.backend.live_turns();
    let found = turns.of_tenant(tenant).into_iter().find(|turn| turn.id == number).ok_or_else(missing)?;
    let arguments = json!({"id": id, "user": found.user});
    // It may have ended meanwhile.
    let stop = async { Ok::<_, StoreError>(turns.stop(tenant, number)) };
    match admin::change(&identity, "turns.stop", arguments, stop).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing()),
    }
}
