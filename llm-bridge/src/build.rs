//! The state of the program's build, while `toolrack dev` watches its sources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of the build, for the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum Build {
    /// The program that answers is the newest.
    Current,
    /// A newer program is built.
    Building,
    /// The newest sources or settings make no program that serves; the one before goes on.
    Failed {
        /// Why, in the colours of a terminal.
        message: String,
    },
}
