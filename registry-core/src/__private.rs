//! Not public API: what the code that `#[tool]` writes refers to.

pub use inventory;
pub use schemars;
pub use serde;
pub use serde_json::{self, Map, Value};

pub use crate::{
    context::{Resource, Resources, ToolContext},
    execute::blocking,
    future::BoxFuture,
    plugin::{Folder, Place, Plugin},
    policy::TextTag,
    result::{ToolError, ToolResult},
    schema::{Bound, parameter::*},
};
