//! `$ref`, inlined or kept.

use std::{
    borrow::Cow,
    cell::OnceCell,
    collections::{HashMap, HashSet},
};

use serde_json::{Map, Value};

use super::{
    Lowering, MAX_PATHS, Schema,
    conjoin::{conjoin, settle_unevaluated},
    list, never,
    vocabulary::modernize,
};

impl Lowering<'_> {
    /// A schema as an object, with references inlined and `allOf` merged if they cannot be kept.
    pub(super) fn resolve(
        &mut self,
        schema: &Value,
        keep_references: bool,
    ) -> Result<Option<Schema>, String> {
        self.count([schema])?;
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
                self.copy(merged(&schema, &branch))?;
                conjoin(&mut schema, branch);
            }
        }
        settle_unevaluated(&mut schema);
        Ok(Some(schema))
    }

    /// The target of a reference.
    fn target(&self, reference: &Value) -> Result<String, String> {
        self.anchors.pointer(self.document, reference.as_str().ok_or("`$ref` has to be a text")?)
    }

    /// Inlines a reference; false if nothing can match.
    fn write_out(&mut self, schema: &mut Schema, at: String) -> Result<bool, String> {
        let document = self.document;
        let Some(target) = document.pointer(&at) else { return Ok(true) };
        match self.references.iter().position(|open| *open == at) {
            // It is being inlined at this very place, so it adds nothing.
            Some(open) if open >= self.own_references => {}
            Some(_) if self.form.typed => {
                return Err(format!("`{}`: `$ref` leads back to what it is part of", self.path));
            }
            Some(_) => {
                self.lose("$ref", "leads back to what it is part of and was cut there", true);
                let name = at.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("whole");
                let description = format!("The same form again as the {name} that it is part of.");
                schema.entry("description").or_insert_with(|| description.into());
                if let Some(named) = target.get("type") {
                    conjoin(schema, Map::from_iter([("type".to_owned(), named.clone())]));
                }
            }
            None => {
                self.references.push(at);
                let Some(target) = self.resolve(target, false)? else { return Ok(false) };
                self.copy(merged(schema, &target))?;
                conjoin(schema, target);
            }
        }
        Ok(true)
    }

    /// The name in `$defs` of a reference's target.
    pub(super) fn name_target(&mut self, reference: &Value) -> Result<String, String> {
        let at = self.target(reference)?;
        Ok(self.targets.name(at))
    }

    /// Adds the targets of the references that were kept to `$defs`.
    pub(super) fn lower_targets(&mut self, root: &mut Schema) -> Result<(), String> {
        let mut definitions = Map::new();
        // Targets refer to further ones.
        while let Some((at, name)) = self.targets.all.get(definitions.len()).cloned() {
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
}

/// What a schema has that is copied when another is merged into it.
fn merged<'s>(outer: &'s Schema, inner: &'s Schema) -> impl Iterator<Item = &'s Value> {
    let closed = inner.contains_key("additionalProperties").then(|| outer.get("properties")).flatten();
    let others = inner.keys().filter(|keyword| *keyword != "properties");
    others.filter_map(|keyword| outer.get(keyword)).chain(closed)
}

/// The targets of references that are kept.
#[derive(Default)]
pub(super) struct Targets {
    /// By pointer and by name in `$defs`, in their order.
    all: Vec<(String, String)>,
    /// The name of each pointer.
    names: HashMap<String, String>,
    taken: HashSet<String>,
    /// The number that comes next behind a name that is taken.
    numbers: HashMap<String, u32>,
}

impl Targets {
    /// The name of a target, a new one where it has none.
    fn name(&mut self, at: String) -> String {
        if let Some(name) = self.names.get(&at) {
            return name.clone();
        }
        let base = at.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("root");
        let base: String = base.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let mut name = base.clone();
        let number = self.numbers.entry(base.clone()).or_insert(2);
        while !self.taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            *number += 1;
        }
        self.names.insert(at.clone(), name.clone());
        self.all.push((at, name.clone()));
        name
    }
}

/// The places of the anchors of a document, found once.
#[derive(Default)]
pub(super) struct Anchors(OnceCell<HashMap<String, String>>);

impl Anchors {
    /// The JSON pointer of a reference within its own document, which is the same each time.
    ///
    /// # Errors
    /// Why it cannot be resolved.
    pub(super) fn pointer(&self, root: &Value, reference: &str) -> Result<String, String> {
        let own = root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let fragment = reference.strip_prefix('#').or_else(|| {
            let after = reference.strip_prefix(own.trim_end_matches('#'))?;
            if after.is_empty() { Some("") } else { after.strip_prefix('#') }
        });
        let nowhere = || format!("`$ref`: `{reference}` leads to nothing in the schema");
        let fragment = decoded(fragment.ok_or_else(nowhere)?).ok_or_else(nowhere)?;
        let found = if fragment.is_empty() || fragment.starts_with('/') {
            root.pointer(&fragment).map(|_| fragment)
        } else {
            self.0.get_or_init(|| anchors(root)).get(&fragment).cloned()
        };
        found.ok_or_else(nowhere)
    }
}

/// Percent-decodes a fragment.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes().iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
        let code = digit(rest.next())? * 16 + digit(rest.next())?;
        bytes.push(u8::try_from(code).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// The places of the schemas with an `$anchor`, as far as they are not too long together. To `$ref`, a `$dynamicAnchor` is the same.
fn anchors(root: &Value) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut size = 0;
    let mut open = vec![(String::new(), root)];
    while let Some((place, value)) = open.pop() {
        for name in ["$anchor", "$dynamicAnchor"].iter().filter_map(|keyword| value.get(*keyword)?.as_str()) {
            found.entry(name.to_owned()).or_insert_with(|| place.clone());
        }
        let parts: Vec<(Cow<'_, str>, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(key, value)| (key.into(), value)).collect(),
            Value::Array(items) => {
                items.iter().enumerate().map(|(index, value)| (index.to_string().into(), value)).collect()
            }
            _ => continue,
        };
        for (key, value) in parts.into_iter().filter(|(_, value)| value.is_object() || value.is_array()) {
            size += place.len() + key.len();
            if size > MAX_PATHS {
                return found;
            }
            open.push((step(&place, &key), value));
        }
    }
    found
}

/// Extends a JSON pointer by one step.
pub(super) fn step(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_in_every_form() {
        let root = json!({"$id": "https://a.example/s", "$defs": {"a b": {"$anchor": "x"}, "c/d": {}}});
        let anchors = Anchors::default();
        for (reference, expected) in [
            ("#", Some("")),
            ("https://a.example/s", Some("")),
            ("#/$defs/a%20b", Some("/$defs/a b")),
            ("https://a.example/s#/$defs/c~1d", Some("/$defs/c~1d")),
            ("#x", Some("/$defs/a b")),
            ("#/$defs/none", None),
            ("#y", None),
            ("https://b.example/s", None),
            ("#%zz", None),
            ("other.json#/a", None),
        ] {
            assert_eq!(anchors.pointer(&root, reference).ok().as_deref(), expected, "{reference}");
        }
        assert!(anchors.pointer(&root, "#y").unwrap_err().contains("#y"));
    }
}
