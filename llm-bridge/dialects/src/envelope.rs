//! The JSON object that is one call: which of its members is the name, which the arguments.

use std::{collections::HashSet, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, value::RawValue};

use super::{
    json::JsonStyle,
    repair,
    typing::{Shape, Types, quoted},
};

/// Members that may stand beside name and arguments without meaning anything to the call.
pub(super) const SIDE: &[&str] = &["id", "type", "tool_call_id", "call_id", "index"];
/// The members that may hold name and arguments, as in the shape of the OpenAI interface.
pub(super) const NESTED: &[&str] = &["function", "tool_call", "function_call", "functionCall", "toolUse"];
/// The only member of an object around an array of calls, as in the answers of the OpenAI interface and for its parallel calls.
pub(super) const LISTED: &[&str] = &["tool_calls", "tool_uses", "function_calls"];
/// Other names of the members, which count where they name an offered tool.
const OTHER_NAMES: &[&str] = &["tool", "tool_name", "function_name", "action", "recipient_name"];
const OTHER_ARGUMENTS: &[&str] = &["input", "tool_input", "action_input"];

/// How far into arguments the properties of a schema are looked for.
const MAX_HEAD: usize = 2048;

/// Name and arguments of one call.
pub(super) struct Envelope {
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) has_arguments: bool,
    pub(super) repaired: bool,
    /// Its members have other names than the dialect's, or the arguments stand among them: its tool has to be offered.
    pub(super) unusual: bool,
    /// The arguments stand beside the name: they have to be those of the tool.
    pub(super) flat: bool,
}

impl Envelope {
    /// A call with the usual members.
    pub(super) fn of(name: String, arguments: String, repaired: bool) -> Self {
        Self { name, arguments, has_arguments: true, repaired, unusual: false, flat: false }
    }
}

/// What a member of the object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Name,
    Arguments,
    Other,
}

/// What the member of this name is, and whether only other dialects call it so.
pub(super) fn key(style: JsonStyle, name: &str) -> (Key, bool) {
    match name {
        _ if style.keyed => (Key::Other, false),
        _ if style.names.contains(&name) => (Key::Name, false),
        _ if style.arguments.contains(&name) => (Key::Arguments, false),
        _ if OTHER_NAMES.contains(&name) => (Key::Name, true),
        _ if OTHER_ARGUMENTS.contains(&name) => (Key::Arguments, true),
        _ => (Key::Other, false),
    }
}

/// Reads one whole object, strictly if that is possible.
pub(super) fn envelope(text: &str, style: JsonStyle) -> Option<Envelope> {
    if let Ok(members) = serde_json::from_str::<Members<'_>>(text) {
        return pick(members, style, false);
    }
    if let Some(fixed) = repair::value(text) {
        return pick(serde_json::from_str(&fixed).ok()?, style, true);
    }
    let fixed = repair::value(&without_value(text, style)?)?;
    let call = pick(serde_json::from_str(&fixed).ok()?, style, true)?;
    Some(Envelope { has_arguments: false, ..call })
}

/// An object whose last member is one for arguments that has no value, as models write it for tools that take none, with an empty one.
fn without_value(text: &str, style: JsonStyle) -> Option<String> {
    let before = text.trim_end().strip_suffix('}')?.trim_end().strip_suffix(':')?;
    let (_, key) = before.trim_end().strip_suffix('"')?.rsplit_once('"')?;
    style.arguments.contains(&key).then(|| format!("{before}: {{}}}}"))
}

/// Whether the text is an object with two members of one name.
pub(super) fn repeats_a_member(text: &str) -> bool {
    let mut names = HashSet::new();
    members(text).is_some_and(|members| !members.into_iter().all(|name| names.insert(name)))
}

/// The object that is the value of an object's only member, or is written in it as a string.
pub(super) fn wrapped_arguments(text: &str) -> Option<String> {
    let members = serde_json::from_str::<Members<'_>>(text).ok()?;
    let [(_, value)] = members.0.as_slice() else { return None };
    let raw = value.get();
    let written = raw.starts_with('"').then(|| serde_json::from_str::<String>(raw).ok()).flatten();
    let is_object = written.as_deref().unwrap_or(raw).trim_start().starts_with('{');
    object(raw).filter(|_| is_object).map(|(object, _)| object)
}

/// The arguments that stand in one that the tool does not have, if they are its own.
pub(super) fn unwrapped(arguments: &str, schema: Option<&Value>) -> Option<String> {
    let (schema, inner) = (schema?, wrapped_arguments(arguments)?);
    let own = |name: &String| schema.get("properties").is_some_and(|all| all.get(name).is_some());
    let foreign = members(arguments)?.iter().all(|name| !own(name));
    (foreign && fits(&members(&inner)?, schema)).then_some(inner)
}

/// The object that is written in a string of JSON; whether it was repaired.
pub(super) fn written_arguments(text: &str) -> Option<(String, bool)> {
    if repair::is_json(text) { object(text) } else { object(&repair::value(text)?) }
}

/// Whether the arguments are the schema of a tool's arguments: those of a definition that is repeated.
pub(super) fn is_schema(arguments: &str, schema: Option<&Value>) -> bool {
    let own = || schema.is_some_and(|schema| schema.pointer("/properties/properties").is_some());
    // Long arguments are not looked through: what describes a schema stands before its properties.
    let head = arguments.get(..arguments.floor_char_boundary(MAX_HEAD)).unwrap_or_default();
    if !head.contains("\"properties\"") || own() {
        return false;
    }
    let read = serde_json::from_str::<Value>(arguments);
    read.is_ok_and(|read| {
        read.get("type").is_some_and(|kind| kind == "object")
            && read.get("properties").is_some_and(Value::is_object)
    })
}

/// Whether arguments of these names are those of a tool: it has them all, and none is missing.
pub(super) fn fits(names: &[String], schema: &Value) -> bool {
    let has = |name: &String| schema.get("properties").is_some_and(|all| all.get(name).is_some());
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let given = |name: &Value| name.as_str().is_some_and(|name| names.iter().any(|given| given == name));
    names.iter().all(has) && required.into_iter().all(given)
}

/// The object with all arguments that stands in the place of the first, where that is none the argument takes itself.
/// So many of the arguments have been written without a name.
pub(super) fn all_in_one(arguments: &str, unnamed: usize, schema: Option<&Value>) -> Option<String> {
    let (schema, inner) = (schema?, wrapped_arguments(arguments).filter(|_| unnamed == 1)?);
    let (names, first) = (members(&inner)?, members(arguments)?);
    let first = Shape::of(Some(schema), Some(schema)).property(first.first()?);
    let own = first.types().is_some_and(Types::has_object)
        && names.iter().all(|name| first.property(name).is_known());
    (!own && fits(&names, schema)).then_some(inner)
}

/// Whether one of the first arguments, which are so many, is a list or an object and its tool takes none there.
pub(super) fn misplaced(arguments: &str, unnamed: usize, schema: Option<&Value>) -> bool {
    let Ok(members) = serde_json::from_str::<Members<'_>>(arguments) else { return false };
    members.0.iter().take(unnamed).any(|(name, value)| {
        let types = Shape::of(schema, schema).property(name).types();
        types.is_some_and(|types| match value.get().bytes().next() {
            Some(b'[') => !types.has_array(),
            Some(b'{') => !types.has_object(),
            _ => false,
        })
    })
}

/// The names of an object's members.
pub(super) fn members(text: &str) -> Option<Vec<String>> {
    let members = serde_json::from_str::<Members<'_>>(text).ok()?;
    Some(members.0.into_iter().map(|(name, _)| name).collect())
}

fn pick(members: Members<'_>, style: JsonStyle, repaired: bool) -> Option<Envelope> {
    if style.keyed {
        let [(name, raw)] = members.0.as_slice() else { return None };
        let (arguments, mended) = object(raw.get())?;
        return Some(Envelope::of(name.clone(), arguments, repaired || mended));
    }
    let (mut name, mut arguments, mut inner) = (None, None, None);
    let (mut unusual, mut others) = (false, Vec::new());
    for (member, value) in &members.0 {
        let (key, other) = key(style, member);
        match key {
            // The dialect's own names come first.
            Key::Name if other && name.is_some() => others.push((member, value)),
            Key::Arguments if other && arguments.is_some() => others.push((member, value)),
            Key::Name => {
                name = serde_json::from_str::<String>(value.get()).ok();
                unusual |= other;
            }
            Key::Arguments => {
                arguments = Some(value.get());
                unusual |= other;
            }
            Key::Other if NESTED.contains(&member.as_str()) => {
                match serde_json::from_str::<Members<'_>>(value.get()) {
                    Ok(nested) if !nested.0.iter().any(|(key, _)| NESTED.contains(&key.as_str())) => {
                        inner = Some(pick(nested, style, repaired)?);
                    }
                    _ => name = serde_json::from_str::<String>(value.get()).ok(),
                }
            }
            Key::Other if SIDE.contains(&member.as_str()) => {}
            Key::Other => others.push((member, value)),
        }
    }
    if let Some(inner) = inner {
        if let Some(raw) = arguments.filter(|_| !inner.has_arguments) {
            let (arguments, mended) = object(raw)?;
            return Some(Envelope {
                arguments,
                has_arguments: true,
                repaired: inner.repaired || mended,
                ..inner
            });
        }
        return Some(inner);
    }
    let name = name.filter(|name| !name.trim().is_empty())?;
    let has_arguments = arguments.is_some();
    let (flat, (arguments, mended)) = match arguments {
        // A call without the other members would lose them.
        None if !others.is_empty() => (true, (written(&others), true)),
        None => (false, ("{}".into(), false)),
        Some(raw) => (false, object(raw)?),
    };
    let unusual = unusual || flat;
    Some(Envelope { name, arguments, has_arguments, repaired: repaired || mended, unusual, flat })
}

/// An object of these members.
fn written(members: &[(&String, &&RawValue)]) -> String {
    let mut out = String::from("{");
    for (name, value) in members {
        if out.len() > 1 {
            out.push_str(", ");
        }
        quoted(name, &mut out);
        out.push_str(": ");
        out.push_str(value.get());
    }
    out.push('}');
    out
}

/// The arguments as the text of an object.
fn object(raw: &str) -> Option<(String, bool)> {
    match raw.bytes().next()? {
        b'{' => Some((raw.to_owned(), false)),
        b'n' => Some(("{}".into(), false)),
        // As some languages write an empty object.
        b'[' => (raw.strip_prefix('[')?.strip_suffix(']')?.trim().is_empty()).then(|| ("{}".into(), false)),
        b'"' => {
            let text = serde_json::from_str::<String>(raw).ok()?;
            let text = text.trim();
            if text.is_empty() || text == "null" {
                return Some(("{}".into(), false));
            }
            if !text.starts_with('{') {
                return None;
            }
            if repair::is_json(text) {
                Some((text.to_owned(), false))
            } else {
                Some((repair::value(text)?, true))
            }
        }
        _ => None,
    }
}

/// The members of an object in their order, values as they were written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'de> Visitor<'de> for Walk {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((key, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Walk)
    }
}
