//! Tool definitions as providers take them.

use std::{
    collections::HashSet,
    fmt::{self, Write},
    str::FromStr,
};

use registry_core::{Tool, ToolPolicy, ToolSpec};
use serde::Serialize;
use serde_json::Value;

use super::{
    anthropic, gemini,
    lower::{self, Lowered},
    mcp,
    names::WireNames,
    ollama, openai, responses,
    rules::{Form, Parts, Rules},
};

/// A wire API that takes tool definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI chat completions.
    OpenAi,
    /// OpenAI Responses.
    Responses,
    /// Ollama's own API.
    Ollama,
    /// Gemini's `generateContent`.
    Gemini,
    /// Anthropic Messages.
    Anthropic,
    /// The Model Context Protocol.
    Mcp,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::Responses, Self::Ollama, Self::Gemini, Self::Anthropic, Self::Mcp];

    /// The name it is asked for by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Ollama => "ollama",
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
            Self::Mcp => "mcp",
        }
    }

    /// The most tools that a request takes, where there is a limit.
    pub const fn max_tools(self) -> Option<usize> {
        self.rules().max_tools
    }

    const fn rules(self) -> &'static Rules {
        match self {
            Self::OpenAi => &openai::definition::RULES,
            Self::Responses => &responses::RULES,
            Self::Ollama => &ollama::RULES,
            Self::Gemini => &gemini::RULES,
            Self::Anthropic => &anthropic::RULES,
            Self::Mcp => &mcp::RULES,
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A provider that is not known. Its text names those that are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProvider(String);

impl fmt::Display for UnknownProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Provider::ALL.map(Provider::name).join(", ");
        write!(f, "the provider `{}` is not supported; known are {known}", self.0)
    }
}

impl std::error::Error for UnknownProvider {}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let found = Self::ALL.into_iter().find(|provider| provider.name() == name);
        found.ok_or_else(|| UnknownProvider(name.to_owned()))
    }
}

/// What is to be defined: a spec, and the rules for the tool where they are known.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'t> {
    spec: &'t ToolSpec,
    policy: Option<&'t ToolPolicy>,
}

impl<'t> From<&'t ToolSpec> for Subject<'t> {
    fn from(spec: &'t ToolSpec) -> Self {
        Self { spec, policy: None }
    }
}

impl<'t> From<&'t Tool> for Subject<'t> {
    fn from(tool: &'t Tool) -> Self {
        Self { spec: tool.spec(), policy: Some(tool.policy()) }
    }
}

/// Something that a tool says and its definition does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The tool, by its own name.
    pub tool: String,
    /// Where in its schema, as a JSON pointer with references followed; empty for the root and for what is not in the schema.
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
pub struct LeftOut {
    /// The tool, by its own name.
    pub tool: String,
    /// Why, for the operator.
    pub reason: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: left out: {}", self.tool, self.reason)
    }
}

/// The definitions for a request.
#[derive(Debug, Clone)]
pub struct Definitions {
    /// The `tools` of a request as the provider documents it: an array of definitions, which for Gemini is one entry with all
    /// `functionDeclarations`.
    pub list: Value,
    /// The names on the wire, and whose they are.
    pub names: WireNames,
    /// What was lost, tool by tool.
    pub losses: Vec<Loss>,
    /// The tools that could not be defined.
    pub left_out: Vec<LeftOut>,
    /// The tools in the strict form, by their own names: [`remove_nulls`](super::remove_nulls) is for calls of these.
    pub strict: HashSet<String>,
}

/// Defines tools for a provider.
#[derive(Debug, Clone)]
pub struct Definer {
    provider: Provider,
    strict: bool,
    reserved: Vec<String>,
}

impl Definer {
    /// For a provider, in its ordinary form.
    pub fn new(provider: Provider) -> Self {
        Self { provider, strict: false, reserved: Vec::new() }
    }

    /// The provider it is for.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// In the form in which the provider promises that arguments fit, for each tool whose schema that form can hold: OpenAI's
    /// `strict: true`. What is optional becomes required and takes null, so arguments have to go through
    /// [`remove_nulls`](super::remove_nulls). The other providers have no such form here, and nothing changes.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// With names that belong to others already, such as the client's own tools.
    #[must_use]
    pub fn reserving<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.reserved.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// The definitions of tools, in their order. A tool that cannot be defined is left out with the reason.
    pub fn definitions<'t, S: Into<Subject<'t>>>(&self, tools: impl IntoIterator<Item = S>) -> Definitions {
        let rules = self.provider.rules();
        let mut names = WireNames::new(rules.name);
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
        for subject in tools.into_iter().map(Into::into) {
            let tool = subject.spec.tool_name.as_str();
            let lowered = if !seen.insert(tool) {
                Err("another tool in the list has its name".to_owned())
            } else if rules.max_tools.is_some_and(|max| ready.len() >= max) {
                Err(format!("a request takes {} tools, and there are as many before it", ready.len()))
            } else {
                self.lower(rules, subject, &mut all.losses)
            };
            match lowered {
                Ok((form, lowered)) => ready.push((subject, form, lowered)),
                Err(reason) => all.left_out.push(LeftOut { tool: tool.to_owned(), reason }),
            }
        }
        let wire = all.names.assign_all(ready.iter().map(|(subject, ..)| subject.spec.tool_name.as_str()));
        let mut written = Vec::with_capacity(ready.len());
        for ((subject, form, lowered), wire) in ready.iter().zip(&wire) {
            let tool = &subject.spec.tool_name;
            let description = describe(rules, *subject, &lowered.words, &mut all.losses);
            let parts = Parts {
                name: wire,
                description: description.as_deref(),
                field: form.field,
                schema: &lowered.schema,
                strict: form.strict,
                spec: subject.spec,
                policy: subject.policy,
            };
            written.push((rules.write)(&parts));
            if form.strict {
                all.strict.insert(tool.clone());
            }
        }
        all.list = (rules.list)(written);
        all
    }

    /// One definition, as it stands in the list: for Gemini `{"functionDeclarations": […]}` with that one.
    ///
    /// # Errors
    /// Why it cannot be defined.
    pub fn definition<'t>(&self, tool: impl Into<Subject<'t>>) -> Result<(Value, Definitions), LeftOut> {
        let subject = tool.into();
        let mut one = self.definitions([subject]);
        if let Some(left_out) = one.left_out.pop() {
            return Err(left_out);
        }
        let definition = one.list.get(0).cloned().unwrap_or_default();
        Ok((definition, one))
    }

    /// The schema in the first form that can hold it.
    fn lower(
        &self,
        rules: &'static Rules,
        subject: Subject<'_>,
        losses: &mut Vec<Loss>,
    ) -> Result<(&'static Form, Lowered), String> {
        let tool = &subject.spec.tool_name;
        let loss = |path: String, keyword: &str, done: String, widened| Loss {
            tool: tool.clone(),
            path,
            keyword: keyword.to_owned(),
            done,
            widened,
        };
        let mut reasons = Vec::new();
        let strict = rules.strict.filter(|_| self.strict);
        for form in strict.into_iter().chain(rules.forms) {
            match lower::lower(&subject.spec.input_schema, form) {
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

/// The description, with what the schema could not say, within the provider's bound.
fn describe(rules: &Rules, subject: Subject<'_>, words: &[String], losses: &mut Vec<Loss>) -> Option<String> {
    let spec = subject.spec;
    let described = spec.described();
    let own =
        [Some(described.as_ref()), spec.title.as_deref(), rules.needs_description.then_some(&spec.tool_name)];
    let own = own.into_iter().flatten().find(|text| !text.trim().is_empty());
    let text = lower::with_words(own, words)?;
    let Some(max) = rules.max_description.filter(|max| text.chars().count() > *max) else {
        return Some(text);
    };
    losses.push(Loss {
        tool: spec.tool_name.clone(),
        path: String::new(),
        keyword: "description".to_owned(),
        done: format!("was cut to {max} characters"),
        widened: false,
    });
    Some(text.chars().take(max.saturating_sub(1)).chain(['…']).collect())
}

/// The definitions of tools for a provider; see [`Definer`] for more ways.
pub fn definitions<'t, S: Into<Subject<'t>>>(
    provider: Provider,
    tools: impl IntoIterator<Item = S>,
) -> Definitions {
    Definer::new(provider).definitions(tools)
}

/// The definition of one tool for a provider: `{"type": "function", "function": …}` for OpenAI and Ollama,
/// `{"functionDeclarations": […]}` for Gemini.
///
/// # Errors
/// Why it cannot be defined.
pub fn definition<'t>(provider: Provider, tool: impl Into<Subject<'t>>) -> Result<Value, LeftOut> {
    Definer::new(provider).definition(tool).map(|(definition, _)| definition)
}

/// All that providers are told of a tool, as one text for a test to compare with the one of yesterday: for each provider the
/// definition, and under it what was lost.
///
/// ```
/// # use registry_core::{Tool, ToolPolicy, ToolSpec, Registry};
/// # use serde_json::json;
/// # let registry = Registry::builder().without_compiled().build().unwrap();
/// # let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
/// # registry.register(ToolSpec::new("weather", schema), ToolPolicy::new(), None).unwrap();
/// let tool = registry.get("weather").unwrap();
/// let snapshot = llm_bridge::provider::snapshot(tool.as_ref());
/// assert!(snapshot.starts_with("# openai\n"));
/// // assert_eq!(snapshot, include_str!("weather.snapshot"));
/// ```
pub fn snapshot<'t>(tool: impl Into<Subject<'t>>) -> String {
    let subject = tool.into();
    let mut text = String::new();
    for provider in Provider::ALL {
        let _ = writeln!(text, "# {}", provider.name());
        match Definer::new(provider).definition(subject) {
            Ok((definition, all)) => {
                let _ = writeln!(text, "{definition:#}");
                for loss in &all.losses {
                    let _ = writeln!(text, "lost: {loss}");
                }
            }
            Err(left_out) => {
                let _ = writeln!(text, "left out: {}", left_out.reason);
            }
        }
    }
    text
}
