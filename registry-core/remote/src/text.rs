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
    let visible: String =
        text.chars().map(|c| if is_invisible(c) || c.is_control() { ' ' } else { c }).collect();
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
    fn the_type_of_a_transport_is_not_shown() {
        let text = "Transport send error: Transport [a::B<c::D>] error: Client error: refused";
        assert_eq!(without_types(text), "Transport send error: Client error: refused");
        for whole in ["refused", "Transport [a", ""] {
            assert_eq!(without_types(whole), whole);
        }
    }
}
