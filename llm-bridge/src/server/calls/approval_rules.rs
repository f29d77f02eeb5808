//! `GET /api/approval-rules` and `DELETE /api/approval-rules/{id}`: what a person has allowed beforehand, and for admins what all people have.
//! Rules are made with the answer to an approval.

use axum::{
    Extension,
    http::{Method, StatusCode},
    response::Response,
};
use jiff::Timestamp;
use registry_core::{
    Origin, Permission, Registry,
    guard::{
        approval::{Approval, ApprovalAnswer},
        rule::{ApprovalRule, MAX_PEOPLE, RuleError, RuleKind, RuleScope},
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    recorded::answer_approval,
    server::{
        App,
        callers::{
            admin::{self, audited, not_audited},
            identity::Identity,
        },
        chats,
        openapi::Operation,
        requests::{api_error::ApiError, name::Name, query::QueryParameters},
        routes::Routes,
    },
};

pub(in crate::server) fn routes() -> Routes {
    Routes::new().add("/api/approval-rules", list, list_operation()).add(
        "/api/approval-rules/{id}",
        revoke,
        revoke_operation(),
    )
}

/// A rule as its person sees it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ApprovalRule")]
struct Shown {
    /// Names it.
    id: String,
    /// Whose it is.
    user: String,
    /// The tool's name.
    tool: String,
    /// Who makes the calls for the person, where that is somebody else.
    via: Option<String>,
    #[serde(flatten)]
    scope: RuleScope,
    /// When it was made (UTC).
    made_at: Timestamp,
    /// Whether calls are made by it: not when its tool is gone or is another one by now, or rules are switched off.
    applies: bool,
}

impl Shown {
    fn of(user: &str, rule: ApprovalRule, registry: &Registry) -> Self {
        let applies = registry.applies(&rule);
        let ApprovalRule { id, tool, via, scope, made_at, .. } = rule;
        Self { id, user: user.to_owned(), tool, via, scope, made_at, applies }
    }
}

/// The rules of a user, or of several.
#[derive(Serialize, JsonSchema)]
struct RuleList {
    rules: Vec<Shown>,
    /// `after` of the next request; null where there are no more.
    next: Option<String>,
}

/// Whose rules are listed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default)]
    all: bool,
    #[serde(default)]
    after: String,
}

fn list_operation() -> Operation {
    Operation::new(
        Method::GET,
        "Approvals",
        "list_approval_rules",
        "The calls that the user has allowed beforehand, or that all users have",
    )
    .query_flag("all", "Whether those of all users are listed, which is for admins.")
    .query("after", "With `all`, only of users behind this one: `next` of the answer before.")
    .answers::<RuleList>(200, "The rules, of each user the oldest first; with `all` of 20 users at most.")
    .refuses(400, "A query parameter is unknown (`invalid_request_error`).")
    .refuses(403, "The user is not an admin, and asks for the rules of all (`permission_denied`).")
}

async fn list(
    Extension(identity): Extension<Identity>,
    QueryParameters(Wanted { all, after }): QueryParameters<Wanted>,
) -> Result<Response, ApiError> {
    if all {
        identity.require(Permission::Admin, "listing what others have allowed beforehand")?;
    }
    let (registry, user) = (identity.registry.clone(), identity.caller.user.clone());
    let people = async move {
        match all {
            true => registry.approval_rules_of_users(&after).await,
            false => registry.approval_rules(&user).await.map(|rules| vec![(user, rules)]),
        }
    };
    let registry = identity.registry.clone();
    let shown = move |people: Vec<(String, Vec<ApprovalRule>)>| {
        let next = people.last().filter(|_| people.len() == MAX_PEOPLE).map(|(user, _)| user.clone());
        let of = |(user, rules): (String, Vec<ApprovalRule>)| {
            let shown = |rule| Shown::of(&user, rule, &registry);
            rules.into_iter().map(shown).collect::<Vec<_>>()
        };
        RuleList { rules: people.into_iter().flat_map(of).collect(), next }
    };
    identity.read_json(people, shown).await
}

/// Whose rule is revoked; the caller's where it is not said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Owner {
    user: Option<String>,
}

fn revoke_operation() -> Operation {
    Operation::new(
        Method::DELETE,
        "Approvals",
        "revoke_approval_rule",
        "Revoke what the user has allowed beforehand",
    )
    .details("It holds from the next call on. Admins revoke what others have allowed.")
    .path("id", "The rule's id.")
    .query("user", "Whose it is; the user's own where it is not said.")
    .answers_nothing(204, "It is revoked.")
    .refuses(400, "A query parameter is unknown (`invalid_request_error`).")
    .refuses(403, "The user is not an admin, and the rule is another's (`permission_denied`).")
    .refuses(404, "The user has no such rule (`approval_rule_not_found`).")
}

async fn revoke(
    Extension(identity): Extension<Identity>,
    Name(id): Name,
    QueryParameters(Owner { user }): QueryParameters<Owner>,
) -> Result<StatusCode, ApiError> {
    let user = user.filter(|user| !user.is_empty()).unwrap_or_else(|| identity.caller.user.clone());
    let is_own = user == identity.caller.user;
    if !is_own {
        identity.require(Permission::Admin, "revoking what others have allowed beforehand")?;
    }
    // What is not there leaves no record, however often it is asked for.
    let rules = identity.registry.approval_rules(&user).await?;
    let is_there = rules.iter().any(|rule| rule.id == id);
    let is_revoked = match (is_there, is_own) {
        (false, _) => false,
        (true, true) => revoke_by_id(&identity, &id).await?,
        (true, false) => {
            let revoke = identity.registry.revoke_approval_rule(&user, &id);
            let about = json!({"rule": id, "user": user});
            admin::change(&identity, "approval rule remove", about, revoke).await?.is_some()
        }
    };
    if !is_revoked {
        return Err(ApiError::not_found(
            "approval_rule_not_found",
            format!("there is no rule `{id}` of {user}"),
        ));
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Revokes a rule of the caller; false where there is none of that id.
pub(in crate::server) async fn revoke_by_id(identity: &Identity, id: &str) -> Result<bool, ApiError> {
    let revoke = identity.registry.revoke_approval_rule(&identity.caller.user, id);
    Ok(audited(identity, "approval rule remove", json!({"rule": id}), revoke).await?.is_some())
}

/// Keeps what the caller wants remembered of an approval, and gives the rule where it is a new one.
pub(in crate::server) async fn keep(
    app: &App,
    identity: &Identity,
    approval: &Approval,
    kind: RuleKind,
) -> Result<Option<ApprovalRule>, ApiError> {
    let Identity { registry, caller, .. } = identity;
    if approval.user != caller.user || approval.via != caller.via {
        return Err(not_remembered("only the person whose call it is can have it remembered"));
    }
    let rule = registry.rule_of_approval(&approval.id, &caller.user, kind).await?;
    if let RuleScope::Chat { chat } = &rule.scope
        && !chats::is_kept(app, identity, chat).await?
    {
        // Nobody would say when that chat is over.
        return Err(not_remembered("the chat is not one that this server keeps"));
    }
    let about = json!({"rule": rule.id, "tool": rule.tool, "scope": kind, "approval": approval.id});
    let keep = registry.keep_approval_rule(&caller.user, rule.clone());
    Ok(audited(identity, "approval rule add", about, keep).await?.then_some(rule))
}

/// Allows the calls of the caller that wait already and that a new rule allows: nobody wants to say it again of each.
pub(in crate::server) async fn allow_waiting(identity: &Identity, rule: &ApprovalRule) {
    let Identity { registry, caller, .. } = identity;
    let waiting = registry.waiting_allowed_by(&caller.user, rule).await;
    let waiting = waiting.inspect_err(|cause| tracing::warn!(%cause, "waiting_calls_not_allowed"));
    for approval in waiting.unwrap_or_default() {
        let yes = ApprovalAnswer {
            approve: true,
            by: caller.user.clone(),
            reason: None,
            content: None,
            arguments: None,
        };
        // One that was answered meanwhile is as it was answered.
        match answer_approval(registry, caller, Origin::Http, &approval, yes).await {
            Ok(Ok(_)) => {}
            Ok(Err(cause)) => tracing::debug!(id = approval.id, %cause, "waiting_call_not_allowed"),
            Err(cause) => drop(not_audited(&cause)),
        }
    }
}

pub(in crate::server) fn not_remembered(why: &str) -> ApiError {
    let message = format!("this cannot be remembered: {why}");
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "cannot_be_remembered", message)
}

impl From<RuleError> for ApiError {
    fn from(fault: RuleError) -> Self {
        match fault {
            RuleError::Unknown => Self::not_found("approval_not_found", fault.to_string()),
            RuleError::Closed => Self::new(StatusCode::CONFLICT, "approval_closed", fault.to_string()),
            RuleError::NotOffered => not_remembered("`remember` of the approval says what can be"),
            RuleError::Full => Self::new(StatusCode::CONFLICT, "approval_rules_full", fault.to_string()),
            RuleError::Store(cause) => cause.into(),
            _ => Self::internal(fault.to_string()),
        }
    }
}
