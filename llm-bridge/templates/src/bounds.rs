//! Bounds on what the engine does not count: it builds lists out of others without looking into them, and compares what is nested at
//! the price of its surface. A list that is added to itself forty times has more items than there is memory.
//!
//! So a filter that counts is put behind whatever a template reads: what is larger than any conversation is refused before anything
//! is done with it, and what is done is paid for.

use minijinja::{Error, ErrorKind, State, Value, value::ValueKind};

/// The filter's name, which no template uses.
pub(crate) const FILTER: &str = "bounded_value";
/// How many values one value may have in it, each as often as it is there.
const MAX_PARTS: usize = 1 << 20;
/// How many of them are looked at for a unit of work.
const PARTS_OF_FUEL: usize = 4;
/// How many bytes of a text that a method gets are a unit of work: one that stands in the template is not read by the filter.
const BYTES_OF_FUEL: usize = 64;
/// How many words and signs a tag may have: the engine reads some of them, such as `not not …`, each within the one before.
pub(crate) const MAX_SIGNS: usize = 10_000;
/// Filters that look at the surface alone, or pay themselves.
const CHEAP: [&str; 8] = ["count", "d", "default", "first", "last", "length", "string", "tojson"];
/// Words that are no values.
const WORDS: [&str; 17] = [
    "True",
    "False",
    "None",
    "true",
    "false",
    "none",
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "elif",
    "recursive",
    "ignore",
    "missing",
];

/// Gives the value back, if it is not too large.
pub(crate) fn bounded(state: &State, value: Value) -> Result<Value, Error> {
    pay_for(state, &value)?;
    Ok(value)
}

/// Pays for looking at all that is in a value.
pub(crate) fn pay_for(state: &State, value: &Value) -> Result<(), Error> {
    let mut open = Vec::from_iter(parts(value)?);
    let mut count = 0_usize;
    while let Some(values) = open.last_mut() {
        let Some(part) = values.next() else {
            open.pop();
            continue;
        };
        count += 1;
        if count > MAX_PARTS {
            return Err(Error::from(ErrorKind::OutOfFuel));
        }
        if count.is_multiple_of(PARTS_OF_FUEL) {
            state.consume_fuel(1)?;
        }
        open.extend(parts(&part)?);
    }
    Ok(())
}

/// Pays for looking at a text.
pub(crate) fn pay_for_text(state: &State, text: &str) -> Result<(), Error> {
    state.consume_fuel(u64::try_from(text.len() / BYTES_OF_FUEL).unwrap_or(u64::MAX))
}

/// What is in a value; `None` for one that has no parts.
fn parts(value: &Value) -> Result<Option<Box<dyn Iterator<Item = Value>>>, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => Ok(Some(Box::new(value.try_iter()?))),
        ValueKind::Map => {
            let map = value.clone();
            let pairs = value.try_iter()?.flat_map(move |key| {
                let member = map.get_item(&key).unwrap_or_default();
                [key, member]
            });
            Ok(Some(Box::new(pairs)))
        }
        _ => Ok(None),
    }
}

/// The source with the filter behind each value that is read. Lines stay what they are. `None` where a tag is too long.
pub(crate) fn with_bounds(source: &str) -> Option<String> {
    let mut writer = Writer { rest: source, out: String::with_capacity(source.len() * 2), is_long: false };
    while let Some(at) = writer.rest.find('{') {
        writer.copy(at);
        match writer.rest.as_bytes().get(1) {
            Some(b'#') => writer.copy_through("#}"),
            Some(b'{') => {
                writer.copy(2);
                writer.tag("}}", Tag::default());
            }
            Some(b'%') => writer.block(),
            _ => writer.copy(1),
        }
    }
    writer.copy(writer.rest.len());
    (!writer.is_long).then_some(writer.out)
}

/// Where values are read in a tag.
#[derive(Debug, Clone, Copy, Default)]
struct Tag {
    /// Only behind this word or sign.
    after: Option<&'static str>,
    /// Only within brackets.
    nested: bool,
}

/// An open bracket.
#[derive(Debug, Clone, Copy, Default)]
struct Bracket {
    /// Whether it takes a part of a value, or calls it. Others hold values that have been counted.
    is_of_value: bool,
    /// Whether something may be repeated in it.
    repeats: bool,
}

struct Writer<'s> {
    rest: &'s str,
    out: String,
    /// Whether a tag is too long.
    is_long: bool,
}

impl Writer<'_> {
    /// Takes over so many bytes.
    fn copy(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.out.push_str(taken);
        self.rest = rest;
    }

    fn copy_through(&mut self, end: &str) {
        self.copy(self.rest.find(end).map_or(self.rest.len(), |at| at + end.len()));
    }

    fn copy_while(&mut self, is_in: impl Fn(char) -> bool) -> &str {
        let length = self.rest.find(|char| !is_in(char)).unwrap_or(self.rest.len());
        self.copy(length);
        self.out.get(self.out.len() - length..).unwrap_or_default()
    }

    /// A `{% … %}`.
    fn block(&mut self) {
        self.copy(2);
        self.copy_while(|char| matches!(char, '-' | '+'));
        self.copy_while(char::is_whitespace);
        let tag = match self.copy_while(is_word) {
            "set" => Tag { after: Some("="), nested: false },
            "for" => Tag { after: Some("in"), nested: false },
            "do" => Tag { after: None, nested: true },
            // What these name is no value, and has to be a call.
            "macro" | "call" => Tag { after: Some("%"), nested: true },
            "raw" => return self.raw(),
            _ => Tag::default(),
        };
        self.tag("%}", tag);
    }

    /// What is shown as it is.
    fn raw(&mut self) {
        while let Some(at) = self.rest.find("{%") {
            self.copy(at + 2);
            let name = self.rest.trim_start_matches(['-', '+']).trim_start();
            if name.starts_with("endraw") {
                return self.copy_through("%}");
            }
        }
    }

    /// The rest of a tag up to its end.
    fn tag(&mut self, end: &str, tag: Tag) {
        let mut open: Vec<Bracket> = Vec::new();
        let mut is_on = tag.after.is_none();
        // Whether a value has ended here, and whether the word before was `is`.
        let (mut is_value, mut is_test) = (false, false);
        let mut signs = 0;
        while let Some(char) = self.rest.chars().next() {
            let depth = open.len();
            if depth == 0 && self.rest.strip_prefix(['-', '+']).unwrap_or(self.rest).starts_with(end) {
                return self.copy_through(end);
            }
            signs += usize::from(!char.is_whitespace());
            if signs > MAX_SIGNS {
                self.is_long = true;
                return self.copy(self.rest.len());
            }
            let mut is_read = false;
            match char {
                '"' | '\'' => {
                    self.text(char);
                    is_value = true;
                }
                '0'..='9' => {
                    self.copy_while(is_word);
                    is_value = true;
                }
                char if is_word(char) => {
                    let word = self.copy_while(is_word).to_owned();
                    is_on |= depth == 0 && tag.after == Some(word.as_str());
                    is_value = !WORDS.contains(&word.as_str());
                    is_read = is_value && !is_test;
                    is_test = word == "is" || is_test && word == "not";
                }
                '(' | '[' | '{' => {
                    open.push(Bracket { is_of_value: is_value, repeats: false });
                    self.copy(1);
                    is_value = false;
                }
                ')' | ']' | '}' => {
                    let closed = open.pop().unwrap_or_default();
                    if let Some(outer) = open.last_mut() {
                        outer.repeats |= closed.repeats;
                    }
                    self.copy(1);
                    is_read = closed.is_of_value || closed.repeats;
                    is_value = true;
                }
                char if char.is_whitespace() => self.copy(char.len_utf8()),
                char => {
                    is_on |= depth == 0 && char == '=' && tag.after == Some("=");
                    if let Some(bracket) = open.last_mut() {
                        bracket.repeats |= char == '*';
                    }
                    self.copy(char.len_utf8());
                    is_value = false;
                }
            }
            if is_read && is_on && (!open.is_empty() || !tag.nested) && self.is_read() {
                self.out.push('|');
                self.out.push_str(FILTER);
            }
        }
    }

    /// A text in quotes.
    fn text(&mut self, quote: char) {
        self.copy(1);
        while let Some(at) = self.rest.find([quote, '\\']) {
            let is_end = self.rest.get(at..).is_some_and(|rest| rest.starts_with(quote));
            self.copy(at + 1);
            if is_end {
                return;
            }
            self.copy(self.rest.chars().next().map_or(0, char::len_utf8));
        }
        self.copy(self.rest.len());
    }

    /// Whether a value ends here, by what follows, and something may be done with all of it.
    fn is_read(&self) -> bool {
        let next = self.rest.trim_start();
        if let Some(filter) = next.strip_prefix('|') {
            let filter = filter.trim_start();
            let name = filter
                .find(|char| !is_word(char))
                .map_or(filter, |end| filter.get(..end).unwrap_or_default());
            return !CHEAP.contains(&name);
        }
        let is_named = next.starts_with('=') && !next.starts_with("==");
        !is_named && !next.starts_with(['.', '[', '('])
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b14_values_are_counted_where_they_are_read() {
        for (source, expected) in [
            ("a {{ x }} b {# {{ x }} #}", "a {{ x! }} b {# {{ x }} #}"),
            ("{{- x.y[z].f(a, b=c) -}}", "{{- x.y[z!].f(a!, b=c!)! -}}"),
            ("{% set ns.x = ns.x + [x] %}", "{% set ns.x = ns.x! + [x!] %}"),
            ("{{ ([x] * 9)[0] + [[1] * 2, 3] }}", "{{ ([x!] * 9)[0]! + [[1] * 2, 3]! }}"),
            ("{% set a, b = x, x %}{% set c %}", "{% set a, b = x!, x! %}{% set c %}"),
            ("{% for m in x if m is not string %}", "{% for m in x! if m! is not string %}"),
            (
                "{% if x is divisibleby 3 and not y == 'a' ~ 1.5 %}",
                "{% if x! is divisibleby 3 and not y! == 'a' ~ 1.5 %}",
            ),
            ("{{ x|length + x | default(y) | upper }}", "{{ x|length! + x | default(y!)! | upper! }}"),
            ("{{ {'a': {'b': x}} }}", "{{ {'a': {'b': x!}} }}"),
            (
                "{% macro m(a, b=[]) -%}{% call m(x) %}{% do f(x) %}",
                "{% macro m(a, b=[]) -%}{% call m(x) %}{% do f(x!) %}",
            ),
            ("{% raw %}{{ x }}{%- endraw %}{{ x }}", "{% raw %}{{ x }}{%- endraw %}{{ x! }}"),
            ("{{ 'it\\'s }}' + \"{{ x\" + x }}", "{{ 'it\\'s }}' + \"{{ x\" + x! }}"),
            ("{% if x %", "{% if x! %"),
            ("{{ 'a", "{{ 'a"),
            ("{", "{"),
        ] {
            let expected = expected.replace('!', "|bounded_value");
            assert_eq!(with_bounds(source), Some(expected), "{source}");
        }
    }
}
