//! How long values are as JSON, without writing it.

use std::io::{self, Write};

use serde::Serialize;

/// Takes so many bytes, and keeps none of them: what is longer is looked at no further.
#[derive(Debug, Clone, Copy)]
pub struct Room(pub usize);

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a value has at most so many bytes as JSON.
pub fn is_within(value: &(impl Serialize + ?Sized), most: usize) -> bool {
    serde_json::to_writer(Room(most), value).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a37_a_value_is_within_its_length_and_no_less() {
        for value in [json!({}), json!({"a": [1.5, null, "é\n\""]}), json!("x".repeat(1000))] {
            let length = value.to_string().len();
            assert!(is_within(&value, length) && !is_within(&value, length - 1), "{value}");
        }
    }
}
