//! `toolrack call NAME JSON`.

use std::{io::IsTerminal, pin::pin, process::ExitCode, sync::Arc};

use registry_core::{
    Origin, Permission, Registry, ToolCall,
    guard::approval::{AnswerError, ApprovalAnswer},
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Settings, caller_at,
    out::{print_line, tell},
    stopped_by_ctrl_c,
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
    let mut calling = pin!(registry.execute(&context, call));
    let reply = loop {
        tokio::select! {
            outcome = &mut calling => break outcome.to_reply(),
            Some(id) = approvals.recv() => approve(&registry, &id, arguments.yes).await?,
        }
    };
    print_line(serde_json::to_string_pretty(&reply).map_err(|error| error.to_string())?)?;
    Ok(if reply.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Asks the person at the terminal, who is the one that wants the call.
async fn approve(registry: &Registry, id: &str, yes: bool) -> Result<(), String> {
    let Some(approval) = registry.approval(id).await? else { return Ok(()) };
    let approve = yes || {
        if !std::io::stdin().is_terminal() {
            tell(format_args!("{} cannot be undone; say --yes to make the call", approval.tool));
            false
        } else {
            tell(format_args!(
                "{} {}\nThis call cannot be undone. Make it? [y/N]",
                approval.tool, approval.arguments
            ));
            // A thread of its own, so that Ctrl-C is heard while it waits.
            let line =
                tokio::task::spawn_blocking(|| std::io::stdin().lines().next().and_then(Result::ok)).await;
            matches!(line, Ok(Some(line)) if matches!(line.trim(), "y" | "Y" | "yes"))
        }
    };
    let answer = ApprovalAnswer { approve, by: approval.user, reason: None };
    match registry.answer_approval(id, answer).await {
        // Somebody else has answered, or it has expired: the call knows.
        Ok(_) | Err(AnswerError::Closed | AnswerError::Unknown) => Ok(()),
        Err(AnswerError::Store(cause)) => Err(cause),
    }
}
