//! What a tool's function gives, and what its arguments keep to.
//!
//! Not public API but for the traits, which compiler errors name.

use futures_core::Stream;
use serde_json::{Map, Value};

use super::{Argument, Bound, Output, output::Json};
use crate::{
    content::{Streamed, StreamedPart, collect},
    context::{Resource, ToolContext},
    json::narrowed,
    provide::Asked,
    result::{IntoToolError, ToolError, ToolResult},
};

/// What a tool's function gives.
#[derive(Debug)]
pub struct Returns<T> {
    /// The schema of the value, where one is known.
    pub schema: fn() -> Option<Value>,
    give: fn(T) -> Result<ToolResult, ToolError>,
}

/// What a tool's function gives, or the `T` of the `Result<T, E>` that it gives.
pub const fn returns<T: Output<Kind>, Kind>() -> Returns<T> {
    Returns { schema: T::schema, give: T::into_result }
}

impl<T> Returns<T> {
    /// The value as a result.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn give(&self, value: T) -> Result<ToolResult, ToolError> {
        (self.give)(value)
    }

    /// The value as a result, or the failure.
    ///
    /// # Errors
    /// As [`give`](Self::give), and the failure.
    pub fn give_or<E>(&self, fails: &Fails<E>, done: Result<T, E>) -> Result<ToolResult, ToolError> {
        done.map_err(fails.0).and_then(self.give)
    }

    /// The same for a `Result` whose alias does not show its `E`.
    ///
    /// # Errors
    /// As [`give_or`](Self::give_or).
    pub fn give_or_fail<E: IntoToolError>(&self, done: Result<T, E>) -> Result<ToolResult, ToolError> {
        done.map_err(E::into_tool_error).and_then(self.give)
    }
}

/// The items of the stream that a tool's function gives.
#[derive(Debug)]
pub struct Streams<T> {
    /// No value has a schema that comes in parts.
    pub schema: fn() -> Option<Value>,
    give: fn(T) -> Result<StreamedPart, ToolError>,
}

/// The items of the stream that a tool's function gives, or of the one in the `Result` that it gives.
pub const fn streams<T: Streamed>() -> Streams<T> {
    Streams { schema: || None, give: T::into_part }
}

impl<T> Streams<T> {
    /// All that the stream gives, shown as it comes.
    ///
    /// # Errors
    /// As [`collect`].
    pub fn give(
        &self,
        context: &ToolContext,
        stream: impl Stream<Item = T>,
    ) -> impl Future<Output = Result<ToolResult, ToolError>> {
        collect(context, stream, self.give)
    }

    /// All that the stream gives, or the failure.
    ///
    /// # Errors
    /// As [`give`](Self::give), and the failure.
    pub async fn give_or<E>(
        &self,
        context: &ToolContext,
        fails: &Fails<E>,
        begun: Result<impl Stream<Item = T>, E>,
    ) -> Result<ToolResult, ToolError> {
        self.give(context, begun.map_err(fails.0)?).await
    }

    /// The same for a `Result` whose alias does not show its `E`.
    ///
    /// # Errors
    /// As [`give_or`](Self::give_or).
    pub async fn give_or_fail<E: IntoToolError>(
        &self,
        context: &ToolContext,
        begun: Result<impl Stream<Item = T>, E>,
    ) -> Result<ToolResult, ToolError> {
        self.give(context, begun.map_err(E::into_tool_error)?).await
    }
}

/// The `E` of the `Result<T, E>` that a tool's function gives.
#[derive(Debug)]
pub struct Fails<E>(fn(E) -> ToolError);

/// The `E` of the `Result<T, E>` that a tool's function gives.
pub const fn fails<E: IntoToolError>() -> Fails<E> {
    Fails(E::into_tool_error)
}

/// Checks that a field of an `#[args]` can be read.
pub const fn readable<T: Argument>() {}

/// Checks that a field of an `#[output]` can be written.
pub const fn writable<T: Output<Json>>() {}

/// What a tool's function asks of the host.
#[derive(Debug)]
pub struct Need<T> {
    asked: Asked,
    missing: fn(&ToolContext) -> Option<String>,
    find: fn(&ToolContext) -> Option<Resource<T>>,
}

/// What a tool's function asks of the host.
pub const fn need<T: Send + Sync + 'static>() -> Need<T> {
    Need { asked: Asked::of::<T>(), missing: ToolContext::missing::<T>, find: ToolContext::resource }
}

impl<T> Need<T> {
    /// Its type, for the order in which resources are made.
    pub const fn asked(&self) -> Asked {
        self.asked
    }

    /// Why a tool that needs it is off; `None` where it is provided.
    pub fn missing(&self, context: &ToolContext) -> Option<String> {
        (self.missing)(context)
    }

    /// It, where it is provided.
    pub fn find(&self, context: &ToolContext) -> Option<Resource<T>> {
        (self.find)(context)
    }

    /// It.
    ///
    /// # Errors
    /// When it is not provided. The registry only comes here where that has changed since it asked.
    pub fn take(&self, context: &ToolContext) -> Result<Resource<T>, ToolError> {
        self.find(context).ok_or_else(|| ToolError::unavailable((self.missing)(context).unwrap_or_default()))
    }
}

/// What may have a `range`.
#[diagnostic::on_unimplemented(
    message = "`range` is for numbers, and `{Self}` is none",
    label = "not for a `{Self}`",
    note = "for texts and lists there is `length`, for texts `pattern`"
)]
pub trait Number {
    /// What its ends are: the type itself. As a type of its own it keeps rustc from telling more about ends of
    /// something that has none.
    type End;

    /// An end as the schema writes it.
    #[doc(hidden)]
    fn show(end: Self::End) -> Value;

    /// The bound of `range = min..=max`, or of `range = min..max` where the greatest is itself too much.
    #[doc(hidden)]
    fn range(min: Option<Self::End>, max: Option<Self::End>, exclusive: bool) -> Bound {
        Bound::Range { min: min.map(Self::show), max: max.map(Self::show), exclusive }
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            type End = Self;

            fn show(end: Self) -> Value {
                end.into()
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize f64 }

impl Number for f32 {
    type End = Self;

    fn show(end: Self) -> Value {
        narrowed(end.into()).into()
    }
}

impl<T: Number> Number for Option<T> {
    type End = T::End;

    fn show(end: T::End) -> Value {
        T::show(end)
    }
}

/// What may have a `length`.
#[diagnostic::on_unimplemented(
    message = "`length` is for texts, lists and maps, and `{Self}` is none",
    label = "not for a `{Self}`",
    note = "for numbers there is `range`"
)]
pub trait Counted {
    /// The bound of `length = min..=max`.
    #[doc(hidden)]
    fn length(min: Option<u64>, max: Option<u64>, exclusive: bool) -> Bound {
        Bound::Length { min, max: max.map(|max| max.saturating_sub(exclusive.into())) }
    }
}

impl Counted for String {}
impl Counted for Box<str> {}
impl Counted for std::sync::Arc<str> {}
impl Counted for std::borrow::Cow<'_, str> {}
impl Counted for std::path::PathBuf {}
impl<T> Counted for Vec<T> {}
impl<T> Counted for Box<[T]> {}
impl<T> Counted for std::collections::VecDeque<T> {}
impl<T> Counted for std::collections::BTreeSet<T> {}
impl<T, S> Counted for std::collections::HashSet<T, S> {}
impl<K, V> Counted for std::collections::BTreeMap<K, V> {}
impl<K, V, S> Counted for std::collections::HashMap<K, V, S> {}
impl Counted for Map<String, Value> {}
impl<T: Counted> Counted for Option<T> {}

/// What may have a `pattern`.
#[diagnostic::on_unimplemented(
    message = "`pattern` is for texts, and `{Self}` is none",
    label = "not for a `{Self}`",
    note = "for numbers there is `range`, for lists `length`"
)]
pub trait Text {
    /// The bound of `pattern = "regular expression"`.
    #[doc(hidden)]
    fn pattern(pattern: &'static str) -> Bound {
        Bound::Pattern(pattern)
    }
}

impl Text for String {}
impl Text for Box<str> {}
impl Text for std::sync::Arc<str> {}
impl Text for std::borrow::Cow<'_, str> {}
impl Text for std::path::PathBuf {}
impl<T: Text> Text for Option<T> {}

/// What the keys of a tool with faults are checked on.
pub const fn unregistered() -> crate::plugin::Plugin {
    crate::plugin::Plugin::new(
        "",
        "",
        &[],
        || None,
        |_, _| Box::pin(std::future::pending()),
        crate::plugin::Place { module_path: "", file: "", line: 0 },
    )
}
