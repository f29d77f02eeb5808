//! What JSON schemas say of values. Schemas that apply together are a list of references into their document, so that none is copied.

use std::{
    collections::{HashMap, HashSet},
    ptr,
    rc::Rc,
    slice,
};

use serde_json::{Map, Value};

use super::{
    expression::{Obstacle, Rules},
    number::{Bound, Bounds},
};

/// A schema that is an object.
type Part<'s> = &'s Map<String, Value>;

/// What says something of a value itself; others only point to what does, or are for people.
const SAYS: &[&str] = &[
    "type",
    "nullable",
    "const",
    "enum",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

/// A type of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    String,
    /// Whole or not.
    Number,
    Integer,
    Boolean,
    Null,
    Array,
    Object,
}

impl Kind {
    const SIMPLE: &[Self] = &[Self::String, Self::Number, Self::Integer, Self::Boolean, Self::Null];
    const ALL: &[Self] =
        &[Self::String, Self::Number, Self::Integer, Self::Boolean, Self::Null, Self::Array, Self::Object];

    /// The second names are no JSON Schema, but tools written by hand have them.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "string" | "str" | "text" => Self::String,
            "number" | "float" | "double" => Self::Number,
            "integer" | "int" => Self::Integer,
            "boolean" | "bool" => Self::Boolean,
            "null" => Self::Null,
            "array" | "list" => Self::Array,
            "object" | "dict" => Self::Object,
            _ => return None,
        })
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    /// Whether the schema's `type` allows it.
    fn fits(self, part: Part) -> bool {
        let is = |name: &Value| {
            let named = name.as_str().and_then(Self::named);
            named == Some(self) || (self, named) == (Self::Integer, Some(Self::Number))
        };
        match part.get("type") {
            None => true,
            Some(_) if self == Self::Null && part.get("nullable") == Some(&Value::Bool(true)) => true,
            Some(Value::Array(names)) => names.iter().any(is),
            Some(name) => is(name),
        }
    }
}

/// Values of one type, and the schemas that all apply to them.
#[derive(Debug)]
pub(super) struct Typed<'s> {
    pub(super) kind: Kind,
    /// The only value that fits.
    pub(super) fixed: Option<&'s Value>,
    /// Only those that say something.
    pub(super) parts: Rc<[Part<'s>]>,
}

/// A member that an object may have, and the schemas that all apply to it.
#[derive(Debug)]
pub(super) struct Member<'s> {
    pub(super) name: &'s str,
    pub(super) schemas: Vec<&'s Value>,
    pub(super) is_required: bool,
}

/// The types of the values to which these schemas all apply, each as often as there are alternatives. A value of which they say nothing
/// has parts only where these are wanted. There may be none.
pub(super) fn typed<'s>(
    root: &'s Value,
    schemas: &[&'s Value],
    with_parts: bool,
    rules: &mut Rules,
) -> Result<Vec<Typed<'s>>, Obstacle> {
    let mut all = Vec::new();
    for parts in alternatives(root, schemas, rules)? {
        rules.spend(parts.len())?;
        let typed = |kind, fixed| Typed { kind, fixed, parts: Rc::clone(&parts) };
        match enumerated(&parts, rules)? {
            Some(values) => {
                let values = values.into_iter().map(|value| typed(Kind::of(value), Some(value)));
                all.extend(values.filter(Typed::fits));
            }
            None => all.extend(kinds(&parts, with_parts).into_iter().map(|kind| typed(kind, None))),
        }
    }
    Ok(all)
}

/// What has to be looked at of one alternative.
#[derive(Debug, Clone, Default)]
struct Branch<'s> {
    /// Not looked at yet.
    todo: Vec<&'s Value>,
    /// Looked at. Each is there once, so that circular references end.
    known: Vec<Part<'s>>,
    /// Lists of schemas one of which has to apply.
    choices: Vec<&'s [Value]>,
}

/// The schemas that apply together, references followed, for each choice that `anyOf` and `oneOf` leave.
fn alternatives<'s>(
    root: &'s Value,
    schemas: &[&'s Value],
    rules: &mut Rules,
) -> Result<Vec<Rc<[Part<'s>]>>, Obstacle> {
    let mut alternatives = Vec::new();
    let mut open = vec![Branch { todo: schemas.iter().rev().copied().collect(), ..Branch::default() }];
    while let Some(mut branch) = open.pop() {
        if !branch.settle(root, rules)? {
            continue;
        }
        let Some(options) = branch.choices.pop() else {
            let says = |part: &Part| SAYS.iter().any(|key| part.contains_key(*key));
            alternatives.push(branch.known.into_iter().filter(says).collect());
            continue;
        };
        for option in options.iter().rev() {
            rules.spend(1 + branch.known.len() + branch.choices.len())?;
            let mut next = branch.clone();
            next.todo.push(option);
            open.push(next);
        }
    }
    Ok(alternatives)
}

impl<'s> Branch<'s> {
    /// Looks at all that applies; whether there may be a value.
    fn settle(&mut self, root: &'s Value, rules: &mut Rules) -> Result<bool, Obstacle> {
        while let Some(schema) = self.todo.pop() {
            rules.spend(1 + self.known.len() / 8)?;
            let part = match schema {
                Value::Bool(false) => return Ok(false),
                Value::Object(part) => part,
                _ => continue,
            };
            if self.known.iter().any(|known| ptr::eq(*known, part)) {
                continue;
            }
            self.known.push(part);
            let list = |key: &str| part.get(key).and_then(Value::as_array).map(Vec::as_slice);
            self.todo.extend(list("allOf").into_iter().flatten().rev());
            self.choices.extend(["oneOf", "anyOf"].into_iter().filter_map(list));
            if let Some(reference) = part.get("$ref").and_then(Value::as_str) {
                rules.spend(reference.len() / 8)?;
                match reference.strip_prefix('#').and_then(|path| root.pointer(path)) {
                    Some(target) => self.todo.push(target),
                    None => return Ok(false),
                }
            }
        }
        Ok(true)
    }
}

/// The values that `const` and `enum` leave, where there are such.
fn enumerated<'s>(parts: &[Part<'s>], rules: &mut Rules) -> Result<Option<Vec<&'s Value>>, Obstacle> {
    let mut left: Option<HashMap<String, &Value>> = None;
    let mut order: Vec<&'s Value> = Vec::new();
    let constants = parts.iter().filter_map(|part| part.get("const").map(slice::from_ref));
    let enums = parts.iter().filter_map(|part| part.get("enum").and_then(Value::as_array).map(Vec::as_slice));
    for values in constants.chain(enums) {
        let mut written = HashMap::new();
        for value in values {
            let text = value.to_string();
            rules.spend(1 + text.len() / 8)?;
            written.insert(text, value);
        }
        left = Some(match left {
            None => {
                order.extend(values);
                written
            }
            Some(left) => left.into_iter().filter(|(text, _)| written.contains_key(text)).collect(),
        });
    }
    Ok(left.map(|left| {
        let known: HashSet<*const Value> = left.into_values().map(ptr::from_ref).collect();
        order.retain(|value| known.contains(&ptr::from_ref(*value)));
        order
    }))
}

/// The types of values that these schemas allow.
fn kinds(parts: &[Part], with_parts: bool) -> Vec<Kind> {
    let says = |keys: &[&str]| parts.iter().any(|part| keys.iter().any(|key| part.contains_key(*key)));
    let is_object = says(&["properties", "required", "additionalProperties"]);
    let is_array = says(&["items", "prefixItems"]);
    let candidates = match (says(&["type"]), is_object, is_array) {
        (true, ..) => Kind::ALL,
        (_, true, true) => &[Kind::Object, Kind::Array],
        (_, true, false) => &[Kind::Object],
        (_, false, true) => &[Kind::Array],
        _ if with_parts => Kind::ALL,
        _ => Kind::SIMPLE,
    };
    let mut kinds: Vec<_> =
        candidates.iter().copied().filter(|kind| parts.iter().all(|part| kind.fits(part))).collect();
    if kinds.contains(&Kind::Number) {
        kinds.retain(|kind| *kind != Kind::Integer);
    }
    kinds
}

impl<'s> Typed<'s> {
    /// What the schemas say under this key.
    fn said(&self, key: &str) -> impl Iterator<Item = &'s Value> {
        self.parts.iter().filter_map(move |part| part.get(key))
    }

    /// Whether its only value fits the schemas beside their list of values.
    fn fits(&self) -> bool {
        let Some(value) = self.fixed else { return true };
        let fits = match value {
            Value::String(text) => {
                let (least, most) = self.counts("minLength", "maxLength");
                let length = text.chars().count();
                least <= length && most.is_none_or(|most| length <= most)
            }
            Value::Number(number) => number.as_f64().is_none_or(|number| self.bounds().admit(number)),
            _ => true,
        };
        fits && self.parts.iter().all(|part| self.kind.fits(part))
    }

    /// How many there are at least, and at most, by these keys.
    pub(super) fn counts(&self, least: &str, most: &str) -> (usize, Option<usize>) {
        // Beyond what can be counted there is nothing to tell apart.
        let count = |value: &Value| value.as_f64().map(|count| count.max(0.0) as usize);
        (self.said(least).filter_map(count).max().unwrap_or(0), self.said(most).filter_map(count).min())
    }

    /// The bounds of a number.
    pub(super) fn bounds(&self) -> Bounds {
        let mut bounds = Bounds::default();
        for part in self.parts.iter() {
            let bound = |key: &str, exclusive: &str| {
                // As drafts before the sixth have it.
                let is_exclusive = part.get(exclusive) == Some(&Value::Bool(true));
                let inclusive =
                    part.get(key).and_then(Value::as_f64).map(|value| Bound { value, is_exclusive });
                let other = part.get(exclusive).and_then(Value::as_f64);
                [inclusive, other.map(|value| Bound { value, is_exclusive: true })].into_iter().flatten()
            };
            bound("minimum", "exclusiveMinimum").for_each(|bound| bounds.raise(bound));
            bound("maximum", "exclusiveMaximum").for_each(|bound| bounds.lower(bound));
        }
        bounds
    }

    /// The members that are named: first those with schemas, then others that have to be there.
    pub(super) fn members(&self, rules: &mut Rules) -> Result<Vec<Member<'s>>, Obstacle> {
        let mut members: Vec<Member> = Vec::new();
        let mut places = HashMap::new();
        let named = self.said("properties").filter_map(Value::as_object).flat_map(Map::keys);
        let required = self.said("required").filter_map(Value::as_array).flatten().filter_map(Value::as_str);
        let names = named.map(|name| (name.as_str(), false)).chain(required.map(|name| (name, true)));
        for (name, is_required) in names {
            rules.spend(1)?;
            let place = *places.entry(name).or_insert_with(|| {
                members.push(Member { name, schemas: Vec::new(), is_required });
                members.len() - 1
            });
            if let Some(member) = members.get_mut(place) {
                member.is_required |= is_required;
            }
        }
        for member in &mut members {
            rules.spend(self.parts.len())?;
            let schema = |part: &Part<'s>| {
                let own = part.get("properties").and_then(|properties| properties.get(member.name));
                own.or_else(|| part.get("additionalProperties"))
            };
            member.schemas = self.parts.iter().filter_map(schema).collect();
        }
        Ok(members)
    }

    /// The schemas of members that are not named.
    pub(super) fn other_members(&self) -> Vec<&'s Value> {
        self.said("additionalProperties").collect()
    }

    /// How many items have a schema each.
    pub(super) fn positions(&self) -> usize {
        self.parts.iter().filter_map(|part| positional(part)).map(<[_]>::len).max().unwrap_or(0)
    }

    /// The schemas of the item at this position.
    pub(super) fn item(&self, at: usize) -> Vec<&'s Value> {
        let schema = |part: &Part<'s>| {
            let own = positional(part).and_then(|items| items.get(at));
            let others =
                if part.get("items").is_some_and(Value::is_array) { "additionalItems" } else { "items" };
            own.or_else(|| part.get(others))
        };
        self.parts.iter().filter_map(schema).collect()
    }
}

/// The schemas of items by position, also as drafts before 2020-12 have them.
fn positional<'s>(part: Part<'s>) -> Option<&'s [Value]> {
    let items = |key: &str| part.get(key).and_then(Value::as_array).map(Vec::as_slice);
    items("prefixItems").or_else(|| items("items"))
}
