use registry_core::prelude::*;

/// Plan a trip: the first train, and the weather there.
#[tool]
async fn trip(
    ctx: &ToolContext,
    /// The city to go to.
    to: &str,
) -> Result<String, ToolError> {
    let weather = ctx.call("forecast", json!({"city": to, "days": 1})).await?;
    let trains = ctx.call("travel.trains", json!({"from": "Oslo", "to": to})).await?;
    Ok(format!("{}; {}", trains.value[0].as_str().unwrap_or_default(), weather.value_for_model()))
}
