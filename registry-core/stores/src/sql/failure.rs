//! What an error of a database means to whoever has asked it.

use std::error::Error as _;

use registry_core::store::StoreError;

/// The error with its kind, by the codes of <https://sqlite.org/rescode.html> and of
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
pub(crate) fn failure(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|fault| fault.code()).unwrap_or_default();
    let of_kind: fn(sqlx::Error) -> StoreError = match (&error, &*code) {
        (sqlx::Error::Configuration(_) | sqlx::Error::Encode(_), _) => StoreError::invalid,
        (sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. }, _) => StoreError::corrupt,
        // PostgreSQL's have five characters.
        (sqlx::Error::Database(_), code) if code.len() == 5 => match code {
            "55P03" => StoreError::conflict,
            "42P01" | "42703" | "XX001" | "XX002" => StoreError::corrupt,
            code if code.starts_with("40") => StoreError::conflict,
            code if code.starts_with("22") || code.starts_with("23") => StoreError::invalid,
            _ => StoreError::unavailable,
        },
        // The lower eight bits of SQLite's say what kind it is.
        (sqlx::Error::Database(_), code) => match code.parse::<u32>().map(|code| code & 0xff) {
            Ok(5 | 6) => StoreError::conflict,
            Ok(11 | 26) => StoreError::corrupt,
            Ok(18..=20) => StoreError::invalid,
            _ => StoreError::unavailable,
        },
        _ => StoreError::unavailable,
    };
    of_kind(error)
}

/// Whether the connection is of no use any more, rather than the statement refused.
pub(crate) fn is_cut(error: &StoreError) -> bool {
    match error.source().and_then(|cause| cause.downcast_ref()) {
        Some(sqlx::Error::Database(fault)) => fault.code().is_some_and(|code| match &*code {
            // Nothing can be written there since a failover, or the transaction was ended because nothing came for too long.
            "25006" | "25P03" => true,
            // It is stopped, an administrator closes the connection, or the statement took too long, as the next one would.
            code => code.len() == 5 && (code.starts_with("57") || code.starts_with("08")),
        }),
        Some(_) => true,
        // What it gave cannot be read.
        None => false,
    }
}
