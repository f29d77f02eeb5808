//! What stands in `#[arg(…)]`, and how an argument's type is held and passed on.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Attribute, Expr, ExprRange, GenericArgument, LitStr, Path, PathArguments, RangeLimits, Type, TypePath,
    TypeReference, parse_quote, spanned::Spanned,
};

use crate::{
    attr::{self, Key, ends_in},
    errors::Errors,
};

/// The type of an argument.
pub(crate) struct Shape {
    /// What is read from JSON, without the `Option`.
    pub(crate) owned: Type,
    /// Whether it may be left out.
    pub(crate) optional: bool,
    borrow: Borrow,
}

#[derive(Clone, Copy)]
enum Borrow {
    No,
    Whole,
    Inside(&'static str),
}

impl Shape {
    /// How a type is held, for `&str`, `&[T]`, `&T`, `Option<&str>` and what is owned already.
    pub(crate) fn of(ty: &Type) -> Self {
        let ty = peeled(ty);
        if let Type::Reference(reference) = ty {
            return Self { owned: owned(peeled(&reference.elem)), optional: false, borrow: Borrow::Whole };
        }
        match inside(ty, "Option") {
            Some(Type::Reference(TypeReference { elem, .. })) => {
                let elem = peeled(elem);
                let owned = owned(elem);
                let is_same = owned == *elem;
                let borrow = Borrow::Inside(if is_same { "as_ref" } else { "as_deref" });
                Self { owned, optional: true, borrow }
            }
            Some(inner) => Self { owned: inner.clone(), optional: true, borrow: Borrow::No },
            None => Self { owned: ty.clone(), optional: false, borrow: Borrow::No },
        }
    }

    /// The expression that the function is called with.
    pub(crate) fn pass(&self, value: &TokenStream) -> TokenStream {
        match self.borrow {
            Borrow::No => value.clone(),
            Borrow::Whole => quote!(&#value),
            Borrow::Inside(method) => {
                let method = Ident::new(method, Span::call_site());
                quote!(#value.#method())
            }
        }
    }
}

fn owned(borrowed: &Type) -> Type {
    match borrowed {
        Type::Slice(slice) => {
            let item = &slice.elem;
            parse_quote!(::std::vec::Vec<#item>)
        }
        Type::Path(TypePath { path, .. }) if path.is_ident("str") => {
            let span = borrowed.span();
            syn::parse2(quote_spanned!(span=> ::std::string::String)).unwrap_or_else(|_| borrowed.clone())
        }
        Type::Path(TypePath { path, .. }) if ends_in(path, "Path").is_some() => {
            parse_quote!(::std::path::PathBuf)
        }
        other => other.clone(),
    }
}

/// A type without what `macro_rules!` puts around it.
pub(crate) fn peeled(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => peeled(&group.elem),
        Type::Paren(paren) => peeled(&paren.elem),
        _ => ty,
    }
}

/// The `T` of a `NAME<T>`.
pub(crate) fn inside<'t>(ty: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(TypePath { qself: None, path }) = peeled(ty) else { return None };
    types(&ends_in(path, name)?.arguments).next().map(peeled)
}

/// The types between `<` and `>`.
pub(crate) fn types(arguments: &PathArguments) -> impl Iterator<Item = &Type> {
    let arguments = match arguments {
        PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        _ => None,
    };
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Whether a token occurs in a type, at whatever depth.
pub(crate) fn mentions(tokens: impl ToTokens, wanted: &str) -> bool {
    tokens.into_token_stream().into_iter().any(|token| match token {
        TokenTree::Group(group) => mentions(group.stream(), wanted),
        TokenTree::Literal(_) => false,
        other => other.to_string() == wanted,
    })
}

/// What `#[arg(…)]` says.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) default: Option<(Span, Expr)>,
    pub(crate) example: Option<(Span, Expr)>,
    pub(crate) rename: Option<LitStr>,
    range: Option<Interval>,
    length: Option<Interval>,
    pattern: Option<(Span, Expr)>,
    secret: Option<Span>,
}

struct Interval {
    key: Span,
    min: Option<Expr>,
    max: Option<Expr>,
    exclusive: bool,
}

impl Options {
    pub(crate) fn of(attrs: &[Attribute], shape: &Shape, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        let mut tokens = TokenStream::new();
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("arg")) {
            match attr.meta.require_list() {
                Ok(list) => {
                    let list = &list.tokens;
                    tokens.extend(quote!(#list,));
                }
                Err(error) => errors.absorb(&error, "write `#[arg(default = …)]`"),
            }
        }
        for key in attr::keys(tokens, errors) {
            options.set(key, shape, errors);
        }
        options
    }

    fn set(&mut self, key: Key, shape: &Shape, errors: &mut Errors) {
        let span = key.name.span();
        let name = key.name.to_string();
        if name == "secret" {
            match key.value {
                None => self.secret = Some(span),
                Some(value) => errors.push(value, "`secret` takes no value", "write `secret` alone"),
            }
            return;
        }
        let Some(value) = key.value.clone() else {
            errors.push(&key.name, format!("`{name}` needs a value"), format!("write `{name} = …`"));
            return;
        };
        match name.as_str() {
            "default" if shape.optional => errors.push(
                &key.name,
                "an `Option` that has a default is never `None`",
                "remove the default, or the `Option`",
            ),
            "default" => self.default = Some((span, value)),
            "example" => self.example = Some((span, value)),
            "range" => self.range = Interval::of(span, &value, errors),
            "length" => self.length = Interval::of_length(span, &value, errors),
            "pattern" => self.pattern = Some((span, value)),
            "rename" => match key.text().filter(|text| !text.value().trim().is_empty()) {
                Some(text) => self.rename = Some(text.clone()),
                None => errors.push(&value, "the name has to be written out", "write `rename = \"…\"`"),
            },
            _ => errors.push(
                &key.name,
                format!("`#[arg]` has no key `{name}`"),
                "the keys are: default, range, length, pattern, rename, example, secret",
            ),
        }
    }

    /// The bounds, as expressions of the core's type for them.
    pub(crate) fn bounds(&self, private: &TokenStream, ty: &Type) -> Vec<TokenStream> {
        let mut bounds = Vec::new();
        // All but what the developer wrote stands at the key, so that rustc reports a wrong type there, and once.
        for (name, interval) in [("range", &self.range), ("length", &self.length)] {
            let Some(Interval { key, min, max, exclusive }) = interval else { continue };
            let (private, ty, bound) = (at(*key, private), at(*key, ty), Ident::new(name, *key));
            let (min, max) = (some(*key, min.as_ref()), some(*key, max.as_ref()));
            bounds.push(quote_spanned!(*key=> #private::#bound::<#ty>(#min, #max, #exclusive)));
        }
        if let Some((key, pattern)) = &self.pattern {
            let (private, ty) = (at(*key, private), at(*key, ty));
            bounds.push(quote_spanned!(*key=> #private::pattern::<#ty>(#pattern)));
        }
        if let Some(key) = self.secret {
            bounds.push(quote_spanned!(key=> #private::Bound::Secret));
        }
        bounds
    }
}

/// The tokens, placed where an error about them is to be shown.
fn at(span: Span, tokens: impl ToTokens) -> TokenStream {
    tokens
        .into_token_stream()
        .into_iter()
        .map(|mut token| {
            if let TokenTree::Group(group) = &token {
                let inner = at(span, group.stream());
                token = proc_macro2::Group::new(group.delimiter(), inner).into();
            }
            token.set_span(token.span().located_at(span));
            token
        })
        .collect()
}

fn some(key: Span, value: Option<&Expr>) -> TokenStream {
    match value {
        Some(value) => quote_spanned!(key=> ::core::option::Option::Some(#value)),
        None => quote_spanned!(key=> ::core::option::Option::None),
    }
}

impl Interval {
    fn of(key: Span, value: &Expr, errors: &mut Errors) -> Option<Self> {
        let help = "write `1..=14`, `1..14`, `1..` or `..=14`";
        let Expr::Range(ExprRange { start, end, limits, .. }) = value else {
            return errors.none(value, "this is not a range", help);
        };
        if start.is_none() && end.is_none() {
            return errors.none(value, "a range without ends bounds nothing", help);
        }
        let (min, max) = (start.as_deref().cloned(), end.as_deref().cloned());
        let exclusive = matches!(limits, RangeLimits::HalfOpen(_)) && max.is_some();
        if let (Some(min), Some(max)) = (min.as_ref().and_then(number), max.as_ref().and_then(number))
            && (min > max || (exclusive && min >= max))
        {
            errors.push(value, "there is nothing in this range", "put the lesser end first");
        }
        Some(Self { key, min, max, exclusive })
    }

    fn of_length(key: Span, value: &Expr, errors: &mut Errors) -> Option<Self> {
        match value {
            Expr::Range(_) => Self::of(key, value, errors),
            exact => Some(Self { key, min: Some(exact.clone()), max: Some(exact.clone()), exclusive: false }),
        }
    }
}

fn number(value: &Expr) -> Option<f64> {
    let text = value.to_token_stream().to_string().replace([' ', '_'], "");
    text.parse().ok()
}

/// A default or example as it is meant: `"text"` for a `String`, `["a", "b"]` for a `Vec<String>`.
pub(crate) fn meant(value: &Expr, ty: &Type) -> TokenStream {
    let Type::Path(TypePath { path, .. }) = peeled(ty) else { return quote!(#value) };
    match value {
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) if is_text(path) => {
            quote!(<#ty as ::core::convert::From<&str>>::from(#text))
        }
        Expr::Array(array) => match inside(ty, "Vec") {
            Some(item) => {
                let items = array.elems.iter().map(|value| meant(value, item));
                quote!(::std::vec::Vec::from([#(#items),*]))
            }
            None => quote!(#value),
        },
        _ => quote!(#value),
    }
}

fn is_text(path: &Path) -> bool {
    ends_in(path, "String").is_some() || ends_in(path, "PathBuf").is_some()
}
