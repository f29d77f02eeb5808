//! `toolrack tools enable`, `disable`, `limit`, `register` and `remove`.

use std::path::{Path, PathBuf};

use registry_core::{Registry, RegistryEvent, StoredRegistry, ToolLimits, ToolRegistration, ToolSpec};

use super::{out::tell, tenant::Tenant};
use crate::registering::{ToolChange, read_spec};

/// Changes for every server that shares the store.
#[derive(Debug, clap::Subcommand)]
pub(super) enum ChangeCommand {
    /// Enable a tool, also in running servers
    Enable(ToolArguments),
    /// Disable a tool, also in running servers
    Disable(ToolArguments),
    /// Set how often a user may call a tool, also in running servers; without options, as the tool has it
    Limit {
        /// The tool's name
        name: String,
        /// Calls of a user in a day (UTC); 0 for any number
        #[arg(long)]
        daily: Option<u32>,
        /// The least time between two calls of a user, in seconds; 0 for none
        #[arg(long)]
        cooldown: Option<u32>,
        #[command(flatten)]
        tenant: Tenant,
    },
    /// Register a tool by its spec, also in running servers; without code it is listed and cannot be called
    Register {
        /// A JSON file with the tool's spec, `-` for standard input
        file: PathBuf,
        #[command(flatten)]
        tenant: Tenant,
    },
    /// Remove a tool that was registered, also in running servers
    Remove(ToolArguments),
}

#[derive(Debug, clap::Args)]
pub(super) struct ToolArguments {
    /// The tool's name
    name: String,
    #[command(flatten)]
    tenant: Tenant,
}

impl ChangeCommand {
    /// The change, with its tenant.
    pub(super) fn change(self) -> Result<(ToolChange, String), String> {
        let (change, tenant) = match self {
            Self::Enable(ToolArguments { name, tenant }) => {
                (ToolChange::Switch { name, enabled: true }, tenant)
            }
            Self::Disable(ToolArguments { name, tenant }) => {
                (ToolChange::Switch { name, enabled: false }, tenant)
            }
            Self::Limit { name, daily, cooldown, tenant } => {
                let limits = ToolLimits { daily_limit: daily, cooldown_seconds: cooldown };
                (ToolChange::Limit { name, limits }, tenant)
            }
            Self::Register { file, tenant } => (ToolChange::Register(Box::new(spec_in(&file)?)), tenant),
            Self::Remove(ToolArguments { name, tenant }) => (ToolChange::Remove { name }, tenant),
        };
        Ok((change, tenant.tenant))
    }
}

fn spec_in(file: &Path) -> Result<ToolSpec, String> {
    let read = match file.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let spec = read.map_err(|fault| fault.to_string()).and_then(|json| read_spec(json.as_bytes()));
    spec.map_err(|fault| format!("{}: {fault}", file.display()))
}

/// Changes a tool for every server that shares the store. Gives the changes that were made: none where it was so.
pub(super) async fn change(
    change: ToolChange,
    stored: &StoredRegistry,
) -> Result<Vec<RegistryEvent>, String> {
    let mut events = stored.registry().subscribe();
    let limits = matches!(change, ToolChange::Limit { .. });
    let (name, registers) = (change.name().to_owned(), matches!(change, ToolChange::Register(_)));
    let known = stored.registry().get(&name).is_some();
    let made = change.make(stored).await.map_err(|error| error.to_string())?;
    let events = std::iter::from_fn(|| events.try_recv().ok());
    let events: Vec<RegistryEvent> = events.filter(|event| !event.elsewhere).collect();
    match made {
        Some(_) if registers && events.is_empty() => tell(format_args!("{name} is registered already")),
        Some(ToolRegistration { spec, .. }) if registers => {
            let version = spec.version.map(|version| format!(" {version}")).unwrap_or_default();
            tell(format_args!("registered {name}{version}; without code it is listed and cannot be called"));
        }
        Some(_) if limits => tell(limits_of(stored.registry(), &name)),
        Some(registration) => {
            tell(format_args!("{name} is {}", if registration.enabled { "on" } else { "off" }));
        }
        None if known => tell(format_args!("removed {name}")),
        None => tell(format_args!("there is no tool `{name}`; nothing to remove")),
    }
    Ok(events)
}

/// How often a user may call a tool, in a sentence.
fn limits_of(registry: &Registry, name: &str) -> String {
    let Some(tool) = registry.get(name) else { return format!("there is no tool `{name}` any more") };
    let limits = [
        match tool.daily_limit() {
            0 => None,
            1 => Some("once a day".to_owned()),
            calls => Some(format!("{calls} times a day")),
        },
        (!tool.cooldown().is_zero()).then(|| format!("once in {} s", tool.cooldown().as_secs_f64())),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    let often = if limits.is_empty() { "as often as they like".to_owned() } else { limits.join(", ") };
    let set = if tool.limits().is_empty() { ", as the tool has it" } else { "" };
    format!("users may call {name} {often}{set}")
}
