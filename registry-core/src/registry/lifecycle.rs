//! The rules by which a registry changes, one change at a time and each with its event.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use parking_lot::MutexGuard;
use serde_json::Value;

use super::{
    RegistryError, Shared, ToolSet,
    deferral::{Among, SEARCH_TOOLS},
    snapshot::ToolRegistration,
    version::is_older,
};
use crate::{
    context::{Caller, ToolContext},
    events::{Change, RegistryEvent},
    policy::{Permission, ToolLimits, ToolPolicy},
    source::Source,
    spec::ToolSpec,
    store::StoredTool,
    tool::Tool,
};

/// Where a change was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// In this process.
    Here,
    /// On another server, with the same store.
    Elsewhere,
    /// Before this process: it is read again, without an event.
    Before,
}

/// What registering a spec comes to.
pub(crate) enum Verdict {
    New,
    Unchanged(Arc<Tool>),
    Replaces(Arc<Tool>),
}

/// What an operator has said of tools, by name: it holds for those too that come later.
#[derive(Debug, Default)]
pub(crate) struct Later {
    switched_off: BTreeSet<String>,
    limits: BTreeMap<String, ToolLimits>,
}

/// The right to change a registry. Whoever holds it is alone. What was changed is visible to all, and sent as events, once it is dropped;
/// only switches act at once.
pub(crate) struct Changing<'a> {
    shared: &'a Shared,
    cause: Cause,
    later: MutexGuard<'a, Later>,
    tools: Arc<ToolSet>,
    events: Vec<RegistryEvent>,
}

impl Shared {
    pub(crate) fn changing(&self, cause: Cause) -> Changing<'_> {
        let later = self.writing.lock();
        Changing { shared: self, cause, later, tools: self.tools.load_full(), events: Vec::new() }
    }

    /// The compiled or configured tool of that name, unless it was removed.
    fn own(&self, name: &str) -> Option<Arc<Tool>> {
        self.own.get(name).filter(|tool| !tool.is_removed()).cloned()
    }

    /// Whether a tool cannot be used, whoever calls it.
    fn lacks_something(&self, tool: &Tool) -> bool {
        tool.lacks_something(&self.as_owner())
    }

    /// The context of a caller who may do everything.
    pub(super) fn as_owner(&self) -> ToolContext {
        self.context(Caller::new("registry", Permission::Owner))
    }

    /// A context for a caller, with what this host provides.
    pub(super) fn context(&self, caller: Caller) -> ToolContext {
        ToolContext::new(caller)
            .of_host(self.this.upgrade().map(|shared| shared as _))
            .with_resources(Arc::clone(&self.common.resources))
            .of_tenant(Arc::clone(&self.tenant))
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.shared.tools.store(Arc::clone(&self.tools));
        for event in self.events.drain(..) {
            // An error says that nobody listens.
            let _ = self.shared.common.events.send(event.clone());
            let _ = self.shared.events.send(event);
        }
    }
}

impl Changing<'_> {
    fn known(&self, name: &str) -> Option<Arc<Tool>> {
        self.tools.get(name).cloned()
    }

    /// What registering the spec would come to.
    ///
    /// # Errors
    /// When a schema is neither an object nor a boolean, the name is that of a tool that was not registered at run time, or the version stays and the spec does not.
    pub(crate) fn weigh(&self, spec: &ToolSpec) -> Result<Verdict, RegistryError> {
        let is_schema = |schema: &Value| schema.is_object() || schema.is_boolean();
        let invalid = |field| Err(RegistryError::InvalidSchema { name: spec.tool_name.clone(), field });
        if !is_schema(&spec.input_schema) {
            return invalid("input_schema");
        }
        // Without one nothing is promised of the result.
        if !is_schema(&spec.output_schema) && !spec.output_schema.is_null() {
            return invalid("output_schema");
        }
        let Some(known) = self.known(&spec.tool_name) else { return Ok(Verdict::New) };
        if *known.source() != Source::Host {
            return Err(RegistryError::duplicate(&spec.tool_name, known.source(), &Source::Host));
        }
        if known.spec() == spec {
            return Ok(Verdict::Unchanged(known));
        }
        // Two without a version have the same one, so that forgetting it overwrites nothing.
        if known.spec().version == spec.version {
            return Err(RegistryError::VersionUnchanged {
                name: spec.tool_name.clone(),
                version: spec.version.clone(),
            });
        }
        Ok(Verdict::Replaces(known))
    }

    /// Registers a tool by the rules for what happens at run time.
    pub(crate) fn register(&mut self, tool: Tool) -> Result<Arc<Tool>, RegistryError> {
        match self.weigh(tool.spec())? {
            Verdict::New => Ok(self.add(tool)),
            Verdict::Unchanged(known) if known.handler().is_none() && tool.handler().is_some() => {
                Ok(self.swap(tool.giving_code(&known)))
            }
            Verdict::Unchanged(known) => Ok(known),
            Verdict::Replaces(known) => Ok(self.replace(&known, tool)),
        }
    }

    /// A tool under a name that is free, or that only a remote source has: that one makes room.
    fn add(&mut self, tool: Tool) -> Arc<Tool> {
        if let Some(known) = self.known(tool.name()) {
            self.take_out(&known);
        }
        let is_off = self.later.switched_off.contains(tool.name());
        tool.set_enabled(!is_off);
        tool.set_limits(self.later.limits.get(tool.name()).copied().unwrap_or_default());
        let tool = self.swap(tool);
        self.notify(&tool, Change::Registered);
        if is_off {
            self.notify(&tool, Change::Disabled);
        }
        tool
    }

    /// A new registration in place of another: it begins switched on.
    fn replace(&mut self, known: &Tool, tool: Tool) -> Arc<Tool> {
        let tool = self.take_place(known, tool);
        tool.set_enabled(true);
        tool
    }

    /// A tool in place of another, with its switch.
    fn take_place(&mut self, known: &Tool, tool: Tool) -> Arc<Tool> {
        let (from, to) = (known.spec().version.clone(), tool.spec().version.clone());
        let older = is_older(to.as_deref(), from.as_deref());
        if older {
            let (from, to) = (from.as_deref(), to.as_deref());
            tracing::warn!(tool = tool.name(), from, to, "older_version_registered");
        }
        let tool = self.swap(tool.replacing(known));
        self.notify(&tool, Change::Replaced { from, to, older });
        tool
    }

    fn swap(&mut self, tool: Tool) -> Arc<Tool> {
        let tool = Arc::new(tool);
        Arc::make_mut(&mut self.tools).put(Arc::clone(&tool));
        if self.shared.common.is_deferred(&tool)
            && self.known(SEARCH_TOOLS).is_none_or(|known| known.is_remote())
        {
            self.add(self.shared.search_tools(Among::Deferred));
        }
        tool
    }

    pub(crate) fn set_enabled(
        &mut self,
        name: &str,
        enabled: bool,
    ) -> Result<ToolRegistration, RegistryError> {
        let tool = self.known(name).ok_or_else(|| RegistryError::Unknown { name: name.to_owned() })?;
        if tool.set_enabled(enabled) {
            self.notify(&tool, if enabled { Change::Enabled } else { Change::Disabled });
        }
        Ok(tool.registration())
    }

    pub(crate) fn set_limits(
        &mut self,
        name: &str,
        limits: ToolLimits,
    ) -> Result<ToolRegistration, RegistryError> {
        let tool = self.known(name).ok_or_else(|| RegistryError::Unknown { name: name.to_owned() })?;
        self.keep_limits(name, limits);
        Ok(tool.registration())
    }

    /// Sets limits of a tool, now or when it comes.
    fn keep_limits(&mut self, name: &str, limits: ToolLimits) {
        match limits.is_empty() {
            true => self.later.limits.remove(name),
            false => self.later.limits.insert(name.to_owned(), limits),
        };
        if let Some(tool) = self.known(name) {
            tool.set_limits(limits);
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        let Some(tool) = self.known(name) else { return };
        self.take_out(&tool);
        if !tool.is_remote() {
            self.settle(name);
        }
    }

    fn take_out(&mut self, tool: &Tool) {
        tool.set_removed();
        Arc::make_mut(&mut self.tools).remove(tool.name());
        self.notify(tool, Change::Removed);
    }

    /// Gives a name to the remote source that comes first, unless a tool of this process has it and can be used.
    pub(crate) fn settle(&mut self, name: &str) {
        let (known, own) = (self.known(name), self.shared.own(name));
        let offers = self.shared.common.offers.load();
        let gives_way = |own: &Arc<Tool>| offers.get(name).is_some() && self.shared.lacks_something(own);
        match (&known, own) {
            (Some(known), Some(own)) if known.is_remote() && !gives_way(&own) => {
                return self.put_back(known, own);
            }
            (Some(known), Some(own)) if Arc::ptr_eq(known, &own) && gives_way(&own) => {}
            (Some(known), _) if !known.is_remote() => return,
            _ => {}
        }
        match (known, offers.get(name)) {
            (None, None) => {}
            (Some(known), None) => {
                // It may come back, and then it is as the operator has left it.
                match known.is_enabled() {
                    true => self.later.switched_off.remove(name),
                    false => self.later.switched_off.insert(name.to_owned()),
                };
                self.take_out(&known);
            }
            (None, Some((remote, offer))) => drop(self.add(Tool::offered(remote, offer, self.now()))),
            (Some(known), Some((remote, offer))) if known.is_offer(remote, offer) => {}
            (Some(known), Some((remote, offer))) => {
                drop(self.take_place(&known, Tool::offered(remote, offer, self.now())));
            }
        }
    }

    /// A tool of this process in its old place, with the switch that both have.
    fn put_back(&mut self, known: &Tool, own: Arc<Tool>) {
        let (from, to) = (known.spec().version.clone(), own.spec().version.clone());
        let older = is_older(to.as_deref(), from.as_deref());
        Arc::make_mut(&mut self.tools).put(Arc::clone(&own));
        self.notify(&own, Change::Replaced { from, to, older });
    }

    /// Takes over a snapshot's word: the switch of a tool that is at home here, and of any other the registration, by the
    /// rules for what happens at run time.
    pub(crate) fn restore(&mut self, kept: ToolRegistration) -> Result<(), RegistryError> {
        let name = kept.spec.tool_name.clone();
        if !self.known(&name).is_some_and(|tool| tool.is_at_home()) {
            let tool = self.without_code(kept.spec, kept.created_at);
            self.register(tool)?;
        }
        self.keep_limits(&name, kept.limits);
        self.set_enabled(&name, kept.enabled).map(drop)
    }

    /// Takes over a store's word, which counts for more than what is here: the switch of a tool that is at home here, and
    /// of any other the registration. The switch of a tool that is not here waits for it.
    pub(crate) fn follow(&mut self, row: &StoredTool) {
        let name = &*row.tool_name;
        match row.enabled {
            true => self.later.switched_off.remove(name),
            false => self.later.switched_off.insert(name.to_owned()),
        };
        self.keep_limits(name, row.limits);
        // Of a remote source's tool the store keeps only the switch and limits; a registration goes before it.
        let known = self.known(name).filter(|tool| !tool.is_remote());
        if let Some(spec) = &row.spec
            && !known.as_ref().is_some_and(|tool| tool.is_at_home())
        {
            let kept = self.without_code(spec.clone(), Some(row.created_at));
            match known {
                _ if spec.tool_name != row.tool_name => {
                    tracing::warn!(tool = name, spec = spec.tool_name, "stored_tool_has_other_name");
                }
                None => drop(self.add(kept)),
                Some(known) if known.spec() != spec => drop(self.replace(&known, kept)),
                Some(_) => {}
            }
        }
        // No tool of that name: the switch of one that is gone, which does no harm.
        let _ = self.set_enabled(name, row.enabled);
    }

    /// A store has forgotten what it kept: no switch, no limits, and no registration.
    pub(crate) fn forget(&mut self, row: &StoredTool) {
        self.keep_limits(&row.tool_name, ToolLimits::default());
        self.later.switched_off.remove(&row.tool_name);
        let is_host = |tool: Arc<Tool>| *tool.source() == Source::Host;
        if row.spec.is_some() && self.known(&row.tool_name).is_some_and(is_host) {
            self.remove(&row.tool_name);
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.common.clock.now()
    }

    fn without_code(&self, spec: ToolSpec, created_at: Option<Timestamp>) -> Tool {
        let created_at = created_at.unwrap_or_else(|| self.now());
        Tool::of_host(spec, ToolPolicy::new(), None, created_at)
    }

    fn notify(&mut self, tool: &Tool, change: Change) {
        if self.cause == Cause::Before {
            return;
        }
        self.events.push(RegistryEvent {
            tenant: self.shared.tenant.to_string(),
            tool: tool.name().to_owned(),
            change,
            version: tool.spec().version.clone(),
            elsewhere: self.cause == Cause::Elsewhere,
            ts: self.now(),
        });
    }
}
