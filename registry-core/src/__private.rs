//! Not public API: what the code that `#[tool]` writes refers to.

pub use inventory;
pub use schemars;
pub use serde;
pub use serde_json;

pub use crate::{
    context::ToolContext,
    execute::BoxFuture,
    plugin::{Folder, Place, Plugin},
    policy::TextTag,
    resource::{Resource, Resources},
    result::{Failure, Output, ToolError, ToolResult},
    schema::{Bound, of_arguments},
};
