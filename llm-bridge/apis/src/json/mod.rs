//! JSON of clients and model servers: objects whose fields are read one by one and whose other fields are kept.
//!
//! A client's request is read with `Object`: strictly, with the path of the field in each error. A model server's answer is read
//! with `Open`: in one pass, and a field of an unexpected type is taken as missing.

mod answer;
mod fields;
mod object;
mod values;

pub use answer::read_lenient;
pub(crate) use answer::{ArgumentsText, Count, Known, Open, Text, each, text_of};
pub(crate) use fields::{Entries, Leftover};
pub(crate) use object::camel_case;
pub use object::{Field, Object};
pub use values::values_in;
