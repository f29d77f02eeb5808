//! Whether `tool_choice` holds.

use toolrack_apis::ToolChoice;

use super::{
    report::{Finding, Verdict, instead},
    session::Session,
    tools::{ADD, QUESTIONS},
};

/// It needs no tool.
const NEEDS_NONE: &str = "Say hello to me.";
const NOT_KEPT: &str = "Toolrack keeps the model to a call itself";
/// How often a call is required.
const TRIES: u32 = 2;

/// Requires a call where none is needed.
pub(super) async fn required(session: &mut Session<'_>) -> Finding {
    let (mut right, mut is_native, mut wrong) = (0, true, None);
    let mut dialect = None;
    for _ in 0..TRIES {
        let mut request = session.with_tools(NEEDS_NONE);
        request.choice = ToolChoice::Required;
        let answered = match session.ask(request).await {
            Ok(answered) => answered,
            Err(error) => return error.into(),
        };
        // Any call will do; the question has none of its own.
        let reading = session.reading(&QUESTIONS[0], &answered);
        right += u32::from(reading.calls > 0);
        is_native &= reading.is_call_native;
        dialect = dialect.or(reading.seen);
        if reading.calls == 0 {
            wrong.get_or_insert_with(|| instead(&answered));
        }
    }
    let note = wrong.map(|wrong| format!("{NOT_KEPT}; {wrong}")).unwrap_or_default();
    let finding = Finding::of(right, TRIES, note);
    match right == TRIES && !is_native {
        true => Finding { verdict: Verdict::Text, dialect, ..finding },
        false => finding,
    }
}

/// Requires the call of a tool that is not the one that the question is about.
pub(super) async fn named(session: &mut Session<'_>) -> Finding {
    let mut request = session.with_tools(QUESTIONS[0].text());
    request.choice = ToolChoice::Named(ADD.to_owned());
    match session.ask(request).await {
        Ok(answered) => match answered.calls.iter().any(|call| call.name == ADD) {
            true => Finding::new(Verdict::Yes, ""),
            false => Finding::new(Verdict::No, instead(&answered)),
        },
        Err(error) => error.into(),
    }
}
