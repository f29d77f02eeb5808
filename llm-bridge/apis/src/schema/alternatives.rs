//! Keywords that a form expresses with others: `const`, `oneOf`, tuples, `enum` and lists of types.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{
    Lowering, Schema,
    conjoin::conjoin,
    list,
    vocabulary::{is_annotation, types},
    words::say,
};
use crate::rules::Values;

impl Lowering<'_> {
    /// `const` as an `enum` of one.
    pub(super) fn settle_const(&self, schema: &mut Schema) {
        if self.keeps("const") && !self.form.typed {
            return;
        }
        if let Some(value) = schema.shift_remove("const") {
            let of_two =
                schema.get("enum").and_then(Value::as_array).is_some_and(|all| !all.contains(&value));
            schema.insert("enum".to_owned(), if of_two { json!([]) } else { json!([value]) });
        }
    }

    /// `oneOf` as `anyOf`, which is equivalent if the branches are disjoint.
    pub(super) fn settle_one_of(
        &mut self,
        schema: &mut Schema,
        words: &mut Vec<String>,
    ) -> Result<(), String> {
        if self.keeps("oneOf") || (!self.keeps("anyOf") && !self.path.is_empty()) {
            return Ok(());
        }
        let Some(branches) = schema.shift_remove("oneOf") else { return Ok(()) };
        if schema.contains_key("anyOf") {
            self.drop_keyword("oneOf", &branches, words);
            return Ok(());
        }
        let branches = list("oneOf", branches)?;
        let mut apart = Vec::with_capacity(branches.len());
        for branch in &branches {
            apart.push(self.peek(branch)?);
        }
        let overlap = apart.iter().enumerate().any(|(index, one)| {
            apart.iter().skip(index + 1).any(|other| !self.compared.are_apart(one.as_ref(), other.as_ref()))
        });
        if overlap {
            if !self.path.is_empty() {
                words.push("exactly one of its forms".to_owned());
            }
            self.lose("oneOf", "became `anyOf`", true);
        }
        schema.insert("anyOf".to_owned(), branches.into());
        Ok(())
    }

    /// Resolves the references of a branch, only to inspect it.
    pub(super) fn peek(&mut self, branch: &Value) -> Result<Option<Schema>, String> {
        let (open, losses) = (self.references.len(), self.losses.len());
        let resolved = self.resolve(branch, false);
        self.references.truncate(open);
        self.losses.truncate(losses);
        resolved
    }

    /// A tuple as an array of what its places accept.
    pub(super) fn settle_tuple(
        &mut self,
        schema: &mut Schema,
        words: &mut Vec<String>,
    ) -> Result<(), String> {
        let count = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        if !self.keeps("not") && schema.get("items") == Some(&json!(false)) {
            let max = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
            schema.insert("maxItems".to_owned(), json!(max.min(count as u64)));
            schema.insert("items".to_owned(), json!(true));
        }
        if self.keeps("prefixItems") {
            return Ok(());
        }
        let Some(places) = schema.shift_remove("prefixItems") else { return Ok(()) };
        words.extend(say("prefixItems", &places));
        let mut kinds = list("prefixItems", places)?;
        // Without further items, their schema does not matter.
        let is_whole = schema.get("maxItems").and_then(Value::as_u64).is_some_and(|max| max <= count as u64);
        let others = schema.shift_remove("items").unwrap_or(json!(true));
        kinds.extend(Some(others).filter(|_| !is_whole));
        let mut seen = HashSet::new();
        kinds.retain(|kind| seen.insert(kind.to_string()));
        self.lose("prefixItems", "became `items` that take what any place takes", kinds.len() > 1);
        let items = match kinds.as_slice() {
            [] => json!(true),
            [only] => only.clone(),
            _ => json!({ "anyOf": kinds }),
        };
        schema.insert("items".to_owned(), items);
        Ok(())
    }

    /// `if`, `then` and `else` are one loss.
    pub(super) fn settle_conditions(&mut self, schema: &mut Schema, words: &mut Vec<String>) {
        if !self.keeps("if") && schema.contains_key("if") {
            let keywords = ["if", "then", "else"].into_iter();
            let whole: Schema = keywords.filter_map(|keyword| schema.shift_remove_entry(keyword)).collect();
            self.drop_keyword("if", &whole.into(), words);
        }
    }

    /// Turns values that are not accepted in `enum` into types or alternatives.
    pub(super) fn settle_values(
        &mut self,
        schema: &mut Schema,
        words: &mut Vec<String>,
    ) -> Result<(), String> {
        if (self.form.values == Values::Any && !self.form.typed) || !self.keeps("enum") {
            return Ok(());
        }
        let Some(Value::Array(mut values)) = schema.get("enum").cloned() else { return Ok(()) };
        if let Some(types) = types(schema)? {
            values.retain(|value| types.iter().any(|name| is_of(value, name)));
        }
        let mut kinds: Vec<&str> = Vec::new();
        for kind in values.iter().map(type_of) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        match kinds.as_slice() {
            [] => {
                // Nothing matches: the values have other types than `type`.
                schema.insert("enum".to_owned(), json!([]));
            }
            [kind] => {
                // Values of one kind have a common type.
                schema.insert("type".to_owned(), json!(narrowest(kind, schema)?));
                schema.insert("enum".to_owned(), values.clone().into());
                self.settle_values_of(kind, values, schema, words)?;
            }
            several => {
                let of_kind = |kind: &&str| -> Value {
                    let values: Vec<&Value> = values.iter().filter(|value| type_of(value) == *kind).collect();
                    json!({ "enum": values })
                };
                let branches: Vec<Value> = several.iter().map(of_kind).collect();
                schema.shift_remove("enum");
                schema.shift_remove("type");
                self.split(schema, branches)?;
            }
        }
        Ok(())
    }

    fn settle_values_of(
        &mut self,
        kind: &str,
        values: Vec<Value>,
        schema: &mut Schema,
        words: &mut Vec<String>,
    ) -> Result<(), String> {
        let is_taken = match self.form.values {
            Values::Any => true,
            Values::Texts => kind == "string",
            Values::TextsAndNumbers => kind == "string" || kind == "number",
        };
        if is_taken {
            if self.form.values == Values::Texts && values.iter().any(|value| *value == "") {
                return Err(format!("`{}`: an empty text in `enum` is not taken", self.path));
            }
            return Ok(());
        }
        if self.form.values == Values::Texts && kind == "number" {
            return Err(format!("`{}`: numbers in `enum` are not taken", self.path));
        }
        schema.shift_remove("enum");
        let both = values.contains(&json!(true)) && values.contains(&json!(false));
        let is_whole = kind == "null" || (kind == "boolean" && both);
        if !is_whole {
            self.drop_keyword("enum", &values.into(), words);
        }
        Ok(())
    }

    /// A list of types as alternatives.
    pub(super) fn settle_types(&mut self, schema: &mut Schema) -> Result<(), String> {
        let Some(names) = types(schema)? else {
            return if self.form.typed && !self.path.is_empty() { self.find_type(schema) } else { Ok(()) };
        };
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        match names.as_slice() {
            [only] => {
                schema.insert("type".to_owned(), json!(only));
            }
            _ if self.form.type_lists && !self.form.typed => {}
            several => {
                let branches = several.iter().map(|name| json!({ "type": name })).collect();
                schema.shift_remove("type");
                self.split(schema, branches)?;
            }
        }
        Ok(())
    }

    /// Infers the missing type from the keywords. This narrows the schema, as other types would match it too.
    fn find_type(&mut self, schema: &mut Schema) -> Result<(), String> {
        if schema.contains_key("anyOf") {
            return Ok(());
        }
        let of = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
        let found = if of(&["properties", "required", "additionalProperties"]) {
            "object"
        } else if of(&["items", "minItems", "maxItems"]) {
            "array"
        } else if of(&["pattern", "minLength", "maxLength"]) {
            "string"
        } else if of(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
            "number"
        } else {
            return Err(format!("`{}`: a part without a type is not taken", self.path));
        };
        self.lose("type", format!("was missing and became `{found}`"), false);
        schema.insert("type".to_owned(), json!(found));
        Ok(())
    }

    /// Moves the constraints beside `anyOf` into each branch.
    pub(super) fn spread(&mut self, schema: &mut Schema) -> Result<(), String> {
        let branches = list("anyOf", schema.shift_remove("anyOf").unwrap_or_default())?;
        self.split(schema, branches)
    }

    /// Merges the schema into each branch, as `anyOf`.
    fn split(&mut self, schema: &mut Schema, branches: Vec<Value>) -> Result<(), String> {
        let (annotations, constraints): (Schema, Schema) =
            std::mem::take(schema).into_iter().partition(|(keyword, _)| is_annotation(keyword));
        *schema = annotations;
        let mut all = Vec::with_capacity(branches.len());
        for branch in branches {
            self.count(constraints.values())?;
            let branch = match branch {
                Value::Bool(false) => continue,
                Value::Bool(true) => Map::new(),
                Value::Object(branch) => branch,
                other => return Err(format!("`{}`: {other} is no schema", self.path)),
            };
            let mut whole = constraints.clone();
            conjoin(&mut whole, branch);
            all.push(whole.into());
        }
        schema.insert("anyOf".to_owned(), Value::Array(all));
        Ok(())
    }

    /// Lowers `anyOf` into a schema; false if nothing can match.
    pub(super) fn any_of(&mut self, lowered: &mut Schema, branches: Value) -> Result<bool, String> {
        let mut kept: Vec<Schema> = Vec::new();
        let mut seen: HashSet<Schema> = HashSet::new();
        let mut takes_null = false;
        let nulls = self.nulls;
        for (index, branch) in list("anyOf", branches)?.iter().enumerate() {
            let branch =
                self.inside("anyOf", |this| this.inside(&index.to_string(), |this| this.schema(branch)))?;
            match branch {
                Some(branch) if self.form.nullable && is_null(&branch) => takes_null = true,
                Some(branch) if seen.insert(branch.clone()) => kept.push(branch),
                _ => {}
            }
        }
        let objects = kept.iter().filter(|branch| branch.contains_key("properties")).count();
        if self.nulls > nulls && objects > 1 {
            return Err(format!(
                "`{}`: of alternatives with optional properties it cannot be decided which null means nothing",
                self.path
            ));
        }
        if takes_null {
            if kept.is_empty() {
                lowered.insert("type".to_owned(), json!("null"));
                return Ok(true);
            }
            lowered.insert("nullable".to_owned(), json!(true));
        }
        match kept.len() {
            0 => return Ok(false),
            1 if self.form.typed => {
                for (keyword, value) in kept.pop().unwrap_or_default() {
                    lowered.entry(keyword).or_insert(value);
                }
            }
            _ => {
                lowered.insert("anyOf".to_owned(), kept.into_iter().map(Value::Object).collect());
            }
        }
        Ok(true)
    }

    /// Null is accepted as a type only among alternatives.
    pub(super) fn not_null(&self, lowered: Schema) -> Result<Schema, String> {
        if self.form.nullable && is_null(&lowered) {
            return Err(format!("`{}`: null alone is not taken", self.path));
        }
        Ok(lowered)
    }
}

fn is_null(schema: &Schema) -> bool {
    schema.get("type").is_some_and(|name| *name == "null")
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    let is_whole = || value.as_f64().is_some_and(|number| number.fract() == 0.0);
    name == type_of(value) || (name == "integer" && is_whole())
}

/// The type of values of one kind, as narrow as the schema's own.
fn narrowest(kind: &str, schema: &Schema) -> Result<&'static str, String> {
    let named = types(schema)?.unwrap_or_default();
    Ok(match kind {
        "number" if named.contains(&"integer") && !named.contains(&"number") => "integer",
        "number" => "number",
        "string" => "string",
        "boolean" => "boolean",
        "array" => "array",
        "object" => "object",
        _ => "null",
    })
}
