//! One tool in the registry: its spec and policy, the code behind it, and where it comes from.

use std::{
    borrow::Cow,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    arguments::ArgumentChecker,
    context::ToolContext,
    execute::BoxFuture,
    plugin::{Place, Plugin},
    policy::ToolPolicy,
    registration::ToolRegistration,
    result::{ToolError, ToolResult},
    source::Remote,
    spec::ToolSpec,
};

/// How every definition begins, up to the name.
const DEFINITION_HEAD: &str = r#"{"type":"function","function":{"name":""#;

/// The module of tools that have no prefix.
pub const LOCAL_MODULE: &str = "local";

/// The code behind a tool. `#[tool]` writes it; a host that registers tools by hand implements it or takes [`handler_fn`].
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
        (self.missing)(context).or_else(|| {
            let off = self.enabled.is_some_and(|enabled| !enabled(context));
            off.then(|| match self.needs {
                Some(needs) => format!("needs {needs}"),
                None => "its `enabled` condition does not hold for this request".to_owned(),
            })
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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Compiled in with `#[tool]`.
    Compiled(Place),
    /// Defined in a file.
    Configured {
        /// The file.
        file: Arc<str>,
        /// The line on which its definition begins.
        line: u32,
    },
    /// Registered by the host's code.
    Host,
    /// Part of the registry itself.
    BuiltIn,
    /// Offered by a source outside of this process.
    Remote(Remote),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compiled(place) => write!(f, "{}:{}", place.file, place.line),
            Self::Configured { file, line } => write!(f, "{file}:{line}"),
            Self::Host => f.write_str("host"),
            Self::BuiltIn => f.write_str("built in"),
            Self::Remote(remote) => remote.fmt(f),
        }
    }
}

enum Code {
    Compiled(&'static Plugin),
    Host(Option<Arc<dyn Handler>>),
}

/// Whether a tool may be used. All versions of it share one, so that what is revoked is revoked for a turn that has pinned an
/// older one too.
#[derive(Debug)]
pub(crate) struct Switch {
    enabled: AtomicBool,
    removed: AtomicBool,
}

impl Switch {
    fn on() -> Arc<Self> {
        Arc::new(Self { enabled: AtomicBool::new(true), removed: AtomicBool::new(false) })
    }
}

/// A tool in the registry.
pub struct Tool {
    name: Arc<str>,
    module: &'static str,
    policy: ToolPolicy,
    source: Source,
    code: Code,
    created_at: Timestamp,
    switch: Arc<Switch>,
    // Made when first asked for, so that a thousand tools cost nothing at start.
    spec: OnceLock<ToolSpec>,
    schema_fault: OnceLock<Option<String>>,
    checker: OnceLock<Result<ArgumentChecker, String>>,
    definition: OnceLock<Box<str>>,
}

impl Tool {
    pub(crate) fn compiled(plugin: &'static Plugin, module: &'static str, created_at: Timestamp) -> Self {
        let name =
            if module.is_empty() { plugin.name.into() } else { format!("{module}.{}", plugin.name).into() };
        Self {
            name,
            module: if module.is_empty() { LOCAL_MODULE } else { module },
            policy: plugin.policy,
            source: Source::Compiled(plugin.place),
            code: Code::Compiled(plugin),
            created_at,
            switch: Switch::on(),
            spec: OnceLock::new(),
            schema_fault: OnceLock::new(),
            checker: OnceLock::new(),
            definition: OnceLock::new(),
        }
    }

    pub(crate) fn of_host(
        spec: ToolSpec,
        policy: ToolPolicy,
        handler: Option<Arc<dyn Handler>>,
        created_at: Timestamp,
    ) -> Self {
        Self {
            name: spec.tool_name.as_str().into(),
            module: "",
            policy,
            source: Source::Host,
            code: Code::Host(handler),
            created_at,
            switch: Switch::on(),
            spec: OnceLock::from(spec),
            schema_fault: OnceLock::new(),
            checker: OnceLock::new(),
            definition: OnceLock::new(),
        }
    }

    pub(crate) fn with_source(mut self, source: Source) -> Self {
        self.source = source;
        self
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Takes the place of a tool of the same name, with its switch.
    pub(crate) fn replacing(mut self, known: &Self) -> Self {
        self.switch = Arc::clone(&known.switch);
        self
    }

    /// The same registration with code behind it.
    pub(crate) fn giving_code(self, known: &Self) -> Self {
        Self { created_at: known.created_at, ..self }.replacing(known)
    }

    /// Whether that changed anything.
    pub(crate) fn set_enabled(&self, enabled: bool) -> bool {
        self.switch.enabled.swap(enabled, Ordering::AcqRel) != enabled
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.switch.removed.load(Ordering::Acquire)
    }

    pub(crate) fn set_removed(&self) {
        self.switch.removed.store(true, Ordering::Release);
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
                // A default or an example is the tool's own code, and a panic in it is a fault of this one tool.
                input_schema: Arc::new(catch_unwind(plugin.input_schema).unwrap_or_default()),
                output_schema: catch_unwind(plugin.output_schema).ok().flatten().unwrap_or_default(),
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
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// When it was registered.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// Whether it is switched on and still registered.
    pub fn is_enabled(&self) -> bool {
        self.switch.enabled.load(Ordering::Acquire) && !self.switch.removed.load(Ordering::Acquire)
    }

    /// What makes it impossible to call, such as an invalid schema. The validator of its arguments is made when it is first called.
    pub fn fault(&self) -> Option<&str> {
        match self.checker.get() {
            Some(checker) => checker.as_ref().err().map(String::as_str),
            None => {
                let find = || ArgumentChecker::fault(&self.spec().input_schema);
                self.schema_fault.get_or_init(find).as_deref()
            }
        }
    }

    /// The same with everything that only a call would show: its validator is made now.
    pub fn full_fault(&self) -> Option<&str> {
        self.checker().err()
    }

    /// The arguments as the tool takes them: coerced where they do not fit, and validated.
    ///
    /// # Errors
    /// What does not fit, where, and what is expected; or that the tool's schema is invalid.
    pub(crate) fn coerce_arguments(&self, arguments: Value) -> Result<Map<String, Value>, ToolError> {
        let checker = self.checker().map_err(ToolError::invalid)?;
        let fitted = checker.fit(self.name(), &self.spec().input_schema, arguments);
        fitted.map_err(|misfit| misfit.error)
    }

    /// Whether an argument is secret, and so never kept.
    pub fn takes_secret(&self) -> bool {
        self.checker().is_ok_and(ArgumentChecker::has_secret)
    }

    pub(crate) fn checker(&self) -> Result<&ArgumentChecker, &str> {
        self.checker
            .get_or_init(|| ArgumentChecker::new(&self.spec().input_schema))
            .as_ref()
            .map_err(String::as_str)
    }

    /// What a model is told that it does; see [`ToolSpec::described`].
    pub fn description(&self) -> Cow<'_, str> {
        self.spec().described()
    }

    /// The definition in the common form, `{"type": "function", "function": {"name", "description", "parameters"}}`. `name`
    /// is what the tool is called on the wire.
    pub fn definition(&self, name: &str) -> Value {
        self.described(name, &self.description())
    }

    pub(crate) fn described(&self, name: &str, description: &str) -> Value {
        json!({
            "type": "function",
            "function": {
                "name": name,
                "description": description,
                "parameters": self.spec().input_schema,
            },
        })
    }

    /// Appends the [`definition`](Self::definition) as JSON, which is made once for all names. The name is one with
    /// characters that need no escape.
    pub fn write_definition(&self, name: &str, json: &mut String) {
        let tail = self.definition.get_or_init(|| {
            let whole = self.definition("").to_string();
            whole.strip_prefix(DEFINITION_HEAD).unwrap_or_default().into()
        });
        json.push_str(DEFINITION_HEAD);
        json.push_str(name);
        json.push_str(tail);
    }

    /// What the registry holds of it now, to be kept or sent.
    pub fn registration(&self) -> ToolRegistration {
        ToolRegistration {
            spec: self.spec().clone(),
            enabled: self.is_enabled(),
            created_at: Some(self.created_at),
        }
    }

    /// Whether its code or its source is here, so that what a store or a snapshot says of its spec does not count.
    pub(crate) fn is_at_home(&self) -> bool {
        self.source != Source::Host || self.handler().is_some()
    }

    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.source, Source::Remote(_))
    }

    pub(crate) fn is_run_by(&self, handler: &Arc<dyn Handler>) -> bool {
        matches!(&self.code, Code::Host(Some(known)) if Arc::ptr_eq(known, handler))
    }

    /// Why it is off for this request, beside what the registry itself knows.
    pub(crate) fn unavailable(&self, context: &ToolContext) -> Option<String> {
        let Some(handler) = self.handler() else {
            return Some("it is listed only, without code behind it".to_owned());
        };
        let asked = catch_unwind(AssertUnwindSafe(|| handler.unavailable(context)));
        asked.unwrap_or_else(|_| Some("asking whether it is available panicked".to_owned()))
    }

    /// Whether it needs something that is not there. What depends on the request, such as `enabled`, is not asked.
    pub(crate) fn lacks_something(&self, context: &ToolContext) -> bool {
        match self.code {
            Code::Compiled(plugin) => {
                let missing = catch_unwind(AssertUnwindSafe(|| (plugin.missing)(context)));
                missing.map_or(true, |missing| missing.is_some())
            }
            Code::Host(_) => self.unavailable(context).is_some(),
        }
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
