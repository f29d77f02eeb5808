//! Rules of a grammar, and how they are written in GBNF.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::{self, Write},
};

/// How many rules a grammar may have, and how many parts of schemas may be looked at for it: a schema is as large as an outsider likes.
const MAX_RULES: usize = 20_000;
const MAX_STEPS: usize = 50_000;

/// What a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Expression {
    /// These bytes.
    Text(String),
    /// One character of these ranges.
    Within(&'static [(char, char)]),
    /// One character that is none of these and no control character but those allowed.
    Except { chars: BTreeSet<char>, lines: bool },
    /// One after the other.
    Sequence(Vec<Self>),
    /// One of them.
    OneOf(Vec<Self>),
    /// From so many to so many times.
    Repeat(Box<Self>, usize, usize),
    /// What the rule of this number matches.
    Rule(usize),
}

impl Expression {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn optional(self) -> Self {
        Self::Repeat(Box::new(self), 0, 1)
    }

    pub(super) fn nothing() -> Self {
        Self::Sequence(Vec::new())
    }
}

/// Rules, each once.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) all: Vec<Expression>,
    known: HashMap<Expression, usize>,
    steps: usize,
}

impl Rules {
    /// One part of a schema more; `None` where that is one too many.
    pub(super) fn step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps <= MAX_STEPS).then_some(())
    }

    /// The rule that matches this; `None` where there are too many.
    pub(super) fn rule(&mut self, expression: Expression) -> Option<Expression> {
        if let Expression::Rule(_) = expression {
            return Some(expression);
        }
        if let Some(&number) = self.known.get(&expression) {
            return Some(Expression::Rule(number));
        }
        let number = self.all.len();
        self.all.push(expression.clone());
        self.known.insert(expression, number);
        (number < MAX_RULES).then_some(Expression::Rule(number))
    }

    /// The rules in GBNF, of which `root` is the first: <https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md>. XGrammar
    /// and llguidance read the same.
    pub(super) fn to_gbnf(&self, root: &Expression) -> String {
        let mut text = String::from("root ::= ");
        // A `String` takes everything.
        let _ = write!(text, "{}", Gbnf(root, false));
        for (number, rule) in self.all.iter().enumerate() {
            let _ = write!(text, "\nr{number} ::= {}", Gbnf(rule, false));
        }
        text.push('\n');
        text
    }
}

/// An expression in GBNF; in parentheses where it is a part of another.
struct Gbnf<'e>(&'e Expression, bool);

impl fmt::Display for Gbnf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(expression, is_part) = self;
        match expression {
            Expression::Text(text) => {
                f.write_char('"')?;
                for char in text.chars() {
                    match char {
                        '"' | '\\' => write!(f, "\\{char}")?,
                        char => plain(char, f)?,
                    }
                }
                f.write_char('"')
            }
            Expression::Within(ranges) => {
                f.write_char('[')?;
                for (first, last) in *ranges {
                    escaped(*first, f)?;
                    if first != last {
                        f.write_char('-')?;
                        escaped(*last, f)?;
                    }
                }
                f.write_char(']')
            }
            Expression::Except { chars, lines } => {
                f.write_str(if *lines { "[^\\x00-\\x08\\x0B-\\x1F\\x7F" } else { "[^\\x00-\\x1F\\x7F" })?;
                chars.iter().try_for_each(|char| escaped(*char, f))?;
                f.write_char(']')
            }
            Expression::Sequence(parts) if parts.is_empty() => f.write_str("\"\""),
            Expression::Sequence(parts) => joined(parts, " ", *is_part, f),
            Expression::OneOf(parts) => joined(parts, " | ", *is_part, f),
            Expression::Repeat(part, 0, 1) => write!(f, "{}?", Gbnf(part, true)),
            Expression::Repeat(part, least, most) if least == most => {
                write!(f, "{}{{{least}}}", Gbnf(part, true))
            }
            Expression::Repeat(part, least, most) => write!(f, "{}{{{least},{most}}}", Gbnf(part, true)),
            Expression::Rule(number) => write!(f, "r{number}"),
        }
    }
}

fn joined(parts: &[Expression], by: &str, is_part: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_part {
        f.write_char('(')?;
    }
    for (at, part) in parts.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { by })?;
        write!(f, "{}", Gbnf(part, true))?;
    }
    if is_part { f.write_char(')') } else { Ok(()) }
}

/// A character of a class.
fn escaped(char: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match char {
        '"' | '\\' | '[' | ']' | '-' | '^' => write!(f, "\\x{:02X}", u32::from(char)),
        char => plain(char, f),
    }
}

/// A character that has no meaning of its own.
fn plain(char: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match char {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        char if u32::from(char) < 0x20 => write!(f, "\\x{:02X}", u32::from(char)),
        char => f.write_char(char),
    }
}
