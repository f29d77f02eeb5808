//! A remote tool as it was seen: hashes to tell it from another, and texts to see how it differs.

use std::collections::BTreeMap;

use registry_core::guard::audit::hash_arguments;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The longest text of a part that is kept to be looked at, in bytes.
pub(super) const MAX_TEXT: usize = 16 << 10;
/// How much of a SHA-256 is shown to whoever is to accept something, in hex digits: 128 bits.
const DIGEST: usize = 32;

/// The tools of a source as they are now, by the names they have here.
pub(super) type Pins = BTreeMap<String, Pin>;

/// SHA-256, in hex, of the parts of a definition that a model or a check goes by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pin {
    description: String,
    schema: String,
    rules: String,
    /// The parts themselves, for whoever looks at a change; absent where there is no room for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    texts: Option<Texts>,
}

/// The parts of a definition, for people to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Texts {
    description: String,
    schema: String,
    rules: String,
}

impl Pin {
    /// Of what is said of the tool, of what it takes and gives, and of who may call it and what it does.
    pub(super) fn new(description: &Value, schema: &Value, rules: &Value) -> Self {
        let texts = Texts { description: shown(description), schema: shown(schema), rules: shown(rules) };
        let [description, schema, rules] = [description, schema, rules].map(hash_arguments);
        Self { description, schema, rules, texts: Some(texts) }
    }

    /// The same, with the rules by their names for people.
    pub(super) fn with_named_rules(mut self, rules: &Value) -> Self {
        if let Some(texts) = &mut self.texts {
            texts.rules = shown(rules);
        }
        self
    }

    /// The parts, each by its name with its hash and its text.
    pub(super) fn parts(&self) -> [(&'static str, &str, Option<&str>); 3] {
        let text = |of: fn(&Texts) -> &String| self.texts.as_ref().map(|texts| of(texts).as_str());
        [
            ("description", self.description.as_str(), text(|texts| &texts.description)),
            ("schema", self.schema.as_str(), text(|texts| &texts.schema)),
            ("rules", self.rules.as_str(), text(|texts| &texts.rules)),
        ]
    }

    /// How long the texts are, in bytes.
    pub(super) fn size(&self) -> usize {
        self.parts().into_iter().filter_map(|(_, _, text)| text).map(str::len).sum()
    }

    pub(super) fn forget_texts(&mut self) {
        self.texts = None;
    }

    /// The names of the parts in which another differs from it.
    pub(super) fn differing(&self, other: &Self) -> Vec<&'static str> {
        let both = self.parts().into_iter().zip(other.parts());
        both.filter(|(own, others)| own.1 != others.1).map(|(own, _)| own.0).collect()
    }
}

/// A part for people: lines of text as they are, and everything else as JSON; so much of it as fits.
fn shown(part: &Value) -> String {
    let lines = part.as_array().and_then(|parts| {
        let texts = parts.iter().filter(|part| !part.is_null());
        texts.map(Value::as_str).collect::<Option<Vec<_>>>()
    });
    let text = match lines {
        Some(lines) => lines.join("\n"),
        None => serde_json::to_string_pretty(part).unwrap_or_default(),
    };
    match text.len() > MAX_TEXT {
        false => text,
        true => format!("{}…", text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default()),
    }
}

/// What names the tools as they are, for whoever looks at them and accepts them.
pub(super) fn digest_of(tools: &Pins) -> String {
    let hashes = |pin: &Pin| pin.parts().map(|(_, hash, _)| hash.to_owned());
    let tools: BTreeMap<&str, _> = tools.iter().map(|(name, pin)| (name.as_str(), hashes(pin))).collect();
    let whole = hash_arguments(&json!(tools));
    whole.chars().take(DIGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(description: &str, schema: &str, rules: &str) -> Pin {
        Pin::new(&json!(description), &json!(schema), &json!(rules))
    }

    #[test]
    fn m8_a_digest_is_of_all_tools_and_all_their_parts() {
        let of = |tools: &[(&str, Pin)]| {
            digest_of(&tools.iter().map(|(name, pin)| ((*name).to_owned(), pin.clone())).collect())
        };
        let whole = of(&[("m.f", pin("d", "s", "r"))]);
        assert_eq!(whole.len(), DIGEST);
        for other in [
            of(&[]),
            of(&[("m.g", pin("d", "s", "r"))]),
            of(&[("m.f", pin("d", "s", "R"))]),
            of(&[("m.f", pin("d", "s", "r")), ("m.g", pin("d", "s", "r"))]),
        ] {
            assert_ne!(whole, other);
        }
    }
}
