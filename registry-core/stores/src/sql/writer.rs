//! The one that writes: it takes all that waits, writes it in one transaction, and answers when that is on its way to the disk.
//!
//! So the price of a commit is shared by all calls that come while the commit before is made.

use std::{sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot};

use super::{
    Database,
    batch::{Answer, Work, locks, write},
    failure::is_cut,
    link::{Link, Statement, statement},
};
use registry_core::store::StoreError;

/// How much is written in one transaction at most.
const BATCH: usize = 512;
/// After so many charges the counts are swept.
const SWEEP: usize = 10_000;
/// How long a transaction may take. A server that has gone away without a word is noticed by this.
const LONGEST: Duration = Duration::from_secs(30);

/// Work, and who waits for it.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) done: oneshot::Sender<Result<Answer, StoreError>>,
}

pub(crate) struct Writer {
    database: Arc<dyn Database>,
    /// `None` until it is needed, also after it failed.
    link: Option<Linked>,
    charges_since_sweep: usize,
}

impl Writer {
    pub(crate) fn new(database: Arc<dyn Database>) -> Self {
        Self { database, link: None, charges_since_sweep: 0 }
    }

    /// Writes until nobody can send any more.
    pub(crate) async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut waiting = Vec::with_capacity(BATCH + 1);
        while jobs.recv_many(&mut waiting, BATCH).await > 0 {
            waiting.extend(self.sweep(&waiting));
            let (work, done): (Vec<Work>, Vec<_>) = waiting.drain(..).map(|job| (job.work, job.done)).unzip();
            let answers = self.answer(&work).await;
            for (done, answer) in done.into_iter().zip(answers) {
                // Whoever asked may have gone away. It is written all the same.
                let _ = done.send(answer);
            }
        }
    }

    /// From time to time, the removal of counts that no longer say anything.
    fn sweep(&mut self, waiting: &[Job]) -> Option<Job> {
        let mut charges = waiting.iter().filter_map(|job| match &job.work {
            Work::Charge(charge) => Some(charge.at),
            _ => None,
        });
        self.charges_since_sweep += charges.clone().count();
        let now = charges.next_back().filter(|_| self.charges_since_sweep >= SWEEP)?;
        self.charges_since_sweep = 0;
        let sweep = statement!("DELETE FROM call_counts WHERE until <= $1", now);
        Some(Job { work: Work::Statements(vec![sweep]), done: oneshot::channel().0 })
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
                        Err(Failed { error, at_fault: true }) => answers.push(Err(error)),
                        // The database has gone away meanwhile, for the rest of them too.
                        Err(Failed { error, .. }) => {
                            answers.resize_with(work.len(), || Err(error.clone()));
                            break;
                        }
                    }
                }
                answers
            }
            Err(Failed { error, .. }) => work.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn transaction(&mut self, work: &[Work]) -> Result<Vec<Answer>, Failed> {
        // Taken, so that it is gone for good where this is not brought to its end.
        let link = self.link.take();
        match tokio::time::timeout(LONGEST, transaction(self.database.as_ref(), link, work)).await {
            Ok((written, link)) => {
                self.link = link;
                written
            }
            Err(_) => {
                let cause = format!("the database gave no answer within {} s", LONGEST.as_secs());
                Err(Failed { error: StoreError::unavailable(cause), at_fault: false })
            }
        }
    }
}

/// Why a transaction was not committed, or may not have been.
struct Failed {
    error: StoreError,
    /// Whether what was to be written is the cause, rather than the database or the way to it.
    at_fault: bool,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self { error, at_fault: false }
    }
}

type Linked = Box<dyn Link>;

/// Writes all of it or nothing, and gives the connection back where it can be used further.
async fn transaction(
    database: &dyn Database,
    link: Option<Linked>,
    work: &[Work],
) -> (Result<Vec<Answer>, Failed>, Option<Linked>) {
    let begun = match database.check() {
        Ok(()) => begin(database, link, work).await,
        Err(error) => return (Err(error.into()), link),
    };
    let mut link = match begun {
        Ok(link) => link,
        Err(error) => return (Err(error.into()), None),
    };
    match write(link.as_mut(), work).await {
        Ok(answers) => match link.fetch(statement!("COMMIT")).await {
            // Nothing is acknowledged that nobody will find.
            Ok(_) => (database.check().map(|()| answers).map_err(Into::into), Some(link)),
            // Nobody knows whether it has been made, so it is not tried again.
            Err(error) => (Err(StoreError::unavailable(error).into()), None),
        },
        Err(error) => {
            let at_fault = !is_cut(&error);
            let usable = at_fault && link.fetch(statement!("ROLLBACK")).await.is_ok();
            (Err(Failed { error, at_fault }), usable.then_some(link))
        }
    }
}

/// Begins a transaction, on a new connection where there is none or the one there was cut while nobody used it.
async fn begin(database: &dyn Database, link: Option<Linked>, work: &[Work]) -> Result<Linked, StoreError> {
    let statements = database.begin(&locks(work));
    if let Some(mut link) = link {
        match run(link.as_mut(), statements.clone()).await {
            Ok(()) => return Ok(link),
            Err(error) if !is_cut(&error) => return Err(error),
            Err(_) => {}
        }
    }
    let mut link = database.connect().await?;
    run(link.as_mut(), statements).await?;
    Ok(link)
}

async fn run(link: &mut dyn Link, statements: Vec<Statement>) -> Result<(), StoreError> {
    for statement in statements {
        link.fetch(statement).await?;
    }
    Ok(())
}
