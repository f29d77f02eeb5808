//! How much work it is to validate a value, known before it is done.
//!
//! A schema of a few kilobytes can take hours: `oneOf` over a `$ref` and `not` of the same, nested, doubles the work with each level, and
//! so do references that lead back to themselves beside a nested value. A validator cannot be stopped once it runs, so it is not started.

use std::collections::HashMap;

use serde_json::Value;

use super::choices::referred;
use crate::json::parts;

/// The most steps that validating one value may take: a part of the schema beside a part of the value is one.
const MAX_STEPS: u64 = 1_000_000;
/// What may be done at once, without a thread of its own: well under a millisecond.
const FEW_STEPS: u64 = 5_000;
/// How many parts of schema and value may be nested in one another: the validator recurses with each.
const MAX_DEPTH: usize = 192;
/// The longest text that is matched against a pattern, in bytes: the time is that of the text multiplied by that of the pattern.
const MAX_MATCHED: usize = 256 * 1024;
/// How many bytes of text are a step.
const STEP_BYTES: usize = 64;

/// Keywords whose schemas apply to the value itself, in a list, alone, or by name.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
const IN_PLACE_BY_NAME: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose schemas apply to each member of an object.
const MEMBERS: [&str; 3] = ["additionalProperties", "unevaluatedProperties", "propertyNames"];
/// Keywords whose schemas apply to each item of an array.
const ITEMS: [&str; 4] = ["items", "additionalItems", "unevaluatedItems", "contains"];

/// What is known of the work that a schema is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// How many values the schema consists of.
    parts: u64,
    /// Without references each part of a schema is looked at once beside a part of a value.
    has_references: bool,
    has_patterns: bool,
}

impl Work {
    /// # Errors
    /// When the schema refers to something whose work is not seen here.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        let mut work = Self { parts: 0, has_references: false, has_patterns: false };
        let mut has_base = false;
        work.add(schema, schema, &mut has_base)?;
        if has_base && work.has_references {
            return Err("a schema within it has an `$id` beside references; leave the `$id` out".to_owned());
        }
        Ok(work)
    }

    fn add(&mut self, root: &Value, part: &Value, has_base: &mut bool) -> Result<(), String> {
        self.parts += 1;
        match part {
            Value::Array(items) => items.iter().try_for_each(|item| self.add(root, item, has_base)),
            Value::Object(members) => members.iter().try_for_each(|(name, value)| {
                match (name.as_str(), value) {
                    ("$ref", Value::String(target)) => {
                        self.has_references = true;
                        if referred(root, part).is_none() {
                            return Err(format!(
                                "`$ref` has to be a JSON pointer to a part of the schema, and `{}` is none",
                                crate::text::shorten(target.clone(), 100)
                            ));
                        }
                    }
                    ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                        return Err(format!(
                            "`{name}` is not taken; write a `$ref` to the part of the schema"
                        ));
                    }
                    // `id` is what draft 4 calls it.
                    ("$id" | "id", Value::String(_)) => *has_base |= !std::ptr::eq(part, root),
                    ("pattern", Value::String(_)) | ("patternProperties", Value::Object(_)) => {
                        self.has_patterns = true;
                    }
                    _ => {}
                }
                self.add(root, value, has_base)
            }),
            _ => Ok(()),
        }
    }

    /// Whether a value is validated in no time.
    pub(super) fn is_quick(&self, schema: &Value, value: &Value) -> bool {
        !matches!(self.steps(schema, value, FEW_STEPS), Steps::TooDeep | Steps::TooMany)
    }

    /// Checks that validating a value is no more work than may be.
    ///
    /// # Errors
    /// What is too much.
    pub(super) fn check(&self, schema: &Value, value: &Value) -> Result<(), &'static str> {
        if self.has_patterns && has_long_text(value) {
            return Err("a text is longer than 256 KiB, and no longer one is matched against a pattern");
        }
        match self.steps(schema, value, MAX_STEPS) {
            Steps::Few => Ok(()),
            Steps::TooDeep => Err("they and the schema nest too deep in one another to be checked"),
            Steps::TooMany => Err("to check them against the schema would take too long; send less at once"),
        }
    }

    /// Whether validating a value takes at most so many steps.
    fn steps(&self, schema: &Value, value: &Value, most: u64) -> Steps {
        if !self.has_references && self.parts.saturating_mul(size_of(value, most)) <= most {
            return Steps::Few;
        }
        let mut walk = Walk { root: schema, known: HashMap::new(), most, is_too_deep: false };
        let steps = walk.steps(schema, value, 0);
        match walk.is_too_deep {
            true => Steps::TooDeep,
            false if steps > most => Steps::TooMany,
            false => Steps::Few,
        }
    }
}

enum Steps {
    Few,
    TooMany,
    TooDeep,
}

/// How many parts a value has, its texts by their length; no more than `most` are counted.
fn size_of(value: &Value, most: u64) -> u64 {
    fn add(value: &Value, most: u64, size: &mut u64) {
        *size += 1;
        if *size > most {
            return;
        }
        match value {
            Value::String(text) => *size += u64::try_from(text.len() / STEP_BYTES).unwrap_or(u64::MAX),
            Value::Array(items) => items.iter().take_while(|item| within(item, most, size)).for_each(drop),
            Value::Object(members) => {
                members.values().take_while(|member| within(member, most, size)).for_each(drop);
            }
            _ => {}
        }
    }
    fn within(value: &Value, most: u64, size: &mut u64) -> bool {
        add(value, most, size);
        *size <= most
    }
    let mut size = 0;
    add(value, most, &mut size);
    size
}

fn has_long_text(value: &Value) -> bool {
    parts(value)
        .any(|(name, part)| name.into_iter().chain(part.as_str()).any(|text| text.len() > MAX_MATCHED))
}

/// Counts the steps of a validator that looks at everything.
struct Walk<'s> {
    root: &'s Value,
    /// The steps of a part of the schema beside a part of the value, by their addresses; none while they are counted, so that a reference
    /// to itself ends.
    known: HashMap<(*const Value, *const Value), u64>,
    /// Where counting ends.
    most: u64,
    is_too_deep: bool,
}

impl Walk<'_> {
    fn steps(&mut self, schema: &Value, value: &Value, depth: usize) -> u64 {
        let Value::Object(keywords) = schema else { return 1 };
        if depth == MAX_DEPTH {
            self.is_too_deep = true;
        }
        // What was counted once is not counted again, so that counting is no more work than validating may be.
        let counted = u64::try_from(self.known.len()).unwrap_or(u64::MAX);
        if self.is_too_deep || counted > self.most / 4 {
            return self.most + 1;
        }
        let pair = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(steps) = self.known.get(&pair) {
            return *steps;
        }
        self.known.insert(pair, 0);
        let list = |name: &str| keywords.get(name).and_then(Value::as_array).into_iter().flatten();
        let named = |name: &str| keywords.get(name).and_then(Value::as_object).into_iter().flatten();
        let own = u64::try_from(list("enum").count() + list("required").count()).unwrap_or(u64::MAX);
        let mut steps = 1_u64.saturating_add(own);
        let in_place = (IN_PLACE_LISTS.iter().flat_map(|name| list(name)))
            .chain(IN_PLACE.iter().filter_map(|name| keywords.get(*name)))
            .chain(IN_PLACE_BY_NAME.iter().flat_map(|name| named(name).map(|(_, part)| part)))
            .chain(referred(self.root, schema));
        for part in in_place {
            steps = steps.saturating_add(self.steps(part, value, depth + 1));
        }
        // What is evaluated is found out by going through the alternatives again.
        if keywords.keys().any(|name| name.starts_with("unevaluated")) {
            steps = steps.saturating_mul(3);
        }
        match value {
            Value::Object(members) => {
                let known = keywords.get("properties").and_then(Value::as_object);
                for (name, member) in members {
                    let parts = (known.and_then(|known| known.get(name)).into_iter())
                        .chain(MEMBERS.iter().filter_map(|name| keywords.get(*name)))
                        .chain(named("patternProperties").map(|(_, part)| part));
                    for part in parts {
                        steps = steps.saturating_add(self.steps(part, member, depth + 1));
                    }
                }
            }
            Value::Array(items) => {
                let first: Vec<&Value> = list("prefixItems").chain(list("items")).collect();
                for (at, item) in items.iter().enumerate() {
                    let parts = first.get(at).copied().into_iter();
                    for part in parts.chain(ITEMS.iter().filter_map(|name| keywords.get(*name))) {
                        steps = steps.saturating_add(self.steps(part, item, depth + 1));
                    }
                }
            }
            Value::String(text) => {
                let length = u64::try_from(text.len() / STEP_BYTES).unwrap_or(u64::MAX);
                steps = steps.saturating_add(length);
            }
            _ => {}
        }
        self.known.insert(pair, steps);
        steps
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, value: &Value) -> Result<(), String> {
        Work::of(schema)?.check(schema, value).map_err(str::to_owned)
    }

    #[test]
    fn a3_a_schema_that_doubles_its_work_with_each_level_is_not_begun() {
        // The attack as it was made: in place, and along with the value.
        let level = |next: &str| {
            let reference = json!({"$ref": format!("#/$defs/{next}")});
            json!({"oneOf": [reference, {"not": reference}]})
        };
        let mut parts: serde_json::Map<_, _> =
            (0..40).map(|at| (format!("l{at}"), level(&format!("l{}", at + 1)))).collect();
        parts.insert("l40".to_owned(), json!({"type": "string"}));
        let doubling = json!({"type": "object", "$defs": parts, "properties": {"a": {"$ref": "#/$defs/l0"}}});
        assert!(check(&doubling, &json!({"a": 1})).unwrap_err().contains("too long"));
        assert_eq!(check(&doubling, &json!({"b": 1})), Ok(()));

        let with_value = json!({"type": "object", "$defs": {"node": {"oneOf": [
            {"properties": {"a": {"$ref": "#/$defs/node"}}},
            {"not": {"properties": {"a": {"$ref": "#/$defs/node"}}}},
        ]}}, "$ref": "#/$defs/node"});
        let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
        assert_eq!(check(&with_value, &nested(5)), Ok(()));
        assert!(check(&with_value, &nested(40)).is_err());
    }

    #[test]
    fn a3_a_chain_of_references_does_not_use_up_the_stack() {
        let mut parts: serde_json::Map<_, _> =
            (0..1000).map(|at| (format!("l{at}"), json!({"$ref": format!("#/$defs/l{}", at + 1)}))).collect();
        parts.insert("l1000".to_owned(), json!({"items": {"$ref": "#/$defs/l0"}}));
        let schema = json!({"type": "object", "$defs": parts, "properties": {"a": {"$ref": "#/$defs/l0"}}});
        let nested = (0..100).fold(json!([]), |inner, _| json!([inner]));
        assert!(check(&schema, &json!({"a": nested})).unwrap_err().contains("too deep"));
    }

    #[test]
    fn a3_what_tools_have_is_let_through() {
        let tree = json!({"type": "object", "$defs": {"node": {"anyOf": [{"type": "string"}, {
            "type": "object",
            "properties": {"op": {"enum": ["and", "or"]}, "of": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }]}}, "properties": {"filter": {"$ref": "#/$defs/node"}}});
        let filter = (0..40).fold(json!("x"), |inner, _| json!({"op": "and", "of": [inner, "y"]}));
        assert_eq!(check(&tree, &json!({"filter": filter})), Ok(()));
        let list = json!({"type": "object", "properties": {"rows": {"items": {"type": "array", "items": {"type": "number"}}}}});
        let rows: Vec<Vec<u32>> = vec![vec![1; 10]; 10_000];
        assert_eq!(check(&list, &json!({"rows": rows})), Ok(()));
        let itself = json!({"type": "object", "allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert_eq!(check(&itself, &json!({})), Ok(()));
    }

    #[test]
    fn a3_work_that_is_not_seen_is_refused_with_what_to_do() {
        for (schema, reason) in [
            (json!({"$dynamicRef": "#a"}), "write a `$ref`"),
            (json!({"$ref": "other.json"}), "JSON pointer"),
            (json!({"properties": {"a": {"$id": "x", "$ref": "#/properties/a"}}}), "leave the `$id` out"),
        ] {
            assert!(Work::of(&schema).unwrap_err().contains(reason), "{schema}");
        }
        // These are names of properties.
        assert!(Work::of(&json!({"properties": {"$id": {"type": "string"}, "$ref": {}}})).is_ok());
    }

    #[test]
    fn a3_long_texts_are_not_matched_against_patterns() {
        let schema = json!({"type": "object", "properties": {"a": {"pattern": "^(a|b)*$"}}});
        assert!(check(&schema, &json!({"a": "a".repeat(300_000)})).unwrap_err().contains("256 KiB"));
        assert_eq!(check(&json!({"type": "object"}), &json!({"a": "a".repeat(300_000)})), Ok(()));
    }
}
