//! What the function under `#[tool]` gives.

use proc_macro2::Span;
use syn::{
    AngleBracketedGenericArguments, GenericArgument, PathArguments, ReturnType, Signature, Type,
    TypeImplTrait, TypeParamBound, TypePath, spanned::Spanned,
};

use crate::{
    attr::ends_in,
    errors::Errors,
    param::{is_bytes, mentions, peeled, types},
};

/// What the function returns.
pub(crate) struct Returns {
    /// The value, or the `T` of a `Result<T, E>`. Of a stream, what its items are.
    pub(crate) value: Type,
    /// Whether it is an `impl Stream<Item = …>`.
    pub(crate) is_stream: bool,
    pub(crate) failure: Failure,
}

/// How the function says that it failed.
pub(crate) enum Failure {
    Never,
    /// By a `Result` whose alias, which stands here, hides the error's type.
    Hidden(Span),
    Named(Box<Type>),
}

impl Returns {
    fn always(value: Type) -> Self {
        Self { value, is_stream: false, failure: Failure::Never }
    }

    /// What a value of that type is, or a stream.
    fn value(ty: &Type, failure: Failure, errors: &mut Errors) -> Option<Self> {
        if let Some(item) = item_of_stream(ty) {
            return Some(Self { value: item.clone(), is_stream: true, failure });
        }
        if mentions(ty, "impl") {
            let help = "name the type, or return `impl Stream<Item = …>` for a result that comes in parts";
            return errors.none(ty, "`impl Trait` has no schema", help);
        }
        if is_bytes(ty) {
            let help = "return a `File`, an `Image` or `Audio`, which carry bytes";
            return errors.none(ty, "a model would get bytes as a list of numbers", help);
        }
        Some(Self { value: ty.clone(), is_stream: false, failure })
    }

    /// Reads what the function returns.
    pub(crate) fn of(sig: &Signature, errors: &mut Errors) -> Option<Self> {
        let ty = match &sig.output {
            ReturnType::Default => return Some(Self::always(syn::parse_quote!(()))),
            ReturnType::Type(_, ty) => peeled(ty),
        };
        if let Type::Reference(reference) = ty
            && reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static")
        {
            return errors.none(
                ty,
                "a tool gives away what it returns",
                "return a value that owns what is in it",
            );
        }
        let result = match ty {
            Type::Path(TypePath { path, .. }) => ends_in(path, "Result"),
            _ => None,
        };
        let Some(result) = result else { return Self::value(ty, Failure::Never, errors) };
        let Some(value) = types(&result.arguments).next() else {
            return errors.none(ty, "the type of the value cannot be seen", "write `Result<T, E>`");
        };
        let failure = types(&result.arguments)
            .nth(1)
            .map_or(Failure::Hidden(ty.span()), |error| Failure::Named(Box::new(error.clone())));
        Self::value(peeled(value), failure, errors)
    }
}

/// The `T` of an `impl Stream<Item = T>`.
fn item_of_stream(ty: &Type) -> Option<&Type> {
    let Type::ImplTrait(TypeImplTrait { bounds, .. }) = ty else { return None };
    let stream = bounds.iter().find_map(|bound| match bound {
        TypeParamBound::Trait(bound) => ends_in(&bound.path, "Stream"),
        _ => None,
    })?;
    let PathArguments::AngleBracketed(AngleBracketedGenericArguments { args, .. }) = &stream.arguments else {
        return None;
    };
    args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(item) if item.ident == "Item" => Some(&item.ty),
        _ => None,
    })
}
