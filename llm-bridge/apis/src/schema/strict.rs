//! Objects in OpenAI's strict mode: <https://platform.openai.com/docs/guides/structured-outputs>.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Lowering, Schema};

/// The maximum nesting of objects and arrays.
const MAX_NESTING: usize = 10;
const MAX_PROPERTIES: usize = 5_000;
const MAX_VALUES: usize = 1_000;
/// The maximum length of all names and values together, in characters.
const MAX_CHARACTERS: usize = 120_000;
/// The number of values in one `enum` above which their total length is limited too.
const MANY_VALUES: usize = 250;
const MAX_CHARACTERS_OF_MANY: usize = 15_000;

impl Lowering<'_> {
    /// Makes all properties required, the optional ones nullable, and closes the object.
    pub(super) fn close(&mut self, lowered: &mut Schema, is_empty: bool) -> Result<(), String> {
        let others = lowered.insert("additionalProperties".to_owned(), json!(false)).unwrap_or(json!(true));
        if others != false {
            // Without declared properties, the object would always be empty.
            if is_empty && !self.path.is_empty() {
                return Err(format!(
                    "`{}`: an object with names of the caller's choice is not taken",
                    self.path
                ));
            }
            if others != true {
                self.lose("additionalProperties", "became `false`", false);
            }
        }
        let required = lowered.shift_remove("required").unwrap_or_default();
        let required: HashSet<&str> =
            required.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut names = Vec::new();
        if let Some(Value::Object(properties)) = lowered.get_mut("properties") {
            for (name, property) in properties.iter_mut() {
                if !required.contains(name.as_str()) && !takes_null(property) {
                    add_null(property);
                    self.nulls += 1;
                }
                names.push(json!(name));
            }
        } else {
            lowered.insert("properties".to_owned(), json!({}));
        }
        lowered.insert("required".to_owned(), names.into());
        Ok(())
    }
}

fn takes_null(property: &Value) -> bool {
    let branches = property.get("anyOf").and_then(Value::as_array);
    property.get("type").is_some_and(|name| *name == "null")
        || branches.is_some_and(|all| all.iter().any(takes_null))
}

/// Makes a property nullable; its description stays outside of `anyOf`.
fn add_null(property: &mut Value) {
    let Value::Object(schema) = property else { return };
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.push(json!({ "type": "null" }));
    } else if let (Some(Value::String(name)), None) = (schema.get("type"), schema.get("enum")) {
        let both = json!([name, "null"]);
        schema.insert("type".to_owned(), both);
    } else {
        let mut whole = Map::new();
        for keyword in ["title", "description"] {
            whole.extend(schema.shift_remove_entry(keyword));
        }
        whole.insert("anyOf".to_owned(), json!([std::mem::take(schema), { "type": "null" }]));
        *schema = whole;
    }
}

/// Checks the limits of strict mode.
///
/// # Errors
/// The limit that is exceeded.
pub(super) fn check_limits(schema: &Schema) -> Result<(), String> {
    let (mut properties, mut values, mut characters) = (0, 0, 0);
    let mut open: Vec<(&Schema, usize)> = vec![(schema, 1)];
    while let Some((schema, nesting)) = open.pop() {
        if nesting > MAX_NESTING {
            return Err(format!("objects and arrays nest more than {MAX_NESTING} deep"));
        }
        if let Some(Value::Object(named)) = schema.get("properties") {
            properties += named.len();
            characters += named.keys().map(|name| name.chars().count()).sum::<usize>();
            open.extend(named.values().filter_map(Value::as_object).map(|part| (part, nesting + 1)));
        }
        if let Some(Value::Array(all)) = schema.get("enum") {
            let length =
                all.iter().map(|value| value.as_str().map_or(0, |text| text.chars().count())).sum::<usize>();
            if all.len() > MANY_VALUES && length > MAX_CHARACTERS_OF_MANY {
                return Err(format!("an `enum` of {} values has {length} characters", all.len()));
            }
            values += all.len();
            characters += length;
        }
        open.extend(schema.get("items").and_then(Value::as_object).map(|part| (part, nesting + 1)));
        let branches = schema.get("anyOf").and_then(Value::as_array);
        open.extend(branches.into_iter().flatten().filter_map(Value::as_object).map(|part| (part, nesting)));
    }
    for (what, count, max) in [
        ("properties", properties, MAX_PROPERTIES),
        ("values in `enum`", values, MAX_VALUES),
        ("characters of names and values", characters, MAX_CHARACTERS),
    ] {
        if count > max {
            return Err(format!("there are {count} {what}; strict mode takes {max}"));
        }
    }
    Ok(())
}
