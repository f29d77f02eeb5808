//! Not public API: what the code that `#[tool]` writes refers to.

pub use inventory;
pub use schemars;
pub use serde;
pub use serde_json::{self, Map, Value};

pub use crate::{
    context::ToolContext,
    execute::BoxFuture,
    execute::blocking,
    parameter::*,
    plugin::{Folder, Place, Plugin},
    policy::TextTag,
    resource::{Resource, Resources},
    result::{ToolError, ToolResult},
    schema::Bound,
};
