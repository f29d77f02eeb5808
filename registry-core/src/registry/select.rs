//! The tools that one caller may use now.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;

use super::{
    Registry,
    deferral::{self, Among},
};
use crate::{
    context::ToolContext,
    policy::Effect,
    result::{ErrorKind, ToolError},
    source::Source,
    tool::Tool,
};

/// Why a caller may not use a tool now. Listing and calling ask the same question.
pub(crate) fn refusal(tool: &Tool, context: &ToolContext) -> Option<ToolError> {
    let name = tool.name();
    if !tool.is_enabled() {
        return Some(off(name, "it is switched off"));
    }
    if let Some(fault) = tool.fault() {
        return Some(off(name, fault));
    }
    denial(tool, context).or_else(|| tool.unavailable(context).map(|why| off(name, &why)))
}

/// The same without availability, which is asked once in a call: what may have changed while the call waited.
pub(crate) fn refusal_by_now(tool: &Tool, context: &ToolContext) -> Option<ToolError> {
    if tool.is_enabled() { denial(tool, context) } else { Some(off(tool.name(), "it is switched off")) }
}

fn off(name: &str, why: &str) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, format!("{name} cannot be used: {why}"))
        .with_feedback(format!("The tool `{name}` is not available now. Do without it."))
}

/// Why a caller is not allowed a tool, whether it is there to be used or not.
fn denial(tool: &Tool, context: &ToolContext) -> Option<ToolError> {
    // What is built in gives nothing that is not allowed itself, and goes with what it is about.
    if *tool.source() == Source::BuiltIn {
        return None;
    }
    let (name, caller) = (tool.name(), context.caller());
    let needed = tool.policy().permission;
    let why = if caller.level < needed {
        format!("it needs the level {needed}, {} has {}", caller.user, caller.level)
    } else if caller.allowed_modules.as_ref().is_some_and(|allowed| !allowed.contains(tool.module())) {
        format!("the module {} is not allowed", tool.module())
    } else if caller.reads_only && tool.policy().effect != Effect::Read {
        format!("{} may use only tools that read", caller.user)
    } else if caller.allowed_tools.as_ref().is_some_and(|allowed| !allowed.contains(name)) {
        "it is not among the tools that this request allows".to_owned()
    } else {
        return None;
    };
    let error = ToolError::new(ErrorKind::PermissionDenied, format!("{name} was refused: {why}"));
    Some(error.with_feedback(format!("You may not use the tool `{name}` here. Do without it.")))
}

/// The tools that one caller may use, pinned: the same tools in the same order for a whole turn, whatever is registered
/// meanwhile. What is switched off or removed meanwhile is refused all the same.
#[derive(Debug, Clone)]
pub struct Selection {
    pub(crate) registry: Registry,
    tools: Arc<[Arc<Tool>]>,
    /// Whether the search for deferred tools is among them.
    has_search: bool,
    /// Whether all are deferred.
    defers_all: bool,
}

impl Selection {
    /// The tools, by name.
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// The tool of that name, where it is in the selection.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        let at = self.tools.binary_search_by(|tool| tool.name().cmp(name)).ok()?;
        self.tools.get(at)
    }

    /// The same selection with a tool of the entry point ([`Tool::built_in`]), which no listing has and whose calls go the one path of all
    /// others. Where the registry has a tool of its name, that one stays.
    #[must_use]
    pub fn with_built_in(mut self, tool: Arc<Tool>) -> Self {
        if self.registry.get(tool.name()).is_none() {
            let at = self.tools.partition_point(|other| other.name() < tool.name());
            let (before, after) = self.tools.split_at(at);
            self.tools = before.iter().cloned().chain([tool]).chain(after.iter().cloned()).collect();
        }
        self
    }

    /// The same selection with all its tools deferred, for a model whose context has no room for their definitions: what is left in the prompt is
    /// [`SEARCH_TOOLS`](crate::SEARCH_TOOLS), which finds them all, and what is built in. `None` where that cannot be used, as it is switched
    /// off or another tool has its name.
    #[must_use]
    pub fn deferring_all(&self) -> Option<Self> {
        let own = self.registry.get(deferral::SEARCH_TOOLS);
        if own.is_some_and(|tool| !tool.is_search() || !tool.is_enabled()) {
            return None;
        }
        let search = Arc::new(self.registry.shared.search_tools(Among::All));
        let others = self.tools.iter().filter(|tool| !tool.is_search());
        let mut tools: Vec<_> = others.cloned().chain([search]).collect();
        tools.sort_by(|one, other| one.name().cmp(other.name()));
        Some(Self {
            registry: self.registry.clone(),
            tools: tools.into(),
            has_search: true,
            defers_all: true,
        })
    }

    /// The tools that are in the prompt from the start, by name: all but the deferred ones.
    pub fn in_prompt(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.iter().filter(|tool| !self.is_deferred(tool))
    }

    /// Whether a tool is left out of prompts, to be found through [`SEARCH_TOOLS`](crate::SEARCH_TOOLS). It can be called
    /// all the same. Where that search cannot be used, nothing is left out.
    pub fn is_deferred(&self, tool: &Tool) -> bool {
        let all = || self.defers_all && *tool.source() != Source::BuiltIn;
        self.has_search && (all() || self.registry.is_deferred(tool))
    }

    /// The description of a tool for a model; of the search for deferred tools also where they are. The same text for
    /// the same selection.
    pub fn description<'t>(&self, tool: &'t Tool) -> Cow<'t, str> {
        match tool.is_search() {
            true => deferral::describe(
                &tool.description(),
                self.tools.iter().filter(|tool| self.is_deferred(tool)),
            )
            .into(),
            false => tool.description(),
        }
    }
}

impl Registry {
    /// The tools that the context's caller may use now.
    pub fn select(&self, context: &ToolContext) -> Selection {
        let (tools, context) = (self.shared.tools.load(), &self.own(context));
        let usable = tools.sorted().iter().filter(|tool| refusal(tool, context).is_none());
        let tools: Arc<[Arc<Tool>]> = usable.cloned().collect();
        let has_search = tools.iter().any(|tool| tool.is_search());
        Selection { registry: self.clone(), tools, has_search, defers_all: false }
    }

    /// Why the context's caller may not use a tool now; `None` when it may.
    pub fn why_not(&self, tool: &Tool, context: &ToolContext) -> Option<ToolError> {
        refusal(tool, &self.own(context))
    }

    /// Whether the context's caller is allowed a tool, and so may know of it, also while it is switched off.
    pub fn may_see(&self, tool: &Tool, context: &ToolContext) -> bool {
        denial(tool, context).is_none()
    }

    /// The [definitions](Tool::definition) for a prompt: of the tools that the context's caller may use now, with the
    /// registry's own names. Those that are deferred are left to [`SEARCH_TOOLS`](crate::SEARCH_TOOLS).
    pub fn get_tools(&self, context: &ToolContext) -> Vec<Value> {
        let selection = self.select(context);
        let definition = |tool: &Arc<Tool>| tool.described(tool.name(), &selection.description(tool));
        selection.in_prompt().map(definition).collect()
    }
}
