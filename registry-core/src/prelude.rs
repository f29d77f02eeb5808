//! What a tool file needs: `use registry_core::prelude::*;`.

pub use crate::{
    AskError, Audio, Content, File, Image, Markdown, Table,
    context::{Resource, ToolContext},
    plugin::{millis, minutes, secs},
    policy::{Cost, Effect, Permission, TextTag},
    provide::Settings,
    result::{ToolError, ToolResult},
};
pub use futures_core::Stream;
pub use registry_macros::{args, output, resource, tool, tools};
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
pub use serde_json::{Map, Value, json};
