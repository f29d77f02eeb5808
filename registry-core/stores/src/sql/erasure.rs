//! Erases what is kept of a person.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use registry_core::{
    guard::audit::{
        chain::link,
        erasure::{self, RecordPlace, SignErasure},
    },
    store::{StoreError, StoreResult},
};

use super::{Row, SqlStore, Statement, Work, approvals, conversations, statement};

/// What goes with a user who is removed. The responses go with their conversations.
pub(super) const OF_A_USER: [&str; 9] = [
    "users",
    "conversations",
    "transcripts",
    "files",
    "tool_state",
    "approvals",
    "chats",
    "sessions",
    "connections",
];
/// What goes beside that with a person who is erased.
const OF_A_PERSON: [&str; 3] = ["api_keys", "jobs", "call_counts"];

/// Deletes what a table has of a person, and gives a row for each.
fn deletion(table: &str, tenant: &str, user: &str) -> Statement {
    let (column, user) = match table {
        "users" => ("id", user.into()),
        "approvals" => ("asker", approvals::asker(tenant, user)),
        _ => ("user_id", user.into()),
    };
    statement!(
        format!("DELETE FROM {table} WHERE tenant = $1 AND {column} = $2 RETURNING tenant"),
        tenant,
        user
    )
}

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
        let before = self.shared.database.before_erasing();
        let tables = [&OF_A_USER[..], &OF_A_PERSON].concat();
        let deleted = self.delete_of(tenant, user, before, &tables).await?;
        self.overwrite().await;
        Ok(Erased {
            was_known: deleted("users") > 0,
            responses: deleted("responses"),
            transcripts: deleted("transcripts"),
            files: deleted("files"),
            values: deleted("tool_state"),
            jobs: deleted("jobs"),
            approvals: deleted("approvals"),
            keys: deleted("api_keys"),
            chats: deleted("chats"),
            sessions: deleted("sessions"),
            connections: deleted("connections"),
        })
    }

    /// Deletes what these tables have of a person, behind other statements: all or none. Gives how many rows there were, by table.
    pub(super) async fn delete_of(
        &self,
        tenant: &str,
        user: &str,
        before: Vec<Statement>,
        tables: &[&'static str],
    ) -> StoreResult<impl Fn(&str) -> usize> {
        let ahead = before.len();
        let deletions = tables.iter().map(|table| deletion(table, tenant, user));
        let all = before.into_iter().chain([conversations::count_of(tenant, user)]).chain(deletions);
        // What has no user is shared by all, and so is nobody's.
        let all = if user.is_empty() { Vec::new() } else { all.collect() };
        let mut rows = self.change_all(all).await?.into_iter().skip(ahead);
        let responses = rows.next().and_then(|mut count| count.pop()).map_or(Ok(0), |mut row| row.count());
        let responses = responses.map_err(|error| self.named(error))?;
        let counts = tables.iter().copied().zip(rows.map(|rows| rows.len()));
        let deleted: BTreeMap<&str, usize> = counts.chain([("responses", responses)]).collect();
        Ok(move |table: &str| deleted.get(table).copied().unwrap_or_default())
    }

    /// Takes what is personal out of the records of a person's calls, in the chains of all servers, and gives how many there were. `sign`
    /// vouches for what is left.
    ///
    /// # Errors
    /// When the store fails, or a record cannot be read. Some records may then be erased and others not; the next call goes on. Also when one
    /// is not what was written; all others are erased.
    pub async fn erase_records(
        &self,
        tenant: &str,
        user: &str,
        at: Timestamp,
        sign: &SignErasure<'_>,
    ) -> StoreResult<usize> {
        let sql = "SELECT position, server, seq, previous, sha256, record FROM audit \
                   WHERE tenant = $1 AND user_id = $2 AND position > $3 ORDER BY position LIMIT $4";
        let (mut after, mut erased, mut changed) = (i64::MIN, 0, None);
        loop {
            let read = |mut row: Row| {
                let (position, server, seq) = (row.int()?, row.text()?, row.count::<u64>()?);
                Ok((position, server, seq, row.text()?, row.text()?, row.text()?))
            };
            let page = self.read(statement!(sql, tenant, user, after, PAGE), read).await?;
            let Some((last, ..)) = page.last() else { break };
            after = *last;
            let mut changes = self.shared.database.before_erasing();
            for (position, server, seq, previous, sha256, record) in &page {
                if !erasure::is_erased(record) && link(previous, *seq, record) != **sha256 {
                    changed.get_or_insert_with(|| (Arc::clone(server), *seq));
                    continue;
                }
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
        match changed {
            None => Ok(erased),
            Some((server, seq)) => Err(self.named(StoreError::corrupt(format!(
                "record {seq} in the audit of {server} is not what was written, so nothing of it was erased, which would vouch for it: \
                 see `toolrack audit verify`"
            )))),
        }
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
