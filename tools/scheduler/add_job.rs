use registry_core::prelude::*;
use toolrack_stores::schedule::{NewJob, Schedule};

/// Schedule a tool call at the times of a cron pattern. Use it when the user wants something done regularly. Returns the job and when it runs next.
///
/// It is made as whoever schedules it, with no more than that user may do by then. A server has to run at its time; what was missed is
/// made up for once.
#[tool(
    title = "Schedule a call",
    version = "1.0.0",
    tags = ["schedule"],
    permission = Permission::Admin,
    effect = Effect::Write,
    reads = nothing,
    // The call that is scheduled may.
    sends = outside,
    timeout = secs(10)
)]
async fn add_job(
    ctx: &ToolContext,
    schedule: Resource<Schedule>,
    /// Name of the tool to call.
    #[arg(length = 1..)]
    tool: String,
    /// Cron pattern: minute, hour, day of month, month, day of week, as in "30 8 * * MON-FRI".
    #[arg(length = 1..)]
    cron: String,
    /// Arguments of the call, as the tool takes them.
    arguments: Option<Map<String, Value>>,
    /// IANA time zone of the times, such as "Europe/Oslo". Default: the zone of the server.
    time_zone: Option<String>,
) -> Result<ToolResult, ToolError> {
    let arguments = arguments.unwrap_or_default();
    let job = schedule.add(ctx, NewJob { tool, arguments, cron, time_zone }).await?;
    let value = json!({
        "job": job.id, "tool": job.tool, "cron": job.cron, "time_zone": job.time_zone, "next_run": job.next_run,
    });
    Ok(ToolResult::new(value).with_side_effect(format!("created:job/{}", job.id)))
}
