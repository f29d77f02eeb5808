//! `toolrack call NAME JSON`.

use std::{pin::pin, process::ExitCode, sync::Arc};

use registry_core::{ErrorKind, Origin, Permission, Registry, ToolCall};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Settings, approve, caller_at,
    out::{print_line, tell},
    stopped_by_ctrl_c,
    tenant::Tenant,
};
use toolrack_apis::names::legal;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The tool's name
    name: String,
    /// The arguments, a JSON object
    #[arg(default_value = "{}", value_name = "JSON")]
    arguments: String,
    /// Call with the permission of this level: guest, user, admin or owner
    #[arg(long)]
    level: Option<Permission>,
    /// Approve a destructive call
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
        .context(caller_at(settings, arguments.level))
        .with_cancellation(stopped_by_ctrl_c())
        .with_events(Arc::new(move |event| match (event.approval, event.progress) {
            // The receiver is gone only when the call is over.
            (Some(id), _) => drop(asked.send(id)),
            (None, Some(progress)) => tell(format_args!("{:3.0} % {}", progress * 100.0, event.message)),
            (None, None) => tell(event.message),
        }));
    let name = as_registered(&registry, arguments.name);
    let call = ToolCall::new(name, value).with_origin(Origin::CommandLine);
    let mut input = approve::input();
    let mut calling = pin!(registry.execute(&context, call));
    let outcome = loop {
        tokio::select! {
            outcome = &mut calling => break outcome,
            Some(id) = approvals.recv() => {
                approve::ask(&registry, &id, arguments.yes, &mut input, "add --yes to approve the call").await?;
            }
        }
    };
    let reply = outcome.to_reply();
    if let Err(error) = &outcome.result
        && error.kind() == ErrorKind::ToolNotFound
    {
        let (name, see) = (&reply.tool_name, "see `toolrack tools list`");
        tell(match error.nearest().first() {
            Some(nearest) => format!("There is no tool `{name}`; did you mean `{nearest}`? Else {see}."),
            None => format!("There is no tool `{name}`; {see}."),
        });
    }
    print_line(serde_json::to_string_pretty(&reply).map_err(|error| error.to_string())?)?;
    Ok(if reply.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The registered name for a provider's form of it, such as `scheduler_add_job` for `scheduler.add_job`.
fn as_registered(registry: &Registry, name: String) -> String {
    if registry.get(&name).is_some() {
        return name;
    }
    let tools = registry.list_all(true);
    let mut meant = tools.iter().map(|tool| tool.name()).filter(|tool| legal(tool) == name);
    match (meant.next(), meant.next()) {
        (Some(only), None) => only.to_owned(),
        _ => name,
    }
}
