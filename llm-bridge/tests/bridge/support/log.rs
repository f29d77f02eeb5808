//! What the program logs while a test runs.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing::subscriber::DefaultGuard;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<String>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log of this thread, on which all of a test runs, until it is dropped.
pub struct Log {
    written: Written,
    _guard: DefaultGuard,
}

impl Log {
    pub fn start() -> Self {
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        Self { written, _guard: tracing::subscriber::set_default(log) }
    }

    pub fn text(&self) -> String {
        self.written.0.lock().unwrap().clone()
    }
}
