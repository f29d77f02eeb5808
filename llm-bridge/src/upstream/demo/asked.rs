//! What stands plainly in a question, and the arguments that it makes.

use std::{collections::VecDeque, sync::LazyLock};

use regex::Regex;
use serde_json::{Map, Number, Value, json};

/// A question of more parts is taken as a whole.
const MOST_CLAUSES: usize = 8;

const QUOTES: [char; 4] = ['"', '“', '”', '`'];

/// What a question is about.
static PLAIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let number = r"\b\d[\d,]*(?:\.\d+)?";
    let expression = format!(r"[-(]*{number}\)*(?:(?:%\s+of\s+|\s*[-+*/^×÷%]\s*)[-(]*{number}\)*)+");
    // The first word has a capital in any case.
    let name = r"\p{Lu}[\w/'’-]+";
    let quoted = r#"["“`](?<quoted>[^"”`]+)["”`]|(?<url>https?://[^\s"<>]*[\w/])"#;
    let numbers = format!(r"(?<date>\d{{4}}-\d\d-\d\d)|(?<expression>{expression})|(?<number>-?{number})");
    Regex::new(&format!(r"{quoted}|{numbers}|[\s(](?<name>{name}(?:\s+{name})*)")).ok()
});
static JOINT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)\s+and\s+|[?;]+(?:\s+|$)").ok());

/// The parts of a question that may ask for something each. What stands in quotes or behind a colon is not taken apart.
pub(super) fn clauses(question: &str) -> Vec<&str> {
    let colon = question.find(": ").unwrap_or(question.len());
    let (mut found, mut start) = (Vec::new(), 0);
    for joint in JOINT.iter().flat_map(|joint| joint.find_iter(question)) {
        let before = question.get(..joint.start()).unwrap_or_default();
        if joint.start() < colon && before.matches(QUOTES).count() % 2 == 0 {
            found.extend(question.get(start..joint.start()));
            start = joint.end();
        }
    }
    found.extend(question.get(start..));
    found.retain(|clause| clause.contains(char::is_alphanumeric));
    if found.len() > MOST_CLAUSES { vec![question] } else { found }
}

/// A question, or a clause of one, taken apart. What an argument has taken is gone.
#[derive(Default)]
pub(super) struct Asked<'q> {
    /// What to look for a tool with.
    pub(super) search: String,
    words: Vec<String>,
    quoted: VecDeque<&'q str>,
    names: VecDeque<&'q str>,
    numbers: VecDeque<Number>,
    expression: Option<String>,
    url: Option<&'q str>,
    /// All behind a colon, behind `for` or `about`, and behind `in`.
    reported: Option<&'q str>,
    about: Option<&'q str>,
    place: Option<&'q str>,
}

impl<'q> Asked<'q> {
    pub(super) fn read(text: &'q str) -> Self {
        let text = text.trim().trim_end_matches(['.', '!', '?', ';', ',']);
        let (head, reported) =
            text.split_once(": ").map_or((text, None), |(head, reported)| (head, Some(reported)));
        let behind = |word: &str| head.split_once(word).map(|(_, behind)| behind.trim());
        let mut asked = Self {
            // What is quoted does not say what is wanted.
            search: head.split(QUOTES).step_by(2).collect(),
            words: text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect(),
            reported: reported.map(str::trim),
            about: behind(" for ").or_else(|| behind(" about ")),
            place: behind(" in "),
            ..Self::default()
        };
        for found in PLAIN.iter().flat_map(|plain| plain.captures_iter(text)) {
            let group = |name| found.name(name).map(|found| found.as_str());
            asked.quoted.extend(group("quoted"));
            asked.url = asked.url.or(group("url"));
            asked.expression = asked.expression.or_else(|| group("expression").map(arithmetic));
            let number = group("number").map(|number| number.replace(',', ""));
            asked.numbers.extend(number.and_then(|number| number.parse::<Number>().ok()));
            asked.names.extend(group("date").or(group("name")));
        }
        // An argument is named after what it takes.
        asked.search.push_str(if asked.expression.is_some() { " expression" } else { "" });
        asked.search.push_str(if asked.url.is_some() { " url" } else { "" });
        asked
    }

    /// The required arguments, or the first one where none is required; `None` where one of them does not stand in the question.
    pub(super) fn arguments(&mut self, schema: &Value) -> Option<Map<String, Value>> {
        let (required, optional) = properties(schema);
        let optional = optional.into_iter().take(usize::from(required.is_empty()));
        let optional = optional.filter_map(|(name, of)| Some((name.to_owned(), self.argument(name, of)?)));
        let optional: Vec<_> = optional.collect();
        let required =
            required.into_iter().map(|(name, of)| Some((name.to_owned(), self.argument(name, of)?)));
        required.chain(optional.into_iter().map(Some)).collect()
    }

    fn argument(&mut self, name: &str, schema: &Value) -> Option<Value> {
        let value = match schema.get("items").filter(|_| kind(schema) == "array") {
            Some(items) => self.single(name, items).map(|item| json!([item])),
            None => self.single(name, schema),
        };
        value.or_else(|| schema.get("default").cloned())
    }

    fn single(&mut self, name: &str, schema: &Value) -> Option<Value> {
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let named = |word: &str| {
                values.iter().find(|value| value.as_str().map(str::to_lowercase).as_deref() == Some(word))
            };
            let at = self.words.iter().position(|word| named(word).is_some())?;
            return named(&self.words.remove(at)).cloned();
        }
        match kind(schema) {
            "integer" => self.numbers.pop_front().filter(|number| number.is_i64()).map(Value::Number),
            "number" => self.numbers.pop_front().map(Value::Number),
            "string" => self.string(name).map(Value::String),
            _ => None,
        }
    }

    fn string(&mut self, name: &str) -> Option<String> {
        let found = match (self.quoted.pop_front().or_else(|| self.reported.take()), name) {
            (None, "expression") => return self.expression.take(),
            (None, "url") => self.url.take(),
            (None, _) => self.about.take().or_else(|| self.names.pop_front()).or_else(|| self.place.take()),
            (reported, _) => reported,
        };
        found.map(str::to_owned)
    }
}

/// An expression as calculators read it.
fn arithmetic(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace("% of ", " / 100 * ").replace(',', "").replace('×', "*").replace('÷', "/")
}

/// A property's name and schema.
type Property<'s> = (&'s str, &'s Value);

/// The properties that are required and those that are not.
fn properties(schema: &Value) -> (Vec<Property<'_>>, Vec<Property<'_>>) {
    let required = schema.get("required").and_then(Value::as_array);
    let all = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    all.map(|(name, of)| (name.as_str(), of))
        .partition(|(name, _)| required.is_some_and(|required| required.iter().any(|one| one == name)))
}

/// The type of a value that is not `null`.
fn kind(schema: &Value) -> &str {
    let kinds =
        schema.get("type").map(|kinds| kinds.as_array().map_or(std::slice::from_ref(kinds), Vec::as_slice));
    kinds.into_iter().flatten().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or_default()
}

/// A question that this reads, with the examples of the tool's own schema; `None` where it has none.
pub(super) fn example(name: &str, schema: &Value) -> Option<String> {
    let (required, optional) = properties(schema);
    let shown = if required.is_empty() { optional.into_iter().take(1).collect() } else { required };
    let value = |(_, of): Property<'_>| {
        let quoted = || of.get("description")?.as_str()?.split('"').nth(1);
        let first = of.pointer("/examples/0").and_then(Value::as_str).or_else(quoted);
        first.filter(|_| kind(of) == "string").map(|value| format!("\"{value}\""))
    };
    let values: Vec<String> = shown.into_iter().map(value).collect::<Option<_>>()?;
    (!values.is_empty()).then(|| format!("Use {name} with {}", values.join(" and ")))
}
