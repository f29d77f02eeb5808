//! `/api/tool-trial`: whether the model chooses a tool for the questions of its examples, as `toolrack try` says, for admins.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{Method, StatusCode},
};
use registry_core::{Caller, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::server::{
    App,
    callers::{
        admin::{self, Admin, NOT_ADMIN},
        identity::Identity,
    },
    openapi::Operation,
    operating::examinations::{Examination, Examinations, Examined, ShownExamination},
    requests::{
        api_error::ApiError,
        body::{Body, JsonBody},
    },
};

/// How often a question may be asked.
const MAX_TRIES: u32 = 20;
const NONE: &str = "This server cannot try tools (`trial_not_found`).";

/// Tries how a model chooses tools.
pub trait TryTool: Send + Sync {
    /// Begins to ask the questions of a tool's examples, each so often, with all tools that the caller may use. None of them runs.
    ///
    /// # Errors
    /// When the caller may not use the tool, or it has no examples.
    fn begin(
        &self,
        registry: &Registry,
        caller: Caller,
        tool: &str,
        tries: u32,
    ) -> Result<Examination, String>;
}

/// The trials of a server. Cheap to clone.
#[derive(Clone)]
pub(in crate::server) struct Trials {
    trying: Arc<dyn TryTool>,
    state: Examinations<Subject>,
}

/// A tool of a tenant.
struct Subject {
    tenant: String,
    tool: String,
}

impl Trials {
    pub(in crate::server) fn new(trying: Arc<dyn TryTool>) -> Self {
        Self { trying, state: Examinations::new() }
    }
}

/// What is known of the tool that is tried, or was tried last, in the tenant.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "ToolTrial")]
pub(in crate::server) struct Shown {
    /// The tool.
    tool: Option<String>,
    #[serde(flatten)]
    examination: ShownExamination,
}

impl Shown {
    fn of(examined: &Examined<Subject>, identity: &Identity) -> Self {
        let tenant = identity.registry.tenant();
        let own = examined.subject.as_ref().filter(|subject| subject.tenant == tenant);
        own.map_or_else(Self::default, |subject| Self {
            tool: Some(subject.tool.clone()),
            examination: examined.shown(),
        })
    }
}

/// A tool to try.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::server) struct ToolToTry {
    /// Its name.
    tool: String,
    /// How often each question is asked.
    #[serde(default = "tries")]
    #[schemars(range(min = 1, max = MAX_TRIES))]
    tries: u32,
}

fn tries() -> u32 {
    5
}

impl Body for ToolToTry {
    const EXAMPLE: &str = "`{\"tool\": \"weather\", \"tries\": 5}`";
}

fn trials(app: &App) -> Result<&Trials, ApiError> {
    let missing =
        || ApiError::not_found("trial_not_found", "this server cannot try how a model chooses tools");
    app.trials.as_ref().ok_or_else(missing)
}

pub(in crate::server) fn read_operation() -> Operation {
    Operation::new(
        Method::GET,
        "Tools",
        "read_tool_trial",
        "How the model has chosen the tool that was tried last",
    )
    .answers::<Shown>(200, "How far it is, and what was seen.")
    .refuses(403, NOT_ADMIN)
    .refuses(404, NONE)
}

pub(in crate::server) async fn read(
    State(app): State<App>,
    Admin(identity): Admin,
) -> Result<Json<Shown>, ApiError> {
    Ok(Json(Shown::of(&trials(&app)?.state.lock(), &identity)))
}

pub(in crate::server) fn begin_operation() -> Operation {
    Operation::new(Method::POST, "Tools", "try_tool", "Ask the model the questions of a tool's examples")
        .details("It may choose from all tools that the user may use. No tool runs.")
        .reads::<ToolToTry>()
        .answers::<Shown>(202, "It is being asked.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
        .refuses(409, "A tool is being tried, perhaps in another tenant (`trial_busy`), or this one cannot be: it is not there or off, or has no examples (`tool_not_tried`).")
}

pub(in crate::server) async fn begin(
    State(app): State<App>,
    Admin(identity): Admin,
    JsonBody(ToolToTry { tool, tries }): JsonBody<ToolToTry>,
) -> Result<(StatusCode, Json<Shown>), ApiError> {
    if !(1..=MAX_TRIES).contains(&tries) {
        return Err(ApiError::invalid("tries", format!("a question is asked 1 to {MAX_TRIES} times")));
    }
    let Trials { trying, state } = trials(&app)?;
    let (registry, tenant) = (&identity.registry, identity.registry.tenant().to_owned());
    let arguments = json!({"tool": tool, "tries": tries});
    let begin = async {
        let conflict = |kind, message| ApiError::new(StatusCode::CONFLICT, kind, message);
        let examination = trying.begin(registry, identity.caller.clone(), &tool, tries);
        let examination = examination.map_err(|why| conflict("tool_not_tried", why))?;
        let subject = Some(Subject { tenant, tool });
        match state.begin(subject, || examination, &app.backend, &app.closing) {
            true => Ok(()),
            false => Err(conflict("trial_busy", "a tool is being tried; wait, or stop it".to_owned())),
        }
    };
    admin::change(&identity, "toolrack try", arguments, begin).await?;
    Ok((StatusCode::ACCEPTED, Json(Shown::of(&state.lock(), &identity))))
}

pub(in crate::server) fn stop_operation() -> Operation {
    Operation::new(Method::DELETE, "Tools", "stop_tool_trial", "Ask the model no further")
        .answers_nothing(204, "No tool of the tenant is tried any more.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
}

pub(in crate::server) async fn stop(
    State(app): State<App>,
    Admin(identity): Admin,
) -> Result<StatusCode, ApiError> {
    let examined = trials(&app)?.state.lock();
    let is_own = examined.subject.as_ref().is_some_and(|own| own.tenant == identity.registry.tenant());
    if let Some(running) = examined.running.as_ref().filter(|_| is_own) {
        running.stop.cancel();
    }
    Ok(StatusCode::NO_CONTENT)
}
