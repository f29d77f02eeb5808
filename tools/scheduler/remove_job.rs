use registry_core::prelude::*;
use toolrack_stores::schedule::Schedule;

/// Remove a scheduled call, so that it does not run again. Returns the id of the removed job.
#[tool(
    title = "Remove a scheduled call",
    version = "1.0.0",
    tags = ["schedule"],
    permission = Permission::Admin,
    effect = Effect::Write,
    reads = nothing,
    sends = nothing,
    timeout = secs(10)
)]
async fn remove_job(
    ctx: &ToolContext,
    schedule: Resource<Schedule>,
    /// Id of the job, from list_jobs.
    #[arg(length = 1..)]
    job: &str,
) -> Result<ToolResult, ToolError> {
    schedule.remove(ctx, job).await?;
    Ok(ToolResult::new(json!({"removed": job})).with_side_effect(format!("removed:job/{job}")))
}
