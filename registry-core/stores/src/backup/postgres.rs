//! Tables of PostgreSQL.

use std::time::Duration;

use futures_util::TryStreamExt;
use serde_json::value::RawValue;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};

use super::Layout;
use crate::sql::failure;
use registry_core::store::StoreError;

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// So many rows, or so many bytes of them, are written in one statement.
const ROWS: usize = 256;
const BYTES: usize = 1 << 20;

/// Gives the rows of a backup, one after the other: the name of the table, and its row as a JSON object.
pub type BackupRows<'a> = dyn FnMut() -> std::io::Result<Option<(String, Box<RawValue>)>> + Send + 'a;

async fn connect(url: &str) -> Result<(PgConnection, String), StoreError> {
    let options: PgConnectOptions = url.parse().map_err(|error| {
        StoreError::invalid(format!("the URL of the database is not understood: {error}"))
    })?;
    let options = options.application_name("toolrack backup").disable_statement_logging();
    let name = format!(
        "PostgreSQL database {} on {}:{}",
        options.get_database().unwrap_or(options.get_username()),
        options.get_host(),
        options.get_port()
    );
    match tokio::time::timeout(CONNECT, PgConnection::connect_with(&options)).await {
        Ok(Ok(connection)) => Ok((connection, name)),
        Ok(Err(error)) => Err(failure(error).of(name)),
        Err(_) => Err(StoreError::unavailable("no answer in time").of(name)),
    }
}

/// The version of tables; `None` where there are none.
async fn version(connection: &mut PgConnection, layout: &Layout) -> Result<Option<usize>, sqlx::Error> {
    if !is_there(connection, layout.version_table).await? {
        return Ok(None);
    }
    let sql = format!("SELECT max(version) FROM {}", layout.version_table);
    let version: Option<i64> = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(connection).await?;
    Ok(version.and_then(|version| usize::try_from(version).ok()))
}

async fn is_there(connection: &mut PgConnection, table: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT to_regclass(quote_ident(current_schema()) || '.' || $1) IS NOT NULL";
    sqlx::query_scalar(sql).bind(table).fetch_one(connection).await
}

/// How large the tables are in the database, in bytes, without their indexes.
///
/// # Errors
/// When the database cannot be read.
pub async fn size_of_tables(url: &str, layouts: &[Layout]) -> Result<u64, StoreError> {
    let (mut connection, name) = connect(url).await?;
    let tables: Vec<&str> = layouts.iter().flat_map(Layout::tables).collect();
    let sql = "SELECT coalesce(sum(pg_table_size(to_regclass(quote_ident(current_schema()) || '.' || name))), 0)::bigint \
               FROM unnest($1::text[]) AS tables (name)";
    let size: Result<i64, _> = sqlx::query_scalar(sql).bind(tables).fetch_one(&mut connection).await;
    size.map(i64::cast_unsigned).map_err(|error| failure(error).of(name))
}

/// Gives all rows of the tables, as of one moment, while others may write to them: the name of the part, that of the table, and the row
/// as JSON on one line. The result has the parts that are there, with their versions.
///
/// # Errors
/// When the database cannot be read, or `write` fails.
pub async fn dump_tables(
    url: &str,
    layouts: &[Layout],
    write: &mut (dyn FnMut(&'static str, &str, &str) -> std::io::Result<()> + Send),
) -> Result<Vec<(&'static str, usize)>, StoreError> {
    let (mut connection, name) = connect(url).await?;
    let dumped = async {
        let mut transaction =
            connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let mut versions = Vec::new();
        for layout in layouts {
            let Some(version) = version(&mut transaction, layout).await? else { continue };
            versions.push((layout.name, version));
            for table in layout.tables() {
                if !is_there(&mut transaction, table).await? {
                    continue;
                }
                let sql = format!("SELECT row_to_json(it)::text FROM {table} AS it");
                let mut rows = sqlx::query_scalar::<_, String>(AssertSqlSafe(sql)).fetch(&mut *transaction);
                while let Some(row) = rows.try_next().await? {
                    write(layout.name, table, &row).map_err(sqlx::Error::Io)?;
                }
            }
        }
        Ok(versions)
    };
    dumped.await.map_err(|error| failure(error).of(name))
}

/// Puts rows into tables that are made for them, and brings these to the version that this program knows: all of it or nothing.
///
/// # Errors
/// [`Conflict`](registry_core::store::StoreErrorKind::Conflict) where the tables are there and may not be replaced, or servers use the
/// database. Otherwise when the rows are of a newer version or do not fit, or the database fails.
pub async fn load_tables(
    url: &str,
    layouts: &[(Layout, usize)],
    replace: bool,
    rows: &mut BackupRows<'_>,
) -> Result<(), StoreError> {
    let (mut connection, name) = connect(url).await?;
    let loaded = load(&mut connection, layouts, replace, rows).await.map_err(|error| error.of(name));
    // What cannot be closed is not open.
    let _ = connection.close().await;
    loaded
}

async fn load(
    connection: &mut PgConnection,
    layouts: &[(Layout, usize)],
    replace: bool,
    rows: &mut BackupRows<'_>,
) -> Result<(), StoreError> {
    let mut transaction = connection.begin().await.map_err(failure)?;
    let in_use = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                  AND application_name IN ('toolrack', 'toolrack documents')";
    let others: i64 = sqlx::query_scalar(in_use).fetch_one(&mut *transaction).await.map_err(failure)?;
    if others > 0 {
        return Err(StoreError::conflict("a server uses it; stop all servers of this database first"));
    }
    sqlx::raw_sql("SET LOCAL client_min_messages = warning")
        .execute(&mut *transaction)
        .await
        .map_err(failure)?;
    for (layout, of) in layouts {
        if *of > layout.steps.len() {
            return Err(StoreError::invalid(format!(
                "the backup of the {} is of version {of}, and this program knows them up to {}: use the newer program that has made it",
                layout.name,
                layout.steps.len()
            )));
        }
        if version(&mut transaction, layout).await.map_err(failure)?.is_some() && !replace {
            return Err(StoreError::conflict("there is data already"));
        }
        for statement in layout.removal() {
            run(&mut transaction, statement).await?;
        }
        run(&mut transaction, format!("CREATE TABLE {} (version BIGINT NOT NULL)", layout.version_table))
            .await?;
        run(
            &mut transaction,
            format!("INSERT INTO {} VALUES ({})", layout.version_table, layout.steps.len()),
        )
        .await?;
        for step in layout.steps.iter().take(*of) {
            sqlx::raw_sql(*step).execute(&mut *transaction).await.map_err(failure)?;
        }
        // Rows that new tables begin with are in the backup too.
        for table in layout.tables().into_iter().rev() {
            if is_there(&mut transaction, table).await.map_err(failure)? {
                run(&mut transaction, format!("DELETE FROM {table}")).await?;
            }
        }
    }
    let known: Vec<&str> = layouts.iter().flat_map(|(layout, _)| layout.tables()).collect();
    let mut waiting: Vec<Box<RawValue>> = Vec::new();
    let (mut table, mut bytes) = ("", 0);
    loop {
        let next = rows().map_err(StoreError::corrupt)?;
        let is_other = next.as_ref().is_none_or(|(name, _)| name != table);
        if is_other || waiting.len() >= ROWS || bytes >= BYTES {
            insert(&mut transaction, table, &std::mem::take(&mut waiting)).await?;
            bytes = 0;
        }
        let Some((name, row)) = next else { break };
        if is_other {
            let unknown =
                || StoreError::invalid(format!("the backup has rows of the unknown table `{name}`"));
            table = known.iter().find(|known| **known == name).copied().ok_or_else(unknown)?;
        }
        bytes += row.get().len();
        waiting.push(row);
    }
    for table in known {
        number_on(&mut transaction, table).await.map_err(failure)?;
    }
    for (layout, of) in layouts {
        for step in layout.steps.iter().skip(*of) {
            sqlx::raw_sql(*step).execute(&mut *transaction).await.map_err(failure)?;
        }
    }
    transaction.commit().await.map_err(failure)
}

/// Runs a statement that is made of the names of our own tables.
async fn run(connection: &mut PgConnection, sql: String) -> Result<(), StoreError> {
    sqlx::query(AssertSqlSafe(sql)).execute(connection).await.map(drop).map_err(failure)
}

async fn insert(
    connection: &mut PgConnection,
    table: &str,
    rows: &[Box<RawValue>],
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let json = serde_json::to_string(rows).map_err(StoreError::corrupt)?;
    let sql = format!(
        "INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::{table}, $1::json)"
    );
    sqlx::query(AssertSqlSafe(sql)).bind(json).execute(connection).await.map(drop).map_err(failure)
}

/// Numbers the rows to come after those that are there.
async fn number_on(connection: &mut PgConnection, table: &str) -> Result<(), sqlx::Error> {
    let identity = "SELECT column_name::text FROM information_schema.columns \
                    WHERE table_schema = current_schema() AND table_name = $1 AND is_identity = 'YES'";
    let columns: Vec<String> = sqlx::query_scalar(identity).bind(table).fetch_all(&mut *connection).await?;
    for column in columns {
        let sql = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), coalesce(max({column}), 0) + 1, false) FROM {table}"
        );
        sqlx::query(AssertSqlSafe(sql)).execute(&mut *connection).await?;
    }
    Ok(())
}
