//! Picks the tools whose words a question has in common with.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use super::hint::Hint;
use super::question::Question;
use super::words::{akin, is_jargon, is_stop, is_weak, split_name, stem, words};
use super::{DemoTool, code, find, lexicon, place, recurrence, schema};

/// Below this a question is not about any of the tools.
const LEAST: f64 = 1.1;
/// From this on a part of a question is worth a call of its own.
const STRONG: f64 = 2.4;
/// Calls written in one answer.
const MOST: usize = 4;

/// A tool and the part of the question it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) tool: usize,
    pub(super) text: String,
}

/// The tools to call for a question, in the order in which it asks for them; none if it is about none of them.
pub(super) fn pick(text: &str, tools: &[DemoTool<'_>]) -> Vec<Pick> {
    let index = Index::new(tools);
    // What stands in a program, names of tools and what looks like clauses, asks for nothing.
    if let Some((program, _)) = code::program(&Question::new(text, Vec::new()))
        && let Some((tool, score)) = index.best(text.get(..program.start).unwrap_or_default())
        && index.tools.get(tool).is_some_and(|tool| tool.asks_for(Hint::Code))
        && score >= LEAST
    {
        return vec![Pick { tool, text: text.to_owned() }];
    }
    if let Some(pick) = named(text, tools) {
        // "Schedule current_time …" names the one tool for the other.
        let other = index.best_that(text, |tool| tool.asks_for(Hint::Tool));
        return match other.filter(|(other, score)| *other != pick.tool && *score >= STRONG) {
            Some((other, _)) => vec![Pick { tool: other, text: text.to_owned() }],
            None => vec![pick],
        };
    }
    let Some((whole, score)) = index.best(text) else { return Vec::new() };
    let mut parts: Vec<(Option<usize>, Range<usize>)> = Vec::new();
    for range in clauses(text) {
        let clause = text.get(range.clone()).unwrap_or_default();
        let strong = index.best(clause).filter(|(_, score)| *score >= STRONG).map(|(tool, _)| tool);
        match parts.last_mut() {
            // What asks for nothing itself, or for the same again, goes on with what was asked before it.
            Some((before, reach)) if strong.is_none() || *before == strong || before.is_none() => {
                reach.end = range.end;
                *before = strong.or(*before);
            }
            _ => parts.push((strong, range)),
        }
    }
    let several: Vec<Pick> = parts
        .iter()
        .filter_map(|(tool, range)| {
            let text = text.get(range.clone()).unwrap_or_default().trim().to_owned();
            tool.map(|tool| Pick { tool, text })
        })
        .take(MOST)
        .collect();
    if several.len() > 1 {
        return several;
    }
    if score < LEAST { Vec::new() } else { vec![Pick { tool: whole, text: text.to_owned() }] }
}

/// The first tool that takes any question, for a text that is one and that nothing else is for.
pub(super) fn for_questions(text: &str, tools: &[DemoTool<'_>]) -> Vec<Pick> {
    let index = Index::new(tools);
    let tool = index.tools.iter().position(|tool| tool.takes_questions).filter(|_| asks(text));
    tool.map(|tool| Pick { tool, text: text.to_owned() }).into_iter().collect()
}

/// The first of the tools that find other tools, for a text that wants something.
pub(super) fn finder(text: &str, finders: &[DemoTool<'_>]) -> Vec<Pick> {
    let wants = words(text).iter().any(|word| !is_stop(&word.lower));
    let found = finders.first().filter(|_| wants).map(|_| Pick { tool: 0, text: text.to_owned() });
    found.into_iter().collect()
}

/// Whether a tool is there to find others, by its name.
pub(super) fn finds_tools(name: &str) -> bool {
    let parts = split_name(name);
    let has = |names: &[&str]| parts.iter().any(|part| names.contains(&part.as_str()));
    has(&["tool", "tools"]) && has(&["search", "find"])
}

/// Whether a text asks for something, and says what about.
fn asks(text: &str) -> bool {
    const ASKING: &[&str] = &[
        "who", "why", "when", "where", "which", "what", "how", "whose", "find", "look", "search", "show",
        "tell",
    ];
    let words = words(text);
    let asking = words.first().is_some_and(|word| ASKING.contains(&word.lower.as_str()));
    (asking || text.trim_end().ends_with('?'))
        && words.iter().filter(|word| !is_stop(&word.lower) && !is_weak(&word.lower)).count() > 1
}

/// The parts of a question that may each ask for something.
fn clauses(text: &str) -> Vec<Range<usize>> {
    let question = Question::new(text, Vec::new());
    let mut found = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let rest = text.get(at..).unwrap_or_default();
        let after = rest.chars().nth(1).is_none_or(char::is_whitespace);
        let length = match c {
            '?' | ';' | '!' | '.' if after => 1,
            '\n' => 1,
            ' ' => [" and then ", " and ", " then "]
                .iter()
                .find(|joint| rest.starts_with(*joint))
                .map_or(0, |joint| joint.len()),
            _ => 0,
        };
        if length > 0 && at >= start && !question.is_quoted(&(at..at + 1)) {
            found.push(start..at);
            start = at + length;
        }
    }
    found.push(start..text.len());
    found.retain(|range| text.get(range.clone()).is_some_and(|part| part.contains(char::is_alphanumeric)));
    found
}

/// A tool called by its name: `Use weather: Oslo`, `roll_dice with 3 dice`. Its arguments are in what follows.
fn named(text: &str, tools: &[DemoTool<'_>]) -> Option<Pick> {
    let plain = normal(text);
    let mut best: Option<(usize, usize, Range<usize>)> = None;
    for (tool, name) in
        tools.iter().enumerate().flat_map(|(at, tool)| names(tool.name).into_iter().map(move |n| (at, n)))
    {
        for (at, _) in plain.match_indices(&name) {
            let range = at..at + name.len();
            if best.as_ref().is_none_or(|(length, ..)| name.len() > *length)
                && means_name(&plain, &range, &name)
            {
                best = Some((name.len(), tool, range));
            }
        }
    }
    let (_, tool, range) = best?;
    let after = text.get(range.end..).unwrap_or_default().trim_start_matches(['`', '"', ':', ' ', '(']);
    if after.contains(char::is_alphanumeric) {
        return Some(Pick { tool, text: after.to_owned() });
    }
    let before = text.get(..range.start).unwrap_or_default().trim_end_matches(['`', '"', ' ']);
    let verb = words(before)
        .last()
        .filter(|word| CALLING.contains(&word.lower.as_str()))
        .map(|word| word.range.start);
    let before = before.get(..verb.unwrap_or(before.len())).unwrap_or_default();
    Some(Pick { tool, text: before.trim().to_owned() })
}

const CALLING: &[&str] = &["use", "call", "run", "tool", "using", "try", "invoke", "the"];

fn means_name(plain: &str, range: &Range<usize>, name: &str) -> bool {
    let before = plain.get(..range.start).unwrap_or_default();
    let after = plain.get(range.end..).unwrap_or_default();
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    if before.ends_with(inside) || after.starts_with(inside) {
        return false;
    }
    let called =
        words(before).last().is_some_and(|word| CALLING.iter().take(7).any(|verb| *verb == word.lower))
            && before.ends_with([' ', '`', '"']);
    name.contains('_')
        || (before.ends_with('`') && after.starts_with('`'))
        || (after.starts_with([':', '(']) && !before.contains(char::is_alphanumeric))
        || (called && !after.trim_start().starts_with(|c: char| c.is_ascii_digit() && name.len() < 4))
        || (before.trim().is_empty() && after.trim().is_empty())
}

/// A tool's name, and what is left of it without the module in front.
fn names(name: &str) -> Vec<String> {
    let full = normal(name);
    let mut all: Vec<String> = full
        .match_indices('_')
        .filter_map(|(at, _)| full.get(at + 1..))
        .filter(|rest| rest.contains('_'))
        .map(str::to_owned)
        .collect();
    all.push(full);
    all.retain(|name| name.contains(char::is_alphanumeric));
    all
}

/// Lower case, with one sign for what joins the parts of a name. No byte moves.
fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let joins = matches!(c, '.' | '-')
            && out.ends_with(|c: char| c.is_ascii_alphanumeric())
            && chars.peek().is_some_and(char::is_ascii_alphabetic);
        out.push(if joins { '_' } else { c.to_ascii_lowercase() });
    }
    out
}

/// What each tool's words weigh.
struct Index {
    tools: Vec<Entry>,
    /// In how many tools a word occurs.
    spread: BTreeMap<String, usize>,
}

struct Entry {
    weights: BTreeMap<String, f64>,
    /// What it asks for, and whether it must have it.
    hints: Vec<(Hint, bool)>,
    /// How many numbers it must have.
    numbers: usize,
    /// Whether it takes a question, whatever that is about.
    takes_questions: bool,
}

impl Index {
    fn new(tools: &[DemoTool<'_>]) -> Self {
        let tools: Vec<Entry> = tools.iter().map(Entry::new).collect();
        let mut spread = BTreeMap::new();
        for word in tools.iter().flat_map(|tool| tool.weights.keys()) {
            *spread.entry(word.clone()).or_insert(0) += 1;
        }
        Self { tools, spread }
    }

    /// A word only one tool has counts in full, one that all have says little.
    fn rarity(&self, word: &str) -> f64 {
        let all = self.tools.len().max(1) as f64;
        let having = self.spread.get(word).copied().unwrap_or(1).max(1) as f64;
        (1.0 + all / having).ln() / (1.0 + all).ln()
    }

    fn best(&self, text: &str) -> Option<(usize, f64)> {
        self.best_that(text, |_| true)
    }

    /// The best of some tools, and its score.
    fn best_that(&self, text: &str, fits: impl Fn(&Entry) -> bool) -> Option<(usize, f64)> {
        // The words of an address say nothing of what is to be done with it.
        let address = find::url(&Question::new(text, Vec::new())).map(|(range, _)| range);
        let inside = |word: &Range<usize>| {
            address.as_ref().is_some_and(|address| address.start < word.end && word.start < address.end)
        };
        let asked: Vec<_> = words(text).into_iter().filter(|word| !inside(&word.range)).collect();
        let question = Question::new(text, Vec::new());
        let sum = find::sum(&question).is_some();
        let url = address.is_some();
        let email = find::email(&question).is_some();
        let path = !url && find::path(&question).is_some();
        let place = place::place(&question, None).is_some();
        let program = code::program(&question).is_some();
        let select = code::select(&question).is_some() || code::counts(&question);
        let recurrence = recurrence::recurrence(&question).is_some();
        let numbers = question.numbers().len();
        let mut best: Option<(usize, f64)> = None;
        for (at, tool) in self.tools.iter().enumerate().filter(|(_, tool)| fits(tool)) {
            let mut score = self.overlap(tool, &asked);
            for (hint, required) in &tool.hints {
                let (there, more, less) = match hint {
                    Hint::Sum => (sum, 4.0, 1.5),
                    // Other tools deal with what has an address too.
                    Hint::Url => (url, if score > 0.0 { 4.0 } else { 2.0 }, 2.0),
                    Hint::Code => (program && score > 0.0, 2.0, 0.5),
                    Hint::Sql => (select && score > 0.0, 1.5, 0.5),
                    Hint::Recurrence => (recurrence && score > 0.0, 3.0, 0.5),
                    Hint::Email => (email, 1.5, 0.5),
                    Hint::Path => (path && score > 0.0, 2.0, 0.5),
                    Hint::Place | Hint::Zone => (place, 0.4, 0.0),
                    _ => continue,
                };
                score += if there {
                    more
                } else if *required && score > 0.0 {
                    -less
                } else {
                    0.0
                };
            }
            if tool.numbers > 0 && numbers >= tool.numbers && score > 0.0 {
                score += 0.6;
            }
            if best.is_none_or(|(_, most)| score > most) {
                best = Some((at, score));
            }
        }
        best
    }

    fn overlap(&self, tool: &Entry, asked: &[super::words::Word]) -> f64 {
        let weigh = |stem: &str| tool.weights.get(stem).map_or(0.0, |weight| weight * self.rarity(stem));
        let mut counted: Vec<&str> = Vec::new();
        let mut score = 0.0;
        for (at, word) in asked.iter().enumerate() {
            if is_stop(&word.lower) && akin(&word.lower).is_empty() || counted.contains(&word.stem.as_str()) {
                continue;
            }
            counted.push(&word.stem);
            let direct = if is_stop(&word.lower) { 0.0 } else { weigh(&word.stem) };
            let close = akin(&word.lower).iter().map(|word| weigh(&stem(word)) * 0.6).fold(0.0, f64::max);
            // "web page" is "webpage".
            let next = asked.get(at + 1).map(|next| weigh(&stem(&format!("{}{}", word.lower, next.lower))));
            let weak = if is_weak(&word.lower) { 0.3 } else { 1.0 };
            score += (direct * weak).max(close).max(next.unwrap_or(0.0));
        }
        score
    }
}

impl Entry {
    fn new(tool: &DemoTool<'_>) -> Self {
        let mut entry =
            Self { weights: BTreeMap::new(), hints: Vec::new(), numbers: 0, takes_questions: false };
        split_name(tool.name).iter().for_each(|word| entry.weigh(word, 3.0));
        entry.weigh_text(tool.description, 1.2);
        for flat in schema::expand(tool.parameters, tool.parameters) {
            entry.weigh_object(tool.parameters, &flat, 0);
        }
        entry
    }

    /// Whether it must have something of that kind.
    fn asks_for(&self, wanted: Hint) -> bool {
        self.hints.iter().any(|(hint, required)| *hint == wanted && *required)
    }

    fn weigh_object(&mut self, root: &Value, flat: &serde_json::Map<String, Value>, depth: usize) {
        let needed: Vec<&str> = schema::required(flat).collect();
        for (name, of) in schema::properties(flat).into_iter().flatten() {
            split_name(name).iter().for_each(|word| self.weigh(word, 1.0));
            for inner in schema::expand(root, of) {
                let described = inner.get("description").and_then(Value::as_str).unwrap_or_default();
                self.weigh_text(described, 0.6);
                self.takes_questions |= schema::kind(&inner) == "string"
                    && needed.contains(&name.as_str())
                    && words(described).iter().any(|word| word.stem == "question");
                let values = inner
                    .get("enum")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .chain(inner.get("const"));
                for value in values.filter_map(Value::as_str) {
                    split_name(value).iter().for_each(|word| self.weigh(word, 0.8));
                    lexicon::aliases(value).into_iter().for_each(|word| self.keep(word, 0.8));
                }
                if schema::kind(&inner) == "string" {
                    self.hints.push((Hint::of(name, &inner), needed.contains(&name.as_str())));
                } else if matches!(schema::kind(&inner), "integer" | "number") {
                    self.numbers += usize::from(needed.contains(&name.as_str()));
                } else if schema::kind(&inner) == "object" && depth < 3 {
                    self.weigh_object(root, &inner, depth + 1);
                }
            }
        }
    }

    fn weigh_text(&mut self, text: &str, weight: f64) {
        words(text).iter().for_each(|word| self.weigh(&word.lower, weight));
    }

    fn weigh(&mut self, lower: &str, weight: f64) {
        if !is_stop(lower) && !is_jargon(lower) && !lower.starts_with(|c: char| c.is_ascii_digit()) {
            self.keep(stem(lower), weight);
        }
    }

    /// A word counts where it weighs most.
    fn keep(&mut self, stem: String, weight: f64) {
        let kept = self.weights.entry(stem).or_insert(weight);
        *kept = kept.max(weight);
    }
}
