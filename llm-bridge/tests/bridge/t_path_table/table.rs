//! The table: tools, callers, and what has to become of each call.

use std::collections::{BTreeMap, BTreeSet};

use registry_core::{
    Caller, Effect, ErrorKind, Permission,
    guard::gate::{Decision, Verdict},
};
use serde_json::Value;

/// What the tools' module is called.
pub(crate) const MODULE: &str = "files";
/// The gate's name in the audit.
pub(crate) const GATE: &str = "warden";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Enabled,
    SwitchedOff,
    UsedUp,
    GateApproves,
    GateBlocks,
    WithoutHandler,
}

pub(crate) const STATES: [State; 6] = [
    State::Enabled,
    State::SwitchedOff,
    State::UsedUp,
    State::GateApproves,
    State::GateBlocks,
    State::WithoutHandler,
];

/// A tool of the table. Its name says all of it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) effect: Effect,
    pub(crate) state: State,
    pub(crate) needs: Permission,
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for effect in [Effect::Read, Effect::Write, Effect::Destructive] {
        for state in STATES {
            for needs in Permission::ALL {
                let name = format!("{MODULE}.{}_{state:?}_{needs}", effect.as_str()).to_lowercase();
                rows.push(Row { name, effect, state, needs });
            }
        }
    }
    rows
}

/// Every level with every persona: all modules, the tools' module, another one.
pub(crate) fn callers() -> Vec<Caller> {
    let personas = [("all", None), ("own", Some(MODULE)), ("other", Some("notes"))];
    let caller = |level: Permission, (name, module): (&str, Option<&str>)| {
        let caller = Caller::new(format!("{level}_{name}"), level);
        module.map_or(caller.clone(), |module| caller.only_modules([module]))
    };
    Permission::ALL.into_iter().flat_map(|level| personas.map(|persona| caller(level, persona))).collect()
}

/// What has to become of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Runs,
    Blocked,
    Fails(ErrorKind),
}

pub(crate) fn fate(row: &Row, caller: &Caller) -> Fate {
    let allowed = caller.allowed_modules.as_ref().is_none_or(|modules| modules.contains(MODULE));
    match row.state {
        State::SwitchedOff => Fate::Fails(ErrorKind::Unavailable),
        _ if caller.level < row.needs || !allowed => Fate::Fails(ErrorKind::PermissionDenied),
        State::WithoutHandler => Fate::Fails(ErrorKind::Unavailable),
        State::UsedUp => Fate::Fails(ErrorKind::ToolRateLimited),
        State::GateBlocks => Fate::Blocked,
        State::Enabled | State::GateApproves if row.effect == Effect::Destructive => {
            Fate::Fails(ErrorKind::ApprovalPending)
        }
        State::Enabled | State::GateApproves => Fate::Runs,
    }
}

/// What the audit has to say of who decided.
pub(crate) fn decision(row: &Row, fate: Fate, approved: bool) -> Option<Decision> {
    let (verdict, by) = match fate {
        Fate::Blocked => (Verdict::Blocked, GATE),
        Fate::Fails(ErrorKind::ApprovalPending) => (Verdict::Pending, "person"),
        Fate::Runs if approved => (Verdict::Approved, "user:root"),
        Fate::Runs if row.state == State::GateApproves => (Verdict::Approved, GATE),
        _ => return None,
    };
    let mut decision = Decision::new(verdict, by);
    decision.gate = (by != GATE && row.state == State::GateApproves)
        .then(|| Box::new(Decision::new(Verdict::Approved, GATE)));
    Some(decision)
}

/// The tools that an entry point shows as usable, and what it says to a call of each.
pub(crate) type Seen = (BTreeSet<String>, BTreeMap<String, Words>);

/// What an entry point tells whoever called, in the words that all of them have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Words {
    pub(crate) success: bool,
    pub(crate) result: Value,
    pub(crate) error: Value,
    pub(crate) message: Value,
    pub(crate) retry_at: Value,
    pub(crate) waits: bool,
}

impl Words {
    pub(crate) fn of(reply: &Value) -> Self {
        let said = |key: &str| reply.get(key).cloned().unwrap_or_default();
        // The id of an approval is the one thing that differs from call to call.
        let error = match (said("error"), reply["approval"].as_str()) {
            (Value::String(error), Some(id)) => error.replace(id, "ID").into(),
            (error, _) => error,
        };
        Self {
            success: reply["success"].as_bool().unwrap(),
            result: said("result"),
            error,
            message: said("message"),
            retry_at: said("retry_at"),
            waits: said("approval").is_string(),
        }
    }

    pub(crate) fn check(&self, fate: Fate) {
        let limited = fate == Fate::Fails(ErrorKind::ToolRateLimited);
        assert_eq!(self.success, fate == Fate::Runs);
        assert_eq!(self.result == "done", fate == Fate::Runs);
        assert_eq!(self.message == "not today", fate == Fate::Blocked);
        assert_eq!(self.error.is_string(), matches!(fate, Fate::Fails(_)));
        assert_eq!(self.retry_at == "2026-03-02T00:00:00Z", limited);
        assert_eq!(self.waits, fate == Fate::Fails(ErrorKind::ApprovalPending));
    }
}
