//! Describes in words what a lowered schema does not express.

use serde_json::Value;

use super::vocabulary::is_format;

/// The maximum length of JSON in a description, for keywords without words of their own, in bytes.
const MAX_JSON: usize = 200;

/// A keyword in words; `None` if it is of no use to a model.
pub(super) fn say(keyword: &str, value: &Value) -> Option<String> {
    let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(match keyword {
        "minimum" => format!("at least {value}"),
        "maximum" => format!("at most {value}"),
        "exclusiveMinimum" => format!("more than {value}"),
        "exclusiveMaximum" => format!("less than {value}"),
        "multipleOf" => format!("a multiple of {value}"),
        "minLength" => format!("at least {}", counted(value, "character")),
        "maxLength" => format!("at most {}", counted(value, "character")),
        "minItems" => format!("at least {}", counted(value, "item")),
        "maxItems" => format!("at most {}", counted(value, "item")),
        "minProperties" => format!("at least {}", counted(value, "entry")),
        "maxProperties" => format!("at most {}", counted(value, "entry")),
        "uniqueItems" if *value == true => "no item twice".to_owned(),
        "pattern" => format!("matches the regular expression `{}`", text()),
        "format" if value.as_str().is_some_and(is_format) => format!("in the format `{}`", text()),
        "default" => format!("default: {value}"),
        "examples" => format!("for example {}", list(value)?),
        "enum" if value.as_array().is_some_and(|all| all.len() == 1) => format!("only {}", list(value)?),
        "enum" => format!("one of {}", list(value)?),
        "if" => format!("fits the JSON Schema {}", bounded(value)?),
        "required" => format!("needs {}", list(value)?),
        "not"
        | "allOf"
        | "oneOf"
        | "anyOf"
        | "contains"
        | "propertyNames"
        | "patternProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "items"
        | "prefixItems"
        | "unevaluatedItems" => as_json(keyword, value)?,
        _ => return None,
    })
}

fn as_json(keyword: &str, value: &Value) -> Option<String> {
    // Closed objects need no description.
    let json = bounded(value).filter(|_| !value.is_boolean())?;
    Some(format!("fits the JSON Schema {{\"{keyword}\":{json}}}"))
}

fn bounded(value: &Value) -> Option<String> {
    Some(value.to_string()).filter(|json| json.len() <= MAX_JSON)
}

fn list(values: &Value) -> Option<String> {
    let values: Vec<String> = values.as_array()?.iter().map(Value::to_string).collect();
    let text = values.join(", ");
    (!values.is_empty() && text.len() <= MAX_JSON).then_some(text)
}

fn counted(count: &Value, what: &str) -> String {
    let plural = match what {
        "entry" => "entries",
        "item" => "items",
        _ => "characters",
    };
    format!("{count} {}", if *count == 1 { what } else { plural })
}

/// Appends words to a description; `None` if there is neither.
pub(crate) fn with_words(description: Option<&str>, words: &[String]) -> Option<String> {
    let words = words.join("; ");
    match description.map(str::trim_end).filter(|text| !text.is_empty()) {
        None if words.is_empty() => None,
        None => Some(words),
        Some(text) if words.is_empty() => Some(text.to_owned()),
        Some(text) => Some(format!("{text} ({words})")),
    }
}
