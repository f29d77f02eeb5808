//! Asks what is known of a type, where nothing has to be.
//!
//! Not public API: the code that `#[tool]` writes names [`Type`] with a type of the user's. What is there for some types only is found before
//! what [`Otherwise`] has for all, because rustc prefers what is inherent.

use std::marker::PhantomData;

use super::literal::{Kind, Known};

/// A type, to be asked about.
#[derive(Debug)]
pub struct Type<T>(PhantomData<T>);

impl<T: Known> Type<T> {
    /// What the type is read from.
    pub const KIND: Kind = T::KIND;
}

impl<T> Type<Option<T>> {
    /// What an argument of the type is where it is left out.
    pub const ABSENT: Option<fn() -> Option<T>> = Some(|| None);

    /// The value of a default or an example of the type.
    pub fn of(value: T) -> Option<T> {
        Some(value)
    }
}

/// What holds of a type of which nothing else is known.
pub trait Otherwise<T> {
    /// Nothing is known.
    const KIND: Kind = Kind::Unknown;

    /// It may not be left out.
    const ABSENT: Option<fn() -> T> = None;

    /// The value is of the type already.
    fn of(value: T) -> T {
        value
    }
}

impl<T> Otherwise<T> for Type<T> {}
