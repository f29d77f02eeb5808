//! `toolrack call NAME JSON`.

use std::{pin::pin, process::ExitCode, sync::Arc};

use registry_core::{Origin, Permission, Registry, ToolCall};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Settings, approve, caller_at,
    out::{print_line, tell},
    stopped_by_ctrl_c,
    tenant::Tenant,
};

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
    /// Make a call that cannot be undone without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    pub(super) tenant: Tenant,
}

pub(super) async fn run(
    arguments: Arguments,
    settings: &Settings,
    registry: Registry,
) -> Result<ExitCode, String> {
    let value: Value = serde_json::from_str(&arguments.arguments).map_err(|error| {
        format!("the arguments are not JSON ({error}); write them as in '{{\"city\": \"Oslo\"}}'")
    })?;
    let (asked, mut approvals) = mpsc::unbounded_channel();
    let context = registry
        .context(caller_at(settings, arguments.user))
        .with_cancellation(stopped_by_ctrl_c())
        .with_events(Arc::new(move |event| match (event.approval, event.progress) {
            // Nobody takes it only when the call is over.
            (Some(id), _) => drop(asked.send(id)),
            (None, Some(progress)) => tell(format_args!("{:3.0} % {}", progress * 100.0, event.message)),
            (None, None) => tell(event.message),
        }));
    let call = ToolCall::new(arguments.name, value).with_origin(Origin::CommandLine);
    let mut input = approve::input();
    let mut calling = pin!(registry.execute(&context, call));
    let reply = loop {
        tokio::select! {
            outcome = &mut calling => break outcome.to_reply(),
            Some(id) = approvals.recv() => {
                approve::ask(&registry, &id, arguments.yes, &mut input, "say --yes to make the call").await?;
            }
        }
    };
    print_line(serde_json::to_string_pretty(&reply).map_err(|error| error.to_string())?)?;
    Ok(if reply.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
