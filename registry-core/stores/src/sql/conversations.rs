//! Conversations. Their responses go with them, by the foreign key.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Row, SqlStore, Statement, Value, statement, transcripts};
use registry_core::store::{
    ConversationError, ConversationLimits, ConversationStore, Shelf, StoreResult, StoredResponse,
    StoredTranscript, TranscriptLimits,
};

/// So many conversations that have expired are deleted in one statement, so that nobody waits long for it.
const SWEPT_AT_ONCE: i64 = 256;

/// A response of this id whose conversation was used after this time.
const FIND: &str = "FROM responses r JOIN conversations c \
                    ON c.tenant = r.tenant AND c.user_id = r.user_id AND c.id = r.conversation \
                    WHERE r.tenant = $1 AND r.user_id = $2 AND r.id = $3 AND c.used_at > $4";

const BEGIN: &str =
    "INSERT INTO conversations (tenant, user_id, id, used_at, size) VALUES ($1, $2, $3, $4, 0)";

/// Adds a response to the conversation of the one before, or to that of its own id where there is none before.
const ADD: &str = "INSERT INTO responses (tenant, user_id, id, conversation, previous, model, created_at, size, messages, given)
    SELECT $1, $2, $3, id, $4, $5, $6, $7, $8, $9 FROM conversations
    WHERE tenant = $1 AND user_id = $2 AND used_at > $10 AND size + $7 <= $11 AND id = CASE WHEN $4 = '' THEN $3
        ELSE (SELECT conversation FROM responses WHERE tenant = $1 AND user_id = $2 AND id = $4) END
    RETURNING id";

/// Counts a response, where it was added.
const COUNT: &str = "UPDATE conversations SET used_at = $4, size = size + $5
    WHERE tenant = $1 AND user_id = $2
    AND id = (SELECT conversation FROM responses WHERE tenant = $1 AND user_id = $2 AND id = $3)";

/// What stands before and behind [`FIND`]: the chain of a response from its last one on, until it is beyond a limit.
const CHAIN: [&str; 2] = [
    "WITH RECURSIVE chain (previous, messages, responses, bytes) AS (
    SELECT r.previous, r.messages, CAST(1 AS BIGINT), CAST(octet_length(r.messages) AS BIGINT) ",
    "
    UNION ALL
    SELECT r.previous, r.messages, chain.responses + 1, chain.bytes + octet_length(r.messages) FROM chain JOIN responses r
        ON r.tenant = $1 AND r.user_id = $2 AND r.id = chain.previous
        WHERE chain.responses <= $5 AND chain.bytes <= $6
) SELECT previous, bytes, messages FROM chain ORDER BY responses",
];

/// Deletes conversations beyond the user's limits, those that were not used for longest first, but not the one of this response. They are put
/// in order only where there are too many.
const MAKE_ROOM: &str = "WITH ranked AS MATERIALIZED (
    SELECT id, SUM(size) OVER newest AS bytes, ROW_NUMBER() OVER newest AS number
    FROM conversations WHERE tenant = $1 AND user_id = $2 AND
        (SELECT SUM(size) > $4 OR COUNT(*) > $5 FROM conversations WHERE tenant = $1 AND user_id = $2)
    WINDOW newest AS (ORDER BY
        CASE WHEN id = (SELECT conversation FROM responses WHERE tenant = $1 AND user_id = $2 AND id = $3) THEN 0 ELSE 1 END,
        used_at DESC, id DESC)
), beyond AS MATERIALIZED (SELECT id FROM ranked WHERE bytes > $4 OR number > $5)
DELETE FROM conversations WHERE tenant = $1 AND user_id = $2 AND id IN (SELECT id FROM beyond)";

fn expired(since: Timestamp) -> Statement {
    let sql = "DELETE FROM conversations WHERE (tenant, user_id, id) IN \
               (SELECT tenant, user_id, id FROM conversations WHERE used_at <= $1 ORDER BY used_at LIMIT $2) RETURNING id";
    statement!(sql, since, SWEPT_AT_ONCE)
}

/// How many responses the conversations of a user have.
pub(super) fn count_of(tenant: &str, user: &str) -> Statement {
    let count = "SELECT COUNT(*) FROM conversations c JOIN responses r \
                 ON r.tenant = c.tenant AND r.user_id = c.user_id AND r.conversation = c.id \
                 WHERE c.tenant = $1 AND c.user_id = $2";
    statement!(count, tenant, user)
}

fn response(mut row: Row) -> StoreResult<StoredResponse> {
    let (tenant, user, id, previous, model) =
        (row.string()?, row.string()?, row.string()?, row.string()?, row.string()?);
    let previous = Some(previous).filter(|previous| !previous.is_empty());
    let (created_at, messages, given) = (row.time()?, row.text()?, row.text()?);
    Ok(StoredResponse { id, tenant, user, previous, model, messages, given, created_at })
}

#[async_trait]
impl ConversationStore for SqlStore {
    async fn keep_response(
        &self,
        response: StoredResponse,
        now: Timestamp,
        limits: &ConversationLimits,
    ) -> Result<(), ConversationError> {
        let (size, max) = (response.size(), limits.max_user_bytes);
        if size > max {
            return Err(ConversationError::Full { max });
        }
        let StoredResponse { id, tenant, user, previous, model, messages, given, created_at } = response;
        let [tenant, user, id]: [Value; 3] = [tenant.into(), user.into(), id.into()];
        let (since, size, most) = (limits.since(now), size, max);
        let of_user = |sql, more: Vec<Value>| {
            Statement::new(sql, [tenant.clone(), user.clone()].into_iter().chain(more).collect())
        };
        let mut statements = vec![expired(since)];
        if previous.is_none() {
            statements.push(of_user(BEGIN.to_owned(), vec![id.clone(), now.into()]));
        }
        let previous: Value = previous.unwrap_or_default().into();
        let find = of_user(format!("SELECT r.id {FIND}"), vec![previous.clone(), since.into()]);
        if find.is_about_nothing() {
            return Err(ConversationError::Unknown);
        }
        let (created_at, messages) = (created_at.into(), messages.into());
        let row = vec![id.clone(), previous, model.into(), created_at, size.into(), messages, given.into()];
        let bounds = [since.into(), most.into()];
        let add = of_user(ADD.to_owned(), row.into_iter().chain(bounds).collect());
        let count = of_user(COUNT.to_owned(), vec![id.clone(), now.into(), size.into()]);
        let conversations = limits.max_user_conversations.max(1);
        let make_room = of_user(MAKE_ROOM.to_owned(), vec![id, most.into(), conversations.into()]);
        statements.extend([find, add, count, make_room]);

        let mut rows = self.write_all(statements).await?.into_iter().rev().skip(2);
        let (added, found) = (rows.next().unwrap_or_default(), rows.next().unwrap_or_default());
        match (added.is_empty(), found.is_empty()) {
            (false, _) => Ok(()),
            (true, true) => Err(ConversationError::Unknown),
            (true, false) => Err(ConversationError::Full { max }),
        }
    }

    async fn response(
        &self,
        tenant: &str,
        user: &str,
        id: &str,
        since: Timestamp,
    ) -> StoreResult<Option<StoredResponse>> {
        let sql = format!(
            "SELECT r.tenant, r.user_id, r.id, r.previous, r.model, r.created_at, r.messages, r.given {FIND}"
        );
        self.read_one(statement!(sql, tenant, user, id, since), response).await
    }

    async fn response_chain(
        &self,
        tenant: &str,
        user: &str,
        id: &str,
        since: Timestamp,
        limits: &ConversationLimits,
    ) -> Result<Vec<Arc<str>>, ConversationError> {
        let (responses, bytes) = (limits.max_chain_responses, limits.max_chain_bytes);
        let find = statement!(CHAIN.join(FIND), tenant, user, id, since, responses, bytes);
        let read = |mut row: Row| Ok((row.text()?, row.count::<u64>()?, row.text()?));
        let chain = self.read(find, read).await?;
        // Nothing comes before the first one; where something should, it is missing, unless it is the limit that has ended the chain.
        let (before_first, bytes, _) = chain.last().ok_or(ConversationError::Unknown)?;
        limits.check_chain(chain.len(), *bytes)?;
        if !before_first.is_empty() {
            return Err(ConversationError::Unknown);
        }
        Ok(chain.into_iter().rev().map(|(_, _, messages)| messages).collect())
    }

    async fn delete_response(&self, tenant: &str, user: &str, id: &str) -> StoreResult<bool> {
        let last = "DELETE FROM conversations WHERE tenant = $1 AND user_id = $2
            AND id = (SELECT conversation FROM responses WHERE tenant = $1 AND user_id = $2 AND id = $3)
            AND NOT EXISTS (SELECT 1 FROM responses r WHERE r.tenant = $1 AND r.user_id = $2
                AND r.conversation = conversations.id AND r.id <> $3)
            RETURNING id";
        let count = "UPDATE conversations SET size = conversations.size - r.size FROM responses r
            WHERE r.tenant = $1 AND r.user_id = $2 AND r.id = $3 AND conversations.tenant = r.tenant
            AND conversations.user_id = r.user_id AND conversations.id = r.conversation";
        let one = "DELETE FROM responses WHERE tenant = $1 AND user_id = $2 AND id = $3 RETURNING id";
        let statements = [last, count, one].map(|sql| statement!(sql, tenant, user, id)).into();
        Ok(self.write_all(statements).await?.iter().any(|rows| !rows.is_empty()))
    }

    async fn delete_expired(&self, since: Timestamp) -> StoreResult<()> {
        while !self.run(expired(since)).await?.is_empty() {}
        Ok(())
    }

    async fn keep_transcript(
        &self,
        shelf: Shelf,
        transcript: StoredTranscript,
        since: Timestamp,
        limits: &TranscriptLimits,
    ) -> StoreResult<()> {
        let statements = transcripts::keep(shelf, transcript, since, limits);
        self.write_all(statements).await.map(drop)
    }

    async fn transcripts(
        &self,
        shelf: Shelf,
        tenant: &str,
        user: &str,
        keys: &[String],
        since: Timestamp,
        limits: &TranscriptLimits,
    ) -> StoreResult<Vec<StoredTranscript>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let find = transcripts::find(shelf, tenant, user, keys, since, limits);
        self.read(find, transcripts::transcript).await
    }

    async fn use_transcripts(
        &self,
        tenant: &str,
        user: &str,
        keys: &[String],
        now: Timestamp,
    ) -> StoreResult<()> {
        let note = transcripts::note_use(tenant, user, keys, now);
        self.run(note).await.map(drop)
    }

    async fn delete_transcripts(&self, tenant: &str, user: &str, keys: &[String]) -> StoreResult<()> {
        let delete = transcripts::delete(Shelf::Transcripts, tenant, user, keys);
        self.run(delete).await.map(drop)
    }

    async fn sweep_transcripts(
        &self,
        shelf: Shelf,
        since: Timestamp,
        max_total_bytes: u64,
    ) -> StoreResult<()> {
        while !self.run(transcripts::expired(shelf, since)).await?.is_empty() {}
        self.run(transcripts::make_room_for_all(shelf, max_total_bytes)).await.map(drop)
    }
}
