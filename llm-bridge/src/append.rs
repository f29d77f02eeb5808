//! Texts that grow token by token, of which each stream has several.

/// By how many bytes such a text grows at least.
const LEAST: usize = 512;
/// By which part of its length it grows at least, so that a long one is seldom copied.
const PART: usize = 8;

/// Appends to a text, which keeps less room for more than `String` would: up to as much as it has in it.
pub(crate) fn append(text: &mut String, more: &str) {
    if text.capacity() - text.len() < more.len() {
        text.reserve_exact(more.len().max(LEAST).max(text.len() / PART));
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn g13_a_text_that_grows_has_little_room_left_and_is_seldom_copied() {
        let (mut text, mut copies) = (String::new(), 0);
        for token in 0..100_000 {
            let before = text.capacity();
            append(&mut text, " word");
            copies += usize::from(text.capacity() != before);
            assert!(text.capacity() <= text.len().max(4096) * 9 / 8, "after {token} tokens");
        }
        assert!(copies < 50, "{copies}");
        append(&mut text, &"x".repeat(1 << 20));
        assert_eq!(text.capacity() - text.len(), 0);
    }
}
