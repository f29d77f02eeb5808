//! What the function under `#[tool]` gives.

use syn::{ReturnType, Signature, Type, TypePath};

use crate::{
    attr::ends_in,
    errors::Errors,
    param::{mentions, peeled, types},
};

/// What the function returns.
pub(crate) struct Returns {
    /// The value, or the `T` of a `Result<T, E>`.
    pub(crate) value: Type,
    pub(crate) failure: Failure,
}

/// How the function says that it failed.
pub(crate) enum Failure {
    Never,
    /// By a `Result` whose alias hides the error's type.
    Hidden,
    Named(Box<Type>),
}

impl Returns {
    fn always(value: Type) -> Self {
        Self { value, failure: Failure::Never }
    }

    /// Reads what the function returns.
    pub(crate) fn of(sig: &Signature, errors: &mut Errors) -> Option<Self> {
        let ty = match &sig.output {
            ReturnType::Default => return Some(Self::always(syn::parse_quote!(()))),
            ReturnType::Type(_, ty) => peeled(ty),
        };
        if mentions(ty, "impl") {
            return errors.none(ty, "`impl Trait` has no schema", "name the type");
        }
        if let Type::Reference(reference) = ty
            && reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static")
        {
            return errors.none(
                ty,
                "a tool gives away what it returns",
                "return a value that owns what is in it",
            );
        }
        let Type::Path(TypePath { path, .. }) = ty else { return Some(Self::always(ty.clone())) };
        let Some(result) = ends_in(path, "Result") else { return Some(Self::always(ty.clone())) };
        let Some(value) = types(&result.arguments).next() else {
            return errors.none(ty, "the type of the value cannot be seen", "write `Result<T, E>`");
        };
        let failure = types(&result.arguments)
            .nth(1)
            .map_or(Failure::Hidden, |error| Failure::Named(Box::new(error.clone())));
        Some(Self { value: value.clone(), failure })
    }
}
