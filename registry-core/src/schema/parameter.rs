//! What a tool's function takes and gives, as `#[tool]` writes it down: the schema, and the way from JSON and back.
//!
//! Not public API. Each type of a signature is named once in the generated code, as a type argument of one of the
//! functions here, so that a type that will not do is one error, in our words, on that type.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{Bound, Output, object_of};
use crate::{
    context::{Resource, ToolContext},
    result::{IntoToolError, ToolError, ToolResult},
};

/// What an argument of a tool may be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not something that a model can write",
    note = "use a number, a `bool`, a `String`, a `Vec`, a `serde_json::Value`, or a type of your own with `#[args]` (or `derive(Deserialize, JsonSchema)`)"
)]
pub trait Argument: DeserializeOwned + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Argument for T {}

/// What a default or an example may be: it is shown to the model.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be written into the schema as a default or an example",
    label = "not `Serialize`",
    note = "use `#[args]` on the type (or `derive(Serialize)`)"
)]
pub trait Shown: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> Shown for T {}

/// One argument of a tool's function.
#[derive(Debug)]
#[must_use]
pub struct Parameter<T> {
    name: &'static str,
    description: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    read: fn(Value) -> serde_json::Result<T>,
    absent: Option<fn() -> T>,
    show: Option<fn(&T) -> Value>,
    examples: Option<fn() -> Value>,
    bounds: fn() -> Vec<Bound>,
}

/// An argument that has to be given, until it has a default.
pub const fn parameter<T: Argument>(name: &'static str, description: &'static str) -> Parameter<T> {
    named::<T, T>(name, description, None)
}

/// An argument that may be left out.
pub const fn optional<T: Argument>(name: &'static str, description: &'static str) -> Parameter<Option<T>> {
    const fn none<T>() -> Option<T> {
        None
    }
    named::<T, Option<T>>(name, description, Some(none))
}

const fn named<T: Argument, V: DeserializeOwned>(
    name: &'static str,
    description: &'static str,
    absent: Option<fn() -> V>,
) -> Parameter<V> {
    Parameter {
        name,
        description,
        schema: SchemaGenerator::subschema_for::<T>,
        read: serde_json::from_value,
        absent,
        show: None,
        examples: None,
        bounds: Vec::new,
    }
}

impl<T> Parameter<T> {
    /// With the value it has when it is left out.
    pub const fn default(mut self, make: fn() -> T) -> Self
    where
        T: Shown,
    {
        self.absent = Some(make);
        self.show = Some(show::<T>);
        self
    }

    /// With values to show how it is meant.
    pub const fn examples(mut self, make: fn() -> Value) -> Self {
        self.examples = Some(make);
        self
    }

    /// With what its values keep to.
    pub const fn bounds(mut self, bounds: fn() -> Vec<Bound>) -> Self {
        self.bounds = bounds;
        self
    }

    /// The argument out of those that were given. It may be missing where it has to be there, or not fit the type.
    fn take(&self, given: &mut Map<String, Value>) -> Result<T, ToolError> {
        match (given.remove(self.name), self.absent) {
            (Some(value), _) => {
                (self.read)(value).map_err(|error| ToolError::invalid(format!("`{}`: {error}", self.name)))
            }
            (None, Some(make)) => Ok(make()),
            (None, None) => Err(ToolError::invalid(format!("`{}` is missing", self.name))),
        }
    }
}

/// Arguments that are taken together, as a chain of pairs that ends in `()`.
pub trait Take {
    /// Their values, as a chain of the same form.
    type Values;

    /// The arguments out of those that were given.
    ///
    /// # Errors
    /// As [`take`].
    fn take(&self, given: &mut Map<String, Value>) -> Result<Self::Values, ToolError>;
}

impl Take for () {
    type Values = ();

    fn take(&self, _: &mut Map<String, Value>) -> Result<(), ToolError> {
        Ok(())
    }
}

impl<T, Rest: Take> Take for (&Parameter<T>, Rest) {
    type Values = (T, Rest::Values);

    fn take(&self, given: &mut Map<String, Value>) -> Result<Self::Values, ToolError> {
        Ok((self.0.take(given)?, self.1.take(given)?))
    }
}

/// All arguments of a tool.
///
/// # Errors
/// When one is not there and has to be, or does not fit its type.
pub fn take<Chain: Take>(
    parameters: Chain,
    mut given: Map<String, Value>,
) -> Result<Chain::Values, ToolError> {
    parameters.take(&mut given)
}

/// A list with one value, as the schema shows examples.
pub fn example<T: Shown>(value: T) -> Value {
    Value::Array(vec![show(&value)])
}

fn show<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// What the schema says about a parameter, of whatever type.
pub trait Describe {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Whether it may be left out.
    fn is_optional(&self) -> bool;
    /// Its schema.
    fn describe(&self, generator: &mut SchemaGenerator) -> Schema;
}

impl<T> Describe for Parameter<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_optional(&self) -> bool {
        self.absent.is_some()
    }

    fn describe(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = (self.schema)(generator);
        for bound in &mut (self.bounds)() {
            schemars::transform::Transform::transform(bound, &mut schema);
        }
        schema.insert("description".to_owned(), self.description.into());
        if let (Some(show), Some(make)) = (self.show, self.absent) {
            schema.insert("default".to_owned(), show(&make()));
        }
        if let Some(examples) = self.examples {
            schema.insert("examples".to_owned(), examples());
        }
        schema
    }
}

/// The schema of a list of arguments.
pub fn of_parameters(parameters: &[&dyn Describe]) -> Value {
    object_of(parameters)
}

/// All arguments in one struct: the second form of a tool.
#[derive(Debug)]
pub struct Whole<T> {
    schema: fn() -> Value,
    read: fn(Value) -> serde_json::Result<T>,
}

/// The struct that takes all arguments.
pub const fn whole<T: Argument>() -> Whole<T> {
    Whole { schema: crate::schema::of_arguments::<T>, read: serde_json::from_value }
}

impl<T> Whole<T> {
    /// Its schema.
    pub fn schema(&self) -> Value {
        (self.schema)()
    }

    /// The struct out of the arguments that were given.
    ///
    /// # Errors
    /// When they do not fit the type.
    pub fn take(&self, given: Map<String, Value>) -> Result<T, ToolError> {
        (self.read)(Value::Object(given)).map_err(|error| ToolError::invalid(error.to_string()))
    }
}

/// What a tool's function gives.
#[derive(Debug)]
pub struct Returns<T> {
    schema: fn() -> Option<Value>,
    give: fn(T) -> Result<ToolResult, ToolError>,
}

/// What a tool's function gives, or the `T` of the `Result<T, E>` that it gives.
pub const fn returns<T: Output>() -> Returns<T> {
    Returns { schema: T::schema, give: T::into_result }
}

impl<T> Returns<T> {
    /// The schema of the value, where one is known.
    pub fn schema(&self) -> Option<Value> {
        (self.schema)()
    }

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

/// The `E` of the `Result<T, E>` that a tool's function gives.
#[derive(Debug)]
pub struct Fails<E>(fn(E) -> ToolError);

/// The `E` of the `Result<T, E>` that a tool's function gives.
pub const fn fails<E: IntoToolError>() -> Fails<E> {
    Fails(E::into_tool_error)
}

/// What a tool's function asks of the host.
#[derive(Debug)]
pub struct Need<T> {
    missing: fn(&ToolContext) -> Option<String>,
    find: fn(&ToolContext) -> Option<Resource<T>>,
}

/// What a tool's function asks of the host.
pub const fn need<T: Send + Sync + 'static>() -> Need<T> {
    Need { missing: ToolContext::missing::<T>, find: ToolContext::resource }
}

impl<T> Need<T> {
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
    fn show(end: Self::End) -> Value;
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
        // By way of its digits: 0.1 is to stay 0.1 and not become 0.10000000149011612.
        end.to_string().parse::<f64>().unwrap_or_else(|_| end.into()).into()
    }
}

/// What may have a `length`.
#[diagnostic::on_unimplemented(
    message = "`length` is for texts, lists and maps, and `{Self}` is none",
    label = "not for a `{Self}`",
    note = "for numbers there is `range`"
)]
pub trait Counted {}

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

/// What may have a `pattern`.
#[diagnostic::on_unimplemented(
    message = "`pattern` is for texts, and `{Self}` is none",
    label = "not for a `{Self}`",
    note = "for numbers there is `range`, for lists `length`"
)]
pub trait Text {}

impl Text for String {}
impl Text for Box<str> {}
impl Text for std::sync::Arc<str> {}
impl Text for std::borrow::Cow<'_, str> {}
impl Text for std::path::PathBuf {}

/// The bound of `range = min..=max`, or of `range = min..max` where the greatest is itself too much.
pub fn range<T: Number>(min: Option<T::End>, max: Option<T::End>, exclusive: bool) -> Bound {
    Bound::Range { min: min.map(T::show), max: max.map(T::show), exclusive }
}

/// The bound of `length = min..=max`.
pub fn length<T: Counted>(min: Option<u64>, max: Option<u64>, exclusive: bool) -> Bound {
    Bound::Length { min, max: max.map(|max| max.saturating_sub(exclusive.into())) }
}

/// The bound of `pattern = "regular expression"`.
pub fn pattern<T: Text>(pattern: &'static str) -> Bound {
    Bound::Pattern(pattern)
}

/// What the keys of a tool with faults are checked on.
pub const fn unregistered() -> crate::plugin::Plugin {
    crate::plugin::Plugin::new(
        "",
        "",
        || Value::Null,
        || None,
        |_, _| Box::pin(std::future::pending()),
        crate::plugin::Place { module_path: "", file: "", line: 0 },
    )
}
