//! Where a prompt is written to.

use std::io::{Error, ErrorKind, Result, Write};

/// A text that does not get longer than its bound.
#[derive(Debug)]
pub(crate) struct Bounded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_full: bool,
    most: usize,
}

impl Bounded {
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), is_full: false, most }
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.is_full |= bytes.len() > self.most - self.bytes.len();
        if self.is_full {
            return Err(Error::from(ErrorKind::StorageFull));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
