//! Whether a text could begin a body of this family.

use super::{
    Arguments, Head, NamedStyle,
    head::{self, Found},
};
use crate::{
    body::{Is, Lead, ahead, is, is_any, rest},
    table::Dialect,
};

/// Whether a body of this form could begin so; `addressed`: a header has named the tool.
pub(crate) fn lead(style: &NamedStyle, row: &Dialect, text: &str, addressed: bool) -> Lead {
    if matches!(style.head, Head::Recipient) {
        let open = match style.arguments {
            Arguments::Tags(tags) => tags.key.open(),
            Arguments::Json | Arguments::Literals(_) => "{",
        };
        // A tool without arguments: nothing but the end follows.
        let empty = matches!(style.arguments, Arguments::Tags(_)).then_some(row.close).unwrap_or_default();
        // A fence may stand around JSON, and a string hold it.
        let json: &[&str] = if matches!(style.arguments, Arguments::Json) { &["```", "\""] } else { &[] };
        let begins = is_any(text, empty.iter().chain(json).copied().chain([open]));
        return if addressed { lead_is(begins) } else { Lead::No };
    }
    let text = if style.list {
        match text.bytes().next() {
            Some(b'[') => unblanked(rest(text, 1)),
            None => return Lead::More,
            // Where a delimiter stands before them, a single call needs no list.
            Some(_) if row.delimiters.is_empty() => return Lead::No,
            Some(_) => text,
        }
    } else {
        text
    };
    match is(text, style.head.open()) {
        Is::Yes => {}
        other => return lead_is(other),
    }
    let literals = matches!(style.arguments, Arguments::Literals(_));
    let json = matches!(style.arguments, Arguments::Json);
    let behind = unblanked(rest(text, style.head.open().len()));
    match behind.chars().next() {
        None => Lead::More,
        // Only what stands in the tag of the arguments distinguishes two forms.
        Some(_) if json && head::closes_with_tags(&style.head) => {
            match head::name(&style.head, behind, false) {
                Found::Name(found) => match unblanked(rest(behind, found.end)).chars().next() {
                    None => Lead::More,
                    Some(first) if "{\"`".contains(first) => Lead::Yes,
                    Some(_) => Lead::No,
                },
                Found::More => Lead::More,
                Found::No(_) => Lead::No,
            }
        }
        // The id may be empty.
        Some(_) if matches!(style.head, Head::AfterId { .. }) => Lead::Yes,
        Some(first) if first.is_whitespace() || "{[<>(`".contains(first) => Lead::No,
        // Nothing but the bracket after a name distinguishes these from a word.
        Some(_) if literals && style.head.open().is_empty() => match head::name(&style.head, behind, false) {
            Found::Name(found) if plain(behind.get(..found.end).unwrap_or_default()) => Lead::Yes,
            Found::More if plain(behind) => Lead::More,
            Found::Name(_) | Found::More | Found::No(_) => Lead::No,
        },
        // Only the bracket after the name distinguishes two forms.
        Some(_) if literals => match head::name(&style.head, behind, false) {
            // A call without arguments ends after its name.
            Found::No(at) if single(behind.get(..at).unwrap_or_default()) => {
                lead_is(is_any(rest(behind, at), style.end.iter().chain(row.close).copied()))
            }
            Found::Name(found) if single(behind.get(..found.end).unwrap_or_default()) => Lead::Yes,
            Found::More if single(behind) => Lead::More,
            Found::Name(_) | Found::More | Found::No(_) => Lead::No,
        },
        // A name without a delimiter around it begins as names do.
        Some(first) if head::is_plain(&style.head) && !first.is_alphanumeric() && first != '_' => Lead::No,
        Some(_) => Lead::Yes,
    }
}

/// The text without white space before it, of which there is only so much before a name.
fn unblanked(text: &str) -> &str {
    rest(text, ahead(text, 0, &[]).unwrap_or(0))
}

/// Only what names are made of, and white space and a bracket after it.
fn plain(called: &str) -> bool {
    let name = called.trim_end_matches(['(', '{']).trim_end();
    let braces = !called.ends_with('(');
    let part =
        |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '-') || braces && char == ':';
    name.starts_with(|first: char| first.is_alphabetic() || first == '_') && name.chars().all(part)
}

/// No other bracket than that after a name.
fn single(name: &str) -> bool {
    let name = name.strip_suffix(['(', '{']).unwrap_or(name).trim_end();
    !name.contains(['(', '{', '[', '"', '\n'])
}

pub(super) fn lead_is(found: Is) -> Lead {
    match found {
        Is::Yes => Lead::Yes,
        Is::No => Lead::No,
        Is::Open => Lead::More,
    }
}
