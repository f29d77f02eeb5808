//! What every store does alike: the same questions to each.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use registry_core::{
    Change, Permission, RegistryEvent, ToolLimits, ToolSpec,
    guard::{
        approval::{
            AnswerError, Approval, ApprovalAnswer, ApprovalState, Approvals, MAX_CLOSED, MemoryApprovals,
            Question,
        },
        limits::{Charge, Limit, Limited, MemoryUsage, Usage},
        rule::RuleScope,
    },
    store::{
        ApiKey, DeadLetter, DeadLetters, MemoryDeadLetters, MemoryStore, Persona, Session, Store, StoredTool,
        User,
    },
};
use serde_json::json;

use crate::{Place, at};

pub(crate) fn charge(at: Timestamp, cooldown: u64, daily_limit: u32) -> Charge {
    Charge {
        tenant: "default".into(),
        user: "ada".into(),
        tool: "search".into(),
        cooldown: Duration::from_secs(cooldown),
        daily_limit,
        at,
    }
}

async fn free_at(usage: &dyn Usage, charge: &Charge) -> Option<Timestamp> {
    usage.charge(charge).await.unwrap().map(|limited| limited.free_at)
}

/// Each with users of its own.
pub(crate) async fn usage_contract(usage: &dyn Usage) {
    let of = |user: &str, charge: Charge| Charge { user: user.to_owned(), ..charge };
    let midnight: Timestamp = "2026-03-02T00:00:00Z".parse().unwrap();

    let day = |time: Timestamp| of("a day is a day of UTC", charge(time, 0, 1));
    assert_eq!(free_at(usage, &day(at("23:59:58"))).await, None);
    let limited = usage.charge(&day(at("23:59:59"))).await.unwrap();
    assert_eq!(limited, Some(Limited { limit: Limit::Daily(1), free_at: midnight }));
    assert_eq!(free_at(usage, &day(midnight)).await, None);

    let cooling = |time: &str| of("cooldown", charge(at(time), 60, 0));
    assert_eq!(free_at(usage, &cooling("12:00:00.000000001")).await, None);
    let limited = usage.charge(&cooling("12:00:59")).await.unwrap().unwrap();
    assert_eq!(limited.limit, Limit::Cooldown(Duration::from_secs(60)));
    assert_eq!(limited.free_at, at("12:01:00.000000001"));
    assert_eq!(free_at(usage, &cooling("12:01:00")).await, Some(at("12:01:00.000000001")));
    assert_eq!(free_at(usage, &cooling("12:01:00.000000001")).await, None);

    let first = of("refund", charge(at("12:00:00"), 60, 1));
    assert_eq!(free_at(usage, &first).await, None);
    usage.refund(&first).await.unwrap();
    assert_eq!(free_at(usage, &of("refund", charge(at("12:00:01"), 60, 1))).await, None);
    assert_eq!(free_at(usage, &of("refund", charge(at("12:05:00"), 60, 1))).await, Some(midnight));
    // What was never counted cannot be taken back.
    usage.refund(&of("nobody", charge(at("12:00:00"), 60, 1))).await.unwrap();
    assert_eq!(free_at(usage, &of("nobody", charge(at("12:00:00"), 60, 1))).await, None);

    // A clock set back frees nothing and locks nobody out.
    let back = |time, limit| of("set back", charge(time, 60, limit));
    assert_eq!(free_at(usage, &back(midnight + Duration::from_secs(10), 1)).await, None);
    assert!(free_at(usage, &back(at("23:59:00"), 1)).await.is_some());
    assert_eq!(free_at(usage, &back(at("23:59:00"), 2)).await, None);

    // Another tenant, user and tool have counts of their own, whatever they are called.
    let odd = |tenant: &str, user: &str, tool: &str| Charge {
        tenant: tenant.into(),
        user: user.to_owned(),
        tool: tool.into(),
        ..charge(at("12:00:00"), 0, 1)
    };
    for (tenant, user, tool) in
        [("a", "b\nc", "d"), ("a\nb", "c", "d"), ("a", "b", "c\nd"), ("'; --", "\"", "ü🙂")]
    {
        assert_eq!(free_at(usage, &odd(tenant, user, tool)).await, None, "{tenant:?} {user:?} {tool:?}");
        assert!(free_at(usage, &odd(tenant, user, tool)).await.is_some(), "{tenant:?} {user:?} {tool:?}");
    }
    // The largest that can be asked for.
    let longest = of("longest", Charge { cooldown: Duration::MAX, ..charge(at("12:00:00"), 0, u32::MAX) });
    assert_eq!(free_at(usage, &longest).await, None);
    assert_eq!(free_at(usage, &longest).await, Some(Timestamp::MAX));
}

fn approval(id: &str, at: Timestamp) -> Approval {
    Approval {
        reason: None,
        remember: vec![RuleScope::Chat { chat: "one".to_owned() }],
        tool_sha256: "02".to_owned(),
        via: None,
        id: id.to_owned(),
        tenant: "default".to_owned(),
        user: "ada".to_owned(),
        tool: "delete".to_owned(),
        version: Some("1.0.0".to_owned()),
        arguments_sha256: "00".to_owned(),
        arguments: json!({"path": "a", "z": 1, "b": [null, "\u{0}"]}),
        question: None,
        call: None,
        scope: "chat".to_owned(),
        requested_at: at,
        expires_at: at + Duration::from_secs(300),
        state: ApprovalState::Pending,
    }
}

fn answer(approve: bool, reason: Option<&str>) -> ApprovalAnswer {
    ApprovalAnswer {
        approve,
        by: "boss".to_owned(),
        reason: reason.map(str::to_owned),
        content: None,
        arguments: None,
    }
}

async fn asked(approvals: &dyn Approvals, wanted: Approval) -> Approval {
    approvals.request(wanted, 64).await.unwrap().unwrap()
}

async fn approvals_contract(approvals: &dyn Approvals) {
    let first = approval("one", at("12:00:00"));
    assert_eq!(asked(approvals, first.clone()).await, first);
    // The same call is the same approval, another call another.
    assert_eq!(asked(approvals, approval("two", at("12:00:01"))).await, first);
    let others = [
        Approval { tenant: "other".into(), ..approval("t", at("12:00:02")) },
        Approval { user: "bob".into(), ..approval("u", at("12:00:03")) },
        Approval { tool: "drop".into(), ..approval("n", at("12:00:04")) },
        Approval { version: None, ..approval("v", at("12:00:05")) },
        Approval { arguments_sha256: "01".into(), ..approval("a", at("12:00:06")) },
        Approval { scope: "another chat".into(), ..approval("s", at("12:00:07")) },
    ];
    for other in &others {
        assert_eq!(&asked(approvals, other.clone()).await, other);
    }
    // A question is answered with more than a yes, and its answer is forgotten with it.
    let question = Question { message: "Which?".into(), schema: json!({"type": "object"}) };
    let asked_about =
        Approval { arguments_sha256: "02".into(), question: Some(question), ..approval("q", at("12:00:08")) };
    assert_eq!(asked(approvals, asked_about.clone()).await, asked_about);
    let content = json!({"answer": "ü\u{0}"});
    let given = ApprovalAnswer { content: Some(content.clone()), ..answer(true, None) };
    let answered = approvals.answer("default", "q", given.clone(), at("12:00:09")).await.unwrap();
    assert_eq!(answered.state, ApprovalState::Answered { by: "boss".into(), content });
    assert_eq!(asked(approvals, Approval { id: "q2".into(), ..asked_about }).await, answered.clone());
    assert_eq!(approvals.answer("default", "q", given, at("12:00:10")).await, Err(AnswerError::Closed));
    assert!(!approvals.take("default", "none", at("12:00:10")).await.unwrap());
    approvals.withdraw("default", "q").await.unwrap();
    assert_eq!(approvals.get("default", "q").await.unwrap().unwrap().state, ApprovalState::Withdrawn);
    // An approved call may be made with other arguments, which stay with its yes.
    let changing = Approval { arguments_sha256: "04".into(), ..approval("w", at("12:00:08")) };
    assert_eq!(asked(approvals, changing.clone()).await, changing);
    let arguments = Some(json!({"path": "ü\u{0}"}));
    let given = ApprovalAnswer { arguments: arguments.clone(), ..answer(true, None) };
    let changed = approvals.answer("default", "w", given, at("12:00:09")).await.unwrap();
    let by = || "boss".to_owned();
    assert_eq!(changed.state, ApprovalState::Approved { by: by(), arguments: arguments.clone() });
    assert!(approvals.take("default", "w", at("12:00:10")).await.unwrap());
    let used = approvals.get("default", "w").await.unwrap().unwrap();
    assert_eq!(used.state, ApprovalState::Used { by: by(), arguments: arguments.clone() });
    approvals.give_back("default", "w").await.unwrap();
    assert_eq!(approvals.get("default", "w").await.unwrap().unwrap(), changed);
    approvals.withdraw("default", "w").await.unwrap();
    // To decline is an answer too, and is found by the same call until it is over.
    let no = ApprovalAnswer { content: Some(json!(null)), ..answer(false, Some("later")) };
    let declining = Approval {
        arguments_sha256: "03".into(),
        question: answered.question,
        ..approval("d", at("12:00:11"))
    };
    assert_eq!(asked(approvals, declining.clone()).await, declining);
    let declined = approvals.answer("default", "d", no, at("12:00:12")).await.unwrap();
    assert_eq!(declined.state, ApprovalState::Declined { by: "boss".into(), reason: Some("later".into()) });
    assert_eq!(asked(approvals, Approval { id: "d2".into(), ..declining.clone() }).await, declined);
    approvals.withdraw("default", "d").await.unwrap();
    assert_eq!(asked(approvals, Approval { id: "d3".into(), ..declining }).await.id, "d3");
    approvals.withdraw("default", "d3").await.unwrap();
    let pending = approvals.pending("default", None, at("12:01:00")).await.unwrap();
    assert_eq!(
        pending.iter().map(|known| known.id.as_str()).collect::<Vec<_>>(),
        ["one", "u", "n", "v", "a", "s"]
    );
    // What is withdrawn can be neither answered nor used, also where it was approved already.
    approvals.withdraw("default", "s").await.unwrap();
    assert_eq!(approvals.get("default", "s").await.unwrap().unwrap().state, ApprovalState::Withdrawn);
    let yes = answer(true, None);
    assert_eq!(approvals.answer("default", "s", yes, at("12:01:00")).await, Err(AnswerError::Closed));
    let anew = Approval { scope: "another chat".into(), ..approval("s2", at("12:01:00")) };
    assert_eq!(asked(approvals, anew.clone()).await, anew);
    approvals.answer("default", "s2", answer(true, None), at("12:01:01")).await.unwrap();
    approvals.withdraw("default", "s2").await.unwrap();
    approvals.give_back("default", "s2").await.unwrap();
    assert!(!approvals.take("default", "s2", at("12:01:02")).await.unwrap());
    assert_eq!(approvals.get("default", "one").await.unwrap().as_ref(), Some(&first));
    assert_eq!(approvals.get("other", "one").await.unwrap(), None);
    assert_eq!(approvals.get("default", "two").await.unwrap(), None);
    // No id has a NUL, which a database may not even be asked for.
    assert_eq!(approvals.get("default", "one\0").await.unwrap(), None);
    assert_eq!(approvals.take("default", "one\0", at("12:01:00")).await, Ok(false));
    assert_eq!(approvals.withdraw("default", "one\0").await, Ok(()));
    assert_eq!(approvals.give_back("default", "one\0").await, Ok(()));
    assert_eq!(approvals.pending("default\0", None, at("12:01:00")).await, Ok(Vec::new()));
    assert_eq!(approvals.forget_user("default\0", "ada").await, Ok(0));
    let yes = answer(true, None);
    assert_eq!(approvals.answer("default", "\0", yes, at("12:01:00")).await, Err(AnswerError::Unknown));

    // Not before it is approved; then for one call.
    assert!(!approvals.take("default", "one", at("12:01:00")).await.unwrap());
    let approved = approvals.answer("default", "one", answer(true, None), at("12:01:00")).await.unwrap();
    assert_eq!(
        approved,
        Approval { state: ApprovalState::Approved { by: "boss".into(), arguments: None }, ..first.clone() }
    );
    assert_eq!(asked(approvals, approval("three", at("12:01:01"))).await, approved);
    assert!(!approvals.take("other", "one", at("12:01:02")).await.unwrap());
    let takes = (0..8).map(|_| approvals.take("default", "one", at("12:01:02")));
    let taken = futures_util::future::join_all(takes).await;
    assert_eq!(taken.into_iter().filter(|taken| *taken.as_ref().unwrap()).count(), 1);
    let used = approvals.get("default", "one").await.unwrap().unwrap();
    assert_eq!(used.state, ApprovalState::Used { by: "boss".into(), arguments: None });
    // A call that did nothing gives it back, once more for one call.
    for _ in 0..2 {
        approvals.give_back("default", "one").await.unwrap();
    }
    assert_eq!(approvals.get("default", "one").await.unwrap().unwrap(), approved);
    assert!(approvals.take("default", "one", at("12:01:03")).await.unwrap());
    assert!(!approvals.take("default", "one", at("12:01:03")).await.unwrap());
    let again = answer(true, None);
    assert_eq!(approvals.answer("default", "one", again, at("12:01:03")).await, Err(AnswerError::Closed));
    assert_eq!(asked(approvals, approval("four", at("12:01:04"))).await.id, "four");

    // A refusal keeps who and why, also where no reason was given.
    for (id, reason) in [("u", Some("keep it")), ("n", None), ("v", Some(""))] {
        let denied = approvals.answer("default", id, answer(false, reason), at("12:02:00")).await.unwrap();
        let state = ApprovalState::Denied { by: "boss".into(), reason: reason.map(str::to_owned) };
        assert_eq!(denied.state, state);
        assert_eq!(approvals.get("default", id).await.unwrap().unwrap().state, state);
        assert!(!approvals.take("default", id, at("12:02:01")).await.unwrap());
    }
    // What has expired can be neither answered nor used, and is asked for anew.
    let late = at("12:05:06");
    assert_eq!(approvals.answer("default", "a", answer(true, None), late).await, Err(AnswerError::Closed));
    assert_eq!(
        approvals.answer("default", "none", answer(true, None), late).await,
        Err(AnswerError::Unknown)
    );
    assert_eq!(approvals.answer("other", "a", answer(true, None), late).await, Err(AnswerError::Unknown));
    let anew = Approval { arguments_sha256: "01".into(), ..approval("anew", late) };
    assert_eq!(asked(approvals, anew.clone()).await, anew);
    // Long after, nobody remembers it.
    asked(approvals, approval("late", at("14:00:00"))).await;
    assert_eq!(approvals.get("default", "one").await.unwrap(), None);
    approvals_are_bounded(approvals).await;
}

/// However many are asked for at once, no more are kept than may be.
async fn approvals_are_bounded(approvals: &dyn Approvals) {
    let of = |user: &str, number: usize| Approval {
        user: user.into(),
        arguments_sha256: number.to_string(),
        ..approval(&format!("{}-{number}", user.len()), at("15:00:00"))
    };
    let burst = (0..32).map(|number| approvals.request(of("burst\0", number), 5));
    let kept = futures_util::future::join_all(burst).await;
    assert_eq!(kept.iter().filter(|kept| kept.as_ref().unwrap().is_some()).count(), 5);
    let pending = approvals.pending("default", None, at("15:00:01")).await.unwrap();
    assert_eq!(pending.iter().filter(|known| known.user == "burst\0").count(), 5);
    assert_eq!(approvals.pending("default", Some("burst\0"), at("15:00:01")).await.unwrap().len(), 5);
    for (tenant, user) in [("default", "nobody"), ("other", "burst\0")] {
        assert_eq!(approvals.pending(tenant, Some(user), at("15:00:01")).await, Ok(Vec::new()), "{user}");
    }
    // What is asked already may be asked again; another user or tenant is another.
    let known = pending.iter().find(|known| known.user == "burst\0").unwrap();
    assert_eq!(approvals.request(known.clone(), 5).await.unwrap().as_ref(), Some(known));
    assert!(approvals.request(of("bob", 0), 1).await.unwrap().is_some());
    let elsewhere = Approval { tenant: "other".into(), ..of("burst\0", 99) };
    assert!(approvals.request(elsewhere, 1).await.unwrap().is_some());
    // An answer makes room, and so does the time.
    assert_eq!(approvals.request(of("burst\0", 99), 5).await.unwrap(), None);
    approvals.answer("default", &known.id, answer(true, None), at("15:00:02")).await.unwrap();
    assert!(approvals.request(of("burst\0", 99), 5).await.unwrap().is_some());
    let later = Approval { requested_at: at("15:05:00"), expires_at: at("15:10:00"), ..of("burst\0", 100) };
    assert!(approvals.request(later, 1).await.unwrap().is_some());

    // What waits for nobody any more gives way to what is newer.
    for number in 0..MAX_CLOSED + 4 {
        let now = at("15:00:03").checked_add(jiff::SignedDuration::from_millis(number as i64)).unwrap();
        let wanted = Approval { requested_at: now, ..of("many", number) };
        let kept = approvals.request(wanted, 5).await.unwrap().unwrap();
        approvals.answer("default", &kept.id, answer(false, None), now).await.unwrap();
    }
    let is_known =
        async |number: usize| approvals.get("default", &of("many", number).id).await.unwrap().is_some();
    assert!(!is_known(0).await && !is_known(2).await && is_known(3).await && is_known(MAX_CLOSED + 3).await);

    // What was asked of a user who is removed goes, answered or not; of the same name elsewhere it stays.
    assert_eq!(approvals.forget_user("default", "burst\0").await, Ok(7));
    assert_eq!(approvals.forget_user("default", "burst\0").await, Ok(0));
    assert_eq!(approvals.get("default", &known.id).await.unwrap(), None);
    for (tenant, user) in [("other", "burst\0"), ("default", "bob")] {
        let pending = approvals.pending(tenant, None, at("15:00:01")).await.unwrap();
        assert!(pending.iter().any(|known| known.user == user), "{tenant} {user}");
    }
}

fn tool(name: &str, enabled: bool) -> StoredTool {
    let spec =
        ToolSpec { version: Some("1.2.3".into()), ..ToolSpec::new(name, json!({"z": 1, "a": [true]})) };
    StoredTool {
        tool_name: name.to_owned(),
        enabled,
        limits: ToolLimits { daily_limit: Some(3), cooldown_seconds: None },
        spec: Some(spec),
        created_at: at("12:00:00.123456789"),
    }
}

/// Puts a tool in where nobody else changes anything.
pub(crate) async fn put_tool(store: &dyn Store, tenant: &str, tool: StoredTool) {
    let revision = store.revision().await.unwrap();
    assert_eq!(store.put_tool(tenant, tool, revision).await, Ok(true));
}

/// What one of them keeps the other knows.
async fn one_of_two_contract(one: &dyn Store, other: &dyn Store) {
    let seen = one.revision().await.unwrap();
    for wrong in [seen + 1, u64::MAX] {
        assert_eq!(one.put_tool("default", tool("a", false), wrong).await, Ok(false));
    }
    assert_eq!(one.revision().await, Ok(seen), "nothing has changed");
    assert_eq!(one.put_tool("default", tool("a", true), seen).await, Ok(true));
    assert_eq!(other.put_tool("default", tool("a", false), seen).await, Ok(false));
    assert_eq!(other.tools("default").await.unwrap(), [tool("a", true)]);

    // Of many at once it is one.
    let seen = one.revision().await.unwrap();
    let names: Vec<String> = (0..16).map(|number| format!("tool_{number:02}")).collect();
    let puts = names.iter().enumerate().map(|(number, name)| {
        let store = if number % 2 == 0 { one } else { other };
        store.put_tool("default", tool(name, true), seen)
    });
    let put: Vec<bool> = futures_util::future::join_all(puts).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(put.iter().filter(|put| **put).count(), 1);
    let kept = one.tools("default").await.unwrap();
    let winner = put.iter().position(|put| *put).unwrap();
    assert_eq!(kept, [tool("a", true), tool(&names[winner], true)]);
    for tool in kept {
        one.remove_tool("default", &tool.tool_name).await.unwrap();
    }
}

async fn store_contract(store: &dyn Store) {
    one_of_two_contract(store, store).await;
    let mut revision = store.revision().await.unwrap();
    let mut raised = async || {
        let before = std::mem::replace(&mut revision, store.revision().await.unwrap());
        assert_ne!(before, revision);
    };
    let switch = StoredTool { spec: None, ..tool("a", false) };
    for tool in [tool("b", true), switch.clone(), tool("b", false)] {
        put_tool(store, "default", tool).await;
        raised().await;
    }
    put_tool(store, "other", tool("c", true)).await;
    assert_eq!(store.tools("default").await.unwrap(), [switch.clone(), tool("b", false)]);
    store.remove_tool("default", "b").await.unwrap();
    raised().await;
    store.remove_tool("default", "b").await.unwrap();
    assert_eq!(store.tools("default").await.unwrap(), [switch]);
    assert_eq!(store.tools("nobody's").await.unwrap(), []);

    let ada = User {
        id: "ada".into(),
        level: Permission::Admin,
        personas: vec!["reading".to_owned(), "mail".to_owned()],
        created_at: at("12:00:00"),
    };
    let bob =
        User { id: "bob".into(), level: Permission::Guest, personas: Vec::new(), created_at: at("11:00:00") };
    for user in [&bob, &ada] {
        store.put_user("default", user.clone()).await.unwrap();
        raised().await;
    }
    let promoted = User { level: Permission::Owner, ..bob };
    store.put_user("default", promoted.clone()).await.unwrap();
    assert_eq!(store.users("default").await.unwrap(), [ada.clone(), promoted]);
    let tenants = store.tenants().await.unwrap();
    assert!(tenants.is_sorted() && tenants.contains(&"default".to_owned()), "{tenants:?}");
    assert!(!tenants.contains(&"nobody".to_owned()), "{tenants:?}");
    for (tenant, users) in [("default", 2), ("other", 0), ("default\0", 0)] {
        assert_eq!(store.count_users(tenant).await, Ok(users), "{tenant}");
    }
    assert_eq!(store.user("default", "ada").await.unwrap(), Some(ada));
    assert_eq!(store.user("other", "ada").await.unwrap(), None);
    assert_eq!(store.user("default", "ada\0").await.unwrap(), None);

    let persona = |name: &str, module: &str| Persona {
        name: name.to_owned(),
        allowed_modules: [module.to_owned()].into(),
        created_at: at("12:00:00"),
    };
    for new in [persona("writing", "mail"), persona("reading", "mail"), persona("reading", "research")] {
        store.put_persona("default", new).await.unwrap();
        raised().await;
    }
    store.put_persona("theirs", persona("reading", "files")).await.unwrap();
    assert_eq!(
        store.personas("default").await.unwrap(),
        [persona("reading", "research"), persona("writing", "mail")]
    );
    for (after, most, names) in [
        ("", 1, &["reading"][..]),
        ("reading", 1, &["writing"]),
        ("", 9, &["reading", "writing"]),
        ("writing", 9, &[]),
    ] {
        let page = store.personas_after("default", after, most).await.unwrap();
        assert_eq!(page.iter().map(|persona| &*persona.name).collect::<Vec<_>>(), names, "{after}");
    }
    assert!(store.tenants().await.unwrap().contains(&"theirs".to_owned()));
    assert_eq!(store.persona("theirs", "reading").await.unwrap(), Some(persona("reading", "files")));
    assert_eq!(store.persona("theirs", "writing").await.unwrap(), None);
    assert_eq!(store.persona("default", "reading\0").await.unwrap(), None);
    raised().await;
    assert!(store.remove_persona("default", "reading").await.unwrap());
    raised().await;
    assert!(!store.remove_persona("default", "reading").await.unwrap());
    assert_eq!(store.personas("default").await.unwrap(), [persona("writing", "mail")]);
    assert!(store.persona("theirs", "reading").await.unwrap().is_some());

    let key = |id: &str, sha256: &str| ApiKey {
        id: id.to_owned(),
        tenant: "default".to_owned(),
        user: "ada".to_owned(),
        name: format!("the {id} of ada"),
        sha256: sha256.to_owned(),
        delegate: id == "k2",
        created_at: at("12:00:00"),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    };
    assert_eq!(store.has_keys().await, Ok(false));
    for (id, hash) in [("k2", "ff"), ("k1", "ee")] {
        store.put_key(key(id, hash)).await.unwrap();
    }
    assert_eq!(store.keys("default").await.unwrap(), [key("k2", "ff"), key("k1", "ee")]);
    assert_eq!(store.key("ff", at("12:30:00")).await.unwrap(), Some(key("k2", "ff")));
    assert_eq!(store.key("00", at("12:30:00")).await.unwrap(), None);
    raised().await;
    assert!(!store.revoke_key("other", "k2", at("13:00:00")).await.unwrap());
    assert!(store.revoke_key("default", "k2", at("13:00:00")).await.unwrap());
    raised().await;
    assert!(!store.revoke_key("default", "k2", at("14:00:00")).await.unwrap());
    assert_eq!(store.key("ff", at("12:30:00")).await.unwrap(), None);
    let revoked = ApiKey { revoked_at: Some(at("13:00:00")), ..key("k2", "ff") };
    assert_eq!(store.keys("default").await.unwrap(), [revoked.clone(), key("k1", "ee")]);
    assert_eq!(store.key_of_id("default", "k2").await, Ok(Some(revoked.clone())));
    assert_eq!(store.key_of_id("default", "k1").await, Ok(Some(key("k1", "ee"))));
    for (tenant, id) in [("default", "k3"), ("other", "k1"), ("default", "k1\0")] {
        assert_eq!(store.key_of_id(tenant, id).await, Ok(None), "{tenant} {id}");
    }

    // A user is changed only as seen, and only while there.
    let seen = store.revision().await.unwrap();
    let ada = store.user("default", "ada").await.unwrap().unwrap();
    let demoted = User { level: Permission::Guest, ..ada.clone() };
    assert!(!store.change_user("default", demoted.clone(), seen - 1).await.unwrap());
    assert_eq!(store.user("default", "ada").await.unwrap(), Some(ada.clone()));
    assert!(store.change_user("default", demoted.clone(), seen).await.unwrap());
    assert!(!store.change_user("default", ada.clone(), seen).await.unwrap());
    assert_eq!(store.user("default", "ada").await.unwrap(), Some(demoted));
    let nobody = User { id: "nobody".into(), ..ada.clone() };
    assert!(!store.change_user("default", nobody, store.revision().await.unwrap()).await.unwrap());
    assert_eq!(store.user("default", "nobody").await.unwrap(), None);
    store.put_user("default", ada).await.unwrap();
    let nobodys = ApiKey { user: "nobody".to_owned(), ..key("k9", "99") };
    assert!(!store.put_key(nobodys).await.unwrap());
    assert_eq!(store.key("99", at("12:30:00")).await.unwrap(), None);
    raised().await;

    // With a user go the keys, and nobody else's.
    let carl = User { id: "carl".into(), ..store.user("default", "ada").await.unwrap().unwrap() };
    store.put_user("default", carl.clone()).await.unwrap();
    store.put_user("other", carl.clone()).await.unwrap();
    let of_carl = |id: &str, sha256: &str| ApiKey { user: "carl".to_owned(), ..key(id, sha256) };
    let theirs = ApiKey { tenant: "other".to_owned(), ..of_carl("k4", "cc") };
    for key in [of_carl("k3", "dd"), theirs.clone()] {
        store.put_key(key).await.unwrap();
    }
    raised().await;
    assert!(!store.remove_user("default", "none", at("15:00:00")).await.unwrap().was_known);
    assert!(!store.remove_user("nobody's", "carl", at("15:00:00")).await.unwrap().was_known);
    assert_eq!(store.key("dd", at("12:30:00")).await.unwrap(), Some(of_carl("k3", "dd")));
    assert!(store.remove_user("default", "carl", at("15:00:00")).await.unwrap().was_known);
    raised().await;
    assert_eq!(
        (store.user("default", "carl").await.unwrap(), store.key("dd", at("12:30:00")).await.unwrap()),
        (None, None)
    );
    let gone = ApiKey { revoked_at: Some(at("15:00:00")), ..of_carl("k3", "dd") };
    assert_eq!(store.keys("default").await.unwrap(), [revoked.clone(), key("k1", "ee"), gone.clone()]);
    assert_eq!(store.keys_of("default", "ada").await.unwrap(), [revoked, key("k1", "ee")]);
    assert_eq!(store.keys_of("default", "carl").await.unwrap(), [gone]);
    assert_eq!(store.keys_of("other", "carl").await.unwrap(), std::slice::from_ref(&theirs));
    assert_eq!(store.keys_of("other", "ada").await.unwrap(), []);
    assert_eq!(store.user("other", "carl").await.unwrap(), Some(carl));
    assert_eq!(store.key("cc", at("12:30:00")).await.unwrap(), Some(theirs));
    assert!(!store.remove_user("default", "carl", at("16:00:00")).await.unwrap().was_known);

    // One of any tenant is one.
    assert!(store.revoke_key("default", "k1", at("13:00:00")).await.unwrap());
    assert_eq!(store.has_keys().await, Ok(true));
    assert!(store.revoke_key("other", "k4", at("13:00:00")).await.unwrap());
    assert_eq!(store.has_keys().await, Ok(false));

    // One that has expired opens nothing, is listed, and is revoked as any other.
    let expiring = ApiKey { expires_at: Some(at("12:30:00")), ..key("k5", "aa") };
    assert!(store.put_key(expiring.clone()).await.unwrap());
    assert_eq!(store.key("aa", at("12:29:59")).await, Ok(Some(expiring.clone())));
    assert_eq!(store.key("aa", at("12:30:00")).await, Ok(None));
    assert_eq!(store.key_of_id("default", "k5").await, Ok(Some(expiring)));
    assert_eq!(store.has_keys().await, Ok(true));
    assert!(store.revoke_key("default", "k5", at("14:00:00")).await.unwrap());

    // The use of a key is noted once a minute, and is no change that anybody waits for.
    let revision = store.revision().await.unwrap();
    for (tenant, time, noted) in [
        ("other", "14:00:00", None),
        ("default", "14:00:00", Some("14:00:00")),
        ("default", "14:01:00", Some("14:00:00")),
        ("default", "14:01:01", Some("14:01:01")),
        ("default", "14:00:30", Some("14:01:01")),
    ] {
        store.note_key_use(tenant, "k5", at(time)).await.unwrap();
        let key = store.key_of_id("default", "k5").await.unwrap().unwrap();
        assert_eq!(key.last_used_at, noted.map(at), "{tenant} {time}");
    }
    store.note_key_use("default", "none", at("14:00:00")).await.unwrap();
    assert_eq!(store.revision().await.unwrap(), revision);
    assert_eq!(store.has_keys().await, Ok(false));
}

async fn session_contract(store: &dyn Store) {
    let user = |id: &str| User {
        id: id.to_owned(),
        level: Permission::User,
        personas: Vec::new(),
        created_at: at("08:00:00"),
    };
    for (tenant, id) in [("default", "s-ada"), ("default", "s-bob"), ("other", "s-ada")] {
        store.put_user(tenant, user(id)).await.unwrap();
    }
    let session = |name: &str, user: &str, from: &str, until: &str| Session {
        id: name.to_owned(),
        tenant: "default".to_owned(),
        user: user.to_owned(),
        sha256: format!("hash of {name}"),
        created_at: at(from),
        expires_at: at(until),
    };
    let ids = async |tenant: &str, user: &str, now: &str| {
        let sessions = store.sessions(tenant, user, at(now)).await.unwrap();
        sessions.into_iter().map(|session| session.id).collect::<Vec<_>>()
    };
    let revision = store.revision().await.unwrap();
    assert!(!store.put_session(session("s0", "s-nobody", "09:00:00", "10:00:00"), 2).await.unwrap());
    let first = session("s1", "s-ada", "09:00:00", "10:00:00");
    assert!(store.put_session(first.clone(), 2).await.unwrap());
    let theirs = Session { tenant: "other".to_owned(), ..session("s9", "s-ada", "09:00:00", "20:00:00") };
    assert!(store.put_session(theirs, 2).await.unwrap());
    assert!(store.put_session(session("s8", "s-bob", "09:00:00", "20:00:00"), 2).await.unwrap());
    assert_eq!(store.session("hash of s1", at("09:59:59.9")).await.unwrap(), Some(first));
    assert_eq!(store.session("hash of s1", at("10:00:00")).await.unwrap(), None);
    assert_eq!(store.session("s1", at("09:30:00")).await.unwrap(), None);
    // The oldest give way.
    for (name, from) in [("s2", "09:01:00"), ("s3", "09:02:00")] {
        assert!(store.put_session(session(name, "s-ada", from, "11:00:00"), 2).await.unwrap());
    }
    assert_eq!(ids("default", "s-ada", "09:03:00").await, ["s2", "s3"]);
    // One ends, which is nobody else's.
    assert!(!store.end_session("default", "s-bob", "s2").await.unwrap());
    assert!(!store.end_session("other", "s-ada", "s2").await.unwrap());
    assert!(!store.end_session("default", "s-ada", "s\0").await.unwrap());
    assert!(store.end_session("default", "s-ada", "s2").await.unwrap());
    assert!(!store.end_session("default", "s-ada", "s2").await.unwrap());
    assert_eq!(ids("default", "s-ada", "09:03:00").await, ["s3"]);
    assert_eq!(ids("default", "s-ada", "11:00:00").await, [""; 0]);
    assert_eq!(store.revision().await.unwrap(), revision);
    // With a user go all.
    store.remove_user("default", "s-ada", at("09:04:00")).await.unwrap();
    assert_eq!(store.session("hash of s3", at("09:05:00")).await.unwrap(), None);
    assert_eq!(ids("other", "s-ada", "09:05:00").await, ["s9"]);
    assert_eq!(ids("default", "s-bob", "09:05:00").await, ["s8"]);
}

fn letter(id: &str, tenant: &str) -> DeadLetter {
    let change = Change::Replaced { from: None, to: Some("2.0.0".into()), older: false };
    let event = RegistryEvent {
        tenant: tenant.to_owned(),
        tool: "a\0".to_owned(),
        change,
        version: Some("2.0.0".into()),
        elsewhere: false,
        ts: at("12:00:00.000000001"),
    };
    let (url, cause) = ("http://a/hook".to_owned(), "it answered 500 \0 \u{fffd}".to_owned());
    DeadLetter {
        id: id.to_owned(),
        url,
        event,
        attempts: 5,
        cause,
        ts: at("12:01:00"),
        endpoint: "ff00".into(),
    }
}

async fn letters_contract(letters: &dyn DeadLetters) {
    for id in ["one", "two", "three"] {
        letters.push(letter(id, "default"), 2).await.unwrap();
        letters.push(letter(id, "other"), 10).await.unwrap();
    }
    let ids = async |tenant: &str| -> Vec<String> {
        letters.list(tenant).await.unwrap().into_iter().map(|letter| letter.id).collect()
    };
    assert_eq!(
        letters.list("default").await.unwrap(),
        [letter("two", "default"), letter("three", "default")]
    );
    assert_eq!(ids("other").await, ["one", "two", "three"]);
    // As many as are wanted, and the others from there on, though one was taken meanwhile.
    let first = letters.page("other", 0, 2).await.unwrap();
    let next = letters.page("other", first[1].0, 2).await.unwrap();
    let ids_of =
        |page: &[(i64, DeadLetter)]| page.iter().map(|(_, letter)| letter.id.clone()).collect::<Vec<_>>();
    assert_eq!((ids_of(&first), ids_of(&next)), (vec!["one".into(), "two".into()], vec!["three".into()]));
    assert!(letters.page("other", next[0].0, 2).await.unwrap().is_empty());
    assert_eq!(ids("nobody's").await, [""; 0]);
    for (tenant, id) in [("default", "one"), ("nobody's", "two"), ("default", "two\0"), ("default", "")] {
        assert_eq!(letters.take(tenant, id).await.unwrap(), None, "{tenant} {id}");
    }
    // It is whoever's comes first.
    let digs = (0..8).map(|_| letters.take("default", "two"));
    let dug: Vec<_> =
        futures_util::future::join_all(digs).await.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(dug, [letter("two", "default")]);
    assert_eq!((ids("default").await.len(), ids("other").await.len()), (1, 3));
}

#[tokio::test]
async fn l5_every_store_keeps_dead_letters_alike() {
    letters_contract(&MemoryDeadLetters::default()).await;
    for place in Place::all("l5_every_store_keeps_dead_letters_alike") {
        letters_contract(&place.open("main").await).await;
        // They outlive the process.
        assert_eq!(place.open("main").await.list("other").await.unwrap().len(), 3);
    }
}

#[tokio::test]
async fn t3_every_store_counts_alike() {
    usage_contract(&MemoryUsage::default()).await;
    for place in Place::all("t3_every_store_counts_alike") {
        usage_contract(&place.open("main").await).await;
    }
}

#[tokio::test]
async fn b8_every_store_keeps_approvals_alike() {
    approvals_contract(&MemoryApprovals::default()).await;
    for place in Place::all("b8_every_store_keeps_approvals_alike") {
        let store = place.open("main").await;
        approvals_contract(&store).await;
        // With the users, it goes in the same step as they.
        asked(&store, approval("left", at("16:00:00"))).await;
        store.remove_user("default", "ada", at("16:00:00")).await.unwrap();
        assert_eq!(store.get("default", "left").await.unwrap(), None);
    }
}

#[tokio::test]
async fn b21_every_store_keeps_sessions_alike() {
    session_contract(&MemoryStore::default()).await;
    for place in Place::all("b21_every_store_keeps_sessions_alike") {
        session_contract(&place.open("main").await).await;
    }
}

#[tokio::test]
async fn l5_every_store_keeps_registrations_users_and_keys_alike() {
    store_contract(&MemoryStore::default()).await;
    for place in Place::all("l5_every_store_keeps_registrations_users_and_keys_alike") {
        store_contract(&place.open("main").await).await;
        // All of it is there when it is opened anew.
        let reopened = place.open("main").await;
        assert_eq!(reopened.tools("default").await.unwrap().len(), 1);
        assert_eq!(reopened.users("default").await.unwrap().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b10_of_two_servers_that_change_what_both_have_seen_one_does() {
    for place in Place::all("b10_of_two_servers_that_change_what_both_have_seen_one_does") {
        let (one, other) = (place.open("one").await, place.open("other").await);
        for _ in 0..5 {
            one_of_two_contract(&one, &other).await;
        }
    }
}

/// While one server registers one version after the other, the other switches the tool on and off.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b10_a_switch_undoes_no_registration_made_at_the_same_moment() {
    for place in Place::all("b10_a_switch_undoes_no_registration_made_at_the_same_moment") {
        let attach = async |server: &str| {
            let registry = registry_core::Registry::builder().without_compiled().build().unwrap();
            registry.attach(Arc::new(place.open(server).await)).await.unwrap()
        };
        let (one, other) = (attach("one").await, attach("other").await);
        let version = |number: u32| ToolSpec {
            version: Some(format!("{number}.0.0")),
            ..ToolSpec::new("act", json!({"type": "object"}))
        };
        one.register(version(1), Default::default(), None).await.unwrap();
        let switching = tokio::spawn(async move {
            for change in 0..40 {
                other.set_enabled("act", change % 2 == 0).await.unwrap();
            }
            other
        });
        for number in 2..=20 {
            one.register(version(number), Default::default(), None).await.unwrap();
            let kept = one.store().tools("default").await.unwrap();
            assert_eq!(kept[0].spec, Some(version(number)));
        }
        let other = switching.await.unwrap();
        assert_eq!(other.store().tools("default").await.unwrap()[0].spec, Some(version(20)));
    }
}

#[tokio::test]
async fn b10_a_change_is_seen_by_others_within_a_second() {
    for place in Place::all("b10_a_change_is_seen_by_others_within_a_second") {
        let (one, other) = (place.open("one").await, Arc::new(place.open("other").await));
        for change in 0..3 {
            let since = other.revision().await.unwrap();
            let waiting = tokio::spawn({
                let other = Arc::clone(&other);
                async move { other.changed(since).await }
            });
            tokio::time::sleep(Duration::from_millis(50 * change)).await;
            assert!(!waiting.is_finished());
            put_tool(&one, "default", tool("a", change % 2 == 0)).await;
            tokio::time::timeout(Duration::from_secs(1), waiting)
                .await
                .expect("seen within a second")
                .unwrap();
            assert_ne!(other.revision().await.unwrap(), since);
        }
    }
}
