//! What a tool's function may give.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::of_output;
use crate::{
    content::{Content, Part},
    json,
    result::{IntoToolError, ToolError, ToolResult},
};

/// What a tool's function may return: any value that can be written as JSON and described by a schema; a [`Part`] such as
/// a picture, a `Vec` of one kind of parts, a tuple of two or three with at least one part in it; or a
/// [`ToolResult`].
///
/// `Kind` says which of these it is, and is always inferred: a type is only one of them.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not something that can be given to a model",
    note = "return a `String`, a `serde_json::Value`, an `Image`, `Audio`, `File`, `Table` or `Markdown`, a `ToolResult`, or a type with `#[output]` (or `derive(Serialize, JsonSchema)`), alone or in a `Vec`, an `Option` or a map"
)]
pub trait Output<Kind> {
    /// The JSON Schema of the value, where one is known.
    fn schema() -> Option<Value>;

    /// The value as a result.
    ///
    /// # Errors
    /// When the value cannot be written as JSON, such as a map whose keys are not strings.
    fn into_result(self) -> Result<ToolResult, ToolError>;
}

/// A [`ToolResult`].
#[derive(Debug)]
pub struct Whole;
/// A value that is written as JSON.
#[derive(Debug)]
pub struct Json;
/// A [`Part`].
#[derive(Debug)]
pub struct OnePart;
/// A list of parts.
#[derive(Debug)]
pub struct Parts;
/// A tuple with a part at this place, counted from the end; what is before it may be of any kind.
#[derive(Debug)]
pub struct Tuple<const PLACE: usize, Kinds>(std::marker::PhantomData<Kinds>);

/// A value of this kind in a `Result` that goes by another name.
#[derive(Debug)]
pub struct Fallible<Kind>(std::marker::PhantomData<Kind>);

#[diagnostic::do_not_recommend]
impl<T: Output<Kind>, E: IntoToolError, Kind> Output<Fallible<Kind>> for Result<T, E> {
    fn schema() -> Option<Value> {
        T::schema()
    }

    fn into_result(self) -> Result<ToolResult, ToolError> {
        self.map_err(E::into_tool_error)?.into_result()
    }
}

impl Output<Whole> for ToolResult {
    fn schema() -> Option<Value> {
        None
    }

    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> Output<Json> for T {
    fn schema() -> Option<Value> {
        Some(of_output::<T>())
    }

    fn into_result(self) -> Result<ToolResult, ToolError> {
        json::to_value(&self)
            .map(ToolResult::new)
            .map_err(|error| ToolError::failed(format!("the result is not JSON: {error}")))
    }
}

#[diagnostic::do_not_recommend]
impl<P: Part> Output<OnePart> for P {
    fn schema() -> Option<Value> {
        P::value_schema()
    }

    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::parts([self]))
    }
}

#[diagnostic::do_not_recommend]
impl<P: Part> Output<Parts> for Vec<P> {
    fn schema() -> Option<Value> {
        None
    }

    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::parts(self))
    }
}

/// A tuple is a value unless it has a part in it, so the impls differ in where the last part is.
macro_rules! tuple {
    ($place:literal [$($item:ident $at:tt),*] [$($kind:ident),*] where $($bounds:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($item,)* $($kind),*> Output<Tuple<$place, ($($kind,)*)>> for ($($item,)*)
        where
            $($bounds)*
        {
            fn schema() -> Option<Value> {
                None
            }

            fn into_result(self) -> Result<ToolResult, ToolError> {
                joined([$(self.$at.into_result()),*])
            }
        }
    };
}

tuple! { 0 [A 0, P 1] [K] where A: Output<K>, P: Part }
tuple! { 1 [P 0, A 1] [] where P: Part, A: Serialize + JsonSchema }
tuple! { 0 [A 0, B 1, P 2] [K, L] where A: Output<K>, B: Output<L>, P: Part }
tuple! { 1 [A 0, P 1, B 2] [K] where A: Output<K>, P: Part, B: Serialize + JsonSchema }
tuple! { 2 [P 0, A 1, B 2] [] where P: Part, A: Serialize + JsonSchema, B: Serialize + JsonSchema }

/// One result of several: the first value is the value, and all else are parts, in their order.
fn joined<const N: usize>(results: [Result<ToolResult, ToolError>; N]) -> Result<ToolResult, ToolError> {
    let mut all = ToolResult::new(Value::Null);
    for result in results {
        let ToolResult { success, value, content, ends_turn, message, side_effects, audit } = result?;
        match value {
            Value::Null => {}
            value if all.value.is_null() && all.content.is_empty() => all.value = value,
            Value::String(text) => all.content.push(Content::text(text)),
            other => all.content.push(Content::text(other.to_string())),
        }
        all.success &= success;
        all.ends_turn |= ends_turn;
        all.content.extend(content);
        all.message = match (all.message, message) {
            (Some(one), Some(other)) => Some(format!("{one}\n\n{other}")),
            (one, other) => one.or(other),
        };
        all.side_effects.extend(side_effects);
        all.audit.extend(audit);
    }
    Ok(all)
}
