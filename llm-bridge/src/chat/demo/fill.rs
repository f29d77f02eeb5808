//! Fills in a tool's arguments from the question.

use serde_json::{Map, Value};

use super::hint::Hint;
use super::question::Question;
use super::words::{is_stop, is_weak, split_name, stem, stems};
use super::{extract, find, place, schema};

/// Nested objects are filled this far down.
const DEPTH: usize = 3;
/// And no more arguments than this are looked for.
const MOST: usize = 128;

/// One argument, or one field of a nested one.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) path: Vec<String>,
    pub(super) schema: Value,
    /// The first thing it may be.
    pub(super) flat: Map<String, Value>,
    pub(super) required: bool,
    pub(super) hint: Hint,
    pub(super) value: Option<Value>,
}

impl Leaf {
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    pub(super) fn kind(&self) -> &str {
        schema::kind(&self.flat)
    }

    /// The words of the name that say what it is, as stems.
    pub(super) fn name_stems(&self) -> Vec<String> {
        let parts = split_name(self.name());
        parts.iter().filter(|part| !is_stop(part) && !is_weak(part)).map(|part| stem(part)).collect()
    }

    fn is_text(&self) -> bool {
        self.kind() == "string" && matches!(self.hint, Hint::Text | Hint::Thing)
    }
}

/// The arguments for one call. They fit the schema wherever a value that fits can be made up.
pub(super) fn fill(name: &str, parameters: &Value, question: &Question<'_>) -> Map<String, Value> {
    let mut best = None;
    for flat in schema::expand(parameters, parameters) {
        if schema::kind(&flat) != "object" && flat.contains_key("type") {
            continue;
        }
        let made = Filler::new(name, parameters, &flat, question.clone()).run(&flat);
        if schema::fits(parameters, parameters, &Value::Object(made.clone())) {
            return made;
        }
        best.get_or_insert(made);
    }
    let whole = question.text.trim();
    match schema::sample(parameters, parameters, whole) {
        Value::Object(made) if schema::fits(parameters, parameters, &Value::Object(made.clone())) => made,
        _ => best.unwrap_or_default(),
    }
}

pub(super) struct Filler<'a> {
    root: &'a Value,
    pub(super) question: Question<'a>,
    pub(super) tool: Vec<String>,
    pub(super) leaves: Vec<Leaf>,
    /// What is left of the question for free text.
    rest: Option<String>,
    /// Lists of objects around this one.
    depth: usize,
}

impl<'a> Filler<'a> {
    fn new(name: &str, root: &'a Value, flat: &Map<String, Value>, question: Question<'a>) -> Self {
        let tool = split_name(name).iter().map(|word| stem(word)).collect();
        let mut filler = Self { root, question, tool, leaves: Vec::new(), rest: None, depth: 0 };
        filler.collect(flat, &[], true);
        filler
    }

    fn collect(&mut self, flat: &Map<String, Value>, path: &[String], required: bool) {
        for (name, of) in schema::properties(flat).into_iter().flatten() {
            if self.leaves.len() >= MOST {
                return;
            }
            let Some(inner) = schema::expand(self.root, of).into_iter().next() else { continue };
            let path: Vec<String> = path.iter().chain([name]).cloned().collect();
            let required = required && schema::required(flat).any(|needed| needed == name);
            if schema::kind(&inner) == "object" && schema::properties(&inner).is_some() && path.len() < DEPTH
            {
                self.collect(&inner, &path, required);
            } else {
                // A list asks for what its items are.
                let item = schema::item_of(&inner, 0)
                    .and_then(|item| schema::expand(self.root, item).into_iter().next());
                let hint = Hint::of(
                    name,
                    item.as_ref().filter(|_| schema::kind(&inner) == "array").unwrap_or(&inner),
                );
                self.leaves.push(Leaf { path, schema: of.clone(), flat: inner, required, hint, value: None });
            }
        }
    }

    fn run(mut self, flat: &Map<String, Value>) -> Map<String, Value> {
        self.given();
        // What can be told apart by its form goes first; free text takes what is left.
        self.each(Self::formed);
        self.each(Self::introduced);
        self.each(Self::one_of);
        self.numbers_by_name();
        self.each(Self::list);
        self.each(Self::flag);
        self.each(Self::placed);
        self.numbers_in_order();
        self.each(Self::matching);
        self.texts();
        self.build(flat, &[]).0
    }

    /// Looks for the value of every argument that has none.
    fn each(&mut self, look: fn(&mut Self, usize) -> Option<Value>) {
        for at in 0..self.leaves.len() {
            if self.leaves.get(at).is_some_and(|leaf| leaf.value.is_none())
                && let Some(value) = look(self, at)
            {
                self.set(at, value);
            }
        }
    }

    pub(super) fn set(&mut self, at: usize, value: Value) {
        if self.accepts(at, &value)
            && let Some(leaf) = self.leaves.get_mut(at)
        {
            leaf.value = Some(value);
        }
    }

    pub(super) fn accepts(&self, at: usize, value: &Value) -> bool {
        self.leaves.get(at).is_some_and(|leaf| schema::fits(self.root, &leaf.schema, value))
    }

    /// The first way to write something that the schema accepts; then that part of the question is used up.
    pub(super) fn accept(&mut self, at: usize, (range, ways): find::Found) -> Option<Value> {
        let value = ways.into_iter().map(Value::String).find(|value| self.accepts(at, value))?;
        self.question.take(range);
        Some(value)
    }

    /// Arguments written out as JSON in the question.
    fn given(&mut self) {
        let text = self.question.text;
        let (Some(from), Some(to)) = (text.find('{'), text.rfind('}')) else { return };
        let object = text.get(from..=to).and_then(|json| serde_json::from_str::<Value>(json).ok());
        let Some(object) = object.filter(Value::is_object) else { return };
        for at in 0..self.leaves.len() {
            let path = self.leaves.get(at).map(|leaf| leaf.path.clone()).unwrap_or_default();
            let value = path.iter().try_fold(&object, |inside, name| inside.get(name));
            if let Some(value) = value.cloned() {
                self.set(at, value);
            }
        }
        // An object whose fields are open takes it whole, where it names no argument.
        if self.leaves.iter().all(|leaf| leaf.value.is_none())
            && let Some(at) = self.leaves.iter().position(|leaf| leaf.kind() == "object")
        {
            self.set(at, object);
        }
        self.question.take(from..to + 1);
    }

    /// Free text: what was quoted, else what is left. An optional one gets it only where no other argument is for it.
    fn texts(&mut self) {
        let mut open: Vec<usize> = Vec::new();
        for (at, leaf) in self.leaves.iter().enumerate() {
            if leaf.value.is_none() && leaf.required && leaf.kind() == "string" {
                open.push(at);
            }
        }
        let taken = self.leaves.iter().any(|leaf| leaf.required && leaf.is_text());
        if !taken {
            const MAIN: &[&str] =
                &["query", "q", "question", "text", "prompt", "message", "input", "topic", "keyword"];
            let main = self.leaves.iter().position(|leaf| {
                leaf.value.is_none()
                    && leaf.is_text()
                    && split_name(leaf.name()).iter().any(|part| MAIN.contains(&part.as_str()))
            });
            if open.is_empty() {
                open.extend(main);
            }
        }
        for at in open {
            let Some(leaf) = self.leaves.get(at) else { continue };
            // A text that has to be chosen from a list, or have a form, is not free.
            let short = leaf.hint != Hint::Text;
            let (hint, thing) = (leaf.hint, leaf.hint == Hint::Thing);
            let own = leaf.name_stems();
            let quoted = self.question.quoted();
            if let Some((inner, outer)) = quoted.filter(|_| !short || thing || hint == Hint::Place) {
                let text = self.question.slice(&inner).to_owned();
                if let Some(value) = self.text_for(at, &text) {
                    self.question.take(outer);
                    self.set(at, value);
                    continue;
                }
            }
            let rest = self.question.rest(&own);
            if thing
                && let Some(found) =
                    place::thing(&self.question, rest.as_ref().map(|(_, text)| text.as_str()))
                && let Some(value) = self.accept(at, found)
            {
                self.set(at, value);
                continue;
            }
            // Several texts get the same: which part is for which, no one can tell.
            self.rest = self.rest.take().or(rest.map(|(_, text)| text));
            let few = |text: &&String| {
                !short || matches!(hint, Hint::Sum | Hint::Thing) || text.split_whitespace().count() <= 3
            };
            let formed = matches!(hint, Hint::Url | Hint::Email | Hint::Sql | Hint::Recurrence);
            if let Some(text) = self.rest.clone().as_ref().filter(few).filter(|_| !formed)
                && let Some(value) = self.text_for(at, text)
            {
                self.set(at, value);
            }
        }
    }

    /// A text cut to the length the argument may have.
    fn text_for(&self, at: usize, text: &str) -> Option<Value> {
        let leaf = self.leaves.get(at)?;
        let whole = Value::String(text.to_owned());
        if self.accepts(at, &whole) {
            return Some(whole);
        }
        let most = leaf.flat.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let cut = Value::String(schema::fit_length(text, 0, usize::try_from(most).unwrap_or(usize::MAX)));
        self.accepts(at, &cut).then_some(cut)
    }

    /// The object, and whether the question gave anything for it. Fields keep the order of the schema.
    fn build(&mut self, flat: &Map<String, Value>, path: &[String]) -> (Map<String, Value>, bool) {
        let mut object = Map::new();
        let mut any = false;
        let needed: Vec<&str> = schema::required(flat).collect();
        for (name, of) in schema::properties(flat).into_iter().flatten() {
            let path: Vec<String> = path.iter().chain([name]).cloned().collect();
            let inner = schema::expand(self.root, of).into_iter().next();
            let leaf = self.leaves.iter_mut().find(|leaf| leaf.path == path);
            let (value, hint) = match leaf {
                Some(leaf) => (leaf.value.take(), leaf.hint),
                None => {
                    let inner = inner.as_ref().filter(|_| path.len() < DEPTH);
                    let built = inner.map(|inner| self.build(inner, &path));
                    let needed = needed.contains(&name.as_str());
                    let built =
                        built.filter(|(_, found)| *found || needed).map(|(object, _)| Value::Object(object));
                    (built.filter(|value| schema::fits(self.root, of, value)), Hint::Text)
                }
            };
            if let Some(value) = value {
                any = true;
                object.insert(name.clone(), value);
            } else if needed.contains(&name.as_str()) {
                object.insert(name.clone(), self.made_up(of, hint));
            }
        }
        for name in needed {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), self.made_up(&Value::Bool(true), Hint::Text));
            }
        }
        (object, any)
    }

    /// A value for what must be there and was not found.
    fn made_up(&self, of: &Value, hint: Hint) -> Value {
        let whole = self.question.text.trim();
        let text = hint.fallback().or(self.rest.as_deref().filter(|rest| !rest.is_empty()));
        let text = text.or(Some(whole).filter(|whole| !whole.is_empty())).unwrap_or("demo");
        // A list of objects with nothing in it would do, but it would show nothing.
        if let Some(flat) = schema::expand(self.root, of).into_iter().next()
            && schema::kind(&flat) == "array"
            && let Some(inner) =
                schema::item_of(&flat, 0).and_then(|item| schema::expand(self.root, item).into_iter().next())
            && schema::properties(&inner).is_some()
            && self.depth < 2
        {
            let mut filler = Filler::new("", self.root, &inner, self.question.clone());
            filler.tool.clone_from(&self.tool);
            filler.depth = self.depth + 1;
            let items = Value::Array(vec![Value::Object(filler.run(&inner))]);
            if schema::fits(self.root, of, &items) {
                return items;
            }
        }
        schema::sample(self.root, of, text)
    }

    /// Words of all the arguments, where the text of one ends and that of the next begins.
    pub(super) fn all_names(&self) -> Vec<String> {
        self.leaves
            .iter()
            .flat_map(|leaf| extract::introductions(leaf, &self.tool))
            .map(|(word, _)| word)
            .collect()
    }

    pub(super) fn has_required_text(&self) -> bool {
        self.leaves.iter().any(|leaf| leaf.required && leaf.is_text())
    }

    pub(super) fn root(&self) -> &'a Value {
        self.root
    }

    pub(super) fn description_stems(&self, at: usize) -> Vec<String> {
        let text = self.leaves.get(at).and_then(|leaf| leaf.flat.get("description")).and_then(Value::as_str);
        stems(text.unwrap_or_default())
    }
}
