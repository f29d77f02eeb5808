//! Finding tools by words and tags.

use std::sync::Arc;

use crate::{context::ToolContext, registry::Registry, select::refusal, spec::ToolSpec, tool::Tool};

/// What tools are looked for. Without text and tags: all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Words, each of which has to be in the name, a tag, the title or the description. Case does not count.
    pub text: String,
    /// Tags that the tool has to have, all of them. Case does not count.
    pub tags: Vec<String>,
    /// Whether tools are found too that cannot be used now, such as those that are switched off.
    pub include_disabled: bool,
}

impl Query {
    /// A search for words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// With a tag that the tool has to have.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }
}

/// Where a word was found, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hit {
    /// It is the name, with or without the module.
    Name,
    InName,
    InTag,
    InTitle,
    InDescription,
}

/// A tool's texts in small letters.
struct Texts {
    name: String,
    tags: Vec<String>,
    title: String,
    description: String,
}

impl Texts {
    fn of(spec: &ToolSpec) -> Self {
        let lower = |text: &Option<String>| text.as_deref().unwrap_or_default().to_lowercase();
        Self {
            name: spec.tool_name.to_lowercase(),
            tags: spec.tags.iter().map(|tag| tag.to_lowercase()).collect(),
            title: lower(&spec.title),
            description: lower(&spec.description),
        }
    }

    fn find(&self, word: &str) -> Option<Hit> {
        let own_name = self.name.split_once('.').map_or(&*self.name, |(_, name)| name);
        let places = [
            (Hit::Name, self.name == word || own_name == word),
            (Hit::InName, self.name.contains(word)),
            (Hit::InTag, self.tags.iter().any(|tag| tag.contains(word))),
            (Hit::InTitle, self.title.contains(word)),
            (Hit::InDescription, self.description.contains(word)),
        ];
        places.into_iter().find_map(|(hit, is_there)| is_there.then_some(hit))
    }
}

impl Registry {
    /// The tools that match, of those that the context's caller is allowed. Those come first whose words are found in
    /// the better places: the name, then a tag, the title, the description; of equals the first by name.
    ///
    /// ```
    /// use registry_core::{Caller, Query, Registry, ToolPolicy, ToolSpec, handler_fn, prelude::*};
    ///
    /// let registry = Registry::builder().without_compiled().build()?;
    /// let handler = || Some(handler_fn(|_, _| async { Ok(ToolResult::new("sunny")) }));
    /// for (name, description) in [("travel.plan", "A plan that heeds the weather."), ("weather", "The weather now.")] {
    ///     let spec = ToolSpec { description: Some(description.into()), ..ToolSpec::new(name, json!({"type": "object"})) };
    ///     registry.register(spec, ToolPolicy::new(), handler())?;
    /// }
    /// let found = registry.search(&Query::text("Weather"), &registry.context(Caller::default()));
    /// assert_eq!(found.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["weather", "travel.plan"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn search(&self, query: &Query, context: &ToolContext) -> Vec<Arc<Tool>> {
        let text = query.text.to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        let tags: Vec<String> = query.tags.iter().map(|tag| tag.to_lowercase()).collect();
        let hits = |tool: &Tool| -> Option<Vec<Hit>> {
            let texts = Texts::of(tool.spec());
            let is_tagged = tags.iter().all(|tag| texts.tags.contains(tag));
            let mut hits = words.iter().map(|word| texts.find(word)).collect::<Option<Vec<Hit>>>()?;
            // The worst first: a tool is no better than where its worst word stands.
            hits.sort_unstable_by(|a, b| b.cmp(a));
            is_tagged.then_some(hits)
        };
        let may = |tool: &Tool| match query.include_disabled {
            true => self.may_see(tool, context),
            false => refusal(tool, context).is_none(),
        };
        let tools = self.shared.tools.load();
        let mut found: Vec<(Vec<Hit>, &Arc<Tool>)> = tools
            .sorted()
            .iter()
            .filter(|tool| may(tool))
            .filter_map(|tool| Some((hits(tool)?, tool)))
            .collect();
        // Stable, and the tools are by name.
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found.into_iter().map(|(_, tool)| Arc::clone(tool)).collect()
    }
}
