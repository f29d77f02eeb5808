//! JSON as it is written in an attribute, and which of it a type is known to take.
//!
//! Not public API: the code that `#[tool]` writes refers to it.

use serde_json::{Map, Value};

/// A JSON value in a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without a fraction.
    Integer(i128),
    /// Another number.
    Number(f64),
    /// A text.
    Text(&'static str),
    /// A list.
    List(&'static [Self]),
    /// An object.
    Object(&'static [(&'static str, Self)]),
}

impl From<Literal> for Value {
    fn from(literal: Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(value) => value.into(),
            Literal::Integer(number) => {
                serde_json::Number::from_i128(number).map_or(Self::Null, Self::Number)
            }
            Literal::Number(number) => number.into(),
            Literal::Text(text) => text.into(),
            Literal::List(items) => items.iter().map(|item| Self::from(*item)).collect(),
            Literal::Object(fields) => Self::Object(object(fields)),
        }
    }
}

/// The object with these fields.
pub(crate) fn object(fields: &[(&'static str, Literal)]) -> Map<String, Value> {
    fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect()
}

/// An example of a tool, in a constant.
#[derive(Debug, Clone, Copy)]
pub struct PluginExample {
    /// What a person asks.
    pub question: &'static str,
    /// What the model should give the tool then.
    pub arguments: &'static [(&'static str, Literal)],
}

/// What is known of the JSON that a type is read from.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Nothing.
    Unknown,
    /// `true` or `false`.
    Bool,
    /// A number without a fraction, within these ends.
    Integer(i128, i128),
    /// A number.
    Number,
    /// A text.
    Text,
    /// A list.
    List,
    /// An object.
    Object,
}

impl Kind {
    /// Checks a literal while it is compiled. What is wrong is said at the literal, to the developer.
    ///
    /// # Panics
    /// When it is known that the type does not take it.
    #[track_caller]
    #[expect(clippy::panic, reason = "this is how a constant reports an error")]
    pub const fn check(self, literal: &Literal) {
        match (self, literal) {
            (Self::Unknown, _)
            | (Self::Bool, Literal::Bool(_))
            | (Self::Number, Literal::Integer(_) | Literal::Number(_))
            | (Self::Text, Literal::Text(_))
            | (Self::List, Literal::List(_))
            | (Self::Object, Literal::Object(_)) => {}
            (Self::Integer(min, max), Literal::Integer(number)) => {
                assert!(
                    min <= *number && *number <= max,
                    "this number does not fit the type of the argument"
                );
            }
            (_, Literal::Null) => panic!("the argument cannot be `null`: leave it out of the example"),
            (Self::Bool, _) => panic!("the argument is a boolean: write `true` or `false`"),
            (Self::Integer(..), _) => panic!("the argument is an integer: write a number, as in 3"),
            (Self::Number, _) => panic!("the argument is a number: write one, as in 0.5"),
            (Self::Text, _) => panic!("the argument is a text: write it in quotes"),
            (Self::List, _) => panic!("the argument is a list: write `[…]`"),
            (Self::Object, _) => panic!("the argument is an object: write `{{\"name\": …}}`"),
        }
    }
}

/// A type of which it is known what it is read from.
pub trait Known {
    /// What it is read from.
    const KIND: Kind;
}

macro_rules! known {
    ($($kind:expr => $($ty:ty),+;)*) => {$($(
        impl Known for $ty {
            const KIND: Kind = $kind;
        }
    )+)*};
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Known for $integer {
            const KIND: Kind = Kind::Integer(<$integer>::MIN as i128, <$integer>::MAX as i128);
        }
    )*};
}

integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

known! {
    Kind::Bool => bool;
    Kind::Number => f32, f64;
    Kind::Text => char, String, Box<str>, std::sync::Arc<str>, std::path::PathBuf;
    Kind::Text => std::borrow::Cow<'_, str>;
    Kind::Object => Map<String, Value>;
}

impl<T> Known for Vec<T> {
    const KIND: Kind = Kind::List;
}

impl<T> Known for std::collections::BTreeSet<T> {
    const KIND: Kind = Kind::List;
}

impl<T, S> Known for std::collections::HashSet<T, S> {
    const KIND: Kind = Kind::List;
}

impl<K, V> Known for std::collections::BTreeMap<K, V> {
    const KIND: Kind = Kind::Object;
}

impl<K, V, S> Known for std::collections::HashMap<K, V, S> {
    const KIND: Kind = Kind::Object;
}

impl<T: Known> Known for Option<T> {
    const KIND: Kind = T::KIND;
}
