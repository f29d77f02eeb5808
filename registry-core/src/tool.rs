//! One tool in the registry: its spec and policy, the code behind it, and where it comes from.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    context::ToolContext,
    flow::{Reads, Sends},
    handler::{Handler, ToolFuture},
    plugin::Plugin,
    policy::{Effect, ToolLimits, ToolPolicy},
    result::{ErrorKind, ToolError},
    schema::{
        ArgumentChecker, bytes,
        from_call::{missing, schema_of},
        inconsistencies,
        literal::{self, PluginExample},
    },
    source::{ConfiguredTool, Offer, Remote, Source},
    spec::{Example, ToolSpec},
};

/// How every definition begins, up to the name.
const DEFINITION_HEAD: &str = r#"{"type":"function","function":{"name":""#;

/// The module of tools that have no prefix.
pub const LOCAL_MODULE: &str = "local";

enum Code {
    Compiled(&'static Plugin),
    Host(Option<Arc<dyn Handler>>),
}

/// Whether a tool may be used, and how often. All versions of it share one, so that what is revoked is revoked for a turn that has pinned an
/// older one too.
#[derive(Debug)]
pub(crate) struct Switch {
    enabled: AtomicBool,
    removed: AtomicBool,
    /// What an operator has set in place of the tool's own limits.
    limits: ArcSwapOption<ToolLimits>,
}

impl Switch {
    fn on() -> Arc<Self> {
        Arc::new(Self {
            enabled: AtomicBool::new(true),
            removed: AtomicBool::new(false),
            limits: ArcSwapOption::empty(),
        })
    }
}

/// A tool in the registry.
#[derive(derive_more::Debug)]
#[debug("Tool({name}, {source})")]
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
    /// Held while the validator is made beside the runtime: calls that come meanwhile go on in their order.
    pub(crate) making_checker: tokio::sync::Mutex<()>,
    definition: OnceLock<Box<str>>,
    examples: OnceLock<Box<[Example]>>,
}

impl Tool {
    /// `folders` are those that the tool is in, the outermost first: that one is its module.
    pub(crate) fn compiled(plugin: &'static Plugin, folders: &[&'static str], created_at: Timestamp) -> Self {
        let name = match folders {
            [] => plugin.name.into(),
            folders => format!("{}.{}", folders.join("."), plugin.name).into(),
        };
        let module = folders.first().copied().unwrap_or(LOCAL_MODULE);
        let source = Source::Compiled(plugin.place);
        Self { module, source, ..Self::new(name, plugin.policy, Code::Compiled(plugin), created_at) }
    }

    pub(crate) fn of_host(
        spec: ToolSpec,
        policy: ToolPolicy,
        handler: Option<Arc<dyn Handler>>,
        created_at: Timestamp,
    ) -> Self {
        let name = spec.tool_name.as_str().into();
        Self { spec: OnceLock::from(spec), ..Self::new(name, policy, Code::Host(handler), created_at) }
    }

    /// A tool of an entry point, for [`Selection::with_built_in`](crate::Selection::with_built_in). Whoever may use a tool there may use it:
    /// its handler gives a caller nothing that is not the caller's.
    pub fn built_in(
        spec: ToolSpec,
        policy: ToolPolicy,
        handler: Arc<dyn Handler>,
        created_at: Timestamp,
    ) -> Self {
        Self::of_host(spec, policy, Some(handler), created_at).with_source(Source::BuiltIn)
    }

    fn new(name: Arc<str>, policy: ToolPolicy, code: Code, created_at: Timestamp) -> Self {
        Self {
            name,
            module: "",
            policy,
            source: Source::Host,
            code,
            created_at,
            switch: Switch::on(),
            spec: OnceLock::new(),
            schema_fault: OnceLock::new(),
            checker: OnceLock::new(),
            making_checker: tokio::sync::Mutex::default(),
            definition: OnceLock::new(),
            examples: OnceLock::new(),
        }
    }

    /// A tool that a file defines.
    pub(crate) fn configured(tool: &ConfiguredTool, created_at: Timestamp) -> Self {
        let ConfiguredTool { spec, policy, handler, file, line } = tool;
        Self::of_host(spec.clone(), *policy, Some(Arc::clone(handler)), created_at)
            .with_source(Source::Configured { file: Arc::clone(file), line: *line })
    }

    /// A tool that a remote source offers.
    pub(crate) fn offered(remote: &Remote, offer: &Offer, created_at: Timestamp) -> Self {
        let Offer { spec, policy, handler } = offer;
        Self::of_host(spec.clone(), *policy, Some(Arc::clone(handler)), created_at)
            .with_source(Source::Remote(remote.clone()))
    }

    /// Whether it is this offer, taken.
    pub(crate) fn is_offer(&self, remote: &Remote, offer: &Offer) -> bool {
        matches!(&self.source, Source::Remote(known) if known == remote)
            && self.policy == offer.policy
            && *self.spec() == offer.spec
            && matches!(&self.code, Code::Host(Some(known)) if Arc::ptr_eq(known, &offer.handler))
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

    pub(crate) fn set_limits(&self, limits: ToolLimits) {
        self.switch.limits.store((!limits.is_empty()).then(|| Arc::new(limits)));
    }

    /// The name of the function, where the tool is compiled in.
    pub fn function(&self) -> Option<&'static str> {
        match &self.code {
            Code::Compiled(plugin) => Some(plugin.function),
            Code::Host(_) => None,
        }
    }

    /// The limits that an operator has set in place of the tool's own.
    pub fn limits(&self) -> ToolLimits {
        self.switch.limits.load().as_deref().copied().unwrap_or_default()
    }

    /// Calls a user may make in a day (UTC); 0 for any number.
    pub fn daily_limit(&self) -> u32 {
        self.limits().daily_limit.unwrap_or(self.policy.daily_limit)
    }

    /// The least time between two calls of one user; zero for none.
    pub fn cooldown(&self) -> Duration {
        let set = self.limits().cooldown_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        set.unwrap_or(self.policy.cooldown)
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
                input_schema: Arc::new(catch_unwind(|| schema_of(plugin.parameters)).unwrap_or_default()),
                output_schema: catch_unwind(plugin.output_schema).ok().flatten().unwrap_or_default(),
                tags: plugin.tags.iter().map(|tag| (*tag).to_owned()).collect(),
                deprecated: plugin.deprecated.map(str::to_owned),
            },
            // A host's spec is set when it registers.
            Code::Host(_) => ToolSpec::new(self.name(), Value::Null),
        })
    }

    /// What people ask and the calls that answer it: the keys `example` of `#[tool]`. Tools from elsewhere have none.
    pub fn examples(&self) -> &[Example] {
        self.examples.get_or_init(|| {
            let examples = match self.code {
                Code::Compiled(plugin) => plugin.examples,
                Code::Host(_) => &[],
            };
            let example = |example: &PluginExample| Example {
                question: example.question.to_owned(),
                arguments: Value::Object(literal::object(example.arguments)),
            };
            examples.iter().map(example).collect()
        })
    }

    /// Who may call it and how.
    pub fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    /// What its results may hold. Both where it does not say: nobody else can know.
    pub fn reads(&self) -> Reads {
        self.policy.reads.unwrap_or(Reads::BOTH)
    }

    /// Where its arguments go. Where it does not say, outside for a tool of a module or an MCP server, and for one that does more than read;
    /// the code of one that runs here and only reads is the operator's own, and sends nothing.
    pub fn sends(&self) -> Sends {
        let stays = !self.is_remote() && self.policy.effect == Effect::Read;
        self.policy.sends.unwrap_or(if stays { Sends::Nothing } else { Sends::Outside })
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

    /// What it says of itself and does not keep: defaults and examples that do not fit its own schema; and, of a compiled tool, bytes that a model
    /// would read or write as numbers. For tests and checks, not for every start.
    pub fn inconsistencies(&self) -> Vec<String> {
        let spec = self.spec();
        let mut found = match self.checker() {
            Ok(checker) => inconsistencies(checker, &spec.input_schema, self.examples()),
            Err(fault) => vec![fault.to_owned()],
        };
        if self.is_compiled() {
            let ways: [(_, &Value, _); 2] = [
                ("take", &spec.input_schema, "a `String` with a text, a path or Base64"),
                ("return", &spec.output_schema, "a `File`, an `Image` or `Audio`"),
            ];
            for (verb, schema, instead) in ways {
                found.extend(bytes(schema).into_iter().map(|place| {
                    let place = if place.is_empty() { "the result" } else { &format!("`{place}`") };
                    format!("{place} is a list of numbers, one for each byte: {verb} {instead}, or `Vec<u16>` where numbers are meant")
                }));
            }
        }
        found
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

    /// Whether it was built with the program.
    pub(crate) fn is_compiled(&self) -> bool {
        matches!(self.source, Source::Compiled(_))
    }

    /// Whether its validator was made.
    pub(crate) fn has_checker(&self) -> bool {
        self.checker.get().is_some()
    }

    pub(crate) fn checker(&self) -> Result<&ArgumentChecker, &str> {
        self.checker
            .get_or_init(|| ArgumentChecker::new(&self.spec().input_schema))
            .as_ref()
            .map_err(String::as_str)
    }

    /// The description for a model; see [`ToolSpec::described`].
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

    /// Whether its code or its source is here, so that what a store or a snapshot says of its spec does not count.
    pub(crate) fn is_at_home(&self) -> bool {
        self.source != Source::Host || self.handler().is_some()
    }

    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.source, Source::Remote(_))
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
                let missing = catch_unwind(AssertUnwindSafe(|| missing(plugin.parameters, context)));
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

/// The handler of a compiled tool, for a tool that is the same under another name with rules of its own. The arguments have to fit the
/// compiled tool's schema as well.
pub fn alias_of(tool: Arc<Tool>) -> Arc<dyn Handler> {
    Arc::new(Alias(tool))
}

struct Alias(Arc<Tool>);

impl Handler for Alias {
    fn unavailable(&self, context: &ToolContext) -> Option<String> {
        self.0.unavailable(context)
    }

    fn call<'a>(&'a self, context: &'a ToolContext, arguments: Map<String, Value>) -> ToolFuture<'a> {
        let tool = &self.0;
        let Some(handler) = tool.handler() else {
            let message = format!("{} cannot be called", tool.name());
            return Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::Unavailable, message))));
        };
        // The file's schema need not be the tool's own.
        match tool.coerce_arguments(Value::Object(arguments)) {
            Ok(arguments) => handler.call(context, arguments),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
