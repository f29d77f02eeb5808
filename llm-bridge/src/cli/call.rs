//! `toolrack call NAME JSON`.

use std::{process::ExitCode, sync::Arc};

use registry_core::{Origin, Permission, Registry, ToolCall};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Settings, caller_at};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The tool's name
    name: String,
    /// The arguments, a JSON object
    #[arg(default_value = "{}", value_name = "JSON")]
    arguments: String,
    /// Call at this level
    #[arg(long, value_name = "LEVEL")]
    user: Option<Permission>,
}

pub(super) async fn run(
    arguments: Arguments,
    settings: &Settings,
    registry: Registry,
) -> Result<ExitCode, String> {
    let value: Value = serde_json::from_str(&arguments.arguments).map_err(|error| {
        format!("the arguments are not JSON ({error}); write them as in '{{\"city\": \"Oslo\"}}'")
    })?;
    let cancellation = CancellationToken::new();
    let stop = cancellation.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    let context = registry
        .context(caller_at(settings, arguments.user))
        .with_cancellation(cancellation)
        .with_events(Arc::new(|event| match event.progress {
            Some(progress) => eprintln!("{:3.0} % {}", progress * 100.0, event.message),
            None => eprintln!("{}", event.message),
        }));
    let call = ToolCall::new(arguments.name, value).with_origin(Origin::CommandLine);
    let reply = registry.execute(&context, call).await.to_reply();
    println!("{}", serde_json::to_string_pretty(&reply).map_err(|error| error.to_string())?);
    Ok(if reply.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
