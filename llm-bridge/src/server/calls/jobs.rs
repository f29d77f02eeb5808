//! `GET /api/jobs` and `DELETE /api/jobs/{id}`: the scheduled calls of a tenant, for its admins.

use axum::{
    Json,
    extract::State,
    http::{Method, StatusCode},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolrack_stores::schedule::Job;

use crate::server::{
    App,
    callers::admin::{self, Admin, NOT_ADMIN},
    openapi::Operation,
    requests::{api_error::ApiError, name::Name, pages::Page},
};

/// A scheduled call as it is listed.
#[derive(Serialize, JsonSchema)]
struct ListedJob {
    /// Names it within the tenant.
    id: String,
    /// As whom the call is made.
    user: String,
    /// The tool.
    tool: String,
    /// What the tool is given.
    arguments: Map<String, Value>,
    /// When: minute, hour, day of the month, month, day of the week.
    cron: String,
    /// The time zone of the pattern, by its IANA name.
    time_zone: String,
    /// When it is next made (UTC).
    next_run: Timestamp,
    /// What became of it the last time.
    last_run: Option<LastRun>,
}

/// What became of a scheduled call the last time.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "JobRun")]
struct LastRun {
    /// The call's id, as the audit has it.
    call_id: String,
    /// When it was made (UTC).
    at: Timestamp,
    /// Whether the tool did what it was asked.
    success: bool,
    /// Why it did not.
    error: Option<String>,
}

impl From<Job> for ListedJob {
    fn from(job: Job) -> Self {
        let last_run = job.last_run.map(|run| LastRun {
            call_id: run.call_id,
            at: run.at,
            success: run.success,
            error: run.error,
        });
        Self {
            id: job.id,
            user: job.owner.user,
            tool: job.tool,
            arguments: job.arguments,
            cron: job.cron,
            time_zone: job.time_zone,
            next_run: job.next_run,
            last_run,
        }
    }
}

/// The scheduled calls of the tenant.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct JobList {
    jobs: Vec<ListedJob>,
    /// `after` of the next request; null where there are no more.
    next: Option<String>,
}

pub(in crate::server) fn list_operation() -> Operation {
    let operation = Operation::new(Method::GET, "Schedule", "list_jobs", "The tenant's scheduled calls")
        .answers::<JobList>(200, "The calls, the next first.")
        .refuses(403, NOT_ADMIN);
    Page::operation(operation)
}

pub(in crate::server) async fn list(
    State(app): State<App>,
    Admin(identity): Admin,
    page: Page,
) -> Result<Json<JobList>, ApiError> {
    let jobs = match &app.settings.schedule {
        Some(schedule) => schedule.of_tenant(identity.registry.tenant()).await?,
        None => Vec::new(),
    };
    // One that is made between two requests moves behind, so that none is left out.
    let (jobs, next) = page.of(jobs, |job| (job.next_run, job.id.clone()));
    Ok(Json(JobList { jobs: jobs.into_iter().map(ListedJob::from).collect(), next }))
}

pub(in crate::server) fn remove_operation() -> Operation {
    Operation::new(Method::DELETE, "Schedule", "remove_job", "Remove a scheduled call")
        .details("A call of it that is under way goes on.")
        .path("id", "The scheduled call's id.")
        .answers_nothing(204, "It is gone.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "There is no such scheduled call (`job_not_found`).")
}

pub(in crate::server) async fn remove(
    State(app): State<App>,
    Admin(identity): Admin,
    Name(id): Name,
) -> Result<StatusCode, ApiError> {
    let missing = || ApiError::not_found("job_not_found", format!("there is no scheduled call `{id}`"));
    let schedule = app.settings.schedule.as_ref().ok_or_else(missing)?;
    let tenant = identity.registry.tenant();
    if schedule.of_tenant(tenant).await?.iter().all(|job| job.id != id) {
        return Err(missing());
    }
    let remove = schedule.remove_of(tenant, &id);
    // It may have been removed meanwhile.
    match admin::change(&identity, "scheduler.remove_job", json!({"id": id}), remove).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing()),
    }
}
