//! Where a name stands: the tool's in the head of a call, an argument's in its tag.

use std::borrow::Cow;

use crate::{
    body::{Is, is, is_any, rest},
    entities,
};

/// How a name is written.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Head {
    /// Between two delimiters, as in `<function=NAME>`.
    Between {
        /// Stands before the name.
        open: &'static str,
        /// What may stand after it; the first is the one that is rendered. With an empty one among them the name
        /// ends where its letters do.
        close: &'static [&'static str],
        /// What a name begins with that does not belong to it, as in `functions.NAME`.
        before: &'static str,
        /// What separates the name from an id of the call, as in `NAME:0`.
        id: &'static str,
        /// The id that is rendered, with what separates it.
        written_id: &'static str,
    },
    /// In an attribute of a tag, as in `<invoke name="NAME">`. Entities in attributes are read.
    Attribute {
        /// How the tag begins, with the space.
        open: &'static str,
        /// The attribute.
        name: &'static str,
        /// How the tag ends.
        close: &'static str,
    },
    /// After an id of the call, as in `<call>ID<name>NAME<arguments>`.
    AfterId {
        /// Stands before the id.
        open: &'static str,
        /// Stands between the id and the name.
        before: &'static str,
        /// Stands after the name.
        close: &'static str,
    },
    /// In the header of the message, as whom it is for.
    Recipient,
}

impl Head {
    /// A name between two delimiters.
    pub const fn between(open: &'static str, close: &'static [&'static str]) -> Self {
        Self::Between { open, close, before: "", id: "", written_id: "" }
    }

    /// A name that is a tag, and is repeated in the tag that ends the call.
    pub(crate) const TAG: Self = Self::between("<", &[">"]);

    /// A name in an attribute.
    pub const fn attribute(open: &'static str, name: &'static str, close: &'static str) -> Self {
        Self::Attribute { open, name, close }
    }

    /// What stands before the name, as far as it is always the same.
    pub(crate) const fn open(&self) -> &'static str {
        match self {
            Self::Between { open, .. } | Self::Attribute { open, .. } | Self::AfterId { open, .. } => open,
            Self::Recipient => "",
        }
    }
}

/// The name without what may stand around it, where it is one of letters; else empty.
pub(super) fn bare(head: &Head, name: &str) -> String {
    match head {
        Head::Between { before, id, .. } if !name.trim().contains(char::is_whitespace) => {
            undressed(name.trim(), before, id)
        }
        _ => String::new(),
    }
}

/// Whether the name is a tag.
pub(crate) fn is_tag(head: &Head) -> bool {
    matches!(head, Head::Between { open: "<", .. })
}

/// Whether a name stands there with nothing around it.
pub(super) fn is_plain(head: &Head) -> bool {
    matches!(head, Head::Between { close, .. } if close.contains(&""))
}

/// Whether the name's own closing tag and another tag stand behind it.
pub(super) fn closes_with_tags(head: &Head) -> bool {
    match head {
        Head::Between { close: [close], .. } | Head::AfterId { close, .. } => {
            close.starts_with("</") && close.matches('<').count() > 1
        }
        _ => false,
    }
}

/// Whether what closes a name stands there, and how long it is. Between two tags white space is as the model likes it.
fn closes(text: &str, close: &str) -> (Is, usize) {
    let Some(at) = close.find(">\n<") else { return (is(text, close), close.len()) };
    let (tag, next) = (close.get(..=at).unwrap_or_default(), rest(close, at + 2));
    match is(text, tag) {
        Is::Yes => {}
        other => return (other, 0),
    }
    let behind = rest(text, tag.len()).trim_start();
    (is(behind, next), text.len() - behind.len() + next.len())
}

/// A longer name is not one.
pub(super) const MAX_NAME: usize = 256;

/// A name, read, and what stood in its tag beside it.
#[derive(Debug)]
pub(super) struct Named<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) tag: &'a str,
    /// Where the text after it begins, counted from after `open`.
    pub(super) end: usize,
}

/// What reading a name has come to.
#[derive(Debug)]
pub(super) enum Found<'a> {
    Name(Named<'a>),
    More,
    /// It is none, which is known here, counted from after `open`.
    No(usize),
}

/// Reads the name that stands after `head.open()`.
pub(super) fn name<'a>(head: &Head, text: &'a str, eof: bool) -> Found<'a> {
    let area = text.get(..text.floor_char_boundary(MAX_NAME)).unwrap_or_default();
    let found = match head {
        Head::Recipient => Found::No(0),
        Head::AfterId { before, close, .. } => after_id(area, before, close, eof),
        Head::Attribute { name, close, .. } => attribute_name(area, name, close),
        Head::Between { close, before, id, .. } => {
            let found =
                if close.contains(&"") { letters(area, close, id, eof) } else { up_to(area, close, eof) };
            match found {
                Found::Name(named) => {
                    Found::Name(Named { name: undressed(&named.name, before, id).into(), ..named })
                }
                found => found,
            }
        }
    };
    match found {
        Found::More if area.len() == text.len() && area.len() < MAX_NAME && !eof => Found::More,
        Found::More => Found::No(area.len()),
        found => found,
    }
}

/// The name of letters, with its id, and what may close it.
fn letters<'a>(text: &'a str, close: &[&str], id: &str, eof: bool) -> Found<'a> {
    let part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | ':' | '/' | '@');
    let word_end =
        |from: usize| rest(text, from).find(|char: char| !part(char)).map_or(text.len(), |at| from + at);
    let start = text.len() - text.trim_start().len();
    let mut end = word_end(start);
    if !id.is_empty() && rest(text, end).starts_with(id) {
        end = word_end(end + id.len());
    }
    let behind = rest(text, end);
    let next = behind.trim_start_matches([' ', '\t']);
    let delimiters = close.iter().copied().chain([id]).filter(|delimiter| !delimiter.is_empty());
    if !eof && (next.is_empty() || is_any(next, delimiters.clone()) == Is::Open) {
        return Found::More;
    }
    // What introduces something is no part of a name.
    let name = text.get(start..end).unwrap_or_default().trim_end_matches(':');
    if let Some(delimiter) = delimiters.filter(|delimiter| next.starts_with(delimiter)).max() {
        end += behind.len() - next.len() + delimiter.len();
    }
    Found::Name(Named { name: name.into(), tag: "", end })
}

/// The name between two delimiters, the first of which an id stands before.
fn after_id<'a>(text: &'a str, before: &'static str, close: &'static str, eof: bool) -> Found<'a> {
    match up_to(text, &[before], eof) {
        Found::Name(id) => match up_to(rest(text, id.end), &[close], eof) {
            Found::Name(name) => Found::Name(Named { end: id.end + name.end, ..name }),
            Found::More => Found::More,
            Found::No(at) => Found::No(id.end + at),
        },
        found => found,
    }
}

/// The name up to what closes it; neither a line end nor another tag may come before.
fn up_to<'a>(text: &'a str, close: &[&str], eof: bool) -> Found<'a> {
    let firsts = |char: char| matches!(char, '<' | '\n') || close.iter().any(|close| close.starts_with(char));
    for (at, char) in text.char_indices().filter(|(_, char)| firsts(*char)) {
        let here = rest(text, at);
        // The longest delimiter counts: that it has come whole has to be known.
        let found = close.iter().map(|close| closes(here, close));
        if !eof && found.clone().any(|(is, _)| is == Is::Open) {
            return Found::More;
        }
        if let Some((_, length)) = found.filter(|(is, _)| *is == Is::Yes).max_by_key(|(_, length)| *length) {
            let tag = text.get(..at).unwrap_or_default().trim();
            let name = tag.strip_suffix('/').unwrap_or(tag).trim_end().trim_matches(['"', '\'']);
            return Found::Name(Named { name: name.into(), tag, end: at + length });
        }
        if char == '\n' && close.contains(&"{") {
            // The bracket may stand on the next line.
            let behind = here.trim_start();
            match behind.starts_with('{') {
                _ if behind.is_empty() && !eof => return Found::More,
                true => {
                    let tag = text.get(..at).unwrap_or_default().trim();
                    return Found::Name(Named { name: tag.into(), tag, end: text.len() - behind.len() + 1 });
                }
                false => {}
            }
        }
        if matches!(char, '<' | '\n') {
            return Found::No(at);
        }
    }
    Found::More
}

/// The name before an object of arguments where what closes it is missing: `<function=NAME{`, `<function=NAME({`.
pub(super) fn before_object<'a>(head: &Head, text: &'a str) -> Option<Named<'a>> {
    let Head::Between { close, before, id, .. } = head else { return None };
    if close.iter().any(|close| close.is_empty() || close.starts_with(['(', '{'])) {
        return None;
    }
    let area = text.get(..text.floor_char_boundary(MAX_NAME))?;
    let end = area.find(['{', '>', '<', '\n']).filter(|end| rest(area, *end).starts_with('{'))?;
    let name = area.get(..end)?.trim_end_matches('(').trim();
    let part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | ':');
    let is_name = !name.is_empty() && name.chars().all(part);
    is_name.then(|| Named { name: undressed(name, before, id).into(), tag: "", end })
}

fn attribute_name<'a>(text: &'a str, attribute: &str, close: &str) -> Found<'a> {
    let mut quote = None;
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (None, '"' | '\'') => quote = Some(char),
            (Some(open), _) if open == char => quote = None,
            (None, '\n') => return Found::No(at),
            (None, _) => match is(rest(text, at), close) {
                Is::Yes => {
                    let tag = text.get(..at).unwrap_or_default();
                    return match value(tag, attribute) {
                        Some(name) => Found::Name(Named { name, tag, end: at + close.len() }),
                        None => Found::No(at),
                    };
                }
                Is::Open => return Found::More,
                Is::No if char == '<' => return Found::No(at),
                Is::No => {}
            },
            _ => {}
        }
    }
    Found::More
}

/// The value of an attribute of a tag.
pub(super) fn value<'a>(tag: &'a str, attribute: &str) -> Option<Cow<'a, str>> {
    let mut from = 0;
    loop {
        let at = from + rest(tag, from).find(attribute)?;
        from = at + attribute.len();
        let before = tag.get(..at).unwrap_or_default();
        let behind = rest(tag, from).trim_start();
        if before.is_empty() || before.ends_with(char::is_whitespace) {
            let Some(behind) = behind.strip_prefix('=') else { continue };
            let behind = behind.trim_start();
            if let Some(inside) = behind.strip_prefix('“') {
                return inside.split(['”', '“']).next().map(entities::decoded);
            }
            let quoted = behind.strip_prefix(['"', '\'']);
            let value = match (quoted, behind.chars().next()) {
                (Some(inside), Some(quote)) => inside.split(quote).next()?,
                _ => behind.split([' ', '\t', '/']).next()?,
            };
            return Some(entities::decoded(value));
        }
    }
}

/// The name without what does not belong to it.
fn undressed(name: &str, before: &str, id: &str) -> String {
    if let Some(bare) = spelled_out(name, before, id) {
        return bare.to_owned();
    }
    let name = name.strip_prefix(before).unwrap_or(name);
    let bare = match name.rsplit_once(id) {
        Some((bare, id)) if is_id(id) => bare,
        _ => name,
    };
    (if id.is_empty() { name } else { bare }).trim().to_owned()
}

/// Whether this may be the id of a call. One of several parts has a number at its end: else it is a name with its namespace.
fn is_id(id: &str) -> bool {
    let simple = id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let parts = || id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    !id.is_empty() && (simple || id.ends_with(|last: char| last.is_ascii_digit()) && parts())
}

/// The name in an id whose signs a client has made letters of: `functions_NAME_0` for `functions.NAME:0`. The model has seen such ids in
/// the conversation, and writes more of them (ggml-org/llama.cpp#24658).
fn spelled_out<'a>(name: &'a str, before: &str, id: &str) -> Option<&'a str> {
    let (word, sign) = before.split_at_checked(before.len().checked_sub(1)?)?;
    let is_sign = |sign: &str| sign.len() == 1 && sign.chars().all(|char| char.is_ascii_punctuation());
    let rest = name.strip_prefix(word).filter(|_| is_sign(sign) && is_sign(id))?.strip_prefix('_')?;
    let (bare, number) = rest.rsplit_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !bare.is_empty()).then_some(bare)
}
