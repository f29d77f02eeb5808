//! Whether the server goes on from a prompt that it has read before.

use super::{
    plain::{millis, seconds},
    report::{Finding, Verdict},
    session::{Answered, Session},
};

/// The length of the prompt in characters, where the context has room for it.
const LENGTH: usize = 4000;
/// From when on a shorter time to the first word tells of a cache, in seconds.
const TELLING: f64 = 0.3;

/// Asks the same long question twice.
pub(super) async fn cache(session: &mut Session<'_>, context: Option<u64>) -> Finding {
    // A token may be as short as a character.
    let room = context.and_then(|tokens| usize::try_from(tokens / 2).ok()).unwrap_or(LENGTH);
    // No run has asked the same before.
    let mut text = format!("Note {:016x}. ", fastrand::u64(..));
    while text.len() < LENGTH.min(room) {
        text.push_str("The river runs past the mill and under the old stone bridge to the sea. ");
    }
    text.push_str("Answer with the word yes.");
    let request = Session::question(&text, 8);
    let (first, second) = match (session.ask(request.clone()).await, session.ask(request).await) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(error), _) | (_, Err(error)) => return error.into(),
    };
    let of = |answered: &Answered| answered.first.unwrap_or(answered.last);
    let times = format!("first word after {}, then {}", seconds(of(&first)), seconds(of(&second)));
    let prompt = second.usage.as_ref().map(|usage| usage.input).filter(|tokens| *tokens > 0);
    let finding = match (cached(&second), prompt) {
        (Some(cached), Some(prompt)) => {
            let verdict = match cached.saturating_mul(2) > prompt {
                true => Verdict::Yes,
                false if cached > 0 => Verdict::Partly,
                false => Verdict::No,
            };
            Finding::new(verdict, format!("{cached} of {prompt} tokens; {times}"))
                .figure("cached_tokens", cached)
        }
        _ => {
            let (before, after) = (of(&first).as_secs_f64(), of(&second).as_secs_f64());
            let verdict = match before > TELLING {
                true if after < before / 2.0 => Verdict::Yes,
                true => Verdict::No,
                false => Verdict::Unknown,
            };
            Finding::new(verdict, format!("by the time: {times}"))
        }
    };
    finding
        .figure("prompt_tokens", prompt)
        .figure("first_ms", millis(of(&first)))
        .figure("second_ms", millis(of(&second)))
}

/// How many tokens of the prompt the server had already.
fn cached(answered: &Answered) -> Option<u64> {
    let usage = answered.usage.as_ref()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of tokens")]
    let timed = answered.measured("cache_n").map(|tokens| tokens.max(0.0) as u64);
    usage.cached.or(timed)
}
