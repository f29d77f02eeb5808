//! Asks the person at the terminal about a call that cannot be undone.

use std::io::IsTerminal;

use jiff::Timestamp;
use registry_core::{
    Registry,
    guard::approval::{AnswerError, ApprovalAnswer},
};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use super::out::tell;

/// The lines of standard input, which one reader has to have for itself.
pub(super) type Input = Lines<BufReader<Stdin>>;

pub(super) fn input() -> Input {
    BufReader::new(tokio::io::stdin()).lines()
}

/// Answers an approval within its time: yes where `yes` says so, no where nobody can be asked. `how` is what to do then.
///
/// # Errors
/// When the store fails.
pub(super) async fn ask(
    registry: &Registry,
    id: &str,
    yes: bool,
    input: &mut Input,
    how: &str,
) -> Result<(), String> {
    let Some(approval) = registry.approval(id).await? else { return Ok(()) };
    let approve = if yes {
        true
    } else if std::io::stdin().is_terminal() {
        tell(format_args!("{} {}", approval.tool, approval.arguments));
        let left = approval.time_left(Timestamp::now());
        tell(format_args!("This call cannot be undone. Run it? [y/N] ({} s to answer)", left.as_secs()));
        let Ok(line) = tokio::time::timeout(left, input.next_line()).await else {
            tell("Nobody has answered in time.");
            return Ok(());
        };
        matches!(line.ok().flatten().unwrap_or_default().trim(), "y" | "Y" | "yes")
    } else {
        tell(format_args!("{} cannot be undone; {how}", approval.tool));
        false
    };
    let answer = ApprovalAnswer { approve, by: approval.user, reason: None };
    match registry.answer_approval(id, answer).await {
        // Somebody else has answered, or it has expired: the call knows.
        Ok(_) | Err(AnswerError::Closed | AnswerError::Unknown) => Ok(()),
        Err(AnswerError::Store(cause)) => Err(cause),
    }
}
