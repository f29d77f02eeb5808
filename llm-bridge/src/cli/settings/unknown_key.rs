//! What to say of a key that the configuration does not have.

use registry_core::nearest;

use super::{Settings, modules};

/// As many known keys are listed where none is near.
const LISTED: usize = 8;

/// The message for an unknown key, with the nearest known one. serde lists all that it knows, which are too many to read and, at the top of
/// the file, not all. `None` for other errors.
pub(super) fn hint(message: &str, host_tables: &[&str]) -> Option<String> {
    let (unknown, mut known) = fields(message)?;
    if known.contains(&"data_dir") {
        known.extend(modules::KEYS.into_iter().chain(host_tables.iter().copied()).chain(["tools"]));
    }
    let quoted = || known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    Some(match nearest(unknown, known.iter().copied()).first() {
        Some(nearest) => format!("unknown key `{unknown}`; did you mean `{nearest}`?"),
        None if known.len() <= LISTED => format!("unknown key `{unknown}`; the keys here are {}", quoted()),
        None => format!("unknown key `{unknown}`; docs/configuration.md lists the keys"),
    })
}

/// The key that is not known, and those that are.
fn fields(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest = message.strip_prefix("unknown field `")?;
    let (unknown, expected) = rest.split_once('`')?;
    Some((unknown, expected.split('`').skip(1).step_by(2).collect()))
}

/// Whether a top-level key of the file is one of the program's own.
pub(super) fn is_own(key: &str) -> bool {
    // serde tells its fields to nobody else.
    let error = toml::from_str::<Settings>("\"?\" = 0").err();
    let message = error.as_ref().map_or("", |error| error.message());
    let fields = fields(message).map(|(_, known)| known).unwrap_or_default();
    key == "tools" || modules::KEYS.contains(&key) || fields.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p1_the_programs_own_keys_are_known() {
        for own in ["model", "guard", "upstreams", "module_services", "tools"] {
            assert!(is_own(own), "{own}");
        }
        assert!(!is_own("search") && !is_own("?"));
    }

    #[test]
    fn u13_an_unknown_key_gets_the_nearest() {
        for (text, reported) in [
            ("[gaurd]\nmax_running = 1", "unknown key `gaurd`; did you mean `guard`?"),
            ("modul_services = {}", "unknown key `modul_services`; did you mean `module_services`?"),
            ("serach = {}", "unknown key `serach`; did you mean `search`?"),
            ("xyzzy = 1", "unknown key `xyzzy`; docs/configuration.md lists the keys"),
            ("[documents]\nwhere = 1", "unknown key `where`; the keys here are `file`, "),
        ] {
            let error = Settings::from_toml(text, &["search"]).unwrap_err();
            assert!(error.contains(reported) && !error.contains("expected"), "{error}");
        }
    }
}
