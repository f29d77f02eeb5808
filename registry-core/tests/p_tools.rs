//! Tools as a developer writes them, called through the registry: SPEC rows P2, P4 and B12.

use registry_core::{Caller, Registry, ToolCall, args, output, prelude::*};

/// Current weather for a city.
///
/// Further paragraphs are for people; only the first goes to the model.
#[tool(permission = Permission::User, timeout = secs(10), daily_limit = 100, tags = ["outside"], version = "1.0.0")]
async fn weather(
    ctx: &ToolContext,
    units: Option<Resource<Units>>,
    /// City name, e.g. "Oslo".
    city: String,
    /// Days ahead.
    #[arg(default = 3, range = 1..=14)]
    days: u8,
    /// How it is written.
    style: Option<Style>,
) -> Result<Forecast, ToolError> {
    ctx.status("looking out of the window");
    if city == "Atlantis" {
        return Err(ToolError::failed("no such place"));
    }
    let unit = units.map_or("C", |units| units.0);
    Ok(Forecast { text: format!("{city}, {days} days, {unit}, {}", style.is_some()), days })
}

struct Units(&'static str);

#[args]
#[derive(Debug, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Style {
    Short,
    Long,
}

#[output]
#[derive(Debug, PartialEq)]
struct Forecast {
    /// The forecast.
    text: String,
    days: u8,
}

/// Joins words.
#[tool]
async fn join(
    /// What stands between.
    #[arg(default = ", ", length = ..=3)]
    between: &str,
    /// The words.
    #[arg(length = 1..)]
    words: &[String],
    /// What stands before.
    before: Option<&str>,
) -> String {
    format!("{}{}", before.unwrap_or_default(), words.join(between))
}

#[args]
struct Note {
    /// Where it goes.
    #[arg(default = "inbox", pattern = "^[a-z]+$")]
    folder: String,
    /// What it says.
    text: String,
    /// How much it matters.
    #[arg(default = 1, range = 1..4)]
    weight: u8,
}

/// Writes a note.
#[tool(effect = Effect::Write, gate, text_tag = "NOTE")]
async fn note(#[args] note: Note) -> ToolResult {
    ToolResult::new(format!("{}/{}/{}", note.folder, note.text, note.weight)).with_side_effect("created:note")
}

fn registry() -> Registry {
    Registry::builder().build().unwrap()
}

async fn call(name: &str, arguments: Value) -> Result<Value, String> {
    let registry = registry();
    let context = registry.context(Caller::new("ada", Permission::Owner));
    let outcome = registry.execute(&context, ToolCall::new(name, arguments)).await;
    outcome.result.map(|result| result.value).map_err(|error| error.message().to_owned())
}

#[tokio::test]
async fn p2_a_function_is_a_tool() {
    assert_eq!(
        call("weather", json!({"city": "Oslo", "style": "short"})).await,
        Ok(json!({"text": "Oslo, 3 days, C, true", "days": 3}))
    );
    assert_eq!(call("join", json!({"words": ["a", "b"], "before": "> "})).await, Ok(json!("> a, b")));
    assert_eq!(call("note", json!({"text": "x"})).await, Ok(json!("inbox/x/1")));
}
