//! Schemas of others as they are meant, as far as they can be taken.

use jsonschema::PatternOptions;
use serde_json::{Map, Value, json};

use super::bounded::{MAX_PATTERN, patterns_in};

/// Members whose members are schemas.
const MAPS: &str = "properties patternProperties $defs definitions dependentSchemas";
/// Members that are no schemas, whatever they have in them.
const VALUES: &str = "enum const default examples example";

/// The schema of a tool's arguments as its author meant it: that of an object, whose members have the types that they have to have where
/// they are empty. Languages whose empty list and empty object are one write `[]` for an empty object.
pub fn as_object_schema(schema: &mut Value) -> bool {
    let mut is_changed = schema.is_null();
    if is_changed {
        *schema = json!({});
    }
    is_changed |= fill(schema);
    if let Value::Object(members) = schema
        && !members.contains_key("type")
    {
        members.insert("type".to_owned(), "object".into());
        is_changed = true;
    }
    is_changed
}

fn fill(schema: &mut Value) -> bool {
    let Value::Object(members) = schema else { return false };
    let mut is_changed = false;
    let is_empty_list = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    for name in MAPS.split(' ') {
        if let Some(map) = members.get_mut(name).filter(|map| map.is_null() || is_empty_list(map)) {
            *map = json!({});
            is_changed = true;
        }
    }
    let is_nothing =
        |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    if members.get("required").is_some_and(is_nothing) {
        members.remove("required");
        is_changed = true;
    }
    for (_, child) in children(members) {
        is_changed |= fill(child);
    }
    is_changed
}

/// Takes out the patterns that cannot be checked here, such as those that look around, and those that are too large. What is left takes
/// every value that the whole takes. Gives their places.
pub fn without_unusable_patterns(schema: &mut Value) -> Vec<String> {
    let size = MAX_PATTERN / patterns_in(schema).max(1);
    let options = PatternOptions::regex().size_limit(size).dfa_size_limit(MAX_PATTERN);
    let options = jsonschema::options().with_pattern_options(options);
    let is_usable = |pattern: &str| options.build(&json!({ "pattern": pattern })).is_ok();
    let mut places = Vec::new();
    loosen(schema, "", &is_usable, &mut places);
    places
}

/// Whether something was taken out.
fn loosen(
    schema: &mut Value,
    place: &str,
    is_usable: &dyn Fn(&str) -> bool,
    places: &mut Vec<String>,
) -> bool {
    let Value::Object(members) = schema else { return false };
    let before = places.len();
    if members.get("pattern").and_then(Value::as_str).is_some_and(|pattern| !is_usable(pattern)) {
        members.remove("pattern");
        places.push(format!("{place}/pattern"));
    }
    if let Some(Value::Object(patterns)) = members.get_mut("patternProperties") {
        let all = patterns.len();
        patterns.retain(|pattern, _| is_usable(pattern));
        if patterns.len() < all {
            // They would refuse what the pattern names.
            members
                .retain(|name, _| !matches!(name.as_str(), "additionalProperties" | "unevaluatedProperties"));
            places.push(format!("{place}/patternProperties"));
        }
    }
    let mut loosened = Vec::new();
    for (at, child) in children(members) {
        if loosen(child, &format!("{place}/{at}"), is_usable, places) {
            loosened.push(at.split('/').next().unwrap_or_default().to_owned());
        }
    }
    // Where less in a part would mean more in the whole.
    for name in loosened {
        match name.as_str() {
            "not" => drop(members.remove("not")),
            "if" => members.retain(|name, _| !matches!(name.as_str(), "if" | "then" | "else")),
            "oneOf" => {
                let any = members.remove("oneOf").filter(|_| !members.contains_key("anyOf"));
                members.extend(any.map(|any| ("anyOf".to_owned(), any)));
            }
            "contains" => drop(members.remove("maxContains")),
            _ => {}
        }
    }
    places.len() > before
}

/// The schemas right below one, with their places.
fn children(members: &mut Map<String, Value>) -> Vec<(String, &mut Value)> {
    let is_one_of = |list: &str, name: &str| list.split(' ').any(|one| one == name);
    let mut all = Vec::new();
    for (name, value) in members {
        if is_one_of(VALUES, name) {
            continue;
        }
        if value.is_object() && !is_one_of(MAPS, name) {
            all.push((name.clone(), value));
        } else if let Value::Object(map) = value {
            all.extend(map.iter_mut().map(|(at, child)| (format!("{name}/{at}"), child)));
        } else if let Value::Array(list) = value {
            all.extend(list.iter_mut().enumerate().map(|(at, child)| (format!("{name}/{at}"), child)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{BoundedValidator, check_input};

    /// As a widespread library writes it for every e-mail address.
    const EMAIL: &str =
        r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";

    #[test]
    fn b3_a_schema_that_lacks_what_goes_without_saying_is_that_of_an_object() {
        let anything = json!({"type": "object"});
        for (schema, meant) in [
            (Value::Null, anything.clone()),
            (json!({}), anything.clone()),
            (json!({"properties": [], "required": {}}), json!({"type": "object", "properties": {}})),
            (
                json!({"type": "object", "properties": {"a": {"type": "object", "properties": []}}, "required": null}),
                json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}),
            ),
            (
                json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}),
                json!({"type": "object", "$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}),
            ),
        ] {
            let mut mended = schema.clone();
            assert!(as_object_schema(&mut mended), "{schema}");
            assert_eq!(mended, meant, "{schema}");
            check_input(&mended).unwrap();
        }
        // An argument may have any name, and a default any value.
        for mut whole in [
            json!({"type": "object", "properties": {"required": {}, "properties": {"default": {"required": {}}}}}),
            json!({"type": "string"}),
            json!("object"),
        ] {
            let before = whole.clone();
            assert!(!as_object_schema(&mut whole), "{whole}");
            assert_eq!(whole, before);
        }
    }

    #[test]
    fn b3_a_pattern_that_cannot_be_checked_is_left_out_and_nothing_is_refused_for_it() {
        let name = json!({"pattern": "^[a-z]+$"});
        for (schema, places, value) in [
            (
                json!({"properties": {"to": {"pattern": EMAIL}, "name": name}}),
                &["/properties/to/pattern"][..],
                json!({"to": "a@b.de"}),
            ),
            (
                json!({"properties": {"n": {"not": {"pattern": EMAIL}}}}),
                &["/properties/n/not/pattern"],
                json!({"n": "x"}),
            ),
            (
                json!({"oneOf": [{"properties": {"a": {"pattern": EMAIL}}}, {"properties": {"a": {"pattern": "^b"}}}]}),
                &["/oneOf/0/properties/a/pattern"],
                json!({"a": "b"}),
            ),
            (
                json!({"if": {"properties": {"a": {"pattern": r"(a)\1"}}}, "then": {"required": ["b"]}}),
                &["/if/properties/a/pattern"],
                json!({"a": "x"}),
            ),
            (
                json!({"patternProperties": {"(?=x)": {"type": "string"}}, "additionalProperties": false}),
                &["/patternProperties"],
                json!({"x": "a"}),
            ),
            (
                json!({"properties": {"a": {"pattern": r"^\p{L}{100}N$"}}}),
                &["/properties/a/pattern"],
                json!({"a": "x"}),
            ),
        ] {
            let mut loose = schema.clone();
            loose["type"] = "object".into();
            check_input(&loose).unwrap_err();
            assert_eq!(without_unusable_patterns(&mut loose), places, "{schema}");
            let validator = BoundedValidator::new(&loose).unwrap();
            assert_eq!(validator.faults(&value, &loose, 9), Ok(Vec::new()), "{loose}");
        }
        let mut fine = json!({"type": "object", "properties": {"name": name, "pattern": {"default": {"pattern": EMAIL}}}});
        let before = fine.clone();
        assert_eq!(without_unusable_patterns(&mut fine), [""; 0]);
        assert_eq!(fine, before);
    }
}
