//! The root: an object, whose alternatives are merged if the form has no `anyOf` there.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::{
    Lowering, Schema,
    conjoin::{conjoin, settle_unevaluated},
    list,
    vocabulary::types,
};

impl Lowering<'_> {
    /// Lowers the root.
    pub(super) fn root(&mut self, schema: &Value) -> Result<Schema, String> {
        let nothing = || "no arguments fit its schema".to_owned();
        let mut whole = self.resolve(schema, false)?.ok_or_else(nothing)?;
        let is_object = types(&whole)?.is_none_or(|names| names.contains(&"object"));
        if !is_object {
            return Err("arguments are an object, and its schema asks for something else".to_owned());
        }
        let mut root = Map::from_iter([("type".to_owned(), json!("object"))]);
        whole.shift_remove("type");
        root.append(&mut whole);
        let mut words = Vec::new();
        if !self.keeps("anyOf") {
            self.settle_one_of(&mut root, &mut words)?;
            root = self.one_object(root, &mut words)?.ok_or_else(nothing)?;
        }
        self.words.append(&mut words);
        if !self.form.needs_properties {
            root.entry("properties").or_insert_with(|| json!({}));
        }
        self.resolved(root)?.ok_or_else(nothing)
    }

    /// Merges alternatives of the whole object into one with the properties of each; `None` if nothing can match any.
    fn one_object(&mut self, mut root: Schema, words: &mut Vec<String>) -> Result<Option<Schema>, String> {
        let Some(branches) = root.shift_remove("anyOf") else { return Ok(Some(root)) };
        let mut forms: Vec<Schema> = Vec::new();
        for branch in list("anyOf", branches)? {
            // References of one branch are not open in the next.
            let open = self.references.len();
            let branch = self.resolve(&branch, false)?;
            self.references.truncate(open);
            let Some(branch) = branch else { continue };
            self.count(root.values())?;
            let mut form = root.clone();
            conjoin(&mut form, branch);
            settle_unevaluated(&mut form);
            self.settle_one_of(&mut form, words)?;
            let can_be = form.get("enum").is_none_or(|values| *values != json!([]));
            if can_be && let Some(form) = self.one_object(form, words)? {
                forms.push(form);
            }
        }
        if forms.len() <= 1 {
            return Ok(forms.pop());
        }
        let needs: Vec<String> = forms.iter().map(outline).collect();
        words.push(format!("takes one of these forms: {}", needs.join(" or ")));
        self.lose(
            "anyOf",
            "became one object with the properties of all, and is said in the description",
            true,
        );
        root.insert("properties".to_owned(), all_properties(&forms).into());
        let mut common = forms.first().map(|form| names(form.get("required"))).unwrap_or_default();
        for form in &forms {
            let required: HashSet<String> = names(form.get("required")).into_iter().collect();
            common.retain(|name| required.contains(name));
        }
        root.shift_remove("required");
        root.extend((!common.is_empty()).then(|| ("required".to_owned(), json!(common))));
        let closed = forms.iter().all(|form| form.get("additionalProperties") == Some(&json!(false)));
        for others in ["additionalProperties", "unevaluatedProperties"] {
            root.shift_remove(others);
        }
        root.extend(closed.then(|| ("additionalProperties".to_owned(), json!(false))));
        Ok(Some(root))
    }
}

/// Each property with what any of the forms accepts for it.
fn all_properties(forms: &[Schema]) -> Schema {
    let mut all: Vec<(&String, Vec<&Value>)> = Vec::new();
    let mut places: HashMap<&String, (usize, HashSet<&Value>)> = HashMap::new();
    for form in forms {
        let properties = form.get("properties").and_then(Value::as_object);
        // A property that one form forbids may be in another.
        for (name, property) in properties.into_iter().flatten().filter(|(_, property)| **property != false) {
            let (place, seen) = places.entry(name).or_insert_with(|| (all.len(), HashSet::new()));
            if !seen.insert(property) {
                continue;
            }
            match all.get_mut(*place) {
                Some((_, several)) => several.push(property),
                None => all.push((name, vec![property])),
            }
        }
    }
    let one = |several: Vec<&Value>| match several.as_slice() {
        [only] => (*only).clone(),
        _ => json!({ "anyOf": several }),
    };
    all.into_iter().map(|(name, several)| (name.clone(), one(several))).collect()
}

/// What distinguishes a form: its required properties, else its properties.
fn outline(form: &Schema) -> String {
    let needed = names(form.get("required"));
    let taken = || form.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned();
    let shown: Vec<String> = if needed.is_empty() { taken().collect() } else { needed };
    let shown: Vec<String> = shown.iter().map(|name| format!("`{name}`")).collect();
    if shown.is_empty() { "nothing".to_owned() } else { shown.join(" and ") }
}

fn names(required: Option<&Value>) -> Vec<String> {
    let names = required.and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
