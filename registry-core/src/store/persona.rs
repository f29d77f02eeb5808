//! Personas: named sets of modules.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A named set of modules. Whoever calls under a persona may use these modules and no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Persona {
    /// Names the persona within the tenant.
    pub name: String,
    /// The modules that may be used. Tools without a module belong to `local`.
    pub allowed_modules: BTreeSet<String>,
    /// When the persona was added (UTC).
    pub created_at: Timestamp,
}
