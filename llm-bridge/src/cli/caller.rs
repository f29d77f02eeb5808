//! As whom a command lists and calls tools.

use registry_core::{Caller, Permission, store::Store};

use super::{Settings, tenant::Tenant};
use crate::personas::{PersonaError, under_persona};

/// The level and the persona in place of those of the configured user.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct CallerArguments {
    /// The level of the caller: guest, user, admin or owner
    #[arg(long)]
    level: Option<Permission>,
    /// The persona of the caller; only tools of its modules can be used
    #[arg(long, value_name = "NAME")]
    persona: Option<String>,
    #[command(flatten)]
    tenant: Tenant,
}

impl CallerArguments {
    pub(super) fn tenant(&self) -> &str {
        &self.tenant.tenant
    }

    /// Whether neither a level nor a persona is given.
    pub(super) fn is_configured_user(&self) -> bool {
        self.level.is_none() && self.persona.is_none()
    }

    /// The configured user with this level and persona. Without a store there are no personas.
    pub(super) async fn caller(
        &self,
        settings: &Settings,
        store: Option<&dyn Store>,
    ) -> Result<Caller, String> {
        let caller = self.level.map_or_else(|| settings.caller(), |level| settings.caller_at(level));
        let Some(persona) = self.persona.as_deref() else { return Ok(caller) };
        let Some(store) = store else {
            return Err(format!(
                "there is no persona `{persona}`: nothing is stored yet; see `toolrack persona add --help`"
            ));
        };
        under_persona(store, self.tenant(), caller, &[], Some(persona)).await.map_err(|fault| match fault {
            PersonaError::NotAllowed(message) => message,
            PersonaError::Store(cause) => cause.to_string(),
        })
    }
}
