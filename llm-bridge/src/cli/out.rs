//! Prints results to standard output and messages to standard error.

use std::{
    fmt::Display,
    io::{ErrorKind, IsTerminal, Write},
};

use comfy_table::{Row, Table, presets};
use jiff::Timestamp;

use super::terminal::lines;

/// Prints to standard output and flushes. A terminal gets the text escaped, a program unchanged. False when standard output is closed:
/// `toolrack … | head` is not an error.
pub(super) fn print(text: impl Display) -> Result<bool, String> {
    let mut out = std::io::stdout().lock();
    let written = match out.is_terminal() {
        true => out.write_all(lines(&text.to_string()).as_bytes()),
        false => write!(out, "{text}"),
    };
    match written.and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("cannot write to standard output: {error}")),
    }
}

/// The same with a line end.
pub(super) fn print_line(text: impl Display) -> Result<bool, String> {
    print(format_args!("{text}\n"))
}

/// Writes a line to standard error, escaped.
pub(super) fn tell(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{}", lines(&text.to_string()));
}

/// A number with its noun, as in `2 tools`.
pub(super) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A time to the second.
pub(super) fn second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// An empty table in the style of all tables.
pub(super) fn table(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    table
}

#[cfg(test)]
mod tests {
    #[test]
    fn u16_times_are_shown_to_the_second() {
        let time = "2026-11-23T06:19:36.153393788Z".parse().unwrap();
        assert_eq!(super::second(time), "2026-11-23T06:19:36Z");
    }
}
