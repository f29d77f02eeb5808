//! Tools that ask the person in the middle: requirement B19.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use registry_core::{
    AskError, Caller, Effect, ErrorKind, Permission, QuestionError, Registry, ToolCall, ToolContext,
    ToolError, ToolEvent, ToolPolicy, ToolResult, ToolSpec,
    flow::Reads,
    guard::{
        approval::{ApprovalAnswer, ApprovalState, Approvals, MemoryApprovals},
        audit::MemoryAudit,
    },
    handler_fn,
    model::{LanguageModel, Model, ModelAnswer, ModelQuestion, ModelUsage},
    prelude::{Deserialize, JsonSchema},
    testing::{Hosted, TestHost},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Adds a tool `act`, which does what the closure says.
fn add<F, Fut>(registry: &Registry, policy: ToolPolicy, act: F)
where
    F: Fn(ToolContext) -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    let handler = handler_fn(move |context, _| act.clone()(context));
    registry.register(ToolSpec::new("act", json!({"type": "object"})), policy, Some(handler)).unwrap();
}

async fn which(context: ToolContext) -> Result<ToolResult, ToolError> {
    Ok(ToolResult::new(context.ask("Which account?", ["Savings", "Joint"]).await?))
}

fn host<F, Fut>(answers: impl IntoIterator<Item = Value>, act: F) -> Hosted
where
    F: Fn(ToolContext) -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    let host = TestHost::new().answering(answers).build();
    add(host.registry(), ToolPolicy { timeout: Duration::from_secs(10), ..ToolPolicy::new() }, act);
    host
}

fn ada(registry: &Registry) -> ToolContext {
    registry.context(Caller::new("ada", Permission::User)).with_questions()
}

async fn call(registry: &Registry, context: &ToolContext) -> Result<Value, ToolError> {
    let outcome = registry.execute(context, ToolCall::new("act", json!({"n": 1}))).await;
    outcome.result.map(|result| result.value)
}

/// Waits until there are questions.
async fn questions(registry: &Registry) -> Vec<registry_core::guard::approval::Approval> {
    loop {
        let pending = registry.pending_questions().await.unwrap();
        if !pending.is_empty() {
            return pending;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Transfer {
    /// How much, in EUR.
    amount: u32,
    #[schemars(extend("writeOnly" = true))]
    pin: String,
    note: Option<String>,
}

#[tokio::test]
async fn b19_a_tool_asks_in_the_middle_and_goes_on_with_the_answers() {
    let host = host([json!("Joint"), json!({"amount": "40", "pin": "1234"})], async |context| {
        let account = context.ask("Which account?", ["Savings", "Joint"]).await?;
        let Transfer { amount, pin, note } = context.ask_for("How much?").await?;
        assert_eq!((&*pin, note), ("1234", None));
        Ok(ToolResult::new(format!("{amount} to {account}")))
    });
    assert_eq!(host.call("act", json!({})).await.for_model(), "40 to Joint");
    let asked: Vec<_> = host.events().into_iter().filter_map(|event| event.question).collect();
    assert_eq!(asked[0].question.choices(), ["Savings", "Joint"]);
    assert_eq!((asked[1].seconds, asked[1].question.has_secret()), (300, true));
    let records = host.records();
    let outcome = serde_json::to_value(records.last().unwrap()).unwrap();
    assert_eq!(
        outcome["questions"][0],
        json!({
            "question": "Which account?", "outcome": "answered", "by": "tester", "answer": {"answer": "Joint"},
        })
    );
    assert_eq!(outcome["questions"][1]["answer"], json!({"amount": 40, "pin": "(secret)"}));
    assert!(host.registry().pending_questions().await.unwrap().is_empty());
}

#[tokio::test]
async fn b20_what_a_person_has_written_for_a_tool_is_private() {
    let reads = async |answer: Value, asks_for_text: bool| {
        let host = TestHost::new().answering([answer]).build();
        let policy = ToolPolicy { reads: Some(Reads::NOTHING), ..ToolPolicy::new() };
        add(host.registry(), policy, move |context: ToolContext| async move {
            let said = match asks_for_text {
                true => context.ask_text("Which IBAN?").await?,
                false => context.ask("Which account?", ["Joint"]).await?,
            };
            Ok(ToolResult::new(said))
        });
        host.call("act", json!({})).await.reads
    };
    assert_eq!(reads(json!("DE11"), true).await, Reads::PRIVATE);
    assert_eq!(reads(json!("Joint"), false).await, Reads::NOTHING);
}

#[tokio::test]
async fn b19_who_declines_gives_the_tool_an_error_that_it_can_handle() {
    let host = host([Value::Null], async |context| match context.ask_text("Why?").await {
        Err(AskError::Declined { reason: None }) => Ok(ToolResult::new("without")),
        other => panic!("{other:?}"),
    });
    assert_eq!(host.call("act", json!({})).await.for_model(), "without");
}

#[tokio::test(start_paused = true)]
async fn b19_the_time_of_the_tool_stands_while_the_person_thinks_and_the_question_has_its_own() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let policy = ToolPolicy { timeout: Duration::from_secs(10), max_concurrent: 1, ..ToolPolicy::new() };
    add(&registry, policy, async |context| {
        tokio::time::sleep(Duration::from_secs(6)).await;
        let answer = context.ask("Which account?", ["Savings", "Joint"]).await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        if answer == "Joint" {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        Ok(ToolResult::new(answer))
    });
    for (answer, result) in [("Savings", Ok(())), ("Joint", Err(ErrorKind::Timeout))] {
        let (context, calling) = (ada(&registry), registry.clone());
        let called = tokio::spawn(async move { call(&calling, &context).await });
        let asked = questions(&registry).await.remove(0);
        // Its permit is free meanwhile.
        assert_eq!(registry.queues().all.running, 0);
        tokio::time::sleep(Duration::from_secs(200)).await;
        registry.answer_question(&asked.id, "ada", json!({"answer": answer})).await.unwrap();
        assert_eq!(called.await.unwrap().map(drop).map_err(|error| error.kind()), result);
    }
    let started = tokio::time::Instant::now();
    let error = call(&registry, &ada(&registry)).await.unwrap_err();
    assert_eq!(error.message(), "nobody has answered within 300 s");
    assert!((305..=306).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    // The question is withdrawn in the background.
    registry.finished().await;
    assert!(registry.pending_questions().await.unwrap().is_empty());
}

#[tokio::test]
async fn b19_a_stopped_call_withdraws_its_question() {
    let approvals = Arc::new(MemoryApprovals::default());
    let registry = Registry::builder().without_compiled().approvals(approvals.clone()).build().unwrap();
    add(&registry, ToolPolicy::new(), which);
    let (context, calling) = (ada(&registry), registry.clone());
    let called = tokio::spawn(async move { call(&calling, &context).await });
    let asked = questions(&registry).await.remove(0);
    called.abort();
    assert!(called.await.unwrap_err().is_cancelled());
    registry.finished().await;
    let kept = approvals.get("default", &asked.id).await.unwrap().unwrap();
    assert_eq!(kept.state, ApprovalState::Withdrawn);
    let late = registry.answer_question(&asked.id, "ada", json!({"answer": "Joint"})).await;
    assert!(matches!(late, Err(QuestionError::Answer(_))), "{late:?}");
}

#[tokio::test]
async fn b19_a_call_that_is_stopped_says_so_where_it_waited_for_an_answer() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    add(&registry, ToolPolicy { effect: Effect::Write, ..ToolPolicy::new() }, async |context| {
        // A tool that goes on without an answer.
        let account = context.ask("Which account?", ["Savings", "Joint"]).await.unwrap_or_default();
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(ToolResult::new(account))
    });
    for answers in [false, true] {
        let stop = CancellationToken::new();
        let (context, calling) = (ada(&registry).with_cancellation(stop.clone()), registry.clone());
        let called = tokio::spawn(async move { call(&calling, &context).await });
        let asked = questions(&registry).await.remove(0);
        if answers {
            registry.answer_question(&asked.id, "ada", json!({"answer": "Joint"})).await.unwrap();
            // Its answer is kept until it is over, so nothing else shows that it goes on.
            while registry.queues().all.running == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stop.cancel();
        let error = called.await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.was_asking()), (ErrorKind::Cancelled, !answers));
        let told = "stopped while it waited for the user's answer to: Which account? — It has done nothing after that question. Made again, it asks again";
        assert_eq!(error.feedback().contains(told), !answers, "{}", error.feedback());
        assert!(registry.pending_questions().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn b19_what_does_not_fit_leaves_the_question_open_and_says_why() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    add(&registry, ToolPolicy::new(), which);
    let (context, calling) = (ada(&registry), registry.clone());
    let called = tokio::spawn(async move { call(&calling, &context).await });
    let asked = questions(&registry).await.remove(0);
    let wrong = registry.answer_question(&asked.id, "ada", json!({"answer": "Jont"})).await.unwrap_err();
    let expected = r#"the answer does not fit: `answer`: "Jont" is not one of "Savings" or "Joint"; did you mean "Joint"?"#;
    assert_eq!(wrong.to_string(), expected);
    assert!(registry.answer_question("none", "ada", json!({})).await.is_err());
    // A yes is no answer, and an approval is no question.
    assert!(registry.approval(&asked.id).await.unwrap().is_none());
    assert!(registry.pending_approvals().await.unwrap().is_empty());
    registry.answer_question(&asked.id, "ada", json!({"answer": "Joint"})).await.unwrap();
    assert_eq!(called.await.unwrap().unwrap(), "Joint");
}

#[tokio::test]
async fn b19_where_nobody_can_be_asked_the_tool_fails_at_once_and_says_where_it_works() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    add(&registry, ToolPolicy::new(), which);
    let alone = registry.context(Caller::new("ada", Permission::User));
    let error = call(&registry, &alone).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("nobody can be asked here: call it in a chat"), "{error}");
    assert!(registry.pending_questions().await.unwrap().is_empty());
    assert!(matches!(ToolContext::default().ask_text("Why?").await, Err(AskError::Nobody(_))));
}

#[tokio::test]
async fn b19_the_number_and_size_of_questions_are_bounded() {
    let answers = vec![json!("a"); 9];
    let host = host(answers, async |context| {
        let long = context.ask_text("x".repeat(2001)).await;
        let none = context.ask("Which?", [""; 0]).await;
        let many = context.ask("Which?", (0..33).map(|number| number.to_string())).await;
        let huge = context.ask("Which?", ["x".repeat(17 << 10)]).await;
        for refused in [long, none, many, huge] {
            assert!(matches!(refused, Err(AskError::Invalid(_))), "{refused:?}");
        }
        for _ in 0..8 {
            context.ask_text("Why?").await?;
        }
        Ok(ToolResult::new(context.ask_text("Why?").await.unwrap_err().to_string()))
    });
    let said = host.call("act", json!({})).await.for_model();
    assert_eq!(said, "the question cannot be asked: a call asks 8 questions at most");
}

#[tokio::test]
async fn b19_a_later_request_answers_and_the_same_call_finds_the_answers() {
    let approvals = Arc::new(MemoryApprovals::default());
    let begin = || Registry::builder().without_compiled().approvals(approvals.clone()).build().unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let act = {
        let runs = Arc::clone(&runs);
        move |context: ToolContext| {
            let runs = Arc::clone(&runs);
            async move {
                runs.fetch_add(1, Ordering::SeqCst);
                let account = context.ask("Which account?", ["Savings", "Joint"]).await?;
                let name = context.ask_text("Whose?").await?;
                Ok(ToolResult::new(format!("{account} of {name}")))
            }
        }
    };
    let registry = begin();
    add(&registry, ToolPolicy::new(), act.clone());
    let hasty = |registry: &Registry, text: &str| {
        ada(registry).with_approval_wait(Duration::ZERO).with_reply(text, registry.clock().now())
    };
    let error = call(&registry, &hasty(&registry, "2")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AnswerPending);
    assert!(error.feedback().contains("Which account? 1. Savings 2. Joint"), "{}", error.feedback());
    let first = error.question().unwrap().to_owned();
    // In the same request the person has not answered yet: the words are those from before.
    let earlier =
        ada(&registry).with_approval_wait(Duration::ZERO).with_reply("2", jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(call(&registry, &earlier).await.unwrap_err().question(), Some(&*first));
    // What is no answer leaves it open, and so does another person's.
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(call(&registry, &hasty(&registry, "why?")).await.unwrap_err().question(), Some(&*first));
    let bob = registry.context(Caller::new("bob", Permission::User)).with_questions();
    let bob = bob.with_approval_wait(Duration::ZERO).with_reply("2", registry.clock().now());
    assert_ne!(call(&registry, &bob).await.unwrap_err().question(), Some(&*first));
    let second = call(&registry, &hasty(&registry, "2")).await.unwrap_err();
    assert!(second.feedback().contains("Whose?"), "{}", second.feedback());
    // Also after a restart, with the same store.
    let registry = begin();
    add(&registry, ToolPolicy::new(), act);
    registry.answer_question(second.question().unwrap(), "ada", json!({"answer": "Bea"})).await.unwrap();
    assert_eq!(call(&registry, &hasty(&registry, "done")).await.unwrap(), "Joint of Bea");
    assert_eq!(runs.load(Ordering::SeqCst), 6);
    // The answers were good for that call.
    let again = call(&registry, &hasty(&registry, "done")).await.unwrap_err();
    assert!(again.feedback().contains("Which account?") && again.question() != Some(&*first));
}

#[tokio::test]
async fn b19_a_tool_that_cannot_be_made_again_is_not_left_half_way() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let policy = ToolPolicy { effect: Effect::Write, permission: Permission::User, ..ToolPolicy::new() };
    add(&registry, policy, which);
    let hasty = ada(&registry).with_approval_wait(Duration::ZERO);
    let error = call(&registry, &hasty).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("approval_wait_seconds"), "{error}");
    // Nor is one within it.
    let outer = handler_fn(async |context: ToolContext, _| context.call("inner", json!({})).await);
    let inner = handler_fn(async |context: ToolContext, _| which(context).await);
    let spec = |name: &str| ToolSpec::new(name, json!({"type": "object"}));
    registry.register(spec("inner"), ToolPolicy::new(), Some(inner)).unwrap();
    registry.register(spec("outer"), policy, Some(outer)).unwrap();
    for (name, kind) in [("outer", ErrorKind::Unavailable), ("inner", ErrorKind::AnswerPending)] {
        let outcome = registry.execute(&hasty, ToolCall::new(name, json!({}))).await;
        assert_eq!(outcome.result.unwrap_err().kind(), kind, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn b19_a_retry_of_a_call_does_not_ask_again_and_what_was_asked_is_in_the_audit() {
    let audit = Arc::new(MemoryAudit::new(64));
    let registry = Registry::builder().without_compiled().audit(audit.clone()).build().unwrap();
    let tries = Arc::new(AtomicU32::new(0));
    add(&registry, ToolPolicy::new(), move |context: ToolContext| {
        let tries = Arc::clone(&tries);
        async move {
            let answer = context.ask_text("Why?").await?;
            match tries.fetch_add(1, Ordering::SeqCst) {
                0 => Err(ToolError::failed("once").retryable()),
                _ => Ok(ToolResult::new(answer)),
            }
        }
    });
    let asked = Arc::new(Mutex::new(0));
    let (answering, count) = (registry.clone(), Arc::clone(&asked));
    let context = ada(&registry).with_events(Arc::new(move |event: ToolEvent| {
        let Some(question) = event.question else { return };
        *count.lock().unwrap() += 1;
        let registry = answering.clone();
        tokio::spawn(
            async move { registry.answer_question(&question.id, "ada", json!({"answer": "So."})).await },
        );
    }));
    let wanted = ToolCall::new("act", json!({})).with_retries(1);
    assert_eq!(registry.execute(&context, wanted).await.for_model(), "So.");
    assert_eq!(*asked.lock().unwrap(), 1);
    let noted: Vec<_> = audit.records().iter().map(|record| record.questions.len()).collect();
    assert_eq!(noted, [0, 1, 0, 1]);
    let record = audit.records().pop().unwrap();
    assert_eq!((record.questions[0].outcome, record.questions[0].answer.clone()), ("answered", None));
}

#[tokio::test]
async fn b19_a_call_that_comes_back_for_an_answer_counts_once_and_stays_approved() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let policy = ToolPolicy {
        effect: Effect::Destructive,
        permission: Permission::User,
        resumable: true,
        daily_limit: 1,
        ..ToolPolicy::new()
    };
    add(&registry, policy, which);
    let hasty = ada(&registry).with_approval_wait(Duration::ZERO);
    let error = call(&registry, &hasty).await.unwrap_err();
    let approval = error.approval().unwrap().to_owned();
    let yes =
        ApprovalAnswer { approve: true, by: "ada".into(), reason: None, content: None, arguments: None };
    registry.answer_approval(&approval, yes).await.unwrap();
    for _ in 0..2 {
        let error = call(&registry, &hasty).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AnswerPending, "{error}");
    }
    let asked = questions(&registry).await.remove(0);
    registry.answer_question(&asked.id, "ada", json!({"answer": "Joint"})).await.unwrap();
    assert_eq!(call(&registry, &hasty).await.unwrap(), "Joint");
    // Now it has counted, and the yes is used.
    assert_eq!(call(&registry, &hasty).await.unwrap_err().kind(), ErrorKind::ToolRateLimited);
}

#[tokio::test]
async fn b19_who_declines_in_a_later_request_is_not_asked_again_by_the_same_call() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    add(&registry, ToolPolicy::new(), which);
    let hasty = ada(&registry).with_approval_wait(Duration::ZERO);
    let error = call(&registry, &hasty).await.unwrap_err();
    registry.decline_question(error.question().unwrap(), "ada", Some("not now".into())).await.unwrap();
    let error = call(&registry, &hasty).await.unwrap_err();
    assert_eq!(error.message(), "the person has declined to answer: not now");
    // The next one is another call.
    assert_eq!(call(&registry, &hasty).await.unwrap_err().kind(), ErrorKind::AnswerPending);
}

struct Oracle;

#[async_trait]
impl LanguageModel for Oracle {
    async fn answer(&self, question: ModelQuestion) -> Result<ModelAnswer, ToolError> {
        match question.prompt.as_str() {
            "fail" => Err(ToolError::failed("no").retryable()),
            _ => Ok(ModelAnswer { text: "yes".into(), input_tokens: 10, output_tokens: 1, truncated: false }),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b19_what_a_call_asks_the_model_is_counted_with_its_inner_calls_in_outcome_and_audit() {
    let audit = Arc::new(MemoryAudit::new(64));
    let builder = Registry::builder().without_compiled().audit(audit.clone()).resource(Model::new(Oracle));
    let registry = builder.build().unwrap();
    let inner =
        handler_fn(async |context: ToolContext, _| Ok(ToolResult::new(context.model()?.ask("inner").await?)));
    registry
        .register(ToolSpec::new("inner", json!({"type": "object"})), ToolPolicy::new(), Some(inner))
        .unwrap();
    let tries = Arc::new(AtomicU32::new(0));
    add(&registry, ToolPolicy::new(), move |context: ToolContext| {
        let tries = Arc::clone(&tries);
        async move {
            context.model()?.ask("outer").await?;
            if tries.fetch_add(1, Ordering::SeqCst) == 0 {
                context.model()?.ask("fail").await?;
            }
            context.call("inner", json!({})).await
        }
    });
    let call = ToolCall::new("act", json!({})).with_retries(1);
    let outcome = registry.execute(&ada(&registry), call).await;
    let usage = |answers: u32| {
        let (input_tokens, output_tokens) = (u64::from(answers) * 10, u64::from(answers));
        Some(ModelUsage { answers, input_tokens, output_tokens })
    };
    assert_eq!(Some(outcome.model_usage), usage(3), "{outcome:?}");
    let noted: Vec<_> =
        audit.records().iter().map(|record| (record.tool.clone(), record.model_usage)).collect();
    let (act, inner) = ("act".to_owned(), "inner".to_owned());
    assert_eq!(
        noted,
        [
            (act.clone(), None),
            (act.clone(), usage(1)),
            (act.clone(), None),
            (inner.clone(), None),
            (inner, usage(1)),
            (act, usage(2)),
        ]
    );
    assert_eq!(outcome.to_reply().model_usage, usage(3));
}
