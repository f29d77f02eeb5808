//! A connection to a database, so that what is asked of it is written once for all of them.
//!
//! Columns are whole numbers or texts and never null. Parameters are `$1`, `$2` …, which SQLite understands as well as
//! PostgreSQL.

use std::{borrow::Cow, fmt, sync::Arc};

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Row as _, TypeInfo as _, ValueRef as _};

use registry_core::store::{StoreError, StoreResult};

use super::failure::failure;

/// What a column holds. Texts are shared, because what is to be written is kept until it has been.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::From)]
pub(crate) enum Value {
    #[from]
    Int(i64),
    #[from(Arc<str>, String, &str)]
    Text(Arc<str>),
}

impl From<Timestamp> for Value {
    fn from(at: Timestamp) -> Self {
        sortable(at).into()
    }
}

/// A time that may not have come: an empty text where it has not.
impl From<Option<Timestamp>> for Value {
    fn from(at: Option<Timestamp>) -> Self {
        at.map_or_else(|| "".into(), Self::from)
    }
}

impl From<bool> for Value {
    fn from(holds: bool) -> Self {
        i64::from(holds).into()
    }
}

macro_rules! saturated {
    ($($count:ty),*) => {$(
        /// As databases have numbers: the highest one stands for all above it.
        impl From<$count> for Value {
            fn from(count: $count) -> Self {
                i64::try_from(count).unwrap_or(i64::MAX).into()
            }
        }
    )*};
}
saturated!(u64, usize);

/// A time as a text that sorts like the time: always nine digits of a second.
fn sortable(at: Timestamp) -> String {
    format!("{at:.9}")
}

fn unexpected(found: impl fmt::Display, wanted: &str) -> StoreError {
    StoreError::corrupt(format!("the database holds {found} where {wanted} is expected"))
}

/// A row of an answer, read from its first column to its last.
#[derive(Debug)]
pub(crate) struct Row(std::vec::IntoIter<Value>);

impl Row {
    pub(crate) fn text(&mut self) -> StoreResult<Arc<str>> {
        match self.0.next() {
            Some(Value::Text(text)) => Ok(text),
            other => Err(unexpected(format_args!("{other:?}"), "a text")),
        }
    }

    pub(crate) fn string(&mut self) -> StoreResult<String> {
        Ok(self.text()?.to_string())
    }

    pub(crate) fn int(&mut self) -> StoreResult<i64> {
        match self.0.next() {
            Some(Value::Int(number)) => Ok(number),
            other => Err(unexpected(format_args!("{other:?}"), "a number")),
        }
    }

    pub(crate) fn time(&mut self) -> StoreResult<Timestamp> {
        let text = self.text()?;
        text.parse().map_err(|_| unexpected(format_args!("`{text}`"), "a time"))
    }

    /// A time; an empty text is none.
    pub(crate) fn time_if_any(&mut self) -> StoreResult<Option<Timestamp>> {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| unexpected(format_args!("`{text}`"), "a time"))
    }

    /// A number that is never below zero.
    pub(crate) fn count<T: TryFrom<i64>>(&mut self) -> StoreResult<T> {
        let number = self.int()?;
        T::try_from(number).map_err(|_| unexpected(format_args!("{number}"), "a count"))
    }
}

/// Something to be asked of a database.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) values: Vec<Value>,
}

impl Statement {
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>, values: Vec<Value>) -> Self {
        Self { sql: sql.into(), values }
    }

    /// Whether it cannot be about anything that is kept: PostgreSQL has no place for a NUL in a text, and fails where it is asked for one.
    pub(crate) fn is_about_nothing(&self) -> bool {
        self.values.iter().any(|value| matches!(value, Value::Text(text) if text.contains('\0')))
    }

    /// Whether it adds a row.
    pub(crate) fn adds(&self) -> bool {
        self.sql.starts_with("INSERT")
    }
}

/// A statement with the values of its parameters in their order.
macro_rules! statement {
    ($sql:expr $(, $value:expr)* $(,)?) => {
        $crate::sql::Statement::new($sql, vec![$($crate::sql::Value::from($value)),*])
    };
}
pub(crate) use statement;

/// `($1, $2), ($3, $4)` or `(?, ?), (?, ?)` and so on: so many rows of so many parameters.
pub(crate) fn parameters(rows: usize, columns: usize, numbered: bool) -> String {
    let mut text = String::new();
    for row in 0..rows {
        for column in 0..columns {
            text.push_str(match (row, column) {
                (0, 0) => "(",
                (_, 0) => "), (",
                _ => ", ",
            });
            match numbered {
                true => text.push_str(&format!("${}", row * columns + column + 1)),
                false => text.push('?'),
            }
        }
    }
    text + ")"
}

/// One connection.
#[async_trait]
pub(crate) trait Link: Send {
    async fn fetch(&mut self, statement: Statement) -> StoreResult<Vec<Row>>;

    /// Whether parameters have to be written with their numbers. SQLite looks up each number among all others, which takes long where
    /// there are many.
    fn numbers_parameters(&self) -> bool;

    /// Runs several statements that have no parameters.
    async fn script(&mut self, sql: &'static str) -> StoreResult<()>;
}

macro_rules! link {
    ($connection:ty, $numbers_parameters:literal) => {
        #[async_trait]
        impl Link for $connection {
            async fn fetch(&mut self, statement: Statement) -> StoreResult<Vec<Row>> {
                let mut query = match statement.sql {
                    Cow::Borrowed(sql) => sqlx::query(sql),
                    // Made of constants and of parameters' numbers alone.
                    Cow::Owned(sql) => sqlx::query(AssertSqlSafe(sql)),
                };
                for value in statement.values {
                    query = match value {
                        Value::Int(number) => query.bind(number),
                        Value::Text(text) => query.bind(text),
                    };
                }
                let rows = query.fetch_all(self).await.map_err(failure)?;
                rows.iter()
                    .map(|row| {
                        let column = |index| match row.try_get_raw(index)?.type_info().name() {
                            "TEXT" | "VARCHAR" => row.try_get::<&str, _>(index).map(Value::from),
                            _ => row.try_get(index).map(Value::Int),
                        };
                        let columns = (0..row.len()).map(column).collect::<Result<Vec<Value>, _>>();
                        columns.map(|columns| Row(columns.into_iter())).map_err(failure)
                    })
                    .collect()
            }

            fn numbers_parameters(&self) -> bool {
                $numbers_parameters
            }

            async fn script(&mut self, sql: &'static str) -> StoreResult<()> {
                sqlx::raw_sql(sql).execute(self).await.map(drop).map_err(failure)
            }
        }
    };
}

#[cfg(feature = "sqlite")]
link!(sqlx::SqliteConnection, false);
#[cfg(feature = "postgres")]
link!(sqlx::PgConnection, true);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_through() {
        assert_eq!(parameters(2, 3, true), "($1, $2, $3), ($4, $5, $6)");
        assert_eq!(parameters(2, 2, false), "(?, ?), (?, ?)");
        assert_eq!(parameters(1, 1, true), "($1)");
    }

    #[test]
    fn times_sort_as_texts() {
        let text = |at: &str| sortable(at.parse().unwrap());
        assert!(text("2026-03-01T12:00:00Z") < text("2026-03-01T12:00:00.5Z"));
        assert!(text("2026-03-01T12:00:00.5Z") < text("2026-03-01T12:00:01Z"));
    }
}
