//! `key = value, key`: what stands in `#[tool(…)]`, `#[arg(…)]` and `#[args(…)]`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{
    BinOp, Expr, ExprBinary, ExprLit, ExprPath, Lit, LitStr, Path, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
    spanned::Spanned,
};

use crate::{errors::Errors, literal::Literal, nearest::nearest};

/// One `key = value`, or a `key` alone.
pub(crate) struct Key {
    pub(crate) name: Ident,
    pub(crate) value: Option<Expr>,
    /// What stands behind a `=>`: the call that an example shows.
    pub(crate) call: Option<Literal>,
}

impl Key {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = Ident::parse_any(input)?;
        if input.peek(syn::token::Paren) {
            return Err(input.error(format!("`{name}` takes its value after `=`")));
        }
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        let call = match input.parse::<Option<Token![=>]>>()? {
            // By itself, so that what is left of it after a fault is none of its own.
            Some(_) => Some(syn::parse2(input.parse::<proc_macro2::TokenTree>()?.into())?),
            None => None,
        };
        Ok(Self { name, value, call })
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
    let help = "write `key = value`, with commas between";
    let read = |input: ParseStream<'_>| {
        while !input.is_empty() {
            match Key::parse(input) {
                Ok(key) if keys.iter().any(|known| known.repeats(&key)) => {
                    errors.push(&key.name, format!("`{}` is given twice", key.name), "leave one of them");
                }
                Ok(key) => keys.push(key),
                Err(error) => {
                    errors.absorb(&error, help);
                    skip_to_comma(input)?;
                }
            }
            if !input.is_empty()
                && let Err(error) = input.parse::<Token![,]>()
            {
                errors.absorb(&error, help);
                skip_to_comma(input)?;
                input.parse::<Option<Token![,]>>()?;
            }
        }
        Ok(())
    };
    if let Err(error) = read.parse2(tokens) {
        errors.absorb(&error, help);
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

/// The assignments that the keys of `#[tool]` stand for. After one that is wrong rustc goes on with the next, as it would not after a
/// fault in one expression that makes all of the plugin.
pub(crate) fn assignments(
    keys: &[Key],
    arguments: Option<&[String]>,
    errors: &mut Errors,
) -> Vec<TokenStream> {
    keys.iter()
        .filter_map(|key| {
            let (field, takes) = known(key, &KEYS, errors)?;
            let value = value(key, takes, arguments, errors)?;
            Some(field.assignment(&quote!(__plugin), key, &value))
        })
        .collect()
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

/// What the value of a key is, as far as it shows.
#[derive(Clone, Copy)]
enum Takes {
    /// Nothing, or `true` or `false`.
    Flag,
    /// A time.
    Duration,
    /// A variant of an enum.
    Variant(&'static str, &'static [&'static str]),
    /// Words of ours, with `|` between them where there may be several: how each is written, and what it is in the core.
    Words(&'static str, &'static [(&'static str, &'static str)]),
    /// Something else, which rustc judges.
    Value,
}

/// The keys of `#[tool]`. `example` and `crate` are taken out before, and set nothing by themselves.
const KEYS: [Known<Takes>; 24] = [
    ("name", Field::Always("name"), Takes::Value),
    ("title", Field::Optional("title"), Takes::Value),
    ("version", Field::Optional("version"), Takes::Value),
    ("tags", Field::Always("tags"), Takes::Value),
    (
        "permission",
        Field::Always("policy.permission"),
        Takes::Variant("Permission", &["Guest", "User", "Admin", "Owner"]),
    ),
    ("cost", Field::Always("policy.cost"), Takes::Variant("Cost", &["Free", "Cheap", "Expensive"])),
    ("effect", Field::Always("policy.effect"), Takes::Variant("Effect", &["Read", "Write", "Destructive"])),
    ("idempotent", Field::Always("policy.idempotent"), Takes::Flag),
    (
        "reads",
        Field::Optional("policy.reads"),
        Takes::Words("Reads", &[("private", "PRIVATE"), ("untrusted", "UNTRUSTED"), ("nothing", "NOTHING")]),
    ),
    (
        "sends",
        Field::Optional("policy.sends"),
        Takes::Words("Sends", &[("outside", "Outside"), ("nothing", "Nothing")]),
    ),
    ("resumable", Field::Always("policy.resumable"), Takes::Flag),
    ("timeout", Field::Always("policy.timeout"), Takes::Duration),
    ("cooldown", Field::Always("policy.cooldown"), Takes::Duration),
    ("daily_limit", Field::Always("policy.daily_limit"), Takes::Value),
    ("max_concurrent", Field::Always("policy.max_concurrent"), Takes::Value),
    ("gate", Field::Always("policy.requires_gate"), Takes::Flag),
    ("text_tag", Field::Optional("policy.text_tag"), Takes::Value),
    ("deferred", Field::Always("policy.deferred"), Takes::Flag),
    ("ends_turn", Field::Always("policy.ends_turn"), Takes::Flag),
    ("enabled", Field::Optional("enabled"), Takes::Value),
    ("needs", Field::Optional("needs"), Takes::Value),
    ("deprecated", Field::Optional("deprecated"), Takes::Value),
    ("example", Field::Always("examples"), Takes::Value),
    ("crate", Field::Always(""), Takes::Value),
];

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

/// Reports a value that is not written as the key takes it, where that shows.
fn check_value(name: &str, takes: Takes, value: &Expr, errors: &mut Errors) -> Option<()> {
    let literal = match value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    };
    match takes {
        Takes::Duration => {
            let Some(lit) = literal else { return Some(()) };
            let seconds = match lit {
                Lit::Int(seconds) => seconds.base10_digits().to_owned(),
                _ => "10".to_owned(),
            };
            let help = format!("write `{name} = secs({seconds})`; there are `millis` and `minutes` too");
            errors.none(value, format!("`{name}` is a time with its unit"), help)
        }
        Takes::Variant(of, variants) => {
            let text = match (literal, value) {
                (Some(Lit::Str(text)), _) => text.value(),
                (None, Expr::Path(ExprPath { path, .. })) => {
                    path.get_ident().map(ToString::to_string).unwrap_or_default()
                }
                (Some(_), _) => String::new(),
                (None, _) => return Some(()),
            };
            let meant = variants.iter().find(|variant| variant.eq_ignore_ascii_case(&text));
            let help = match meant {
                Some(meant) => format!("write `{name} = {of}::{meant}`"),
                None if literal.is_none() => return Some(()),
                None => {
                    let all: Vec<String> =
                        variants.iter().map(|variant| format!("{of}::{variant}")).collect();
                    format!("write one of {}", all.join(", "))
                }
            };
            errors.none(value, format!("the value of `{name}` is one of `{of}`"), help)
        }
        Takes::Flag | Takes::Value | Takes::Words(..) => Some(()),
    }
}

/// `private | untrusted`: words that stand for constants of the core, joined there.
fn words(
    name: &str,
    of: &str,
    known: &[(&str, &str)],
    value: &Expr,
    errors: &mut Errors,
) -> Option<TokenStream> {
    let several = of == "Reads";
    match value {
        Expr::Binary(ExprBinary { left, op: BinOp::BitOr(_), right, .. }) if several => {
            let (left, right) = (words(name, of, known, left, errors), words(name, of, known, right, errors));
            let (left, right) = (left?, right?);
            Some(quote!(#left.and(#right)))
        }
        Expr::Paren(inner) => words(name, of, known, &inner.expr, errors),
        other => {
            let word = match other {
                Expr::Path(ExprPath { qself: None, path, .. }) => path.get_ident(),
                _ => None,
            };
            let constant = word.and_then(|word| known.iter().find(|(known, _)| word == known));
            let Some((_, constant)) = constant else {
                let all: Vec<String> = known.iter().map(|(word, _)| format!("`{name} = {word}`")).collect();
                let both = if several { ", or `reads = private | untrusted`" } else { "" };
                return errors.none(
                    other,
                    format!("`{name}` takes words of its own"),
                    format!("write {}{both}", all.join(", ")),
                );
            };
            let (of, constant) = (format_ident!("{of}"), format_ident!("{constant}", span = other.span()));
            Some(quote!(__private::#of::#constant))
        }
    }
}

fn value(key: &Key, takes: Takes, arguments: Option<&[String]>, errors: &mut Errors) -> Option<TokenStream> {
    let name = key.name.to_string();
    let Some(value) = &key.value else {
        if matches!(takes, Takes::Flag) {
            return Some(quote!(true));
        }
        return errors.none(&key.name, format!("`{name}` needs a value"), format!("write `{name} = …`"));
    };
    if let Some(call) = &key.call {
        return errors.none(
            &call.tokens,
            format!("`{name}` has no call behind its value"),
            "only `example` has one",
        );
    }
    check_value(&name, takes, value, errors)?;
    if let Takes::Words(of, known) = takes {
        return words(&name, of, known, value, errors);
    }
    match name.as_str() {
        "name" => {
            let Some(text) = key.text() else {
                return errors.none(value, "the name has to be written out", "write `name = \"…\"`");
            };
            check_name(&text.value(), text, errors);
        }
        "version" => {
            if let Some(text) = key.text()
                && semver::Version::parse(&text.value()).is_err()
            {
                let what = format!("`{}` is not a semantic version", text.value());
                errors.push(text, what, "write three numbers, as in `version = \"1.0.0\"`");
            }
        }
        "title" | "deprecated" => {
            if let Some(text) = key.text()
                && text.value().trim().is_empty()
            {
                errors.push(text, format!("`{name}` is empty"), "say something or remove the key");
            }
        }
        "tags" => {
            if let Expr::Array(tags) = value {
                return Some(quote!(&#tags));
            }
        }
        "text_tag" => {
            if let Some(prefix) = key.text() {
                check_prefix(prefix, errors);
                return Some(quote!(__private::TextTag::new(#prefix)));
            }
            check_text_tag(value, arguments, errors);
        }
        _ => {}
    }
    Some(quote!(#value))
}

/// A tool that changes something says who may call it: by default anyone may.
pub(crate) fn check_effect(keys: &[Key], errors: &mut Errors) {
    let Some(effect) = keys.iter().find(|key| key.is("effect")).and_then(|key| key.value.as_ref()) else {
        return;
    };
    let reads = matches!(effect, Expr::Path(ExprPath { path, .. }) if ends_in(path, "Read").is_some());
    if !reads && !keys.iter().any(|key| key.is("permission")) {
        errors.push(
            effect,
            "a tool that changes something has to say who may call it",
            "add `permission = Permission::User`, or another level",
        );
    }
}

/// A name that every provider takes.
pub(crate) fn check_name(name: &str, at: impl quote::ToTokens, errors: &mut Errors) {
    let fits = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !fits {
        errors.push(
            at,
            format!("`{name}` is not a name that every model takes"),
            "use at most 64 of a-z, 0-9 and `_`, a letter first; `#[tool(name = \"…\")]` gives another name than the function's",
        );
    }
}

/// A name of an argument that every provider takes.
pub(crate) fn check_argument_name(name: &str, at: impl quote::ToTokens, errors: &mut Errors) {
    let fits = (1..=64).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if !fits {
        errors.push(
            at,
            format!("`{name}` is not a name of an argument that every model takes"),
            "use 1 to 64 of a-z, A-Z, 0-9, `_`, `.` and `-`; `#[arg(rename = \"…\")]` gives another name",
        );
    }
}

fn check_prefix(prefix: &LitStr, errors: &mut Errors) {
    let text = prefix.value();
    let fits = text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if !fits {
        errors.push(
            prefix,
            format!("`{text}` is not a tag"),
            "use A-Z, 0-9 and `_`, a letter first, as in `text_tag = \"RESEARCH\"`",
        );
    }
}

/// What can be seen of `TextTag::new("TAG").groups(&["category", "content"])` as it is written.
fn check_text_tag(value: &Expr, arguments: Option<&[String]>, errors: &mut Errors) {
    match value {
        Expr::MethodCall(call) => {
            check_text_tag(&call.receiver, arguments, errors);
            let Some(Expr::Reference(groups)) = call.args.first().filter(|_| call.method == "groups") else {
                return;
            };
            let (Expr::Array(groups), Some(arguments)) = (&*groups.expr, arguments) else { return };
            for group in &groups.elems {
                if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = group
                    && !arguments.contains(&text.value())
                {
                    let what = format!("the group `{}` is no argument of this tool", text.value());
                    errors.push(text, what, format!("its arguments are: {}", arguments.join(", ")));
                }
            }
        }
        Expr::Call(call) => {
            if let Some(Expr::Lit(ExprLit { lit: Lit::Str(prefix), .. })) = call.args.first() {
                check_prefix(prefix, errors);
            }
        }
        _ => {}
    }
}

/// Whether a path is one name, the last of which is `name`: `Resource`, `registry_core::Resource`.
pub(crate) fn ends_in<'p>(path: &'p Path, name: &str) -> Option<&'p syn::PathSegment> {
    path.segments.last().filter(|last| last.ident == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_every_provider_takes() {
        for (name, fits) in [
            ("a", true),
            ("web_search2", true),
            ("", false),
            ("_a", false),
            ("2a", false),
            ("A", false),
            ("ä", false),
        ] {
            let mut errors = Errors::new("test");
            check_name(name, quote!(name), &mut errors);
            assert_eq!(errors.is_empty(), fits, "{name}");
        }
        let mut errors = Errors::new("test");
        check_name(&"a".repeat(65), quote!(name), &mut errors);
        assert!(!errors.is_empty());
    }
}
