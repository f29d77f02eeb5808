//! Whether `tool_choice` holds.

use toolrack_apis::ToolChoice;

use super::{
    report::{Finding, Verdict, instead},
    session::Session,
    tools::{ADD, QUESTIONS},
};

/// It needs no tool.
const NEEDS_NONE: &str = "Say hello to me.";
/// How often a call is required.
const TRIES: u32 = 2;

/// Requires a call where none is needed.
pub(super) async fn required(session: &mut Session<'_>) -> Finding {
    let kept = "Toolrack keeps the model to a call itself";
    asked(session, NEEDS_NONE, &ToolChoice::Required, kept).await
}

/// Requires the call of a tool that is not the one that the question is about.
pub(super) async fn named(session: &mut Session<'_>) -> Finding {
    let kept = "Toolrack offers that tool alone";
    asked(session, QUESTIONS[0].text(), &ToolChoice::Named(ADD.to_owned()), kept).await
}

/// Asks with a choice; `kept` is what Toolrack does where the server does not keep to it.
async fn asked(session: &mut Session<'_>, text: &str, choice: &ToolChoice, kept: &str) -> Finding {
    let (mut right, mut is_native, mut dialect, mut wrong) = (0, true, None, None);
    for _ in 0..TRIES {
        let mut request = session.with_tools(text);
        request.choice = choice.clone();
        let answered = match session.ask(request).await {
            Ok(answered) => answered,
            Err(error) => return error.into(),
        };
        let calls = session.calls(&answered, None);
        let is_other = |name: &str| matches!(choice, ToolChoice::Named(chosen) if chosen != name);
        if calls.whole().next().is_none() || calls.whole().any(is_other) {
            wrong.get_or_insert_with(|| format!("{kept}; {}", instead(&answered)));
            continue;
        }
        right += 1;
        is_native &= calls.has_native();
        dialect = dialect.or(calls.dialect);
    }
    let finding = Finding::of(right, TRIES, wrong.unwrap_or_default());
    match right == TRIES && !is_native {
        true => Finding { verdict: Verdict::Text, dialect, ..finding },
        false => finding,
    }
}
