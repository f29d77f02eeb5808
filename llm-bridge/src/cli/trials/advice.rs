//! What to change in a tool that is not called as its example expects.

use std::collections::BTreeSet;

use registry_core::Tool;
use serde_json::Value;

use super::report::Row;

/// Words of so many letters say what a question is about.
const SHORTEST_WORD: usize = 4;

/// What to change, most frequent trouble first.
pub(super) fn advice(row: &Row, tool: &Tool) -> Vec<String> {
    let mut advice = Vec::new();
    let name = tool.name();
    if row.no_call > 0 {
        let known = words(&format!("{name} {} {}", tool.description(), tool.spec().tags.join(" ")));
        let asked = words(&row.question);
        let hint = match asked.is_disjoint(&known) {
            true => format!(
                "none of the question's words stand in its name, description or tags; say in the description when to use it, in words that people ask with ({})",
                asked.into_iter().collect::<Vec<_>>().join(", ")
            ),
            false => "say in the first sentence of the description when to use it, and that the model cannot know this itself".to_owned(),
        };
        advice.push((row.no_call, format!("no tool was called {}: {hint}", times(row.no_call))));
    }
    for (other, times_taken) in &row.instead {
        let what = format!(
            "`{other}` was called {}: say in the description of `{name}` what it is for and `{other}` is not, or name it more plainly",
            times(*times_taken)
        );
        advice.push((*times_taken, what));
    }
    for (difference, seen) in &row.differences {
        let argument = &difference.argument;
        let expected = row.expected.get(argument).unwrap_or(&Value::Null);
        let what = match &difference.given {
            Some(given) => format!(
                "`{argument}` was {given} in place of {expected} {}: say in its doc comment how it is written, or give it an example: #[arg(example = …)]",
                times(*seen)
            ),
            None => {
                format!("`{argument}` was left out {}: say in its doc comment when to give it", times(*seen))
            }
        };
        advice.push((*seen, what));
    }
    for (error, seen) in &row.invalid {
        advice.push((*seen, format!("the arguments were refused {}: {error}", times(*seen))));
    }
    for (failure, seen) in &row.failures {
        advice.push((*seen, format!("the model did not answer {}: {failure}", times(*seen))));
    }
    advice.sort_by_key(|(seen, _)| std::cmp::Reverse(*seen));
    advice.into_iter().map(|(_, what)| what).collect()
}

fn times(number: u32) -> String {
    if number == 1 { "once".to_owned() } else { format!("{number} times") }
}

/// The words that say what a text is about.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.chars().count() >= SHORTEST_WORD).collect()
}
