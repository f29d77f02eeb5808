//! What an answer without tools shows: streams, speed, thinking, and JSON by a schema.

use std::time::Duration;

use serde_json::{Value, json};
use toolrack_apis::{Provider, ResponseFormat, Thinking};

use super::{
    report::{Finding, Verdict, instead},
    session::{Answered, Session, ThinkingSeen},
};

/// It has a long answer that every model can give.
pub(super) const COUNT: &str =
    "Count from one to forty in English words, separated by commas. Write nothing else.";
/// The tokens of the answer.
pub(super) const COUNT_TOKENS: u64 = 192;
/// How many pieces are a stream.
const STREAM: u32 = 4;
/// What share of the time an answer that streams takes at least.
const SPREAD: f64 = 0.05;
/// From how many tokens a speed is measured.
const MEASURED: u64 = 8;

/// Whether an answer came as it was written.
pub(super) fn streams(answered: &Answered, calls_in_pieces: Option<bool>) -> Finding {
    let first = answered.first.unwrap_or_default();
    let spread = answered.last.saturating_sub(first).as_secs_f64();
    let pieces = answered.pieces;
    let calls = match calls_in_pieces {
        Some(true) => "; native calls, too",
        Some(false) => "; native calls whole",
        None => "",
    };
    let finding = match pieces {
        0 => return Finding::new(Verdict::Unknown, instead(answered)),
        1..STREAM if answered.text.len() + answered.reasoning.len() < 40 => {
            Finding::new(Verdict::Unknown, "the answer was too short to tell")
        }
        1..STREAM => Finding::new(Verdict::No, "the answer came whole; is there a proxy before the server?"),
        _ if answered.last > Duration::from_secs(1) && spread < SPREAD * answered.last.as_secs_f64() => {
            Finding::new(Verdict::Partly, "all pieces came at the end; is there a proxy before the server?")
        }
        _ => Finding::new(Verdict::Yes, format!("first word after {}{calls}", seconds(first))),
    };
    finding
        .figure("pieces", pieces)
        .figure("first_ms", millis(first))
        .figure("calls_in_pieces", calls_in_pieces)
}

/// How fast the model writes.
pub(super) fn speed(answered: &Answered) -> Finding {
    let Some(usage) = &answered.usage else {
        return Finding::new(Verdict::Unknown, "the server does not count tokens");
    };
    let writing = answered.last.saturating_sub(answered.first.unwrap_or_default()).as_secs_f64();
    let nanos = usage
        .passing
        .get(Provider::Ollama, "eval_duration")
        .and_then(|nanos| nanos.get().parse::<f64>().ok());
    #[expect(clippy::cast_precision_loss, reason = "an answer has few tokens")]
    let tokens = usage.output as f64;
    let measured = answered.measured("predicted_per_second").or(nanos.map(|nanos| tokens / (nanos / 1e9)));
    let by_clock = || (answered.pieces >= STREAM && writing > 0.0).then(|| (tokens - 1.0) / writing);
    let speed = measured.or_else(by_clock).filter(|speed| speed.is_finite() && *speed > 0.0);
    match speed.filter(|_| usage.output >= MEASURED) {
        Some(speed) => {
            let speed = (speed * 10.0).round() / 10.0;
            Finding::new(Verdict::Yes, "").figure("tokens_per_second", speed)
        }
        None => Finding::new(Verdict::Unknown, "the answer was too short to tell"),
    }
}

/// Whether the model thinks before it answers, and whether that can be switched off.
pub(super) async fn thinking(session: &mut Session<'_>) -> Finding {
    const SUM: &str = "What is 17 + 25? Answer with the number.";
    if !session.thinking.is_seen() {
        let mut request = Session::question(SUM, 512);
        request.thinking = Some(Thinking::On);
        match session.ask(request).await {
            Err(error) => {
                let finding = Finding::from(error);
                let verdict = if finding.is(Verdict::Refused) { Verdict::No } else { finding.verdict };
                return Finding { verdict, ..finding };
            }
            Ok(_) if !session.thinking.is_seen() => return Finding::new(Verdict::No, ""),
            Ok(_) => {}
        }
    }
    let seen = session.thinking;
    let place = match (seen.in_field, seen.in_text) {
        (true, _) => "in a field of its own",
        (false, true) => "in the text, from where Toolrack takes it",
        (false, false) => "in the text, without its beginning",
    };
    let mut request = Session::question(SUM, 512);
    request.thinking = Some(Thinking::Off);
    let off = match session.ask(request).await {
        Ok(answered) => {
            let mut without = ThinkingSeen::default();
            without.note(&answered);
            Some(!without.is_seen())
        }
        Err(_) => None,
    };
    let switch = match off {
        Some(true) => "; can be switched off",
        Some(false) => "; cannot be switched off",
        None => "",
    };
    let place_id = match (seen.in_field, seen.in_text) {
        (true, _) => "field",
        (false, true) => "text",
        (false, false) => "unopened",
    };
    Finding::new(Verdict::Yes, format!("{place}{switch}")).figure("place", place_id).figure("can_be_off", off)
}

/// Whether the server keeps an answer to a schema that the question does not speak of.
pub(super) async fn structured(session: &mut Session<'_>) -> Finding {
    let mut request = Session::question("Oslo is the capital of Norway. What do you know of it?", 512);
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 40}, "is_capital": {"type": "boolean"}},
        "required": ["city", "is_capital"],
        "additionalProperties": false,
    });
    request.format = Some(ResponseFormat::JsonSchema {
        name: Some("city".to_owned()),
        description: None,
        schema,
        strict: Some(true),
    });
    let answered = match session.ask(request).await {
        Ok(answered) => answered,
        Err(error) => return error.into(),
    };
    let text = toolrack_dialects::strip_thinking(&answered.text);
    let fits = serde_json::from_str::<Value>(text.trim()).is_ok_and(|value| {
        value.get("city").is_some_and(Value::is_string)
            && value.get("is_capital").is_some_and(Value::is_boolean)
            && value.as_object().is_some_and(|members| members.len() == 2)
    });
    match fits {
        true => Finding::new(Verdict::Yes, ""),
        false => Finding::new(Verdict::No, instead(&answered)),
    }
}

/// As in `0.21 s`.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// In whole milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
