//! Schemas as a provider takes them.
//!
//! A schema goes through in one walk. At each place references are followed and `allOf` is made one schema where the form has no such
//! word; then what the form says otherwise is said that way ([`alternatives`]), and what it cannot say is taken out, told to the model in
//! the description where words help, and put on record. Whatever fits the outcome fits the original, unless a loss says that it
//! is wider.

mod alternatives;
mod conjoin;
mod nulls;
mod object;
mod reference;
mod root;
mod strict;
mod vocabulary;
mod words;

use serde_json::{Map, Value, json};

pub use nulls::remove_nulls;
pub(super) use words::with_words;

use self::{
    conjoin::{conjoin, settle_unevaluated},
    reference::{pointer, step},
    vocabulary::{Kind, check, domain, is_constraint, kind, modernize, types},
    words::say,
};
use super::rules::Form;

type Schema = Map<String, Value>;

/// How deep a schema may be, references followed.
const MAX_DEPTH: usize = 64;
/// How many schemas a schema may have in it, references followed.
const MAX_SCHEMAS: usize = 20_000;
/// The same for the values of the original.
const MAX_VALUES: usize = 100_000;

/// A schema in a provider's form.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) schema: Schema,
    pub(super) losses: Vec<Lost>,
    /// What the model is to be told about the arguments as a whole.
    pub(super) words: Vec<String>,
}

/// A keyword that the form could not hold.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) path: String,
    pub(super) keyword: String,
    pub(super) done: String,
    pub(super) widened: bool,
}

/// Lowers the schema of a tool's arguments.
///
/// # Errors
/// Why the form cannot hold it.
pub(super) fn lower(schema: &Value, form: &Form) -> Result<Lowered, String> {
    check_size(schema)?;
    let mut lowering = Lowering::new(schema, form);
    let mut lowered = lowering.root(schema)?;
    lowering.lower_targets(&mut lowered)?;
    if form.strict {
        strict::check_limits(&lowered)?;
    }
    Ok(Lowered { schema: lowered, losses: lowering.losses, words: lowering.words })
}

/// Deep values would end the stack of what walks them.
fn check_size(schema: &Value) -> Result<(), String> {
    let mut open = vec![(schema, 0)];
    let mut count = 0;
    while let Some((value, depth)) = open.pop() {
        count += 1;
        if depth > 2 * MAX_DEPTH || count > MAX_VALUES {
            return Err("the schema is nested too deep or too large".to_owned());
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

/// A walk through one schema.
struct Lowering<'s> {
    document: &'s Value,
    form: &'s Form,
    /// The place, as a JSON pointer; empty at the root.
    path: String,
    depth: usize,
    schemas: usize,
    /// The references that are being written out, by their pointers. Those from `own_references` on are of this very place.
    references: Vec<String>,
    own_references: usize,
    /// The targets of references that stay, by pointer and by name in `$defs`.
    targets: Vec<(String, String)>,
    /// How many optional properties were made to take null.
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
            references: Vec::new(),
            own_references: 0,
            targets: Vec::new(),
            nulls: 0,
            losses: Vec::new(),
            words: Vec::new(),
        }
    }

    fn keeps(&self, keyword: &str) -> bool {
        let keywords = if self.path.is_empty() { &self.form.at_root } else { &self.form.keywords };
        keywords.hold(keyword)
    }

    /// Does something a step further down.
    fn inside<T>(&mut self, key: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::take(&mut self.path);
        self.path = step(&outer, key);
        let done = run(self);
        self.path = outer;
        done
    }

    fn lose(&mut self, keyword: &str, done: impl Into<String>, widened: bool) {
        let lost = Lost { path: self.path.clone(), keyword: keyword.to_owned(), done: done.into(), widened };
        self.losses.push(lost);
    }

    /// Takes a keyword out and says it in words where that can be done.
    fn drop_keyword(&mut self, keyword: &str, value: &Value, words: &mut Vec<String>) {
        let said = say(keyword, value);
        let done = if said.is_some() { "is said in the description" } else { "was dropped" };
        words.extend(said);
        self.lose(keyword, done, is_constraint(keyword, value));
    }

    fn count(&mut self) -> Result<(), String> {
        self.schemas += 1;
        if self.depth > MAX_DEPTH || self.schemas > MAX_SCHEMAS {
            return Err("the schema is nested too deep or too large with its references followed".to_owned());
        }
        Ok(())
    }

    /// A schema below the root; `None` where nothing fits it.
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

    /// A schema as an object, with references followed and `allOf` made part of it where they cannot stay.
    fn resolve(&mut self, schema: &Value, keep_references: bool) -> Result<Option<Schema>, String> {
        self.count()?;
        let is_document = std::ptr::eq(schema, self.document);
        let mut schema = match schema {
            Value::Bool(true) => Map::new(),
            Value::Bool(false) => return Ok(None),
            Value::Object(schema) => schema.clone(),
            other => return Err(format!("`{}`: {other} is no schema", self.path)),
        };
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if schema.contains_key(keyword) {
                return Err(format!("`{}`: `{keyword}` is not followed", self.path));
            }
        }
        if !is_document && schema.contains_key("$id") {
            return Err(format!(
                "`{}`: a schema in a schema with an `$id` of its own is not read",
                self.path
            ));
        }
        modernize(&mut schema);
        if !keep_references && let Some(reference) = schema.shift_remove("$ref") {
            let at = self.target(&reference)?;
            if !self.write_out(&mut schema, at)? {
                return Ok(None);
            }
        }
        if !self.keeps("allOf")
            && let Some(branches) = schema.shift_remove("allOf")
        {
            for branch in list("allOf", branches)? {
                let Some(branch) = self.resolve(&branch, false)? else { return Ok(None) };
                conjoin(&mut schema, branch);
            }
        }
        settle_unevaluated(&mut schema);
        Ok(Some(schema))
    }

    /// The place that a reference leads to.
    fn target(&self, reference: &Value) -> Result<String, String> {
        pointer(self.document, reference.as_str().ok_or("`$ref` has to be a text")?)
    }

    /// Writes a reference out; whether anything fits.
    fn write_out(&mut self, schema: &mut Schema, at: String) -> Result<bool, String> {
        let document = self.document;
        let Some(target) = document.pointer(&at) else { return Ok(true) };
        match self.references.iter().position(|open| *open == at) {
            // It says again what is being said of this place.
            Some(open) if open >= self.own_references => {}
            Some(_) => {
                self.lose("$ref", "leads back to what it is part of and was cut there", true);
                let name = at.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("whole");
                let told = format!("The same form again as the {name} that it is part of.");
                schema.entry("description").or_insert_with(|| told.into());
                if let Some(named) = target.get("type") {
                    conjoin(schema, Map::from_iter([("type".to_owned(), named.clone())]));
                }
            }
            None => {
                self.references.push(at);
                let Some(target) = self.resolve(target, false)? else { return Ok(false) };
                conjoin(schema, target);
            }
        }
        Ok(true)
    }

    /// The name in `$defs` of a reference's target.
    fn name_target(&mut self, reference: &Value) -> Result<String, String> {
        let at = self.target(reference)?;
        if let Some((_, name)) = self.targets.iter().find(|(known, _)| *known == at) {
            return Ok(name.clone());
        }
        let base = at.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("root");
        let base: String = base.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let is_free = |name: &str| self.targets.iter().all(|(_, other)| other != name);
        let mut name = base.clone();
        let mut number = 2_u32;
        while !is_free(&name) {
            name = format!("{base}_{number}");
            number += 1;
        }
        self.targets.push((at, name.clone()));
        Ok(name)
    }

    /// Puts the targets of references that stayed into `$defs`.
    fn lower_targets(&mut self, root: &mut Schema) -> Result<(), String> {
        let mut definitions = Map::new();
        // Targets refer to further ones.
        while let Some((at, name)) = self.targets.get(definitions.len()).cloned() {
            let document = self.document;
            let Some(target) = document.pointer(&at) else { break };
            self.path = step("/$defs", &name);
            let lowered = self.schema(target)?.unwrap_or_else(never);
            definitions.insert(name, lowered.into());
        }
        if !definitions.is_empty() {
            root.insert("$defs".to_owned(), definitions.into());
        }
        Ok(())
    }

    /// A schema without references to follow, in the form's words.
    fn resolved(&mut self, mut schema: Schema) -> Result<Option<Schema>, String> {
        for (keyword, value) in &schema {
            check(keyword, value).map_err(|fault| format!("`{}`: {fault}", self.path))?;
        }
        types(&schema).map_err(|fault| format!("`{}`: {fault}", self.path))?;
        let mut words = Vec::new();
        self.settle_const(&mut schema);
        if schema.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        self.settle_one_of(&mut schema, &mut words)?;
        self.settle_tuple(&mut schema, &mut words)?;
        self.settle_conditions(&mut schema, &mut words);
        self.settle_values(&mut schema, &mut words)?;
        self.settle_types(&mut schema)?;
        if self.form.typed && schema.contains_key("anyOf") {
            self.spread(&mut schema)?;
        }
        let Some(mut lowered) = self.keywords(schema, &mut words)? else { return Ok(None) };
        self.complete(&mut lowered)?;
        self.tell(&mut lowered, words);
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
            // What is said of other types than the schema's says nothing.
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
            if keyword == "format" && self.refuses_format(&value) {
                self.drop_keyword(&keyword, &value, words);
                continue;
            }
            if keyword == "$ref" {
                let name = self.name_target(&value)?;
                lowered.insert(keyword, json!(format!("#/$defs/{name}")));
                continue;
            }
            if keyword == "anyOf" {
                if !self.any_of(&mut lowered, value)? {
                    return Ok(None);
                }
                continue;
            }
            if keyword == "properties" {
                let Some(properties) = self.properties(value, &required, is_object, closed)? else {
                    return Ok(None);
                };
                lowered.insert(keyword, properties.into());
                continue;
            }
            let value = match kind(&keyword) {
                Kind::Plain => value,
                Kind::Schema => self.part(&keyword, &keyword, &value)?,
                Kind::Map => {
                    let Value::Object(parts) = value else {
                        return Err(format!("`{}`: `{keyword}` has to be schemas by name", self.path));
                    };
                    let mut all = Map::new();
                    for (name, part) in parts {
                        let part = self.inside(&keyword, |this| this.part(&keyword, &name, &part))?;
                        all.insert(name, part);
                    }
                    all.into()
                }
                Kind::List => {
                    let parts = list(&keyword, value)?.into_iter().enumerate();
                    let part = |(index, part): (usize, Value)| {
                        self.inside(&keyword, |this| this.part(&keyword, &index.to_string(), &part))
                    };
                    parts.map(part).collect::<Result<Value, String>>()?
                }
            };
            lowered.insert(keyword, value);
        }
        Ok(Some(lowered))
    }

    /// The schema under a key, as a value.
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

    /// What stands where nothing fits, in a form that cannot say so.
    fn anything(&mut self, keyword: &str) -> Result<Schema, String> {
        if self.form.typed {
            return Err(format!("`{}`: a part that nothing fits is not taken", self.path));
        }
        self.lose(keyword, "takes anything, though nothing fits here", true);
        Ok(Map::new())
    }

    fn refuses_format(&self, format: &Value) -> bool {
        let name = format.as_str().unwrap_or_default();
        self.form.formats.is_some_and(|formats| !formats.contains(&name))
    }

    /// Tells the model what the schema does not say.
    fn tell(&mut self, lowered: &mut Schema, words: Vec<String>) {
        if self.path.is_empty() {
            self.words.extend(words);
        } else if !words.is_empty() {
            let own = lowered.get("description").and_then(Value::as_str);
            let text = with_words(own, &words);
            lowered.extend(text.map(|text| ("description".to_owned(), text.into())));
        }
    }
}

/// A schema that nothing fits.
fn never() -> Schema {
    Map::from_iter([("not".to_owned(), json!({}))])
}

fn list(keyword: &str, value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(format!("`{keyword}` has to be a list of schemas")),
    }
}
