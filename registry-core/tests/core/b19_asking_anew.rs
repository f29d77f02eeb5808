//! Questions that outlive their process: requirement B19.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use registry_core::{
    Caller, Effect, ErrorKind, Permission, QuestionCallState, Registry, ToolCall, ToolContext, ToolOutcome,
    ToolPolicy, ToolResult, ToolSpec,
    flow::{HasRead, Reads, Sends, TurnFlow},
    guard::{
        approval::{Approval, ApprovalAnswer, ApprovalState, MemoryApprovals},
        audit::MemoryAudit,
        gate::{Gate, GateAnswer, GateError, GateRequest},
        limits::MemoryUsage,
    },
    handler_fn,
    store::{Expected, MemoryStore, StateLimits, StateSpace, StateStore, Store},
    testing::TestClock,
};
use serde_json::{Value, json};

/// What the servers share, and how often the tool has begun and ended.
struct Shared {
    approvals: Arc<MemoryApprovals>,
    state: Arc<MemoryStore>,
    audit: Arc<MemoryAudit>,
    usage: Arc<MemoryUsage>,
    clock: TestClock,
    begun: Arc<AtomicU32>,
    ended: Arc<AtomicU32>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            approvals: Arc::default(),
            state: Arc::default(),
            audit: Arc::new(MemoryAudit::new(64)),
            usage: Arc::default(),
            clock: TestClock::default(),
            begun: Arc::default(),
            ended: Arc::default(),
        }
    }
}

const POLICY: ToolPolicy = ToolPolicy {
    effect: Effect::Write,
    permission: Permission::User,
    resumable: true,
    daily_limit: 1,
    ..ToolPolicy::new()
};

impl Shared {
    /// A server without tools.
    fn empty(&self) -> Registry {
        let builder = Registry::builder().without_compiled().approvals(self.approvals.clone());
        let builder = builder.clock(Arc::new(self.clock.clone()));
        builder.usage(self.usage.clone()).state(self.state.clone()).audit(self.audit.clone()).build().unwrap()
    }

    /// A server whose tool asks twice.
    fn server(&self) -> Registry {
        self.server_with(POLICY, "1.0.0")
    }

    fn server_with(&self, policy: ToolPolicy, version: &str) -> Registry {
        let registry = self.empty();
        self.add_to(&registry, policy, version);
        registry
    }

    fn add_to(&self, registry: &Registry, policy: ToolPolicy, version: &str) {
        let (begun, ended) = (Arc::clone(&self.begun), Arc::clone(&self.ended));
        let handler = handler_fn(move |context: ToolContext, arguments: serde_json::Map<String, Value>| {
            let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                let account = context.ask("Which account?", ["Savings", "Joint"]).await?;
                let name = context.ask_text("Whose?").await?;
                ended.fetch_add(1, Ordering::SeqCst);
                Ok(ToolResult::new(format!("{} from {account} of {name}", arguments["n"])))
            }
        });
        let spec =
            ToolSpec { version: Some(version.into()), ..ToolSpec::new("pay", json!({"type": "object"})) };
        registry.register(spec, policy, Some(handler)).unwrap();
    }

    fn ended(&self) -> u32 {
        self.ended.load(Ordering::SeqCst)
    }

    async fn kept(&self) -> usize {
        self.state.state_keys(&kept_of_ada()).await.unwrap().len()
    }
}

/// Where the calls of `ada` are kept.
fn kept_of_ada() -> StateSpace {
    StateSpace { tenant: "default".to_owned(), user: Some("ada".to_owned()), name: "questions".to_owned() }
}

fn ada(registry: &Registry, level: Permission) -> ToolContext {
    registry.context(Caller::new("ada", level))
}

async fn call(registry: &Registry) -> ToolOutcome {
    call_with(registry, json!(40)).await
}

async fn call_with(registry: &Registry, n: Value) -> ToolOutcome {
    make(registry, ToolCall::new("pay", json!({"n": n}))).await
}

/// The same call by a turn that was interrupted in it.
async fn call_after_interruption(registry: &Registry) -> ToolOutcome {
    make(registry, ToolCall::new("pay", json!({"n": 40})).after_interruption()).await
}

async fn make(registry: &Registry, call: ToolCall) -> ToolOutcome {
    let context = ada(registry, Permission::User).with_questions();
    registry.execute(&context.with_question_wait(Duration::from_secs(600)), call).await
}

async fn question(registry: &Registry, message: &str) -> Approval {
    loop {
        let pending = registry.pending_questions().await.unwrap();
        let found = pending.into_iter().find(|kept| kept.question.as_ref().unwrap().message == message);
        if let Some(found) = found {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn answer(registry: &Registry, question: &Approval, text: &str) -> Approval {
    registry.answer_question(&question.id, "ada", json!({"answer": text})).await.unwrap()
}

/// Makes the call on a server, answers the first question, and kills the server while the second one waits.
async fn killed(registry: Registry) -> Approval {
    killed_after(registry, async |_| {}).await
}

/// The same, with what is done before the first question.
async fn killed_after(registry: Registry, before: impl AsyncFnOnce(&Registry)) -> Approval {
    killed_in(registry, json!(40), before).await
}

async fn killed_in(registry: Registry, n: Value, before: impl AsyncFnOnce(&Registry)) -> Approval {
    let calling = registry.clone();
    let mut calling = Box::pin(async move { call_with(&calling, n).await });
    let asked = {
        let asking = pin!(async {
            before(&registry).await;
            let first = question(&registry, "Which account?").await;
            answer(&registry, &first, "Joint").await;
            question(&registry, "Whose?").await
        });
        tokio::select! {
            outcome = &mut calling => panic!("{outcome:?}"),
            asked = asking => asked,
        }
    };
    // It never goes on, and withdraws nothing.
    std::mem::forget(calling);
    std::mem::forget(registry);
    asked
}

async fn resume(registry: &Registry, question: &Approval) -> Option<ToolOutcome> {
    registry.resume_answered(ada(registry, Permission::User), question).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn b19_a_question_outlives_its_process_and_one_server_goes_on_with_the_answers() {
    let shared = Shared::default();
    let asked = killed(shared.server()).await;
    let (one, two) = (shared.server(), shared.server());
    assert_eq!(one.pending_questions().await.unwrap().len(), 1);
    let waiting = one.call_of_question(&asked).await.unwrap().unwrap();
    assert_eq!((waiting.state, waiting.result), (QuestionCallState::Waiting, None));
    assert!(resume(&one, &asked).await.is_none(), "it has no answer yet");
    let answered = answer(&two, &asked, "Bea").await;
    assert!(
        two.answer_question(&asked.id, "ada", json!({"answer": "Eve"})).await.is_err(),
        "the first counts"
    );
    let (first, second) = tokio::join!(resume(&one, &answered), resume(&two, &answered));
    let made: Vec<ToolOutcome> = first.into_iter().chain(second).collect();
    let [outcome] = &*made else { panic!("{made:?}") };
    // The daily limit of one call holds, and was used by the call that was killed.
    assert_eq!(outcome.for_model(), "40 from Joint of Bea");
    assert_eq!((shared.begun.load(Ordering::SeqCst), shared.ended()), (2, 1));
    let done = one.call_of_question(&answered).await.unwrap().unwrap();
    assert_eq!(done.state, QuestionCallState::Done);
    assert_eq!(done.result.unwrap()["result"], "40 from Joint of Bea");
    let record = shared.audit.records().pop().unwrap();
    let answers: Vec<_> = record.questions.iter().map(|asked| (&*asked.question, asked.outcome)).collect();
    assert_eq!(answers, [("Which account?", "answered"), ("Whose?", "answered")]);
    // The same call gets the result, once.
    assert_eq!(call(&two).await.for_model(), "40 from Joint of Bea");
    assert_eq!((shared.ended(), shared.kept().await), (1, 0));
    assert_eq!(call(&two).await.result.unwrap_err().kind(), ErrorKind::ToolRateLimited);
    // The answers were good for that call.
    for id in [&asked.id, &answered.id] {
        assert_eq!(one.question(id).await.unwrap().unwrap().state, ApprovalState::Withdrawn);
    }
}

/// Allows the call that waits, with other arguments.
async fn change(registry: &Registry) {
    let waiting = loop {
        if let Some(waiting) = registry.pending_approvals().await.unwrap().pop() {
            break waiting;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    let arguments = Some(json!({"n": 7}));
    let answer = ApprovalAnswer { approve: true, by: "boss".into(), reason: None, content: None, arguments };
    registry.answer_approval(&waiting.id, answer).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn b19_b8_a_call_with_changed_arguments_is_made_anew_with_these() {
    const ASKED: ToolPolicy = ToolPolicy { effect: Effect::Destructive, ..POLICY };
    // By whoever has the answer.
    let shared = Shared::default();
    let asked =
        killed_after(shared.server_with(ASKED, "1.0.0"), async |registry| change(registry).await).await;
    let server = shared.server_with(ASKED, "1.0.0");
    let answered = answer(&server, &asked, "Bea").await;
    let outcome = resume(&server, &answered).await.unwrap();
    assert_eq!(outcome.result.unwrap().value, "7 from Joint of Bea");

    // By the same call, which was made with others.
    let shared = Shared::default();
    let asked =
        killed_after(shared.server_with(ASKED, "1.0.0"), async |registry| change(registry).await).await;
    let server = shared.server_with(ASKED, "1.0.0");
    let (outcome, ()) = tokio::join!(call(&server), async {
        while shared.begun.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        answer(&server, &asked, "Bea").await;
    });
    assert_eq!(outcome.changed_arguments, Some(json!({"n": 7})), "the model is told");
    assert_eq!(outcome.result.unwrap().value, "7 from Joint of Bea");
}

#[tokio::test(start_paused = true)]
async fn b19_the_same_call_takes_over_one_that_waits_and_its_answers() {
    let shared = Shared::default();
    let asked = killed(shared.server()).await;
    let server = shared.server();
    let (outcome, ()) = tokio::join!(call(&server), async {
        let again = question(&server, "Whose?").await;
        assert_eq!(again.id, asked.id, "it is asked once");
        while shared.begun.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        answer(&server, &again, "Bea").await;
    });
    assert_eq!(outcome.for_model(), "40 from Joint of Bea");
    assert_eq!((shared.ended(), shared.kept().await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn b19_an_interrupted_call_goes_on_with_what_was_kept_and_is_never_begun_anew() {
    let shared = Shared::default();
    let asked = killed(shared.server()).await;
    let server = shared.server();
    let (outcome, ()) = tokio::join!(call_after_interruption(&server), async {
        while shared.begun.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        answer(&server, &asked, "Bea").await;
    });
    assert_eq!(outcome.for_model(), "40 from Joint of Bea");

    // Where nothing is kept, it may have been made.
    let told = call_after_interruption(&server).await.for_model();
    assert!(told.contains("interrupted, so whether it took effect is not known"), "{told}");
    let reads = shared.server_with(ToolPolicy { effect: Effect::Read, resumable: false, ..POLICY }, "1.0.0");
    let told = call_after_interruption(&reads).await.for_model();
    assert!(told.contains("Make the call again if you need its result"), "{told}");
    assert_eq!((shared.begun.load(Ordering::SeqCst), shared.ended()), (2, 1));

    // Nobody has answered in time, and is asked again only by a call that is made anew.
    let shared = Shared::default();
    let expired = killed(shared.server()).await;
    shared.clock.advance(Duration::from_secs(301));
    let server = shared.server();
    let told = call_after_interruption(&server).await.for_model();
    assert!(told.contains("nobody has answered within 300 s"), "{told}");
    assert_eq!((shared.begun.load(Ordering::SeqCst), shared.kept().await), (1, 0));
    let again = server.pending_questions().await.unwrap();
    assert!(again.iter().all(|asked| asked.id != expired.id), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn b19_a_process_that_lives_goes_on_itself_and_nobody_else_does() {
    let shared = Shared::default();
    let (one, two) = (shared.server(), shared.server());
    let (outcome, made) = tokio::join!(call(&one), async {
        let first = question(&two, "Which account?").await;
        let first = answer(&two, &first, "Joint").await;
        let made = resume(&two, &first).await;
        answer(&two, &question(&two, "Whose?").await, "Bea").await;
        made
    });
    assert_eq!((outcome.for_model().as_str(), made), ("40 from Joint of Bea", None));
    assert_eq!((shared.ended(), shared.kept().await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn b19_a_server_that_ends_leaves_its_questions_and_one_that_stops_a_call_does_not() {
    for leaves in [true, false] {
        let shared = Shared::default();
        let registry = shared.server();
        let calling = registry.clone();
        let called = tokio::spawn(async move { call(&calling).await });
        question(&registry, "Which account?").await;
        if leaves {
            registry.leave_questions();
        }
        called.abort();
        assert!(called.await.unwrap_err().is_cancelled());
        registry.finished().await;
        let left = shared.server().pending_questions().await.unwrap().len();
        assert_eq!((left, shared.kept().await), (usize::from(leaves), usize::from(leaves)));
    }
}

#[tokio::test(start_paused = true)]
async fn b19_what_was_lost_meanwhile_is_not_made_and_is_told() {
    let right = POLICY;
    let admin = ToolPolicy { permission: Permission::Admin, ..right };
    let once = ToolPolicy { resumable: false, ..right };
    for (policy, version, told) in [
        (None, "1.0.0", "invalid tool name"),
        (Some(admin), "1.0.0", "needs the level admin"),
        (Some(right), "2.0.0", "has changed since it asked"),
        (Some(once), "1.0.0", "has changed since it asked"),
    ] {
        let shared = Shared::default();
        let asked = killed(shared.server()).await;
        let server = match policy {
            Some(policy) => shared.server_with(policy, version),
            None => shared.empty(),
        };
        let answered = answer(&server, &asked, "Bea").await;
        let outcome = resume(&server, &answered).await.unwrap();
        let error = outcome.result.unwrap_err();
        assert!(error.message().to_lowercase().contains(told), "{error}");
        let done = server.call_of_question(&answered).await.unwrap().unwrap().result.unwrap();
        assert_eq!((shared.ended(), &done["error"]), (0, &json!(error.message())));
    }
    // Somebody whose rights are fewer now has no more than those.
    let shared = Shared::default();
    let asked = killed(shared.server()).await;
    let server = shared.server();
    let answered = answer(&server, &asked, "Bea").await;
    let guest = ada(&server, Permission::Guest);
    let outcome = server.resume_answered(guest, &answered).await.unwrap().unwrap();
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(shared.ended(), 0);
}

#[tokio::test(start_paused = true)]
async fn b19_what_was_kept_of_a_waiting_call_goes_with_its_user_and_with_time() {
    let shared = Shared::default();
    let asked = killed(shared.server()).await;
    let server = shared.server();
    let answered = answer(&server, &asked, "Bea").await;
    shared.state.remove_user("default", "ada", Timestamp::UNIX_EPOCH).await.unwrap();
    assert!(resume(&server, &answered).await.is_none());
    assert_eq!(server.call_of_question(&answered).await.unwrap(), None);
    // Another user's question is nobody else's.
    let shared = Shared::default();
    let asked = killed(shared.server()).await;
    let answered = answer(&shared.server(), &asked, "Bea").await;
    let server = shared.server();
    let bob = server.context(Caller::new("bob", Permission::Owner));
    assert!(server.resume_answered(bob, &answered).await.unwrap().is_none());
    assert_eq!(shared.ended(), 0);
}

#[tokio::test(start_paused = true)]
async fn b19_a_tool_without_the_attribute_is_not_kept() {
    let shared = Shared::default();
    let asked = killed(shared.server_with(ToolPolicy { resumable: false, ..POLICY }, "1.0.0")).await;
    assert_eq!((asked.call.as_deref(), shared.kept().await), (None, 0));
    let server = shared.server();
    let answered = answer(&server, &asked, "Bea").await;
    assert!(resume(&server, &answered).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn b19_of_a_user_so_many_waiting_calls_are_kept_and_one_more_waits_all_the_same() {
    let shared = Shared::default();
    let first = killed(shared.server()).await;
    let space = kept_of_ada();
    let key = shared.state.state_keys(&space).await.unwrap().remove(0);
    let kept = shared.state.state(&space, &key).await.unwrap();
    for number in 1..64 {
        let (key, limits) = (format!("{key}{number}"), StateLimits { max_keys: 64, ..StateLimits::DEFAULT });
        shared.state.put_state(&space, &key, kept.as_deref(), Expected::Anything, &limits).await.unwrap();
    }
    let server = shared.server_with(ToolPolicy { daily_limit: 0, ..POLICY }, "1.0.0");
    let (outcome, ()) = tokio::join!(call_with(&server, json!(7)), async {
        answer(&server, &question(&server, "Which account?").await, "Savings").await;
        assert_eq!(shared.kept().await, 64);
        let last = loop {
            let mut pending = server.pending_questions().await.unwrap();
            pending.retain(|asked| asked.id != first.id);
            if let Some(last) = pending.pop() {
                break last;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        answer(&server, &last, "Bea").await;
    });
    assert_eq!(outcome.for_model(), "7 from Savings of Bea");
}

#[tokio::test(start_paused = true)]
async fn b19_of_a_call_that_waits_so_much_is_kept_and_its_result_for_an_hour() {
    // Its arguments are too long to be kept.
    let shared = Shared::default();
    killed_in(shared.server(), json!("x".repeat(600 << 10)), async |_| {}).await;
    assert_eq!(shared.kept().await, 0);
    // They are not, and with the result they are.
    let shared = Shared::default();
    let asked = killed_in(shared.server(), json!("x".repeat(300 << 10)), async |_| {}).await;
    let server = shared.server();
    let answered = answer(&server, &asked, "Bea").await;
    assert!(resume(&server, &answered).await.unwrap().is_success());
    let done = server.call_of_question(&answered).await.unwrap().unwrap();
    let error = done.result.unwrap()["error"].to_string();
    assert!(error.contains("pay was done") && error.contains("more than is kept"), "{error}");

    let shared = Shared::default();
    let asked = killed(shared.server()).await;
    let server = shared.server();
    let answered = answer(&server, &asked, "Bea").await;
    resume(&server, &answered).await.unwrap();
    let now = server.clock().now();
    for (seconds, is_there) in [(3500, true), (3601, false)] {
        let clock = TestClock::at(now);
        clock.advance(Duration::from_secs(seconds));
        let builder = Registry::builder().without_compiled().clock(Arc::new(clock));
        let later = builder.approvals(shared.approvals.clone()).state(shared.state.clone()).build().unwrap();
        assert_eq!(later.call_of_question(&answered).await.unwrap().is_some(), is_there, "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn b19_an_answer_that_is_too_long_is_refused_and_the_question_stays() {
    let shared = Shared::default();
    let asked = killed(shared.server()).await;
    let server = shared.server();
    let long = json!({"answer": "x".repeat(64 << 10)});
    let error = server.answer_question(&asked.id, "ada", long).await.unwrap_err();
    assert!(error.to_string().contains("more than the 65536 bytes"), "{error}");
    answer(&server, &asked, "Bea").await;
}

/// A policy of a tool that stays here and says nothing of anybody.
const QUIET: ToolPolicy =
    ToolPolicy { effect: Effect::Read, reads: Some(Reads::NOTHING), sends: Some(Sends::Nothing), ..POLICY };

/// A server whose tool asks, and then sends something outside by another one.
fn sending(shared: &Shared) -> Registry {
    let registry = shared.empty();
    let handler = handler_fn(|context: ToolContext, _| async move {
        context.ask("Which account?", ["Savings", "Joint"]).await?;
        let context = context.clone().with_approval_wait(Duration::ZERO);
        let sent = context.call("send", json!({"text": "secret"})).await;
        Ok(ToolResult::new(
            sent.map_or_else(|error| error.message().to_owned(), |sent| sent.value.to_string()),
        ))
    });
    let spec = |name: &str| ToolSpec::new(name, json!({"type": "object"}));
    registry.register(spec("pay"), QUIET, Some(handler)).unwrap();
    let outside = ToolPolicy { sends: Some(Sends::Outside), resumable: false, ..QUIET };
    let sent = handler_fn(async |_: ToolContext, _| Ok(ToolResult::new("sent")));
    registry.register(spec("send"), outside, Some(sent)).unwrap();
    registry
}

fn after(reads: Reads) -> TurnFlow {
    let mut read = HasRead::default();
    read.note(reads, "mailbox");
    TurnFlow::after(read)
}

/// Makes a call in a turn that has read this, and kills the server while its first question waits.
async fn killed_after_reading(registry: Registry, reads: Reads) -> Approval {
    let calling = registry.clone();
    let mut calling = Box::pin(async move {
        let context = ada(&calling, Permission::User).with_questions().with_flow(after(reads));
        let context = context.with_question_wait(Duration::from_secs(600));
        calling.execute(&context, ToolCall::new("pay", json!({"n": 40}))).await
    });
    let asked = tokio::select! {
        outcome = &mut calling => panic!("{outcome:?}"),
        asked = question(&registry, "Which account?") => asked,
    };
    std::mem::forget(calling);
    std::mem::forget(registry);
    asked
}

#[tokio::test(start_paused = true)]
async fn b20_a_call_that_is_made_anew_stands_where_its_turn_stood() {
    for (reads, told) in [(Reads::PRIVATE, "waits for a person"), (Reads::NOTHING, "sent")] {
        // By whoever has the answer.
        let shared = Shared::default();
        let asked = killed_after_reading(sending(&shared), reads).await;
        let server = sending(&shared);
        let answered = answer(&server, &asked, "Joint").await;
        let outcome = resume(&server, &answered).await.unwrap();
        assert!(outcome.for_model().contains(told), "{reads:?}: {}", outcome.for_model());
        let records = shared.audit.records();
        let pay = records.iter().rev().find(|record| record.tool == "pay").unwrap();
        assert_eq!(pay.has_read.reads(), reads);

        // By the same call, in a turn of which nothing is known.
        let shared = Shared::default();
        let asked = killed_after_reading(sending(&shared), reads).await;
        let server = sending(&shared);
        answer(&server, &asked, "Joint").await;
        let outcome = call(&server).await;
        assert!(outcome.for_model().contains(told), "{reads:?}: {}", outcome.for_model());
    }
}

#[tokio::test(start_paused = true)]
async fn b20_what_an_earlier_version_kept_of_a_waiting_call_may_have_read_anything() {
    let shared = Shared::default();
    let asked = killed_after_reading(sending(&shared), Reads::NOTHING).await;
    let key = shared.state.state_keys(&kept_of_ada()).await.unwrap().remove(0);
    let text = shared.state.state(&kept_of_ada(), &key).await.unwrap().unwrap();
    let mut kept: Value = serde_json::from_str(&text).unwrap();
    assert!(kept.as_object_mut().unwrap().remove("flow").is_some());
    let limits = StateLimits::DEFAULT;
    let text = kept.to_string();
    shared.state.put_state(&kept_of_ada(), &key, Some(&text), Expected::Anything, &limits).await.unwrap();
    let server = sending(&shared);
    let answered = answer(&server, &asked, "Joint").await;
    let outcome = resume(&server, &answered).await.unwrap();
    assert!(outcome.for_model().contains("waits for a person"), "{}", outcome.for_model());
}

#[tokio::test(start_paused = true)]
async fn b20_a_call_that_goes_on_in_a_turn_that_has_read_more_is_asked_about() {
    const ACTS: ToolPolicy = ToolPolicy { effect: Effect::Write, ..QUIET };
    for (before, now, is_asked) in
        [(Reads::NOTHING, Reads::UNTRUSTED, true), (Reads::NOTHING, Reads::PRIVATE, false)]
    {
        let shared = Shared::default();
        let asked = killed_after_reading(shared.server_with(ACTS, "1.0.0"), before).await;
        let server = shared.server_with(ACTS, "1.0.0");
        answer(&server, &asked, "Joint").await;
        let context = ada(&server, Permission::User).with_questions().with_flow(after(now));
        let context = context.with_question_wait(Duration::from_secs(1)).with_approval_wait(Duration::ZERO);
        let outcome = server.execute(&context, ToolCall::new("pay", json!({"n": 40}))).await;
        let kind = outcome.result.unwrap_err().kind();
        let expected = if is_asked { ErrorKind::ApprovalPending } else { ErrorKind::AnswerPending };
        assert_eq!(kind, expected, "{before:?} {now:?}");
    }
}

/// A gate that may come to ask for a person.
struct Says(fn() -> GateAnswer);

#[async_trait]
impl Gate for Says {
    fn name(&self) -> &str {
        "rules of the house"
    }

    async fn check(&self, _: GateRequest<'_>) -> Result<GateAnswer, GateError> {
        async { Ok((self.0)()) }.await
    }
}

#[tokio::test(start_paused = true)]
async fn b19_a_gate_that_asks_for_a_person_only_when_a_call_goes_on_gets_one() {
    const GATED: ToolPolicy = ToolPolicy { requires_gate: true, ..POLICY };
    let shared = Shared::default();
    let server = |says: fn() -> GateAnswer| {
        let builder = Registry::builder().without_compiled().approvals(shared.approvals.clone());
        let builder = builder.clock(Arc::new(shared.clock.clone())).gate(Arc::new(Says(says)));
        let builder = builder.usage(shared.usage.clone()).state(shared.state.clone());
        let registry = builder.audit(shared.audit.clone()).build().unwrap();
        shared.add_to(&registry, GATED, "1.0.0");
        registry
    };
    let asked = killed(server(|| GateAnswer::Approved)).await;
    let later = server(|| GateAnswer::Pending);
    let answered = answer(&later, &asked, "Bea").await;
    let (outcome, ()) = tokio::join!(resume(&later, &answered), async {
        let waiting = loop {
            if let Some(waiting) = later.pending_approvals().await.unwrap().pop() {
                break waiting;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let no =
            ApprovalAnswer { approve: false, by: "ada".into(), reason: None, content: None, arguments: None };
        later.answer_approval(&waiting.id, no).await.unwrap();
    });
    assert!(!outcome.unwrap().is_success());
    assert_eq!((shared.begun.load(Ordering::SeqCst), shared.ended()), (1, 0));
}
