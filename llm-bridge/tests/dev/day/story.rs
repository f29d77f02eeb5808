use async_stream::try_stream;
use registry_core::prelude::*;

/// Write a story about the weather.
#[tool(timeout = minutes(2))]
fn story(
    /// How many sentences.
    #[arg(range = 1..=20)]
    sentences: u8,
) -> impl Stream<Item = Result<String, ToolError>> + Send {
    try_stream! {
        for number in 1..=sentences {
            tokio::task::yield_now().await;
            yield format!("It rained for {number} days. ");
        }
    }
}
