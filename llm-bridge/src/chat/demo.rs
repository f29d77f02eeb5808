//! A model for when there is none: it shows what the tools do before a real model is connected.
//!
//! It has no intelligence and says so. It picks the tool whose words a question has most in common with, fills in the
//! arguments from the question, writes the call as text, in another dialect each time, and answers from the
//! result. Everything is deterministic, and there is no clock and no network in it.

mod code;
mod extract;
mod figures;
mod fill;
mod find;
mod hint;
mod lexicon;
mod outline;
mod pattern;
mod pick;
mod place;
mod question;
mod recurrence;
mod reply;
mod schema;
mod words;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod properties;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Map, Value};

use toolrack_dialects as dialect;

use crate::provider::openai::role;
use question::Question;
use reply::Outcome;

/// What the demo model is called in a list of models.
pub(super) const NAME: &str = "toolrack-demo";

/// The dialects that it writes calls in, in the order in which they take turns.
const DIALECTS: [&str; 6] = ["hermes", "qwen3_coder", "bare_json", "pythonic", "gemma4", "mistral"];

/// No more of a question than this is looked at, in characters: taking it apart is not linear in its length.
const LONGEST: usize = 4_000;

/// Marks around a result that is handed to a model as text.
const RESPONSE: (&str, &str) = ("<tool_response>", "</tool_response>");

/// The demo model. The same questions in the same order get the same answers; the first dialect is up to the question.
#[derive(Debug, Default)]
pub(super) struct DemoModel {
    /// Answers with calls so far; each takes the next dialect.
    written: AtomicUsize,
}

/// A call to write.
#[derive(Debug)]
struct Call {
    name: String,
    arguments: Map<String, Value>,
}

/// A tool the demo model may call.
#[derive(Debug, Clone, Copy)]
pub(super) struct DemoTool<'a> {
    /// Its name as the model has to write it.
    pub(super) name: &'a str,
    /// What it does.
    pub(super) description: &'a str,
    /// The JSON schema of its arguments.
    pub(super) parameters: &'a Value,
}

impl DemoModel {
    /// A demo model that has not written anything yet.
    #[must_use]
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// What the model writes next, given messages as the OpenAI API has them and the tools on offer.
    pub(super) fn answer(&self, messages: &[Value], tools: &[DemoTool<'_>]) -> String {
        let outcomes = outcomes(messages);
        let (finders, others): (Vec<_>, Vec<_>) =
            tools.iter().copied().partition(|tool| pick::finds_tools(tool.name));
        let is_finder =
            |outcome: &Outcome| finders.iter().any(|finder| Some(finder.name) == outcome.tool.as_deref());
        let searched = !outcomes.is_empty() && outcomes.iter().all(is_finder);
        if !outcomes.is_empty() && !searched {
            return reply::from_results(&outcomes);
        }
        let asked =
            messages.iter().rev().find(|message| role(message) == "user").map(content).unwrap_or_default();
        let asked: String = asked.chars().take(LONGEST).collect();
        let calls = Self::calls(pick::pick(&asked, &others), &others);
        // What none of these is for may be for one that has to be found first.
        let calls = if calls.is_empty() && !searched {
            Self::calls(pick::finder(&asked, &finders), &finders)
        } else {
            calls
        };
        let calls =
            if calls.is_empty() { Self::calls(pick::for_questions(&asked, &others), &others) } else { calls };
        self.write(&asked, &calls).unwrap_or_else(|| reply::introduction(&others))
    }

    /// The calls with their arguments.
    fn calls(picks: Vec<pick::Pick>, tools: &[DemoTool<'_>]) -> Vec<Call> {
        let filled = picks.iter().filter_map(|pick| {
            let tool = tools.get(pick.tool)?;
            let lead = words::split_name(tool.name).iter().map(|word| words::stem(word)).collect();
            let question = Question::new(&pick.text, lead);
            let arguments = fill::fill(tool.name, tool.parameters, &question);
            Some(Call { name: tool.name.to_owned(), arguments })
        });
        filled.collect()
    }

    /// The calls as text; `None` where there is none, or no dialect can carry them.
    fn write(&self, asked: &str, calls: &[Call]) -> Option<String> {
        if calls.is_empty() {
            return None;
        }
        // A program that asks once and ends would else only ever show the first.
        let mut hasher = DefaultHasher::new();
        asked.hash(&mut hasher);
        let start = usize::try_from(hasher.finish() % DIALECTS.len() as u64).unwrap_or_default();
        let turn = start + self.written.fetch_add(1, Ordering::Relaxed);
        // One that cannot carry these calls lets the next go first.
        let turns = DIALECTS.iter().cycle().skip(turn % DIALECTS.len()).take(DIALECTS.len());
        let text = turns.filter_map(|name| dialect::dialect(name)).find_map(|row| {
            let each = calls.iter().map(|call| row.call(&call.name, &call.arguments));
            Some(each.collect::<Option<Vec<String>>>()?.join("\n"))
        })?;
        Some(format!("{}\n\n{text}", sentence(calls, turn)))
    }
}

fn sentence(calls: &[Call], turn: usize) -> String {
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    let names = names.join(" and ");
    match turn % 3 {
        0 => format!("Let me ask {names}."),
        1 => format!("I will use {names} for that."),
        _ => format!("One moment, {names} should know."),
    }
}

/// The results after the model's last words, oldest first.
fn outcomes(messages: &[Value]) -> Vec<Outcome> {
    let mut found: Vec<Outcome> = Vec::new();
    for message in messages.iter().rev() {
        match role(message) {
            "tool" | "function" => {
                found.push(Outcome { tool: called(messages, message), text: content(message) });
            }
            "user" => {
                let responses = responses(&content(message));
                if responses.is_empty() {
                    break;
                }
                found.extend(responses.into_iter().rev().map(|text| Outcome { tool: None, text }));
            }
            _ => break,
        }
    }
    found.reverse();
    found
}

/// Results in a text: what stands between the marks. Nothing, if the text is something else as well.
fn responses(text: &str) -> Vec<String> {
    let mut rest = text.trim();
    let mut found = Vec::new();
    while let Some(inside) = rest.strip_prefix(RESPONSE.0) {
        let (response, after) = inside.split_once(RESPONSE.1).unwrap_or((inside, ""));
        found.push(response.trim().to_owned());
        rest = after.trim_start();
    }
    found
}

/// The name of the tool a result is from: it says so itself, or the call with its id does.
fn called(messages: &[Value], result: &Value) -> Option<String> {
    let own = result.get("name").and_then(Value::as_str).map(str::to_owned);
    let id = result.get("tool_call_id").filter(|id| id.is_string());
    own.or_else(|| {
        let calls =
            messages.iter().rev().filter_map(|message| message.get("tool_calls")?.as_array()).flatten();
        let mut calls = calls.filter(|call| id.is_some() && call.get("id") == id);
        calls.next()?.pointer("/function/name")?.as_str().map(str::to_owned)
    })
}

/// A message's text: a string, or the text among its parts.
fn content(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        Some(Value::Object(fields)) => text_of(fields),
        _ => String::new(),
    }
}

fn text_of(fields: &Map<String, Value>) -> String {
    let text = fields.get("text").and_then(Value::as_str);
    text.map_or_else(|| Value::Object(fields.clone()).to_string(), str::to_owned)
}

/// Cuts a text into pieces of two to six characters, so that streaming it is like streaming a real model. The same
/// text is always cut in the same way; only a text of one character has a shorter piece.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let mut step: u32 = 7;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        step = step.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let mut length = 2 + (step >> 16) as usize % 5;
        // A single character at the end is no piece of its own.
        if rest.chars().take(length + 2).count() == length + 1 {
            length = if length == 6 { 5 } else { length + 1 };
        }
        let at = rest.char_indices().nth(length).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at_checked(at)?;
        rest = after;
        Some(piece)
    })
}
