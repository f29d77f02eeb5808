//! A web service with a registry of tools: `cargo run -p registry-core --example axum_service`.

use axum::{Json, Router, extract::Path, routing};
use registry_core::{Caller, Permission, Registry, prelude::*};
use tokio::net::TcpListener;

/// Get the weather in a city.
#[tool]
async fn weather(
    /// City name, such as Oslo.
    city: String,
    /// Days ahead.
    #[arg(default = 1, range = 1..=14)]
    days: u8,
) -> String {
    format!("{city} in {days} days: rain")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::builder().build()?;
    let user = registry.context(Caller::new("ada", Permission::User));
    let (offered, caller) = (registry.clone(), user.clone());
    let list = async move || Json(offered.get_tools(&caller));
    let call = async move |Path(name): Path<String>, Json(arguments): Json<Value>| {
        Json(registry.execute_tool(&name, arguments, &user, None).await.to_reply())
    };
    let service =
        Router::new().route("/tools", routing::get(list)).route("/tools/{name}", routing::post(call));
    axum::serve(TcpListener::bind("127.0.0.1:7332").await?, service).await?;
    Ok(())
}
