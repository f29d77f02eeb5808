//! Arguments of a strict definition, converted back to the tool's own schema.

use serde_json::{Map, Value};

use super::{Lowering, Schema, check_size, conjoin::conjoin};
use crate::openai::tools::STRICT;

/// Removes the nulls that a model sent for omitted properties under a strict definition: those of optional properties that are not
/// nullable. `schema` is the tool's own.
pub fn remove_nulls(schema: &Value, arguments: &mut Value) {
    if check_size(schema).is_ok() {
        Lowering::new(schema, &STRICT).remove_nulls(schema, arguments);
    }
}

impl Lowering<'_> {
    fn remove_nulls(&mut self, schema: &Value, value: &mut Value) {
        if !value.is_object() && !value.is_array() {
            return;
        }
        let open = self.references.len();
        self.depth += 1;
        // A schema that cannot be read has no strict definition.
        let branches = self.branches(schema).unwrap_or_default();
        match value {
            Value::Array(items) => {
                for part in branches.iter().filter_map(|branch| branch.get("items")) {
                    items.iter_mut().for_each(|item| self.remove_nulls(part, item));
                }
            }
            Value::Object(fields) => {
                fields.retain(|name, field| !field.is_null() || !self.stands_for_nothing(&branches, name));
                for (name, field) in fields {
                    for part in branches.iter().filter_map(|branch| property(branch, name)) {
                        self.remove_nulls(part, field);
                    }
                }
            }
            _ => {}
        }
        self.depth -= 1;
        self.references.truncate(open);
    }

    /// Whether a property is optional in each alternative that has it, and nullable in none.
    fn stands_for_nothing(&mut self, branches: &[Schema], name: &str) -> bool {
        let known: Vec<(&Schema, &Value)> = branches
            .iter()
            .filter_map(|branch| Some((branch, branch.get("properties")?.get(name)?)))
            .collect();
        let is_required = |branch: &Schema| {
            let names = branch.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|required| required == name))
        };
        known.iter().any(|(branch, _)| !is_required(branch))
            && !known.iter().any(|(_, property)| self.takes_null(property))
    }

    fn takes_null(&mut self, property: &Value) -> bool {
        let open = self.references.len();
        let branches = self.branches(property).unwrap_or_default();
        self.references.truncate(open);
        branches.iter().any(|branch| {
            let of_type = match branch.get("type") {
                None => true,
                Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
                Some(name) => name == "null",
            };
            let values = branch.get("enum").and_then(Value::as_array);
            of_type
                && values.is_none_or(|values| values.contains(&Value::Null))
                && branch.get("const").is_none_or(Value::is_null)
        })
    }

    /// A schema with references resolved, once for each of its alternatives.
    fn branches(&mut self, schema: &Value) -> Result<Vec<Schema>, String> {
        self.path = "/".to_owned();
        let Some(mut whole) = self.resolve(schema, false)? else { return Ok(Vec::new()) };
        let alternatives = ["anyOf", "oneOf"].into_iter().find_map(|keyword| whole.shift_remove(keyword));
        let Some(Value::Array(alternatives)) = alternatives else { return Ok(vec![whole]) };
        let mut all = Vec::new();
        for alternative in alternatives {
            let open = self.references.len();
            for branch in self.branches(&alternative)? {
                self.count(whole.values())?;
                let mut one: Map<String, Value> = whole.clone();
                conjoin(&mut one, branch);
                // What no value fits allows nothing.
                if one.get("enum") != Some(&Value::Array(Vec::new())) {
                    all.push(one);
                }
            }
            self.references.truncate(open);
        }
        Ok(all)
    }
}

/// The subschema of a property, by its name or from `additionalProperties`.
fn property<'s>(schema: &'s Schema, name: &str) -> Option<&'s Value> {
    let named = schema.get("properties").and_then(|properties| properties.get(name));
    named.or_else(|| schema.get("additionalProperties"))
}
