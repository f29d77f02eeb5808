//! `toolrack chat`: the same turn as through the server, in a terminal.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use registry_core::Registry;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::Settings;
use crate::{
    chat::{Backend, TurnEvent},
    provider::openai::ChatRequest,
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The question; without one, questions are read line by line
    question: Vec<String>,
}

pub(super) async fn run(
    arguments: Arguments,
    settings: &Settings,
    registry: Registry,
) -> Result<ExitCode, String> {
    let upstream = settings.upstream().await?;
    let is_demo = upstream.is_demo();
    let backend = Backend::new(registry, upstream, settings.chat_settings());
    let mut messages = Vec::new();
    if !arguments.question.is_empty() {
        let answered = ask(&backend, settings, &mut messages, &arguments.question.join(" ")).await?;
        return Ok(if answered { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let interactive = std::io::stdin().is_terminal();
    if interactive {
        let who = if is_demo { "the built-in demo model" } else { backend.upstream().address() };
        eprintln!("Chatting with {who}. An empty line or Ctrl-D ends it.");
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut all_answered = true;
    loop {
        if interactive {
            eprint!("> ");
        }
        let line = lines.next_line().await.map_err(|error| error.to_string())?;
        let Some(line) = line.filter(|line| !line.trim().is_empty()) else { break };
        all_answered &= ask(&backend, settings, &mut messages, &line).await?;
    }
    Ok(if all_answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Asks one question and prints the answer as it comes. Whether there was one.
async fn ask(
    backend: &Backend,
    settings: &Settings,
    messages: &mut Vec<Value>,
    question: &str,
) -> Result<bool, String> {
    messages.push(json!({"role": "user", "content": question}));
    let request =
        ChatRequest::from_json(json!({"messages": messages, "stream": true})).map_err(|bad| bad.message)?;
    let mut turn = backend.start(request, settings.caller()).map_err(|bad| bad.message)?;
    let mut answer = String::new();
    let mut answered = true;
    while let Some(event) = turn.next().await {
        match event {
            TurnEvent::Text(text) => {
                print(&text)?;
                answer.push_str(&text);
            }
            TurnEvent::CallStarted { name, arguments, dialect, .. } => {
                eprintln!("\n· {name} {arguments} ({dialect})");
            }
            TurnEvent::CallStatus(status) => eprintln!("· {}: {}", status.tool_name, status.message),
            TurnEvent::CallFinished(outcome) => {
                let took = outcome.duration.as_millis();
                match &outcome.result {
                    Ok(_) => eprintln!("· {}: done in {took} ms", outcome.tool_name),
                    Err(error) => eprintln!("· {}: {error}", outcome.tool_name),
                }
            }
            TurnEvent::Notice(text) => eprintln!("· {text}"),
            TurnEvent::Failed(failure) => {
                eprintln!("error: {failure}");
                answered = false;
            }
            _ => {}
        }
    }
    print("\n")?;
    messages.push(json!({"role": "assistant", "content": answer}));
    Ok(answered)
}

fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())
}
