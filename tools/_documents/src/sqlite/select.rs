//! Runs SQL that somebody else wrote.
//!
//! The connection is read-only, SQLite refuses to write on it a second time by `query_only`, and before the statement runs its bytecode
//! is checked, as SQLite lists it under EXPLAIN: which pages it opens, which functions it calls, and that it does nothing else but
//! compute (<https://sqlite.org/opcode.html>). That stands in for SQLite's authorizer, which cannot be set from here without unsafe
//! code. So SQLite alone parses the statement, and nothing is lost to a second reading of its grammar.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, Column, Decode, Executor, Row, Sqlite, SqliteConnection, Statement, TypeInfo, ValueRef,
    sqlite::SqliteRow,
};

use crate::MetadataRows;
use registry_core::{ToolError, text::shorten};

/// The view that is offered.
const VIEW: &str = "documents";
/// The maximum length of a statement, in bytes. SQLite parses recursively, and this bounds how deep.
const MAX_STATEMENT: usize = 4000;
/// The maximum depth of parentheses: SQLite's time to compile functions within functions grows without measure.
const MAX_DEPTH: usize = 50;
/// The maximum number of names that WITH gives: SQLite copies each wherever it is used, so that a chain of them multiplies.
const MAX_NAMES: usize = 2;

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

/// The functions that may be called: their result is no longer than their arguments, and they take no time. So there is no
/// `group_concat` and no `printf`.
const FUNCTIONS: &str = "
    abs avg coalesce count date datetime dense_rank first_value ifnull iif instr json_array_length
    json_extract json_type julianday lag last_value lead length lower ltrim max min nullif rank round
    row_number rtrim sign strftime substr substring sum time total trim typeof unixepoch upper
";

/// What operators are called in a statement's program.
const OPERATORS: [&str; 4] = ["like", "glob", "->", "->>"];

/// What bytecode may do beside reading pages and calling functions: run, compute, compare, sort and group in memory, and give rows.
/// An opcode that a later SQLite adds is not among them. `Concat` is not, as texts would double with each step.
const OPCODES: &str = "
    Init Goto Gosub Return BeginSubrtn InitCoroutine EndCoroutine Yield Jump Once If IfNot IfPos IfNotZero
    DecrJumpZero IfEmpty IfSizeBetween Halt HaltIfNull Noop Explain Trace CursorHint ReleaseReg Abortable
    Integer Int64 Real String String8 Null SoftNull Blob Move Copy SCopy IntCopy Add Subtract Multiply
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

/// The rows of one SELECT. `fault` says what is wrong with the database.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](registry_core::ErrorKind::InvalidArguments) for a statement that is anything else, is wrong, or takes
/// over two seconds.
pub(crate) async fn select(
    connection: &mut SqliteConnection,
    sql: &str,
    fault: impl Fn(sqlx::Error) -> ToolError,
) -> Result<MetadataRows, ToolError> {
    let sql = one_statement(sql).map_err(ToolError::invalid)?;
    let deadline = Instant::now() + TIME;
    // A statement that nobody waits for any more is ended by it too.
    connection
        .lock_handle()
        .await
        .map_err(&fault)?
        .set_progress_handler(STEPS, move || Instant::now() < deadline);
    let result = match refusal(connection, sql).await {
        Ok(None) => rows(connection, sql).await,
        Ok(Some(refusal)) => return Err(ToolError::invalid(refusal)),
        Err(error) => Err(error),
    };
    result.map_err(|error| mistake(&error).unwrap_or_else(|| fault(error)))
}

/// The statement without its end. That there is only one has to be certain, as only the first is explained and all would run; so a
/// `;` within it is refused wherever it stands.
fn one_statement(sql: &str) -> Result<&str, String> {
    let bytes = sql.len();
    if bytes > MAX_STATEMENT {
        return Err(format!(
            "the statement has {bytes} bytes, and {MAX_STATEMENT} are the most; ask for less at once"
        ));
    }
    let sql = sql.trim_matches(|c: char| c == ';' || c.is_whitespace());
    let verb = sql.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    if !["select", "with", "values"].iter().any(|allowed| verb.eq_ignore_ascii_case(allowed)) {
        return Err(format!("only SELECT is allowed; write one SELECT over `{VIEW}`"));
    }
    if sql.contains([';', '\0']) {
        return Err("only one statement is allowed; write one SELECT without `;` in it".to_owned());
    }
    // Those in texts count as well; it is a bound, and no parser.
    let depths = sql.bytes().scan(0_usize, |depth, byte| {
        match byte {
            b'(' => *depth += 1,
            b')' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some(*depth)
    });
    if depths.max().is_some_and(|depth| depth > MAX_DEPTH) {
        return Err(format!("parentheses are nested over {MAX_DEPTH} deep; write a simpler SELECT"));
    }
    // Without white space and the quotes that names may have. Those in texts count as well; a comment could stand anywhere.
    let compact: String = sql
        .to_ascii_lowercase()
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '"' | '`' | '[' | ']'))
        .collect();
    let (names_queries, extracts) = (compact.contains("with"), compact.contains("json_extract("));
    let has_comment = compact.contains("--") || compact.contains("/*");
    if has_comment && (names_queries || compact.contains("json_extract")) {
        return Err("a SELECT with WITH or json_extract may have no comments; leave them out".to_owned());
    }
    if names_queries {
        let names = compact.matches("as(").count() + compact.matches("materialized(").count();
        if names > MAX_NAMES {
            return Err(format!(
                "WITH may give {MAX_NAMES} names and no more; write the others as subqueries"
            ));
        }
        // A query that reads itself needs it, with or without RECURSIVE, and grows until its time is over.
        if compact.contains("union") {
            return Err("WITH and UNION do not go together; write the parts as subqueries".to_owned());
        }
    }
    // With several paths it repeats the text for each, in one step that no time limit ends.
    if extracts && compact.split("json_extract(").skip(1).any(has_several_paths) {
        return Err("json_extract takes one path here; write another json_extract beside it".to_owned());
    }
    Ok(sql)
}

/// Whether the arguments of a call, which begin here, are more than two.
fn has_several_paths(arguments: &str) -> bool {
    let (mut depth, mut commas, mut in_text) = (0_usize, 0, false);
    for byte in arguments.bytes() {
        match byte {
            b'\'' => in_text = !in_text,
            _ if in_text => {}
            b'(' => depth += 1,
            b')' if depth == 0 => return commas > 1,
            b')' => depth -= 1,
            b',' if depth == 0 => commas += 1,
            _ => {}
        }
    }
    // It has no end, which SQLite says better.
    commas > 1
}

/// A mistake in the statement, in SQLite's own words. What is wrong with the file is for the operator.
fn mistake(error: &sqlx::Error) -> Option<ToolError> {
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

/// Why a statement may not run; `None` where it only reads the documents.
async fn refusal(connection: &mut SqliteConnection, sql: &str) -> Result<Option<String>, sqlx::Error> {
    let pages: Vec<i64> =
        sqlx::query_scalar("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'document' AND rootpage > 0")
            .fetch_all(&mut *connection)
            .await?;
    let bytecode = sqlx::raw_sql(AssertSqlSafe(format!("EXPLAIN {sql}")));
    for instruction in bytecode.fetch_all(&mut *connection).await? {
        let opcode: String = instruction.try_get("opcode")?;
        let (p2, p3): (i64, i64) = (instruction.try_get("p2")?, instruction.try_get("p3")?);
        let p4: Option<String> = instruction.try_get("p4")?;
        let is_allowed = match opcode.as_str() {
            // Of the file itself, and not of one beside it.
            "OpenRead" | "ReopenIdx" => pages.contains(&p2) && p3 == 0,
            "Transaction" => p2 == 0,
            opcode => is_opcode_allowed(opcode, p4.as_deref().unwrap_or_default()),
        };
        if !is_allowed {
            return Ok(Some(reason(&opcode, p4.as_deref().unwrap_or_default())));
        }
    }
    Ok(None)
}

/// Whether an instruction that opens nothing may run; `p4` is the function that it calls, as in `lower(1)`.
fn is_opcode_allowed(opcode: &str, p4: &str) -> bool {
    match opcode {
        "Function" | "PureFunc" | "AggStep" | "AggStep1" | "AggFinal" | "AggInverse" | "AggValue" => {
            let name = function_name(p4);
            FUNCTIONS.split_whitespace().any(|allowed| allowed == name) || OPERATORS.contains(&name)
        }
        _ => OPCODES.split_whitespace().any(|allowed| allowed == opcode),
    }
}

fn function_name(p4: &str) -> &str {
    p4.split('(').next().unwrap_or_default()
}

/// Why an instruction may not run, for the author of the statement.
fn reason(opcode: &str, p4: &str) -> String {
    match opcode {
        "Function" | "PureFunc" | "AggStep" | "AggStep1" | "AggFinal" | "AggInverse" | "AggValue" => {
            let allowed: Vec<_> = FUNCTIONS.split_whitespace().collect();
            format!("the function `{}` is not allowed; there are {}", function_name(p4), allowed.join(", "))
        }
        "Concat" => "`||` is not allowed; select the columns beside one another".to_owned(),
        "Variable" => "a parameter has no value here; write the value itself".to_owned(),
        "OpenRead" | "ReopenIdx" | "VOpen" => format!("there is only `{VIEW}` to read"),
        _ => format!("only SELECT over `{VIEW}` is allowed, and this does more ({opcode})"),
    }
}

async fn rows(connection: &mut SqliteConnection, sql: &str) -> Result<MetadataRows, sqlx::Error> {
    let statement = connection.prepare(sqlx::SqlSafeStr::into_sql_str(AssertSqlSafe(sql.to_owned()))).await?;
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
            shorten(text.to_owned(), MAX_VALUE).into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteDocuments;

    #[test]
    fn a5_no_text_is_multiplied_and_no_query_reads_itself() {
        for (sql, fault) in [
            ("SELECT json_extract(metadata, '$', '$') FROM documents", "one path"),
            ("SELECT \"json_extract\" (metadata, '$,', lower('$')) FROM documents", "one path"),
            ("SELECT json_extract(json_extract(metadata, '$', '$'), '$') FROM documents", "one path"),
            ("SELECT json_extract/**/(metadata, '$', '$') FROM documents", "no comments"),
            (
                "WITH r AS (SELECT metadata m FROM documents UNION ALL SELECT m FROM r) SELECT 1 FROM r",
                "UNION",
            ),
            ("with r(a) as (select 1 union select a + 1 from r) select max(a) from r", "UNION"),
        ] {
            let refused = one_statement(sql);
            assert!(refused.as_ref().is_err_and(|refused| refused.contains(fault)), "{sql}: {refused:?}");
        }
        for sql in [
            "SELECT json_extract(metadata, '$.a'), json_extract(metadata, '$.b,c') FROM documents",
            "SELECT json_extract(metadata, lower('$.A'))",
            "SELECT path FROM documents UNION SELECT title FROM documents",
        ] {
            assert_eq!(one_statement(sql), Ok(sql));
        }
    }

    #[tokio::test]
    async fn p6_the_bytecode_of_a_statement_says_what_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let documents = SqliteDocuments::new(folder.path().join("documents.db"));
        let mut connection = documents.opened().await.unwrap().untrusted_readers.acquire().await.unwrap();
        for (sql, fault) in [
            ("SELECT * FROM chunk", "there is only `documents` to read"),
            (
                "SELECT * FROM documents WHERE path IN (SELECT text FROM chunk)",
                "there is only `documents` to read",
            ),
            ("SELECT * FROM sqlite_master", "there is only `documents` to read"),
            ("SELECT * FROM sqlite_temp_master", "there is only `documents` to read"),
            ("SELECT * FROM entity WHERE key = 'x'", "there is only `documents` to read"),
            ("SELECT * FROM chunk_words", "there is only `documents` to read"),
            ("SELECT * FROM pragma_database_list", "there is only `documents` to read"),
            ("SELECT * FROM json_each('[1]')", "there is only `documents` to read"),
            ("SELECT load_extension('x')", "function `load_extension`"),
            ("SELECT randomblob(9)", "function `randomblob`"),
            ("SELECT path, printf('%d', bytes) FROM documents", "function `printf`"),
            ("SELECT path || 'x' FROM documents", "`||` is not allowed"),
            ("SELECT ?1", "write the value itself"),
            ("SELECT group_concat(path) FROM documents", "function `group_concat`"),
            ("DELETE FROM document", "OpenWrite"),
            ("CREATE TABLE x (a)", ""),
            ("ATTACH 'x' AS y", "function `sqlite_attach`"),
            ("VACUUM", "Vacuum"),
            ("BEGIN", "AutoCommit"),
            ("PRAGMA journal_mode = DELETE", "Expire"),
            ("PRAGMA schema_version", "ReadCookie"),
            ("ANALYZE", ""),
            ("REINDEX", ""),
        ] {
            let found = refusal(&mut connection, sql).await.unwrap();
            assert!(found.as_ref().is_some_and(|found| found.contains(fault)), "{sql}: {found:?}");
        }
        for sql in [
            "SELECT * FROM documents",
            "SELECT count(*) FROM documents WHERE path LIKE 'a%' AND title = 'x' ORDER BY 1",
        ] {
            assert_eq!(refusal(&mut connection, sql).await.unwrap(), None, "{sql}");
        }
    }

    #[test]
    fn k13_an_unknown_opcode_is_refused() {
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
            assert!(!is_opcode_allowed(step, ""), "{step}");
        }
        assert!(is_opcode_allowed("Rewind", "") && is_opcode_allowed("Function", "lower(1)"));
        assert!(!is_opcode_allowed("Function", "load_extension(1)") && !is_opcode_allowed("Function", ""));
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
        for function in FUNCTIONS.split_whitespace() {
            assert!(there.iter().any(|name| name == function), "{function}");
        }
    }
}
