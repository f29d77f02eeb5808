//! What is examined for some minutes: begun by one request, looked at and stopped by others. One at a time.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures_util::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use registry_core::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::turn::Backend;

/// What is being examined.
#[derive(derive_more::Debug)]
#[debug("Examination")]
pub struct Examination {
    /// What is looked at now.
    pub looks_at: Box<dyn Fn() -> String + Send + Sync>,
    /// The report in the end, or why there is none.
    pub report: BoxFuture<'static, Result<Value, String>>,
}

/// Examinations of subjects `S`. Cheap to clone.
pub(in crate::server) struct Examinations<S>(Arc<Mutex<Examined<S>>>);

impl<S> Clone for Examinations<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// What was examined last.
pub(in crate::server) struct Examined<S> {
    pub(in crate::server) subject: Option<S>,
    pub(in crate::server) running: Option<Running>,
    pub(in crate::server) report: Option<Value>,
    pub(in crate::server) error: Option<String>,
}

impl<S> Examined<S> {
    /// For whoever asks.
    pub(in crate::server) fn shown(&self) -> ShownExamination {
        let running = self.running.as_ref();
        ShownExamination {
            running: running.is_some(),
            looks_at: running.map(|running| (running.looks_at)()),
            seconds: running.map(|running| running.since.elapsed().as_secs()),
            report: self.report.clone(),
            error: self.error.clone(),
        }
    }
}

/// How far an examination is, and what was seen.
#[derive(Default, Serialize, JsonSchema)]
pub(in crate::server) struct ShownExamination {
    /// Whether a model is being asked.
    running: bool,
    /// What it is asked now.
    looks_at: Option<String>,
    /// For how long, in seconds.
    seconds: Option<u64>,
    /// What was seen, as the command prints it with `--json`.
    report: Option<Value>,
    /// Why nothing was seen.
    error: Option<String>,
}

pub(in crate::server) struct Running {
    looks_at: Box<dyn Fn() -> String + Send + Sync>,
    since: Instant,
    pub(in crate::server) stop: CancellationToken,
}

impl<S: Send + 'static> Examinations<S> {
    pub(in crate::server) fn new() -> Self {
        let nothing = Examined { subject: None, running: None, report: None, error: None };
        Self(Arc::new(Mutex::new(nothing)))
    }

    pub(in crate::server) fn lock(&self) -> MutexGuard<'_, Examined<S>> {
        self.0.lock()
    }

    /// Examines in a task, which is there as long as it counts as running; false while another one does.
    pub(in crate::server) fn begin(
        &self,
        subject: Option<S>,
        begin: impl FnOnce() -> Examination,
        backend: &Backend,
        closing: &CancellationToken,
    ) -> bool {
        let mut examined = self.lock();
        if examined.running.is_some() {
            return false;
        }
        let Examination { looks_at, report } = begin();
        let stop = closing.child_token();
        let running = Some(Running { looks_at, since: Instant::now(), stop: stop.clone() });
        *examined = Examined { subject, running, report: None, error: None };
        let shared = self.clone();
        backend.spawn(async move {
            let seen = stop.run_until_cancelled(AssertUnwindSafe(report).catch_unwind()).await;
            let mut examined = shared.lock();
            examined.running = None;
            match seen {
                Some(Ok(Ok(report))) => examined.report = Some(report),
                Some(Ok(Err(error))) => examined.error = Some(error),
                Some(Err(_)) => examined.error = Some("it failed; the server's log says why".to_owned()),
                None => examined.error = Some("it was stopped".to_owned()),
            }
        });
        true
    }
}
