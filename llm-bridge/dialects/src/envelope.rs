//! The JSON object that is one call: which of its members is the name, which the arguments.

use std::{collections::HashSet, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, value::RawValue};

use super::{json::JsonStyle, repair};

/// Members that may stand beside name and arguments without meaning anything to the call.
pub(super) const SIDE: &[&str] = &["id", "type", "tool_call_id", "index"];
/// The members that may hold name and arguments, as in the shape of the OpenAI interface.
pub(super) const NESTED: &[&str] = &["function", "tool_call"];

/// How far into arguments the properties of a schema are looked for.
const MAX_HEAD: usize = 2048;

/// Name and arguments of one call.
pub(super) struct Envelope {
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) has_arguments: bool,
    pub(super) repaired: bool,
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

/// The names of an object's members.
pub(super) fn members(text: &str) -> Option<Vec<String>> {
    let members = serde_json::from_str::<Members<'_>>(text).ok()?;
    Some(members.0.into_iter().map(|(name, _)| name).collect())
}

fn pick(members: Members<'_>, style: JsonStyle, repaired: bool) -> Option<Envelope> {
    if style.keyed {
        let [(name, raw)] = members.0.as_slice() else { return None };
        let (arguments, mended) = object(raw.get())?;
        return Some(Envelope {
            name: name.clone(),
            arguments,
            has_arguments: true,
            repaired: repaired || mended,
        });
    }
    let mut name = None;
    let mut arguments = None;
    let mut unknown = false;
    for (key, value) in members.0 {
        if style.names.contains(&key.as_str()) {
            name = serde_json::from_str::<String>(value.get()).ok();
        } else if style.arguments.contains(&key.as_str()) {
            arguments = Some(value.get());
        } else if NESTED.contains(&key.as_str()) {
            match serde_json::from_str::<Members<'_>>(value.get()) {
                Ok(inner) if !inner.0.iter().any(|(key, _)| NESTED.contains(&key.as_str())) => {
                    return pick(inner, style, repaired);
                }
                _ => name = serde_json::from_str::<String>(value.get()).ok(),
            }
        } else {
            unknown |= !SIDE.contains(&key.as_str());
        }
    }
    let name = name.filter(|name| !name.trim().is_empty())?;
    let has_arguments = arguments.is_some();
    let (arguments, mended) = match arguments {
        // Other members may be the arguments themselves; a call without them would lose them.
        None if unknown => return None,
        None => ("{}".into(), false),
        Some(raw) => object(raw)?,
    };
    Some(Envelope { name, arguments, has_arguments, repaired: repaired || mended })
}

/// The arguments as the text of an object.
fn object(raw: &str) -> Option<(String, bool)> {
    match raw.bytes().next()? {
        b'{' => Some((raw.to_owned(), false)),
        b'n' => Some(("{}".into(), false)),
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
