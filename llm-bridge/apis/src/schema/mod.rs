//! Lowers schemas to what a provider accepts.
//!
//! One pass over the schema. At each place, references are inlined and `allOf` is merged if the form does not support them; keywords with
//! an equivalent are rewritten ([`alternatives`]); what cannot be expressed is removed, described to the model if there are words for it,
//! and reported as a loss. What matches the result matches the original, unless a loss is marked as widening.

mod alternatives;
mod apart;
mod conjoin;
mod nulls;
mod object;
mod reference;
mod root;
mod strict;
mod vocabulary;
mod whole;
mod words;

use serde_json::{Map, Value, json};

pub use nulls::remove_nulls;
pub(crate) use words::with_words;

use self::{
    apart::Compared,
    reference::{Anchors, Targets, step},
    vocabulary::{Kind, check, domain, is_constraint, kind, types},
    words::say,
};
use crate::rules::Form;

type Schema = Map<String, Value>;

/// The maximum depth of a schema, with references resolved.
const MAX_DEPTH: usize = 64;
/// The maximum number of subschemas, with references resolved.
const MAX_SCHEMAS: usize = 10_000;
/// The maximum number of JSON values in a schema.
const MAX_VALUES: usize = 100_000;
/// The maximum number of values copied, which bounds large subschemas that are referenced often.
const MAX_COPIED: usize = 500_000;
/// The maximum size of the places of all subschemas and losses, each written out as a JSON pointer, in bytes.
const MAX_PATHS: usize = 4 << 20;

/// A lowered schema.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) schema: Schema,
    pub(crate) losses: Vec<Lost>,
    /// What the tool's description has to add about the arguments.
    pub(crate) words: Vec<String>,
}

/// A keyword that the form could not express.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) path: String,
    pub(crate) keyword: String,
    pub(crate) done: String,
    pub(crate) widened: bool,
}

/// Lowers the schema of a tool's arguments.
///
/// # Errors
/// Why the form cannot express it.
pub(crate) fn lower(schema: &Value, form: &Form) -> Result<Lowered, String> {
    check_size(schema)?;
    if form.whole {
        return whole::keep(schema);
    }
    let mut lowering = Lowering::new(schema, form);
    let mut lowered = lowering.root(schema)?;
    lowering.lower_targets(&mut lowered)?;
    if form.strict {
        strict::check_limits(&lowered)?;
    }
    Ok(Lowered { schema: lowered, losses: lowering.losses, words: lowering.words })
}

/// Recursion over deep values would overflow the stack.
fn check_size(schema: &Value) -> Result<(), String> {
    let (values, depth) = size([schema]);
    if depth > 2 * MAX_DEPTH || values > MAX_VALUES {
        return Err("the schema is nested too deep or too large".to_owned());
    }
    Ok(())
}

/// The number of values, and how deep they nest.
fn size<'v>(values: impl IntoIterator<Item = &'v Value>) -> (usize, usize) {
    let mut open: Vec<(&Value, usize)> = values.into_iter().map(|value| (value, 0)).collect();
    let (mut count, mut deepest) = (0, 0);
    while let Some((value, depth)) = open.pop() {
        count += 1;
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    (count, deepest)
}

/// The state of lowering one schema.
struct Lowering<'s> {
    document: &'s Value,
    form: &'s Form,
    /// The current place, as a JSON pointer; empty at the root.
    path: String,
    depth: usize,
    schemas: usize,
    copied: usize,
    compared: Compared,
    paths: usize,
    anchors: Anchors,
    /// The pointers of the references that are being inlined. Those from `own_references` on belong to the current place.
    references: Vec<String>,
    own_references: usize,
    targets: Targets,
    /// The number of optional properties that were made nullable.
    nulls: usize,
    losses: Vec<Lost>,
    words: Vec<String>,
}

impl<'s> Lowering<'s> {
    fn new(document: &'s Value, form: &'s Form) -> Self {
        Self {
            document,
            form,
            path: String::new(),
            depth: 0,
            schemas: 0,
            copied: 0,
            compared: Compared::default(),
            paths: 0,
            anchors: Anchors::default(),
            references: Vec::new(),
            own_references: 0,
            targets: Targets::default(),
            nulls: 0,
            losses: Vec::new(),
            words: Vec::new(),
        }
    }

    fn keeps(&self, keyword: &str) -> bool {
        let keywords = if self.path.is_empty() { &self.form.at_root } else { &self.form.keywords };
        keywords.hold(keyword)
    }

    /// Runs a closure one step further down.
    fn inside<T>(&mut self, key: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::take(&mut self.path);
        self.path = step(&outer, key);
        let done = run(self);
        self.path = outer;
        done
    }

    fn lose(&mut self, keyword: &str, done: impl Into<String>, widened: bool) {
        let lost = Lost { path: self.path.clone(), keyword: keyword.to_owned(), done: done.into(), widened };
        self.paths += self.path.len();
        self.losses.push(lost);
    }

    /// Removes a keyword and describes it in words if possible.
    fn drop_keyword(&mut self, keyword: &str, value: &Value, words: &mut Vec<String>) {
        let said = say(keyword, value);
        let done = if said.is_some() { "is said in the description" } else { "was dropped" };
        words.extend(said);
        self.lose(keyword, done, is_constraint(keyword, value));
    }

    /// Counts one more subschema and what is copied for it against the limits.
    fn count<'v>(&mut self, copied: impl IntoIterator<Item = &'v Value>) -> Result<(), String> {
        self.schemas += 1;
        self.paths += self.path.len();
        self.copy(copied)
    }

    /// Counts what is copied against the limits.
    fn copy<'v>(&mut self, copied: impl IntoIterator<Item = &'v Value>) -> Result<(), String> {
        self.copied += size(copied).0;
        if self.depth > MAX_DEPTH
            || self.schemas > MAX_SCHEMAS
            || self.copied > MAX_COPIED
            || self.paths > MAX_PATHS
        {
            return Err("the schema is nested too deep or too large with its references followed".to_owned());
        }
        Ok(())
    }

    /// Lowers a subschema; `None` if nothing can match it.
    fn schema(&mut self, schema: &Value) -> Result<Option<Schema>, String> {
        let outer = (self.references.len(), self.own_references);
        self.own_references = outer.0;
        self.depth += 1;
        let resolved = self.resolve(schema, self.form.references);
        let lowered = resolved.and_then(|schema| schema.map_or(Ok(None), |schema| self.resolved(schema)));
        self.depth -= 1;
        self.references.truncate(outer.0);
        self.own_references = outer.1;
        lowered
    }

    /// Lowers a subschema whose references are resolved.
    fn resolved(&mut self, mut schema: Schema) -> Result<Option<Schema>, String> {
        for (keyword, value) in &schema {
            check(keyword, value).map_err(|fault| format!("`{}`: {fault}", self.path))?;
        }
        types(&schema).map_err(|fault| format!("`{}`: {fault}", self.path))?;
        let mut words = Vec::new();
        self.settle_const(&mut schema);
        if has_no_value(&schema) {
            return Ok(None);
        }
        self.settle_one_of(&mut schema, &mut words)?;
        self.settle_tuple(&mut schema, &mut words)?;
        self.settle_conditions(&mut schema, &mut words);
        self.settle_values(&mut schema, &mut words)?;
        if has_no_value(&schema) {
            return Ok(None);
        }
        self.settle_types(&mut schema)?;
        if self.form.typed && schema.contains_key("anyOf") {
            self.spread(&mut schema)?;
        }
        let Some(mut lowered) = self.keywords(schema, &mut words)? else { return Ok(None) };
        self.complete(&mut lowered)?;
        self.describe(&mut lowered, words);
        Ok(Some(lowered))
    }

    /// Lowers keyword by keyword.
    fn keywords(&mut self, mut schema: Schema, words: &mut Vec<String>) -> Result<Option<Schema>, String> {
        let mut lowered = Map::new();
        self.declare(&mut schema)?;
        let required = schema.get("required").cloned().unwrap_or_default();
        let closed =
            self.keeps("additionalProperties") && schema.get("additionalProperties") == Some(&json!(false));
        let named: Option<Vec<String>> =
            types(&schema)?.map(|names| names.into_iter().map(str::to_owned).collect());
        let is_object = named.as_deref() == Some(&["object".to_owned()]);
        for (keyword, value) in schema {
            // Keywords for other types have no effect.
            let is_apt = domain(&keyword).is_none_or(|domain| {
                named.as_ref().is_none_or(|named| named.iter().any(|name| domain.contains(&name.as_str())))
            });
            if !self.keeps(&keyword) {
                if is_apt {
                    self.drop_keyword(&keyword, &value, words);
                }
                continue;
            }
            if !is_apt && self.form.is_subset() {
                continue;
            }
            let value = match keyword.as_str() {
                "format" if self.refuses_format(named.as_deref(), &value) => {
                    self.drop_keyword(&keyword, &value, words);
                    continue;
                }
                "anyOf" => {
                    if !self.any_of(&mut lowered, value)? {
                        return Ok(None);
                    }
                    continue;
                }
                "properties" => match self.properties(value, &required, is_object, closed)? {
                    Some(properties) => properties.into(),
                    None => return Ok(None),
                },
                "$ref" => format!("#/$defs/{}", self.name_target(&value)?).into(),
                _ => self.parts(&keyword, value)?,
            };
            lowered.insert(keyword, value);
        }
        Ok(Some(lowered))
    }

    /// The value of a keyword, with its subschemas lowered.
    fn parts(&mut self, keyword: &str, value: Value) -> Result<Value, String> {
        match kind(keyword) {
            Kind::Plain => Ok(value),
            Kind::Schema => self.part(keyword, keyword, &value),
            Kind::Map => {
                let Value::Object(parts) = value else {
                    return Err(format!("`{}`: `{keyword}` has to be schemas by name", self.path));
                };
                self.inside(keyword, |this| {
                    let mut all = Map::new();
                    for (name, part) in parts {
                        let part = this.part(keyword, &name, &part)?;
                        all.insert(name, part);
                    }
                    Ok(all.into())
                })
            }
            Kind::List => {
                let parts = list(keyword, value)?.into_iter().enumerate();
                self.inside(keyword, |this| {
                    parts.map(|(index, part)| this.part(keyword, &index.to_string(), &part)).collect()
                })
            }
        }
    }

    /// Lowers the subschema under a key.
    fn part(&mut self, keyword: &str, key: &str, part: &Value) -> Result<Value, String> {
        let may_be_bool = keyword.starts_with("additional") || keyword.starts_with("unevaluated");
        if may_be_bool && part.is_boolean() {
            return Ok(part.clone());
        }
        self.inside(key, |this| {
            let lowered = this.schema(part)?;
            Ok(match lowered {
                Some(lowered) => this.not_null(lowered)?.into(),
                None if may_be_bool => json!(false),
                None if this.keeps("not") => never().into(),
                None => this.anything(keyword)?.into(),
            })
        })
    }

    /// The replacement for a schema that nothing matches, in a form that cannot express it.
    fn anything(&mut self, keyword: &str) -> Result<Schema, String> {
        if self.form.typed {
            return Err(format!("`{}`: a part that nothing fits is not taken", self.path));
        }
        self.lose(keyword, "takes anything, though nothing fits here", true);
        Ok(Map::new())
    }

    fn refuses_format(&self, types: Option<&[String]>, format: &Value) -> bool {
        let is_taken = |&(kind, taken): &(&str, &str)| {
            *format == *taken && types.is_none_or(|types| types.iter().all(|name| name == kind))
        };
        self.form.formats.is_some_and(|formats| !formats.iter().any(is_taken))
    }

    /// Adds what the schema does not express to the description.
    fn describe(&mut self, lowered: &mut Schema, words: Vec<String>) {
        if self.path.is_empty() {
            self.words.extend(words);
        } else if !words.is_empty() {
            let own = lowered.get("description").and_then(Value::as_str);
            let text = with_words(own, &words);
            lowered.extend(text.map(|text| ("description".to_owned(), text.into())));
        }
    }
}

/// Whether an empty `enum` lets nothing match.
fn has_no_value(schema: &Schema) -> bool {
    schema.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty)
}

/// A schema that nothing matches.
fn never() -> Schema {
    Map::from_iter([("not".to_owned(), json!({}))])
}

fn list(keyword: &str, value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(format!("`{keyword}` has to be a list of schemas")),
    }
}
