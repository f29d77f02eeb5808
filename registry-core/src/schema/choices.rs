//! What a schema says a value may be, for a model that gave something else.

use serde_json::Value;

use super::coerce::types_of;
use crate::{nearest::nearest, text::shorten};

/// How many parts of a schema are looked at: alternatives of alternatives multiply.
const MAX_PARTS: usize = 512;
/// How deep references and alternatives are followed.
const MAX_DEPTH: usize = 16;
/// How deep objects are written out, the outermost being the first.
const MAX_OBJECTS: usize = 2;
/// How many values or forms are listed for a model.
pub(crate) const MAX_LISTED: usize = 40;
/// How long a form may be, in characters, where there are several.
const MAX_FORM: usize = 200;
/// How much of a wrong value is repeated, in characters.
pub(crate) const MAX_FOUND: usize = 60;

static NULL: Value = Value::Null;

/// Where the reference in a schema leads.
pub(crate) fn referred<'s>(root: &'s Value, schema: &Value) -> Option<&'s Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// The only values that fit, where a schema has them in an `enum` or one by one as its alternatives.
pub(crate) fn options<'s>(root: &'s Value, schema: &'s Value) -> Option<Vec<&'s Value>> {
    Reader::new(root).options(schema, 0)
}

/// The form of a value in one line, such as `{"city": string, "days"?: integer 1 to 14}`.
pub(crate) fn form(root: &Value, schema: &Value) -> String {
    Reader::new(root).form(schema, 0, 0)
}

/// Says that a value is none of an `enum`; without the value where it must not be shown.
pub(crate) fn not_one_of(found: Option<&Value>, options: &[&Value]) -> String {
    let listed = listed(options.iter().map(|option| option.to_string()), ", ", " or ");
    let meant = found.and_then(Value::as_str).and_then(|text| {
        nearest(text, options.iter().filter_map(|option| option.as_str()))
            .first()
            .map(|name| (*name).to_owned())
    });
    let meant = meant.map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
    format!("{} is not one of {listed}{meant}", quoted(found))
}

/// Says that a value fits none of some alternatives; without the value where it must not be shown.
pub(crate) fn fits_none(found: Option<&Value>, root: &Value, alternatives: &[Value]) -> String {
    if let Some(options) = Reader::new(root).options_of_all(alternatives, 0) {
        return not_one_of(found, &options);
    }
    let mut reader = Reader::new(root);
    let forms = reader.forms(alternatives, 0, 0);
    format!("{} is none of the forms it may have: {}", quoted(found), listed(forms.into_iter(), ", ", " or "))
}

/// A wrong value as it is repeated, with its beginning where it is long.
pub(crate) fn quoted(found: Option<&Value>) -> String {
    found.map_or_else(|| "the value".to_owned(), |value| shorten(value.to_string(), MAX_FOUND))
}

/// Reads one schema.
struct Reader<'s> {
    /// Where references lead.
    root: &'s Value,
    /// How many parts it still looks at.
    left: usize,
}

impl<'s> Reader<'s> {
    fn new(root: &'s Value) -> Self {
        Self { root, left: MAX_PARTS }
    }

    /// Whether one more part is looked at.
    fn goes_on(&mut self, depth: usize) -> bool {
        let goes_on = self.left > 0 && depth < MAX_DEPTH;
        self.left = self.left.saturating_sub(1);
        goes_on
    }

    fn options(&mut self, schema: &'s Value, depth: usize) -> Option<Vec<&'s Value>> {
        if !self.goes_on(depth) {
            return None;
        }
        if let Some(target) = referred(self.root, schema) {
            return self.options(target, depth + 1);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return Some(values.iter().collect());
        }
        if let Some(value) = schema.get("const") {
            return Some(vec![value]);
        }
        if types_of(schema) == ["null"] {
            return Some(vec![&NULL]);
        }
        self.options_of_all(alternatives(schema)?, depth + 1)
    }

    fn options_of_all(&mut self, alternatives: &'s [Value], depth: usize) -> Option<Vec<&'s Value>> {
        let each: Option<Vec<_>> = alternatives.iter().map(|one| self.options(one, depth)).collect();
        Some(each?.concat())
    }

    fn form(&mut self, schema: &'s Value, depth: usize, objects: usize) -> String {
        if !self.goes_on(depth) {
            return "…".to_owned();
        }
        if let Some(target) = referred(self.root, schema) {
            return self.form(target, depth + 1, objects);
        }
        if let Some(options) = self.options(schema, depth) {
            return listed(options.into_iter().map(Value::to_string), " | ", " | ");
        }
        let fields = fields(schema);
        if !fields.is_empty() && objects < MAX_OBJECTS {
            let fields = fields.into_iter().map(|(name, is_required, field)| {
                let optional = if is_required { "" } else { "?" };
                let form =
                    field.map_or_else(|| "any".to_owned(), |field| self.form(field, depth + 1, objects + 1));
                format!("\"{name}\"{optional}: {form}")
            });
            return format!("{{{}}}", fields.collect::<Vec<_>>().join(", "));
        }
        match alternatives(schema) {
            Some(alternatives) if types_of(schema).is_empty() => {
                self.forms(alternatives, depth + 1, objects).join(" | ")
            }
            _ => type_with_bounds(schema),
        }
    }

    /// The forms of alternatives, each once.
    fn forms(&mut self, alternatives: &'s [Value], depth: usize, objects: usize) -> Vec<String> {
        let mut forms: Vec<String> = Vec::new();
        for alternative in alternatives {
            let form = shorten(self.form(alternative, depth, objects), MAX_FORM);
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        forms
    }
}

fn alternatives(schema: &Value) -> Option<&[Value]> {
    schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array().map(Vec::as_slice)
}

/// The fields an object may or must have: name, whether it must, and schema.
fn fields(schema: &Value) -> Vec<(&str, bool, Option<&Value>)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let is_known = |name: &str| properties.is_some_and(|known| known.contains_key(name));
    let known = properties.into_iter().flatten();
    let known = known.map(|(name, field)| (name.as_str(), required.contains(&name.as_str()), Some(field)));
    let others = required.iter().filter(|name| !is_known(name)).map(|name| (*name, true, None));
    known.chain(others).collect()
}

fn type_with_bounds(schema: &Value) -> String {
    let bounds = match (schema.get("minimum"), schema.get("maximum")) {
        (Some(min), Some(max)) => format!(" {min} to {max}"),
        (Some(min), None) => format!(" from {min}"),
        (None, Some(max)) => format!(" to {max}"),
        (None, None) => String::new(),
    };
    let name = types_of(schema).join(" or ");
    if name.is_empty() { "any".to_owned() } else { name + &bounds }
}

/// Some things in a row, with `last` before the last; of very many the first.
fn listed(items: impl ExactSizeIterator<Item = String>, between: &str, last: &str) -> String {
    let count = items.len();
    let mut shown: Vec<String> = items.take(MAX_LISTED).collect();
    let end = if count > MAX_LISTED { Some(format!("{} more", count - MAX_LISTED)) } else { shown.pop() };
    match end {
        Some(end) if shown.is_empty() => end,
        Some(end) => format!("{}{last}{end}", shown.join(between)),
        None => "nothing".to_owned(),
    }
}
