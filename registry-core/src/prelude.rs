//! What a tool file needs: `use registry_core::prelude::*;`.

pub use crate::{
    Content,
    context::{Resource, ToolContext},
    plugin::{millis, minutes, secs},
    policy::{Cost, Effect, Permission, TextTag},
    result::{ToolError, ToolResult},
};
pub use registry_macros::{args, output, tool};
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
pub use serde_json::{Map, Value, json};
