//! Numbers of the question, and which argument each is for.

use serde_json::Value;

use super::fill::Filler;
use super::question::Number;
use super::words::{is_stop, split_name};
use super::{find, schema};

impl Filler<'_> {
    /// Numbers beside the argument's own word: `3 days`, `top 5`, `20-sided`.
    pub(super) fn numbers_by_name(&mut self) {
        for tier in 0..3 {
            for at in 0..self.leaves.len() {
                let Some(leaf) =
                    self.leaves.get(at).filter(|leaf| leaf.value.is_none() && numeric(leaf.kind()))
                else {
                    continue;
                };
                let parts = split_name(leaf.name());
                let counts = parts.iter().any(|part| {
                    matches!(
                        part.as_str(),
                        "count" | "number" | "n" | "times" | "quantity" | "limit" | "max" | "top" | "amount"
                    )
                });
                let (mut after, mut before) = match tier {
                    0 => (leaf.name_stems(), leaf.name_stems()),
                    1 if counts => (self.tool.clone(), vec!["top".to_owned(), "first".to_owned()]),
                    2 => (self.description_stems(at), Vec::new()),
                    _ => continue,
                };
                for words in [&mut after, &mut before] {
                    words.retain(|word| !is_stop(word) && word.parse::<f64>().is_err());
                }
                let beside = self.question.numbers().into_iter().find(|number| {
                    let (left, right) = self.question.beside(&number.range);
                    right.is_some_and(|word| after.contains(&word.stem))
                        || left.is_some_and(|word| before.contains(&word.stem))
                });
                if let Some(number) = beside
                    && let Some(value) = self.as_number(at, &number)
                {
                    let unit =
                        self.question.beside(&number.range).1.filter(|word| after.contains(&word.stem));
                    let unit = unit.map(|word| word.range.clone());
                    self.question.take(number.range);
                    if let Some(unit) = unit {
                        self.question.take(unit);
                    }
                    self.set(at, value);
                }
            }
        }
    }

    /// The numbers that are left, in the order of the arguments.
    pub(super) fn numbers_in_order(&mut self) {
        let free_text = self.has_required_text();
        for at in 0..self.leaves.len() {
            let Some(leaf) = self.leaves.get(at).filter(|leaf| leaf.value.is_none() && numeric(leaf.kind()))
            else {
                continue;
            };
            // In a text to search for, a number belongs to the text.
            if !leaf.required && free_text {
                continue;
            }
            let moments = [find::date(&self.question), find::time(&self.question)];
            let in_moment = |number: &Number| {
                moments
                    .iter()
                    .flatten()
                    .any(|(range, _)| range.start < number.range.end && number.range.start < range.end)
            };
            let numbers =
                self.question.numbers().into_iter().filter(|number| leaf.required || !in_moment(number));
            let fitting =
                numbers.filter_map(|number| Some((self.as_number(at, &number)?, number.range))).next();
            if let Some((value, range)) = fitting {
                self.question.take(range);
                self.set(at, value);
            }
        }
    }

    fn as_number(&self, at: usize, number: &Number) -> Option<Value> {
        let value = schema::number(number.value);
        let text = Value::String(self.question.slice(&number.range).to_owned());
        [value, text].into_iter().find(|value| self.accepts(at, value))
    }
}

/// Whether a type is one of numbers.
pub(super) fn numeric(kind: &str) -> bool {
    matches!(kind, "integer" | "number")
}
