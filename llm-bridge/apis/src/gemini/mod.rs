//! The Gemini API's `generateContent`: <https://ai.google.dev/api/generate-content>.
//!
//! Clients send their key as `x-goog-api-key`, as `authorization: Bearer …` or in the address as `key`. The model and the method
//! are in the address, such as `/v1beta/models/MODEL:streamGenerateContent?alt=sse`; every version is answered alike. Fields are
//! understood in camel case and in snake case, and errors name them in camel case. Canonical fields of a request are in
//! [`Request`](crate::Request); all others pass, `safetySettings` and the `thoughtSignature` of a call among them. Passing fields of
//! an answer are those of its candidate.

mod config;
mod encode;
mod front;
mod messages;
mod models;
mod schema;
mod shapes;
pub(crate) mod tools;

pub use front::GeminiFront;

use crate::{
    BadRequest, Provider,
    json::{Field, Object},
};

const API: Provider = Provider::Gemini;

/// An object whose fields are named in either case.
fn object(field: Field<'_>) -> Result<Object<'_>, BadRequest> {
    Ok(field.object()?.camel_case())
}

/// Takes a field that is an object.
fn take_object<'a>(from: &mut Object<'a>, name: &str) -> Result<Option<Object<'a>>, BadRequest> {
    from.take(name).map(object).transpose()
}

/// Takes a field that is an array. The API takes one object as an array of one, too.
fn take_items<'a>(from: &mut Object<'a>, name: &str) -> Result<Vec<Field<'a>>, BadRequest> {
    match from.take(name) {
        None => Ok(Vec::new()),
        Some(one) if one.is_object() => Ok(vec![one]),
        Some(list) => list.items(),
    }
}
