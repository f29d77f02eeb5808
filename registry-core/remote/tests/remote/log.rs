//! What a test's thread logs.

use std::{
    cell::RefCell,
    io, mem,
    sync::{Arc, Mutex, Once},
};

thread_local! {
    static HERE: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// The lines of the log since a test began, without their time and place.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Begins the log of this thread; all of the test has to run on it.
    pub(crate) fn start() -> Self {
        static SUBSCRIBER: Once = Once::new();
        // One for all threads and tests: one of a thread's own may miss what another thread was the first to come by.
        SUBSCRIBER.call_once(|| {
            let here = || HERE.with_borrow(|here| here.clone().unwrap_or_default());
            let subscriber =
                tracing_subscriber::fmt().with_env_filter("toolrack_remote=info").with_ansi(false);
            subscriber.without_time().with_target(false).with_writer(here).init();
        });
        let log = Self::default();
        HERE.set(Some(log.clone()));
        log
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines that were not taken before.
    pub(crate) fn take(&self) -> Vec<String> {
        let text = String::from_utf8(mem::take(&mut *self.0.lock().unwrap())).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    pub(crate) fn count(&self, word: &str) -> usize {
        self.text().matches(word).count()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
