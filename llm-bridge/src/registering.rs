//! Tools that admins register, switch and remove while the program runs, over HTTP and at the command line.

use registry_core::{ChangeError, StoredRegistry, ToolLimits, ToolPolicy, ToolRegistration, ToolSpec};
use serde_json::json;
use toolrack_remote::is_legal_name;

use crate::{identifier::check_identifier, recorded::Change};

/// The largest spec that is taken, in bytes of JSON.
const MAX_SPEC: usize = 256 * 1024;

/// Reads a spec as it was sent or stands in a file.
///
/// # Errors
/// What is wrong with it and what to write.
pub(crate) fn read_spec(json: &[u8]) -> Result<ToolSpec, String> {
    if json.len() > MAX_SPEC {
        return Err(format!("the spec is over {} KiB, which is the most that is taken", MAX_SPEC >> 10));
    }
    let spec: ToolSpec = serde_json::from_slice(json).map_err(|fault| {
        format!(
            "the spec is not understood: {fault}; write it as in \
             `{{\"tool_name\": \"weather_lookup\", \"version\": \"1.0.0\", \"input_schema\": {{}}, \"output_schema\": {{}}}}`"
        )
    })?;
    check_identifier(&spec.tool_name).map_err(|rule| format!("`tool_name` has to be {rule}"))?;
    if !is_legal_name(&spec.tool_name) {
        return Err("`tool_name` has to be letters, digits, `_` and `-`, with dots between them".to_owned());
    }
    // The registry has `null` for the schema of a tool that says nothing of its result.
    if spec.output_schema.is_null() {
        return Err(
            "`output_schema` is null and has to be an object or a boolean; write {} for any value".to_owned()
        );
    }
    Ok(spec)
}

/// A change of one tool.
#[derive(Debug, Clone)]
pub(crate) enum ToolChange {
    /// Registers a tool, or another version of it. Without code in this program it is listed and cannot be called.
    Register(Box<ToolSpec>),
    /// Switches a tool on or off.
    Switch {
        /// The tool's name.
        name: String,
        /// Whether it is on then.
        enabled: bool,
    },
    /// Sets limits in place of a tool's own; what is not set is as the tool has it.
    Limit {
        /// The tool's name.
        name: String,
        /// The limits.
        limits: ToolLimits,
    },
    /// Removes a tool that was registered; where there is none, nothing is to do.
    Remove {
        /// The tool's name.
        name: String,
    },
}

impl ToolChange {
    /// The tool's name.
    #[cfg(feature = "cli")]
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Register(spec) => &spec.tool_name,
            Self::Switch { name, .. } | Self::Limit { name, .. } | Self::Remove { name } => name,
        }
    }

    /// For the audit.
    pub(crate) fn recorded(&self, tenant: &str) -> Change {
        let (command, arguments) = match self {
            Self::Register(spec) => ("toolrack tools register", json!({"spec": spec})),
            Self::Switch { name, enabled: true } => ("toolrack tools enable", json!({"tool": name})),
            Self::Switch { name, enabled: false } => ("toolrack tools disable", json!({"tool": name})),
            Self::Limit { name, limits } => ("toolrack tools limit", json!({"tool": name, "limits": limits})),
            Self::Remove { name } => ("toolrack tools remove", json!({"tool": name})),
        };
        Change { command, tenant: tenant.to_owned(), arguments }
    }

    /// Makes the change on all servers. Gives the registration as it is then; `None` once it is removed.
    pub(crate) async fn make(self, stored: &StoredRegistry) -> Result<Option<ToolRegistration>, ChangeError> {
        match self {
            Self::Register(spec) => {
                let tool = stored.register(*spec, ToolPolicy::new(), None).await?;
                Ok(Some(tool.registration()))
            }
            Self::Switch { name, enabled } => stored.set_enabled(&name, enabled).await.map(Some),
            Self::Limit { name, limits } => stored.set_limits(&name, limits).await.map(Some),
            Self::Remove { name } => stored.remove(&name).await.map(|()| None),
        }
    }
}
