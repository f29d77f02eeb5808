//! JSON Schema as far as filling in a form needs it: what a value may be, whether it fits, and one that does.

use serde_json::{Map, Value, json};

use super::pattern;

/// References and alternatives are followed this far; schemas may contain themselves.
const DEPTH: usize = 8;
/// More alternatives than this are not looked at.
const WIDTH: usize = 32;
/// And no more parts of a schema than this on the way to them.
const STEPS: usize = 500;

/// The alternatives of a schema, each of one type and without references, `allOf`, `anyOf` and `oneOf`. Null comes last: an
/// argument that may be null should still be filled.
pub(super) fn expand(root: &Value, schema: &Value) -> Vec<Map<String, Value>> {
    let mut found = Vec::new();
    let mut steps = STEPS;
    spread(root, schema, 0, &mut steps, &mut found);
    found.sort_by_key(|flat| kind(flat) == "null");
    found
}

fn spread(
    root: &Value,
    schema: &Value,
    depth: usize,
    steps: &mut usize,
    found: &mut Vec<Map<String, Value>>,
) {
    let mut flat = match schema {
        Value::Object(map) => map.clone(),
        Value::Bool(false) => return,
        _ => Map::new(),
    };
    if depth > DEPTH || found.len() >= WIDTH || *steps == 0 {
        return;
    }
    *steps -= 1;
    if let Some(Value::String(reference)) = flat.shift_remove("$ref") {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        merge(&mut flat, target);
        return spread(root, &Value::Object(flat), depth + 1, steps, found);
    }
    if let Some(Value::Array(all)) = flat.shift_remove("allOf") {
        all.iter().for_each(|part| merge(&mut flat, Some(part)));
        return spread(root, &Value::Object(flat), depth + 1, steps, found);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(any)) = flat.shift_remove(key) {
            for part in &any {
                if part != &Value::Bool(false) {
                    let mut one = flat.clone();
                    merge(&mut one, Some(part));
                    spread(root, &Value::Object(one), depth + 1, steps, found);
                }
            }
            return;
        }
    }
    if let Some(Value::Array(names)) = flat.get("type").cloned() {
        found.extend(names.into_iter().map(|name| {
            let mut one = flat.clone();
            one.insert("type".to_owned(), name);
            one
        }));
        return;
    }
    found.push(flat);
}

/// Adds what `from` demands to `into`. Where both have a key, lists of properties are joined and else `from` wins.
fn merge(into: &mut Map<String, Value>, from: Option<&Value>) {
    let Some(Value::Object(from)) = from else { return };
    for (key, value) in from {
        match (key.as_str(), into.get_mut(key), value) {
            ("properties", Some(Value::Object(into)), Value::Object(from)) => {
                into.extend(from.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            ("required", Some(Value::Array(into)), Value::Array(from)) => into.extend(from.iter().cloned()),
            // What stands beside a reference describes this use of it.
            ("description" | "examples" | "title", Some(_), _) => {}
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// What a value of this schema is, by `type` or else by what the schema talks about.
pub(super) fn kind(flat: &Map<String, Value>) -> &str {
    let named = flat.get("type").and_then(Value::as_str);
    named.unwrap_or_else(|| {
        let has = |keys: &[&str]| keys.iter().any(|key| flat.contains_key(*key));
        match flat.get("const").or_else(|| flat.get("enum").and_then(|all| all.get(0))) {
            Some(value) => type_of(value),
            None if has(&["properties", "required", "additionalProperties"]) => "object",
            None if has(&["items", "prefixItems", "minItems"]) => "array",
            None if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) => {
                "number"
            }
            None => "string",
        }
    })
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a value fits a schema.
pub(super) fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    fits_at(root, schema, value, 0)
}

fn fits_at(root: &Value, schema: &Value, value: &Value, depth: usize) -> bool {
    depth <= DEPTH && expand(root, schema).iter().any(|flat| fits_flat(root, flat, value, depth))
}

fn fits_flat(root: &Value, flat: &Map<String, Value>, value: &Value, depth: usize) -> bool {
    let is = |name: &str| match (name, value) {
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
        ("number", Value::Number(_)) => true,
        _ => type_of(value) == name,
    };
    let typed = flat.get("type").and_then(Value::as_str).is_none_or(is);
    let listed = flat.get("enum").and_then(Value::as_array).is_none_or(|all| all.contains(value))
        && flat.get("const").is_none_or(|only| only == value)
        && flat.get("not").is_none_or(|not| !fits_at(root, not, value, depth + 1));
    typed
        && listed
        && match value {
            Value::Number(number) => number.as_f64().is_some_and(|number| Range::of(flat).has(number)),
            Value::String(text) => {
                let length = text.chars().count() as u64;
                count(flat, "minLength").is_none_or(|least| length >= least)
                    && count(flat, "maxLength").is_none_or(|most| length <= most)
                    && flat
                        .get("pattern")
                        .and_then(Value::as_str)
                        .is_none_or(|text_of| pattern::fits(text_of, text))
            }
            Value::Array(items) => {
                let length = items.len() as u64;
                count(flat, "minItems").is_none_or(|least| length >= least)
                    && count(flat, "maxItems").is_none_or(|most| length <= most)
                    && (flat.get("uniqueItems") != Some(&Value::Bool(true))
                        || items
                            .iter()
                            .enumerate()
                            .all(|(at, item)| !items.iter().take(at).any(|b| b == item)))
                    && items.iter().enumerate().all(|(at, item)| {
                        item_of(flat, at).is_none_or(|of| fits_at(root, of, item, depth + 1))
                    })
            }
            Value::Object(fields) => {
                required(flat).all(|name| fields.contains_key(name))
                    && fields.iter().all(|(name, field)| {
                        match properties(flat).and_then(|all| all.get(name)) {
                            Some(of) => fits_at(root, of, field, depth + 1),
                            None => flat.get("additionalProperties").is_none_or(|of| {
                                of.is_boolean() && of != false || fits_at(root, of, field, depth + 1)
                            }),
                        }
                    })
            }
            Value::Null | Value::Bool(_) => true,
        }
}

/// The declared properties of an object.
pub(super) fn properties(flat: &Map<String, Value>) -> Option<&Map<String, Value>> {
    flat.get("properties").and_then(Value::as_object)
}

/// The names an object cannot do without.
pub(super) fn required(flat: &Map<String, Value>) -> impl Iterator<Item = &str> {
    flat.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The schema of an array's item.
pub(super) fn item_of(flat: &Map<String, Value>, at: usize) -> Option<&Value> {
    let tuple = flat.get("prefixItems").or_else(|| flat.get("items").filter(|items| items.is_array()));
    tuple.and_then(|items| items.get(at)).or_else(|| flat.get("items").filter(|items| !items.is_array()))
}

fn count(flat: &Map<String, Value>, key: &str) -> Option<u64> {
    flat.get(key).and_then(Value::as_f64).map(|count| count.max(0.0) as u64)
}

/// What a number may be.
struct Range {
    least: Option<f64>,
    most: Option<f64>,
    above: Option<f64>,
    below: Option<f64>,
    step: Option<f64>,
}

impl Range {
    fn of(flat: &Map<String, Value>) -> Self {
        let number = |key| flat.get(key).and_then(Value::as_f64);
        // Draft 4 has a flag beside the bound.
        let strict = |key| flat.get(key) == Some(&Value::Bool(true));
        let (least, most) = (number("minimum"), number("maximum"));
        Self {
            least,
            most,
            above: number("exclusiveMinimum").or(least.filter(|_| strict("exclusiveMinimum"))),
            below: number("exclusiveMaximum").or(most.filter(|_| strict("exclusiveMaximum"))),
            step: number("multipleOf").filter(|step| *step > 0.0),
        }
    }

    fn has(&self, number: f64) -> bool {
        self.least.is_none_or(|least| number >= least)
            && self.most.is_none_or(|most| number <= most)
            && self.above.is_none_or(|above| number > above)
            && self.below.is_none_or(|below| number < below)
            && self.step.is_none_or(|step| {
                let times = number / step;
                (times - times.round()).abs() < 1e-9
            })
    }

    /// Numbers worth trying: the bounds, just beside them, between them, and the steps next to them.
    fn tries(&self) -> Vec<f64> {
        let low = self.least.or(self.above);
        let high = self.most.or(self.below);
        let mut tries = vec![low.unwrap_or(1.0)];
        tries.extend(low.into_iter().flat_map(|low| [low.ceil(), low.floor() + 1.0, low + 0.5]));
        tries.extend([1.0, 0.0]);
        tries.extend(high.into_iter().flat_map(|high| [high, high.floor(), high.ceil() - 1.0]));
        tries.extend(low.zip(high).map(|(low, high)| f64::midpoint(low, high)));
        let steps: Vec<f64> = self.step.map_or_else(Vec::new, |step| {
            tries
                .iter()
                .flat_map(|number| [(number / step).ceil() * step, (number / step).floor() * step + step])
                .collect()
        });
        tries.extend(steps);
        tries
    }
}

/// A number as JSON writes it: without a point where it is whole.
pub(super) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// A value that fits, when the question had none: an example, the default, the first of a list, or made up.
/// `text` is what a text without further conditions gets.
pub(super) fn sample(root: &Value, schema: &Value, text: &str) -> Value {
    sample_at(root, schema, text, 0).unwrap_or(Value::Null)
}

fn sample_at(root: &Value, schema: &Value, text: &str, depth: usize) -> Option<Value> {
    if depth > DEPTH {
        return None;
    }
    let alternatives = expand(root, schema);
    // Deep down the first has to do: alternatives of alternatives multiply.
    let width = if depth < 2 { WIDTH } else { 1 };
    let mut made = alternatives.iter().take(width).filter_map(|flat| sample_flat(root, flat, text, depth));
    let first = made.next()?;
    // The first that fits, or else at least one of the right type.
    if fits_at(root, schema, &first, depth) {
        return Some(first);
    }
    Some(made.find(|value| fits_at(root, schema, value, depth)).unwrap_or(first))
}

fn sample_flat(root: &Value, flat: &Map<String, Value>, text: &str, depth: usize) -> Option<Value> {
    let list = |key: &str| flat.get(key).and_then(Value::as_array).into_iter().flatten();
    let given = flat
        .get("const")
        .into_iter()
        .chain(list("examples"))
        .chain(flat.get("example"))
        .chain(flat.get("default").filter(|value| !value.is_null()))
        .chain(list("enum"))
        .chain(flat.get("default"));
    if let Some(value) = given.into_iter().find(|value| fits_flat(root, flat, value, depth)) {
        return Some(value.clone());
    }
    Some(match kind(flat) {
        "null" => Value::Null,
        "boolean" => Value::Bool(false),
        "integer" | "number" => {
            let range = Range::of(flat);
            let tries = range.tries().into_iter().map(number);
            let mut tries = tries.filter(|value| value.is_number());
            let first = tries.next().unwrap_or(json!(1));
            if fits_flat(root, flat, &first, depth) {
                first
            } else {
                tries.find(|value| fits_flat(root, flat, value, depth)).unwrap_or(first)
            }
        }
        "array" => {
            let least = count(flat, "minItems").unwrap_or(0).min(1_000) as usize;
            let any = Value::Bool(true);
            let mut items: Vec<Value> = Vec::new();
            for at in 0..least {
                let of = item_of(flat, at).unwrap_or(&any);
                let item = sample_at(root, of, text, depth + 1)?;
                items.push(distinct(root, of, item, &items, flat, depth));
            }
            Value::Array(items)
        }
        "object" => {
            let any = Value::Bool(true);
            let mut fields = Map::new();
            for name in required(flat) {
                let of = properties(flat).and_then(|all| all.get(name)).unwrap_or(&any);
                fields.insert(name.to_owned(), sample_at(root, of, text, depth + 1)?);
            }
            Value::Object(fields)
        }
        _ => Value::String(sample_text(flat, text)),
    })
}

/// Another value where items must differ and this one is already there.
fn distinct(
    root: &Value,
    of: &Value,
    item: Value,
    items: &[Value],
    flat: &Map<String, Value>,
    depth: usize,
) -> Value {
    if flat.get("uniqueItems") != Some(&Value::Bool(true)) || !items.contains(&item) {
        return item;
    }
    let listed = expand(root, of)
        .into_iter()
        .flat_map(|flat| flat.get("enum").and_then(Value::as_array).cloned().unwrap_or_default());
    let counted = (1..=items.len() + 1).map(|n| match &item {
        Value::Number(first) => number(first.as_f64().unwrap_or(0.0) + n as f64),
        Value::String(first) => Value::String(format!("{first} {}", n + 1)),
        Value::Bool(first) => Value::Bool(!first),
        other => other.clone(),
    });
    let fresh =
        listed.chain(counted).find(|value| !items.contains(value) && fits_at(root, of, value, depth + 1));
    fresh.unwrap_or(item)
}

fn sample_text(flat: &Map<String, Value>, text: &str) -> String {
    let least = count(flat, "minLength").unwrap_or(0).min(100_000) as usize;
    let most = count(flat, "maxLength").map_or(usize::MAX, |most| most as usize);
    let formatted = match flat.get("format").and_then(Value::as_str) {
        Some("date") => Some("2030-01-01"),
        Some("time") => Some("12:00:00Z"),
        Some("date-time") => Some("2030-01-01T12:00:00Z"),
        Some("duration") => Some("PT1H"),
        Some("email" | "idn-email") => Some("someone@example.com"),
        Some("uri" | "url" | "iri" | "uri-reference" | "iri-reference") => Some("https://example.com/"),
        Some("uuid") => Some("00000000-0000-4000-8000-000000000000"),
        Some("ipv4") => Some("192.0.2.1"),
        Some("ipv6") => Some("2001:db8::1"),
        Some("hostname" | "idn-hostname") => Some("example.com"),
        _ => None,
    };
    if let Some(text) = formatted {
        return text.to_owned();
    }
    if let Some(regex) = flat.get("pattern").and_then(Value::as_str) {
        let ours = fit_length(text, least, most);
        if pattern::fits(regex, &ours) {
            return ours;
        }
        return pattern::sample(regex, text, least, most).unwrap_or(ours);
    }
    fit_length(text, least, most)
}

/// Cuts a text, or fills it up with points, to the length asked for.
pub(super) fn fit_length(text: &str, least: usize, most: usize) -> String {
    let mut text: String = text.chars().take(most).collect();
    let length = text.chars().count();
    text.extend(std::iter::repeat_n('.', least.saturating_sub(length)));
    text
}
