//! The one that writes: it takes all that waits, writes it in one transaction, and answers when that is on its way to the disk.
//!
//! So the price of a commit is shared by all calls that come while the commit before is made.

use std::{sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot};

use super::{
    Database,
    batch::{Answer, Failure, Work, locks, write},
    link::{Link, Statement},
};
use crate::store::StoreError;

/// How much is written in one transaction at most.
const BATCH: usize = 512;
/// How long a transaction may take. A server that has gone away without a word is noticed by this.
const LONGEST: Duration = Duration::from_secs(30);

/// Work, and who waits for it.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) done: oneshot::Sender<Result<Answer, StoreError>>,
}

pub(crate) struct Writer {
    database: Arc<dyn Database>,
    /// `None` after it failed, until it is needed again.
    link: Option<Box<dyn Link>>,
}

impl Writer {
    pub(crate) fn new(database: Arc<dyn Database>, link: Box<dyn Link>) -> Self {
        Self { database, link: Some(link) }
    }

    /// Writes until nobody can send any more.
    pub(crate) async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut waiting = Vec::with_capacity(BATCH);
        while jobs.recv_many(&mut waiting, BATCH).await > 0 {
            let (work, done): (Vec<Work>, Vec<_>) = waiting.drain(..).map(|job| (job.work, job.done)).unzip();
            let answers = self.answer(&work).await;
            for (done, answer) in done.into_iter().zip(answers) {
                // Whoever asked may have gone away. It is written all the same.
                let _ = done.send(answer);
            }
        }
    }

    async fn answer(&mut self, work: &[Work]) -> Vec<Result<Answer, StoreError>> {
        match self.transaction(work).await {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            // One of them is at fault, and the others are not to suffer for it.
            Err(Failed { at_fault: true, .. }) if work.len() > 1 => {
                let mut answers = Vec::with_capacity(work.len());
                for one in work {
                    match self.transaction(std::slice::from_ref(one)).await {
                        Ok(answer) => answers.extend(answer.into_iter().map(Ok)),
                        Err(Failed { cause, at_fault: true }) => answers.push(Err(cause)),
                        // The database has gone away meanwhile, for the rest of them too.
                        Err(Failed { cause, .. }) => {
                            answers.resize_with(work.len(), || Err(cause.clone()));
                            break;
                        }
                    }
                }
                answers
            }
            Err(Failed { cause, .. }) => work.iter().map(|_| Err(cause.clone())).collect(),
        }
    }

    async fn transaction(&mut self, work: &[Work]) -> Result<Vec<Answer>, Failed> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.database.connect().await.map_err(|error| Failed::new(&error))?,
        };
        let written = tokio::time::timeout(LONGEST, transaction(self.database.as_ref(), link.as_mut(), work));
        let written = written.await.unwrap_or_else(|_| {
            let cause = format!("the database gave no answer within {} s", LONGEST.as_secs());
            Err((Failed { cause, at_fault: false }, false))
        });
        match written {
            Ok(answers) => {
                self.link = Some(link);
                Ok(answers)
            }
            Err((failed, usable)) => {
                self.link = usable.then_some(link);
                Err(failed)
            }
        }
    }
}

/// Why a transaction was not committed, or may not have been.
struct Failed {
    cause: StoreError,
    /// Whether what was to be written is the cause, rather than the database or the way to it.
    at_fault: bool,
}

impl Failed {
    fn new(error: &sqlx::Error) -> Self {
        Self { cause: error.to_string(), at_fault: false }
    }
}

/// Writes all of it or nothing. A failure says whether the connection can be used further.
async fn transaction(
    database: &dyn Database,
    link: &mut dyn Link,
    work: &[Work],
) -> Result<Vec<Answer>, (Failed, bool)> {
    let lost = |error: sqlx::Error| (Failed::new(&error), false);
    for statement in database.begin(&locks(work)) {
        link.fetch(statement).await.map_err(lost)?;
    }
    match write(link, work).await {
        Ok(answers) => {
            // Nobody knows whether a commit that failed has been made, so it is not tried again.
            link.fetch(Statement::new("COMMIT", Vec::new())).await.map_err(lost)?;
            Ok(answers)
        }
        Err(failure) => {
            let failed = match failure {
                Failure::Database(error) => {
                    let at_fault = matches!(error, sqlx::Error::Database(_));
                    Failed { at_fault, ..Failed::new(&error) }
                }
                Failure::Content(cause) => Failed { cause, at_fault: true },
            };
            let usable = link.fetch(Statement::new("ROLLBACK", Vec::new())).await.is_ok();
            Err((failed, usable))
        }
    }
}
