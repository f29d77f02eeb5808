//! How well tools fit a question in somebody's own words.

use std::collections::HashMap;

use serde_json::Value;

use crate::spec::ToolSpec;

/// No more words of a question are looked at.
const MOST_WORDS: usize = 32;
/// What fits less than this share of what fits best is left out.
const LEAST_SHARE: f64 = 0.3;

/// What a word counts for, by where it stands.
const IN_NAME: f64 = 4.0;
const IN_TAG: f64 = 3.0;
const IN_TITLE: f64 = 3.0;
const IN_ARGUMENT: f64 = 1.5;
const IN_DESCRIPTION: f64 = 1.5;
/// How soon it counts no more that a word stands in a better place.
const SATURATION: f64 = 2.0;

/// How alike two words are that are not the same: two forms of one word, and one in the other.
const SAME_STEM: f64 = 0.8;
const CONTAINED: f64 = 0.5;

/// Words that say nothing of what a tool does.
const EMPTY_WORDS: &[&str] = &[
    "a", "an", "and", "any", "are", "at", "be", "by", "can", "could", "do", "does", "for", "from", "how",
    "i", "in", "is", "it", "its", "me", "my", "need", "of", "on", "or", "please", "some", "that", "the",
    "there", "this", "to", "tool", "tools", "use", "using", "want", "we", "what", "which", "with", "you",
    "your",
];

/// The tools that a text in somebody's own words may mean, best first; of equals the first in the order given. Tools that fit
/// much worse than the best are left out. An empty text means all of them.
///
/// [`Registry::search`](crate::Registry::search) ranks so what is registered; this also ranks specs that are not.
pub fn rank_tools<T>(
    text: &str,
    tools: impl IntoIterator<Item = T>,
    spec: impl Fn(&T) -> &ToolSpec,
) -> Vec<T> {
    let tools = tools.into_iter();
    let question = Question::new(text);
    if question.words.is_empty() {
        return if text.trim().is_empty() { tools.collect() } else { Vec::new() };
    }
    let tools: Vec<(Vec<f64>, T)> =
        tools.map(|tool| (question.hits(&Words::of(spec(&tool))), tool)).collect();
    // A word that many tools have says little.
    let all = count(tools.len());
    let weights: Vec<f64> = (0..question.words.len())
        .map(|at| {
            let having = tools.iter().filter(|(hits, _)| hits.get(at).is_some_and(|hit| *hit > 0.0)).count();
            (1.0 + (all - count(having) + 0.5) / (count(having) + 0.5)).ln()
        })
        .collect();
    let score = |name: &str, hits: &[f64]| -> f64 {
        let words: f64 =
            hits.iter().zip(&weights).map(|(hit, weight)| weight * hit / (hit + SATURATION)).sum();
        // Whoever writes the name means the tool.
        if question.is_name(name) { words + weights.iter().sum::<f64>() } else { words }
    };
    let mut scored: Vec<(f64, T)> = tools
        .into_iter()
        .map(|(hits, tool)| (score(&spec(&tool).tool_name, &hits), tool))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let least = scored.first().map_or(0.0, |(best, _)| best * LEAST_SHARE);
    scored.into_iter().take_while(|(score, _)| *score >= least).map(|(_, tool)| tool).collect()
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

/// What is asked for.
struct Question {
    words: Vec<String>,
    /// All of it as a name would be written.
    name: String,
}

impl Question {
    fn new(text: &str) -> Self {
        let mut all: Vec<String> = words(text).collect();
        let name = all.join("_");
        all.truncate(MOST_WORDS);
        let mut telling: Vec<String> = Vec::new();
        for word in &all {
            if !EMPTY_WORDS.contains(&word.as_str()) && !telling.contains(word) {
                telling.push(word.clone());
            }
        }
        Self { words: telling, name }
    }

    /// For each word how well it stands in a tool.
    fn hits(&self, tool: &Words) -> Vec<f64> {
        self.words.iter().map(|word| tool.find(word)).collect()
    }

    fn is_name(&self, name: &str) -> bool {
        let written = |name: &str| words(name).collect::<Vec<_>>().join("_");
        let own = name.split_once('.').map_or(name, |(_, own)| own);
        self.name == written(name) || self.name == written(own)
    }
}

/// A tool's words, with what each counts for in its best place.
struct Words {
    all: HashMap<String, f64>,
    name: Vec<String>,
}

impl Words {
    fn of(spec: &ToolSpec) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let arguments = spec.input_schema.get("properties").and_then(Value::as_object);
        let arguments = arguments.into_iter().flat_map(|members| members.keys()).cloned();
        let mut all = HashMap::new();
        for (text, weight) in [
            (text(&spec.description), IN_DESCRIPTION),
            (arguments.collect::<Vec<_>>().join(" "), IN_ARGUMENT),
            (text(&spec.title), IN_TITLE),
            (spec.tags.join(" "), IN_TAG),
            (spec.tool_name.clone(), IN_NAME),
        ] {
            // Later places count for more.
            all.extend(words(&text).map(|word| (word, weight)));
        }
        Self { all, name: words(&spec.tool_name).collect() }
    }

    fn find(&self, word: &str) -> f64 {
        if let Some(weight) = self.all.get(word) {
            return *weight;
        }
        let forms =
            self.all.iter().filter(|(known, _)| same_stem(word, known)).map(|(_, weight)| weight * SAME_STEM);
        // Names leave out what stands between words, and some scripts write nothing there.
        let in_name = self.name.iter().any(|known| word.len() > 2 && known.contains(word));
        let in_script = || !word.is_ascii() && self.all.keys().any(|known| known.contains(word));
        let contained = match (in_name, !in_name && in_script()) {
            (true, _) => IN_NAME * CONTAINED,
            (_, true) => IN_DESCRIPTION * CONTAINED,
            _ => 0.0,
        };
        forms.fold(contained, f64::max)
    }
}

/// The words of a text in small letters; a name such as `getForecast_2` has three.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut before_is_small = false;
    for c in text.chars() {
        if c.is_uppercase() && before_is_small {
            spaced.push(' ');
        }
        before_is_small = c.is_lowercase();
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    let words: Vec<String> = spaced.split_whitespace().map(str::to_lowercase).collect();
    words.into_iter()
}

/// Whether two words seem to be forms of one: `file` and `files`, `create` and `creating`.
fn same_stem(a: &str, b: &str) -> bool {
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let rest = |word: &str| word.chars().count() - common;
    common >= 4 && rest(a) <= 3 && rest(b) <= 3
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TOOLS: &[(&str, &str, &str)] = &[
        ("mail.send_message", "Sends an e-mail to one or more people.", "recipients subject body"),
        ("mail.list_folders", "Lists the folders of the mailbox.", ""),
        ("files.read", "Reads a file and gives its text.", "path"),
        ("files.deleteFile", "Removes a file for good.", "path"),
        ("calendar.create_event", "Adds an appointment to the calendar.", "title start end"),
        ("weather.forecast", "The weather of the next days at a place.", "city days"),
        ("db.runsql", "Runs a query on the database.", "statement"),
        ("wetter.heute", "查询今天的天气", "ort"),
    ];

    fn search(text: &str) -> Vec<String> {
        let tools: Vec<ToolSpec> = TOOLS
            .iter()
            .map(|(name, description, arguments)| {
                let properties =
                    arguments.split_whitespace().map(|name| (name.to_owned(), json!({"type": "string"})));
                let properties = properties.collect::<serde_json::Map<_, _>>();
                let schema = json!({"type": "object", "properties": properties});
                ToolSpec { description: Some((*description).into()), ..ToolSpec::new(*name, schema) }
            })
            .collect();
        rank_tools(text, &tools, |tool| tool).into_iter().map(|tool| tool.tool_name.clone()).collect()
    }

    #[test]
    fn b11_a_question_in_ones_own_words_finds_the_tool() {
        for (text, expected) in [
            ("send an email to Bob", "mail.send_message"),
            ("I want to delete files", "files.deleteFile"),
            ("what tools are there for reading a file?", "files.read"),
            ("creating a calendar entry", "calendar.create_event"),
            ("weather forecasts for a city", "weather.forecast"),
            ("SQL", "db.runsql"),
            ("天气", "wetter.heute"),
            ("weather_forecast", "weather.forecast"),
            ("deleteFile", "files.deleteFile"),
            ("recipients", "mail.send_message"),
        ] {
            assert_eq!(search(text).first().map(String::as_str), Some(expected), "{text}");
        }
    }

    #[test]
    fn b11_what_fits_nothing_finds_nothing() {
        for text in ["quantum chromodynamics", "the of to", "?", "\u{1f600}", &"x".repeat(100_000)] {
            assert_eq!(search(text), [""; 0], "{text:.40}");
        }
        assert_eq!(search("  ").len(), TOOLS.len());
        assert!(search("send mail").len() < TOOLS.len());
    }

    #[test]
    fn b11_words_are_separated_in_names_and_in_text() {
        let all = |text: &str| words(text).collect::<Vec<_>>();
        assert_eq!(all("mail.sendHTMLMessage_2, now!"), ["mail", "send", "htmlmessage", "2", "now"]);
        assert!(same_stem("create", "creating") && same_stem("file", "files"));
        assert!(!same_stem("port", "portfolio") && !same_stem("note", "not"));
    }
}
