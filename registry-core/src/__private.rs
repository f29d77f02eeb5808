//! Not public API: what the code that `#[tool]` writes refers to.

pub use inventory;
pub use schemars;
pub use serde;
pub use serde_json;

pub use crate::{
    context::{Resource, Resources, ToolContext},
    execute::blocking,
    flow::{Reads, Sends},
    future::boxed,
    handler::{Given, ToolFuture},
    plugin::{Folder, Place, Plugin},
    policy::TextTag,
    provide::{
        Asked, Gives, Made, Make, OfSettings, ResourcePlugin, SettingsTable, TakenSettings, gives,
        no_settings, of_settings, on_blocking_thread, unprovided,
    },
    result::{ToolError, ToolResult},
    schema::{
        Bound,
        from_call::*,
        literal::{Kind, Known, Literal, PluginExample},
        parameter::*,
        probe::{Otherwise, Type},
    },
};
