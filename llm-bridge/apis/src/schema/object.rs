//! Properties: their names, the required ones, and what a form requires of every object and array.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Lowering, Schema, vocabulary::types};
use crate::rules::Depth;

impl Lowering<'_> {
    /// Declares required properties if the form needs that.
    pub(super) fn declare(&self, schema: &mut Schema) -> Result<(), String> {
        let is_object = types(schema)?.is_none_or(|names| names.contains(&"object"));
        let Some(Value::Array(required)) = schema.get("required").cloned() else { return Ok(()) };
        if !self.form.declared || !is_object || required.is_empty() {
            return Ok(());
        }
        // A pattern may constrain it further; that is a loss of its own.
        let others = schema.get("additionalProperties").filter(|_| !schema.contains_key("patternProperties"));
        let others = others.cloned().unwrap_or(json!(true));
        if let Value::Object(all) = schema.entry("properties").or_insert_with(|| json!({})) {
            for name in required.iter().filter_map(Value::as_str) {
                all.entry(name).or_insert_with(|| others.clone());
            }
        }
        Ok(())
    }

    /// Lowers the properties of an object; `None` if nothing can match.
    pub(super) fn properties(
        &mut self,
        properties: Value,
        required: &Value,
        is_object: bool,
        closed: bool,
    ) -> Result<Option<Schema>, String> {
        let Value::Object(properties) = properties else {
            return Err(format!("`{}`: `properties` has to be schemas by name", self.path));
        };
        let required: HashSet<&str> =
            required.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut kept = Map::new();
        for (name, property) in properties {
            let is_required = required.contains(name.as_str());
            let lowered = self.inside("properties", |this| {
                this.inside(&name, |this| this.property(&name, is_required, closed, &property))
            })?;
            match lowered {
                Some(lowered) => {
                    kept.insert(name, lowered.into());
                }
                None if is_required && is_object => return Ok(None),
                None if is_required => {
                    let anything = self.anything("properties")?;
                    kept.insert(name, anything.into());
                }
                None => {}
            }
        }
        Ok(Some(kept))
    }

    /// Lowers a property; `None` if nothing can match it.
    fn property(
        &mut self,
        name: &str,
        is_required: bool,
        closed: bool,
        property: &Value,
    ) -> Result<Option<Schema>, String> {
        let at_root = self.path.matches('/').count() == 2;
        let rule = self.form.property_names.filter(|(_, depth)| at_root || *depth == Depth::Everywhere);
        if rule.is_some_and(|(rule, _)| !rule.allows(name)) {
            if is_required {
                return Err(format!("the property `{name}` is required, and its name is not taken"));
            }
            self.lose("properties", "was dropped: its name is not taken", !closed);
            return Ok(None);
        }
        match self.schema(property)? {
            Some(lowered) => self.not_null(lowered).map(Some),
            None if self.keeps("not") => Ok(Some(super::never())),
            None => {
                // Omitted from a closed object, it stays impossible.
                if !closed && !is_required {
                    self.lose("properties", "was dropped, though nothing fits here", true);
                }
                Ok(None)
            }
        }
    }

    /// Adds what the form requires of every object and array.
    pub(super) fn complete(&mut self, lowered: &mut Schema) -> Result<(), String> {
        let is = |schema: &Schema, name: &str| {
            types(schema).ok().flatten().is_some_and(|names| names.contains(&name))
        };
        if self.form.needs_items && is(lowered, "array") && !lowered.contains_key("items") {
            if self.form.typed {
                return Err(format!("`{}`: an array of anything is not taken", self.path));
            }
            lowered.insert("items".to_owned(), json!({}));
        }
        if !is(lowered, "object") {
            return Ok(());
        }
        let is_empty = lowered.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
        if self.form.needs_properties && is_empty {
            return Err(format!("`{}`: an object without properties is not taken", self.path));
        }
        if self.form.strict {
            return self.close(lowered, is_empty);
        }
        Ok(())
    }
}
