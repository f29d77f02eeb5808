//! What is set for single models.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::Error};

use toolrack_dialects::{self as dialect, Dialect};

use crate::upstream::ModelPattern;

/// The name of a row of the table of dialects. Under a name of its own, since serde would borrow a reference from the file.
type DialectName = &'static str;

/// What is set for one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// Reads its text calls in this dialect only, and tells it tools in it where they are described in the prompt.
    #[serde(deserialize_with = "dialect_name")]
    pub dialect: DialectName,
}

/// Settings of single models, by the names that clients ask for. A name with a `*` at its end stands for all that begin with
/// what is before it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, ModelSettings>")]
pub struct Models(BTreeMap<ModelPattern, ModelSettings>);

impl TryFrom<BTreeMap<String, ModelSettings>> for Models {
    type Error = String;

    fn try_from(models: BTreeMap<String, ModelSettings>) -> Result<Self, String> {
        let named = |(name, settings)| Ok((ModelPattern::try_from(name)?, settings));
        models.into_iter().map(named).collect::<Result<_, String>>().map(Self)
    }
}

impl Models {
    /// What is set for the model of this name: by the name itself, or else by its longest beginning.
    pub fn get(&self, model: &str) -> Option<&ModelSettings> {
        let fitting = self.0.iter().filter_map(|(pattern, settings)| Some((pattern.fit(model)?, settings)));
        fitting.max_by_key(|(fit, _)| *fit).map(|(_, settings)| settings)
    }
}

fn dialect_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static str, D::Error> {
    let name = String::deserialize(deserializer)?;
    known_dialect(&name).map(|row| row.name).map_err(D::Error::custom)
}

/// The dialect of this name.
///
/// # Errors
/// The names that there are.
pub(crate) fn known_dialect(name: &str) -> Result<&'static Dialect, String> {
    dialect::dialect(name).ok_or_else(|| {
        let known: Vec<&str> = dialect::dialects().map(|row| row.name).collect();
        format!("there is no dialect `{name}`; the dialects are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(names: &[(&str, &'static str)]) -> Result<Models, String> {
        let settings =
            |(name, dialect): &(&str, &'static str)| ((*name).to_owned(), ModelSettings { dialect });
        names.iter().map(settings).collect::<BTreeMap<_, _>>().try_into()
    }

    #[test]
    fn the_name_itself_goes_before_its_beginnings_and_a_longer_one_before_a_shorter() {
        let models =
            models(&[("qwen*", "hermes"), ("qwen3-coder*", "qwen3_coder"), ("qwen3-coder-x", "pythonic")])
                .unwrap();
        for (model, dialect) in [
            ("qwen2.5", Some("hermes")),
            ("qwen", Some("hermes")),
            ("qwen3-coder:30b", Some("qwen3_coder")),
            ("qwen3-coder-x", Some("pythonic")),
            ("Qwen3", None),
            ("my-qwen", None),
        ] {
            assert_eq!(models.get(model).map(|settings| settings.dialect), dialect, "{model}");
        }
    }

    #[test]
    fn a_star_stands_at_the_end_only() {
        for name in ["", "a*b", "*a", "a**", "*a*"] {
            assert!(models(&[(name, "hermes")]).unwrap_err().contains(name), "{name}");
        }
        assert!(models(&[("*", "hermes")]).unwrap().get("any").is_some());
    }
}
