//! What each parameter of a tool's function is taken from: the model's arguments, the host, or the request. The type decides.
//!
//! Not public API but for the traits, which compiler errors name.

use std::{
    borrow::Borrow,
    collections::{BTreeSet, HashSet, VecDeque},
    panic::RefUnwindSafe,
    path::{Path, PathBuf},
};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{Bound, object_of};
use crate::{
    context::{Resource, ToolContext},
    json,
    result::ToolError,
};

/// What an argument of a tool may be: anything that is read from JSON and has a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not something that a model can write",
    note = "use a number, a `bool`, a `String`, a `Vec`, a `serde_json::Value`, or a type of your own with `#[args]` (or `derive(Deserialize, JsonSchema)`), alone or in a `Vec`, an `Option` or a map"
)]
pub trait Argument: Sized {
    /// All arguments of a tool in one struct.
    #[doc(hidden)]
    const WHOLE: Parameter<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Argument for T {
    const WHOLE: Parameter<Self> = Parameter {
        take: |_, _, given| {
            let read = serde_json::from_value(Value::Object(std::mem::take(given)));
            read.map_err(|error| ToolError::invalid(error.to_string()))
        },
        whole: Some(super::of_arguments::<Self>),
        ..Parameter::provided(|_| None, |_| Err(ToolError::invalid("the arguments are missing")))
    };
}

/// What a parameter of a tool's function may be: an [`Argument`], a [`Resource`] or an `Option` of one, or the [`ToolContext`]. `Kind` keeps
/// the implementations apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a tool",
    label = "not something that a model can write",
    note = "for an argument, use a number, a `bool`, a `String`, a `Vec`, a `serde_json::Value`, or a type of your own with `#[args]` (or `derive(Deserialize, JsonSchema)`), alone or in a `Vec`, an `Option` or a map",
    note = "for something that the program provides, use `Resource<{Self}>`, or `Option<Resource<…>>` where it may be missing",
    note = "a type of another crate needs that crate's feature `serde`, and schemars' feature for it: `cargo add --package tools schemars --features chrono04`, or `uuid1`, `url2`"
)]
pub trait FromCall<Kind>: Sized {
    /// How it is taken.
    #[doc(hidden)]
    const PARAMETER: Parameter<Self>;
}

/// Taken from what the model gives.
#[derive(Debug)]
pub struct ByModel;

/// Taken from what the host provides.
#[derive(Debug)]
pub struct ByHost;

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> FromCall<ByModel> for T {
    const PARAMETER: Parameter<Self> = Parameter {
        take: Parameter::read_from,
        schema: Some(SchemaGenerator::subschema_for::<T>),
        read: Some(serde_json::from_value),
        ..Parameter::provided(|_| None, |_| Err(ToolError::invalid("an argument is missing")))
    };
}

#[diagnostic::do_not_recommend]
impl<T: Send + Sync + 'static> FromCall<ByHost> for Resource<T> {
    const PARAMETER: Parameter<Self> = Parameter::provided(ToolContext::missing::<T>, |context| {
        // The registry only comes here where it was there when it asked.
        context.resource().ok_or_else(|| ToolError::unavailable(context.missing::<T>().unwrap_or_default()))
    });
}

#[diagnostic::do_not_recommend]
impl<T: Send + Sync + 'static> FromCall<ByHost> for Option<Resource<T>> {
    const PARAMETER: Parameter<Self> = Parameter::provided(|_| None, |context| Ok(context.resource()));
}

#[diagnostic::do_not_recommend]
impl FromCall<ByHost> for ToolContext {
    const PARAMETER: Parameter<Self> = Parameter::provided(|_| None, |context| Ok(context.clone()));
}

/// What a reference is held in for the length of a call.
pub trait Lend {
    /// What is held.
    type Held: Borrow<Self>;
}

impl<T> Lend for T {
    type Held = T;
}

impl Lend for str {
    type Held = String;
}

impl Lend for Path {
    type Held = PathBuf;
}

impl<T> Lend for [T] {
    type Held = Vec<T>;
}

/// What an `Option<&T>` borrows.
pub fn lent<T: Lend + ?Sized>(held: &Option<T::Held>) -> Option<&T> {
    held.as_ref().map(Borrow::borrow)
}

/// What a default or an example may be: it is shown to the model.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be written into the schema as a default or an example",
    label = "not `Serialize`",
    note = "put `#[output]` on the type as well (or `derive(Serialize)`)"
)]
pub trait Shown {
    /// Shows a value.
    #[doc(hidden)]
    const SHOW: fn(&Self) -> Value;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> Shown for T {
    const SHOW: fn(&T) -> Value = |value| json::to_value(value).unwrap_or_default();
}

/// What a text in quotes can be, as a default or an example.
#[diagnostic::on_unimplemented(
    message = "a text is not a `{Self}`",
    label = "expected a `{Self}`",
    note = "write a value of the argument's type"
)]
pub trait FromText {
    /// The value.
    #[doc(hidden)]
    fn from_text(text: &'static str) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: From<&'static str>> FromText for T {
    fn from_text(text: &'static str) -> Self {
        text.into()
    }
}

/// What `[…]` can be, as a default or an example.
#[diagnostic::on_unimplemented(
    message = "a list is not a `{Self}`",
    label = "expected a `{Self}`",
    note = "write a value of the argument's type"
)]
pub trait FromList<const N: usize> {
    /// What is in it.
    #[doc(hidden)]
    type Item;

    /// The value.
    #[doc(hidden)]
    fn from_list(items: [Self::Item; N]) -> Self;
}

impl<T, const N: usize> FromList<N> for Vec<T> {
    type Item = T;

    fn from_list(items: [T; N]) -> Self {
        items.into()
    }
}

impl<T, const N: usize> FromList<N> for [T; N] {
    type Item = T;

    fn from_list(items: [T; N]) -> Self {
        items
    }
}

impl<T, const N: usize> FromList<N> for VecDeque<T> {
    type Item = T;

    fn from_list(items: [T; N]) -> Self {
        items.into()
    }
}

impl<T: Ord, const N: usize> FromList<N> for BTreeSet<T> {
    type Item = T;

    fn from_list(items: [T; N]) -> Self {
        items.into()
    }
}

impl<T: Eq + std::hash::Hash, const N: usize> FromList<N> for HashSet<T> {
    type Item = T;

    fn from_list(items: [T; N]) -> Self {
        items.into()
    }
}

/// Reads a parameter of a call; what it takes from the arguments is gone from them.
type ReadParameter<T> = fn(&Parameter<T>, &ToolContext, &mut Map<String, Value>) -> Result<T, ToolError>;

/// One parameter of a tool's function.
#[derive(Debug)]
#[must_use]
pub struct Parameter<T> {
    name: &'static str,
    description: &'static str,
    /// Reads it.
    take: ReadParameter<T>,
    /// What the host is asked for.
    provide: fn(&ToolContext) -> Result<T, ToolError>,
    missing: fn(&ToolContext) -> Option<String>,
    /// The schema of an argument.
    schema: Option<fn(&mut SchemaGenerator) -> Schema>,
    read: Option<fn(Value) -> serde_json::Result<T>>,
    absent: Option<fn() -> T>,
    show: Option<fn(&T) -> Value>,
    examples: fn() -> Vec<Value>,
    bounds: fn() -> Vec<Bound>,
    /// The schema of all arguments together.
    whole: Option<fn() -> Value>,
}

impl<T> Parameter<T> {
    const fn provided(
        missing: fn(&ToolContext) -> Option<String>,
        provide: fn(&ToolContext) -> Result<T, ToolError>,
    ) -> Self {
        Self {
            name: "",
            description: "",
            take: |parameter, context, _| (parameter.provide)(context),
            provide,
            missing,
            schema: None,
            read: None,
            absent: None,
            show: None,
            examples: Vec::new,
            bounds: Vec::new,
            whole: None,
        }
    }

    /// The argument out of those that were given.
    fn read_from(&self, _: &ToolContext, given: &mut Map<String, Value>) -> Result<T, ToolError> {
        match (given.remove(self.name), self.read, self.absent) {
            (Some(value), Some(read), _) => {
                read(value).map_err(|error| ToolError::invalid(format!("`{}`: {error}", self.name)))
            }
            (_, _, Some(make)) => Ok(make()),
            _ => Err(ToolError::invalid(format!("`{}` is missing", self.name))),
        }
    }

    /// With what the model calls it, what it is told about it, and what it is where it is left out.
    pub const fn named(
        mut self,
        name: &'static str,
        description: &'static str,
        absent: Option<fn() -> T>,
    ) -> Self {
        self.name = name;
        self.description = description;
        self.absent = absent;
        self
    }

    /// With the value it has when it is left out.
    pub const fn default(mut self, make: fn() -> T, show: fn(&T) -> Value) -> Self {
        self.absent = Some(make);
        self.show = Some(show);
        self
    }

    /// With values to show how it is meant.
    pub const fn examples(mut self, make: fn() -> Vec<Value>) -> Self {
        self.examples = make;
        self
    }

    /// With what its values keep to.
    pub const fn bounds(mut self, bounds: fn() -> Vec<Bound>) -> Self {
        self.bounds = bounds;
        self
    }

    /// Reports, while it is compiled, that it is an argument and lacks something.
    ///
    /// # Panics
    /// Where it is an argument.
    #[track_caller]
    #[expect(clippy::panic, reason = "this is how a constant reports an error")]
    pub const fn unless_provided(self, message: &'static str) -> Self {
        if self.schema.is_some() {
            panic!("{}", message);
        }
        self
    }

    /// Reports, while it is compiled, that it is no argument and has what is for arguments.
    ///
    /// # Panics
    /// Where it is no argument.
    #[track_caller]
    #[expect(clippy::panic, reason = "this is how a constant reports an error")]
    pub const fn only_argument(self, message: &'static str) -> Self {
        if self.schema.is_none() {
            panic!("{}", message);
        }
        self
    }
}

/// What is known of a parameter, of whatever type.
pub trait Describe: Sync + RefUnwindSafe {
    /// Its name and schema and whether it may be left out, where it is an argument.
    fn describe(&self, generator: &mut SchemaGenerator) -> Option<(&'static str, Schema, bool)>;
    /// The schema of all arguments, where it takes them all.
    fn whole(&self) -> Option<Value>;
    /// Why a tool that needs it is off; `None` where it is provided.
    fn missing(&self, context: &ToolContext) -> Option<String>;
}

impl<T> Describe for Parameter<T> {
    fn describe(&self, generator: &mut SchemaGenerator) -> Option<(&'static str, Schema, bool)> {
        let mut schema = (self.schema?)(generator);
        for bound in &mut (self.bounds)() {
            schemars::transform::Transform::transform(bound, &mut schema);
        }
        schema.insert("description".to_owned(), self.description.into());
        if let (Some(show), Some(make)) = (self.show, self.absent) {
            schema.insert("default".to_owned(), show(&make()));
        }
        let examples = (self.examples)();
        if !examples.is_empty() {
            schema.insert("examples".to_owned(), examples.into());
        }
        Some((self.name, schema, self.absent.is_some()))
    }

    fn whole(&self) -> Option<Value> {
        self.whole.map(|whole| whole())
    }

    fn missing(&self, context: &ToolContext) -> Option<String> {
        (self.missing)(context)
    }
}

/// The schema of the arguments among these parameters.
pub(crate) fn schema_of(parameters: &[&dyn Describe]) -> Value {
    parameters.iter().find_map(|parameter| parameter.whole()).unwrap_or_else(|| object_of(parameters))
}

/// Why a tool with these parameters is off.
pub(crate) fn missing(parameters: &[&dyn Describe], context: &ToolContext) -> Option<String> {
    parameters.iter().find_map(|parameter| parameter.missing(context))
}

/// Parameters that are taken together, as a chain of pairs that ends in `()`.
pub trait Take {
    /// Their values, as a chain of the same form.
    type Values;

    /// Their values for one call.
    ///
    /// # Errors
    /// As [`take`].
    fn take(&self, context: &ToolContext, given: &mut Map<String, Value>) -> Result<Self::Values, ToolError>;
}

impl Take for () {
    type Values = ();

    fn take(&self, _: &ToolContext, _: &mut Map<String, Value>) -> Result<(), ToolError> {
        Ok(())
    }
}

impl<T, Rest: Take> Take for (&Parameter<T>, Rest) {
    type Values = (T, Rest::Values);

    fn take(&self, context: &ToolContext, given: &mut Map<String, Value>) -> Result<Self::Values, ToolError> {
        Ok(((self.0.take)(self.0, context, given)?, self.1.take(context, given)?))
    }
}

/// The values of all parameters for one call.
///
/// # Errors
/// When an argument is not there and has to be, or does not fit its type, or when what the host provides is not there.
pub fn take<Chain: Take>(
    parameters: Chain,
    context: &ToolContext,
    mut given: Map<String, Value>,
) -> Result<Chain::Values, ToolError> {
    parameters.take(context, &mut given)
}
