//! What is printed: answers on standard output, the rest on standard error.

use std::{
    fmt::Display,
    io::{ErrorKind, Write},
};

/// Prints to standard output at once. Whether somebody reads on: `toolrack … | head` ends when it has enough, and that is no fault.
pub(super) fn print(text: impl Display) -> Result<bool, String> {
    let mut out = std::io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("cannot write to standard output: {error}")),
    }
}

/// The same with the end of a line.
pub(super) fn print_line(text: impl Display) -> Result<bool, String> {
    print(format_args!("{text}\n"))
}

/// Writes a line to standard error. When nobody reads that, there is nobody to tell.
pub(super) fn tell(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Text on one line that cannot steer the terminal: what a caller wrote stands there as text, and as nothing else.
pub(super) fn one_line(text: &str) -> String {
    let escaped = |char: char| -> Box<dyn Iterator<Item = char>> {
        if char.is_control() { Box::new(char.escape_default()) } else { Box::new(std::iter::once(char)) }
    };
    text.chars().flat_map(escaped).collect()
}

/// Text of many lines that cannot steer the terminal either.
pub(super) fn lines(text: &str) -> String {
    text.split_inclusive(['\n', '\t'])
        .map(|line| match line.strip_suffix(['\n', '\t']) {
            Some(before) => one_line(before) + line.get(before.len()..).unwrap_or_default(),
            None => one_line(line),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{lines, one_line};

    #[test]
    fn what_a_caller_wrote_makes_no_line_of_its_own() {
        assert_eq!(one_line("a\n2026 root\u{1b}[2J ü"), "a\\n2026 root\\u{1b}[2J ü");
    }

    #[test]
    fn an_answer_keeps_its_lines() {
        assert_eq!(lines("a\n\n\tb\u{1b}[2J\rü\n"), "a\n\n\tb\\u{1b}[2J\\rü\n");
    }
}
