//! A template, and what it is rendered with.

use std::{collections::BTreeMap, thread};

use jiff::{Zoned, fmt::strtime::BrokenDownTime};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, Value, syntax::SyntaxConfig,
};
use serde_json::Map;

use crate::{
    bounds,
    error::{Raised, TemplateError},
    json,
    output::Bounded,
    python, source,
};

/// The maximum size of a template's source, in bytes.
pub const MAX_SOURCE: usize = 1024 * 1024;
/// The maximum size of a prompt, in bytes.
pub const MAX_OUTPUT: usize = 64 * 1024 * 1024;
/// The work that a template may do for any conversation. An instruction is 1, and so are 64 bytes of what it makes.
const FUEL: usize = 200_000;
/// What it may do more for each message; known templates need some hundreds.
const FUEL_OF_MESSAGE: usize = 4_000;
/// The most work of a render.
const MAX_FUEL: usize = 4_000_000;
/// How much stack a unit of work may need, in bytes: a value that is nested as deep as a template can make it is taken apart level by level.
/// It is address space; memory is taken as it is used.
const STACK_OF_FUEL: usize = if cfg!(debug_assertions) { 256 } else { 128 };
/// The stack on which a template is read: what its longest tag may need, and some for each byte beside. It is address space, too.
const STACK: usize = 256 << 20;
const STACK_OF_BYTE: usize = 256;
/// The depth to which a template may nest while it runs; a loop is 1, a macro some.
const MAX_DEPTH: usize = 200;
/// The template's name in the environment.
const NAME: &str = "chat";

/// A chat template.
#[derive(Debug, Clone)]
pub struct Template {
    environment: Environment<'static>,
    source: String,
}

/// What a template writes the prompt of.
#[derive(Debug, Clone)]
pub struct Conversation<'a> {
    /// The messages in the shape that templates expect: `role`, `content` (a text, or parts with a `type`), `reasoning_content`,
    /// `tool_calls` (of `{"id", "type": "function", "function": {"name", "arguments": {…}}}`), and `name` and `tool_call_id` of results.
    pub messages: &'a [serde_json::Value],
    /// The definitions of the tools, as OpenAI's chat completions have them.
    pub tools: &'a [serde_json::Value],
    /// Whether the prompt ends with the beginning of an answer.
    pub add_generation_prompt: bool,
    /// The text of the token that begins a prompt, if the model has one.
    pub bos_token: Option<&'a str>,
    /// The text of the token that ends an answer, if the model has one.
    pub eos_token: Option<&'a str>,
    /// What else the template may ask for, such as `enable_thinking`.
    pub others: Map<String, serde_json::Value>,
    /// The time, which some templates tell the model; `None` for now.
    pub now: Option<Zoned>,
}

impl<'a> Conversation<'a> {
    /// The prompt of these messages, up to the beginning of an answer.
    pub fn new(messages: &'a [serde_json::Value]) -> Self {
        Self {
            messages,
            tools: &[],
            add_generation_prompt: true,
            bos_token: None,
            eos_token: None,
            others: Map::new(),
            now: None,
        }
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// When it is too large or not a template.
    pub fn new(source: &str) -> Result<Self, TemplateError> {
        if source.len() > MAX_SOURCE {
            return Err(TemplateError::SourceTooLarge(source.len()));
        }
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        let syntax = syntax.map_err(|error| TemplateError::of_source(&error))?;
        let mut environment = Environment::new();
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_recursion_limit(MAX_DEPTH);
        environment.add_filter("tojson", json::tojson);
        environment.add_filter(bounds::FILTER, bounds::bounded);
        environment.add_function("raise_exception", raise_exception);
        environment.remove_global("debug");
        python::add_to(&mut environment);
        let bounded = bounds::with_bounds(&source::prepared(source)).ok_or_else(|| {
            TemplateError::Syntax(format!("a tag has more than {} words and signs", bounds::MAX_SIGNS))
        })?;
        let stack_size = STACK + bounded.len() * STACK_OF_BYTE;
        let added = on_thread(stack_size, || environment.add_template_owned(NAME, bounded))?;
        added.map_err(|error| TemplateError::of_source(&error))?;
        Ok(Self { environment, source: source.to_owned() })
    }

    /// The source that it was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Writes a prompt, on a thread that ends with it. It may take a second of a processor.
    ///
    /// # Errors
    /// When the template refuses the conversation, fails, or goes on without end.
    pub fn render(&self, conversation: &Conversation<'_>) -> Result<String, TemplateError> {
        let fuel = (FUEL + FUEL_OF_MESSAGE.saturating_mul(conversation.messages.len())).min(MAX_FUEL);
        on_thread(fuel * STACK_OF_FUEL, || self.render_with(fuel, conversation))?
    }

    fn render_with(&self, fuel: usize, conversation: &Conversation<'_>) -> Result<String, TemplateError> {
        let failed = |error: Error| TemplateError::of_render(&error);
        let mut environment = self.environment.clone();
        environment.set_fuel(u64::try_from(fuel).ok());
        let template = environment.get_template(NAME).map_err(failed)?;
        let mut output = Bounded::new(MAX_OUTPUT);
        let rendered = template.render_captured_to(context(conversation), &mut output).map(drop);
        if output.is_full {
            return Err(TemplateError::OutputTooLarge);
        }
        rendered.map_err(failed)?;
        String::from_utf8(output.bytes).map_err(|error| TemplateError::Failed(error.to_string()))
    }
}

/// Works on a thread that ends with it, with so much stack.
fn on_thread<T: Send>(stack_size: usize, work: impl FnOnce() -> T + Send) -> Result<T, TemplateError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("template".to_owned()).stack_size(stack_size);
        let working = thread
            .spawn_scoped(scope, work)
            .map_err(|error| TemplateError::Failed(format!("there is no thread for it: {error}")))?;
        working.join().map_err(|_| TemplateError::Failed("the engine gave up".to_owned()))
    })
}

/// The names that a template knows, as the reference has them: there are `tools` and `documents` in any case.
fn context(conversation: &Conversation<'_>) -> Value {
    let others = conversation.others.iter();
    let mut context: BTreeMap<&str, Value> =
        others.map(|(name, value)| (name.as_str(), value_of(value))).collect();
    let tools = match conversation.tools {
        [] => Value::from(()),
        tools => list_of(tools),
    };
    let now = conversation.now.clone().unwrap_or_else(Zoned::now);
    context.extend([
        ("messages", list_of(conversation.messages)),
        ("tools", tools),
        ("documents", Value::from(())),
        ("add_generation_prompt", conversation.add_generation_prompt.into()),
        ("strftime_now", Value::from_function(move |format: &str| strftime(&now, format))),
    ]);
    for (name, token) in [("bos_token", conversation.bos_token), ("eos_token", conversation.eos_token)] {
        context.extend(token.map(|token| (name, token.into())));
    }
    Value::from_pairs(context)
}

fn list_of(values: &[serde_json::Value]) -> Value {
    values.iter().map(value_of).collect()
}

/// A value of the engine. JSON that was read nests 128 levels at most.
fn value_of(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(value) => Value::from(*value),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (_, Some(number)) => Value::from(number),
            _ => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(values) => list_of(values),
        serde_json::Value::Object(members) => {
            Value::from_pairs(members.iter().map(|(name, value)| (name.as_str(), value_of(value))))
        }
    }
}

fn raise_exception(state: &State, message: &Value) -> Result<Value, Error> {
    let message = python::text_of(state, message)?;
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

fn strftime(now: &Zoned, format: &str) -> Result<String, Error> {
    let time = BrokenDownTime::from(now);
    time.to_string(format).map_err(|error| {
        Error::new(ErrorKind::InvalidOperation, format!("strftime_now({format:?}): {error}"))
    })
}
