//! What was seen: one finding for each probe.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;
use serde_json::{Map, Value};
use strum::{EnumIter, IntoEnumIterator};

use super::{
    best::Best,
    session::{Answered, Unanswered},
};
use crate::upstream::{Route, UpstreamError};

/// The longest text of a server or a model that is repeated, in characters.
const LONGEST: usize = 100;

/// All that was seen; as JSON it is described in `docs/doctor.schema.json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The model's name at its server.
    pub(super) model: String,
    pub(super) server: Server,
    /// How long it took.
    pub(super) seconds: f64,
    /// How many requests were sent.
    pub(super) requests: u32,
    /// Whether all probes were tried.
    pub(super) complete: bool,
    pub(super) probes: BTreeMap<Probe, Finding>,
    /// The settings that serve the model best.
    pub(super) settings: Best,
    /// The same as they stand in the configuration file, if any are needed.
    pub(super) toml: Option<String>,
    /// What to do besides.
    pub(super) advice: Vec<String>,
    /// What was changed in the configuration file.
    pub(super) written: Option<String>,
}

/// The model server.
#[derive(Debug, Serialize)]
pub(super) struct Server {
    /// Its base address.
    pub(super) address: String,
    /// The id of its kind, if it was recognised.
    pub(super) kind: Option<&'static str>,
    /// Whether it lists the model.
    pub(super) lists_model: bool,
}

impl Report {
    pub(super) fn new(route: &Route, lists_model: bool) -> Self {
        let server = Server {
            address: route.address().to_owned(),
            kind: route.kind().map(|kind| kind.id),
            lists_model,
        };
        Self {
            model: route.model().to_owned(),
            server,
            seconds: 0.0,
            requests: 0,
            complete: false,
            probes: BTreeMap::new(),
            settings: Best::default(),
            toml: None,
            advice: Vec::new(),
            written: None,
        }
    }

    pub(super) fn set(&mut self, probe: Probe, finding: Finding) {
        self.probes.insert(probe, finding);
    }

    /// Marks what was not reached.
    pub(super) fn finish(&mut self) {
        for probe in Probe::iter() {
            self.probes.entry(probe).or_insert_with(|| Finding::not_tried(NO_TIME));
        }
        self.complete = self.probes.values().all(|finding| finding.note != NO_TIME);
    }
}

/// What is said of a probe that was not reached.
const NO_TIME: &str = "there was no time for it";

/// What is looked at, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumIter, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Probe {
    Template,
    Native,
    Text,
    Route,
    Parallel,
    Required,
    Named,
    Streams,
    Speed,
    Thinking,
    Pictures,
    Structured,
    Context,
    Cache,
}

/// As in the table.
impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Template => "tools in template",
            Self::Native => "native calls",
            Self::Text => "calls as text",
            Self::Route => "raw route",
            Self::Parallel => "two calls at once",
            Self::Required => "required call",
            Self::Named => "call of one tool",
            Self::Streams => "streams",
            Self::Speed => "speed",
            Self::Thinking => "thinking",
            Self::Pictures => "pictures",
            Self::Structured => "JSON by a schema",
            Self::Context => "context",
            Self::Cache => "prompt cache",
        })
    }
}

/// How a probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// It was seen at each try.
    Yes,
    /// It was seen at some tries.
    Partly,
    /// It was not seen.
    No,
    /// Calls were seen, but in the text.
    Text,
    /// Calls were seen, and none was the right one.
    Wrong,
    /// The server refused the request.
    Refused,
    /// The server failed, or was silent.
    Failed,
    /// What was seen does not tell.
    Unknown,
    /// It was not tried.
    NotTried,
}

impl Verdict {
    /// The verdict on so many right ones of so many tries.
    pub(super) fn of(right: u32, tries: u32) -> Self {
        match right {
            0 => Self::No,
            _ if right == tries => Self::Yes,
            _ => Self::Partly,
        }
    }
}

/// What a probe has seen.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    /// How often it was tried, and how often it was right.
    #[serde(flatten)]
    pub(super) tries: Option<Tries>,
    /// The dialect of calls in text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dialect: Option<&'static str>,
    /// More in words, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) note: String,
    /// What was measured, by names of its own.
    #[serde(flatten)]
    pub(super) figures: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Tries {
    pub(super) right: u32,
    pub(super) tries: u32,
}

impl Finding {
    pub(super) fn new(verdict: Verdict, note: impl Into<String>) -> Self {
        let (tries, dialect, figures) = Default::default();
        Self { verdict, tries, dialect, note: note.into(), figures }
    }

    pub(super) fn not_tried(why: &str) -> Self {
        Self::new(Verdict::NotTried, why)
    }

    /// So many right ones of so many tries.
    pub(super) fn of(right: u32, tries: u32, note: impl Into<String>) -> Self {
        Self { tries: Some(Tries { right, tries }), ..Self::new(Verdict::of(right, tries), note) }
    }

    pub(super) fn figure(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.figures.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn is(&self, verdict: Verdict) -> bool {
        self.verdict == verdict
    }
}

impl From<Unanswered> for Finding {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Refused(error) => {
                let note = match &error {
                    UpstreamError::Refused { status, failure } => {
                        format!("{status}: {}", short(&failure.message))
                    }
                    error => short(&error.to_string()),
                };
                Self::new(Verdict::Refused, note)
            }
            Unanswered::Unread(error) => {
                Self::new(Verdict::Failed, format!("not readable for its server: {}", short(&error)))
            }
            Unanswered::Failed(why) => Self::new(Verdict::Failed, short(&why)),
            Unanswered::Late => Self::not_tried(NO_TIME),
        }
    }
}

/// What an answer was in place of what was asked for.
pub(super) fn instead(answered: &Answered) -> String {
    let words = answered.words();
    let called = answered.calls.get(0).map(|call| format!("{}({})", call.name, call.arguments.trim()));
    match called {
        Some(call) => format!("called {}", short(&call)),
        None if words.is_empty() && answered.is_cut => "cut off before it said anything".to_owned(),
        None if words.is_empty() => "an empty answer".to_owned(),
        None => format!("answered: {}", short(&words)),
    }
}

/// A text in one line, cut where it is long.
pub(super) fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}
