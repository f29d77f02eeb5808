//! Values as a JSON schema allows them, in the notation of a dialect.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    expression::{Expression, Rules},
    scalar::{DIGITS, char_without, digits, integer, text_of},
};
use crate::literal::{self, LiteralStyle};

/// How deep values nest; what is deeper is left out.
const MAX_DEPTH: usize = 12;
/// How many items a list has, where the schema does not say.
const MAX_ITEMS: usize = 16;
/// How many members an object has beside those that its schema names.
const MAX_MEMBERS: usize = 8;
const HEX: &[(char, char)] = &[('0', '9'), ('a', 'f')];
const ESCAPES: &[(char, char)] = &[('"', '"'), ('\\', '\\'), ('n', 'n'), ('r', 'r'), ('t', 't')];

/// How values are written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Notation {
    Json,
    Literals(LiteralStyle),
}

/// Values of the parts of one schema.
pub(super) struct Values<'s> {
    pub(super) rules: &'s mut Rules,
    /// The whole schema, for references.
    pub(super) root: &'s Value,
    pub(super) notation: Notation,
}

/// A schema as it is about one type of values.
pub(super) struct Typed {
    pub(super) kind: &'static str,
    schema: Value,
}

impl Typed {
    /// The only text that it allows.
    pub(super) fn fixed(&self) -> Option<&str> {
        self.schema.get("const")?.as_str()
    }

    pub(super) fn schema(&self) -> &Value {
        &self.schema
    }
}

impl Values<'_> {
    /// What the schema allows; `None` where that cannot be written in the notation, or takes too many rules.
    pub(super) fn value(&mut self, schema: &Value, depth: usize) -> Option<Expression> {
        self.rules.step()?;
        let kinds = self.kinds(schema, depth)?;
        let values: Option<Vec<_>> = kinds.iter().map(|typed| self.typed(typed, depth)).collect();
        one_of(values?, self.rules)
    }

    /// The types that the schema allows.
    pub(super) fn kinds(&self, schema: &Value, depth: usize) -> Option<Vec<Typed>> {
        let Value::Object(members) = schema else {
            return Some(any(depth));
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(reference.strip_prefix('#')?)?;
            return if depth > MAX_DEPTH { None } else { self.kinds(target, depth + 1) };
        }
        if let Some(parts) = members.get("allOf").and_then(Value::as_array) {
            let mut whole = members.clone();
            whole.remove("allOf");
            for part in parts {
                conjoin(&mut whole, self.resolved(part)?.as_object()?);
            }
            return self.kinds(&whole.into(), depth + 1);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(parts) = members.get(key).and_then(Value::as_array) {
                let kinds: Option<Vec<_>> = parts.iter().map(|part| self.kinds(part, depth + 1)).collect();
                return kinds.map(|kinds| kinds.into_iter().flatten().collect());
            }
        }
        let allowed = match (members.get("const"), members.get("enum")) {
            (Some(value), _) => Some(std::slice::from_ref(value)),
            (None, Some(values)) => values.as_array().map(Vec::as_slice),
            (None, None) => None,
        };
        if let Some(allowed) = allowed {
            let fixed = |value: &Value| Typed {
                kind: crate::render::type_name(value),
                schema: Value::from_iter([("const", value.clone())]),
            };
            return Some(allowed.iter().map(fixed).collect());
        }
        let named: Vec<&str> = match members.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ if members.contains_key("properties") => vec!["object"],
            _ if members.contains_key("items") => vec!["array"],
            _ => return Some(any(depth)),
        };
        let nullable = members.get("nullable") == Some(&Value::Bool(true));
        let typed = |kind: &'static str| Typed { kind, schema: schema.clone() };
        let mut kinds: Vec<Typed> = named.into_iter().filter_map(known).map(typed).collect();
        if nullable && !kinds.iter().any(|typed| typed.kind == "null") {
            kinds.push(typed("null"));
        }
        Some(kinds)
    }

    fn resolved<'v>(&'v self, schema: &'v Value) -> Option<&'v Value> {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.root.pointer(reference.strip_prefix('#')?),
            None => Some(schema),
        }
    }

    /// Values of one type.
    pub(super) fn typed(&mut self, typed: &Typed, depth: usize) -> Option<Expression> {
        let schema = &typed.schema;
        if let Some(value) = schema.get("const") {
            return Some(Expression::text(self.written(value)?));
        }
        match typed.kind {
            "null" => Some(Expression::text(self.written(&Value::Null)?)),
            "boolean" => {
                let both = [true, false].map(|value| self.written(&value.into()).map(Expression::text));
                one_of(both.into_iter().collect::<Option<_>>()?, self.rules)
            }
            "integer" => self.rules.rule(integer(schema)),
            "number" => {
                let fraction = Expression::Sequence(vec![Expression::text("."), digits(1, DIGITS)]);
                let whole = self.rules.rule(integer(schema))?;
                let fraction = self.rules.rule(fraction)?;
                self.rules.rule(Expression::Sequence(vec![whole, fraction.optional()]))
            }
            "string" => self.string(schema),
            _ if depth > MAX_DEPTH => None,
            "array" => self.array(schema, depth),
            _ => self.object(schema, depth),
        }
    }

    fn written(&self, value: &Value) -> Option<String> {
        match self.notation {
            Notation::Json => serde_json::to_string(value).ok(),
            Notation::Literals(style) => literal::write_value(style, value),
        }
    }

    fn string(&mut self, schema: &Value) -> Option<Expression> {
        let own = match self.notation {
            Notation::Literals(style) => style.quotes.first(),
            Notation::Json => None,
        };
        let (quote, char) = match own {
            Some(quote) => (*quote, char_without(&[quote], schema)),
            None => {
                let plain = Expression::Except { chars: BTreeSet::from(['"', '\\']), lines: false };
                let escape = Expression::Sequence(vec![Expression::text("\\"), Expression::Within(ESCAPES)]);
                let mut chars = vec![plain, escape];
                if matches!(self.notation, Notation::Json) {
                    let digits = Expression::Repeat(Box::new(Expression::Within(HEX)), 2, 2);
                    // Not those of surrogates, which mean something in pairs only.
                    chars.push(Expression::Sequence(vec![Expression::text("\\u00"), digits]));
                }
                ("\"", Expression::OneOf(chars))
            }
        };
        let inner = text_of(char, schema, self.rules)?;
        let quote = Expression::text(quote);
        self.rules.rule(Expression::Sequence(vec![quote.clone(), inner, quote]))
    }

    fn array(&mut self, schema: &Value, depth: usize) -> Option<Expression> {
        let number =
            |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let least = number("minItems").unwrap_or(0);
        let most = number("maxItems").unwrap_or(MAX_ITEMS).min(MAX_ITEMS.max(least));
        let item = match schema.get("items") {
            Some(items) => self.value(items, depth + 1)?,
            None => self.value(&Value::Bool(true), depth + 1)?,
        };
        let item = self.rules.rule(item)?;
        let more = Expression::Sequence(vec![self.separator(), item.clone()]);
        let more = self.rules.rule(more)?;
        let items = match most {
            0 => Expression::nothing(),
            _ => {
                let rest = Expression::Repeat(Box::new(more), least.saturating_sub(1), most - 1);
                let items = Expression::Sequence(vec![item, rest]);
                if least == 0 { self.rules.rule(items)?.optional() } else { items }
            }
        };
        let (open, close) = (Expression::text("["), Expression::text("]"));
        self.rules.rule(Expression::Sequence(vec![open, items, close]))
    }

    pub(super) fn object(&mut self, schema: &Value, depth: usize) -> Option<Expression> {
        let named: Vec<_> = members_of(schema).collect();
        let (open, close) = (Expression::text("{"), Expression::text("}"));
        let members = if named.is_empty() {
            match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => Expression::nothing(),
                other => self.free_members(other.unwrap_or(&Value::Bool(true)), depth)?,
            }
        } else {
            let mut members = Vec::with_capacity(named.len());
            for (key, schema_of, is_required) in named {
                let value = self.value(schema_of, depth + 1);
                match (self.key(key), value) {
                    (Some(key), Some(value)) => {
                        members.push((Expression::Sequence(vec![key, value]), is_required));
                    }
                    // What cannot be written can be left out.
                    _ if !is_required => {}
                    _ => return None,
                }
            }
            let separator = self.separator();
            in_order(members, &separator, self.rules)?
        };
        self.rules.rule(Expression::Sequence(vec![open, members, close]))
    }

    /// Members that no schema names.
    fn free_members(&mut self, schema: &Value, depth: usize) -> Option<Expression> {
        const NAME: &[(char, char)] = &[('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')];
        let name = Expression::Repeat(Box::new(Expression::Within(NAME)), 1, 32);
        let key = match self.notation {
            Notation::Literals(style) if !style.quotes.is_empty() => vec![name, Expression::text(":")],
            _ => vec![Expression::text("\""), name, Expression::text("\""), Expression::text(": ")],
        };
        let value = self.value(schema, depth + 1)?;
        let member = self.rules.rule(Expression::Sequence(key.into_iter().chain([value]).collect()))?;
        let more = Expression::Sequence(vec![self.separator(), member.clone()]);
        let more = self.rules.rule(more)?;
        let more = Expression::Repeat(Box::new(more), 0, MAX_MEMBERS - 1);
        Some(self.rules.rule(Expression::Sequence(vec![member, more]))?.optional())
    }

    /// What stands before a member's value.
    fn key(&self, key: &str) -> Option<Expression> {
        match self.notation {
            Notation::Json => {
                let key = serde_json::to_string(key).ok()?;
                Some(Expression::Sequence(vec![
                    Expression::text(key + ":"),
                    Expression::text(" ").optional(),
                ]))
            }
            Notation::Literals(style) => literal::write_member_key(style, key).map(Expression::Text),
        }
    }

    fn separator(&self) -> Expression {
        match self.notation {
            Notation::Json => {
                Expression::Sequence(vec![Expression::text(","), Expression::text(" ").optional()])
            }
            Notation::Literals(style) => Expression::text(style.separator()),
        }
    }
}

/// The members that a schema names, each with its own schema and whether it has to be there. Some have to that are not among the properties.
pub(super) fn members_of(schema: &Value) -> impl Iterator<Item = (&str, &Value, bool)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = {
        let names = schema.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let others = schema.get("additionalProperties").filter(|others| **others != Value::Bool(false));
    let others = others.unwrap_or(&Value::Bool(true));
    let unnamed: Vec<_> = required
        .iter()
        .filter(|name| properties.is_none_or(|properties| !properties.contains_key(**name)))
        .map(|name| (*name, others, true))
        .collect();
    let named = properties.into_iter().flatten();
    named.map(move |(key, of)| (key.as_str(), of, required.contains(&key.as_str()))).chain(unnamed)
}

/// Members in their order, those that are not required or not, with separators between.
pub(super) fn in_order(
    members: Vec<(Expression, bool)>,
    separator: &Expression,
    rules: &mut Rules,
) -> Option<Expression> {
    // What follows when nothing has been written yet, and when something has.
    let (mut first, mut later) = (Expression::nothing(), Expression::nothing());
    for (member, is_required) in members.into_iter().rev() {
        let member = rules.rule(member)?;
        let begun = Expression::Sequence(vec![member.clone(), later.clone()]);
        let next = rules.rule(Expression::Sequence(vec![separator.clone(), member]))?;
        (first, later) = if is_required {
            (begun, Expression::Sequence(vec![next, later]))
        } else {
            (Expression::OneOf(vec![begun, first]), Expression::Sequence(vec![next.optional(), later]))
        };
        (first, later) = (rules.rule(first)?, rules.rule(later)?);
    }
    Some(first)
}

/// One of these.
pub(super) fn one_of(mut all: Vec<Expression>, rules: &mut Rules) -> Option<Expression> {
    match all.len() {
        0 => None,
        1 => all.pop(),
        _ => rules.rule(Expression::OneOf(all)),
    }
}

/// Any value, which is a simple one further down.
fn any(depth: usize) -> Vec<Typed> {
    let kinds: &[&'static str] = if depth < 2 {
        &["string", "number", "boolean", "null", "array", "object"]
    } else {
        &["string", "number", "boolean", "null"]
    };
    kinds.iter().map(|kind| Typed { kind, schema: Value::Bool(true) }).collect()
}

fn known(kind: &str) -> Option<&'static str> {
    ["string", "integer", "number", "boolean", "null", "array", "object"]
        .into_iter()
        .find(|known| *known == kind)
}

/// Adds what a part of a conjunction says.
fn conjoin(whole: &mut Map<String, Value>, part: &Map<String, Value>) {
    for (key, value) in part {
        match (whole.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => {
                for (name, schema) in more {
                    known.entry(name).or_insert_with(|| schema.clone());
                }
            }
            (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                known.extend(more.iter().cloned());
            }
            (Some(_), _) => {}
            (None, value) => {
                whole.insert(key.clone(), value.clone());
            }
        }
    }
}
