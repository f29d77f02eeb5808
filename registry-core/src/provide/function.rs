//! What a function with `#[resource]` takes and gives, as the macro writes it down. Not public API.

use std::{any::TypeId, sync::Arc};

use super::{
    AnyValue, Configuration, Made, Settings, SettingsTable,
    settings::{self, Unread},
};
use crate::{
    context::{ToolContext, short_name},
    future::BoxFuture,
    result::{IntoToolError, ToolError},
};

/// Another resource that a function asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub(crate) ty: TypeId,
    pub(crate) type_name: fn() -> &'static str,
    /// Why it is not there, where the function cannot do without.
    pub(crate) missing: Option<fn(&ToolContext) -> Option<String>>,
}

impl Asked {
    pub(crate) const fn of<T: Send + Sync + 'static>() -> Self {
        Self { ty: TypeId::of::<T>(), type_name: short_name::<T>, missing: Some(ToolContext::absence::<T>) }
    }

    /// The function can do without.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.missing = None;
        self
    }
}

/// Reads a table of the configuration as the type that a function takes.
type ReadTable = fn(&Configuration, &str) -> Result<AnyValue, Unread>;

/// How a function's settings are read.
#[derive(Debug, Clone, Copy)]
pub struct TakenSettings {
    pub(crate) read: Option<ReadTable>,
}

/// A function without settings.
pub const fn no_settings() -> TakenSettings {
    TakenSettings { read: None }
}

/// A function with `Settings<T>`.
#[derive(Debug, Clone, Copy)]
pub struct OfSettings<T> {
    take: fn(Option<&AnyValue>) -> Option<Settings<T>>,
    /// How they are read.
    pub taken: TakenSettings,
}

/// A function with `Settings<T>`.
pub const fn of_settings<T: SettingsTable>() -> OfSettings<T> {
    OfSettings {
        take: |value| Some(Settings::from(Arc::downcast(Arc::clone(value?)).ok()?)),
        taken: TakenSettings { read: Some(settings::read::<T>) },
    }
}

impl<T> OfSettings<T> {
    /// The settings that were read at the start.
    ///
    /// # Errors
    /// None where they were read by the same type, as the macro has it.
    pub fn take(&self, value: Option<&AnyValue>) -> Result<Settings<T>, ToolError> {
        (self.take)(value).ok_or_else(|| ToolError::failed("its settings were not read"))
    }
}

/// What a function provides.
#[derive(Debug, Clone, Copy)]
pub struct Gives<T> {
    pub(crate) ty: TypeId,
    pub(crate) type_name: fn() -> &'static str,
    hold: fn(T) -> AnyValue,
}

/// What a function provides: the `T` of `T`, `Option<T>`, `Result<T, E>` and `Result<Option<T>, E>`.
pub const fn gives<T: Send + Sync + 'static>() -> Gives<T> {
    Gives { ty: TypeId::of::<T>(), type_name: short_name::<T>, hold: |value| Arc::new(value) }
}

/// What a function with faults is checked on.
pub const fn unprovided() -> super::ResourcePlugin {
    super::ResourcePlugin::new(
        "",
        &gives::<()>(),
        no_settings(),
        &[],
        super::Make::ByRequest(|_, _| Ok(None)),
        crate::plugin::Place { module_path: "", file: "", line: 0 },
    )
}

impl<T> Gives<T> {
    /// `T`
    ///
    /// # Errors
    /// None.
    pub fn value(&self, value: T) -> Made {
        Ok(Some((self.hold)(value)))
    }

    /// `Option<T>`
    ///
    /// # Errors
    /// None.
    pub fn option(&self, value: Option<T>) -> Made {
        Ok(value.map(self.hold))
    }

    /// `Result<T, E>`
    ///
    /// # Errors
    /// The function's.
    pub fn value_or<E: IntoToolError>(&self, value: Result<T, E>) -> Made {
        self.option_or(value.map(Some))
    }

    /// `Result<Option<T>, E>`
    ///
    /// # Errors
    /// The function's.
    pub fn option_or<E: IntoToolError>(&self, value: Result<Option<T>, E>) -> Made {
        value.map(|value| value.map(self.hold)).map_err(E::into_tool_error)
    }
}

/// Runs a plain function on a thread where it may block.
pub fn on_blocking_thread(make: impl FnOnce() -> Made + Send + 'static) -> BoxFuture<'static, Made> {
    Box::pin(async move {
        match tokio::task::spawn_blocking(make).await {
            Ok(made) => made,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ToolError::cancelled()),
            },
        }
    })
}
