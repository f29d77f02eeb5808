//! The modules, whose settings are top-level keys of the file.

use serde::Deserialize;
use toml::{
    Spanned,
    de::{DeTable, Deserializer, Error},
};
use toolrack_remote::{check_name, module::ModulesSettings};

/// The keys of [`ModulesSettings`].
pub(super) const KEYS: [&str; 7] = [
    "module_services",
    "slow_modules",
    "tool_execution_timeout",
    "module_timeout",
    "discovery_timeout",
    "default_guest_modules",
    "breaker",
];

/// Takes the settings of modules out of the file: serde cannot flatten a struct into one that denies unknown fields.
pub(super) fn take(file: &mut Spanned<DeTable<'_>>) -> Result<ModulesSettings, Error> {
    let span = file.span();
    let mut own = DeTable::default();
    for key in KEYS {
        if let Some((key, value)) = file.get_mut().remove_entry(key) {
            own.insert(key, value);
        }
    }
    ModulesSettings::deserialize(Deserializer::from(Spanned::new(span, own)))
}

/// Checks the modules, and this server's own name as a module.
pub(super) fn check(modules: &ModulesSettings, own_name: &str) -> Result<(), String> {
    modules.check().map_err(|error| error.to_string())?;
    check_name(own_name).map_err(|rule| format!("module_name: {rule}"))?;
    if modules.module_services.contains_key(own_name) {
        return Err(format!(
            "module_services.{own_name}: this server calls itself `{own_name}` where it is a module; name the module otherwise, or this server with `module_name`"
        ));
    }
    Ok(())
}
