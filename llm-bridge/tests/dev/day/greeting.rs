use registry_core::prelude::*;

/// Greet a person by name.
#[tool(example = "Say hello to Ada." => {"name": "Ada"})]
async fn greeting(
    /// Whom.
    name: String,
) -> String {
    format!("Hello, {name}!")
}
