//! What persons have allowed beforehand.

use super::Registry;
use crate::{
    guard::{
        approval::{Approval, ApprovalState},
        rule::{ApprovalRule, RuleError, RuleKind, Rules},
    },
    id::random_id,
    store::StoreError,
};

impl Registry {
    /// The rule that would be remembered of an approval that waits, for the person who is asked.
    ///
    /// # Errors
    /// When there is no such approval of that user, it is not open, this was not offered with it, or the store fails.
    pub async fn rule_of_approval(
        &self,
        id: &str,
        user: &str,
        kind: RuleKind,
    ) -> Result<ApprovalRule, RuleError> {
        let approval = self.approval(id).await?.filter(|approval| approval.user == user);
        let approval = approval.ok_or(RuleError::Unknown)?;
        let now = self.clock().now();
        if approval.state != ApprovalState::Pending || !approval.is_open(now) {
            return Err(RuleError::Closed);
        }
        let scope = approval.remember.into_iter().find(|scope| scope.kind() == kind);
        Ok(ApprovalRule {
            id: random_id().map_err(StoreError::unavailable)?,
            tool: approval.tool,
            tool_sha256: approval.tool_sha256,
            via: approval.via,
            scope: scope.ok_or(RuleError::NotOffered)?,
            made_at: now,
        })
    }

    /// Keeps a rule of a user, for calls from now on; false where there is one already that allows the same.
    ///
    /// # Errors
    /// When the user has too many rules, or the store fails.
    pub async fn keep_approval_rule(&self, user: &str, rule: ApprovalRule) -> Result<bool, RuleError> {
        self.rules(user).add(rule).await
    }

    /// The approvals of a user that wait while a rule allows their calls by now, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn waiting_allowed_by(
        &self,
        user: &str,
        rule: &ApprovalRule,
    ) -> Result<Vec<Approval>, StoreError> {
        let mut waiting = self.pending_approvals_of(user).await?;
        waiting.retain(|approval| rule.allows_waiting(approval));
        Ok(waiting)
    }

    /// What a user has allowed beforehand, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn approval_rules(&self, user: &str) -> Result<Vec<ApprovalRule>, StoreError> {
        self.rules(user).all().await
    }

    /// What the users behind one have allowed beforehand, in the order of their ids, each with the rules, oldest first: of
    /// [`MAX_PEOPLE`](crate::guard::rule::MAX_PEOPLE) users at most. For admins.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn approval_rules_of_users(
        &self,
        after: &str,
    ) -> Result<Vec<(String, Vec<ApprovalRule>)>, StoreError> {
        Rules::of_people(self.shared.common.state.as_ref(), &self.shared.tenant, after).await
    }

    /// Whether calls are made by a rule now: that rules are on, and its tool is still there as it was.
    pub fn applies(&self, rule: &ApprovalRule) -> bool {
        self.shared.common.guards.approval_rules
            && self.get(&rule.tool).is_some_and(|tool| rule.is_about(&tool))
    }

    /// Revokes a rule of a user at once; `None` if there is none of that id.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn revoke_approval_rule(
        &self,
        user: &str,
        id: &str,
    ) -> Result<Option<ApprovalRule>, RuleError> {
        Ok(self.rules(user).remove(|rule| rule.id == id).await?.pop())
    }

    /// Forgets the rules of a user that are about a chat, which is gone.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn forget_chat_rules(&self, user: &str, chat: &str) -> Result<usize, RuleError> {
        use crate::guard::rule::RuleScope::Chat;
        let is_of = |rule: &ApprovalRule| matches!(&rule.scope, Chat { chat: of } if of == chat);
        Ok(self.rules(user).remove(is_of).await?.len())
    }

    fn rules(&self, user: &str) -> Rules {
        Rules::of(&self.shared.common.state, &self.shared.tenant, user)
    }
}
