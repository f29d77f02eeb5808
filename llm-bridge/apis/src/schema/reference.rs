//! `$ref`, inlined or kept.

use serde_json::{Map, Value};

use super::{
    Lowering, Schema,
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
                conjoin(&mut schema, branch);
            }
        }
        settle_unevaluated(&mut schema);
        Ok(Some(schema))
    }

    /// The target of a reference.
    fn target(&self, reference: &Value) -> Result<String, String> {
        pointer(self.document, reference.as_str().ok_or("`$ref` has to be a text")?)
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
                conjoin(schema, target);
            }
        }
        Ok(true)
    }

    /// The name in `$defs` of a reference's target.
    pub(super) fn name_target(&mut self, reference: &Value) -> Result<String, String> {
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

    /// Adds the targets of the references that were kept to `$defs`.
    pub(super) fn lower_targets(&mut self, root: &mut Schema) -> Result<(), String> {
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
}

/// The JSON pointer of a reference within its own document.
///
/// # Errors
/// Why it cannot be resolved.
pub(super) fn pointer(root: &Value, reference: &str) -> Result<String, String> {
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
        anchored(root, &fragment)
    };
    found.ok_or_else(nowhere)
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

/// The place of the schema with an `$anchor`. To `$ref`, a `$dynamicAnchor` is the same.
fn anchored(root: &Value, name: &str) -> Option<String> {
    let mut open = vec![(String::new(), root)];
    while let Some((place, value)) = open.pop() {
        let has_name = |keyword| value.get(keyword).and_then(Value::as_str) == Some(name);
        if has_name("$anchor") || has_name("$dynamicAnchor") {
            return Some(place);
        }
        match value {
            Value::Object(fields) => {
                open.extend(fields.iter().map(|(key, value)| (step(&place, key), value)));
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                open.extend(items.map(|(index, value)| (step(&place, &index.to_string()), value)));
            }
            _ => {}
        }
    }
    None
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
            assert_eq!(pointer(&root, reference).ok().as_deref(), expected, "{reference}");
        }
        assert!(pointer(&root, "#y").unwrap_err().contains("#y"));
    }
}
