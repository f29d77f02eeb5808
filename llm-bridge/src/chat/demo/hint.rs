//! What kind of thing an argument asks for, guessed from its name, format and description.

use serde_json::{Map, Value};

use super::words::{split_name, words};

/// What to look for in the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    Url,
    Email,
    Date,
    Time,
    Moment,
    Zone,
    Place,
    Path,
    Sum,
    Language,
    Currency,
    /// A program in some language.
    Code,
    Sql,
    /// How often, as a cron pattern.
    Recurrence,
    /// The name of another tool.
    Tool,
    /// A name, an identifier: some words of the question, seldom all of them.
    Thing,
    Text,
}

/// Names of arguments that take whatever is said.
const TEXTS: &[&str] = &[
    "text",
    "query",
    "q",
    "question",
    "body",
    "content",
    "message",
    "title",
    "prompt",
    "topic",
    "label",
    "input",
    "note",
    "keywords",
    "reason",
    "description",
    "comment",
    "task",
    "subject",
    "claim",
    "assertion",
    "statement",
    "sentence",
    "fact",
    "idea",
    "opinion",
    "thought",
    "summary",
    "search",
    "string",
];

impl Hint {
    /// By the name first, since the description often mentions the other arguments as well.
    pub(super) fn of(name: &str, flat: &Map<String, Value>) -> Self {
        let parts = split_name(name);
        let has = |names: &[&str]| parts.iter().any(|part| names.contains(&part.as_str()));
        let format = flat.get("format").and_then(Value::as_str).unwrap_or_default();
        match format {
            "uri" | "url" | "iri" => return Self::Url,
            "email" | "idn-email" => return Self::Email,
            "date" => return Self::Date,
            "time" => return Self::Time,
            "date-time" => return Self::Moment,
            _ => {}
        }
        if has(&["url", "urls", "uri", "link", "links", "href", "webpage", "website"]) {
            Self::Url
        } else if has(&["sql"]) {
            Self::Sql
        } else if has(&["cron", "crontab", "recurrence"]) {
            Self::Recurrence
        } else if matches!(name, "tool" | "tool_name") {
            Self::Tool
        } else if matches!(name, "code" | "program" | "script" | "command" | "commands") {
            Self::Code
        } else if has(&["email", "emails", "mail"]) {
            Self::Email
        } else if has(&["timezone", "zone", "tz"]) {
            Self::Zone
        } else if has(&["expression", "formula", "equation", "calculation"]) {
            Self::Sum
        } else if has(&["language", "lang", "locale"]) {
            Self::Language
        } else if has(&["currency"]) {
            Self::Currency
        } else if has(&["datetime", "timestamp"]) || (has(&["date"]) && has(&["time"])) {
            Self::Moment
        } else if has(&["date", "day", "due", "deadline", "birthday"]) {
            Self::Date
        } else if has(&["time"]) {
            Self::Time
        } else if has(&[
            "city",
            "cities",
            "place",
            "location",
            "town",
            "country",
            "destination",
            "origin",
            "region",
        ]) {
            Self::Place
        } else if has(&["path", "file", "filename", "directory", "folder"]) {
            Self::Path
        } else if has(TEXTS) {
            Self::Text
        } else {
            let description = flat.get("description").and_then(Value::as_str).unwrap_or_default();
            Self::by_description(description)
        }
    }

    fn by_description(description: &str) -> Self {
        let words = words(description);
        let says = |names: &[&str]| words.iter().any(|word| names.contains(&word.lower.as_str()));
        if says(&["url", "uri", "hyperlink"]) {
            Self::Url
        } else if says(&["email"]) || description.contains("e-mail address") {
            Self::Email
        } else if says(&["iana", "timezone"]) {
            Self::Zone
        } else if says(&["arithmetic", "arithmetical"]) {
            Self::Sum
        } else if says(&["currency"]) {
            Self::Currency
        } else if says(&["language"]) {
            Self::Language
        } else if says(&["city", "town", "village", "airport", "station"]) {
            Self::Place
        } else if says(&[
            "assertion",
            "claim",
            "statement",
            "sentence",
            "sentences",
            "paragraph",
            "passage",
            "prose",
        ]) {
            Self::Text
        } else {
            Self::Thing
        }
    }

    /// What a required text gets when the question has none and the schema gives no example.
    pub(super) fn fallback(self) -> Option<&'static str> {
        match self {
            Self::Url => Some("https://example.com/"),
            Self::Email => Some("someone@example.com"),
            Self::Date => Some("today"),
            Self::Time => Some("12:00"),
            Self::Moment => Some("now"),
            Self::Zone => Some("UTC"),
            Self::Language => Some("English"),
            Self::Currency => Some("USD"),
            Self::Recurrence => Some("0 8 * * *"),
            Self::Place
            | Self::Path
            | Self::Sum
            | Self::Code
            | Self::Sql
            | Self::Tool
            | Self::Thing
            | Self::Text => None,
        }
    }
}
