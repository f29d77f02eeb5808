//! The calls that wait for a person.

use super::{Common, Registry};
use crate::{
    guard::approval::{AnswerError, Approval, ApprovalAnswer},
    store::StoreError,
};

impl Registry {
    /// The approvals that wait for an answer, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn pending_approvals(&self) -> Result<Vec<Approval>, StoreError> {
        let common = &self.shared.common;
        common.guards.approvals.pending(&self.shared.tenant, common.clock.now()).await
    }

    /// The approval of that id, whatever has become of it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn approval(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        self.shared.common.guards.approvals.get(&self.shared.tenant, id).await
    }

    /// Answers an approval. The call that waits for it goes on at once. Who may answer is up to the entry point.
    ///
    /// # Errors
    /// When there is none, it is not open any more, or the store fails.
    pub async fn answer_approval(&self, id: &str, answer: ApprovalAnswer) -> Result<Approval, AnswerError> {
        let Common { guards, clock, .. } = self.shared.common.as_ref();
        let answered = guards.approvals.answer(&self.shared.tenant, id, answer, clock.now()).await;
        guards.answered.notify_waiters();
        answered
    }
}
