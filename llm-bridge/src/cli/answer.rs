//! Answers a tool's question in the terminal.

use std::{ops::ControlFlow, time::Duration};

use registry_core::{PendingQuestion, QuestionError, Registry, guard::approval::AnswerError};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use super::{
    approve::{self, Input},
    out::tell,
    terminal::one_line,
};

/// Asks, and answers for the user with the next lines of the input, typed or not: choices by number or text, a form field by field. An empty
/// line where something has to be said declines, and so does the end of the input.
///
/// # Errors
/// When the store fails.
pub(super) async fn ask(
    registry: &Registry,
    user: &str,
    asked: &PendingQuestion,
    input: &mut Input,
) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(asked.seconds);
    tell(one_line(&format!("? {} ({} s to answer)", asked.question.message, asked.seconds)));
    let decline = async |reason: Option<&str>| {
        closed(
            registry.decline_question(&asked.id, user, reason.map(str::to_owned)).await.map_err(Into::into),
        )
    };
    loop {
        let Ok(answer) = timeout_at(end, read(asked, input)).await else {
            tell("No answer in time.");
            return Ok(());
        };
        let answer = match answer {
            ControlFlow::Continue(answer) => answer,
            ControlFlow::Break(Declined::EmptyLine) => return decline(None).await,
            ControlFlow::Break(Declined::EndOfInput) => {
                tell("The input has ended, so the question is declined.");
                return decline(Some("nobody is at the terminal")).await;
            }
        };
        match registry.answer_question(&asked.id, user, answer).await {
            Err(QuestionError::Invalid(fault)) => tell(one_line(&fault)),
            answered => return closed(answered),
        }
    }
}

/// It may have been answered elsewhere, or have expired.
fn closed<T>(answered: Result<T, QuestionError>) -> Result<(), String> {
    match answered {
        Err(QuestionError::Answer(AnswerError::Store(cause))) => Err(cause.into()),
        _ => Ok(()),
    }
}

/// How the user does not answer.
enum Declined {
    EmptyLine,
    EndOfInput,
}

/// What the user types.
async fn read(asked: &PendingQuestion, input: &mut Input) -> ControlFlow<Declined, Value> {
    let choices = asked.question.choices();
    for (number, choice) in (1..).zip(&choices) {
        tell(one_line(&format!("  {number}. {choice}")));
    }
    let mut answer = Map::new();
    let fields: Vec<_> = asked.question.fields().collect();
    for (name, field, required) in &fields {
        if fields.len() > 1 {
            tell(one_line(&prompt(name, field, *required)));
        }
        let is_secret = field.get("writeOnly") == Some(&Value::Bool(true));
        let Some(line) = approve::line(input, is_secret).await.ok().flatten() else {
            return ControlFlow::Break(Declined::EndOfInput);
        };
        let line = line.trim();
        let default = field.get("default").filter(|default| !default.is_null());
        match (line.is_empty(), default) {
            (true, Some(default)) => drop(answer.insert((*name).to_owned(), default.clone())),
            (true, None) if *required => return ControlFlow::Break(Declined::EmptyLine),
            (true, None) => {}
            (false, _) => {
                let chosen = line
                    .parse::<usize>()
                    .ok()
                    .and_then(|number| choices.get(number.checked_sub(1)?).copied());
                answer.insert((*name).to_owned(), chosen.unwrap_or(line).into());
            }
        }
    }
    ControlFlow::Continue(answer.into())
}

/// The name of a field, what it is for, and what it may be.
fn prompt(name: &str, field: &Value, required: bool) -> String {
    let text = |key: &str| field.get(key).and_then(Value::as_str);
    let mut prompt = format!("  {}", text("title").unwrap_or(name));
    if let Some(description) = text("description") {
        prompt.push_str(&format!(" — {description}"));
    }
    let options: Vec<&str> =
        field.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    match (options.is_empty(), text("type")) {
        (false, _) => prompt.push_str(&format!(" [{}]", options.join(", "))),
        (true, Some("boolean")) => prompt.push_str(" [true, false]"),
        (true, _) => {}
    }
    match field.get("default").filter(|default| !default.is_null()) {
        Some(default) => prompt.push_str(&format!(" (default {default})")),
        None if !required => prompt.push_str(" (optional)"),
        None => {}
    }
    prompt
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn b19_a_field_says_what_it_is_for_and_may_be() {
        let field = json!({"type": "string", "description": "How fast.", "enum": ["slow", "fast"]});
        assert_eq!(super::prompt("speed", &field, true), "  speed — How fast. [slow, fast]");
        let field = json!({"type": "boolean", "default": false});
        assert_eq!(super::prompt("gift", &field, false), "  gift [true, false] (default false)");
        assert_eq!(super::prompt("note", &json!({"type": "string"}), false), "  note (optional)");
    }
}
