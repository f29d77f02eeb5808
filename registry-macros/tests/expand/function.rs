/// Current weather for a city.
///
/// Further paragraphs are for people.
#[tool]
async fn weather(
    ctx: &ToolContext,
    /// City name, e.g. "Oslo".
    city: String,
    /// Days ahead.
    #[arg(default = 3, range = 1..=14)]
    days: u8,
    /// How it is written.
    style: Option<Style>,
    /// The key of the service.
    #[arg(secret)]
    key: &str,
) -> Result<Forecast, ToolError> {
    forecast(ctx, city, days, style).await
}
