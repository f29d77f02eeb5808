//! `toolrack tools enable`, `disable`, `register` and `remove`.

use std::path::{Path, PathBuf};

use registry_core::{RegistryEvent, StoredRegistry, ToolRegistration, ToolSpec};

use super::{out::tell, tenant::Tenant};
use crate::registering::{ToolChange, read_spec};

/// Changes for every server that shares the store.
#[derive(Debug, clap::Subcommand)]
pub(super) enum ChangeCommand {
    /// Enable a tool, also in running servers
    Enable(ToolArguments),
    /// Disable a tool, also in running servers
    Disable(ToolArguments),
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
        Some(registration) => {
            tell(format_args!("{name} is {}", if registration.enabled { "on" } else { "off" }));
        }
        None if known => tell(format_args!("removed {name}")),
        None => tell(format_args!("there is no tool `{name}`; nothing to remove")),
    }
    Ok(events)
}
