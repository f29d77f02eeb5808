//! Escapes untrusted text for a terminal.

use std::{
    io::{self, IsTerminal, Write},
    sync::LazyLock,
};

use regex::{Captures, Regex};

/// Control characters (C0, DEL, C1), which steer a terminal; format characters, which include those that turn the direction of text;
/// and all that have no shape.
static UNSAFE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]").ok());

const JOINER: char = '\u{200d}';
const PICTURE: char = '\u{fe0f}';

/// Text that a terminal shows as it is: each character that would steer the terminal, turn the text around or stay invisible is written
/// as an escape such as `\u{1b}`. Characters in `keep` stay, and so do joiners inside emoji and words that need them.
fn escape(text: &str, keep: &[char]) -> String {
    let Some(hidden) = UNSAFE.as_ref() else { return text.escape_default().to_string() };
    let replace = |found: &Captures<'_>| {
        let Some(found) = found.get(0) else { return String::new() };
        let is_kept = |c: char| {
            let before = text.get(..found.start()).and_then(|before| before.chars().next_back());
            keep.contains(&c) || before.is_some_and(|before| joins(before, c, hidden))
        };
        let shown = |c: char| if is_kept(c) { c.to_string() } else { c.escape_default().to_string() };
        found.as_str().chars().map(shown).collect()
    };
    hidden.replace_all(text, replace).into_owned()
}

/// Whether an invisible character belongs to the letter or emoji before it.
fn joins(before: char, joiner: char, hidden: &Regex) -> bool {
    let is_joiner = matches!(joiner, '\u{200c}' | JOINER | '\u{fe0e}' | PICTURE);
    let is_visible = !before.is_ascii() && !hidden.is_match(before.encode_utf8(&mut [0; 4]));
    is_joiner && (is_visible || (before, joiner) == (PICTURE, JOINER))
}

/// Untrusted text on one line.
pub(super) fn one_line(text: &str) -> String {
    escape(text, &[])
}

/// Untrusted text that keeps its lines and tabs.
pub(super) fn lines(text: &str) -> String {
    escape(text, &['\n', '\t'])
}

/// A record of the log, which is written at once. Its further lines are indented: a text of somebody else cannot pass for a record.
fn record(text: &str, colour: &[char]) -> String {
    let keep: Vec<char> = ['\n', '\t'].iter().chain(colour).copied().collect();
    escape(text.strip_suffix('\n').unwrap_or(text), &keep).replace('\n', "\n    ") + "\n"
}

/// Standard error for the log. Values are escaped by the log itself, but for what is invisible or turns text around.
pub(super) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The log's own colours begin with the one character that it escapes in values.
        let colour: &[char] = if io::stderr().is_terminal() { &['\u{1b}'] } else { &[] };
        io::stderr().write_all(record(&String::from_utf8_lossy(bytes), colour).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::{lines, one_line, record};

    #[test]
    fn g4_nothing_untrusted_steers_the_terminal() {
        for (text, shown) in [
            ("a\n2026 root\u{1b}[2J ü", "a\\n2026 root\\u{1b}[2J ü"),
            ("\u{9b}31mred\u{7f}\u{0}", "\\u{9b}31mred\\u{7f}\\u{0}"),
            ("rm \u{202e}txt.cod\u{2066}\u{200f}", "rm \\u{202e}txt.cod\\u{2066}\\u{200f}"),
            ("pay\u{200b}pal \u{feff}\u{ad}\u{3164}", "pay\\u{200b}pal \\u{feff}\\u{ad}\\u{3164}"),
            ("a\u{e0041}\u{e0042}\u{fe00}\u{2028}", "a\\u{e0041}\\u{e0042}\\u{fe00}\\u{2028}"),
            // Joined emoji, a keyboard's heart on fire, a Persian word.
            (
                "👩\u{200d}💻 ❤\u{fe0f}\u{200d}🔥 می\u{200c}خواهم",
                "👩\u{200d}💻 ❤\u{fe0f}\u{200d}🔥 می\u{200c}خواهم",
            ),
            ("a\u{200d}b ❤\u{fe0f}\u{fe0f}", "a\\u{200d}b ❤\u{fe0f}\\u{fe0f}"),
        ] {
            assert_eq!(one_line(text), shown);
        }
    }

    #[test]
    fn a46_no_text_within_a_record_of_the_log_looks_like_another() {
        let forged = "ERROR error=no\n2026-01-01 INFO root was here\r\u{1b}[2J\n\n";
        let shown = "ERROR error=no\n    2026-01-01 INFO root was here\\r\\u{1b}[2J\n    \n";
        assert_eq!(record(forged, &[]), shown);
        assert_eq!(
            record("INFO \u{1b}[2mall\u{1b}[0m well\n", &['\u{1b}']),
            "INFO \u{1b}[2mall\u{1b}[0m well\n"
        );
    }

    #[test]
    fn an_answer_keeps_its_lines() {
        assert_eq!(lines("a\n\n\tb\u{1b}[2J\rü\n"), "a\n\n\tb\\u{1b}[2J\\rü\n");
    }
}
