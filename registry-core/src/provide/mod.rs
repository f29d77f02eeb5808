//! What `#[resource]` submits: functions that make what tools ask for with [`Resource<T>`](crate::Resource).

mod error;
mod function;
mod settings;
mod start;

use std::{
    any::{Any, TypeId},
    sync::Arc,
    time::Duration,
};

pub use error::ResourceError;
pub use function::{
    Asked, Gives, OfSettings, TakenSettings, gives, no_settings, of_settings, on_blocking_thread, unprovided,
};
pub use settings::{Configuration, Settings, SettingsTable};

use crate::{
    context::ToolContext,
    future::BoxFuture,
    plugin::{Place, secs},
    result::ToolError,
};

/// A value, whatever its type.
pub(crate) type AnyValue = Arc<dyn Any + Send + Sync>;

/// What a function provided: `None` where there is nothing to provide.
pub type Made = Result<Option<AnyValue>, ToolError>;

/// A function with `#[resource]`: one static each.
///
/// The keys of the attribute are its public fields.
#[derive(Debug, Clone, Copy)]
pub struct ResourcePlugin {
    pub(crate) name: &'static str,
    pub(crate) ty: TypeId,
    pub(crate) type_name: fn() -> &'static str,
    /// The table of the configuration with its settings; by default the one named like the function.
    pub table: Option<&'static str>,
    pub(crate) settings: TakenSettings,
    pub(crate) asks: &'static [Asked],
    pub(crate) make: Make,
    /// What has to be there for the function to provide something, for listings: `"the variable WEATHER_KEY"`.
    pub needs: Option<&'static str>,
    /// How long the function may take at the start; 10 s by default.
    pub timeout: Duration,
    pub(crate) place: Place,
}

/// When a function with `#[resource]` runs.
#[derive(Debug, Clone, Copy)]
pub enum Make {
    /// Once, at the start.
    Once(fn(ToolContext, Option<AnyValue>) -> BoxFuture<'static, Made>),
    /// For each request.
    ByRequest(fn(&ToolContext, Option<&AnyValue>) -> Made),
}

inventory::collect!(ResourcePlugin);

impl ResourcePlugin {
    /// A resource of the type that `gives` names.
    pub const fn new<T>(
        name: &'static str,
        gives: &Gives<T>,
        settings: TakenSettings,
        asks: &'static [Asked],
        make: Make,
        place: Place,
    ) -> Self {
        Self {
            name,
            ty: gives.ty,
            type_name: gives.type_name,
            table: None,
            settings,
            asks,
            make,
            needs: None,
            timeout: secs(10),
            place,
        }
    }

    /// The table that it reads.
    pub(crate) fn table_read(&self) -> Option<&'static str> {
        self.settings.read.is_some().then_some(self.table.unwrap_or(self.name))
    }
}

/// A table of the configuration that a `#[resource]` of this program reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceTable {
    /// Its name.
    pub name: &'static str,
    /// The function that reads it.
    pub place: Place,
}

/// The tables of the configuration that the `#[resource]` functions of this program read, sorted, each once.
pub fn resource_tables() -> Vec<ResourceTable> {
    let plugins = inventory::iter::<ResourcePlugin>();
    let mut tables: Vec<ResourceTable> = plugins
        .filter_map(|plugin| Some(ResourceTable { name: plugin.table_read()?, place: plugin.place }))
        .collect();
    tables.sort_unstable_by_key(|table| (table.name, table.place.file, table.place.line));
    tables.dedup_by_key(|table| table.name);
    tables
}
