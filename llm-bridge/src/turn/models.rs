//! What is set for single models.

use std::{collections::BTreeMap, num::NonZeroU64, path::PathBuf};

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use toolrack_dialects::{self as dialect, Dialect};

use super::ToolStyle;
use crate::upstream::ModelPattern;

/// The name of a row of the table of dialects. Under a name of its own, since serde would borrow a reference from the file.
type DialectName = &'static str;

/// How a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ModelRoute {
    /// By the chat endpoint of its server.
    Chat,
    /// With a prompt from its own template, as text.
    Raw,
}

/// What is set for one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// Reads its text calls in this dialect only, and tells it tools in it where they are described in the prompt.
    #[serde(deserialize_with = "dialect_name")]
    pub dialect: Option<DialectName>,
    /// The size of its context in tokens, in place of what its server says; Ollama is asked for it.
    pub context: Option<NonZeroU64>,
    /// How tools are described to it.
    pub tool_style: Option<ToolStyle>,
    /// Whether it sees the pictures in results; `None` to try.
    pub pictures: Option<bool>,
    /// Whether its calls are kept to the schemas of their tools, where it may call or not; `None` where a client's tool is `strict`.
    pub strict_tools: Option<bool>,
    /// How it is asked; `None` for its server's chat endpoint, and with a prompt of its own template where that cannot do the job.
    pub route: Option<ModelRoute>,
    /// The file of its template: a `.jinja`, or a model in a `.gguf`. `None` for what its server gives.
    pub template: Option<PathBuf>,
}

/// Settings of single models, by the names that clients ask for. A name with a `*` at its end stands for all that begin with
/// what is before it. Each setting is that of the name that fits most closely of those that have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, ModelSettings>")]
pub struct Models(BTreeMap<ModelPattern, ModelSettings>);

impl TryFrom<BTreeMap<String, ModelSettings>> for Models {
    type Error = String;

    fn try_from(models: BTreeMap<String, ModelSettings>) -> Result<Self, String> {
        let named = |(name, settings): (String, ModelSettings)| {
            if settings == ModelSettings::default() {
                return Err(format!(
                    "nothing is set for the model `{name}`; set `dialect`, `tool_style`, `context`, `pictures`, `strict_tools`, `route` or `template`"
                ));
            }
            Ok((ModelPattern::try_from(name)?, settings))
        };
        models.into_iter().map(named).collect::<Result<_, String>>().map(Self)
    }
}

impl Models {
    /// The dialect of the model of this name.
    pub fn dialect(&self, model: &str) -> Option<&'static str> {
        self.find(model, |settings| settings.dialect)
    }

    /// The size of the context of the model of this name, in tokens.
    pub fn context(&self, model: &str) -> Option<u64> {
        self.find(model, |settings| settings.context).map(NonZeroU64::get)
    }

    /// How tools are described to the model of this name.
    pub fn tool_style(&self, model: &str) -> Option<ToolStyle> {
        self.find(model, |settings| settings.tool_style)
    }

    /// Whether the model of this name sees the pictures in results.
    pub fn pictures(&self, model: &str) -> Option<bool> {
        self.find(model, |settings| settings.pictures)
    }

    /// Whether calls of the model of this name are kept to the schemas of their tools.
    pub fn strict_tools(&self, model: &str) -> Option<bool> {
        self.find(model, |settings| settings.strict_tools)
    }

    /// How the model of this name is asked.
    pub fn route(&self, model: &str) -> Option<ModelRoute> {
        self.find(model, |settings| settings.route)
    }

    /// The file with the template of the model of this name.
    pub fn template(&self, model: &str) -> Option<PathBuf> {
        self.find(model, |settings| settings.template.clone())
    }

    /// What is set for the model of this name: by the name itself, or else by its longest beginning.
    fn find<T>(&self, model: &str, setting: impl Fn(&ModelSettings) -> Option<T>) -> Option<T> {
        let fitting =
            self.0.iter().filter_map(|(pattern, settings)| Some((pattern.fit(model)?, setting(settings)?)));
        fitting.max_by_key(|(fit, _)| *fit).map(|(_, setting)| setting)
    }
}

fn dialect_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'static str>, D::Error> {
    let name = String::deserialize(deserializer)?;
    known_dialect(&name).map(|row| Some(row.name)).map_err(D::Error::custom)
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

    fn of(dialect: Option<&'static str>, pictures: Option<bool>) -> ModelSettings {
        ModelSettings { dialect, pictures, ..ModelSettings::default() }
    }

    fn models(names: &[(&str, &'static str)]) -> Result<Models, String> {
        let settings = |(name, dialect): &(&str, &'static str)| {
            let settings = ModelSettings { dialect: Some(*dialect), ..ModelSettings::default() };
            ((*name).to_owned(), settings)
        };
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
            assert_eq!(models.dialect(model), dialect, "{model}");
        }
    }

    #[test]
    fn g12_each_setting_is_that_of_the_row_that_has_it() {
        let rows = [
            ("qwen*", of(Some("hermes"), None)),
            ("qwen3-vl*", of(None, Some(true))),
            ("*", of(None, Some(false))),
        ];
        let rows: BTreeMap<_, _> = rows.into_iter().map(|(name, row)| (name.to_owned(), row)).collect();
        let models = Models::try_from(rows).unwrap();
        assert_eq!(
            (models.dialect("qwen3-vl-8b"), models.pictures("qwen3-vl-8b")),
            (Some("hermes"), Some(true))
        );
        assert_eq!((models.dialect("qwen3"), models.pictures("qwen3")), (Some("hermes"), Some(false)));
        assert_eq!((models.dialect("phi"), models.pictures("phi")), (None, Some(false)));
    }

    #[test]
    fn a_star_stands_at_the_end_only() {
        for name in ["", "a*b", "*a", "a**", "*a*"] {
            assert!(models(&[(name, "hermes")]).unwrap_err().contains(name), "{name}");
        }
        assert!(models(&[("*", "hermes")]).unwrap().dialect("any").is_some());
    }

    #[test]
    fn b11_each_setting_is_that_of_the_closest_name_that_has_it() {
        let named = |name: &str, settings| (name.to_owned(), settings);
        let context = NonZeroU64::new(8192);
        let all = ModelSettings { context, ..ModelSettings::default() };
        let one = ModelSettings { dialect: Some("hermes"), ..ModelSettings::default() };
        let models: Models = BTreeMap::from([named("*", all), named("qwen*", one)]).try_into().unwrap();
        assert_eq!((models.dialect("qwen3"), models.context("qwen3")), (Some("hermes"), Some(8192)));
        assert_eq!((models.dialect("llama"), models.context("llama")), (None, Some(8192)));
    }
}
