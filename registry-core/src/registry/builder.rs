//! Puts a registry together: what the host provides, and the compiled tools.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::broadcast;

use super::{
    Common, Registry, RegistryError, Shared, ToolSet,
    deferral::{self, Among, Deferral, SEARCH_TOOLS, ToolPattern},
    lifecycle::Cause,
};
use crate::{
    clock::{Clock, SystemClock},
    concurrency::{Concurrency, ConcurrencyLimiter},
    context::Resources,
    events::EVENTS_KEPT,
    flow::FlowRules,
    guard::{
        Guards,
        approval::Approvals,
        audit::{AUDIT_MEBIBYTES_OF_USER, AuditShares, AuditSink, CountedAudit, LogAsItIs},
        gate::Gate,
        limits::Usage,
    },
    plugin::{Folder, Plugin},
    source::{ConfiguredTools, Source},
    store::{MemoryStore, StateStore},
    tenant::DEFAULT_TENANT,
    tool::Tool,
};

/// Builds a [`Registry`].
#[derive(derive_more::Debug)]
#[debug("RegistryBuilder({:?})", common.resources)]
#[must_use]
pub struct RegistryBuilder {
    common: Common,
    audit_mebibytes: u64,
}

impl Default for RegistryBuilder {
    fn default() -> Self {
        let common = Common {
            resources: Arc::default(),
            audit: Arc::new(LogAsItIs),
            audit_shares: Arc::new(AuditShares::new(0, Arc::new(SystemClock))),
            audit_arguments: false,
            clock: Arc::new(SystemClock),
            events: broadcast::Sender::new(EVENTS_KEPT),
            guards: Guards::default(),
            state: Arc::new(MemoryStore::default()),
            compiled: true,
            modules: BTreeSet::new(),
            configured: ConfiguredTools::default(),
            deferral: Deferral::default(),
            offers: ArcSwap::default(),
            tenants: Default::default(),
        };
        Self { common, audit_mebibytes: AUDIT_MEBIBYTES_OF_USER }
    }
}

impl RegistryBuilder {
    /// Provides a value to the tools that ask for its type.
    pub fn resource<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        Arc::make_mut(&mut self.common.resources).insert(Arc::new(value));
        self
    }

    /// Provides all of these.
    pub fn resources(mut self, resources: Resources) -> Self {
        self.common.resources = Arc::new(resources);
        self
    }

    /// Where the records of calls go. By default to the log, as far as its filter lets them through; with
    /// [`LogAudit`](crate::guard::audit::LogAudit) calls are refused where it does not.
    pub fn audit(mut self, audit: Arc<dyn AuditSink>) -> Self {
        self.common.audit = audit;
        self
    }

    /// What the records of one user may take in a day of UTC on this host, in MiB; 0 for any size. Beyond it the user's calls are refused
    /// until the day is over. [`AUDIT_MEBIBYTES_OF_USER`], where nothing is said.
    pub fn audit_mebibytes_per_user(mut self, mebibytes: u64) -> Self {
        self.audit_mebibytes = mebibytes;
        self
    }

    /// The clock. The machine's own, where nothing is said.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.common.clock = clock;
        self
    }

    /// Keeps the arguments in the records, and not only their hash. What is secret is left out of them in any case.
    pub fn audit_arguments(mut self, keep: bool) -> Self {
        self.common.audit_arguments = keep;
        self
    }

    /// Where calls are counted. In memory, where nothing is said.
    pub fn usage(mut self, usage: Arc<dyn Usage>) -> Self {
        self.common.guards.usage = usage;
        self
    }

    /// Who is asked before calls of tools that have `gate = true`. Nobody, where nothing is said: they run.
    pub fn gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.common.guards.gate = Some(gate);
        self
    }

    /// Where calls are kept that wait for a person. In memory, where nothing is said.
    pub fn approvals(mut self, approvals: Arc<dyn Approvals>) -> Self {
        self.common.guards.approvals = approvals;
        self
    }

    /// Where tools keep values ([`ToolContext::store`](crate::ToolContext::store)). In memory, where nothing is said.
    pub fn state(mut self, state: Arc<dyn StateStore>) -> Self {
        self.common.state = state;
        self
    }

    /// Whether a person is asked before a destructive call. Yes, where nothing is said.
    pub fn approve_destructive(mut self, ask: bool) -> Self {
        self.common.guards.approve_destructive = ask;
        self
    }

    /// Whether persons may allow calls beforehand, with an answer to one. Yes, where nothing is said. Otherwise what was allowed so before
    /// is kept and not applied.
    pub fn approval_rules(mut self, apply: bool) -> Self {
        self.common.guards.approval_rules = apply;
        self
    }

    /// What happens to calls that would send outside what their turn has read, or act after it has read untrusted text. A person is asked,
    /// where nothing is said.
    pub fn flow(mut self, rules: FlowRules) -> Self {
        self.common.guards.flow = rules;
        self
    }

    /// How long a person has to answer; 300 s where nothing is said.
    pub fn approval_timeout(mut self, timeout: Duration) -> Self {
        self.common.guards.approval_timeout = timeout;
        self
    }

    /// How many calls run at once and how many wait.
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.common.guards.limiter = Arc::new(ConcurrencyLimiter::new(concurrency));
        self
    }

    /// Adds tools that files define. Their faults are logged, and returned by [`Registry::faults`].
    pub fn configured(mut self, more: ConfiguredTools) -> Self {
        self.common.configured.tools.extend(more.tools);
        self.common.configured.faults.extend(more.faults);
        self
    }

    /// Keeps these tools out of prompts too, beside those that say so themselves; they are found through
    /// [`SEARCH_TOOLS`].
    pub fn defer(mut self, tools: impl IntoIterator<Item = ToolPattern>) -> Self {
        self.common.deferral.extend(tools);
        self
    }

    /// Names the modules that the operator has configured. Each owns its prefix: compiled tools of that prefix are left out,
    /// also while the module cannot be reached, and listed by [`Registry::replaced`].
    pub fn modules(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.common.modules.extend(names.into_iter().map(Into::into));
        self
    }

    /// Leaves out the compiled tools: only what the host registers.
    pub fn without_compiled(mut self) -> Self {
        self.common.compiled = false;
        self
    }

    /// Collects the compiled tools. Each one is logged; of two with one name the second is left out with an error in
    /// the log that names both places.
    ///
    /// # Errors
    /// When compiled tools are wanted and there is none, which is what a forgotten `use tools as _;` looks like.
    pub fn build(self) -> Result<Registry, RegistryError> {
        let Self { mut common, audit_mebibytes } = self;
        let shares = Arc::new(AuditShares::new(audit_mebibytes, Arc::clone(&common.clock)));
        common.audit_shares = Arc::clone(&shares);
        common.audit = Arc::new(CountedAudit { sink: common.audit, shares });
        let shared = Shared::new(Arc::new(common), DEFAULT_TENANT);
        if shared.common.compiled && shared.tools.load().sorted().is_empty() && shared.replaced.is_empty() {
            return Err(RegistryError::Empty);
        }
        // Once, however many tenants there will be.
        if tracing::enabled!(tracing::Level::INFO) {
            // One with a fault is logged with its cause by `check`; one that is off is listed with the reason.
            let (tools, context) = (shared.tools.load(), shared.as_owner());
            let is_usable =
                |tool: &&Arc<Tool>| tool.fault().is_none() && tool.unavailable(&context).is_none();
            let usable = tools.sorted().iter().filter(is_usable);
            usable.for_each(|tool| tracing::info!("Loaded tool: {}", tool.name()));
        }
        for (tool, by) in shared.replaced.iter().map(|tool| (tool, prefix_of(tool.name()))) {
            tracing::info!("Replaced tool: {} ({}), by the module {by}", tool.name(), tool.source());
        }
        shared.duplicates.iter().for_each(|error| tracing::error!("{error}"));
        shared.common.configured.faults.iter().for_each(|fault| tracing::error!("{fault}"));
        Ok(Registry { shared })
    }
}

impl Shared {
    /// A registry with the compiled tools, where they are wanted, the configured ones and what remote sources offer.
    pub(crate) fn new(common: Arc<Common>, tenant: &str) -> Arc<Self> {
        let shared = Arc::new_cyclic(|this| Self::knowing(this.clone(), common, tenant));
        let mut tenants = shared.common.tenants();
        let offers = shared.common.offers.load();
        let mut changing = shared.changing(Cause::Before);
        offers.names().for_each(|name| changing.settle(name));
        drop(changing);
        tenants.push(Arc::downgrade(&shared));
        drop(tenants);
        shared
    }

    fn knowing(this: Weak<Self>, common: Arc<Common>, tenant: &str) -> Self {
        let now = common.clock.now();
        let (tools, mut duplicates) = if common.compiled { collect(now) } else { Default::default() };
        let (replaced, mut tools): (Vec<_>, Vec<_>) =
            tools.into_iter().partition(|tool| common.modules.contains(prefix_of(tool.name())));
        for tool in common.configured.tools.iter().map(|configured| Tool::configured(configured, now)) {
            match tools.iter().find(|known| known.name() == tool.name()) {
                Some(first) => {
                    duplicates.push(RegistryError::duplicate(tool.name(), first.source(), tool.source()));
                }
                None => tools.push(Arc::new(tool)),
            }
        }
        if tools.iter().any(|tool| common.is_deferred(tool)) {
            match tools.iter().find(|tool| tool.name() == SEARCH_TOOLS) {
                Some(first) => {
                    duplicates.push(RegistryError::duplicate(SEARCH_TOOLS, first.source(), &Source::BuiltIn));
                }
                None => tools.push(Arc::new(deferral::search_tools(this.clone(), now, Among::Deferred))),
            }
        }
        let own = Arc::new(ToolSet::from_tools(tools));
        Self {
            common,
            tenant: tenant.into(),
            tools: ArcSwap::new(Arc::clone(&own)),
            own,
            replaced,
            writing: Default::default(),
            events: broadcast::Sender::new(EVENTS_KEPT),
            duplicates,
            this,
        }
    }
}

/// What stands before the first dot of a name.
fn prefix_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(prefix, _)| prefix)
}

/// The tools that are compiled into the program, sorted by name; of two with one name the first by file and line.
pub fn compiled_tools() -> Vec<Arc<Tool>> {
    collect(Timestamp::UNIX_EPOCH).0
}

/// The compiled tools, one of each name, in an order that does not depend on the linker; and those left out.
fn collect(created_at: Timestamp) -> (Vec<Arc<Tool>>, Vec<RegistryError>) {
    let folders: HashMap<&str, &'static str> =
        inventory::iter::<Folder>().map(|folder| (folder.module_path, folder.name)).collect();
    // A tool is large: what is sorted are pointers.
    let mut all: Vec<Arc<Tool>> = inventory::iter::<Plugin>()
        .map(|plugin| Arc::new(Tool::compiled(plugin, &folders_of(plugin, &folders), created_at)))
        .collect();
    let place = |tool: &Arc<Tool>| match tool.source() {
        Source::Compiled(place) => (place.file, place.line),
        _ => ("", 0),
    };
    all.sort_unstable_by(|a, b| a.name().cmp(b.name()).then_with(|| place(a).cmp(&place(b))));
    let (mut tools, mut duplicates): (Vec<Arc<Tool>>, _) = (Vec::with_capacity(all.len()), Vec::new());
    for tool in all {
        match tools.last().filter(|last| last.name() == tool.name()) {
            Some(first) => {
                duplicates.push(RegistryError::duplicate(tool.name(), first.source(), tool.source()));
            }
            None => tools.push(tool),
        }
    }
    (tools, duplicates)
}

/// The crate and the folders that a plugin's Rust module is in, the outermost first.
fn folders_of(plugin: &Plugin, known: &HashMap<&str, &'static str>) -> Vec<&'static str> {
    let mut folders = Vec::new();
    let mut path = Some(plugin.place.module_path).filter(|_| !known.is_empty());
    while let Some(inner) = path {
        folders.extend(known.get(inner));
        path = inner.rsplit_once("::").map(|(parent, _)| parent);
    }
    folders.reverse();
    folders
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Mutex};

    use serde_json::json;

    use super::*;
    use crate::{
        handler::handler_fn, policy::ToolPolicy, result::ToolResult, source::ConfiguredTool, spec::ToolSpec,
    };

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn p3_an_empty_registry_is_an_error() {
        let error = Registry::builder().build().unwrap_err();
        assert_eq!(error, RegistryError::Empty);
        assert!(error.to_string().contains("use tools as _"), "{error}");
    }

    #[test]
    fn s3_a_tool_that_cannot_be_used_is_not_logged_as_loaded() {
        let tool = |name: &str, schema| ConfiguredTool {
            spec: ToolSpec::new(name, schema),
            policy: ToolPolicy::new(),
            handler: handler_fn(|_, _| async { Ok(ToolResult::new("")) }),
            file: "tools.yaml".into(),
            line: 3,
        };
        let tools = vec![tool("good", json!({"type": "object"})), tool("bad", json!({"type": "objekt"}))];
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let builder = Registry::builder().without_compiled();
            let registry = builder.configured(ConfiguredTools { tools, faults: Vec::new() }).build().unwrap();
            assert_eq!(registry.check().len(), 1);
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("Loaded tool: good") && !text.contains("Loaded tool: bad"), "{text}");
        assert!(text.contains("Cannot use tool bad (tools.yaml:3)"), "{text}");
    }
}
