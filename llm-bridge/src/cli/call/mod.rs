//! `toolrack call NAME --ARGUMENT VALUE`.

pub(super) mod flags;
mod missing;

use std::{ffi::OsString, io::IsTerminal, pin::pin, process::ExitCode, sync::Arc};

use clap::Command;
use registry_core::{Caller, ErrorKind, Origin, Registry, ToolCall};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    answer, approve,
    caller::CallerArguments,
    names::as_registered,
    out::{print_line, tell},
    parts::Output,
    stopped_by_ctrl_c,
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The tool's name
    name: String,
    /// The arguments, a JSON object. Each is a flag, too: `toolrack call NAME --help` lists those of a tool
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// The flags that are the tool's.
    #[arg(skip)]
    pub(super) flags: Vec<OsString>,
    /// Approve a destructive call
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    pub(super) caller: CallerArguments,
}

pub(super) async fn run(
    arguments: Arguments,
    caller: Caller,
    registry: Registry,
    program: &Command,
) -> Result<ExitCode, String> {
    let name = as_registered(&registry, arguments.name);
    let mut input = approve::input();
    let value = match registry.get(&name) {
        Some(tool) => {
            let given = arguments.flags.into_iter().chain(arguments.arguments.map(Into::into));
            let command = flags::command(&tool, program);
            let given = match command.no_binary_name(true).try_get_matches_from(given) {
                Ok(given) => given,
                Err(error) => {
                    let _ = error.print();
                    return Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)));
                }
            };
            let mut values = flags::values(&tool, &given)?;
            missing::ask(&tool, &mut values, &mut input).await?;
            values
        }
        None => arguments.arguments.as_deref().map(flags::object).transpose()?.unwrap_or_default(),
    };
    let (asked, mut approvals) = mpsc::unbounded_channel();
    let (inquires, mut questions) = mpsc::unbounded_channel();
    let user = caller.user.clone();
    let context = registry
        .context(caller)
        .with_questions()
        .with_cancellation(stopped_by_ctrl_c())
        .with_events(Arc::new(move |event| {
            if event.part.is_some() {
                // The result has it again.
                return;
            }
            if let Some(question) = event.question {
                return drop(inquires.send(question));
            }
            match (event.approval, event.progress) {
                // The receiver is gone only when the call is over.
                (Some(id), _) => drop(asked.send(id)),
                (None, Some(progress)) => tell(format_args!("{:3.0} % {}", progress * 100.0, event.message)),
                (None, None) => tell(event.message),
            }
        }));
    let call = ToolCall::new(name, Value::Object(value)).with_origin(Origin::CommandLine);
    let mut calling = pin!(registry.execute(&context, call));
    let outcome = loop {
        tokio::select! {
            outcome = &mut calling => break outcome,
            Some(id) = approvals.recv() => tokio::select! {
                // It may be stopped, or be answered elsewhere.
                outcome = &mut calling => break outcome,
                asked = approve::ask(&registry, context.caller(), &id, arguments.yes, &mut input, "add --yes to approve the call") => asked?,
            },
            Some(question) = questions.recv() => tokio::select! {
                outcome = &mut calling => break outcome,
                asked = answer::ask(&registry, &user, &question, &mut input) => asked?,
            },
        }
    };
    let mut reply = outcome.to_reply();
    let parts = std::mem::take(&mut reply.content);
    // A person sees the parts themselves; a program gets them in the reply.
    let is_seen = std::io::stdout().is_terminal();
    if !is_seen {
        reply.content.clone_from(&parts);
    }
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
    for part in parts.iter().filter(|part| is_seen || part.blob().is_some()) {
        arguments.output.show(part)?;
    }
    Ok(if reply.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
