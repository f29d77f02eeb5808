use registry_core::prelude::*;
use toolrack_stores::schedule::Schedule;

/// List the scheduled calls, the next first. Returns each with its times and the outcome of its last run.
#[tool(
    title = "Scheduled calls",
    version = "1.0.0",
    tags = ["schedule"],
    permission = Permission::Admin,
    reads = private | untrusted,
    sends = nothing,
    timeout = secs(10),
    example = "Which calls are scheduled?" => {}
)]
async fn list_jobs(ctx: &ToolContext, schedule: Resource<Schedule>) -> Result<Vec<Value>, ToolError> {
    let jobs = schedule.list(ctx).await?.into_iter().map(|job| {
        json!({
            "job": job.id, "owner": job.owner.user, "tool": job.tool, "arguments": job.arguments, "cron": job.cron,
            "time_zone": job.time_zone, "next_run": job.next_run, "last_run": job.last_run,
        })
    });
    Ok(jobs.collect())
}
