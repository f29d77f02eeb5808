//! `toolrack chat`: a chat in the terminal, with the same turns as the server's.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
    time::Duration,
};

use registry_core::{Registry, ToolError, ToolEvent, ToolResult};
use serde_json::{Value, json};
use toolrack_apis::openai::ChatRequest;

use super::{
    Settings,
    approve::{self, Input},
    chat_commands::{self, Reply},
    interrupts::{INTERRUPTED, Interrupts},
    out::{print, tell},
    terminal::one_line,
    usage_fault,
};
use crate::{
    chat::{Backend, TurnEvent},
    server::explained,
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The question; without one, questions are read line by line from standard input
    question: Vec<String>,
}

pub(super) async fn run(
    arguments: Arguments,
    settings: &Settings,
    registry: Registry,
) -> Result<ExitCode, String> {
    let question = arguments.question.join(" ");
    if !arguments.question.is_empty() && question.trim().is_empty() {
        return Ok(usage_fault("the question is empty; without one, questions are read line by line"));
    }
    let upstream = settings.upstream().await?;
    let backend = Backend::new(registry, upstream, settings.chat_settings());
    let mut chat = Chat {
        backend: &backend,
        settings,
        messages: Vec::new(),
        input: approve::input(),
        interrupts: Interrupts::new(),
    };
    let end = if question.is_empty() { chat.read_questions().await } else { chat.ask(&question).await };
    // Running tools are audited before the program ends.
    backend.stop().await;
    Ok(match end? {
        Asked::Answered | Asked::Quit | Asked::NobodyReads => ExitCode::SUCCESS,
        Asked::Failed => ExitCode::FAILURE,
        Asked::Stopped => ExitCode::from(INTERRUPTED),
    })
}

/// The outcome of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Answered,
    Failed,
    /// By `/quit`.
    Quit,
    /// By Ctrl-C.
    Stopped,
    /// Standard output is closed.
    NobodyReads,
}

struct Chat<'s> {
    backend: &'s Backend,
    settings: &'s Settings,
    messages: Vec<Value>,
    input: Input,
    interrupts: Interrupts,
}

impl Chat<'_> {
    async fn read_questions(&mut self) -> Result<Asked, String> {
        let interactive = std::io::stdin().is_terminal();
        if interactive {
            let upstream = self.backend.upstream();
            let who = if upstream.is_demo() { "the built-in demo model" } else { upstream.address() };
            tell(format_args!(
                "Chatting with {who}. /help lists the commands; Ctrl-D or an empty line ends the chat."
            ));
        }
        let mut all = Asked::Answered;
        loop {
            if interactive {
                let _ = write!(std::io::stderr(), "> ");
            }
            let line = tokio::select! {
                line = self.input.next_line() => line.map_err(|error| format!("cannot read standard input: {error}"))?,
                () = self.interrupts.next() => return Ok(Asked::Stopped),
            };
            match line {
                None => return Ok(all),
                Some(line) if line.trim().is_empty() => {
                    if interactive {
                        return Ok(all);
                    }
                }
                Some(line) => match self.line(&line).await? {
                    Asked::Answered => {}
                    Asked::Failed => all = Asked::Failed,
                    Asked::Stopped => {
                        tell("· stopped; press Ctrl-C again to end the chat");
                    }
                    end => return Ok(end),
                },
            }
        }
    }

    /// A command, or a question to the model.
    async fn line(&mut self, line: &str) -> Result<Asked, String> {
        match chat_commands::reply(line, self.backend.registry(), &self.settings.caller()) {
            None => self.ask(line).await,
            Some(Reply::Quit) => Ok(Asked::Quit),
            Some(Reply::Say(text)) => {
                tell(text);
                Ok(Asked::Answered)
            }
        }
    }

    /// Asks one question and prints the answer as it streams. Only answered questions stay in the conversation.
    async fn ask(&mut self, question: &str) -> Result<Asked, String> {
        let mut messages = self.messages.clone();
        messages.push(json!({"role": "user", "content": question}));
        let request = ChatRequest::from_json(json!({"messages": messages, "stream": true}))
            .map_err(|bad| bad.message)?;
        let mut turn = self.backend.start(request, self.settings.caller()).map_err(|bad| bad.message)?;
        let mut answer = String::new();
        let mut asked = Asked::Failed;
        loop {
            let event = tokio::select! {
                event = turn.next() => event,
                // Dropping the turn cancels its running calls.
                () = self.interrupts.next() => {
                    if !answer.is_empty() {
                        print("\n")?;
                    }
                    return Ok(Asked::Stopped);
                }
            };
            match event {
                None => {
                    tell("error: the turn ended without an answer");
                    break;
                }
                Some(TurnEvent::Text(text)) => {
                    if !print(&text)? {
                        return Ok(Asked::NobodyReads);
                    }
                    answer.push_str(&text);
                }
                Some(TurnEvent::Finished { .. }) => {
                    asked = Asked::Answered;
                    break;
                }
                Some(TurnEvent::Failed(failure)) => {
                    tell(format_args!("error: {}", explained(&failure, self.backend.upstream())));
                    break;
                }
                Some(TurnEvent::CallStatus(ToolEvent { approval: Some(id), .. })) => {
                    let how = "chat in a terminal, where you can allow it";
                    tokio::select! {
                        asked = approve::ask(self.backend.registry(), &id, false, &mut self.input, how) => asked?,
                        () = self.interrupts.next() => return Ok(Asked::Stopped),
                    }
                }
                Some(event) => {
                    // Notes are on separate lines.
                    if matches!(event, TurnEvent::CallStarted { .. })
                        && !answer.is_empty()
                        && !answer.ends_with('\n')
                    {
                        tell("");
                    }
                    note(&event);
                }
            }
        }
        if !answer.is_empty() {
            print("\n")?;
        }
        if asked == Asked::Answered {
            messages.push(json!({"role": "assistant", "content": answer}));
            self.messages = messages;
        }
        Ok(asked)
    }
}

/// The outcome of a call, followed by the lines of the tool's message to the user.
fn reported(name: &str, result: &Result<ToolResult, ToolError>, took: Duration) -> Vec<String> {
    let result = match result {
        Ok(result) => result,
        Err(error) => return vec![one_line(&format!("· {name}: {error}"))],
    };
    let state =
        if result.success { format!("done in {} ms", took.as_millis()) } else { "not done".to_owned() };
    let message = result.message.as_deref().unwrap_or_default().trim();
    // It may quote a web page, so it is escaped.
    let message = message.lines().map(|line| format!("  {}", one_line(line)));
    std::iter::once(one_line(&format!("· {name}: {state}"))).chain(message).collect()
}

/// Prints a note about an event.
fn note(event: &TurnEvent) {
    match event {
        TurnEvent::CallStarted { name, arguments, dialect, .. } => {
            tell(one_line(&format!("· {name} {arguments} ({dialect})")));
        }
        TurnEvent::CallStatus(status) => {
            tell(one_line(&format!("· {}: {}", status.tool_name, status.message)))
        }
        TurnEvent::CallFinished(outcome) => {
            reported(&outcome.tool_name, &outcome.result, outcome.duration).iter().for_each(tell);
        }
        TurnEvent::Notice(text) => tell(one_line(&format!("· {text}"))),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_the_word_to_the_user_is_told() {
        let reported = |result| reported("research", &result, Duration::from_millis(5));
        let found =
            ToolResult::new("a digest").with_message("Sources:\n1. \u{1b}[2JOne https://one.example/\n");
        let lines = ["· research: done in 5 ms", "  Sources:", "  1. \\u{1b}[2JOne https://one.example/"];
        assert_eq!(reported(Ok(found)), lines);
        assert_eq!(reported(Ok(ToolResult::new("4"))), ["· research: done in 5 ms"]);
        assert_eq!(reported(Ok(ToolResult::unsuccessful("No."))), ["· research: not done", "  No."]);
        assert_eq!(reported(Err(ToolError::failed("no network"))), ["· research: no network"]);
        let hostile = ToolError::failed("no\u{1b}[2J\u{202e}\nwork");
        assert_eq!(reported(Err(hostile)), ["· research: no\\u{1b}[2J\\u{202e}\\nwork"], "g4");
    }
}
