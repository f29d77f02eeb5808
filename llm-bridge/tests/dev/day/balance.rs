use registry_core::prelude::*;

/// Get the balance of one of the user's accounts.
#[tool(permission = Permission::User)]
async fn balance(ctx: &ToolContext) -> Result<String, ToolError> {
    let account = ctx.ask("Which account?", ["Savings", "Joint"]).await?;
    Ok(format!("{account}: 40 EUR"))
}
