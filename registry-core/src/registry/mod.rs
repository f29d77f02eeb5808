//! The tools there are, by name. Reading takes no lock.

mod approval_rules;
mod approvals;
mod builder;
mod deferral;
mod lifecycle;
mod offers;
mod overview;
mod ranking;
mod search;
pub(crate) mod select;
mod snapshot;
mod stored;
mod subscribe;
mod version;

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    sync::{Arc, Weak},
};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;

use crate::{
    clock::Clock,
    context::{Caller, Resources, ToolContext},
    events::RegistryEvent,
    guard::{
        Guards,
        audit::{AuditShares, AuditSink},
    },
    handler::Handler,
    policy::{ToolLimits, ToolPolicy},
    result::ToolError,
    source::{ConfigFault, ConfiguredTools, Source},
    spec::ToolSpec,
    store::StateStore,
    tool::Tool,
};
pub use approvals::QuestionError;
pub use builder::{RegistryBuilder, compiled_tools};
use deferral::Deferral;
pub use deferral::{SEARCH_TOOLS, ToolPattern};
use lifecycle::{Cause, Later};
use offers::Offers;
pub use overview::Overview;
pub use ranking::rank_tools;
pub use search::Query;
pub use select::Selection;
pub use snapshot::{ToolRegistration, ToolRegistrySnapshot};
pub use stored::{ChangeError, StoredRegistry};
pub use version::compare_versions;

/// All tools at one moment.
#[derive(Default, Clone)]
pub(crate) struct ToolSet {
    by_name: HashMap<Arc<str>, Arc<Tool>>,
    sorted: Vec<Arc<Tool>>,
}

impl ToolSet {
    pub(crate) fn from_tools(mut sorted: Vec<Arc<Tool>>) -> Self {
        sorted.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        let by_name = sorted.iter().map(|tool| (tool.shared_name(), Arc::clone(tool))).collect();
        Self { by_name, sorted }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name)
    }

    /// Puts a tool in place of the one of its name.
    pub(crate) fn put(&mut self, tool: Arc<Tool>) {
        self.remove(tool.name());
        let at = self.sorted.partition_point(|other| other.name() < tool.name());
        self.by_name.insert(tool.shared_name(), Arc::clone(&tool));
        self.sorted.insert(at, tool);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
        if let Ok(at) = self.sorted.binary_search_by(|other| other.name().cmp(name)) {
            self.sorted.remove(at);
        }
    }

    pub(crate) fn sorted(&self) -> &[Arc<Tool>] {
        &self.sorted
    }
}

/// What the registries of all tenants have in common.
pub(crate) struct Common {
    pub(crate) resources: Arc<Resources>,
    pub(crate) audit: Arc<dyn AuditSink>,
    /// What the records of each user may take.
    pub(crate) audit_shares: Arc<AuditShares>,
    /// Whether records hold the arguments, and not only their hash.
    pub(crate) audit_arguments: bool,
    pub(crate) clock: Arc<dyn Clock>,
    /// The changes in the registries of all tenants.
    pub(crate) events: broadcast::Sender<RegistryEvent>,
    pub(crate) guards: Guards,
    /// Where tools keep values.
    pub(crate) state: Arc<dyn StateStore>,
    /// Whether the compiled tools are wanted.
    pub(crate) compiled: bool,
    /// The names of the modules that the operator has configured.
    pub(crate) modules: BTreeSet<String>,
    /// The tools that files define.
    pub(crate) configured: ConfiguredTools,
    /// The tools that the operator keeps out of prompts.
    pub(crate) deferral: Deferral,
    /// What remote sources offer.
    pub(crate) offers: ArcSwap<Offers>,
    pub(crate) tenants: Mutex<Vec<Weak<Shared>>>,
}

impl Common {
    /// The registries of all tenants. Held by whoever changes the offers, and taken before a registry's own right to change.
    pub(crate) fn tenants(&self) -> MutexGuard<'_, Vec<Weak<Shared>>> {
        self.tenants.lock()
    }
}

pub(crate) struct Shared {
    pub(crate) common: Arc<Common>,
    pub(crate) tenant: Arc<str>,
    pub(crate) tools: ArcSwap<ToolSet>,
    /// The compiled and the configured tools, also those that have given way to a remote one.
    pub(crate) own: Arc<ToolSet>,
    /// The compiled tools whose prefix a configured module owns.
    pub(crate) replaced: Vec<Arc<Tool>>,
    /// Held by whoever changes something. Inside is what a store says of tools that come later.
    pub(crate) writing: Mutex<Later>,
    pub(crate) events: broadcast::Sender<RegistryEvent>,
    pub(crate) duplicates: Vec<RegistryError>,
    /// Itself, for the tools that look at the others.
    pub(crate) this: Weak<Self>,
}

/// The tools and the one path of a call. Cheap to clone: all clones are the same registry.
#[derive(Clone, derive_more::Debug)]
#[debug("Registry({} tools)", self.len())]
pub struct Registry {
    pub(crate) shared: Arc<Shared>,
}

impl Registry {
    /// Starts a registry.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// The tenant this registry belongs to.
    pub fn tenant(&self) -> &str {
        &self.shared.tenant
    }

    /// The registry of another tenant: the same compiled, configured and remote tools and the same rules, and registrations,
    /// switches, limits, approvals and audit of its own. Each call makes a new one, with nothing registered and everything switched on.
    pub fn for_tenant(&self, tenant: &str) -> Self {
        Self { shared: Shared::new(Arc::clone(&self.shared.common), tenant) }
    }

    /// A context for a caller, with what this host provides.
    pub fn context(&self, caller: Caller) -> ToolContext {
        self.shared.context(caller)
    }

    /// The context as one of this registry's tenant, also where it was made by hand or for another.
    pub(crate) fn own<'c>(&self, context: &'c ToolContext) -> Cow<'c, ToolContext> {
        match context.tenant() == self.tenant() {
            true => Cow::Borrowed(context),
            false => Cow::Owned(context.clone().of_tenant(Arc::clone(&self.shared.tenant))),
        }
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<Arc<Tool>> {
        self.shared.tools.load().get(name).cloned()
    }

    /// All tools, by name; those that are switched off only where asked for.
    pub fn list_all(&self, include_disabled: bool) -> Vec<Arc<Tool>> {
        let tools = self.shared.tools.load();
        tools.sorted().iter().filter(|tool| include_disabled || tool.is_enabled()).cloned().collect()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.shared.tools.load().sorted.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The clock that was handed in.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.common.clock
    }

    /// Registers a tool of the host, switched on. Without a handler it is listed and cannot be called.
    ///
    /// The same spec again changes nothing, but gives a tool its handler that had none. Another version replaces the tool;
    /// the log and the event say when it is an older one.
    ///
    /// # Errors
    /// When the name is that of a tool from elsewhere, such as a compiled one, or is registered already with the same version (or both with none) and
    /// another spec.
    pub fn register(
        &self,
        spec: ToolSpec,
        policy: ToolPolicy,
        handler: Option<Arc<dyn Handler>>,
    ) -> Result<Arc<Tool>, RegistryError> {
        let tool = Tool::of_host(spec, policy, handler, self.shared.common.clock.now());
        self.shared.changing(Cause::Here).register(tool)
    }

    /// Switches a tool on or off, at once and for running turns too. It is so already: nothing to do. Gives the registration as it
    /// is now.
    ///
    /// # Errors
    /// When there is no tool of that name.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> Result<ToolRegistration, RegistryError> {
        self.shared.changing(Cause::Here).set_enabled(name, enabled)
    }

    /// Sets limits in place of a tool's own, at once and for running turns too; those that are not named are the tool's own again. Gives the
    /// registration as it is now.
    ///
    /// # Errors
    /// When there is no tool of that name.
    pub fn set_limits(&self, name: &str, limits: ToolLimits) -> Result<ToolRegistration, RegistryError> {
        self.shared.changing(Cause::Here).set_limits(name, limits)
    }

    /// Removes a tool, at once and for running turns too. No such tool: nothing to do. A remote source's tool is back when the
    /// source offers its tools anew.
    pub fn remove(&self, name: &str) {
        self.shared.changing(Cause::Here).remove(name);
    }

    /// Where calls are recorded, for a host that records more there, such as what an admin changes.
    pub fn audit(&self) -> &Arc<dyn AuditSink> {
        &self.shared.common.audit
    }

    /// Whether the audit keeps more of a user of this tenant today.
    ///
    /// # Errors
    /// When the user's share of the day is used up.
    pub fn audit_room(&self, user: &str) -> Result<(), ToolError> {
        self.shared.common.audit_shares.room(&self.shared.tenant, user)
    }

    /// Where tools keep values, for a host that keeps some of its own there.
    pub fn state_store(&self) -> Arc<dyn StateStore> {
        Arc::clone(&self.shared.common.state)
    }

    /// Waits for what stopped calls have left to write: outcomes, limits given back, questions withdrawn. A host that ends asks for it
    /// last of all.
    pub async fn finished(&self) {
        self.shared.common.guards.background.finished().await;
    }

    /// The tools that were left out because another one has their name.
    pub fn duplicates(&self) -> Vec<RegistryError> {
        let remote = self.shared.common.offers.load().shadowed(&self.shared.tools.load());
        self.shared.duplicates.iter().cloned().chain(remote).collect()
    }

    /// The tools of this program that others have taken the place of, with what took it, by name: those whose prefix a configured
    /// [module](RegistryBuilder::modules) owns, and those that lack something they need and whose name a remote source has.
    pub fn replaced(&self) -> Vec<(Arc<Tool>, Source)> {
        let (tools, offers) = (self.shared.tools.load(), self.shared.common.offers.load());
        let by_prefix =
            self.shared.replaced.iter().map(|tool| (Arc::clone(tool), offers.module_of(tool.name())));
        let given_way = self.shared.own.sorted().iter().filter_map(|tool| {
            let holder = tools.get(tool.name()).filter(|holder| holder.is_remote())?;
            Some((Arc::clone(tool), holder.source().clone()))
        });
        let mut replaced: Vec<_> = by_prefix.chain(given_way).collect();
        replaced.sort_unstable_by(|(a, _), (b, _)| a.name().cmp(b.name()));
        replaced
    }

    /// What is wrong with the tools that files define; those tools were left out.
    pub fn faults(&self) -> &[ConfigFault] {
        &self.shared.common.configured.faults
    }

    /// Makes every schema now, logs each tool that cannot be called with its cause, and returns those.
    ///
    /// Without this the same is found at first use; a server does it at start, so that its log says so. Validators are made when a tool
    /// is first called; [`Tool::inconsistencies`] makes one as well.
    pub fn check(&self) -> Vec<Arc<Tool>> {
        let tools = self.shared.tools.load_full();
        let faulty: Vec<_> = tools.sorted().iter().filter(|tool| tool.fault().is_some()).cloned().collect();
        for tool in &faulty {
            let cause = tool.fault().unwrap_or_default();
            tracing::error!("Cannot use tool {} ({}): {cause}", tool.name(), tool.source());
        }
        faulty
    }
}

impl ToolContext {
    /// The registry that makes the call, or that has made the context; `None` for a context that was made by hand. What a tool calls
    /// through it goes down the same path.
    pub fn registry(&self) -> Option<Registry> {
        let shared = Arc::clone(self.host()?).downcast().ok()?;
        Some(Registry { shared })
    }
}

/// What keeps a registry from being built or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// No compiled tool was found.
    #[error(
        "no tool was found: the crate with the tools is not linked. Name it in the program, as with `use tools as _;`, or say \
         `without_compiled()` where none is wanted"
    )]
    Empty,
    /// Two tools have one name; the first stays.
    #[error("two tools are named {name}: {first} stays, {second} is left out; rename one of them")]
    Duplicate {
        /// The name.
        name: String,
        /// Where the one that stays comes from.
        first: Source,
        /// Where the one that is refused comes from.
        second: Source,
    },
    /// The same version with another spec.
    #[error(
        "{name} is registered already with version {} and another spec; give the new one another version",
        version.as_deref().unwrap_or("none")
    )]
    VersionUnchanged {
        /// The tool's name.
        name: String,
        /// The version both have.
        version: Option<String>,
    },
    /// A schema that is neither an object nor a boolean.
    #[error(
        "the {field} of {name} is no JSON Schema, which is an object or a boolean; write {{}} for any value"
    )]
    InvalidSchema {
        /// The tool's name.
        name: String,
        /// `input_schema` or `output_schema`.
        field: &'static str,
    },
    /// No tool of that name.
    #[error("there is no tool named {name}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The tool was not registered at run time, so that it would be back with the next start.
    #[error("{name} cannot be removed here, as it comes from {from}; switch it off instead")]
    NotRemovable {
        /// The tool's name.
        name: String,
        /// Where it comes from.
        from: Source,
    },
}

impl RegistryError {
    fn duplicate(name: &str, first: &Source, second: &Source) -> Self {
        Self::Duplicate { name: name.to_owned(), first: first.clone(), second: second.clone() }
    }
}
