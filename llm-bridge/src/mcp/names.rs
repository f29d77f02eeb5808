//! The names of tools in the protocol. A client may use a tool's own name as well.

use registry_core::Registry;
use serde_json::Value;
use toolrack_apis::names::WireNames;

use super::McpSettings;

/// The names of all tools, also of those that are off or not for the caller: as long as a tool is registered, its name stands for no
/// other, whatever has changed since the client's last list.
pub(crate) fn names(registry: &Registry, settings: &McpSettings) -> WireNames {
    let mut names = if settings.dotted_names { WireNames::dotted() } else { WireNames::default() };
    names.assign_all(registry.list_all(true).iter().map(|tool| tool.name()));
    names
}

/// The name in the registry of the tool that a client calls, if there is one.
pub(super) fn own_name(registry: &Registry, settings: &McpSettings, name: &str) -> Option<String> {
    if registry.get(name).is_some() {
        return Some(name.to_owned());
    }
    names(registry, settings).original(name).map(str::to_owned)
}

/// Puts the names of the protocol into the value of a search for tools.
pub(super) fn rename_found(found: &mut Value, names: &WireNames) {
    let tools = found.get_mut("tools").and_then(Value::as_array_mut);
    for name in tools.into_iter().flatten().filter_map(|tool| tool.get_mut("name")) {
        if let Some(wire) = name.as_str().and_then(|name| names.wire(name)) {
            *name = wire.into();
        }
    }
}
