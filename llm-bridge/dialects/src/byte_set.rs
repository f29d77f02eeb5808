//! Sets of bytes, asked once for every byte of a text.

/// A set of bytes.
#[derive(Debug)]
pub(super) struct ByteSet([bool; 256]);

impl ByteSet {
    pub(super) fn insert(&mut self, byte: u8) {
        if let Some(slot) = self.0.get_mut(usize::from(byte)) {
            *slot = true;
        }
    }

    pub(super) fn contains(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte)).copied().unwrap_or(false)
    }

    /// Whether one of the bytes is in the set. All are looked at: in a short text that is faster than to stop.
    pub(super) fn has_any(&self, bytes: &[u8]) -> bool {
        bytes.iter().fold(false, |found, byte| found | self.contains(*byte))
    }
}

impl Default for ByteSet {
    fn default() -> Self {
        Self([false; 256])
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        let mut set = Self::default();
        bytes.into_iter().for_each(|byte| set.insert(byte));
        set
    }
}
