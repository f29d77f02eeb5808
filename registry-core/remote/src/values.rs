//! How many values what another server sends may consist of.

use std::io;

/// How many values one message or reply may consist of: each takes up to two hundred times its two bytes in memory.
pub(crate) const MAX_VALUES: usize = 500_000;

/// Counts the values of a JSON text before they are made.
#[derive(Default)]
pub(crate) struct Values {
    many: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl Values {
    /// Counts on.
    ///
    /// # Errors
    /// When there are more than there may be.
    pub(crate) fn count(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.iter().try_for_each(|byte| self.take(*byte))
    }

    /// The same for one byte.
    fn take(&mut self, byte: u8) -> io::Result<()> {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = self.is_in_text,
            b'"' => self.is_in_text = !self.is_in_text,
            b',' | b'[' | b'{' if !self.is_in_text => self.many += 1,
            _ => {}
        }
        match self.many > MAX_VALUES {
            true => Err(io::Error::other(format!("a message has more than {MAX_VALUES} values"))),
            false => Ok(()),
        }
    }
}
