//! Variables of the environment that begin like the program's own and that nothing reads: in a configuration file, an unknown key
//! is an error.

use std::ffi::OsString;

use registry_core::nearest;

use super::flags::API_KEY_VARIABLE;

const PREFIX: &str = "TOOLRACK_";
/// What the program reads.
const OWN: [&str; 19] = [
    "API_KEY",
    "CONFIG",
    "DATA_DIR",
    "EMBEDDINGS_MODEL",
    "EMBEDDINGS_PASSAGE_PREFIX",
    "EMBEDDINGS_QUERY_PREFIX",
    "EMBEDDINGS_UPSTREAM",
    "EMBEDDINGS_UPSTREAM_API_KEY",
    "KEY",
    "LISTEN",
    "LOG",
    "LOG_FORMAT",
    "METRICS_KEY",
    "MODEL",
    "SERVER",
    "STORE_REDIS",
    "STORE_SERVER",
    "STORE_URL",
    "UPSTREAM",
];
/// What it reads with `_FILE`, too.
const SECRETS: [&str; 5] = ["API_KEY", "METRICS_KEY", "STORE_REDIS", "STORE_URL", "UPSTREAM_API_KEY"];
/// What it sets for programs that it starts, and what Kubernetes sets for a service of that name; tests have theirs.
const OTHERS: [&str; 7] =
    ["MCP_DEPTH", "PORT", "SANDBOX_LAUNCHER", "SERVICE_HOST", "SERVICE_PORT", "SUPERVISED", "TEST"];

/// The variables that a file names, as with `key_env`.
pub(super) fn named_in(text: &str) -> Vec<String> {
    let names = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    names.filter(|name| name.starts_with(PREFIX)).map(str::to_owned).collect()
}

/// The variables that nothing reads, each with the one that may have been meant.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Unread(Vec<(String, Option<String>)>);

impl Unread {
    /// `named` are those that the configuration names, `tables` the tables whose keys may be in the environment.
    pub(super) fn find(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        named: &[String],
        tables: &[&str],
    ) -> Self {
        let names = variables.into_iter().filter_map(|(name, _)| name.into_string().ok());
        let unread = names.filter_map(|variable| {
            let name = variable.strip_prefix(PREFIX)?;
            let is_named = named.iter().any(|named| without_file(named) == without_file(&variable));
            if is_named || is_read(name, tables) {
                return None;
            }
            let meant = nearest(name, OWN.into_iter()).first().map(|name| format!("{PREFIX}{name}"));
            Some((variable, meant))
        });
        Self(unread.collect())
    }

    /// A server that was to have a key must not be open because of a typo.
    pub(super) fn check_key(&self) -> Result<(), String> {
        match self.0.iter().find(|(_, meant)| meant.as_deref() == Some(API_KEY_VARIABLE)) {
            None => Ok(()),
            Some((variable, _)) => Err(format!(
                "{variable}: nothing reads this variable, and without a key the server is open; did you mean {}? Remove it \
                 from the environment, if you did not",
                API_KEY_VARIABLE
            )),
        }
    }

    pub(super) fn warn(&self) {
        for (variable, meant) in &self.0 {
            let meant = meant.as_ref().map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            tracing::warn!("{variable}: nothing reads this variable{meant}");
        }
    }
}

fn without_file(name: &str) -> &str {
    name.strip_suffix("_FILE").unwrap_or(name)
}

fn is_read(name: &str, tables: &[&str]) -> bool {
    let is_of =
        |first: &str| name == first || name.strip_prefix(first).is_some_and(|rest| rest.starts_with('_'));
    let is_of_table = |table: &&str| is_of(&table.to_ascii_uppercase().replace(['-', '.'], "_"));
    let is_secret = name.strip_suffix("_FILE").is_some_and(|name| SECRETS.contains(&name));
    OWN.contains(&name)
        || SECRETS.contains(&name)
        || is_secret
        || OTHERS.into_iter().any(is_of)
        || tables.iter().any(is_of_table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b10_a_misspelt_variable_is_found_and_one_that_was_to_be_the_key_is_refused() {
        let named = named_in("[modules]\nshop = { url = \"http://a\", key_env = \"TOOLRACK_SHOP_KEY\" }");
        let unread = |names: &[&str]| {
            Unread::find(
                names.iter().map(|name| (name.into(), "x".into())),
                &named,
                &["search", "file-manager"],
            )
        };
        let read = [
            "PATH",
            "TOOLRACK_API_KEY",
            "TOOLRACK_API_KEY_FILE",
            "TOOLRACK_UPSTREAM_API_KEY_FILE",
            "TOOLRACK_STORE_URL_FILE",
            "TOOLRACK_SEARCH_API_KEY",
            "TOOLRACK_FILE_MANAGER_FOLDER",
            "TOOLRACK_SHOP_KEY",
            "TOOLRACK_SHOP_KEY_FILE",
            "TOOLRACK_PORT_7331_TCP_ADDR",
            "TOOLRACK_SERVICE_HOST",
        ];
        assert_eq!(unread(&read), Unread::default());
        for name in ["TOOLRACK_APIKEY", "TOOLRACK_API_KEYS", "TOOLRACK_APL_KEY", "TOOLRACK_API_KEY_FLIE"] {
            let fault = unread(&[name]).check_key().unwrap_err();
            assert!(fault.starts_with(name) && fault.contains("did you mean TOOLRACK_API_KEY?"), "{fault}");
        }
        let others = unread(&["TOOLRACK_LISTN", "TOOLRACK_XYZZY", "TOOLRACK_LISTEN_FILE"]);
        assert_eq!(others.check_key(), Ok(()));
        let meant: Vec<_> = others.0.iter().map(|(_, meant)| meant.as_deref()).collect();
        assert_eq!(meant, [Some("TOOLRACK_LISTEN"), None, Some("TOOLRACK_LISTEN")]);
    }
}
