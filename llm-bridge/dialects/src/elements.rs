//! Values written as trees of elements: `<list><item>…</item></list>`, typed by the schema.
//!
//! A tag is a delimiter, a name and `>`; the delimiter of a closing tag is that of an opening one and more.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    ParseOptions,
    body::cut,
    repair::MAX_DEPTH,
    typing::{Shape, quoted},
};

/// What the entries of an array are called.
const ITEM: &str = "item";

/// Writes the content of one argument's element as JSON, by the schema of the tool's arguments; whether it was
/// repaired. Nothing where its tags do not match.
pub(super) fn write_argument(
    text: &str,
    open: &str,
    close: &str,
    root: Option<&Value>,
    name: &str,
    parsing: ParseOptions,
    out: &mut String,
) -> Option<bool> {
    let tree = parse(text, open, close)?;
    let mut writer = Writer { parsing, repaired: false, out };
    writer.element(&tree, &Shape::of(root, root).property(name))?;
    Some(writer.repaired)
}

#[derive(Debug, Default)]
struct Element<'a> {
    name: &'a str,
    /// The text around its children.
    text: Vec<&'a str>,
    children: Vec<Element<'a>>,
    /// Its end is missing.
    open: bool,
}

fn parse<'a>(text: &'a str, open: &str, close: &str) -> Option<Element<'a>> {
    let mut stack = vec![Element::default()];
    let mut rest = text;
    while let Some((before, from)) = split(rest, open) {
        stack.last_mut()?.text.push(before);
        let end = from.strip_prefix(close);
        let (name, behind) = end.or_else(|| from.strip_prefix(open))?.split_once('>')?;
        if end.is_some() {
            if stack.last()?.name != name {
                // The end of an empty list may be missing; which it was is asked when it is written.
                leave(&mut stack, true)?;
            }
            if stack.last()?.name != name {
                return None;
            }
            leave(&mut stack, false)?;
        } else if !is_name(name) || stack.len() > MAX_DEPTH {
            return None;
        } else {
            stack.push(Element { name, ..Element::default() });
        }
        rest = behind;
    }
    stack.last_mut()?.text.push(rest);
    if stack.len() > 1 {
        leave(&mut stack, true)?;
    }
    stack.pop().filter(|_| stack.is_empty())
}

/// Ends the innermost element; one whose own end is missing has to be empty.
fn leave(stack: &mut Vec<Element<'_>>, open: bool) -> Option<()> {
    let mut element = stack.pop()?;
    if open && !(element.children.is_empty() && element.is_blank()) {
        return None;
    }
    element.open = open;
    stack.last_mut()?.children.push(element);
    Some(())
}

/// The text before the first delimiter, and from it on.
fn split<'a>(text: &'a str, delimiter: &str) -> Option<(&'a str, &'a str)> {
    text.find(delimiter).filter(|_| !delimiter.is_empty()).map(|at| text.split_at(at))
}

fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.contains(['<', '>', '/', '\n'])
}

impl Element<'_> {
    fn is_blank(&self) -> bool {
        self.text.iter().all(|text| text.trim().is_empty())
    }
}

/// Writes a tree as JSON, by the schema.
struct Writer<'o> {
    parsing: ParseOptions,
    repaired: bool,
    out: &'o mut String,
}

impl Writer<'_> {
    fn element(&mut self, element: &Element<'_>, shape: &Shape<'_>) -> Option<()> {
        if element.children.is_empty() {
            return self.text(element, shape);
        }
        let types = self.parsing.types(shape);
        let same = |name: &str| element.children.iter().all(|child| child.name == name);
        let items = || same(ITEM) && !shape.property(ITEM).is_known();
        let first = element.children.first()?;
        if types.has_array() && same(first.name) && (!types.has_object() || items()) {
            if !element.is_blank() {
                return None;
            }
            return self.list(element.children.iter(), &shape.items());
        }
        self.members(element, shape)
    }

    fn text(&mut self, element: &Element<'_>, shape: &Shape<'_>) -> Option<()> {
        let types = self.parsing.types(shape);
        let container = if types.has_array() { Some("[]") } else { types.has_object().then_some("{}") };
        match container.filter(|_| element.is_blank() && !types.has_text()) {
            Some(container) => self.out.push_str(container),
            // A value may be what is missing, not its end.
            None if element.open => return None,
            None => self.repaired |= types.write(&self.parsing.value(&element.text.concat()), self.out),
        }
        self.repaired |= element.open;
        Some(())
    }

    /// An object; tags that stand there more than once are lists.
    fn members(&mut self, element: &Element<'_>, shape: &Shape<'_>) -> Option<()> {
        let mut places = HashMap::new();
        let mut members: Vec<Vec<&Element<'_>>> = Vec::new();
        for child in &element.children {
            let place = *places.entry(child.name).or_insert(members.len());
            match members.get_mut(place) {
                Some(member) => member.push(child),
                None => members.push(vec![child]),
            }
        }
        let mut before = '{';
        for member in &members {
            let first = member.first()?;
            self.out.push(before);
            before = ',';
            key(first.name, self.out);
            let shape = shape.property(first.name);
            if member.len() == 1 {
                self.element(first, &shape)?;
            } else if self.parsing.types(&shape).has_array() {
                self.list(member.iter().copied(), &shape.items())?;
            } else {
                self.list(member.iter().copied(), &shape)?;
            }
        }
        if !element.is_blank() {
            // Text that stands beside elements has no name of its own.
            let mut name = String::from("$text");
            while places.contains_key(name.as_str()) {
                name.insert(0, '$');
            }
            self.out.push(before);
            key(&name, self.out);
            let text = element.text.concat();
            quoted(&self.parsing.value(text.trim()), self.out);
            self.repaired = true;
        }
        self.out.push('}');
        Some(())
    }

    fn list<'a>(&mut self, entries: impl Iterator<Item = &'a Element<'a>>, shape: &Shape<'_>) -> Option<()> {
        for (index, entry) in entries.enumerate() {
            self.out.push(if index == 0 { '[' } else { ',' });
            self.element(entry, shape)?;
        }
        self.out.push(']');
        Some(())
    }
}

fn key(name: &str, out: &mut String) {
    quoted(name, out);
    out.push(':');
}

/// Where the end of an element is, which may hold others of its name.
#[derive(Debug)]
pub(super) struct End {
    pos: usize,
    depth: usize,
}

impl End {
    /// `at` is the offset of the element's content.
    pub(super) fn new(at: usize) -> Self {
        Self { pos: at, depth: 0 }
    }

    /// Looks on in `text`, which has grown; the offset of the element's closing tag once it is there.
    pub(super) fn feed(&mut self, text: &str, open: &str, close: &str, name: &str) -> Option<usize> {
        loop {
            let rest = cut(text, self.pos..text.len());
            let Some((before, from)) = split(rest, open) else {
                // The delimiter may have begun.
                let safe = rest.len().saturating_sub(open.len().saturating_sub(1));
                self.pos += rest.floor_char_boundary(safe);
                return None;
            };
            self.pos += before.len();
            let end = format!("{close}{name}>");
            if from.starts_with(&end) {
                if self.depth == 0 {
                    return Some(self.pos);
                }
                self.depth -= 1;
            } else if end.starts_with(from) || format!("{open}{name}>").starts_with(from) {
                return None;
            } else if from.starts_with(&format!("{open}{name}>")) {
                self.depth += 1;
            }
            self.pos += open.len();
        }
    }
}

/// Writes a value as the content of an element; nothing if it cannot be distinguished from tags.
pub(super) fn render(value: &Value, open: &str, close: &str, out: &mut String) -> Option<()> {
    render_at(value, open, close, 0, out)
}

fn render_at(value: &Value, open: &str, close: &str, depth: usize, out: &mut String) -> Option<()> {
    let mut child = |name: &str, value: &Value| {
        out.push_str(&format!("{open}{name}>"));
        render_at(value, open, close, depth + 1, out)?;
        out.push_str(&format!("{close}{name}>"));
        Some(())
    };
    match value {
        _ if depth > MAX_DEPTH => None,
        Value::Array(values) => values.iter().try_for_each(|value| child(ITEM, value)),
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            (is_name(name) && !name.contains(open)).then_some(())?;
            child(name, value)
        }),
        Value::String(text) => {
            let ends = format!("{text}{close}").find(open) == Some(text.len());
            out.push_str(ends.then_some(text)?);
            Some(())
        }
        other => {
            out.push_str(&other.to_string());
            Some(())
        }
    }
}

#[cfg(test)]
mod tests;
