//! The settings of a resource: a table of the host's configuration, with environment variables over it.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{AnyValue, ResourceError};
use crate::{
    schema::{coerce, describe_fault, of_arguments, settle_integers},
    variable::secret_in,
};

/// As many faults of a table are reported at once.
const MAX_FAULTS: usize = 20;

/// The settings of a resource, as the parameter of a function with `#[resource]`.
///
/// They are the table of the configuration that is named like the function, or as `#[resource(table = "…")]` says. `T` is a struct with
/// `#[args]`: its fields are the keys, each with a doc comment and, with `#[arg(…)]`, a default and bounds. An environment variable
/// `TOOLRACK_TABLE_KEY` that is not empty wins over the key.
#[derive(Debug)]
pub struct Settings<T>(Arc<T>);

impl<T> Settings<T> {
    /// Settings for a unit test that calls the function.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> From<Arc<T>> for Settings<T> {
    fn from(value: Arc<T>) -> Self {
        Self(value)
    }
}

impl<T> Clone for Settings<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Settings<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What the settings of a resource may be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the settings of a resource",
    label = "not something that a table of a configuration can be",
    note = "put `#[args]` on a struct with a field for each key (or `derive(Deserialize, JsonSchema)`)"
)]
pub trait SettingsTable: DeserializeOwned + JsonSchema + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> SettingsTable for T {}

/// What a host was configured with, for the settings of resources.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Configuration({file}, {:?})", tables.keys())] // Values may be secret.
pub struct Configuration {
    /// The name of the file, for the advice to set something in it.
    pub file: String,
    /// The tables that resources read.
    pub tables: Map<String, Value>,
    /// What the names of the variables begin with: `TOOLRACK` for `TOOLRACK_SEARCH_URL`.
    pub prefix: String,
    /// The environment variables, or those with the prefix.
    pub variables: BTreeMap<String, String>,
}

/// Why settings were not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Keys that have to be set are not: how to set them.
    Unset(String),
    /// What is set is wrong.
    Wrong(Vec<ResourceError>),
}

impl Configuration {
    /// The variable for a key: `TOOLRACK_SEARCH_API_KEY`.
    fn variable(&self, table: &str, key: &str) -> String {
        format!("{}_{table}_{key}", self.prefix).to_ascii_uppercase().replace(['-', '.'], "_")
    }
}

/// The settings of a table. `…_FILE` of a variable names a file with the value, unless that is a key of its own.
pub(crate) fn read<T: SettingsTable>(from: &Configuration, table: &str) -> Result<AnyValue, Unread> {
    let fault = |pointer: &str, message: String| ResourceError::Settings {
        table: table.to_owned(),
        pointer: pointer.to_owned(),
        message,
    };
    let wrong = |message: String| Unread::Wrong(vec![fault("", message)]);
    let schema = of_arguments::<T>();
    let mut value = from.tables.get(table).cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let Value::Object(keys) = &mut value else {
        return Err(wrong(format!("`{table}` is not a table; write `[{table}]`")));
    };
    let mut variables = BTreeMap::new();
    let no_keys = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_keys);
    for (key, part) in known {
        let variable = from.variable(table, key);
        let set = |name: &str| from.variables.get(name).cloned();
        let text = match known.contains_key(&format!("{key}_file")) {
            true => set(&variable).filter(|text| !text.is_empty()),
            false => secret_in(set, &variable).map_err(wrong)?,
        };
        if let Some(text) = text {
            let mut set = Value::String(text);
            coerce(&mut set, part);
            keys.insert(key.clone(), set);
            variables.insert(format!("/{key}"), variable);
        }
    }
    settle_integers(&mut value, &schema);

    let validator = jsonschema::validator_for(&schema).map_err(|error| wrong(error.to_string()))?;
    let (mut unset, mut faults) = (Vec::new(), Vec::new());
    for error in validator.iter_errors(&value).take(MAX_FAULTS) {
        use jsonschema::error::ValidationErrorKind::{AdditionalProperties, Required};
        let place = error.instance_path().to_string();
        match error.kind() {
            Required { property } if place.is_empty() => {
                unset.extend(property.as_str().map(str::to_owned));
            }
            AdditionalProperties { unexpected } => {
                let first = unexpected.first().map(String::as_str).unwrap_or_default();
                faults.push(fault(&format!("{place}/{first}"), describe_fault(&error, &schema)));
            }
            _ => {
                let message = describe_fault(&error, &schema);
                let key = place.get(1..).and_then(|rest| rest.split('/').next()).unwrap_or_default();
                faults.push(match variables.get(&format!("/{key}")) {
                    Some(variable) => ResourceError::Variable { variable: variable.clone(), message },
                    None => fault(&place, message),
                });
            }
        }
    }
    if !faults.is_empty() {
        return Err(Unread::Wrong(faults));
    }
    if let Some(first) = unset.first() {
        let keys: Vec<String> = unset.iter().map(|key| format!("`{key}`")).collect();
        return Err(Unread::Unset(format!(
            "set {} under [{table}] in {}, or {}",
            keys.join(" and "),
            from.file,
            from.variable(table, first)
        )));
    }
    let read: T = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
    Ok(Arc::new(read))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Weather {
        url: String,
        key: Option<String>,
        #[serde(default)]
        #[schemars(range(min = 1, max = 60))]
        seconds: u64,
        #[serde(default)]
        folders: Vec<PathBuf>,
    }

    fn read_from(table: Value, variables: &[(&str, &str)]) -> Result<Arc<Weather>, String> {
        let configuration = Configuration {
            file: "rack.toml".into(),
            tables: Map::from_iter([("weather".to_owned(), table)]),
            prefix: "RACK".into(),
            variables: variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        };
        match read::<Weather>(&configuration, "weather") {
            Ok(value) => Ok(value.downcast().unwrap()),
            Err(Unread::Unset(how)) => Err(how),
            Err(Unread::Wrong(faults)) => {
                Err(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
            }
        }
    }

    #[test]
    fn p1_variables_win_over_the_table_and_take_the_type_of_the_key() {
        let variables = [
            ("RACK_WEATHER_URL", "http://other"),
            ("RACK_WEATHER_KEY", "12345"),
            ("RACK_WEATHER_SECONDS", "5"),
            ("RACK_WEATHER_FOLDERS", r#"["a", "b"]"#),
        ];
        let read = read_from(json!({"url": "http://one", "seconds": 2}), &variables).unwrap();
        assert_eq!(
            (read.url.as_str(), read.key.as_deref(), read.seconds),
            ("http://other", Some("12345"), 5)
        );
        assert_eq!(read.folders, [PathBuf::from("a"), PathBuf::from("b")]);
        let read = read_from(json!({"url": "http://one"}), &[("RACK_WEATHER_URL", "")]).unwrap();
        assert_eq!(read.url, "http://one", "an empty variable is none");
        let unread =
            read_from(json!({"url": "x"}), &[("RACK_WEATHER_KEY_FILE", "/nowhere/key")]).unwrap_err();
        assert!(unread.starts_with("[weather]: RACK_WEATHER_KEY_FILE: cannot read /nowhere/key"), "{unread}");
    }

    #[test]
    fn p1_what_has_to_be_set_is_named_with_both_ways() {
        let how = read_from(json!({}), &[]).unwrap_err();
        assert_eq!(how, "set `url` under [weather] in rack.toml, or RACK_WEATHER_URL");
    }

    #[test]
    fn p1_wrong_settings_are_reported_with_their_place() {
        for (table, variables, reported) in [
            (json!({"url": "x", "urls": "y"}), &[][..], "[weather]: there is no `urls`; did you mean `url`?"),
            (json!({"url": 3}), &[], "[weather]: `url`: 3 is not of type \"string\""),
            (
                json!({"url": "x", "seconds": "4"}),
                &[],
                "[weather]: `seconds`: \"4\" is not of type \"integer\"",
            ),
            (json!(3), &[], "[weather]: `weather` is not a table; write `[weather]`"),
            (json!({"url": "x"}), &[("RACK_WEATHER_SECONDS", "soon")], "RACK_WEATHER_SECONDS: `seconds`: "),
            (
                json!({"url": "x"}),
                &[("RACK_WEATHER_SECONDS", "61")],
                "RACK_WEATHER_SECONDS: `seconds`: 61 is greater",
            ),
        ] {
            let found = read_from(table, variables).unwrap_err();
            assert!(found.starts_with(reported), "{found}");
        }
    }
}
