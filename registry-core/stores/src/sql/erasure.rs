//! Erases what is kept of a person.

use jiff::Timestamp;
use registry_core::{
    guard::audit::erasure::{self, RecordPlace, SignErasure},
    store::{StoreError, StoreResult},
};

use super::{
    Row, SqlStore, Work, approvals, chats, connections, conversations, state, statement, transcripts,
};

/// So many records of the audit are read, and written, at a time.
const PAGE: i64 = 200;

/// What has been erased of a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Whether the person was a stored user.
    pub was_known: bool,
    /// How many responses the conversations had.
    pub responses: usize,
    /// How many transcripts of turns.
    pub transcripts: usize,
    /// How many files of results.
    pub files: usize,
    /// How many values of tools.
    pub values: usize,
    /// How many scheduled calls.
    pub jobs: usize,
    /// How many approvals and questions, answered or not.
    pub approvals: usize,
    /// How many keys.
    pub keys: usize,
    /// How many chats.
    pub chats: usize,
    /// How many browsers the person was signed in with.
    pub sessions: usize,
    /// How many connections to accounts elsewhere.
    pub connections: usize,
}

impl Erased {
    /// Whether there was anything.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl SqlStore {
    /// Erases what is kept of a person in a tenant: all of it or nothing. The person need not be a stored user. What the audit has of the
    /// person is for [`erase_records`](Self::erase_records).
    ///
    /// # Errors
    /// When the store fails.
    pub async fn erase_user(&self, tenant: &str, user: &str) -> StoreResult<Erased> {
        let of_user = |sql: &'static str| statement!(sql, tenant, user);
        let [responses, conversations] = conversations::delete_of(tenant, user);
        let counted = [
            of_user("DELETE FROM users WHERE tenant = $1 AND id = $2 RETURNING id"),
            transcripts::delete_of(transcripts::TRANSCRIPTS, tenant, user),
            transcripts::delete_of(transcripts::FILES, tenant, user),
            state::delete_of(tenant, user),
            of_user("DELETE FROM jobs WHERE tenant = $1 AND user_id = $2 RETURNING id"),
            approvals::delete_of(tenant, user),
            of_user("DELETE FROM api_keys WHERE tenant = $1 AND user_id = $2 RETURNING id"),
            chats::delete_of(tenant, user),
            of_user("DELETE FROM sessions WHERE tenant = $1 AND user_id = $2 RETURNING id"),
            connections::delete_of(tenant, user),
        ];
        let uncounted =
            [conversations, of_user("DELETE FROM call_counts WHERE tenant = $1 AND user_id = $2")];
        let before = self.shared.database.before_erasing();
        let ahead = before.len();
        let all = before.into_iter().chain([responses]).chain(counted).chain(uncounted);
        let mut rows = self.change_all(all.collect()).await?.into_iter().skip(ahead);
        let responses = conversations::counted(rows.next()).map_err(|error| self.named(error))?;
        let mut deleted = || rows.next().unwrap_or_default().len();
        let erased = Erased {
            was_known: deleted() > 0,
            responses,
            transcripts: deleted(),
            files: deleted(),
            values: deleted(),
            jobs: deleted(),
            approvals: deleted(),
            keys: deleted(),
            chats: deleted(),
            sessions: deleted(),
            connections: deleted(),
        };
        self.overwrite().await;
        Ok(erased)
    }

    /// Takes what is personal out of the records of a person's calls, in the chains of all servers, and gives how many there were. `sign`
    /// vouches for what is left.
    ///
    /// # Errors
    /// When the store fails, or a record cannot be read. Some records may then be erased and others not; the next call goes on.
    pub async fn erase_records(
        &self,
        tenant: &str,
        user: &str,
        at: Timestamp,
        sign: &SignErasure<'_>,
    ) -> StoreResult<usize> {
        let sql = "SELECT position, server, seq, sha256, record FROM audit \
                   WHERE tenant = $1 AND user_id = $2 AND position > $3 ORDER BY position LIMIT $4";
        let (mut after, mut erased) = (i64::MIN, 0);
        loop {
            let read =
                |mut row: Row| Ok((row.int()?, row.text()?, row.count::<u64>()?, row.text()?, row.text()?));
            let page = self.read(statement!(sql, tenant, user, after, PAGE), read).await?;
            let Some((last, ..)) = page.last() else { break };
            after = *last;
            let mut changes = self.shared.database.before_erasing();
            for (position, server, seq, sha256, record) in &page {
                let place = RecordPlace { server, seq: *seq, sha256 };
                let left = erasure::erase(record, place, at, sign);
                let Some(left) = left.map_err(|error| self.named(error))? else { continue };
                erased += 1;
                let sql = "UPDATE audit SET record = $1 WHERE position = $2";
                changes.push(statement!(sql, left, *position));
            }
            self.write(Work::Statements(changes)).await?;
        }
        self.overwrite().await;
        Ok(erased)
    }

    /// Has what was erased leave the files of the database too, as far as nobody else holds it up.
    async fn overwrite(&self) {
        let Some(statement) = self.shared.database.after_erasing() else { return };
        if let Err(cause) = self.read(statement, |_| Ok(())).await {
            let cause: StoreError = cause;
            tracing::warn!(%cause, "erased_data_not_overwritten_yet");
        }
    }
}
