//! Runs SQL that somebody else wrote.
//!
//! The connection is read-only, SQLite refuses to write on it a second time by `query_only`, and before the statement runs its program
//! is looked through, as SQLite lists it under EXPLAIN: which pages it opens, and which functions it calls. That stands in for
//! SQLite's authorizer, which cannot be set from here without unsafe code.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, Column, Decode, Executor, Row, Sqlite, SqliteConnection, Statement, TypeInfo, ValueRef,
    sqlite::SqliteRow,
};

use crate::{MetadataRows, statement::FUNCTIONS};
use registry_core::ToolError;

/// More rows are not given.
const MAX_ROWS: usize = 200;
/// Neither is more text, in bytes over all rows.
const MAX_BYTES: usize = 40_000;
/// A longer value is cut, in characters.
const MAX_VALUE: usize = 1000;
/// A statement that takes longer is ended.
const TIME: Duration = Duration::from_secs(2);
/// After so many steps of a statement it is seen how long it takes.
const STEPS: i32 = 10_000;

/// What operators are called in a statement's program.
const OPERATORS: [&str; 4] = ["like", "glob", "->", "->>"];

/// What a program may do beside reading pages and calling functions: run, calculate, compare, sort and group in memory, and give rows.
/// Whatever SQLite may be taught to do later is not among it.
const STEPS_ALLOWED: &str = "
    Init Goto Gosub Return BeginSubrtn InitCoroutine EndCoroutine Yield Jump Once If IfNot IfPos IfNotZero
    DecrJumpZero IfEmpty IfSizeBetween Halt HaltIfNull Noop Explain Trace CursorHint ReleaseReg Abortable
    Integer Int64 Real String String8 Null SoftNull Blob Move Copy SCopy IntCopy Concat Add Subtract Multiply
    Divide Remainder BitAnd BitOr BitNot ShiftLeft ShiftRight AddImm MustBeInt RealAffinity Cast Affinity
    TypeCheck CollSeq And Or Not Eq Ne Lt Le Gt Ge ElseEq Permutation Compare IsTrue IsType IsNull NotNull
    IfNullRow ZeroOrNull OffsetLimit MemMax ClrSubtype GetSubtype SetSubtype
    Rewind Next Prev Last SeekEnd SeekGE SeekGT SeekLE SeekLT SeekScan SeekHit SeekRowid DeferredSeek
    FinishSeek NotExists NotFound Found NoConflict IfNoHope IfNotOpen IdxGE IdxGT IdxLE IdxLT IdxRowid Rowid
    NullRow Column Offset Count ColumnsUsed Close RowData ResultRow
    OpenEphemeral OpenAutoindex OpenDup OpenPseudo SorterOpen SorterInsert SorterSort SorterData SorterNext
    SorterCompare ResetSorter RowSetAdd RowSetRead RowSetTest Sort Sequence SequenceTest MakeRecord NewRowid Insert Delete IdxInsert Filter
    FilterAdd
";

/// The rows of a statement that was [checked]. `fault` says what is wrong with the database.
pub(crate) async fn select(
    connection: &mut SqliteConnection,
    sql: String,
    fault: impl Fn(sqlx::Error) -> ToolError,
) -> Result<MetadataRows, ToolError> {
    let deadline = Instant::now() + TIME;
    // A statement that nobody waits for any more is ended by it too.
    connection
        .lock_handle()
        .await
        .map_err(&fault)?
        .set_progress_handler(STEPS, move || Instant::now() < deadline);
    let looked = match look_through(connection, &sql).await {
        Ok(None) => rows(connection, sql).await,
        Ok(Some(refusal)) => return Err(ToolError::invalid(refusal)),
        Err(error) => Err(error),
    };
    looked.map_err(|error| reported(&error).unwrap_or_else(|| fault(error)))
}

/// What is wrong with a statement in SQLite's own words, for whoever wrote it. What is wrong with the file is for the operator.
fn reported(error: &sqlx::Error) -> Option<ToolError> {
    let fault = error.as_database_error()?;
    Some(ToolError::invalid(match fault.code().as_deref()? {
        // SQLITE_ERROR, SQLITE_RANGE, SQLITE_MISMATCH: https://sqlite.org/rescode.html
        "1" | "25" | "20" => format!("SQLite says: {}", fault.message()),
        // SQLITE_INTERRUPT
        "9" => format!(
            "the query was ended after {} s; ask for less, as with a condition or without a join",
            TIME.as_secs()
        ),
        _ => return None,
    }))
}

/// What a statement's program does that it may not; `None` where it only looks at documents.
async fn look_through(connection: &mut SqliteConnection, sql: &str) -> Result<Option<String>, sqlx::Error> {
    let pages: Vec<i64> =
        sqlx::query_scalar("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'document' AND rootpage > 0")
            .fetch_all(&mut *connection)
            .await?;
    let program = sqlx::query(AssertSqlSafe(format!("EXPLAIN {sql}"))).persistent(false);
    for step in program.fetch_all(&mut *connection).await? {
        let operation: String = step.try_get("opcode")?;
        let (second, third): (i64, i64) = (step.try_get("p2")?, step.try_get("p3")?);
        let about: Option<String> = step.try_get("p4")?;
        let is_allowed = match operation.as_str() {
            // Of the file itself, and not of one beside it.
            "OpenRead" | "ReopenIdx" => pages.contains(&second) && third == 0,
            "Transaction" => second == 0,
            operation => is_step_allowed(operation, about.as_deref().unwrap_or_default()),
        };
        if !is_allowed {
            let about = about.map(|about| format!(" {about}")).unwrap_or_default();
            return Ok(Some(format!("the statement does more than look at documents ({operation}{about})")));
        }
    }
    Ok(None)
}

/// Whether a step that opens nothing may be taken; `about` is the function that it calls, as in `lower(1)`.
fn is_step_allowed(operation: &str, about: &str) -> bool {
    match operation {
        "Function" | "PureFunc" | "AggStep" | "AggStep1" | "AggFinal" | "AggInverse" | "AggValue" => {
            let name = about.split('(').next().unwrap_or_default();
            FUNCTIONS.contains(&name) || OPERATORS.contains(&name)
        }
        _ => STEPS_ALLOWED.split_whitespace().any(|allowed| allowed == operation),
    }
}

async fn rows(connection: &mut SqliteConnection, sql: String) -> Result<MetadataRows, sqlx::Error> {
    let statement = connection.prepare(sqlx::SqlSafeStr::into_sql_str(AssertSqlSafe(sql))).await?;
    let columns = statement.columns().iter().map(|column| column.name().to_owned()).collect();
    let mut given = MetadataRows { columns, rows: Vec::new(), truncated: false };
    let mut bytes = 0;
    let mut found = statement.query().persistent(false).fetch(connection);
    while let Some(row) = found.try_next().await? {
        let row = (0..row.len()).map(|column| value(&row, column)).collect::<Result<Vec<_>, _>>()?;
        bytes += row.iter().map(|value| value.as_str().map_or(8, str::len)).sum::<usize>();
        if given.rows.len() == MAX_ROWS || bytes > MAX_BYTES {
            given.truncated = true;
            break;
        }
        given.rows.push(row);
    }
    Ok(given)
}

fn value(row: &SqliteRow, column: usize) -> Result<Value, sqlx::Error> {
    let raw = row.try_get_raw(column)?;
    let fault = sqlx::Error::Decode;
    Ok(match raw.type_info().name() {
        _ if raw.is_null() => Value::Null,
        "INTEGER" | "BOOLEAN" => <i64 as Decode<Sqlite>>::decode(raw).map_err(fault)?.into(),
        "REAL" => <f64 as Decode<Sqlite>>::decode(raw).map_err(fault)?.into(),
        "BLOB" => format!("({} bytes)", <&[u8] as Decode<Sqlite>>::decode(raw).map_err(fault)?.len()).into(),
        _ => {
            let text = <&str as Decode<Sqlite>>::decode(raw).map_err(fault)?;
            match text.char_indices().nth(MAX_VALUE) {
                Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
                None => text.into(),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteDocuments;

    /// What gets past the first look, if anything ever does.
    #[tokio::test]
    async fn p6_the_program_of_a_statement_says_what_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let documents = SqliteDocuments::new(folder.path().join("documents.db"));
        let mut connection = documents.opened().await.unwrap().untrusted_readers.acquire().await.unwrap();
        for (sql, fault) in [
            ("SELECT * FROM chunk", "OpenRead"),
            ("SELECT * FROM documents WHERE path IN (SELECT text FROM chunk)", "OpenRead"),
            ("SELECT * FROM sqlite_master", "OpenRead"),
            ("SELECT * FROM sqlite_temp_master", "OpenRead"),
            ("SELECT * FROM entity WHERE key = 'x'", "OpenRead"),
            ("SELECT * FROM chunk_words", "VOpen"),
            ("SELECT * FROM pragma_database_list", "VOpen"),
            ("SELECT * FROM json_each('[1]')", "VOpen"),
            ("SELECT load_extension('x')", "Function load_extension(1)"),
            ("SELECT randomblob(9)", "Function randomblob(1)"),
            ("SELECT path || 'x', printf('%d', bytes) FROM documents", "Function printf"),
            ("SELECT group_concat(path) FROM documents", "AggStep group_concat(1)"),
            ("DELETE FROM document", "OpenWrite"),
            ("CREATE TABLE x (a)", ""),
            ("ATTACH 'x' AS y", "Function sqlite_attach"),
            ("VACUUM", "Vacuum"),
            ("BEGIN", "AutoCommit"),
            ("PRAGMA journal_mode = DELETE", "Expire"),
            ("PRAGMA schema_version", "ReadCookie"),
            ("ANALYZE", ""),
            ("REINDEX", ""),
        ] {
            let found = look_through(&mut connection, sql).await.unwrap();
            assert!(found.as_ref().is_some_and(|found| found.contains(fault)), "{sql}: {found:?}");
        }
        for sql in [
            "SELECT * FROM documents",
            "SELECT count(*) FROM documents WHERE path LIKE 'a%' AND title = 'x' ORDER BY 1",
        ] {
            assert_eq!(look_through(&mut connection, sql).await.unwrap(), None, "{sql}");
        }
    }

    #[test]
    fn k13_a_step_that_is_not_known_is_not_run() {
        for step in [
            "OpenWrite",
            "VOpen",
            "VFilter",
            "SqlExec",
            "Vacuum",
            "ReadCookie",
            "SetCookie",
            "JournalMode",
            "Program",
            "Clear",
            "Destroy",
            "AutoCommit",
            "Savepoint",
            "SomethingNew",
            "",
            "Init Goto",
        ] {
            assert!(!is_step_allowed(step, ""), "{step}");
        }
        assert!(is_step_allowed("Rewind", "") && is_step_allowed("Function", "lower(1)"));
        assert!(!is_step_allowed("Function", "load_extension(1)") && !is_step_allowed("Function", ""));
    }

    #[tokio::test]
    async fn p6_the_connection_for_others_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let documents = SqliteDocuments::new(folder.path().join("documents.db"));
        let mut connection = documents.opened().await.unwrap().untrusted_readers.acquire().await.unwrap();
        for allowed in ["ON", "OFF"] {
            sqlx::raw_sql(AssertSqlSafe(format!("PRAGMA query_only = {allowed}")))
                .execute(&mut *connection)
                .await
                .unwrap();
            let error = sqlx::raw_sql("DELETE FROM document").execute(&mut *connection).await.unwrap_err();
            assert!(error.to_string().contains("readonly"), "{error}");
        }
    }

    #[tokio::test]
    async fn p6_every_function_that_is_offered_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let documents = SqliteDocuments::new(folder.path().join("documents.db"));
        let mut connection = documents.opened().await.unwrap().untrusted_readers.acquire().await.unwrap();
        let there: Vec<String> = sqlx::query_scalar("SELECT DISTINCT lower(name) FROM pragma_function_list")
            .fetch_all(&mut *connection)
            .await
            .unwrap();
        for function in FUNCTIONS {
            assert!(there.iter().any(|name| name == function), "{function}");
        }
    }
}
