//! Finding tools by words and tags.

use std::sync::Arc;

use super::{Registry, ranking::rank_tools, select::refusal};
use crate::{context::ToolContext, spec::ToolSpec, tool::Tool};

/// What tools are looked for. Without text and tags: all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Words, each of which has to be in the name, a tag, the title or the description, unless
    /// [`some_words`](Self::some_words) says otherwise. Case does not count.
    pub text: String,
    /// Tags that the tool has to have, all of them. Case does not count.
    pub tags: Vec<String>,
    /// Whether some of the words are enough, in any of their forms and in the names of arguments too. The tools that fit
    /// best come first, and those that fit much worse are left out.
    pub some_words: bool,
    /// Whether tools are found too that cannot be used now, such as those that are switched off.
    pub include_disabled: bool,
}

impl Query {
    /// A search for words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A search for what a text is about, in somebody's own words.
    ///
    /// ```
    /// # use registry_core::Query;
    /// let query = Query::about("how warm will it be tomorrow?");
    /// assert!(query.some_words);
    /// ```
    pub fn about(text: impl Into<String>) -> Self {
        Self { some_words: true, ..Self::text(text) }
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
        if self.name == word || own_name == word {
            Some(Hit::Name)
        } else if self.name.contains(word) {
            Some(Hit::InName)
        } else if self.tags.iter().any(|tag| tag.contains(word)) {
            Some(Hit::InTag)
        } else if self.title.contains(word) {
            Some(Hit::InTitle)
        } else {
            self.description.contains(word).then_some(Hit::InDescription)
        }
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
        self.search_among(query, context, |_| true)
    }

    /// The same among some tools only, which are ranked against each other.
    pub(crate) fn search_among(
        &self,
        query: &Query,
        context: &ToolContext,
        is_among: impl Fn(&Tool) -> bool,
    ) -> Vec<Arc<Tool>> {
        let tags: Vec<String> = query.tags.iter().map(|tag| tag.to_lowercase()).collect();
        let is_tagged = |spec: &ToolSpec| {
            tags.iter().all(|tag| spec.tags.iter().any(|known| known.to_lowercase() == *tag))
        };
        let may = |tool: &Tool| match query.include_disabled {
            true => self.may_see(tool, context),
            false => refusal(tool, context).is_none(),
        };
        let tools = self.shared.tools.load();
        let tools =
            tools.sorted().iter().filter(|tool| is_among(tool) && is_tagged(tool.spec()) && may(tool));
        let found = match query.some_words {
            true => rank_tools(&query.text, tools, |tool| tool.spec()),
            false => with_all_words(&query.text, tools),
        };
        found.into_iter().cloned().collect()
    }
}

/// The tools that have every word, in an order that is theirs where they are equal.
fn with_all_words<'t>(text: &str, tools: impl Iterator<Item = &'t Arc<Tool>>) -> Vec<&'t Arc<Tool>> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let hits = |tool: &Tool| -> Option<Vec<Hit>> {
        let texts = Texts::of(tool.spec());
        let mut hits = words.iter().map(|word| texts.find(word)).collect::<Option<Vec<Hit>>>()?;
        // The worst first: a tool is no better than where its worst word stands.
        hits.sort_unstable_by(|a, b| b.cmp(a));
        Some(hits)
    };
    let mut found: Vec<(Vec<Hit>, &Arc<Tool>)> = tools.filter_map(|tool| Some((hits(tool)?, tool))).collect();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found.into_iter().map(|(_, tool)| tool).collect()
}
