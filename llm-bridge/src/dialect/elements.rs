//! Values written as trees of elements: `<list><item>…</item></list>`, typed by the schema.
//!
//! A tag is a mark, a name and `>`; the mark of a closing tag is that of an opening one and more.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    body::cut,
    repair::MAX_DEPTH,
    typing::{Shape, escape},
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
    out: &mut String,
) -> Option<bool> {
    element(text, open, close, &Shape::of(root, root).property(name), out)
}

fn element(text: &str, open: &str, close: &str, shape: &Shape<'_>, out: &mut String) -> Option<bool> {
    let tree = parse(text, open, close)?;
    let mut repaired = false;
    tree.write(shape, &mut repaired, out)?;
    Some(repaired)
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

/// The text before the first mark, and from it on.
fn split<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    text.find(mark).filter(|_| !mark.is_empty()).map(|at| text.split_at(at))
}

fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.contains(['<', '>', '/', '\n'])
}

impl Element<'_> {
    fn is_blank(&self) -> bool {
        self.text.iter().all(|text| text.trim().is_empty())
    }

    fn write(&self, shape: &Shape<'_>, repaired: &mut bool, out: &mut String) -> Option<()> {
        if self.children.is_empty() {
            return self.write_text(shape, repaired, out);
        }
        let types = shape.types();
        let same = |name: &str| self.children.iter().all(|child| child.name == name);
        let items = || same(ITEM) && !shape.property(ITEM).is_known();
        let first = self.children.first()?;
        if types.has_array() && same(first.name) && (!types.has_object() || items()) {
            if !self.is_blank() {
                return None;
            }
            return write_list(self.children.iter(), &shape.items(), repaired, out);
        }
        self.write_members(shape, repaired, out)
    }

    fn write_text(&self, shape: &Shape<'_>, repaired: &mut bool, out: &mut String) -> Option<()> {
        let types = shape.types();
        let container = if types.has_array() { Some("[]") } else { types.has_object().then_some("{}") };
        match container.filter(|_| self.is_blank() && !types.has_text()) {
            Some(container) => out.push_str(container),
            // A value may be what is missing, not its end.
            None if self.open => return None,
            None => *repaired |= types.write(&self.text.concat(), out),
        }
        *repaired |= self.open;
        Some(())
    }

    /// An object; tags that stand there more than once are lists.
    fn write_members(&self, shape: &Shape<'_>, repaired: &mut bool, out: &mut String) -> Option<()> {
        let mut places = HashMap::new();
        let mut members: Vec<Vec<&Element<'_>>> = Vec::new();
        for child in &self.children {
            let place = *places.entry(child.name).or_insert(members.len());
            match members.get_mut(place) {
                Some(member) => member.push(child),
                None => members.push(vec![child]),
            }
        }
        let mut before = '{';
        for member in &members {
            let first = member.first()?;
            out.push(before);
            before = ',';
            key(first.name, out);
            let shape = shape.property(first.name);
            if member.len() == 1 {
                first.write(&shape, repaired, out)?;
            } else if shape.types().has_array() {
                write_list(member.iter().copied(), &shape.items(), repaired, out)?;
            } else {
                write_list(member.iter().copied(), &shape, repaired, out)?;
            }
        }
        if !self.is_blank() {
            // Text that stands beside elements has no name of its own.
            let mut name = String::from("$text");
            while places.contains_key(name.as_str()) {
                name.insert(0, '$');
            }
            out.push(before);
            key(&name, out);
            let text = self.text.concat();
            out.push('"');
            escape(text.trim(), out);
            out.push('"');
            *repaired = true;
        }
        out.push('}');
        Some(())
    }
}

fn write_list<'a>(
    entries: impl Iterator<Item = &'a Element<'a>>,
    shape: &Shape<'_>,
    repaired: &mut bool,
    out: &mut String,
) -> Option<()> {
    for (index, entry) in entries.enumerate() {
        out.push(if index == 0 { '[' } else { ',' });
        entry.write(shape, repaired, out)?;
    }
    out.push(']');
    Some(())
}

fn key(name: &str, out: &mut String) {
    out.push('"');
    escape(name, out);
    out.push_str("\":");
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
                // The mark may have begun.
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

/// Writes a value as the content of an element; nothing if it cannot be told from tags.
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
