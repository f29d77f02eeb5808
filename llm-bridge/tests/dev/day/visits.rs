use registry_core::prelude::*;

/// Count a visit of this user, and return how many there were.
#[tool]
async fn visits(ctx: &ToolContext) -> Result<u64, ToolError> {
    Ok(ctx.store().update("visits", |visits: Option<u64>| visits.unwrap_or(0) + 1).await?)
}
