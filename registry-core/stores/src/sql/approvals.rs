//! A person's word on a call.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Row, SqlStore, Statement, Value, statement};
use registry_core::{
    guard::{
        approval::{AnswerError, Approval, ApprovalAnswer, ApprovalState, Approvals, MAX_CLOSED},
        audit::hash_arguments,
    },
    store::{StoreError, StoreResult},
};

/// How long one that is closed is still known, for somebody who asks what became of it.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);

/// `document` is the approval as it was asked for, `answer` the state that a person gave it. `state` is what has become of it.
const COLUMNS: &str = "state, answer, document";

fn read(mut row: Row) -> StoreResult<Approval> {
    let (state, answer, document) = (row.text()?, row.text()?, row.text()?);
    let broken = |error| StoreError::corrupt(format!("an approval cannot be read: {error}"));
    let mut approval: Approval = serde_json::from_str(&document).map_err(broken)?;
    if &*state == "withdrawn" {
        approval.state = ApprovalState::Withdrawn;
    } else if &*state != "pending" {
        approval.state = match serde_json::from_str(&answer).map_err(broken)? {
            ApprovalState::Approved { by, arguments } if &*state == "used" => {
                ApprovalState::Used { by, arguments }
            }
            answered => answered,
        };
    }
    Ok(approval)
}

fn state_and_answer(state: &ApprovalState) -> Result<[Value; 2], StoreError> {
    let name = match state {
        ApprovalState::Pending => return Ok(["pending".into(), "".into()]),
        ApprovalState::Approved { .. } | ApprovalState::Answered { .. } => "approved",
        ApprovalState::Declined { .. } => "declined",
        ApprovalState::Denied { .. } => "denied",
        ApprovalState::Used { .. } => "used",
        ApprovalState::Withdrawn => return Ok(["withdrawn".into(), "".into()]),
    };
    Ok([name.into(), serde_json::to_string(state).map_err(StoreError::invalid)?.into()])
}

/// The same for every approval about the same call.
fn call_of(approval: &Approval) -> String {
    let Approval { tenant, user, tool, version, arguments_sha256, scope, .. } = approval;
    hash_arguments(&json!([tenant, user, tool, version, arguments_sha256, scope]))
}

/// The same for every approval of the same user. A hash, since a database has not a place for every name.
pub(super) fn asker(tenant: &str, user: &str) -> String {
    hash_arguments(&json!([tenant, user]))
}

#[async_trait]
impl Approvals for SqlStore {
    async fn request(&self, wanted: Approval, most: usize) -> StoreResult<Option<Approval>> {
        let now = wanted.requested_at;
        let long_ago = now.checked_sub(REMEMBERED).unwrap_or(Timestamp::MIN);
        let call = call_of(&wanted);
        let [state, answer] = state_and_answer(&wanted.state)?;
        let document = serde_json::to_string(&wanted).map_err(StoreError::invalid)?;
        let forget = statement!("DELETE FROM approvals WHERE expires_at <= $1", long_ago);
        let insert = "INSERT INTO approvals (tenant, id, call, requested_at, expires_at, state, answer, document, asker) \
                      SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE NOT EXISTS (SELECT 1 FROM approvals \
                      WHERE call = $3 AND state IN ('pending', 'approved', 'declined') AND expires_at > $4) \
                      AND (SELECT COUNT(*) FROM approvals WHERE asker = $9 AND state = 'pending' AND expires_at > $4) < $10";
        let Approval { tenant, id, user, expires_at, .. } = &wanted;
        let give_way = "DELETE FROM approvals WHERE asker = $1 AND (tenant, id) IN (SELECT tenant, id FROM approvals WHERE asker = $1 \
                        AND (state <> 'pending' OR expires_at <= $2) \
                        ORDER BY requested_at DESC, id LIMIT 1000 OFFSET $3)";
        let give_way = statement!(give_way, asker(tenant, user), now, MAX_CLOSED);
        let insert = statement!(
            insert,
            tenant.as_str(),
            id.as_str(),
            call.as_str(),
            now,
            *expires_at,
            state,
            answer,
            document,
            asker(tenant, user),
            most
        );
        let find = format!(
            "SELECT {COLUMNS} FROM approvals WHERE call = $1 AND state IN ('pending', 'approved', 'declined') \
             AND expires_at > $2 ORDER BY requested_at LIMIT 1"
        );
        let find = statement!(find, call, now);
        let rows = self.write_statements(vec![forget, give_way, insert, find]).await?;
        match rows.into_iter().next() {
            Some(row) => read(row).map(Some).map_err(|error| self.named(error)),
            None if wanted.is_open(now) => Ok(None),
            // It had expired when it was asked for.
            None => Ok(Some(wanted)),
        }
    }

    async fn get(&self, tenant: &str, id: &str) -> StoreResult<Option<Approval>> {
        let sql = format!("SELECT {COLUMNS} FROM approvals WHERE tenant = $1 AND id = $2");
        self.read_one(statement!(sql, tenant, id), read).await
    }

    async fn pending(&self, tenant: &str, user: Option<&str>, now: Timestamp) -> StoreResult<Vec<Approval>> {
        let mut values: Vec<Value> = vec![tenant.into(), now.into()];
        values.extend(user.map(|user| asker(tenant, user).into()));
        let of_user = if user.is_some() { "AND asker = $3 " } else { "" };
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals WHERE tenant = $1 AND state = 'pending' AND expires_at > $2 \
             {of_user}ORDER BY requested_at, id"
        );
        self.read(Statement::new(sql, values), read).await
    }

    async fn answer(
        &self,
        tenant: &str,
        id: &str,
        answer: ApprovalAnswer,
        now: Timestamp,
    ) -> Result<Approval, AnswerError> {
        let [state, answer] = state_and_answer(&answer.into_state())?;
        let sql = format!(
            "UPDATE approvals SET state = $1, answer = $2 WHERE tenant = $3 AND id = $4 AND state = 'pending' \
             AND expires_at > $5 RETURNING {COLUMNS}"
        );
        let rows = self.run(statement!(sql, state, answer, tenant, id, now)).await?;
        match rows.into_iter().next() {
            Some(row) => Ok(read(row).map_err(|error| self.named(error))?),
            None => match self.get(tenant, id).await? {
                Some(_) => Err(AnswerError::Closed),
                None => Err(AnswerError::Unknown),
            },
        }
    }

    async fn withdraw(&self, tenant: &str, id: &str) -> StoreResult<()> {
        let sql = "UPDATE approvals SET state = 'withdrawn', answer = '' WHERE tenant = $1 AND id = $2 \
                   AND state IN ('pending', 'approved', 'declined')";
        self.run(statement!(sql, tenant, id)).await.map(drop)
    }

    async fn take(&self, tenant: &str, id: &str, now: Timestamp) -> StoreResult<bool> {
        let sql = "UPDATE approvals SET state = 'used' WHERE tenant = $1 AND id = $2 AND state = 'approved' \
                   AND expires_at > $3 RETURNING id";
        self.takes_effect(statement!(sql, tenant, id, now)).await
    }

    async fn forget_user(&self, tenant: &str, user: &str) -> StoreResult<usize> {
        let sql = "DELETE FROM approvals WHERE tenant = $1 AND asker = $2 RETURNING id";
        Ok(self.run(statement!(sql, tenant, asker(tenant, user))).await?.len())
    }

    async fn give_back(&self, tenant: &str, id: &str) -> StoreResult<()> {
        let sql = "UPDATE approvals SET state = 'approved' WHERE tenant = $1 AND id = $2 AND state = 'used'";
        self.run(statement!(sql, tenant, id)).await.map(drop)
    }
}
