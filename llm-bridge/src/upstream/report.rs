//! What is known of a model server, for who runs this one.

use schemars::JsonSchema;
use serde::Serialize;

/// What is known of a model server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Upstream")]
pub(crate) struct UpstreamReport {
    /// Its name in logs, metrics and requests.
    pub(crate) name: String,
    /// Its address; keys are not shown.
    pub(crate) address: String,
    /// Which kind of server it is; null where that is not recognised.
    pub(crate) kind: Option<String>,
    /// How many models it lists; null where it does not answer.
    pub(crate) models: Option<usize>,
    /// Why it does not answer.
    pub(crate) error: Option<String>,
    /// The one that is asked where it is away.
    pub(crate) fallback: Option<String>,
}
