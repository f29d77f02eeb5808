//! Tools that stay out of prompts, and the tool that finds them.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    str::FromStr,
    sync::{Arc, Weak},
};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Common, Registry, Shared, search::Query, select::refusal};
use crate::{
    context::ToolContext,
    flow::{Reads, Sends},
    handler::{Handler, ToolFuture},
    policy::ToolPolicy,
    result::{ErrorKind, ToolError, ToolResult},
    source::Source,
    spec::ToolSpec,
    tool::Tool,
};

/// The name of the tool that finds deferred tools. A registry has it from when it has a deferred tool; it can be used by whoever
/// may use one.
///
/// It takes `query` and `limit`, and gives `{"tools": [{"name", "description", "parameters"}]}`, best first, with the registry's
/// own names. Where nothing is found it is not successful and its message says what to try.
pub const SEARCH_TOOLS: &str = "search_tools";

/// How many tools are found where nothing is said, and at most.
const LIMIT: (u64, u64) = (5, 20);
/// How many modules are named in a text for the model.
const MODULES_NAMED: usize = 20;

/// Which tools are meant: one by its name, `fetch`, or those of a module, `research.*`. Tools without a module are in `local`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum ToolPattern {
    /// The tool of this name.
    Tool(String),
    /// The tools of this module.
    Module(String),
}

impl FromStr for ToolPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, pattern): (&str, fn(String) -> Self) = match text.strip_suffix(".*") {
            Some(module) => (module, Self::Module),
            None => (text, Self::Tool),
        };
        if name.trim().is_empty() || name.contains('*') {
            return Err(format!("`{text}` names no tools; write a tool's whole name, or `module.*`"));
        }
        Ok(pattern(name.to_owned()))
    }
}

impl TryFrom<String> for ToolPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => f.write_str(name),
            Self::Module(module) => write!(f, "{module}.*"),
        }
    }
}

/// The tools that an operator defers.
#[derive(Default)]
pub(crate) struct Deferral {
    tools: HashSet<String>,
    modules: HashSet<String>,
}

impl Extend<ToolPattern> for Deferral {
    fn extend<I: IntoIterator<Item = ToolPattern>>(&mut self, patterns: I) {
        for pattern in patterns {
            match pattern {
                ToolPattern::Tool(name) => self.tools.insert(name),
                ToolPattern::Module(module) => self.modules.insert(module),
            };
        }
    }
}

impl Common {
    pub(crate) fn is_deferred(&self, tool: &Tool) -> bool {
        let named =
            || self.deferral.tools.contains(tool.name()) || self.deferral.modules.contains(tool.module());
        *tool.source() != Source::BuiltIn && (tool.policy().deferred || named())
    }
}

impl Shared {
    pub(crate) fn search_tools(&self, among: Among) -> Tool {
        search_tools(self.this.clone(), self.common.clock.now(), among)
    }
}

impl Registry {
    /// Whether a tool is to stay out of prompts, by its own policy or by the operator's word.
    pub fn is_deferred(&self, tool: &Tool) -> bool {
        self.shared.common.is_deferred(tool)
    }
}

impl Tool {
    /// Whether this is [`SEARCH_TOOLS`], and not another tool of that name.
    pub fn is_search(&self) -> bool {
        *self.source() == Source::BuiltIn && self.name() == SEARCH_TOOLS
    }
}

/// What a search looks through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Among {
    /// The tools that are deferred in the registry.
    Deferred,
    /// All of them: see [`Selection::deferring_all`](crate::Selection::deferring_all).
    All,
}

/// The tool [`SEARCH_TOOLS`] of a registry.
pub(crate) fn search_tools(registry: Weak<Shared>, created_at: Timestamp, among: Among) -> Tool {
    let (usual, most) = LIMIT;
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "description": "What the tool should do, in a few words, or the name of a tool.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": most,
                "default": usual,
                "description": "The most tools to find.",
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let spec = ToolSpec {
        description: Some(
            "Finds further tools, which are not listed. Those that it finds can be called like the others from then on."
                .to_owned(),
        ),
        ..ToolSpec::new(SEARCH_TOOLS, schema)
    };
    let (reads, sends) = (Some(Reads::NOTHING), Some(Sends::Nothing));
    let policy = ToolPolicy { idempotent: true, reads, sends, ..ToolPolicy::new() };
    let handler = Arc::new(SearchTools { registry, among });
    Tool::of_host(spec, policy, Some(handler), created_at).with_source(Source::BuiltIn)
}

/// The description of the search with where there are tools to be found. It has no counts, so that a prompt stays what it was when a
/// module has another tool.
pub(crate) fn describe<'t>(description: &str, deferred: impl Iterator<Item = &'t Arc<Tool>>) -> String {
    format!("{description} They are in these modules: {}.", modules_of(deferred))
}

/// The names of the modules that the tools are in.
fn modules_of<'t>(tools: impl Iterator<Item = &'t Arc<Tool>>) -> String {
    let modules: BTreeSet<&str> = tools.map(|tool| tool.module()).collect();
    let named: Vec<&str> = modules.iter().take(MODULES_NAMED).copied().collect();
    let others = if modules.len() > MODULES_NAMED { " and others" } else { "" };
    format!("{}{others}", named.join(", "))
}

/// The code of [`SEARCH_TOOLS`].
struct SearchTools {
    /// Weak, as the registry holds the tool.
    registry: Weak<Shared>,
    among: Among,
}

impl SearchTools {
    /// Whether a tool is one that may be found.
    fn finds(&self, registry: &Registry, tool: &Tool) -> bool {
        match self.among {
            Among::Deferred => registry.is_deferred(tool),
            Among::All => *tool.source() != Source::BuiltIn,
        }
    }

    fn registry(&self) -> Option<Registry> {
        self.registry.upgrade().map(|shared| Registry { shared })
    }

    fn search(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolResult, ToolError> {
        let registry = self.registry().ok_or_else(|| ToolError::new(ErrorKind::Unavailable, GONE))?;
        let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(LIMIT.0).min(LIMIT.1);
        let found = registry.search_among(&Query::about(query), context, |tool| self.finds(&registry, tool));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let found: Vec<Value> = found.iter().take(limit).map(|tool| entry(tool)).collect();
        if found.is_empty() {
            let tools = registry.shared.tools.load();
            let usable = |tool: &&Arc<Tool>| self.finds(&registry, tool) && refusal(tool, context).is_none();
            let modules = modules_of(tools.sorted().iter().filter(usable));
            // For the model alone, so that it is no message to the user.
            let nothing = ToolResult::new(format!(
                "No tool was found for this. Search again with other words, such as what the tool works on; there are tools \
                 in {modules}. If that finds nothing either, do without."
            ));
            return Ok(ToolResult { success: false, ..nothing });
        }
        Ok(ToolResult::new(json!({"tools": found})))
    }
}

const GONE: &str = "its registry is gone";

/// What a model has to know to call a tool.
fn entry(tool: &Tool) -> Value {
    json!({"name": tool.name(), "description": tool.description(), "parameters": tool.spec().input_schema})
}

impl Handler for SearchTools {
    fn unavailable(&self, context: &ToolContext) -> Option<String> {
        let Some(registry) = self.registry() else { return Some(GONE.to_owned()) };
        let tools = registry.shared.tools.load();
        let mut usable = tools
            .sorted()
            .iter()
            .filter(|tool| self.finds(&registry, tool) && refusal(tool, context).is_none());
        usable.next().is_none().then(|| "no tool that may be used is deferred".to_owned())
    }

    fn call<'a>(&'a self, context: &'a ToolContext, arguments: Map<String, Value>) -> ToolFuture<'a> {
        Box::pin(std::future::ready(self.search(context, &arguments)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b11_a_pattern_is_a_name_or_a_module() {
        let read = |text: &str| text.parse::<ToolPattern>();
        assert_eq!(read("fetch"), Ok(ToolPattern::Tool("fetch".into())));
        assert_eq!(read("web.fetch"), Ok(ToolPattern::Tool("web.fetch".into())));
        assert_eq!(read("web.*"), Ok(ToolPattern::Module("web".into())));
        for text in ["", " ", "*", ".*", "web*", "*.fetch", "web.f*"] {
            let error = read(text).unwrap_err();
            assert!(error.contains(&format!("`{text}`")) && error.contains("module.*"), "{error}");
        }
        for text in ["fetch", "web.*"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
    }
}
