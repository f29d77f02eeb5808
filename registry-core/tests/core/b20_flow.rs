//! What the calls of a turn have read, and what becomes of a call that would send it out, or act after it: requirement B20.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use registry_core::{
    Caller, Effect, ErrorKind, Permission, Registry, RegistryBuilder, ToolCall, ToolContext, ToolEvent,
    ToolOutcome, ToolPolicy, ToolResult, ToolSpec,
    flow::{FlowRule, FlowRules, HasRead, Reads, Sends, TurnFlow},
    guard::{approval::ApprovalAnswer, audit::MemoryAudit, gate::Verdict},
    handler_fn,
};
use serde_json::{Value, json};

const PRIVATE: &str = "mailbox";
const UNTRUSTED: &str = "web";

fn policy(effect: Effect, reads: Reads, sends: Sends) -> ToolPolicy {
    ToolPolicy { effect, reads: Some(reads), sends: Some(sends), ..ToolPolicy::new() }
}

struct Site {
    registry: Registry,
    ran: Arc<AtomicU32>,
    audit: Arc<MemoryAudit>,
}

impl Site {
    fn new(rules: FlowRules) -> Self {
        Self::of(Registry::builder().flow(rules).approve_destructive(false))
    }

    fn of(builder: RegistryBuilder) -> Self {
        let audit = Arc::new(MemoryAudit::new(64));
        let registry = builder.without_compiled().audit(audit.clone()).build().unwrap();
        Self { registry, ran: Arc::default(), audit }
    }

    fn add(&self, name: &str, policy: ToolPolicy) {
        let ran = Arc::clone(&self.ran);
        let handler = handler_fn(move |_, _| {
            let ran = Arc::clone(&ran);
            async move { Ok(ToolResult::new(ran.fetch_add(1, Ordering::SeqCst) + 1)) }
        });
        let schema =
            json!({"type": "object", "properties": {"to": {}, "text": {}, "key": {"writeOnly": true}}});
        self.registry.register(ToolSpec::new(name, schema), policy, Some(handler)).unwrap();
    }

    fn context(&self, reads: Reads, said: &str) -> ToolContext {
        let mut read = HasRead::default();
        read.note(Reads { private: reads.private, untrusted: false }, PRIVATE);
        read.note(Reads { private: false, untrusted: reads.untrusted }, UNTRUSTED);
        let caller = Caller::new("ada", Permission::User);
        let flow = TurnFlow { read, said: said.into() };
        self.registry.context(caller).with_flow(flow).with_approval_wait(Duration::ZERO)
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutcome {
        self.registry.execute(context, ToolCall::new("act", arguments)).await
    }
}

/// `asked`, `refused` or `ran`.
fn fate(outcome: &ToolOutcome) -> &'static str {
    match &outcome.result {
        Err(error) if error.kind() == ErrorKind::ApprovalPending => "asked",
        Ok(result) if !result.success => "refused",
        Ok(_) => "ran",
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn b20_what_was_read_and_what_a_call_does_decide_whether_it_is_asked_about() {
    use Effect::{Destructive, Read, Write};
    let (nothing, private, untrusted, both) = (Reads::NOTHING, Reads::PRIVATE, Reads::UNTRUSTED, Reads::BOTH);
    for (read, effect, sends, fated) in [
        (nothing, Destructive, Sends::Outside, "ran"),
        (private, Read, Sends::Nothing, "ran"),
        (private, Write, Sends::Nothing, "ran"),
        (private, Destructive, Sends::Nothing, "ran"),
        (private, Read, Sends::Outside, "asked"),
        (private, Write, Sends::Outside, "asked"),
        (untrusted, Read, Sends::Nothing, "ran"),
        (untrusted, Read, Sends::Outside, "ran"),
        (untrusted, Write, Sends::Nothing, "asked"),
        (untrusted, Destructive, Sends::Nothing, "asked"),
        (untrusted, Write, Sends::Outside, "asked"),
        (both, Read, Sends::Nothing, "ran"),
        (both, Read, Sends::Outside, "asked"),
        (both, Write, Sends::Nothing, "asked"),
    ] {
        let site = Site::new(FlowRules::default());
        site.add("act", policy(effect, Reads::NOTHING, sends));
        let outcome = site.call(&site.context(read, ""), json!({"text": "secret"})).await;
        assert_eq!(fate(&outcome), fated, "{read:?} {effect:?} {sends:?}");
        assert_eq!(site.ran.load(Ordering::SeqCst), u32::from(fated == "ran"));
    }
}

#[tokio::test]
async fn b20_each_pair_can_be_asked_about_refused_or_allowed() {
    let rules = |private_outside, untrusted_acting| FlowRules { private_outside, untrusted_acting };
    let (ask, refuse, allow) = (FlowRule::Ask, FlowRule::Refuse, FlowRule::Allow);
    for (rules, private, untrusted, both) in [
        (rules(ask, ask), "asked", "asked", "asked"),
        (rules(refuse, ask), "refused", "asked", "refused"),
        (rules(ask, refuse), "asked", "refused", "refused"),
        (rules(allow, ask), "ran", "asked", "asked"),
        (rules(ask, allow), "asked", "ran", "asked"),
        (rules(allow, allow), "ran", "ran", "ran"),
    ] {
        for (read, fated) in [(Reads::PRIVATE, private), (Reads::UNTRUSTED, untrusted), (Reads::BOTH, both)] {
            let site = Site::new(rules);
            site.add("act", policy(Effect::Write, Reads::NOTHING, Sends::Outside));
            let outcome = site.call(&site.context(read, ""), json!({"text": "secret"})).await;
            assert_eq!(fate(&outcome), fated, "{rules:?} {read:?}");
        }
    }
}

#[tokio::test]
async fn b20_the_person_is_told_what_goes_where_and_the_audit_too() {
    let site = Site::new(FlowRules::default());
    site.add("act", policy(Effect::Write, Reads::NOTHING, Sends::Outside));
    let events: Arc<Mutex<Vec<ToolEvent>>> = Arc::default();
    let seen = Arc::clone(&events);
    let context = site
        .context(Reads::BOTH, "")
        .with_events(Arc::new(move |event| seen.lock().unwrap().push(event)))
        .with_approval_wait(Duration::from_secs(60));
    let arguments = json!({"to": "eve@example.org\n\u{202e}", "text": "secret", "key": "4711"});
    let approving = async {
        loop {
            if let Some(approval) = site.registry.pending_approvals().await.unwrap().pop() {
                let yes = ApprovalAnswer {
                    approve: true,
                    by: "ada".into(),
                    reason: None,
                    content: None,
                    arguments: None,
                };
                site.registry.answer_approval(&approval.id, yes).await.unwrap();
                return approval;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let (outcome, approval) = tokio::join!(site.call(&context, arguments), approving);
    assert!(outcome.is_success());
    let sentence = approval.reason.unwrap();
    for part in ["`act`", "“eve@example.org ”", "private", "`mailbox`", "`web`"] {
        assert!(sentence.contains(part), "{part}: {sentence}");
    }
    assert!(!sentence.contains("4711"));
    assert_eq!(events.lock().unwrap()[0].approval_reason.as_ref(), Some(&sentence));
    let records = site.audit.records();
    assert_eq!(records[0].has_read.reads(), Reads::BOTH);
    let decision = records[0].decision.as_ref().unwrap();
    assert_eq!((decision.verdict, decision.by.as_str()), (Verdict::Approved, "user:ada"));
    assert_eq!(decision.reason.as_ref(), Some(&sentence));
    // Refused by a rule, the record says so.
    let rules = FlowRules { untrusted_acting: FlowRule::Refuse, ..FlowRules::default() };
    let site = Site::new(rules);
    site.add("act", policy(Effect::Write, Reads::NOTHING, Sends::Nothing));
    let outcome = site.call(&site.context(Reads::UNTRUSTED, ""), json!({"text": "x"})).await;
    assert!(outcome.for_model().contains("`web`"), "{}", outcome.for_model());
    let record = site.audit.records().pop().unwrap();
    let decision = record.decision.unwrap();
    assert_eq!((decision.verdict, decision.by.as_str()), (Verdict::Blocked, "flow"));
}

#[tokio::test]
async fn b20_the_persons_own_words_go_where_they_were_meant_to() {
    let said = "Note that the office is closed, then look up heat pumps on the web for bob@example.org";
    for (read, effect, sends, arguments, fated) in [
        (Reads::BOTH, Effect::Read, Sends::Outside, json!({"text": "heat pumps"}), "ran"),
        (Reads::BOTH, Effect::Read, Sends::Outside, json!({"text": "heat pumps 4711"}), "asked"),
        (Reads::BOTH, Effect::Read, Sends::Outside, json!({}), "ran"),
        (Reads::BOTH, Effect::Write, Sends::Nothing, json!({"text": "The office is closed"}), "ran"),
        (Reads::BOTH, Effect::Write, Sends::Nothing, json!({"text": "The office is open"}), "asked"),
        (Reads::BOTH, Effect::Write, Sends::Nothing, json!({}), "asked"),
        // What cannot be taken back is asked about whatever it says.
        (Reads::UNTRUSTED, Effect::Destructive, Sends::Nothing, json!({"text": "office"}), "asked"),
        (Reads::UNTRUSTED, Effect::Write, Sends::Outside, json!({"text": "heat pumps"}), "asked"),
        (
            Reads::PRIVATE,
            Effect::Write,
            Sends::Outside,
            json!({"to": "bob@example.org", "text": "closed"}),
            "ran",
        ),
    ] {
        let site = Site::new(FlowRules::default());
        site.add("act", policy(effect, Reads::NOTHING, sends));
        let outcome = site.call(&site.context(read, said), arguments.clone()).await;
        assert_eq!(fate(&outcome), fated, "{read:?} {effect:?} {sends:?} {arguments}");
    }
}

#[tokio::test]
async fn b20_what_a_tool_does_not_say_counts_as_the_worse() {
    let site = Site::new(FlowRules::default());
    for (name, effect) in [("look", Effect::Read), ("change", Effect::Write)] {
        site.add(name, ToolPolicy { effect, ..ToolPolicy::new() });
    }
    let tool = |name: &str| site.registry.get(name).unwrap();
    assert_eq!((tool("look").reads(), tool("look").sends()), (Reads::BOTH, Sends::Nothing));
    assert_eq!((tool("change").reads(), tool("change").sends()), (Reads::BOTH, Sends::Outside));
}

#[tokio::test]
async fn b20_a_call_within_a_call_is_judged_by_what_the_others_have_read() {
    let site = Site::new(FlowRules::default());
    site.add("read_mail", policy(Effect::Read, Reads::PRIVATE, Sends::Nothing));
    site.add("send", policy(Effect::Read, Reads::NOTHING, Sends::Outside));
    let handler = handler_fn(|context: ToolContext, _| async move {
        context.call("read_mail", json!({})).await?;
        let sent = context.call("send", json!({"text": "secret"})).await;
        Ok(ToolResult::new(sent.unwrap_err().message()))
    });
    let spec = ToolSpec::new("act", json!({"type": "object"}));
    let quiet = policy(Effect::Read, Reads::NOTHING, Sends::Nothing);
    site.registry.register(spec, quiet, Some(handler)).unwrap();
    let outcome = site.call(&site.context(Reads::NOTHING, ""), json!({})).await;
    assert!(outcome.for_model().contains("waits for a person"), "{}", outcome.for_model());
    assert_eq!(outcome.reads, Reads::PRIVATE, "what was read within leaves with the result");
    assert_eq!(site.ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn b20_a_tool_says_what_this_one_result_holds() {
    let site = Site::new(FlowRules::default());
    let handler = handler_fn(|context: ToolContext, _| {
        context.has_read(Reads::UNTRUSTED, "a feed");
        async { Ok(ToolResult::new("x")) }
    });
    let quiet = policy(Effect::Read, Reads::NOTHING, Sends::Nothing);
    let spec = ToolSpec::new("act", json!({"type": "object"}));
    site.registry.register(spec, quiet, Some(handler)).unwrap();
    let outcome = site.call(&site.context(Reads::NOTHING, ""), json!({})).await;
    assert_eq!(outcome.reads, Reads::UNTRUSTED);
}
