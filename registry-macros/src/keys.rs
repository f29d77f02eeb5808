//! The keys of `#[tool]`: what each takes, and the field that it sets.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{BinOp, Expr, ExprBinary, ExprLit, ExprPath, Lit, LitStr, spanned::Spanned};

use crate::{
    attr::{Field, Key, Known, ends_in, known},
    errors::Errors,
    names::check_name,
};

/// The assignments that the keys of `#[tool]` stand for. After one that is wrong rustc goes on with the next, as it would not after a
/// fault in one expression that makes all of the plugin.
pub(crate) fn assignments(
    keys: &[Key],
    arguments: Option<&[String]>,
    errors: &mut Errors,
) -> Vec<TokenStream> {
    keys.iter()
        .filter_map(|key| {
            if key.is("description") {
                let what = "there is no key `description`: the doc comment is the description";
                return errors.none(&key.name, what, "say it in `/// …` above the function");
            }
            let (field, takes) = known(key, &KEYS, errors)?;
            let value = value(key, takes, arguments, errors)?;
            Some(field.assignment(&quote!(__plugin), key, &value))
        })
        .collect()
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
    /// A literal of this kind, if it is a literal: what it is called, and how it is written.
    Literal(Kind, &'static str),
    /// Something else, which rustc judges.
    Value,
}

/// Kinds of values.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    /// One that is never a literal.
    Texts,
    Condition,
}

/// The keys of `#[tool]`. `example` and `crate` are taken out before, and set nothing by themselves.
const KEYS: [Known<Takes>; 24] = [
    ("name", Field::Always("name"), Takes::Value),
    ("title", Field::Optional("title"), Takes::Literal(Kind::Text, "\"Weather\"")),
    ("version", Field::Optional("version"), Takes::Literal(Kind::Text, "\"1.0.0\"")),
    ("tags", Field::Always("tags"), Takes::Literal(Kind::Texts, "[\"sea\"]")),
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
    ("daily_limit", Field::Always("policy.daily_limit"), Takes::Literal(Kind::Number, "100")),
    ("max_concurrent", Field::Always("policy.max_concurrent"), Takes::Literal(Kind::Number, "2")),
    ("gate", Field::Always("policy.requires_gate"), Takes::Flag),
    ("text_tag", Field::Optional("policy.text_tag"), Takes::Value),
    ("deferred", Field::Always("policy.deferred"), Takes::Flag),
    ("ends_turn", Field::Always("policy.ends_turn"), Takes::Flag),
    ("enabled", Field::Optional("enabled"), Takes::Literal(Kind::Condition, "|ctx| …")),
    ("needs", Field::Optional("needs"), Takes::Literal(Kind::Text, "\"the variable KEY\"")),
    ("deprecated", Field::Optional("deprecated"), Takes::Literal(Kind::Text, "\"use …\"")),
    ("example", Field::Always("examples"), Takes::Value),
    ("crate", Field::Always(""), Takes::Value),
];

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
        Takes::Literal(kind, written) => {
            let what = match (kind, literal) {
                (_, None) | (Kind::Text, Some(Lit::Str(_))) | (Kind::Number, Some(Lit::Int(_))) => {
                    return Some(());
                }
                (Kind::Text, _) => "a text",
                (Kind::Number, _) => "a number",
                (Kind::Texts, _) => "a list of texts",
                (Kind::Condition, _) => "a condition, which is asked for each request",
            };
            errors.none(value, format!("`{name}` is {what}"), format!("write `{name} = {written}`"))
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
