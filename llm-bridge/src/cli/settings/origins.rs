//! The settings as they hold, with where each comes from.

use serde_json::{Value, json};
use toml::de::{DeTable, DeValue};

use super::Settings;
use crate::server::{Configured, SettingOrigin};

/// Longer values are cut, in characters.
const MAX_VALUE: usize = 400;

/// What the names of settings have whose texts are secrets.
const SECRET: [&str; 6] = ["key", "secret", "password", "passphrase", "token", "credential"];
/// What names end with that only say where a secret is.
const NO_SECRET: [&str; 3] = ["_file", "_env", "_dir"];
/// Tables and lists in which anything may be a secret.
const HIDDEN: [&str; 4] = ["headers", "env", "args", "endpoint_headers"];

/// A setting that can be given on the command line: its key, whether it was found in the environment.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) key: &'static str,
    pub(super) by_variable: bool,
}

impl Given {
    fn place(&self) -> String {
        match self.by_variable {
            true => format!("TOOLRACK_{}", self.key.to_uppercase()),
            false => format!("--{}", self.key.replace('_', "-")),
        }
    }
}

/// What stands in a configuration file; it has been read without a fault. `[[tools]]` are listed with the tools.
pub(super) fn written(text: &str, file: &str) -> Vec<Configured> {
    let mut all = Vec::new();
    if let (Ok(tables), Ok(values)) = (DeTable::parse(text), text.parse::<toml::Table>()) {
        let mut walk = Walk { text, file, all: &mut all };
        for (name, value) in tables.get_ref().iter().filter(|(name, _)| name.get_ref() != "tools") {
            let Some(known) = values.get(name.get_ref().as_ref()) else { continue };
            walk.value(name.get_ref().as_ref().into(), name.span().start, value.get_ref(), known);
        }
    }
    all
}

struct Walk<'a> {
    text: &'a str,
    file: &'a str,
    all: &'a mut Vec<Configured>,
}

impl Walk<'_> {
    /// Notes a value whose key begins at a byte of the text, or what is in it.
    fn value(&mut self, key: String, at: usize, value: &DeValue<'_>, known: &toml::Value) {
        match (value, known) {
            (DeValue::Table(table), toml::Value::Table(values)) => {
                for (name, value) in table {
                    let Some(known) = values.get(name.get_ref().as_ref()) else { continue };
                    let key = format!("{key}.{}", part(name.get_ref()));
                    self.value(key, name.span().start, value.get_ref(), known);
                }
            }
            (DeValue::Array(list), toml::Value::Array(values))
                if values.iter().any(toml::Value::is_table) =>
            {
                for (number, (value, known)) in list.iter().zip(values).enumerate() {
                    self.value(format!("{key}[{number}]"), value.span().start, value.get_ref(), known);
                }
            }
            _ => {
                let line = self.text.get(..at).unwrap_or_default().matches('\n').count() + 1;
                let value = serde_json::to_value(known).unwrap_or_default();
                let place = Some(format!("{}:{line}", self.file));
                self.all.push(shown(key, value, SettingOrigin::File, place));
            }
        }
    }
}

/// A part of a key as it is written.
fn part(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => format!("{name:?}"),
    }
}

/// A setting without what may be secret in it.
fn shown(key: String, value: Value, from: SettingOrigin, place: Option<String>) -> Configured {
    let hidden = !value.is_null() && is_secret(&key, &value);
    let value = if hidden { Value::Null } else { cleared(value, key.starts_with("webhooks")) };
    Configured { key, value, hidden, from, place }
}

/// Numbers and switches are none.
fn is_secret(key: &str, value: &Value) -> bool {
    if value.is_number() || value.is_boolean() {
        return false;
    }
    let mut parts =
        key.split('.').map(|part| part.split('[').next().unwrap_or_default().to_lowercase()).rev();
    let last = parts.next().unwrap_or_default();
    let names_one =
        SECRET.iter().any(|word| last.contains(word)) && !NO_SECRET.iter().any(|end| last.ends_with(end));
    names_one || HIDDEN.contains(&last.as_str()) || parts.any(|part| HIDDEN.contains(&part.as_str()))
}

/// A value without the passwords of addresses in it, and not too long. Of an `endpoint` that takes messages the path may be one as well.
fn cleared(value: Value, endpoint: bool) -> Value {
    match value {
        Value::String(text) => Value::String(cleared_text(&text, endpoint)),
        Value::Array(list) => list.into_iter().map(|value| cleared(value, endpoint)).collect(),
        Value::Object(members) => {
            let clear = |(name, value): (String, Value)| {
                let value = if is_secret(&name, &value) { Value::Null } else { cleared(value, endpoint) };
                (name, value)
            };
            Value::Object(members.into_iter().map(clear).collect())
        }
        value => value,
    }
}

fn cleared_text(text: &str, endpoint: bool) -> String {
    let mut text = text.to_owned();
    if text.contains("://") {
        text = match reqwest::Url::parse(&text) {
            Ok(mut url) => {
                let had_secret = url.password().is_some() || url.query().is_some();
                // A URL that can have no user has none.
                let _ = url.set_password(None);
                url.set_query(None);
                if endpoint {
                    url.set_path("/…");
                }
                if had_secret || endpoint { url.to_string() } else { text }
            }
            // Several servers in one, or a template.
            Err(_) if text.contains('@') => "…".to_owned(),
            Err(_) => text,
        };
    } else if text.contains("password=") {
        text = "…".to_owned();
    }
    match text.char_indices().nth(MAX_VALUE) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

impl Settings {
    /// All settings that hold, by their keys: what the file, the environment and the command line say, and the defaults of the rest.
    pub(in crate::cli) fn configured(&self) -> Vec<Configured> {
        let mut all: Vec<Configured> = self.written.clone();
        let mut holding = Vec::new();
        flatten(String::new(), self.holding(), &mut holding);
        for (key, value) in holding {
            let given = self.given.iter().find(|given| given.key == key);
            let origin = given.map(|given| match given.by_variable {
                true => (SettingOrigin::Environment, Some(given.place())),
                false => (SettingOrigin::CommandLine, Some(given.place())),
            });
            if origin.is_some() {
                all.retain(|known| known.key != key);
            } else if all.iter().any(|known| known.key == key) {
                continue;
            }
            let (from, place) = origin.unwrap_or((SettingOrigin::Default, None));
            all.push(shown(key, value, from, place));
        }
        let own = |name: &str| self.given.iter().any(|given| given.by_variable && given.place() == name);
        let others = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, value)| name.starts_with("TOOLRACK_") && !value.is_empty() && !own(name));
        all.extend(
            others.map(|(name, value)| {
                shown(name.clone(), value.into(), SettingOrigin::Environment, Some(name))
            }),
        );
        all.sort_by(|one, other| one.key.cmp(&other.key));
        all
    }

    /// The values of the settings that have one without being set, or can be set on the command line.
    fn holding(&self) -> Value {
        let caller = self.caller();
        let key = |key: &Option<super::Secret>| key.as_ref().map(|_| "set");
        json!({
            "config": self.file.as_ref().map(|file| file.display().to_string()),
            "listen": self.listen.to_string(),
            "upstream": self.upstream,
            "upstream_api_key": key(&self.upstream_api_key),
            "model": self.model,
            "data_dir": self.data_dir.display().to_string(),
            "api_key": key(&self.api_key),
            "metrics_key": key(&self.metrics_key),
            "max_connections": self.most_connections(),
            "drain_seconds": self.drain_seconds,
            "shutdown_seconds": self.shutdown_seconds,
            "public_url": self.public_url.as_ref().map(ToString::to_string),
            "module_name": self.module_name,
            "user": {"id": caller.user, "level": caller.level.to_string()},
            "chat": {"tool_style": self.chat.tool_style, "dialect": self.chat.dialect, "thinking": self.chat.thinking},
            "limits": self.limits,
            "guard": self.guard,
            "flow": {"private_outside": self.flow.private_outside, "untrusted_acting": self.flow.untrusted_acting},
            "conversations": self.conversations,
            "audit": {"heads_seconds": self.audit.heads_seconds, "retention_days": self.audit.retention_days},
            "documents": self.documents.shown(),
            "traces": {"endpoint": self.traces.endpoint, "keep": self.traces.keep, "content": self.traces.content, "sample": self.traces.sample},
            "mcp": self.mcp,
        })
    }
}

fn flatten(key: String, value: Value, all: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let key = if key.is_empty() { name } else { format!("{key}.{name}") };
                flatten(key, value, all);
            }
        }
        value => all.push((key, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        let written = written(text, "toolrack.toml");
        Settings { written, ..Settings::from_toml(text, &["search"]).unwrap() }
    }

    #[test]
    fn u29_each_setting_tells_its_line() {
        let text = "model = \"m\"\n\n[limits]\nmax_rounds = 3\n\n[models.\"qwen*\"]\ncontext = 4096\n[search]\nengine = \"x\"\n";
        let all = settings(text).configured();
        let of = |key: &str| all.iter().find(|setting| setting.key == key).unwrap();
        for (key, value, line) in [
            ("model", json!("m"), 1),
            ("limits.max_rounds", json!(3), 4),
            ("models.\"qwen*\".context", json!(4096), 7),
            ("search.engine", json!("x"), 9),
        ] {
            let setting = of(key);
            assert_eq!((&setting.value, setting.from), (&value, SettingOrigin::File), "{key}");
            assert_eq!(setting.place.as_deref(), Some(format!("toolrack.toml:{line}").as_str()));
        }
        assert_eq!(
            (&of("limits.max_calls").value, of("limits.max_calls").from),
            (&json!(32), SettingOrigin::Default)
        );
        assert_eq!(all.iter().filter(|setting| setting.key == "limits.max_rounds").count(), 1);
    }

    #[test]
    fn u29_what_was_given_to_the_program_goes_before_the_file() {
        let mut settings = settings("model = \"m\"\napi_key = \"of-the-file\"");
        settings.model = Some("other".into());
        settings.given =
            vec![Given { key: "model", by_variable: false }, Given { key: "api_key", by_variable: true }];
        let all = settings.configured();
        let of = |key: &str| all.iter().filter(|setting| setting.key == key).collect::<Vec<_>>();
        let model = of("model");
        assert_eq!(model.len(), 1);
        assert_eq!((&model[0].value, model[0].from), (&json!("other"), SettingOrigin::CommandLine));
        assert_eq!(model[0].place.as_deref(), Some("--model"));
        let key = of("api_key");
        assert_eq!((key.len(), key[0].hidden, key[0].place.as_deref()), (1, true, Some("TOOLRACK_API_KEY")));
    }

    #[test]
    fn u29_secrets_are_not_shown() {
        let text = "upstream = \"http://me:s3cret@model.example/v1\"\napi_key = \"s3cret\"\n\
            [gate]\nurl = \"https://gate.example/?code=s3cret\"\nsecret_env = \"GATE\"\n\
            [[webhooks]]\nurl = \"https://hooks.example/services/s3cret\"\nsecret = \"whsec_s3crets3crets3crets3crets3cret\"\n\
            [mcp_servers.one]\ncommand = \"x\"\nargs = [\"--token\", \"s3cret\"]\nenv = { PASS = \"s3cret\" }\n\
            [search]\nbearer_token = \"s3cret\"\nservers = [{ name = \"a\", password = \"s3cret\" }]\n\
            [store]\nurl = \"postgres://me:s3cret@db.example/rack\"\n";
        let all = written(text, "toolrack.toml");
        let json = serde_json::to_string(&all).unwrap();
        assert!(!json.contains("s3cret"), "{json}");
        let of = |key: &str| all.iter().find(|setting| setting.key == key).unwrap();
        assert_eq!(of("gate.secret_env").value, "GATE");
        assert_eq!(of("store.url").value, "postgres://me@db.example/rack");
        assert_eq!(of("webhooks[0].url").value, "https://hooks.example/%E2%80%A6");
        assert!(of("mcp_servers.one.args").hidden && of("webhooks[0].secret").hidden);
    }
}
