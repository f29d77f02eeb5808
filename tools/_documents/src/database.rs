//! What documents need of a database: its statements, and a few ways to run them. All else is in [`store`](super::store).

use std::{
    fmt::{Display, Write},
    time::Duration,
};

use registry_core::ToolError;
use sqlx::{FromRow, sqlite::SqliteRow};

use super::{Contents, MetadataRows, query::TextQuery};

/// How long a statement may take by which somebody looks something up.
pub(super) const SEARCHING: Duration = Duration::from_secs(5);

/// A database, as a tenant sees it.
pub(super) trait Database: Send + Sync + 'static {
    /// Statements that are kept whole, or none of them.
    type Transaction: Send;

    const SQL: Sql;

    /// The tenant; empty where the database is the tenant's alone.
    fn tenant(&self) -> &str;

    /// What of a text is looked up.
    fn words(text: &str) -> String;

    /// The words of a question in the language of the database; with `beginning` also words that begin so.
    fn query(asked: &TextQuery, beginning: bool) -> String;

    /// What is known to be there.
    fn contents(&self) -> Contents;

    /// Notes what was written here.
    fn update(&self, change: impl FnOnce(&mut Contents));

    /// Looks what is there; with `now` whenever it was looked before.
    fn look(&self, now: bool) -> impl Future<Output = ()> + Send;

    /// The inner query for passages whose vectors are near to $2, of the model $3 and of the length $4.
    fn nearest(&self) -> impl Future<Output = Result<&'static str, ToolError>> + Send;

    fn rows<T: AnyRow>(&self, statement: Statement)
    -> impl Future<Output = Result<Vec<T>, ToolError>> + Send;

    /// What somebody looks up: the same, or an error where it takes longer than [`SEARCHING`].
    fn found<T: AnyRow>(
        &self,
        statement: Statement,
    ) -> impl Future<Output = Result<Vec<T>, ToolError>> + Send;

    /// The same with a time of its own, on the few connections for what takes long. The database goes on with it no more after that.
    fn rows_within<T: AnyRow>(
        &self,
        statement: Statement,
        time: Duration,
    ) -> impl Future<Output = Result<Vec<T>, ToolError>> + Send;

    fn begin(&self) -> impl Future<Output = Result<Self::Transaction, ToolError>> + Send;

    fn write<T: AnyRow>(
        transaction: &mut Self::Transaction,
        statement: Statement,
    ) -> impl Future<Output = Result<Vec<T>, sqlx::Error>> + Send;

    fn commit(transaction: Self::Transaction) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Gives the disk back what removed documents took, where the database does not do that by itself.
    fn give_back(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Runs a statement that somebody else wrote, over the view of documents.
    fn select(&self, sql: &str) -> impl Future<Output = Result<MetadataRows, ToolError>> + Send;

    /// A failure of the store. The model does not see where it is.
    fn fault(&self, error: impl Display) -> ToolError;
}

/// The statements of a database. $1 is the tenant in each of them.
pub(super) struct Sql {
    /// Whether the document of the path $2 is there with the hash $3.
    pub(super) has: &'static str,
    /// The id and the hash of the document of the path $2.
    pub(super) known: &'static str,
    /// Removes the document with the id $2.
    pub(super) remove_known: &'static str,
    /// Removes the document of the path $2, and those whose paths begin with $3.
    pub(super) remove: &'static str,
    /// Removes the names that are mentioned nowhere any more.
    pub(super) remove_unmentioned: &'static str,
    /// Adds a document, and gives its id.
    pub(super) add: &'static str,
    /// Adds the passages in $3 of the document $2, whose title has the words $4.
    pub(super) add_passages: &'static [&'static str],
    /// All documents; open at its conditions.
    pub(super) list: &'static str,
    /// All documents without what else they say of themselves; open at its conditions.
    pub(super) listed: &'static str,
    /// How many documents there are; open at its conditions.
    pub(super) count: &'static str,
    /// How many documents there are whose paths begin with $2, but for the one of the path $3, and how many bytes are kept of them.
    pub(super) kept: &'static str,
    /// The inner query for passages with the words $2; open at its conditions.
    pub(super) matching: &'static str,
    /// A condition of an inner query: passages of some documents; open at their conditions.
    pub(super) of_documents: &'static str,
    /// What belongs to the best rows of an inner query.
    pub(super) joined: &'static str,
    /// At most $3 passages that have no vector of the model $2.
    pub(super) without_vectors: &'static str,
    /// Removes vectors of the model $2, and gives a row for each; open at its conditions.
    pub(super) forget_vectors: &'static str,
    /// A condition of it: those of passages of some documents; open at their conditions.
    pub(super) of_passages: &'static str,
    /// Keeps the vector $4, of the model $2 and the length $5, of the passage $3.
    pub(super) keep_vector: &'static str,
    /// Gives the work $2 to $3 for $4 seconds, and a row unless another has it.
    pub(super) claim: &'static str,
    /// Takes the work $2 from $3.
    pub(super) release: &'static str,
    /// Passages that no model has been through; open at its conditions.
    pub(super) unextracted: &'static str,
    /// Marks that the model $2 has been through the passage $3. Gives a row where that is there.
    pub(super) mark_extracted: &'static str,
    /// Adds the names in $3 of the passage $2, and that it mentions them.
    pub(super) add_names: [&'static str; 2],
    /// Adds the relations in $3 of the passage $2.
    pub(super) add_relations: &'static str,
    /// The name with the key $2.
    pub(super) entity: &'static str,
    /// Five names that have $2 in them, or one of the words $3.
    pub(super) similar_names: &'static str,
    /// An inner query: $4 relations of the kind $3 that are said of the names $2.
    pub(super) stated: &'static str,
    /// An inner query: $4 names that are mentioned with the names $2, which is the relation $3.
    pub(super) mentioned: &'static str,
    /// What belongs to the rows of either.
    pub(super) edges_joined: &'static str,
}

/// A row of the database that is not SQLite, if there is one.
#[cfg(feature = "postgres")]
type OtherRow = sqlx::postgres::PgRow;
#[cfg(not(feature = "postgres"))]
type OtherRow = SqliteRow;

/// What a row of either database becomes.
pub(super) trait AnyRow:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, OtherRow> + Send + Unpin + 'static
{
}

impl<T> AnyRow for T where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, OtherRow> + Send + Unpin + 'static
{
}

/// What a statement is given.
#[derive(derive_more::From)]
pub(super) enum Argument {
    Text(Option<String>),
    Number(i64),
    Vector(Vec<f32>),
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<usize> for Argument {
    fn from(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A statement, and what is given for $1, $2 and so on.
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) arguments: Vec<Argument>,
}

impl Statement {
    /// A statement of a database's, with its tenant as $1.
    pub(super) fn new(database: &impl Database, sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), arguments: vec![database.tenant().into()] }
    }

    /// Gives the next argument, which the statement names already.
    pub(super) fn given(mut self, argument: impl Into<Argument>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(super) fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    /// Gives the next argument at the place where the statement ends now.
    pub(super) fn bind(&mut self, argument: impl Into<Argument>) -> &mut Self {
        self.arguments.push(argument.into());
        // Writing to a text does not fail.
        let _ = write!(self.sql, "${}", self.arguments.len());
        self
    }
}
