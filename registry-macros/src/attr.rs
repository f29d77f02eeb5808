//! `key = value, key`: what stands in `#[tool(…)]`, `#[arg(…)]` and `#[args(…)]`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{
    Expr, ExprLit, ExprPath, Lit, LitStr, Path, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use crate::{errors::Errors, literal::Literal, nearest::nearest};

/// One `key = value`, or a `key` alone.
pub(crate) struct Key {
    pub(crate) name: Ident,
    pub(crate) value: Option<Expr>,
    /// What stands behind a `=>`: the call that an example shows.
    pub(crate) call: Option<Literal>,
}

/// How keys are written.
const FORM: &str = "write `key = value`, with commas between";
/// How the call of an example is.
const FORM_OF_CALL: &str = "write it as in `{\"city\": \"Oslo\", \"days\": 3}`";

impl Key {
    /// Reads a key; a fault comes with what to write.
    fn parse(input: ParseStream<'_>) -> Result<Self, (syn::Error, &'static str)> {
        let (name, value) = Self::assigned(input).map_err(|error| (error, FORM))?;
        let call = Self::call(input).map_err(|error| (error, FORM_OF_CALL))?;
        Ok(Self { name, value, call })
    }

    fn assigned(input: ParseStream<'_>) -> syn::Result<(Ident, Option<Expr>)> {
        let name = Ident::parse_any(input)?;
        if input.peek(syn::token::Paren) {
            return Err(input.error(format!("`{name}` takes its value after `=`")));
        }
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok((name, value))
    }

    fn call(input: ParseStream<'_>) -> syn::Result<Option<Literal>> {
        if input.parse::<Option<Token![=>]>>()?.is_none() {
            return Ok(None);
        }
        // By itself, so that what is left of it after a fault is none of its own.
        syn::parse2(input.parse::<proc_macro2::TokenTree>()?.into()).map(Some)
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// Whether another key says the same. A tool has any number of examples.
    fn repeats(&self, other: &Self) -> bool {
        self.name == other.name && self.call.is_none() && other.call.is_none()
    }

    /// The text, where the value is one that is written out.
    pub(crate) fn text(&self) -> Option<&LitStr> {
        match &self.value {
            Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => Some(text),
            _ => None,
        }
    }
}

/// The keys that could be read; a fault in one does not hide those in the next. Of two of one name the first stays.
pub(crate) fn keys(tokens: TokenStream, errors: &mut Errors) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    let read = |input: ParseStream<'_>| {
        while !input.is_empty() {
            match Key::parse(input) {
                Ok(key) if keys.iter().any(|known| known.repeats(&key)) => {
                    errors.push(&key.name, format!("`{}` is given twice", key.name), "leave one of them");
                }
                Ok(key) => keys.push(key),
                Err((error, help)) => {
                    errors.absorb(&error, help);
                    skip_to_comma(input)?;
                }
            }
            if !input.is_empty()
                && let Err(error) = input.parse::<Token![,]>()
            {
                errors.absorb(&error, FORM);
                skip_to_comma(input)?;
                input.parse::<Option<Token![,]>>()?;
            }
        }
        Ok(())
    };
    if let Err(error) = read.parse2(tokens) {
        errors.absorb(&error, FORM);
    }
    keys
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

/// Takes `crate = path` out of the keys: what the generated code calls the core.
pub(crate) fn core_path(keys: &mut Vec<Key>, errors: &mut Errors) -> TokenStream {
    let named = keys.iter().position(|key| key.is("crate")).map(|at| keys.remove(at));
    match named {
        None => quote!(::registry_core),
        Some(Key { value: Some(Expr::Path(ExprPath { qself: None, path, .. })), .. }) => quote!(#path),
        Some(key) => {
            errors.push(&key.name, "`crate` takes a path", "write `crate = my_name_for_registry_core`");
            quote!(::registry_core)
        }
    }
}

/// What the core is called, where `crate = path` is the only key there is.
pub(crate) fn only_core_path(attribute: TokenStream, errors: &mut Errors) -> TokenStream {
    let mut keys = keys(attribute, errors);
    let core = core_path(&mut keys, errors);
    for key in keys {
        errors.push(&key.name, format!("there is no key `{}`", key.name), "the only one is `crate = path`");
    }
    core
}

/// What a key sets, and what it takes.
pub(crate) type Known<T> = (&'static str, Field, T);

/// A field of the core's `Plugin` or `ResourcePlugin`, or one of the policy in it.
#[derive(Clone, Copy)]
pub(crate) enum Field {
    Always(&'static str),
    /// One that is `None` where the key is not given.
    Optional(&'static str),
}

impl Field {
    /// The field has the place of the key, for what rustc says of a value of another type.
    pub(crate) fn assignment(self, of: &TokenStream, key: &Key, value: &TokenStream) -> TokenStream {
        let (Self::Always(path) | Self::Optional(path)) = self;
        let path = path.split('.').map(|name| Ident::new(name, key.name.span()));
        let value = match self {
            Self::Always(_) => value.clone(),
            Self::Optional(_) => quote!(::core::option::Option::Some(#value)),
        };
        quote!(#of #(.#path)* = #value;)
    }
}

/// Reports a key that there is not.
pub(crate) fn known<T: Copy>(key: &Key, keys: &[Known<T>], errors: &mut Errors) -> Option<(Field, T)> {
    let name = key.name.to_string();
    if let Some((_, field, takes)) = keys.iter().find(|(known, ..)| *known == name) {
        return Some((*field, *takes));
    }
    let help = meant(&name, keys.iter().map(|(known, ..)| *known));
    errors.none(&key.name, format!("there is no key `{name}`"), help)
}

/// What to write in place of a key that there is not.
pub(crate) fn meant(name: &str, keys: impl Iterator<Item = &'static str> + Clone) -> String {
    match nearest(name, keys.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the keys are: {}", keys.collect::<Vec<_>>().join(", ")),
    }
}

/// Whether a path is one name, the last of which is `name`: `Resource`, `registry_core::Resource`.
pub(crate) fn ends_in<'p>(path: &'p Path, name: &str) -> Option<&'p syn::PathSegment> {
    path.segments.last().filter(|last| last.ident == name)
}
