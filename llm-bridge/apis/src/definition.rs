//! Tool definitions in the format of each provider.

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt::{self, Write},
};

use serde::Serialize;
use serde_json::Value;

use crate::{
    names::WireNames,
    provider::Provider,
    rules::{Form, Parts, Rules},
    schema::{self, Lowered},
};

/// The tool to define.
#[derive(Debug, Clone)]
pub struct Subject<'t> {
    /// The tool's own name.
    pub name: &'t str,
    /// A short name for people.
    pub title: Option<&'t str>,
    /// The description for the model.
    pub description: Cow<'t, str>,
    /// JSON Schema of the arguments.
    pub input_schema: &'t Value,
    /// JSON Schema of the result.
    pub output_schema: Option<&'t Value>,
    /// What a call does, if known.
    pub hints: Option<Hints>,
}

impl<'t> Subject<'t> {
    /// A tool with a name, a description and a schema of its arguments, and nothing else.
    pub fn new(name: &'t str, description: impl Into<Cow<'t, str>>, input_schema: &'t Value) -> Self {
        Self {
            name,
            title: None,
            description: description.into(),
            input_schema,
            output_schema: None,
            hints: None,
        }
    }
}

/// What a call does outside of the conversation, as in the tool annotations of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may delete or overwrite something.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It sends what it is given to somebody else.
    pub open_world: bool,
}

/// Something of a tool's schema that its definition does not express.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// The tool's own name.
    pub tool: String,
    /// The place in its schema, as a JSON pointer with references resolved; empty for the root.
    pub path: String,
    /// The keyword that was lost, or `description`.
    pub keyword: String,
    /// What was done instead.
    pub done: String,
    /// Whether arguments may fit the definition that do not fit the tool. They are refused when the tool is called.
    pub widened: bool,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.tool)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "`{}` {}", self.keyword, self.done)?;
        if self.widened { f.write_str("; wider than the tool") } else { Ok(()) }
    }
}

/// A tool without a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// The tool's own name.
    pub tool: String,
    /// The reason, for the operator.
    pub reason: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: left out: {}", self.tool, self.reason)
    }
}

/// The definitions for a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Definitions {
    /// The `tools` of a request as the provider documents it: an array of definitions, which for Gemini is one entry with all
    /// `functionDeclarations`.
    pub list: Value,
    /// The names on the wire, mapped to the tools' own.
    pub names: WireNames,
    /// What the definitions do not express, tool by tool.
    pub losses: Vec<Loss>,
    /// The tools that could not be defined.
    pub left_out: Vec<LeftOut>,
    /// The tools that were defined as strict, by their own names. Arguments of their calls go through
    /// [`remove_nulls`](crate::remove_nulls).
    pub strict: HashSet<String>,
}

/// Defines tools for a provider.
#[derive(Debug, Clone)]
pub struct Definer {
    provider: Provider,
    strict: bool,
    reserved: Vec<String>,
    names: Option<WireNames>,
}

impl Definer {
    /// Defines tools for a provider, not strict.
    pub fn new(provider: Provider) -> Self {
        Self { provider, strict: false, reserved: Vec::new(), names: None }
    }

    /// Uses OpenAI's `strict: true`, with which the provider guarantees that arguments match, for each tool whose schema it can
    /// express. Optional properties become required and nullable, so arguments have to go through
    /// [`remove_nulls`](crate::remove_nulls). No effect on the other providers.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Avoids names that are in use, such as those of the client's own tools.
    #[must_use]
    pub fn reserving<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.reserved.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Uses names that were assigned before, to these tools or to more of them.
    #[must_use]
    pub fn with_names(mut self, names: WireNames) -> Self {
        self.names = Some(names);
        self
    }

    /// The definitions of tools, in their order. A tool that cannot be defined is left out with the reason.
    pub fn definitions<'t>(&self, tools: impl IntoIterator<Item = Subject<'t>>) -> Definitions {
        let rules = self.provider.rules();
        let mut names = self.names.clone().unwrap_or_else(|| WireNames::new(rules.name));
        names.reserve(self.reserved.iter().map(String::as_str));
        let mut all = Definitions {
            list: Value::Null,
            names,
            losses: Vec::new(),
            left_out: Vec::new(),
            strict: HashSet::new(),
        };
        let mut ready = Vec::new();
        let mut seen = HashSet::new();
        for subject in tools {
            let tool = subject.name;
            let lowered = if !seen.insert(tool) {
                Err("another tool in the list has its name".to_owned())
            } else if rules.max_tools.is_some_and(|max| ready.len() >= max) {
                Err(format!("a request takes {} tools, and there are as many before it", ready.len()))
            } else {
                self.lower(rules, &subject, &mut all.losses)
            };
            match lowered {
                Ok((form, lowered)) => ready.push((subject, form, lowered)),
                Err(reason) => all.left_out.push(LeftOut { tool: tool.to_owned(), reason }),
            }
        }
        let wire = all.names.assign_all(ready.iter().map(|(subject, ..)| subject.name));
        let mut written = Vec::with_capacity(ready.len());
        for ((subject, form, lowered), wire) in ready.iter().zip(&wire) {
            let description = describe(rules, subject, &lowered.words, &mut all.losses);
            let parts = Parts {
                name: wire,
                description: description.as_deref(),
                field: form.field,
                schema: &lowered.schema,
                strict: form.strict,
                subject,
            };
            written.push((rules.write)(&parts));
            if form.strict {
                all.strict.insert(subject.name.to_owned());
            }
        }
        all.list = (rules.list)(written);
        all
    }

    /// One definition, as it appears in the list: for Gemini `{"functionDeclarations": […]}` with that one.
    ///
    /// # Errors
    /// The reason why the tool cannot be defined.
    pub fn definition(&self, tool: Subject<'_>) -> Result<Value, LeftOut> {
        let mut one = self.definitions([tool]);
        match one.left_out.pop() {
            Some(left_out) => Err(left_out),
            None => Ok(one.list.get_mut(0).map(Value::take).unwrap_or_default()),
        }
    }

    /// The schema in the first form that can express it.
    fn lower(
        &self,
        rules: &'static Rules,
        subject: &Subject<'_>,
        losses: &mut Vec<Loss>,
    ) -> Result<(&'static Form, Lowered), String> {
        let loss = |path: String, keyword: &str, done: String, widened| Loss {
            tool: subject.name.to_owned(),
            path,
            keyword: keyword.to_owned(),
            done,
            widened,
        };
        let mut reasons = Vec::new();
        let strict = rules.strict.filter(|_| self.strict);
        for form in strict.into_iter().chain(rules.forms) {
            match schema::lower(subject.input_schema, form) {
                Ok(lowered) => {
                    if let Some(why) = reasons.first().filter(|_| strict.is_some()) {
                        losses.push(loss(String::new(), "strict", format!("is not said: {why}"), false));
                    }
                    losses.extend(
                        lowered.losses.iter().map(|lost| {
                            loss(lost.path.clone(), &lost.keyword, lost.done.clone(), lost.widened)
                        }),
                    );
                    return Ok((form, lowered));
                }
                Err(reason) => reasons.push(reason),
            }
        }
        Err(reasons.pop().unwrap_or_default())
    }
}

/// The description, followed by what the schema could not express, cut to the provider's limit.
fn describe(
    rules: &Rules,
    subject: &Subject<'_>,
    words: &[String],
    losses: &mut Vec<Loss>,
) -> Option<String> {
    let own =
        [Some(subject.description.as_ref()), subject.title, rules.needs_description.then_some(subject.name)];
    let own = own.into_iter().flatten().find(|text| !text.trim().is_empty());
    let text = schema::with_words(own, words)?;
    let Some(max) = rules.max_description.filter(|max| text.chars().count() > *max) else {
        return Some(text);
    };
    losses.push(Loss {
        tool: subject.name.to_owned(),
        path: String::new(),
        keyword: "description".to_owned(),
        done: format!("was cut to {max} characters"),
        widened: false,
    });
    Some(text.chars().take(max.saturating_sub(1)).chain(['…']).collect())
}

/// The definition of a tool for every provider and what each cannot express, as one text to compare in a test.
pub fn snapshot(tool: &Subject<'_>) -> String {
    let mut text = String::new();
    for &provider in Provider::ALL {
        let _ = writeln!(text, "# {provider}");
        let defined = Definer::new(provider).definitions([tool.clone()]);
        if let Some(left_out) = defined.left_out.first() {
            let _ = writeln!(text, "left out: {}", left_out.reason);
            continue;
        }
        let _ = writeln!(text, "{:#}", defined.list.get(0).unwrap_or(&Value::Null));
        for loss in &defined.losses {
            let _ = writeln!(text, "lost: {loss}");
        }
    }
    text
}
