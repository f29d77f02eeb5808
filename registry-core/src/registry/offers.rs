//! Tools that live outside of this process, and the one way by which they enter the registries.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::Arc,
};

use super::{Registry, RegistryError, ToolSet, lifecycle::Cause};
use crate::source::{Offer, Remote, RemoteKind, Source};

/// What one source offers, by name.
struct Catalog {
    remote: Remote,
    by_name: HashMap<String, Offer>,
    /// Why the source, which offers nothing, could not be reached.
    unreachable: Option<String>,
}

/// What all remote sources offer now, taken or not.
#[derive(Default, Clone)]
pub(crate) struct Offers {
    by_source: BTreeMap<(RemoteKind, Arc<str>), Arc<Catalog>>,
}

impl Offers {
    /// The offer that has the name among remote sources.
    pub(crate) fn get(&self, name: &str) -> Option<(&Remote, &Offer)> {
        self.by_source.values().find_map(|source| Some((&source.remote, source.by_name.get(name)?)))
    }

    /// Whether a source has that name, though it may have no tool now.
    pub(crate) fn has_source(&self, name: &str) -> bool {
        self.by_source.keys().any(|(_, known)| **known == *name)
    }

    /// Why the source of that name could not be reached, where it offers nothing for that.
    pub(crate) fn unreachable(&self, name: &str) -> Option<&str> {
        let mut sources = self.by_source.iter().filter(|((_, known), _)| **known == *name);
        sources.find_map(|(_, source)| source.unreachable.as_deref())
    }

    /// The module that owns the prefix of a name, as far as it is known by now.
    pub(crate) fn module_of(&self, tool: &str) -> Source {
        let name: Arc<str> = tool.split_once('.').map_or(tool, |(prefix, _)| prefix).into();
        let known = self.by_source.get(&(RemoteKind::Module, Arc::clone(&name)));
        let unknown =
            || Remote { kind: RemoteKind::Module, name, address: "an address that is not known yet".into() };
        Source::Remote(known.map_or_else(unknown, |source| source.remote.clone()))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_source.values().flat_map(|source| source.by_name.keys()).map(String::as_str)
    }

    /// Puts what a source offers in place of what it offered. Gives the names that this may change.
    fn put(&mut self, remote: Remote, by_name: HashMap<String, Offer>) -> Vec<String> {
        let mut names: Vec<String> = by_name.keys().cloned().collect();
        let key = (remote.kind, Arc::clone(&remote.name));
        let before = self.by_source.insert(key, Arc::new(Catalog { remote, by_name, unreachable: None }));
        names.extend(before.iter().flat_map(|source| source.by_name.keys().cloned()));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The offers that were not taken because another tool has their name.
    pub(crate) fn shadowed(&self, tools: &ToolSet) -> Vec<RegistryError> {
        self.by_source.values().flat_map(|source| source.shadowed(tools)).collect()
    }
}

impl Catalog {
    fn shadowed(&self, tools: &ToolSet) -> Vec<RegistryError> {
        let mut names: Vec<_> = self.by_name.keys().collect();
        names.sort_unstable();
        let first = |name: &String| {
            let holder = tools.get(name)?.source();
            let is_mine = matches!(holder, Source::Remote(remote) if *remote == self.remote);
            (!is_mine).then(|| RegistryError::duplicate(name, holder, &Source::Remote(self.remote.clone())))
        };
        names.into_iter().filter_map(first).collect()
    }
}

impl Registry {
    /// Whether a remote source of that name is known, though it may have no tool now.
    pub fn has_source(&self, name: &str) -> bool {
        self.shared.common.offers.load().has_source(name)
    }

    /// Says why a remote source cannot be reached. Until it [offers](Self::offer) tools, calls of its tools fail with this cause; where it has
    /// offered some already, those stay and nothing changes.
    pub fn unreachable(&self, remote: &Remote, cause: &str) {
        let common = &self.shared.common;
        // As with an offer, so that neither undoes the other.
        let _tenants = common.tenants();
        let mut offers = Offers::clone(&common.offers.load());
        let key = (remote.kind, Arc::clone(&remote.name));
        if let Some(source) = offers.by_source.get_mut(&key).filter(|source| source.by_name.is_empty()) {
            let (remote, by_name) = (source.remote.clone(), HashMap::new());
            *source = Arc::new(Catalog { remote, by_name, unreachable: Some(cause.to_owned()) });
            common.offers.store(Arc::new(offers));
        }
    }

    /// Puts all the tools that a remote source has now in place of those it had, here and in the registries of the other
    /// tenants. A source that is known and has none yet offers none.
    ///
    /// A tool that is the same stays as it is. One that has changed replaces the one before, also in the same version, and
    /// keeps its switch, since that is the operator's; so does one that was away and comes back. A name belongs to the
    /// first that has it in this order, whoever came first: compiled, configured, registered, modules, MCP servers. What was
    /// left out for that takes its place once it is free. A compiled or configured tool that lacks something it needs gives way for
    /// as long as that is so.
    ///
    /// Gives one error for each tool that is left out because another has its name.
    pub fn offer(&self, remote: Remote, tools: Vec<Offer>) -> Vec<RegistryError> {
        let mut errors = Vec::new();
        let mut by_name = HashMap::with_capacity(tools.len());
        for offer in tools {
            match by_name.entry(offer.spec.tool_name.clone()) {
                Entry::Vacant(free) => drop(free.insert(offer)),
                Entry::Occupied(taken) => {
                    let source = Source::Remote(remote.clone());
                    errors.push(RegistryError::duplicate(taken.key(), &source, &source));
                }
            }
        }
        let common = &self.shared.common;
        // Held to the end, so that a newer state never comes before an older one.
        let mut tenants = common.tenants();
        let mut offers = Offers::clone(&common.offers.load());
        let names = offers.put(remote.clone(), by_name);
        common.offers.store(Arc::new(offers));
        tenants.retain(|tenant| {
            let alive = tenant.upgrade();
            if let Some(shared) = &alive {
                let mut changing = shared.changing(Cause::Here);
                names.iter().for_each(|name| changing.settle(name));
            }
            alive.is_some()
        });
        drop(tenants);
        let offers = common.offers.load();
        let tools = self.shared.tools.load();
        let mine = offers.by_source.get(&(remote.kind, remote.name));
        errors.extend(mine.into_iter().flat_map(|source| source.shadowed(&tools)));
        errors
    }
}

#[cfg(test)]
#[path = "offers_tests.rs"]
mod tests;
