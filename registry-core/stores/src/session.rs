//! What a session on a PostgreSQL server begins with.

use std::io;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use crate::sql::SEARCH;

/// What a client that stands still or is gone may keep the others waiting for: a transaction in which it says nothing is ended before
/// those who wait for its locks give up, and a statement before [the writer](crate::sql) gives up waiting, so that it does not go on without
/// it. What the URL says of these itself stays.
const LIMITED: &str = "
    SELECT current_setting('transaction_read_only'), count(set_config(name, ours, false))
    FROM (VALUES
        ('idle_in_transaction_session_timeout', '10s'),
        ('lock_timeout', '15s'),
        ('statement_timeout', '25s'),
        ('tcp_keepalives_idle', '30'),
        ('tcp_keepalives_interval', '10'),
        ('tcp_keepalives_count', '3')
    ) AS limits (name, ours) JOIN pg_settings USING (name) WHERE source <> 'client'";

/// What lifts the limits of time, for statements that take as long as the tables are large.
pub(crate) const UNLIMITED: &str =
    "SELECT set_config('lock_timeout', '0', false), set_config('statement_timeout', '0', false)";

/// Limits a new session, and refuses one in which nothing can be written: after a failover its server is a standby.
///
/// # Errors
/// Also where the server does not answer.
pub(crate) async fn limit(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let (read_only, _): (String, i64) = sqlx::query_as(LIMITED).fetch_one(connection).await?;
    match read_only.as_str() {
        "off" => Ok(()),
        _ => Err(sqlx::Error::Io(io::Error::other("it is read-only now, as a standby is"))),
    }
}

/// Limits a new session in which searches are made, whatever the URL says of the time of statements.
///
/// # Errors
/// As those of [`limit`].
pub(crate) async fn limit_searches(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    limit(connection).await?;
    let limited = format!("SET statement_timeout = '{}s'", SEARCH.as_secs());
    connection.execute(AssertSqlSafe(limited)).await.map(drop)
}
