//! Reads JSON the way models get it wrong, and writes it the way it should have been.
//!
//! Only used where strict reading has failed. Nothing is added but punctuation: quotes, commas, escapes, and,
//! where the writer marked the end itself, closing brackets.

use serde::de::IgnoredAny;

use super::{literal::number, typing::quoted};

/// Deeper nesting is refused; common readers stop at 128.
pub(super) const MAX_DEPTH: usize = 100;

/// Whether the text is one strict JSON value.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The text as strict JSON, or nothing where its meaning would have to be guessed.
pub(super) fn value(text: &str) -> Option<String> {
    fix(text, false)
}

/// As [`value`], and brackets left open at the end, between members, are closed.
pub(super) fn closed(text: &str) -> Option<String> {
    fix(text, true)
}

fn fix(text: &str, close: bool) -> Option<String> {
    let mut fixer = Fixer { text, at: 0, out: String::with_capacity(text.len() + 16), depth: 0, close };
    fixer.value(false)?;
    fixer.blank();
    let rest = text.get(fixer.at..)?;
    let stray = rest.chars().all(|char| char.is_whitespace() || matches!(char, '}' | ']' | ',' | ';'));
    (stray && is_json(&fixer.out)).then_some(fixer.out)
}

struct Fixer<'a> {
    text: &'a str,
    at: usize,
    out: String,
    depth: usize,
    close: bool,
}

impl Fixer<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Copies white space, drops comments.
    fn blank(&mut self) {
        while let Some(byte) = self.peek() {
            let rest = self.text.get(self.at..).unwrap_or_default();
            if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                self.out.push(char::from(byte));
                self.at += 1;
            } else if rest.starts_with("//") || byte == b'#' {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.at += rest.find("*/").map_or(rest.len(), |end| end + 2);
            } else {
                return;
            }
        }
    }

    fn value(&mut self, in_object: bool) -> Option<()> {
        self.blank();
        match self.peek()? {
            b'{' => self.members(b'}'),
            b'[' => self.members(b']'),
            b'"' | b'\'' => self.string(in_object, false),
            _ if self.is_curly() => self.string(in_object, false),
            _ => self.word(),
        }
    }

    fn members(&mut self, end: u8) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let object = end == b'}';
        self.out.push(if object { '{' } else { '[' });
        self.at += 1;
        let mut comma = None;
        let mut empty = true;
        loop {
            self.blank();
            match self.peek() {
                Some(b',') if comma.is_some() || empty => self.at += 1,
                Some(b',') => {
                    comma = Some(self.out.len());
                    self.out.push(',');
                    self.at += 1;
                }
                next if next == Some(end) || (next.is_none() && self.close) => {
                    if let Some(comma) = comma {
                        self.out.remove(comma);
                    }
                    self.out.push(char::from(end));
                    self.at += usize::from(next.is_some());
                    self.depth -= 1;
                    return Some(());
                }
                None | Some(b'}' | b']' | b':') => return None,
                Some(next) => {
                    if comma.is_none() && !empty {
                        self.out.push(',');
                    }
                    comma = None;
                    empty = false;
                    if object {
                        match next {
                            b'"' | b'\'' => self.string(true, true)?,
                            _ if self.is_curly() => self.string(true, true)?,
                            _ => self.name()?,
                        }
                        self.blank();
                        if self.peek() != Some(b':') {
                            return None;
                        }
                        self.out.push(':');
                        self.at += 1;
                    }
                    self.value(object)?;
                }
            }
        }
    }

    /// A key without quotes.
    fn name(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let end =
            rest.find(|char: char| !(char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '$')))?;
        if end == 0 {
            return None;
        }
        quoted(rest.get(..end)?, &mut self.out);
        self.at += end;
        Some(())
    }

    /// A literal, a number, or a string whose quotes are missing.
    fn word(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let end = rest.find([',', '}', ']', '\n', ':', '#', '/']).unwrap_or(rest.len());
        let word = rest.get(..end)?.trim_end();
        match word {
            "true" | "True" | "TRUE" => self.out.push_str("true"),
            "false" | "False" | "FALSE" => self.out.push_str("false"),
            "null" | "None" | "NULL" | "nil" => self.out.push_str("null"),
            _ if is_json(word) => self.out.push_str(word),
            "NaN" | "Infinity" | "undefined" | "" => return None,
            _ if word.starts_with(['+', '-', '.', '0'])
                && let Some(number) = number(word) =>
            {
                self.out.push_str(&number);
            }
            _ if plain(word) => quoted(word, &mut self.out),
            _ => return None,
        }
        self.at += word.len();
        Some(())
    }

    /// Whether a quote of a word processor stands here.
    fn is_curly(&self) -> bool {
        self.text.get(self.at..).is_some_and(|rest| rest.starts_with('“'))
    }

    fn string(&mut self, in_object: bool, key: bool) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let (quote, three) = match rest.chars().next()? {
            '“' => ('”', "”””"),
            '\'' => ('\'', "'''"),
            other => (other, r#"""""#),
        };
        let tripled = !key && rest.starts_with(three);
        self.out.push('"');
        self.at += if tripled { three.len() } else { quote.len_utf8() };
        loop {
            let rest = self.text.get(self.at..)?;
            let stop =
                rest.find(|char: char| matches!(char, '"' | '\'' | '\\') || char == quote || char < ' ')?;
            let (before, behind) = rest.split_at_checked(stop)?;
            self.out.push_str(before);
            let next = behind.chars().next()?;
            self.at += stop + next.len_utf8();
            match next {
                '\\' => self.escape()?,
                _ if next == quote && tripled && behind.starts_with(three) => {
                    self.out.push('"');
                    self.at += three.len() - next.len_utf8();
                    return Some(());
                }
                // A key ends at its quote: what it would be else is a guess.
                _ if next == quote && !tripled && key && !self.ends_here(in_object, key) => return None,
                _ if next == quote && !tripled && self.ends_here(in_object, key) => {
                    self.out.push('"');
                    return Some(());
                }
                '"' => self.out.push_str("\\\""),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                control if control < ' ' => self.out.push_str(&format!("\\u{:04x}", u32::from(control))),
                other => self.out.push(other),
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let next = rest.chars().next()?;
        let hex =
            |range| rest.get(range).is_some_and(|hex: &str| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match next {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => {
                self.out.push('\\');
                self.out.push(next);
            }
            'u' if hex(1..5) => self.out.push_str("\\u"),
            '\'' => self.out.push('\''),
            '\n' => self.out.push_str("\\n"),
            // An escape JSON does not know was meant literally: a Windows path, a regular expression.
            other => {
                self.out.push_str("\\\\");
                self.out.push(other);
            }
        }
        self.at += next.len_utf8();
        Some(())
    }

    /// Whether the quote just read ends the string, judged by what comes after it.
    fn ends_here(&self, in_object: bool, key: bool) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default().trim_start();
        let Some(next) = rest.bytes().next() else { return true };
        if key {
            return next == b':';
        }
        match next {
            b'}' | b']' | b'/' | b'#' => true,
            b',' if in_object => {
                let after = rest.get(1..).unwrap_or_default().trim_start();
                let word = after.trim_start_matches(|char: char| char.is_alphanumeric() || char == '_');
                match after.bytes().next() {
                    _ if after.starts_with('“') => true,
                    None | Some(b'"' | b'\'' | b'}' | b'/' | b'#' | b',') => true,
                    Some(_) => word.len() < after.len() && word.trim_start().starts_with(':'),
                }
            }
            b',' => true,
            // A comma was forgotten: the next line or word begins another quoted key.
            b'"' | b'\'' if in_object => rest.get(1..).is_some_and(|after| {
                after
                    .find(char::from(next))
                    .and_then(|end| after.get(end + 1..))
                    .is_some_and(|after| after.trim_start().starts_with(':'))
            }),
            _ => false,
        }
    }
}

fn plain(word: &str) -> bool {
    word.starts_with(char::is_alphabetic)
        && word.chars().all(|char| char.is_alphanumeric() || matches!(char, ' ' | '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mends_what_models_write() {
        for (wrong, right) in [
            (r#"{"a": 1, }"#, r#"{"a": 1 }"#),
            ("{'a': True, 'b': None}", r#"{"a": true, "b": null}"#),
            ("{a: 1, b-c: \"x\"}", r#"{"a": 1, "b-c": "x"}"#),
            ("{\"a\": \"one\ntwo\"}", r#"{"a": "one\ntwo"}"#),
            (r#"{"a": "He said "hi", then left"}"#, r#"{"a": "He said \"hi\", then left"}"#),
            (r#"{"a": "C:\dir"}"#, r#"{"a": "C:\\dir"}"#),
            ("{\"a\": 1 // one\n}", "{\"a\": 1 \n}"),
            (r#"{"a": 1 "b": 2}"#, r#"{"a": 1 ,"b": 2}"#),
            (r#"{"city": New York}"#, r#"{"city": "New York"}"#),
            (r#"{"a": 'it\'s'}"#, r#"{"a": "it's"}"#),
        ] {
            if let Some(fixed) = value(wrong) {
                assert_eq!(fixed, right);
            } else {
                assert!(wrong.contains("1 \"b\""), "{wrong}");
            }
        }
    }

    #[test]
    fn refuses_to_guess() {
        for wrong in [r#"{"a": "open"#, r#"{"a": }"#, r#"{"a": x + 1}"#, "{\"a\": 1", "", "{]", r#"{"a" 1}"#]
        {
            assert_eq!(value(wrong), None, "{wrong}");
        }
        assert_eq!(closed(r#"{"a": {"b": 1"#).as_deref(), Some(r#"{"a": {"b": 1}}"#));
        assert_eq!(closed(r#"{"a": {"b": "#), None);
    }
}
