//! The tools there are, by name. Reading takes no lock.

use std::{
    collections::HashMap,
    error::Error,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    arguments::ArgumentChecker,
    clock::{Clock, SystemClock},
    context::{Caller, ToolContext},
    execute::BoxFuture,
    guard::audit::{AuditSink, LogAudit},
    plugin::{Folder, Place, Plugin},
    policy::ToolPolicy,
    resource::Resources,
    result::{ToolError, ToolResult},
    spec::ToolSpec,
};

/// The module of tools that have no prefix.
pub const LOCAL_MODULE: &str = "local";

/// The code behind a tool that is not compiled in with `#[tool]`.
pub trait Handler: Send + Sync {
    /// Why the tool is off for this request; `None` when it is not.
    fn unavailable(&self, context: &ToolContext) -> Option<String> {
        let _ = context;
        None
    }

    /// Runs it, with arguments that fit its schema.
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>>;
}

/// A handler from a closure that takes the context and the arguments.
pub fn handler_fn<F, Fut>(run: F) -> Arc<dyn Handler>
where
    F: Fn(ToolContext, Map<String, Value>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    struct Closure<F>(F);
    impl<F, Fut> Handler for Closure<F>
    where
        F: Fn(ToolContext, Map<String, Value>) -> Fut + Send + Sync,
        Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
    {
        fn call<'a>(
            &'a self,
            context: &'a ToolContext,
            arguments: Map<String, Value>,
        ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
            Box::pin((self.0)(context.clone(), arguments))
        }
    }
    Arc::new(Closure(run))
}

impl Handler for Plugin {
    fn unavailable(&self, context: &ToolContext) -> Option<String> {
        (self.missing)(context.resources()).or_else(|| {
            let off = self.enabled.is_some_and(|enabled| !enabled(context));
            off.then(|| "its `enabled` condition does not hold for this request".to_owned())
        })
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        (self.run)(context, arguments)
    }
}

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Compiled in with `#[tool]`.
    Compiled(Place),
    /// Registered by the host's code.
    Host,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compiled(place) => write!(f, "{}:{}", place.file, place.line),
            Self::Host => f.write_str("host"),
        }
    }
}

enum Code {
    Compiled(&'static Plugin),
    Host(Option<Arc<dyn Handler>>),
}

/// A tool in the registry.
pub struct Tool {
    name: Arc<str>,
    module: &'static str,
    policy: ToolPolicy,
    source: Source,
    code: Code,
    created_at: Timestamp,
    enabled: AtomicBool,
    removed: AtomicBool,
    // Made when first asked for, so that a thousand tools cost nothing at start.
    spec: OnceLock<ToolSpec>,
    checker: OnceLock<Result<ArgumentChecker, String>>,
    definition: OnceLock<Box<str>>,
}

impl Tool {
    fn compiled(plugin: &'static Plugin, module: &'static str, created_at: Timestamp) -> Self {
        let name =
            if module.is_empty() { plugin.name.into() } else { format!("{module}.{}", plugin.name).into() };
        Self {
            name,
            module: if module.is_empty() { LOCAL_MODULE } else { module },
            policy: plugin.policy,
            source: Source::Compiled(plugin.place),
            code: Code::Compiled(plugin),
            created_at,
            enabled: AtomicBool::new(true),
            removed: AtomicBool::new(false),
            spec: OnceLock::new(),
            checker: OnceLock::new(),
            definition: OnceLock::new(),
        }
    }

    /// The unique name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The module: what stands before the first dot of the name, or `local`.
    pub fn module(&self) -> &str {
        match self.code {
            Code::Compiled(_) => self.module,
            Code::Host(_) => self.name.split_once('.').map_or(LOCAL_MODULE, |(module, _)| module),
        }
    }

    /// What it is to a model.
    pub fn spec(&self) -> &ToolSpec {
        self.spec.get_or_init(|| match self.code {
            Code::Compiled(plugin) => ToolSpec {
                tool_name: self.name.to_string(),
                title: plugin.title.map(str::to_owned),
                version: plugin.version.map(str::to_owned),
                description: Some(plugin.description.to_owned()),
                input_schema: Arc::new((plugin.input_schema)()),
                output_schema: (plugin.output_schema)().unwrap_or(Value::Null),
                tags: plugin.tags.iter().map(|tag| (*tag).to_owned()).collect(),
                deprecated: plugin.deprecated.map(str::to_owned),
            },
            // A host's spec is set when it registers.
            Code::Host(_) => ToolSpec::new(self.name(), Value::Null),
        })
    }

    /// Who may call it and how.
    pub fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    /// Where it comes from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// When it was registered.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// Whether it is switched on and still registered.
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire) && !self.removed.load(Ordering::Acquire)
    }

    /// What makes it impossible to call, such as a schema that is none.
    pub fn fault(&self) -> Option<&str> {
        self.checker().err()
    }

    pub(crate) fn checker(&self) -> Result<&ArgumentChecker, &str> {
        self.checker
            .get_or_init(|| ArgumentChecker::new(&self.spec().input_schema))
            .as_ref()
            .map_err(String::as_str)
    }

    /// Appends the definition in the common form, `{"type": "function", "function": {"name", "description", "parameters"}}`, as
    /// JSON. `name` is what the tool is called on the wire, with characters that need no escape.
    pub fn write_definition(&self, name: &str, json: &mut String) {
        let tail = self.definition.get_or_init(|| {
            let description = Value::from(self.spec().description.clone().unwrap_or_default());
            format!("\",\"description\":{description},\"parameters\":{}}}}}", self.spec().input_schema).into()
        });
        json.push_str("{\"type\":\"function\",\"function\":{\"name\":\"");
        json.push_str(name);
        json.push_str(tail);
    }

    pub(crate) fn handler(&self) -> Option<&dyn Handler> {
        match &self.code {
            Code::Compiled(plugin) => Some(*plugin),
            Code::Host(handler) => handler.as_deref(),
        }
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).field("source", &self.source).finish_non_exhaustive()
    }
}

/// All tools at one moment.
#[derive(Default, Clone)]
pub(crate) struct ToolSet {
    by_name: HashMap<Arc<str>, Arc<Tool>>,
    sorted: Vec<Arc<Tool>>,
}

impl ToolSet {
    fn from_tools(mut sorted: Vec<Arc<Tool>>) -> Self {
        sorted.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let by_name = sorted.iter().map(|tool| (Arc::clone(&tool.name), Arc::clone(tool))).collect();
        Self { by_name, sorted }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name)
    }

    pub(crate) fn sorted(&self) -> &[Arc<Tool>] {
        &self.sorted
    }
}

pub(crate) struct Shared {
    pub(crate) tools: ArcSwap<ToolSet>,
    pub(crate) resources: Arc<Resources>,
    pub(crate) audit: Arc<dyn AuditSink>,
    pub(crate) clock: Arc<dyn Clock>,
    writing: Mutex<()>,
    duplicates: Vec<RegistryError>,
}

/// The tools and the one path of a call. Cheap to clone: all clones are the same registry.
#[derive(Clone)]
pub struct Registry {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("tools", &self.len()).finish_non_exhaustive()
    }
}

impl Registry {
    /// Starts a registry.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// A context for a caller, with what this host provides.
    pub fn context(&self, caller: Caller) -> ToolContext {
        ToolContext::new(caller).with_resources(Arc::clone(&self.shared.resources))
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

    /// Registers a tool of the host. Without a handler it is listed and cannot be called.
    ///
    /// # Errors
    /// When the name is a compiled tool's, or when it is registered already with the same version and another spec. The
    /// same spec again changes nothing; another version replaces it.
    pub fn register(
        &self,
        spec: ToolSpec,
        policy: ToolPolicy,
        handler: Option<Arc<dyn Handler>>,
    ) -> Result<Arc<Tool>, RegistryError> {
        let _writing = self.shared.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = self.shared.tools.load_full();
        if let Some(known) = tools.get(&spec.tool_name) {
            if let Source::Compiled(_) = known.source {
                return Err(RegistryError::Duplicate {
                    name: spec.tool_name,
                    first: known.source,
                    second: Source::Host,
                });
            }
            if *known.spec() == spec {
                return Ok(Arc::clone(known));
            }
            if known.spec().version == spec.version {
                return Err(RegistryError::VersionUnchanged { name: spec.tool_name, version: spec.version });
            }
        }
        let tool = Arc::new(Tool {
            name: spec.tool_name.as_str().into(),
            module: "",
            policy,
            source: Source::Host,
            code: Code::Host(handler),
            created_at: self.shared.clock.now(),
            enabled: AtomicBool::new(true),
            removed: AtomicBool::new(false),
            spec: OnceLock::from(spec),
            checker: OnceLock::new(),
            definition: OnceLock::new(),
        });
        let others = tools.sorted.iter().filter(|known| known.name != tool.name).cloned();
        let all = others.chain([Arc::clone(&tool)]).collect();
        self.shared.tools.store(Arc::new(ToolSet::from_tools(all)));
        Ok(tool)
    }

    /// Switches a tool on or off, at once and for running turns too.
    ///
    /// # Errors
    /// When there is no tool of that name.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> Result<(), RegistryError> {
        let tool = self.get(name).ok_or_else(|| RegistryError::Unknown { name: name.to_owned() })?;
        tool.enabled.store(enabled, Ordering::Release);
        Ok(())
    }

    /// Removes a tool, at once and for running turns too. No such tool: nothing to do.
    pub fn remove(&self, name: &str) {
        let _writing = self.shared.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = self.shared.tools.load_full();
        if let Some(tool) = tools.get(name) {
            tool.removed.store(true, Ordering::Release);
            let others = tools.sorted.iter().filter(|known| &*known.name != name).cloned().collect();
            self.shared.tools.store(Arc::new(ToolSet::from_tools(others)));
        }
    }

    /// The compiled tools that were left out because another one has their name.
    pub fn duplicates(&self) -> &[RegistryError] {
        &self.shared.duplicates
    }

    /// Makes every schema now, logs each tool that cannot be called with its cause, and returns those.
    ///
    /// Without this the same is found at first use; a server does it at start, so that its log says so.
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

/// The names most like one, best first, at most three.
pub(crate) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['-', '.', ' '], "_");
    let wanted = plain(name);
    let last = |name: &str| name.rsplit_once('.').map_or(name.to_owned(), |(_, last)| last.to_owned());
    let wanted_last = plain(&last(name));
    let mut scored: Vec<(f64, &str)> = names
        .map(|known| {
            let whole = strsim::jaro_winkler(&wanted, &plain(known));
            // A name with a forgotten or wrong module is the likeliest slip.
            let tail = strsim::jaro_winkler(&wanted_last, &plain(&last(known)));
            (whole.max(tail * 0.99), known)
        })
        .filter(|(score, _)| *score > 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, known)| known).collect()
}

/// Builds a [`Registry`].
pub struct RegistryBuilder {
    resources: Resources,
    audit: Arc<dyn AuditSink>,
    clock: Arc<dyn Clock>,
    compiled: bool,
}

impl Default for RegistryBuilder {
    fn default() -> Self {
        Self {
            resources: Resources::new(),
            audit: Arc::new(LogAudit),
            clock: Arc::new(SystemClock),
            compiled: true,
        }
    }
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryBuilder").field("resources", &self.resources).finish_non_exhaustive()
    }
}

impl RegistryBuilder {
    /// Provides a value to the tools that ask for its type.
    #[must_use]
    pub fn resource<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.resources = self.resources.with(value);
        self
    }

    /// Provides all of these.
    #[must_use]
    pub fn resources(mut self, resources: Resources) -> Self {
        self.resources = resources;
        self
    }

    /// Where the records of calls go. The log, where nothing is said.
    #[must_use]
    pub fn audit(mut self, audit: Arc<dyn AuditSink>) -> Self {
        self.audit = audit;
        self
    }

    /// The clock. The machine's own, where nothing is said.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Leaves out the compiled tools: only what the host registers.
    #[must_use]
    pub fn without_compiled(mut self) -> Self {
        self.compiled = false;
        self
    }

    /// Collects the compiled tools. Each one is logged; of two with one name the second is left out with an error in
    /// the log that names both places.
    ///
    /// # Errors
    /// When compiled tools are wanted and there is none, which is what a forgotten `use tools as _;` looks like.
    pub fn build(self) -> Result<Registry, RegistryError> {
        let created_at = self.clock.now();
        let (mut tools, mut duplicates) = (Vec::new(), Vec::new());
        if self.compiled {
            (tools, duplicates) = collect(created_at);
            if tools.is_empty() {
                return Err(RegistryError::Empty);
            }
        }
        let shared = Shared {
            tools: ArcSwap::from_pointee(ToolSet::from_tools(tools)),
            resources: Arc::new(self.resources),
            audit: self.audit,
            clock: self.clock,
            writing: Mutex::new(()),
            duplicates,
        };
        Ok(Registry { shared: Arc::new(shared) })
    }
}

/// The compiled tools, one of each name, in an order that does not depend on the linker; and those left out.
fn collect(created_at: Timestamp) -> (Vec<Arc<Tool>>, Vec<RegistryError>) {
    let folders: HashMap<&str, &'static str> =
        inventory::iter::<Folder>().map(|folder| (folder.module_path, folder.name)).collect();
    let mut all: Vec<Tool> = inventory::iter::<Plugin>()
        .map(|plugin| Tool::compiled(plugin, module_of(plugin, &folders), created_at))
        .collect();
    let place = |tool: &Tool| match tool.source {
        Source::Compiled(place) => (place.file, place.line),
        Source::Host => ("", 0),
    };
    all.sort_unstable_by(|a, b| a.name.cmp(&b.name).then_with(|| place(a).cmp(&place(b))));
    let (mut tools, mut duplicates): (Vec<Arc<Tool>>, _) = (Vec::with_capacity(all.len()), Vec::new());
    for tool in all {
        match tools.last().filter(|last| last.name == tool.name) {
            Some(first) => {
                let error = RegistryError::Duplicate {
                    name: tool.name.to_string(),
                    first: first.source,
                    second: tool.source,
                };
                tracing::error!("{error}");
                duplicates.push(error);
            }
            None => {
                tracing::info!("Loaded tool: {}", tool.name);
                tools.push(Arc::new(tool));
            }
        }
    }
    (tools, duplicates)
}

/// The folder that a plugin's Rust module is in.
fn module_of(plugin: &Plugin, folders: &HashMap<&str, &'static str>) -> &'static str {
    if folders.is_empty() {
        return "";
    }
    let mut path = plugin.place.module_path;
    while let Some((parent, _)) = path.rsplit_once("::") {
        if let Some(name) = folders.get(parent) {
            return name;
        }
        path = parent;
    }
    ""
}

/// What keeps a registry from being built or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistryError {
    /// No compiled tool was found.
    Empty,
    /// Two tools have one name; the first stays.
    Duplicate {
        /// The name.
        name: String,
        /// Where the one that stays comes from.
        first: Source,
        /// Where the one that is refused comes from.
        second: Source,
    },
    /// The same version with another spec.
    VersionUnchanged {
        /// The tool's name.
        name: String,
        /// The version both have.
        version: Option<String>,
    },
    /// No tool of that name.
    Unknown {
        /// The name.
        name: String,
    },
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "no tool was found: the crate with the tools is not linked. Name it in the program, as with `use tools as _;`, \
                 or say `without_compiled()` where none is wanted",
            ),
            Self::Duplicate { name, first, second } => {
                write!(f, "two tools are named {name}: {first} stays, {second} is left out; rename one of them")
            }
            Self::VersionUnchanged { name, version } => write!(
                f,
                "{name} is registered already with version {} and another spec; give the new one another version",
                version.as_deref().unwrap_or("none")
            ),
            Self::Unknown { name } => write!(f, "there is no tool named {name}"),
        }
    }
}

impl Error for RegistryError {}
