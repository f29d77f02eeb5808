//! Keeps everything in a database: what SQLite and PostgreSQL have in common, which is all but the way to them.

mod approvals;
mod audit;
mod batch;
mod chats;
mod connections;
mod conversations;
mod dead_letters;
mod erasure;
mod failure;
mod figures;
mod jobs;
mod link;
mod modules;
mod state;
mod tables;
mod transcripts;
mod usage;
mod walk;
mod writer;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot, watch};

use batch::{Answer, Work};
pub use erasure::Erased;
pub(super) use failure::failure;
pub(super) use link::{Link, Row, Statement, Value, statement};
use registry_core::store::{StoreError, StoreResult};
use writer::{Job, Writer};

/// How many searches are made at once, and how long one may take.
pub(super) const SEARCHERS: u32 = 2;
pub(super) const SEARCH: Duration = Duration::from_secs(5);
/// A connection for searches that nobody used for so long is closed.
pub(super) const SEARCHER_IDLE: Duration = Duration::from_secs(60);

/// How much may wait to be written before those who ask have to wait to be let in.
const QUEUE: usize = 4096;

/// A database: the way to it, and what is particular to it.
#[async_trait]
pub(super) trait Database: Send + Sync {
    /// The name, for messages: where it is, without any password.
    fn name(&self) -> &str;

    /// Checks that the database is still there, where what is written could be lost without an error.
    ///
    /// # Errors
    /// When it is not.
    fn check(&self) -> StoreResult<()> {
        Ok(())
    }

    /// What gives 1 where a connection is the first that asks for a server's name, `$1`, and 0 where another has it; `None` where all servers
    /// are on one machine.
    fn take_name(&self) -> Option<&'static str> {
        None
    }

    /// A connection to write through.
    async fn connect(&self) -> StoreResult<Box<dyn Link>>;

    /// Reads, on a connection beside the one that writes.
    async fn read(&self, statement: Statement) -> StoreResult<Vec<Row>>;

    /// Looks through texts, which takes as long as whoever asks chooses: on connections that nothing else needs, for [`SEARCH`] at most.
    async fn search(&self, statement: Statement) -> StoreResult<Vec<Row>>;

    /// What a column with an object of JSON has under a name, as a text or a number.
    fn member(&self, column: &str, name: &str) -> String;

    /// What begins a transaction that no other one with one of these numbers runs beside.
    fn begin(&self, locks: &BTreeSet<i32>) -> Vec<Statement>;

    /// What a connection that lays out tables says first, where it may otherwise not take as long as that takes.
    fn before_laying_out(&self) -> Option<Statement> {
        None
    }

    /// What has deleted rows overwritten in the transaction that this begins, where the database does not by itself.
    fn before_erasing(&self) -> Vec<Statement> {
        Vec::new()
    }

    /// What moves a transaction that has overwritten rows to where the rows were, outside of any transaction.
    fn after_erasing(&self) -> Option<Statement> {
        None
    }

    /// How often it has to be asked whether another process has changed anything.
    fn poll(&self) -> Duration;

    /// Makes the table that says which version the others are of, where there is none.
    fn version_table(&self) -> &'static str;

    /// What lays out each version of the tables from the one before. Once released, none is ever changed.
    fn schema(&self) -> &'static [&'static str];
}

/// A store in a database: registrations, users, keys, conversations, chats, values of tools, counted calls, approvals, and the audit with its chains.
///
/// It is made by `SqliteSettings` or `PostgresSettings`. Clones are the same store. What it acknowledges is committed. All that is
/// written goes through one task, on the runtime that has opened the store; it ends with the last clone.
#[derive(Clone, derive_more::Debug)]
#[debug("SqlStore({}, {})", shared.database.name(), shared.server)]
pub struct SqlStore {
    shared: Arc<Shared>,
}

struct Shared {
    database: Arc<dyn Database>,
    /// The name of this server, for its chain in the audit.
    server: Arc<str>,
    jobs: mpsc::Sender<Job>,
    /// Notified when something may have changed.
    nudge: watch::Sender<()>,
}

/// A server's name, which no other server on the store has meanwhile.
#[derive(derive_more::Debug)]
#[debug("NameTaken")]
pub struct NameTaken {
    /// It holds the lock.
    _link: Option<Box<dyn Link>>,
}

impl SqlStore {
    /// Lays out the tables where that has not been done, and starts to write. `nudge` may be notified of changes from elsewhere.
    pub(super) async fn start(
        database: Arc<dyn Database>,
        server: String,
        nudge: watch::Sender<()>,
    ) -> StoreResult<Self> {
        lay_out(database.as_ref()).await.map_err(|error| error.of(database.name()))?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        tokio::spawn(Writer::new(Arc::clone(&database)).run(queue));
        Ok(Self { shared: Arc::new(Shared { database, server: server.into(), jobs, nudge }) })
    }

    /// Takes the name of this server for as long as what is given is held; `None` where another server on this store has it, whose chain in
    /// the audit and whose turns would be this one's.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn take_name(&self) -> StoreResult<Option<NameTaken>> {
        let Some(sql) = self.shared.database.take_name() else { return Ok(Some(NameTaken { _link: None })) };
        let mut link = self.shared.database.connect().await?;
        let rows = link.fetch(statement!(sql, self.shared.server.clone())).await?;
        let taken = rows.into_iter().next().map(|mut row| row.int()).transpose()?;
        Ok((taken == Some(1)).then_some(NameTaken { _link: Some(link) }))
    }

    async fn write(&self, work: Work) -> StoreResult<Answer> {
        let (done, answer) = oneshot::channel();
        // The runtime that has opened the store is gone, and the writer with it.
        let stopped = || StoreError::unavailable("the store is closed");
        let answer = match self.shared.jobs.send(Job { work, done }).await {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(stopped())),
            Err(_) => Err(stopped()),
        };
        answer.map_err(|error| self.named(error))
    }

    /// Writes statements together, and gives the rows of each. One about what is never kept changes nothing.
    ///
    /// # Errors
    /// Also where something is to be added that cannot be kept.
    async fn write_all(&self, statements: Vec<Statement>) -> StoreResult<Vec<Vec<Row>>> {
        let are_made: Vec<bool> = statements.iter().map(|statement| !statement.is_about_nothing()).collect();
        if statements.iter().zip(&are_made).any(|(statement, is_made)| !is_made && statement.adds()) {
            return Err(self.named(StoreError::invalid("a text with a NUL in it cannot be kept")));
        }
        let made = statements.into_iter().zip(&are_made);
        let made: Vec<_> = made.filter_map(|(statement, is_made)| is_made.then_some(statement)).collect();
        let rows = match self.write(Work::Statements(made)).await? {
            Answer::Rows(rows) => rows,
            other => return Err(self.named(unanswered(&other))),
        };
        let mut rows = rows.into_iter();
        let of = |is_made| if is_made { rows.next().unwrap_or_default() } else { Vec::new() };
        Ok(are_made.into_iter().map(of).collect())
    }

    /// The same, and gives the rows of the last one.
    async fn write_statements(&self, statements: Vec<Statement>) -> StoreResult<Vec<Row>> {
        Ok(self.write_all(statements).await?.pop().unwrap_or_default())
    }

    /// Writes one statement, and gives its rows.
    async fn run(&self, statement: Statement) -> StoreResult<Vec<Row>> {
        self.write_statements(vec![statement]).await
    }

    /// Writes a statement that gives the rows it is about, and says whether there were any.
    async fn takes_effect(&self, statement: Statement) -> StoreResult<bool> {
        Ok(!self.run(statement).await?.is_empty())
    }

    /// The rows of a question, each read by `read`. There are none of what is never kept.
    async fn read<T>(
        &self,
        statement: Statement,
        read: impl Fn(Row) -> Result<T, StoreError>,
    ) -> StoreResult<Vec<T>> {
        if statement.is_about_nothing() {
            return Ok(Vec::new());
        }
        self.each(self.shared.database.read(statement).await, read)
    }

    /// The same of a search.
    async fn search<T>(
        &self,
        statement: Statement,
        read: impl Fn(Row) -> Result<T, StoreError>,
    ) -> StoreResult<Vec<T>> {
        self.each(self.shared.database.search(statement).await, read)
    }

    fn each<T>(
        &self,
        rows: StoreResult<Vec<Row>>,
        read: impl Fn(Row) -> Result<T, StoreError>,
    ) -> StoreResult<Vec<T>> {
        let rows = rows.and_then(|rows| rows.into_iter().map(read).collect());
        rows.map_err(|error| self.named(error))
    }

    /// The same of a question that has one row at most.
    async fn read_one<T>(
        &self,
        statement: Statement,
        read: impl Fn(Row) -> Result<T, StoreError>,
    ) -> StoreResult<Option<T>> {
        Ok(self.read(statement, read).await?.pop())
    }

    fn named(&self, error: StoreError) -> StoreError {
        error.of(self.shared.database.name())
    }
}

/// The writer has answered other work than it was given.
fn unanswered(answer: &Answer) -> StoreError {
    StoreError::unavailable(format!("the writer answered {answer:?}"))
}

/// Brings the tables to the version this program knows.
async fn lay_out(database: &dyn Database) -> StoreResult<()> {
    /// A lock of its own, for servers that start at once.
    const LAYING_OUT: i32 = -1;
    let mut link = database.connect().await?;
    let begin = database.begin(&BTreeSet::from([LAYING_OUT]));
    for statement in database.before_laying_out().into_iter().chain(begin) {
        link.fetch(statement).await?;
    }
    link.script(database.version_table()).await?;
    let version: usize = match link.fetch(statement!("SELECT version FROM toolrack_schema")).await?.pop() {
        Some(mut row) => row.count()?,
        None => {
            link.script("INSERT INTO toolrack_schema VALUES (0)").await?;
            0
        }
    };
    let schema = database.schema();
    let Some(missing) = schema.get(version..) else {
        let known = schema.len();
        return Err(StoreError::corrupt(format!(
            "its tables are of version {version}, and this program knows them up to {known}: use the newer program that has \
             written it, or another database"
        )));
    };
    for step in missing {
        link.script(step).await?;
    }
    link.fetch(statement!("UPDATE toolrack_schema SET version = $1", schema.len())).await?;
    link.script("COMMIT").await
}
