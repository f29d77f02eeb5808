//! Statements about transcripts, and about the files of results, which are kept in a table of the same shape.

use jiff::Timestamp;
use registry_core::store::{Shelf, StoreError, StoredTranscript, TranscriptLimits};

use super::{Row, Statement, Value};

/// A statement about transcripts, for what is kept on a shelf.
fn of(shelf: Shelf, sql: impl AsRef<str>, values: Vec<Value>) -> Statement {
    let table = match shelf {
        Shelf::Transcripts => "transcripts",
        Shelf::Files => "files",
    };
    Statement::new(sql.as_ref().replace("transcripts", table), values)
}

/// So many transcripts that have expired are deleted in one statement, so that nobody waits long for it.
const SWEPT_AT_ONCE: i64 = 256;

const ADD: &str = "INSERT INTO transcripts (tenant, user_id, key, other_key, used_at, size, messages) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// Deletes transcripts beyond the user's limits, those that were not used for longest first. They are put in order only where there are
/// too many, and then so many are deleted that it is a while until there are again.
const MAKE_ROOM: &str = "WITH ranked AS MATERIALIZED (
    SELECT key, SUM(size) OVER newest AS bytes, ROW_NUMBER() OVER newest AS number
    FROM transcripts WHERE tenant = $1 AND user_id = $2 AND
        (SELECT SUM(size) > $3 OR COUNT(*) > $4 FROM transcripts WHERE tenant = $1 AND user_id = $2)
    WINDOW newest AS (ORDER BY used_at DESC, key DESC)
), beyond AS MATERIALIZED (SELECT key FROM ranked WHERE bytes > $5 OR number > $6)
DELETE FROM transcripts WHERE tenant = $1 AND user_id = $2 AND key IN (SELECT key FROM beyond)";

/// The same for those of all users.
const MAKE_ROOM_FOR_ALL: &str = "WITH ranked AS MATERIALIZED (
    SELECT tenant, user_id, key, SUM(size) OVER (ORDER BY used_at DESC, tenant, user_id, key) AS bytes
    FROM transcripts WHERE (SELECT SUM(size) > $1 FROM transcripts)
), beyond AS MATERIALIZED (SELECT tenant, user_id, key FROM ranked WHERE bytes > $1)
DELETE FROM transcripts WHERE (tenant, user_id, key) IN (SELECT tenant, user_id, key FROM beyond)";

/// Selects columns of the transcripts that have one of so many keys, which are the parameters from the one of this number on. By each
/// kind of key apart, so that the database finds them by their keys and does not look through all that a user has.
fn of_keys(columns: &str, first: usize, keys: usize) -> String {
    let numbers: Vec<String> = (first..first + keys).map(|number| format!("${number}")).collect();
    let list = numbers.join(", ");
    ["key", "other_key"]
        .map(|key| {
            format!(
                "SELECT {columns} FROM transcripts WHERE tenant = $1 AND user_id = $2 AND {key} IN ({list})"
            )
        })
        .join(" UNION ")
}

/// As many keys as a power of two, so that few different statements have to be prepared.
fn padded(keys: &[String]) -> Vec<Value> {
    let missing = keys.len().next_power_of_two() - keys.len();
    let last = keys.last().into_iter().cycle().take(missing);
    keys.iter().chain(last).map(|key| key.as_str().into()).collect()
}

pub(super) fn expired(shelf: Shelf, since: Timestamp) -> Statement {
    let sql = "DELETE FROM transcripts WHERE (tenant, user_id, key) IN \
               (SELECT tenant, user_id, key FROM transcripts WHERE used_at <= $1 ORDER BY used_at LIMIT $2) RETURNING key";
    of(shelf, sql, vec![since.into(), SWEPT_AT_ONCE.into()])
}

pub(super) fn make_room_for_all(shelf: Shelf, max_total_bytes: u64) -> Statement {
    of(shelf, MAKE_ROOM_FOR_ALL, vec![max_total_bytes.into()])
}

pub(super) fn keep(
    shelf: Shelf,
    transcript: StoredTranscript,
    since: Timestamp,
    limits: &TranscriptLimits,
) -> Vec<Statement> {
    let size = transcript.size();
    let StoredTranscript { tenant, user, key, other_key, messages, used_at } = transcript;
    let replaced = delete(shelf, &tenant, &user, &[key.clone(), other_key.clone()]);
    let [tenant, user]: [Value; 2] = [tenant.into(), user.into()];
    let row = vec![
        tenant.clone(),
        user.clone(),
        key.into(),
        other_key.into(),
        used_at.into(),
        size.into(),
        messages.into(),
    ];
    let left = limits.after_making_room();
    let most =
        [limits.max_user_bytes, limits.max_user_transcripts, left.max_user_bytes, left.max_user_transcripts];
    let bounds = [tenant, user].into_iter().chain(most.map(Value::from)).collect();
    vec![expired(shelf, since), replaced, of(shelf, ADD, row), of(shelf, MAKE_ROOM, bounds)]
}

/// The transcripts of keys that were used last, up to so many bytes. The sizes are added up before any messages are read.
pub(super) fn find(
    shelf: Shelf,
    tenant: &str,
    user: &str,
    keys: &[String],
    since: Timestamp,
    limits: &TranscriptLimits,
) -> Statement {
    let keys = padded(keys);
    let sql = format!(
        "WITH of_keys AS MATERIALIZED ({}), found AS MATERIALIZED (
            SELECT key, SUM(size) OVER (ORDER BY used_at DESC, key DESC) AS bytes FROM of_keys WHERE used_at > $3
        ) SELECT t.tenant, t.user_id, t.key, t.other_key, t.messages, t.used_at FROM transcripts t
        WHERE t.tenant = $1 AND t.user_id = $2 AND t.key IN (SELECT key FROM found WHERE bytes <= $4)",
        of_keys("key, used_at, size", 5, keys.len())
    );
    let values = [tenant.into(), user.into(), since.into(), limits.max_read_bytes.into()];
    of(shelf, sql, values.into_iter().chain(keys).collect())
}

pub(super) fn transcript(mut row: Row) -> Result<StoredTranscript, StoreError> {
    let (tenant, user, key, other_key) = (row.string()?, row.string()?, row.string()?, row.string()?);
    Ok(StoredTranscript { tenant, user, key, other_key, messages: row.text()?, used_at: row.time()? })
}

pub(super) fn note_use(tenant: &str, user: &str, keys: &[String], now: Timestamp) -> Statement {
    let keys = padded(keys);
    let sql = format!(
        "UPDATE transcripts SET used_at = $3 WHERE tenant = $1 AND user_id = $2 AND key IN ({})",
        of_keys("key", 4, keys.len())
    );
    let values = [tenant.into(), user.into(), now.into()];
    Statement::new(sql, values.into_iter().chain(keys).collect())
}

pub(super) fn delete(shelf: Shelf, tenant: &str, user: &str, keys: &[String]) -> Statement {
    let keys = padded(keys);
    let sql = format!(
        "DELETE FROM transcripts WHERE tenant = $1 AND user_id = $2 AND key IN ({})",
        of_keys("key", 3, keys.len())
    );
    of(shelf, sql, [tenant.into(), user.into()].into_iter().chain(keys).collect())
}
