//! `toolrack chat`: a chat in the terminal, with the same turns as the server's.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use registry_core::{Caller, PendingQuestion, Registry, guard::approval::Question};
use serde::Deserialize;
use serde_json::Value;
use toolrack_apis::{Extension, FinishedTool, Message, Request, Role, ToolStatus, TurnEvent};

use super::{
    Settings, answer,
    approve::{self, Input},
    caller::CallerArguments,
    chat_commands::{self, Reply},
    interrupts::{INTERRUPTED, Interrupts},
    out::{print, print_line, tell},
    parts::{Output, drawn},
    terminal::one_line,
    usage_fault,
};
use crate::turn::Backend;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The question; without one, questions are read line by line from standard input
    question: Vec<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    pub(super) caller: CallerArguments,
}

pub(super) async fn run(
    arguments: Arguments,
    caller: Caller,
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
        caller,
        messages: Vec::new(),
        input: approve::input(),
        interrupts: Interrupts::new(),
        output: arguments.output,
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
    caller: Caller,
    messages: Vec<Message>,
    input: Input,
    interrupts: Interrupts,
    output: Output,
}

impl Chat<'_> {
    async fn read_questions(&mut self) -> Result<Asked, String> {
        let interactive = std::io::stdin().is_terminal();
        if interactive {
            let upstream = self.backend.upstream();
            let who =
                if upstream.is_demo() { "the built-in demo model".to_owned() } else { upstream.address() };
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
        match chat_commands::reply(line, self.backend.registry(), &self.caller) {
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
        messages.push(Message::text(Role::User, question));
        let extension =
            Extension { question_wait_seconds: Some(u64::from(u32::MAX)), ..Extension::default() };
        let request = Request { messages: messages.clone(), stream: true, extension, ..Request::default() };
        let mut turn = self.backend.start(request, self.caller.clone()).map_err(|bad| bad.message)?;
        let mut answer = String::new();
        // Whether something stands on the line of the cursor.
        let mut is_line_open = false;
        let mut asked = Asked::Failed;
        loop {
            let event = tokio::select! {
                event = turn.next() => event,
                // Dropping the turn cancels its running calls.
                () = self.interrupts.next() => {
                    if is_line_open {
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
                    is_line_open = !text.ends_with('\n');
                    answer.push_str(&text);
                }
                Some(TurnEvent::Message { part: Some(part), text, .. }) => {
                    let is_piece = part.get("type").is_some_and(|kind| kind == "text");
                    if is_line_open && !is_piece {
                        print("\n")?;
                    }
                    is_line_open = is_piece;
                    self.show(&part, &text).await?;
                }
                Some(TurnEvent::Finished { .. }) => {
                    asked = Asked::Answered;
                    break;
                }
                Some(TurnEvent::Failed(failure)) => {
                    tell(format_args!("error: {failure}"));
                    break;
                }
                Some(TurnEvent::Tool(ToolStatus::Progress { approval: Some(id), .. })) => {
                    let how = "chat in a terminal, where you can allow it";
                    tokio::select! {
                        asked = approve::ask(self.backend.registry(), &self.caller, &id, false, &mut self.input, how) => asked?,
                        () = self.interrupts.next() => return Ok(Asked::Stopped),
                    }
                }
                Some(TurnEvent::Tool(ToolStatus::Progress { question: Some(asked), .. })) => {
                    let asked = PendingQuestion {
                        id: asked.id,
                        question: Question { message: asked.message, schema: asked.schema },
                        seconds: asked.seconds,
                        waits: asked.waits,
                    };
                    let (registry, user) = (self.backend.registry(), &self.caller.user);
                    tokio::select! {
                        asked = answer::ask(registry, user, &asked, &mut self.input) => asked?,
                        () = self.interrupts.next() => return Ok(Asked::Stopped),
                    }
                }
                Some(event) => {
                    // Notes are on separate lines.
                    let is_note = matches!(
                        event,
                        TurnEvent::Tool(ToolStatus::Started { .. } | ToolStatus::Finished(_))
                    );
                    if is_note && std::mem::take(&mut is_line_open) {
                        tell("");
                    }
                    note(&event);
                }
            }
        }
        if is_line_open || !answer.is_empty() {
            print("\n")?;
        }
        if asked == Asked::Answered {
            messages.push(Message::text(Role::Assistant, answer));
            self.messages = messages;
        }
        Ok(asked)
    }
}

impl Chat<'_> {
    /// Shows a part of a result; `text` is what it is as Markdown.
    async fn show(&self, part: &Value, text: &str) -> Result<(), String> {
        let of = |key: &str| part.get(key).and_then(Value::as_str);
        match of("type") {
            // The next piece of a text.
            Some("text") => print(text).map(drop),
            Some("table") => match Shown::deserialize(part) {
                Ok(Shown { columns, rows, total }) => print_line(drawn(&columns, &rows, total)).map(drop),
                Err(_) => print_line(text).map(drop),
            },
            Some("markdown") => print_line(text.trim_start()).map(drop),
            _ => {
                let file = match of("id") {
                    Some(id) => self.backend.result_file(&self.caller.user, id).await?,
                    None => None,
                };
                match file {
                    Some(file) => self.output.file(&file.name, &file.media_type, &file.bytes),
                    None => tell(one_line(text.trim())),
                }
                Ok(())
            }
        }
    }
}

/// A table in a part.
#[derive(Deserialize)]
struct Shown {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    total: usize,
}

/// The outcome of a call, followed by the lines of the tool's message to the user.
fn outcome(tool: &FinishedTool) -> Vec<String> {
    let FinishedTool { name, error, message, success, duration_ms, .. } = tool;
    if let Some(error) = error {
        return vec![one_line(&format!("· {name}: {error}"))];
    }
    let state = if *success { format!("done in {duration_ms} ms") } else { "not done".to_owned() };
    // It may quote a web page, so it is escaped.
    let message = message.as_deref().unwrap_or_default().trim().lines();
    let message = message.map(|line| format!("  {}", one_line(line)));
    std::iter::once(one_line(&format!("· {name}: {state}"))).chain(message).collect()
}

/// Prints a note about an event.
fn note(event: &TurnEvent) {
    match event {
        TurnEvent::Tool(ToolStatus::Started { name, arguments, dialect, .. }) => {
            tell(one_line(&format!("· {name} {arguments} ({dialect})")));
        }
        TurnEvent::Tool(ToolStatus::Progress { name, message, .. }) => {
            tell(one_line(&format!("· {name}: {message}")))
        }
        TurnEvent::Tool(ToolStatus::Finished(tool)) => outcome(tool).iter().for_each(tell),
        TurnEvent::Notice(text) => tell(one_line(&format!("· {text}"))),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_what_a_tool_says_to_the_user_is_printed() {
        let finished = FinishedTool {
            name: "research".into(),
            success: true,
            duration_ms: 5,
            ..FinishedTool::default()
        };
        let message = Some("Sources:\n1. \u{1b}[2JOne https://one.example/\n".to_owned());
        let found = FinishedTool { message, ..finished.clone() };
        let lines = ["· research: done in 5 ms", "  Sources:", "  1. \\u{1b}[2JOne https://one.example/"];
        assert_eq!(outcome(&found), lines);
        assert_eq!(outcome(&finished), ["· research: done in 5 ms"]);
        let not_done = FinishedTool { success: false, message: Some("No.".into()), ..finished.clone() };
        assert_eq!(outcome(&not_done), ["· research: not done", "  No."]);
        let failed =
            |error: &str| FinishedTool { success: false, error: Some(error.into()), ..finished.clone() };
        assert_eq!(outcome(&failed("no network")), ["· research: no network"]);
        let hostile = failed("no\u{1b}[2J\u{202e}\nwork");
        assert_eq!(outcome(&hostile), ["· research: no\\u{1b}[2J\\u{202e}\\nwork"], "g4");
    }
}
