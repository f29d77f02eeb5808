//! Whether a call would do with what was read what a person should know of.

use serde_json::{Map, Value};

use super::{FlowRule, FlowRules, HasRead, Sends, TurnFlow, words};
use crate::{policy::Effect, schema::without_secrets, text::cut, tool::Tool};

/// Arguments that say where something goes, the likeliest first.
const DESTINATIONS: [&str; 14] = [
    "to",
    "recipients",
    "recipient",
    "url",
    "uri",
    "email",
    "emails",
    "address",
    "channel",
    "webhook",
    "host",
    "domain",
    "account",
    "iban",
];
/// The most of a destination that a sentence names, in bytes.
const MAX_DESTINATION: usize = 100;

/// Why a person should know of a call, and what happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Concern {
    pub(crate) rule: FlowRule,
    /// What would go where and whose text may have asked for it, in one sentence.
    pub(crate) sentence: String,
}

impl Concern {
    /// `None` for a call that does nothing with what was read, or that the rules allow.
    pub(crate) fn about(
        rules: FlowRules,
        flow: &TurnFlow,
        tool: &Tool,
        arguments: &Map<String, Value>,
    ) -> Option<Self> {
        let TurnFlow { read, said } = flow;
        if read.is_empty() {
            return None;
        }
        let (effect, sends) = (tool.policy().effect, tool.sends());
        let mut leaves = read.reads().private && sends == Sends::Outside;
        let mut acts = read.reads().untrusted && effect != Effect::Read;
        if leaves || acts {
            let schema = &tool.spec().input_schema;
            leaves = leaves && !words::are_quoted(arguments, schema, said);
            // What the person has said in so many words is their own wish, as long as it stays here and can be taken back.
            let stays = sends == Sends::Nothing && effect == Effect::Write;
            acts = acts && !(stays && words::are_own(arguments, schema, said));
        }
        let rule = |applies: bool, rule: FlowRule| if applies { rule } else { FlowRule::Allow };
        let (leaves, acts) = (rule(leaves, rules.private_outside), rule(acts, rules.untrusted_acting));
        let strictest = leaves.max(acts);
        (strictest != FlowRule::Allow).then(|| Self {
            rule: strictest,
            sentence: sentence(
                tool.name(),
                read,
                leaves != FlowRule::Allow,
                acts != FlowRule::Allow,
                destination(&without_secrets(&tool.spec().input_schema, arguments)),
            ),
        })
    }
}

fn sentence(tool: &str, read: &HasRead, leaves: bool, acts: bool, destination: Option<String>) -> String {
    let (private, untrusted) = (named(read.private()), named(read.untrusted()));
    let place = destination.map(|place| format!(" to {place}")).unwrap_or_default();
    match (leaves, acts) {
        (true, true) => format!(
            "`{tool}` would send out{place}, where it can carry private data that {private} has given, and text of {untrusted}, which nobody has checked, may have asked for it."
        ),
        (true, false) => {
            format!(
                "`{tool}` would send out{place}, where it can carry private data that {private} has given."
            )
        }
        _ => format!(
            "`{tool}` would act{place}, and text of {untrusted}, which nobody has checked, may have asked for it."
        ),
    }
}

fn named(sources: &[String]) -> String {
    match sources {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [one, other] => format!("`{one}` or `{other}`"),
        [one, other, ..] => format!("`{one}`, `{other}` or another"),
    }
}

/// Where something goes, as far as the arguments say.
fn destination(arguments: &Value) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            (!texts.is_empty()).then(|| texts.join(", "))
        }
        _ => None,
    };
    let place = DESTINATIONS.iter().find_map(|name| text(arguments.get(*name)?))?;
    let visible = place.chars().filter(|c| !crate::text::is_invisible(*c));
    // On one line, as the sentence is.
    let shown: String = visible.map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    Some(format!("“{}”", cut(shown, MAX_DESTINATION)))
}
