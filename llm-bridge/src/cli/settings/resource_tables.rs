//! The tables of the configuration that `#[resource]` functions read.

use std::path::Path;

use registry_core::{Configuration, ResourceError, ResourceTable};
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::{Settings, unknown_key};

/// What the names of the variables begin with.
const PREFIX: &str = "TOOLRACK";

/// A top-level key of the bridge itself cannot be a table of a resource: two would read it.
pub(in crate::cli) fn check(tables: &[ResourceTable]) -> Result<(), String> {
    match tables.iter().find(|table| unknown_key::is_own(table.name)) {
        None => Ok(()),
        Some(table) => Err(format!(
            "{}: the table `[{name}]` is read by the program itself; choose another with `#[resource(table = \"…\")]`",
            table.place,
            name = table.name
        )),
    }
}

impl Settings {
    /// What resources are configured with.
    pub(in crate::cli) fn configuration(&self) -> Configuration {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let file = self.file.as_deref().unwrap_or(Path::new(Settings::DEFAULT_FILE));
        Configuration {
            file: file.display().to_string(),
            tables: self.host.iter().map(|(name, table)| (name.clone(), json(table))).collect(),
            prefix: PREFIX.to_owned(),
            variables: variables.filter(|(name, _)| name.starts_with(PREFIX)).collect(),
        }
    }

    /// What is wrong with resources, each with the place in the configuration if it is there.
    pub(in crate::cli) fn describe_resource_errors(&self, errors: &[ResourceError]) -> String {
        let text =
            self.file.as_deref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let described = errors.iter().map(|error| match (error, &self.file) {
            (ResourceError::Settings { table, pointer, .. }, Some(file)) => match line(&text, table, pointer)
            {
                Some(line) => format!("{}:{line}: {error}", file.display()),
                None => format!("{}: {error}", file.display()),
            },
            _ => error.to_string(),
        });
        described.collect::<Vec<_>>().join("\n")
    }
}

/// The line of a key, or of the last part of its path that is there.
fn line(text: &str, table: &str, pointer: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?.into_inner();
    let (mut at, mut value) = root.get_key_value(table).map(|(key, value)| (key.span(), value.get_ref()))?;
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let next = match value {
            DeValue::Table(table) => {
                table.get_key_value(step.as_str()).map(|(key, value)| (key.span(), value.get_ref()))
            }
            DeValue::Array(items) => step
                .parse()
                .ok()
                .and_then(|index: usize| items.get(index))
                .map(|item| (item.span(), item.get_ref())),
            _ => None,
        };
        let Some(next) = next else { break };
        (at, value) = next;
    }
    Some(text.get(..at.start)?.matches('\n').count() + 1)
}

/// A value of TOML as JSON; a date is a text.
fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.iter().map(json).collect(),
        toml::Value::Table(table) => Value::Object(
            table.iter().map(|(name, value)| (name.clone(), json(value))).collect::<Map<_, _>>(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn p1_a_key_is_found_in_every_way_to_write_it() {
        let text = "model = \"a\"\n[search]\nengine = \"x\"\n\n[shop.articles]\nnails = 3\n[[shop.doors]]\nwidth = 1\n[[shop.doors]]\nwidth = 2\n";
        for (table, pointer, expected) in [
            ("search", "/engine", Some(3)),
            ("search", "", Some(2)),
            ("search", "/gone", Some(2)),
            ("shop", "/articles/nails", Some(6)),
            ("shop", "/doors/1/width", Some(10)),
            ("nowhere", "", None),
        ] {
            assert_eq!(line(text, table, pointer), expected, "{table}{pointer}");
        }
        assert_eq!(line("search.engine = 1\nsearch.url = 2", "search", "/url"), Some(2));
    }

    #[test]
    fn p1_a_resource_cannot_take_a_table_of_the_program() {
        let place = registry_core::Place { module_path: "", file: "tools/mine.rs", line: 7 };
        let table = |name| [ResourceTable { name, place }];
        assert_eq!(check(&table("search")), Ok(()));
        let error = check(&table("user")).unwrap_err();
        assert!(
            error.starts_with("tools/mine.rs:7: the table `[user]` is read by the program itself"),
            "{error}"
        );
    }

    #[test]
    fn p1_values_keep_their_types() {
        let table: toml::Value = toml::Value::Table(
            toml::from_str("a = 1\nb = 1.5\nc = \"x\"\nd = [true]\ne = 2026-01-02\nf = { g = 1 }").unwrap(),
        );
        assert_eq!(
            json(&table),
            json!({"a": 1, "b": 1.5, "c": "x", "d": [true], "e": "2026-01-02", "f": {"g": 1}})
        );
    }
}
