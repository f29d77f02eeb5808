//! Foreign texts, cut so that they can be shown.

use std::error::Error;

use registry_core::{
    text::{cut, is_invisible},
    with_causes,
};

/// How much of a text of a source is shown, in bytes.
const MAX_SHOWN: usize = 500;

/// A text without what nobody sees, and no longer than fits a line.
pub(crate) fn shown(text: &str) -> String {
    // Whatever follows is cut off in any case, and may be megabytes.
    let beginning = text.chars().take(MAX_SHOWN + 1);
    let visible: String =
        beginning.map(|c| if is_invisible(c) || c.is_control() { ' ' } else { c }).collect();
    cut(visible, MAX_SHOWN)
}

/// An error with its causes, for the operator: it may have addresses in it.
pub(crate) fn cause_of(error: impl Error + 'static) -> String {
    shown(&without_types(&with_causes(&error)))
}

/// Without the type of the transport, which the client library puts into its errors: `Transport [a::B<c::D>] error: `.
fn without_types(text: &str) -> String {
    let before_and_type = text.split_once("Transport [");
    let parts = before_and_type.and_then(|(before, rest)| Some((before, rest.split_once("] error: ")?.1)));
    parts.map_or_else(|| text.to_owned(), |(before, after)| format!("{before}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b9_a_long_text_is_cut_before_it_is_looked_through() {
        for (text, is_cut) in [("x".repeat(MAX_SHOWN), false), ("x".repeat(MAX_SHOWN + 1), true)] {
            assert_eq!(shown(&text) != text, is_cut);
        }
        let huge = "\u{200b}é".repeat(8 << 20);
        let began = std::time::Instant::now();
        for _ in 0..100 {
            assert!(shown(&huge).len() <= MAX_SHOWN + "…".len());
        }
        // One of them alone would take a good part of a second.
        assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[test]
    fn the_type_of_a_transport_is_not_shown() {
        let text = "Transport send error: Transport [a::B<c::D>] error: Client error: refused";
        assert_eq!(without_types(text), "Transport send error: Client error: refused");
        for whole in ["refused", "Transport [a", ""] {
            assert_eq!(without_types(whole), whole);
        }
    }
}
