//! Calls as they go to clients and to model servers.

use serde::Serialize;

use super::API;
use crate::{CallInput, Passing, json::Leftover, passing::Fields};

/// A call, or the next piece of its arguments.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CallJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function: Option<FunctionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom: Option<CustomJson<'a>>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct FunctionJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

#[derive(Clone, Copy, Serialize)]
struct CustomJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    input: &'a str,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

impl<'a> CallJson<'a> {
    pub(super) fn new(
        id: &'a str,
        name: &'a str,
        arguments: &'a str,
        input: CallInput,
        passing: &'a Passing,
    ) -> Self {
        Self {
            id: Some(id),
            kind: Some(if input == CallInput::Json { "function" } else { "custom" }),
            passing: Fields { fields: passing.to(API), but: &["function", "custom", "index"] },
            ..Self::of(Some(name), arguments, input, Some(passing))
        }
    }

    /// The call at an index of a stream.
    pub(super) fn at(self, index: usize) -> Self {
        Self { index: Some(index), ..self }
    }

    /// The next piece of the arguments of the call at an index.
    pub(super) fn delta(index: usize, arguments: &'a str, input: CallInput) -> Self {
        Self { index: Some(index), ..Self::of(None, arguments, input, None) }
    }

    fn of(name: Option<&'a str>, arguments: &'a str, input: CallInput, passing: Option<&'a Passing>) -> Self {
        let leftover = |name| Leftover(passing.and_then(|passing| passing.get(API, name)));
        let function = FunctionJson { name, arguments, passing: leftover("function") };
        let custom = CustomJson { name, input: arguments, passing: leftover("custom") };
        let is_json = input == CallInput::Json;
        Self {
            index: None,
            id: None,
            kind: None,
            function: is_json.then_some(function),
            custom: (!is_json).then_some(custom),
            passing: Fields { fields: &[], but: &[] },
        }
    }
}
