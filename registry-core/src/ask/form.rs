//! The form of an answer: an object whose fields are texts, numbers and booleans, as MCP clients can show it.

use serde_json::{Map, Value, json};

use crate::{
    guard::approval::Question,
    schema::{ArgumentChecker, ValidationError},
};

/// The field of a question that has one answer.
pub(crate) const FIELD: &str = "answer";
/// How many fields a form may have.
const MAX_FIELDS: usize = 16;
/// What a field may say of itself.
const KEYWORDS: [&str; 15] = [
    "type",
    "title",
    "description",
    "default",
    "enum",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "writeOnly",
];

/// The form of one answer: one of these choices, or any text where there are none.
pub(crate) fn of_choices(choices: &[String]) -> Value {
    let mut field = json!({"type": "string", "title": "Answer"});
    if let (Value::Object(field), false) = (&mut field, choices.is_empty()) {
        field.insert("enum".to_owned(), choices.into());
    }
    json!({"type": "object", "properties": {FIELD: field}, "required": [FIELD]})
}

/// The form that a struct's schema describes.
///
/// # Errors
/// Names the field that no form can have.
pub(crate) fn of_schema(mut schema: Value) -> Result<Value, String> {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut).map(std::mem::take);
    let fields = fields.filter(|fields| !fields.is_empty()).ok_or("a form is a struct with named fields")?;
    if fields.len() > MAX_FIELDS {
        return Err(format!("a form has {MAX_FIELDS} fields at most, and this one has {}", fields.len()));
    }
    let mut properties = Map::new();
    for (name, field) in fields {
        let flat = flat(&field).ok_or_else(|| {
            format!("the field `{name}` is neither a text, a number, a boolean nor an enum without data")
        })?;
        properties.insert(name, flat);
    }
    let required = schema.get("required").cloned().unwrap_or_else(|| json!([]));
    Ok(json!({"type": "object", "properties": properties, "required": required}))
}

/// A field as a form has it; `None` where a form cannot.
fn flat(field: &Value) -> Option<Value> {
    let mut flat: Map<String, Value> =
        field.as_object()?.iter().filter(|(key, _)| KEYWORDS.contains(&key.as_str())).map(owned).collect();
    if let Some(alternatives) = field.get("oneOf").or_else(|| field.get("anyOf")).and_then(Value::as_array) {
        let mut choices = Vec::new();
        for alternative in alternatives {
            match (alternative.get("const"), alternative.get("enum").and_then(Value::as_array)) {
                (Some(choice), _) => choices.push(choice.clone()),
                (None, Some(more)) => choices.extend(more.iter().cloned()),
                (None, None) => return None,
            }
        }
        flat.insert("type".to_owned(), "string".into());
        flat.insert("enum".to_owned(), choices.into());
    }
    let is_text = |value: &Value| value.is_string();
    if flat.get("enum").and_then(Value::as_array).is_some_and(|choices| !choices.iter().all(is_text)) {
        return None;
    }
    let kind = flat.get("type")?.as_str()?;
    matches!(kind, "string" | "number" | "integer" | "boolean").then_some(Value::Object(flat))
}

fn owned((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// The answer as the form takes it.
///
/// # Errors
/// What is wrong with it, for the person who has given it.
pub(crate) fn fit(schema: &Value, answer: Value) -> Result<Map<String, Value>, String> {
    let checker = ArgumentChecker::new(schema)?;
    checker.fit("answer", schema, answer).map_err(|ValidationError { error, .. }| {
        let faults = error.message().trim_start_matches("the arguments do not fit: ");
        format!("the answer does not fit: {faults}")
    })
}

impl Question {
    /// The fields of its form, with their schemas, in order, and whether each has to be filled in.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value, bool)> {
        let required = self.schema.get("required").and_then(Value::as_array);
        let fields = self.schema.get("properties").and_then(Value::as_object);
        fields.into_iter().flatten().map(move |(name, field)| {
            let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
            (name.as_str(), field, is_required)
        })
    }

    /// The choices, where the answer is one of several.
    pub fn choices(&self) -> Vec<&str> {
        let mut fields = self.fields();
        let (Some((_, field, _)), None) = (fields.next(), fields.next()) else { return Vec::new() };
        field.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Whether a field is secret, so that it belongs in no chat and no log.
    pub fn has_secret(&self) -> bool {
        crate::schema::has_secret(&self.schema)
    }

    /// The question in words, with its choices or fields.
    pub fn text(&self) -> String {
        let choices = self.choices();
        if !choices.is_empty() {
            let listed: Vec<_> =
                (1..).zip(choices).map(|(number, choice)| format!("{number}. {choice}")).collect();
            return format!("{} {}", self.message, listed.join(" "));
        }
        let fields: Vec<_> = self.fields().map(|(name, ..)| name).filter(|name| *name != FIELD).collect();
        match fields.is_empty() {
            true => self.message.clone(),
            false => format!("{} ({})", self.message, fields.join(", ")),
        }
    }

    /// The answer that a person has written in a chat: the number or the text of a choice, the value of the only field, or all fields as
    /// JSON. `None` where it is none.
    pub fn read(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        if let Ok(object @ Value::Object(_)) = serde_json::from_str(text) {
            return fit(&self.schema, object).ok().map(Value::Object);
        }
        let mut fields = self.fields();
        let ((name, ..), None) = (fields.next()?, fields.next()) else { return None };
        let choices = self.choices();
        let bare = text.trim_end_matches(['.', '!', ')']);
        let said = |choice: &&&str| choice.eq_ignore_ascii_case(bare) || choice.eq_ignore_ascii_case(text);
        let choice = choices.iter().find(said).copied();
        let numbered = || choices.get(bare.parse::<usize>().ok()?.checked_sub(1)?).copied();
        let value = match choices.is_empty() {
            true => text,
            false => choice.or_else(numbered)?,
        };
        fit(&self.schema, json!({name: value})).ok().map(Value::Object)
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use super::*;
    use crate::schema::of_arguments;

    fn question(schema: Value) -> Question {
        Question { message: "Which?".to_owned(), schema }
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Size {
        /// Not much.
        Small,
        Large,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Order {
        /// How many.
        count: u8,
        size: Size,
        note: Option<String>,
        gift: bool,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Nested {
        order: Option<Order>,
    }

    #[test]
    fn b19_a_flat_struct_is_a_form_and_another_names_its_field() {
        let form = of_schema(of_arguments::<Order>()).unwrap();
        assert_eq!(form["properties"]["count"]["description"], "How many.");
        assert_eq!(form["properties"]["size"]["enum"].as_array().unwrap().len(), 2);
        assert_eq!(form["properties"]["note"]["type"], "string");
        let answer = json!({"count": "3", "size": "Large", "gift": "true"});
        assert_eq!(
            Value::Object(fit(&form, answer).unwrap()),
            json!({"count": 3, "size": "Large", "gift": true})
        );
        let fault = fit(&form, json!({"count": 300, "size": "Huge"})).unwrap_err();
        for part in ["the answer does not fit", "count", "Huge", "`gift` is missing"] {
            assert!(fault.contains(part), "{fault}");
        }
        assert!(of_schema(of_arguments::<Nested>()).unwrap_err().contains("`order`"));
        assert!(of_schema(json!({"type": "object"})).is_err());
    }

    #[test]
    fn b19_what_a_person_writes_is_read_only_where_it_is_an_answer() {
        let choices = question(of_choices(&["Savings".to_owned(), "Joint account".to_owned()]));
        assert_eq!(choices.text(), "Which? 1. Savings 2. Joint account");
        for (said, read) in [
            ("savings", Some("Savings")),
            (" Joint account. ", Some("Joint account")),
            ("2", Some("Joint account")),
            (r#"{"answer": "Savings"}"#, Some("Savings")),
            ("3", None),
            ("0", None),
            ("why?", None),
            ("", None),
        ] {
            assert_eq!(choices.read(said), read.map(|answer| json!({"answer": answer})), "{said}");
        }
        assert_eq!(question(of_choices(&[])).read(" Oslo. "), Some(json!({"answer": "Oslo."})));
        let form = question(of_schema(of_arguments::<Order>()).unwrap());
        assert_eq!(form.read("3"), None);
        assert!(form.read(r#"{"count": 1, "size": "Small", "gift": false}"#).is_some());
        assert_eq!(form.text(), "Which? (count, size, note, gift)");
    }

    #[test]
    fn b19_a_form_has_so_many_fields_and_no_more() {
        let form = |fields: usize| {
            let fields = (0..fields).map(|at| (at.to_string(), json!({"type": "string"})));
            of_schema(json!({"type": "object", "properties": fields.collect::<Map<_, _>>()}))
        };
        assert!(form(16).is_ok());
        assert_eq!(form(17).unwrap_err(), "a form has 16 fields at most, and this one has 17");
    }
}
