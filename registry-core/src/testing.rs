//! For the tests of tools: a host with fakes, and a way to make a call through the whole path.
//!
//! ```
//! use registry_core::{prelude::*, testing::TestHost};
//!
//! /// Where notes go.
//! struct Notebook(std::sync::Mutex<Vec<String>>);
//!
//! /// Writes a note down.
//! #[tool(permission = Permission::User, effect = Effect::Write, daily_limit = 1)]
//! async fn jot_down(
//!     ctx: &ToolContext,
//!     notebook: Resource<Notebook>,
//!     /// What it says.
//!     #[arg(length = 1..)]
//!     text: String,
//! ) -> String {
//!     ctx.status("Writing");
//!     notebook.0.lock().unwrap().push(text);
//!     "noted".to_owned()
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let host = TestHost::new().resource(Notebook(Default::default())).build();
//! let outcome = host.call("jot_down", json!({"text": "Buy milk."})).await;
//! assert_eq!(outcome.for_model(), "noted");
//! assert_eq!(host.statuses(), ["Writing"]);
//! assert_eq!(host.records().len(), 2); // an intent and an outcome
//!
//! let over = host.call("jot_down", json!({"text": "Buy bread."})).await;
//! assert!(over.for_model().contains("may be called once a day"));
//! host.advance(minutes(24 * 60));
//! let outcome = host.call("jot_down", json!({"text": ""})).await;
//! assert!(outcome.for_model().contains("do not fit"));
//!
//! // The function alone, without any check.
//! let context = host.context();
//! assert_eq!(jot_down(&context, context.resource().unwrap(), "Buy tea.".into()).await, "noted");
//! # }
//! ```
//!
//! How a tool is described to each provider is the business of `llm-bridge`: `llm_bridge::snapshot(&tool)` gives all of it as one
//! text, to be compared with the one of yesterday.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    clock::Clock,
    content::Content,
    context::{Caller, PendingQuestion, ToolCall, ToolContext, ToolEvent},
    guard::{
        approval::ApprovalAnswer,
        audit::{AuditRecord, MemoryAudit},
    },
    outcome::ToolOutcome,
    policy::Permission,
    registry::{Registry, RegistryBuilder},
    source::Source,
    tool::Tool,
};

/// What the tools of a crate say of themselves and do not keep, such as an example that their own schema refuses, each with its place. `path` is
/// the `module_path!()` of any module in the crate. `discover!` writes a test that asks for it.
pub fn inconsistencies(path: &str) -> Vec<String> {
    let krate = |path: &str| path.split("::").next().unwrap_or_default().to_owned();
    let of = krate(path);
    let mut found = Vec::new();
    for tool in crate::registry::compiled_tools() {
        if !matches!(tool.source(), Source::Compiled(place) if krate(place.module_path) == of) {
            continue;
        }
        let faults = tool.inconsistencies().into_iter();
        found.extend(faults.map(|fault| format!("{} ({}): {fault}", tool.name(), tool.source())));
    }
    found
}

/// So many records are kept.
const MAX_RECORDS: usize = 10_000;

/// A clock that stands still until it is advanced.
#[derive(Debug, Clone)]
pub struct TestClock(Arc<Mutex<Timestamp>>);

impl TestClock {
    /// A clock that stands at that time.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(now)))
    }

    /// Puts the clock forward.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock();
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        *now = now.checked_add(by).unwrap_or(Timestamp::MAX);
    }
}

/// Noon of the first of January 2026 (UTC).
impl Default for TestClock {
    fn default() -> Self {
        Self::at(Timestamp::from_second(1_767_268_800).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }
}

/// A host for tests, to be built: the compiled tools of this program, with fakes of what they need.
#[derive(Debug)]
#[must_use]
pub struct TestHost {
    builder: RegistryBuilder,
    caller: Caller,
    clock: TestClock,
    approve: bool,
    answers: VecDeque<Value>,
}

impl Default for TestHost {
    fn default() -> Self {
        Self::new()
    }
}

impl TestHost {
    /// A host that provides nothing, for a caller `tester` of the level `user`. A person who is asked says yes.
    pub fn new() -> Self {
        Self {
            builder: Registry::builder(),
            caller: Caller::new("tester", Permission::User),
            clock: TestClock::default(),
            approve: true,
            answers: VecDeque::new(),
        }
    }

    /// Provides something to the tools.
    pub fn resource<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.builder = self.builder.resource(value);
        self
    }

    /// With a caller of another level.
    pub fn level(mut self, level: Permission) -> Self {
        self.caller.level = level;
        self
    }

    /// With another caller.
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// A person who is asked about a call says no.
    pub fn denying(mut self) -> Self {
        self.approve = false;
        self
    }

    /// A person who answers the questions of tools, in this order: an object for a form, the text for a choice, `null` to decline. When these
    /// are used up, nobody answers. By default nobody can be asked.
    pub fn answering(mut self, answers: impl IntoIterator<Item = Value>) -> Self {
        self.answers.extend(answers);
        self
    }

    /// With another clock.
    pub fn clock(mut self, clock: TestClock) -> Self {
        self.clock = clock;
        self
    }

    /// With any other setting of the registry.
    pub fn with(mut self, set: impl FnOnce(RegistryBuilder) -> RegistryBuilder) -> Self {
        self.builder = set(self.builder);
        self
    }

    /// Collects the tools.
    ///
    /// # Panics
    /// When two tools have one name, with the file and line of both.
    #[must_use]
    #[allow(clippy::panic)] // a test has no better way to say it
    #[track_caller]
    pub fn build(self) -> Hosted {
        let Self { builder, caller, clock, approve, answers } = self;
        let asks = !answers.is_empty();
        let answers = Arc::new(Mutex::new(answers));
        let audit = Arc::new(MemoryAudit::new(MAX_RECORDS));
        let builder = builder.audit(audit.clone()).audit_arguments(true).clock(Arc::new(clock.clone()));
        match builder.build() {
            Ok(registry) => {
                Hosted { registry, caller, clock, audit, approve, asks, answers, events: Arc::default() }
            }
            Err(error) => panic!("the tools cannot be collected: {error}"),
        }
    }
}

/// Answers as the person would. What does not fit leaves the question open, as it would for a person.
async fn answer_for(registry: &Registry, user: &str, asked: &PendingQuestion, answer: Value) {
    let only_field = asked.question.fields().next().map(|(name, ..)| name.to_owned());
    let failed = match (answer, only_field) {
        (Value::Null, _) => {
            registry.decline_question(&asked.id, user, None).await.err().map(|error| error.to_string())
        }
        (answer, Some(field)) if !answer.is_object() => {
            let answer = Value::Object([(field, answer)].into_iter().collect());
            registry.answer_question(&asked.id, user, answer).await.err().map(|error| error.to_string())
        }
        (answer, _) => {
            registry.answer_question(&asked.id, user, answer).await.err().map(|error| error.to_string())
        }
    };
    if let Some(cause) = failed {
        tracing::error!(question = asked.question.message, cause, "test_answer_refused");
    }
}

/// A host for tests.
#[derive(Debug)]
pub struct Hosted {
    registry: Registry,
    caller: Caller,
    clock: TestClock,
    audit: Arc<MemoryAudit>,
    approve: bool,
    asks: bool,
    answers: Arc<Mutex<VecDeque<Value>>>,
    events: Arc<Mutex<Vec<ToolEvent>>>,
}

impl Hosted {
    /// Makes a call through the whole path.
    pub async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        self.registry.execute(&self.context(), ToolCall::new(tool, arguments)).await
    }

    /// A context of the caller, with what the host provides, for a tool's function to be called without the path.
    ///
    /// What a tool reports through it is kept only where a registry makes the call.
    pub fn context(&self) -> ToolContext {
        let (registry, events) = (self.registry.clone(), Arc::clone(&self.events));
        let answer = ApprovalAnswer {
            approve: self.approve,
            by: "tester".to_owned(),
            reason: None,
            content: None,
            arguments: None,
        };
        let (answers, user) = (Arc::clone(&self.answers), self.caller.user.clone());
        let context = self.registry.context(self.caller.clone());
        let context = if self.asks { context.with_questions() } else { context };
        context.with_events(Arc::new(move |event: ToolEvent| {
            if let Some(asked) = event.question.clone()
                && let Some(answer) = answers.lock().pop_front()
            {
                let (registry, user) = (registry.clone(), user.clone());
                tokio::spawn(async move { answer_for(&registry, &user, &asked, answer).await });
            }
            if let Some(id) = event.approval.clone() {
                let (registry, answer) = (registry.clone(), answer.clone());
                tokio::spawn(async move { registry.answer_approval(&id, answer).await });
            }
            events.lock().push(event);
        }))
    }

    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.registry.get(name)
    }

    /// Why the caller may not use a tool; `None` where it may, or where there is no such tool.
    pub fn why_not(&self, name: &str) -> Option<String> {
        let tool = self.registry.get(name)?;
        self.registry.why_not(&tool, &self.context()).map(|error| error.message().to_owned())
    }

    /// What the tools have reported, in order: status, progress, questions to a person.
    pub fn events(&self) -> Vec<ToolEvent> {
        self.events.lock().clone()
    }

    /// The words of the events that are no parts.
    pub fn statuses(&self) -> Vec<String> {
        let events = self.events().into_iter().filter(|event| event.part.is_none());
        events.map(|event| event.message).collect()
    }

    /// The parts of results that came as a stream, in order.
    pub fn streamed(&self) -> Vec<Content> {
        self.events().into_iter().filter_map(|event| event.part).collect()
    }

    /// The audit, oldest first, with the arguments.
    pub fn records(&self) -> Vec<AuditRecord> {
        self.audit.records()
    }

    /// Puts the clock forward, as for a limit to be free again.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}
