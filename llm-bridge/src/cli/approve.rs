//! Asks for approval of a destructive call in the terminal.

use std::io::IsTerminal;

use jiff::Timestamp;
use registry_core::{
    Caller, Origin, Registry,
    guard::approval::{AnswerError, ApprovalAnswer},
};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use super::{out::tell, terminal::one_line};
use crate::recorded::answer_approval;

/// The lines of standard input. It must have only one reader.
pub(super) type Input = Lines<BufReader<Stdin>>;

pub(super) fn input() -> Input {
    BufReader::new(tokio::io::stdin()).lines()
}

/// The next line; `None` at the end. A secret that is typed is not shown.
pub(super) async fn line(input: &mut Input, is_secret: bool) -> std::io::Result<Option<String>> {
    if !is_secret || !std::io::stdin().is_terminal() {
        return input.next_line().await;
    }
    let typed = tokio::task::spawn_blocking(rpassword::read_password).await;
    typed.map_err(std::io::Error::other).flatten().map(Some)
}

/// Answers an approval of a caller: approves with `yes`, asks in a terminal, and denies without one. `how` is the hint for that case.
///
/// # Errors
/// When the store or the audit fails.
pub(super) async fn ask(
    registry: &Registry,
    caller: &Caller,
    id: &str,
    yes: bool,
    input: &mut Input,
    how: &str,
) -> Result<(), String> {
    let Some(approval) = registry.approval(id).await? else { return Ok(()) };
    let approve = if yes {
        true
    } else if std::io::stdin().is_terminal() {
        tell(question(&approval.tool, &approval.arguments));
        let left = approval.time_left(Timestamp::now());
        let why = approval.reason.as_deref().map_or("This call cannot be undone.".to_owned(), one_line);
        tell(format_args!("{why} Run it? [y/N] ({} s to answer)", left.as_secs()));
        let Ok(line) = tokio::time::timeout(left, input.next_line()).await else {
            tell("No answer in time: the tool is not called.");
            return Ok(());
        };
        matches!(line.ok().flatten().unwrap_or_default().trim(), "y" | "Y" | "yes")
    } else {
        let usual = || format!("{} cannot be undone", approval.tool);
        let why = approval.reason.clone().unwrap_or_else(usual);
        tell(one_line(&format!("{}; {how}", why.trim_end_matches('.'))));
        false
    };
    let by = approval.user.clone();
    let answer = ApprovalAnswer { approve, by, reason: None, content: None, arguments: None };
    match answer_approval(registry, caller, Origin::CommandLine, &approval, answer).await? {
        Err(AnswerError::Store(cause)) => Err(cause.into()),
        // Or it was answered elsewhere, or has expired.
        _ => Ok(()),
    }
}

/// The call on one line, escaped so that no part of it can hide another.
fn question(tool: &str, arguments: &Value) -> String {
    one_line(&format!("{tool} {arguments}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn g4_a_person_sees_all_of_the_call_to_approve() {
        let arguments = json!({"path": "\u{202e}gpj.x\u{200b}", "note": "\u{9b}2J\u{1b}[2J\n"});
        let shown = r#"del {"path":"\u{202e}gpj.x\u{200b}","note":"\u{9b}2J\u001b[2J\n"}"#;
        assert_eq!(super::question("del", &arguments), shown);
    }
}
