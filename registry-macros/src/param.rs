//! What stands in `#[arg(…)]`, and how an argument's type is held and passed on.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Attribute, Expr, ExprRange, GenericArgument, LitStr, PathArguments, RangeLimits, Type, TypePath,
    TypeReference, parse_quote, spanned::Spanned,
};

use crate::{
    attr::{self, Key, ends_in},
    errors::Errors,
    literal::{Literal, Value},
    names,
};

/// How a parameter's type is held for the length of the call, and passed on. Only what is borrowed is seen as it is written: a reference has to
/// be held in something. All else is asked of the type.
pub(crate) struct Shape {
    /// What is held.
    pub(crate) held: TokenStream,
    /// The core's constant that says how it is taken.
    pub(crate) taken: TokenStream,
    lent: Lent,
}

enum Lent {
    No,
    Whole,
    /// The `T` of an `Option<&T>`.
    Inside(Box<Type>),
}

impl Shape {
    pub(crate) fn of(ty: &Type) -> Self {
        let ty = peeled(ty);
        let of = |held: TokenStream, lent| Self {
            taken: quote!(<#held as __private::FromCall<_>>::PARAMETER),
            held,
            lent,
        };
        let held = |ty: &Type| quote_spanned!(ty.span()=> <#ty as __private::Lend>::Held);
        if let Type::Reference(TypeReference { elem, .. }) = ty {
            return of(held(peeled(elem)), Lent::Whole);
        }
        if let (Some(Type::Reference(TypeReference { elem, .. })), Type::Path(TypePath { path, .. })) =
            (inside(ty, "Option"), ty)
        {
            let (elem, mut path) = (peeled(elem), path.clone());
            let held = held(elem);
            if let Some(last) = path.segments.last_mut() {
                last.arguments = PathArguments::AngleBracketed(parse_quote!(<#held>));
            }
            return of(quote!(#path), Lent::Inside(Box::new(elem.clone())));
        }
        of(quote!(#ty), Lent::No)
    }

    /// The same for the `&self` of a method.
    pub(crate) fn of_receiver(owner: &Type) -> Self {
        let span = owner.span();
        let held = quote_spanned!(span=> __private::Resource<#owner>);
        Self {
            taken: quote_spanned!(span=> <#held as __private::FromCall<_>>::PARAMETER),
            held,
            lent: Lent::Whole,
        }
    }

    /// The same for a parameter that takes all arguments.
    pub(crate) fn of_whole(ty: &Type) -> Self {
        let (ty, lent) = match peeled(ty) {
            Type::Reference(reference) => (peeled(&reference.elem), Lent::Whole),
            ty => (ty, Lent::No),
        };
        Self { held: quote!(#ty), taken: quote!(<#ty as __private::Argument>::WHOLE), lent }
    }

    /// The expression that the function is called with.
    pub(crate) fn pass(&self, value: &TokenStream) -> TokenStream {
        match &self.lent {
            Lent::No => value.clone(),
            Lent::Whole => quote!(&#value),
            Lent::Inside(ty) => quote!(__private::lent::<#ty>(&#value)),
        }
    }
}

/// Whether it is `Vec<u8>` or the like.
pub(crate) fn is_bytes(ty: &Type) -> bool {
    let is_byte = |ty: &Type| matches!(peeled(ty), Type::Path(path) if path.path.is_ident("u8"));
    match peeled(ty) {
        Type::Array(array) => is_byte(&array.elem),
        Type::Slice(slice) => is_byte(&slice.elem),
        Type::Reference(reference) => is_bytes(&reference.elem),
        ty => inside(ty, "Vec").is_some_and(is_byte) || inside(ty, "Option").is_some_and(is_bytes),
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
    /// As it is written.
    written: String,
    min: Option<Expr>,
    max: Option<Expr>,
    exclusive: bool,
}

const KEYS: [&str; 7] = ["default", "range", "length", "pattern", "rename", "example", "secret"];

impl Options {
    pub(crate) fn of(attrs: &[Attribute], errors: &mut Errors) -> Self {
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
        if tokens.is_empty() {
            return options;
        }
        for key in attr::keys(tokens, errors) {
            options.set(key, errors);
        }
        options.check_own(errors);
        options
    }

    fn set(&mut self, key: Key, errors: &mut Errors) {
        let span = key.name.span();
        let name = key.name.to_string();
        if !KEYS.contains(&name.as_str()) {
            let help = match name.as_str() {
                "regex" => "write `pattern = \"…\"`".to_owned(),
                "min" | "max" | "minimum" | "maximum" => {
                    "write `range = 1..=14`, `1..` or `..=14`".to_owned()
                }
                "description" | "doc" => "say it in `/// …` above the argument".to_owned(),
                _ => attr::meant(&name, KEYS.into_iter()),
            };
            errors.push(&key.name, format!("`#[arg]` has no key `{name}`"), help);
            return;
        }
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
            "default" => self.default = Some((span, value)),
            _ if key.call.is_some() => errors.push(
                &key.name,
                "an argument is no call",
                "write `#[arg(example = …)]` with a value, or put the example into `#[tool(…)]`",
            ),
            "example" => self.example = Some((span, value)),
            "range" => self.range = Interval::of(span, &value, errors),
            "length" => self.length = Interval::of_length(span, &value, errors),
            "pattern" => self.pattern = Some((span, value)),
            // `rename`
            _ => match key.text() {
                Some(text) => {
                    names::check_argument_name(&text.value(), text, errors);
                    self.rename = Some(text.clone());
                }
                None => errors.push(&value, "the name has to be written out", "write `rename = \"…\"`"),
            },
        }
    }

    /// Reports a literal that is known to be outside of the bounds. `role` says what it is.
    pub(crate) fn check(&self, literal: &Literal, role: &str, errors: &mut Errors) {
        let (key, interval, size) = match &literal.value {
            #[expect(clippy::cast_precision_loss, reason = "the ends are compared as `f64` too")]
            Value::Integer(number) => ("range", &self.range, *number as f64),
            Value::Number(number) => ("range", &self.range, *number),
            Value::Text(text) => ("length", &self.length, text.value().chars().count() as f64),
            Value::List(items) => ("length", &self.length, items.len() as f64),
            Value::Object(fields) => ("length", &self.length, fields.len() as f64),
            Value::Null | Value::Bool(_) => return,
        };
        let Some(interval) = interval.as_ref().filter(|interval| interval.excludes(size)) else { return };
        errors.push(
            &literal.tokens,
            format!("the {role} is outside of `{key} = {}`", interval.written),
            format!("change the {role} or the {key}"),
        );
    }

    /// Reports a default and an example that are known to be outside of the bounds.
    fn check_own(&self, errors: &mut Errors) {
        for (role, value) in [("default", &self.default), ("example", &self.example)] {
            let literal = value.as_ref().map(|(_, value)| syn::parse2::<Literal>(value.to_token_stream()));
            if let Some(Ok(literal)) = literal {
                self.check(&literal, role, errors);
            }
        }
    }

    /// The bounds, as expressions of the core's type for them.
    pub(crate) fn bounds(&self, private: &TokenStream, ty: &TokenStream) -> Vec<TokenStream> {
        let mut bounds = Vec::new();
        // All but what the developer wrote stands at the key, so that rustc reports a wrong type there, and once.
        for (name, of, interval) in [("range", "Number", &self.range), ("length", "Counted", &self.length)] {
            let Some(Interval { key, min, max, exclusive, .. }) = interval else { continue };
            let (private, ty) = (at(*key, private), at(*key, ty));
            let (of, bound) = (Ident::new(of, *key), Ident::new(name, *key));
            let (min, max) = (some(*key, min.as_ref()), some(*key, max.as_ref()));
            bounds.push(quote_spanned!(*key=> <#ty as #private::#of>::#bound(#min, #max, #exclusive)));
        }
        if let Some((key, pattern)) = &self.pattern {
            let (private, ty) = (at(*key, private), at(*key, ty));
            bounds.push(quote_spanned!(*key=> <#ty as #private::Text>::pattern(#pattern)));
        }
        if let Some(key) = self.secret {
            bounds.push(quote_spanned!(key=> #private::Bound::Secret));
        }
        bounds
    }
}

/// The tokens, as if they had been written there: rustc does not speak of the macro then.
pub(crate) fn written_at(span: Span, tokens: impl ToTokens) -> TokenStream {
    placed(tokens, &|_| span)
}

/// The tokens, placed where an error about them is to be shown.
pub(crate) fn at(span: Span, tokens: impl ToTokens) -> TokenStream {
    placed(tokens, &|token| token.located_at(span))
}

fn placed(tokens: impl ToTokens, place: &dyn Fn(Span) -> Span) -> TokenStream {
    tokens
        .into_token_stream()
        .into_iter()
        .map(|mut token| {
            if let TokenTree::Group(group) = &token {
                let inner = placed(group.stream(), place);
                token = proc_macro2::Group::new(group.delimiter(), inner).into();
            }
            token.set_span(place(token.span()));
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
        Some(Self { key, written: written(value), min, max, exclusive })
    }

    fn of_length(key: Span, value: &Expr, errors: &mut Errors) -> Option<Self> {
        match value {
            Expr::Range(_) => Self::of(key, value, errors),
            exact => Some(Self {
                key,
                written: written(value),
                min: Some(exact.clone()),
                max: Some(exact.clone()),
                exclusive: false,
            }),
        }
    }

    /// Whether a number is known to be outside.
    fn excludes(&self, value: f64) -> bool {
        let is_over = |max| value > max || (self.exclusive && value >= max);
        self.min.as_ref().and_then(number).is_some_and(|min| value < min)
            || self.max.as_ref().and_then(number).is_some_and(is_over)
    }
}

fn number(value: &Expr) -> Option<f64> {
    written(value).replace('_', "").parse().ok()
}

fn written(value: &Expr) -> String {
    value.to_token_stream().to_string().replace(' ', "")
}

/// A default or example as it is meant: `"text"` for a `String`, `["a", "b"]` for a `Vec<String>`, `3` for an `Option<u8>`.
pub(crate) fn meant(value: &Expr, private: &TokenStream, ty: &TokenStream) -> TokenStream {
    let key = value.span();
    let (path, ty, value) = (written_at(key, private), written_at(key, ty), literal(value, private));
    quote_spanned!(key=> #path::Type::<#ty>::of(#value))
}

fn literal(value: &Expr, private: &TokenStream) -> TokenStream {
    let key = value.span();
    let private = written_at(key, private);
    match value {
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
            quote_spanned!(key=> #private::FromText::from_text(#text))
        }
        Expr::Array(array) => {
            let items = array.elems.iter().map(|value| literal(value, &private));
            quote_spanned!(key=> #private::FromList::from_list([#(#items),*]))
        }
        _ => quote!(#value),
    }
}
