//! Rules of a grammar, and how they are written in GBNF.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt::{self, Write},
};

/// How large a grammar may be, in characters, sets of characters and rules, each as often as it is repeated: as llama.cpp unrolls it,
/// which takes half a second for so many.
const MAX_SIZE: usize = 1 << 20;
/// How many parts of schemas may be looked at for it: a schema is as large as an outsider likes.
const MAX_WORK: usize = 1 << 18;
/// What repeats is refused by llama.cpp from 2000 times on.
pub(super) const MAX_TIMES: usize = 256;
/// How many ways there may be to go on. llama.cpp tries each for every token.
const MAX_OPTIONS: usize = 4096;

/// Why something cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// No value fits, or the dialect writes none that does. What is optional can be left out.
    NoValue,
    /// It would take a larger grammar, or longer to make it. There is none then: left out, an argument would be lost that the tool has.
    TooLarge,
}

pub(super) type Written = Result<Expression, Obstacle>;

/// What a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Expression {
    /// These bytes.
    Text(String),
    /// One character of these ranges.
    Within(Vec<(char, char)>),
    /// One character that is none of these and no control character but those allowed.
    Except { chars: BTreeSet<char>, lines: bool },
    /// One after the other.
    Sequence(Vec<Self>),
    /// One of them.
    OneOf(Vec<Self>),
    /// So many times, and up to so many times more.
    Repeat { part: Box<Self>, least: usize, more: usize },
    /// What the rule of this number matches.
    Rule(usize),
}

impl Expression {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn nothing() -> Self {
        Self::Sequence(Vec::new())
    }

    /// One after the other, without those that match nothing.
    pub(super) fn sequence(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut parts: Vec<Self> = parts.into_iter().filter(|part| !part.is_nothing()).collect();
        match parts.len() {
            1 => parts.remove(0),
            _ => Self::Sequence(parts),
        }
    }

    pub(super) fn optional(self) -> Self {
        self.repeated(0, 1)
    }

    /// So many times, and up to so many times more.
    pub(super) fn repeated(self, least: usize, more: usize) -> Self {
        match (least, more) {
            (0, 0) => Self::nothing(),
            (1, 0) => self,
            _ if self.is_nothing() => self,
            _ => Self::Repeat { part: Box::new(self), least, more },
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Self::Sequence(parts) if parts.is_empty())
    }

    /// How large it is, in the units of [`MAX_SIZE`].
    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 1,
            Self::Within(ranges) => 2 * ranges.len(),
            Self::Except { chars, .. } => 5 + chars.len(),
            Self::Sequence(parts) | Self::OneOf(parts) => {
                parts.iter().fold(parts.len(), |size, part| size.saturating_add(part.size()))
            }
            // Each time more is a rule that refers to the next.
            Self::Repeat { part, least, more } => {
                let part = part.size();
                part.saturating_mul(*least).saturating_add((part + 3).saturating_mul(*more))
            }
            Self::Rule(_) => 1,
        }
    }
}

/// Rules, each once.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) all: Vec<Expression>,
    known: HashMap<Expression, usize>,
    /// The pieces of texts in which some others do not stand, by these.
    pub(super) pieces: HashMap<String, Expression>,
    size: usize,
    work: usize,
}

impl Rules {
    /// Counts parts of schemas that are looked at.
    pub(super) fn spend(&mut self, parts: usize) -> Result<(), Obstacle> {
        self.work = self.work.saturating_add(parts);
        if self.work > MAX_WORK { Err(Obstacle::TooLarge) } else { Ok(()) }
    }

    /// The rule that matches this.
    pub(super) fn rule(&mut self, expression: Expression) -> Written {
        if let Expression::Rule(_) = expression {
            return Ok(expression);
        }
        if let Some(&number) = self.known.get(&expression) {
            return Ok(Expression::Rule(number));
        }
        self.size = self.size.saturating_add(expression.size());
        if self.size > MAX_SIZE {
            return Err(Obstacle::TooLarge);
        }
        let number = self.all.len();
        self.all.push(expression.clone());
        self.known.insert(expression, number);
        Ok(Expression::Rule(number))
    }

    /// The number of a rule that is said later: rules may refer to each other in circles.
    pub(super) fn reserve(&mut self) -> usize {
        self.all.push(Expression::nothing());
        self.all.len() - 1
    }

    /// Says what a reserved rule matches.
    pub(super) fn define(&mut self, number: usize, expression: Expression) -> Result<(), Obstacle> {
        self.size = self.size.saturating_add(expression.size());
        if self.size > MAX_SIZE {
            return Err(Obstacle::TooLarge);
        }
        if let Some(rule) = self.all.get_mut(number) {
            *rule = expression;
        }
        Ok(())
    }

    /// One of those that can be written.
    pub(super) fn one_of(&mut self, all: Vec<Written>) -> Written {
        let (mut parts, mut known) = (Vec::with_capacity(all.len()), HashSet::new());
        for part in all {
            match part {
                Ok(part) if known.insert(part.clone()) => parts.push(part),
                Ok(_) | Err(Obstacle::NoValue) => {}
                Err(Obstacle::TooLarge) => return part,
            }
        }
        match parts.len() {
            0 => Err(Obstacle::NoValue),
            1 => Ok(parts.remove(0)),
            2..=MAX_OPTIONS => self.rule(Expression::OneOf(parts)),
            _ => Err(Obstacle::TooLarge),
        }
    }

    /// The rules in GBNF, of which `root` is the first: <https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md>. XGrammar
    /// and llguidance read the same.
    pub(super) fn to_gbnf(&self, root: &Expression) -> String {
        let mut text = String::from("root ::= ");
        // A `String` takes everything.
        let _ = write!(text, "{}", Gbnf(root, false));
        for number in self.reached_from(root) {
            if let Some(rule) = self.all.get(number) {
                let _ = write!(text, "\nr{number} ::= {}", Gbnf(rule, false));
            }
        }
        text.push('\n');
        text
    }

    /// The rules that an expression refers to, and they to.
    fn reached_from(&self, root: &Expression) -> BTreeSet<usize> {
        let (mut reached, mut open) = (BTreeSet::new(), vec![root]);
        while let Some(expression) = open.pop() {
            match expression {
                Expression::Rule(number) if reached.insert(*number) => open.extend(self.all.get(*number)),
                Expression::Sequence(parts) | Expression::OneOf(parts) => open.extend(parts),
                Expression::Repeat { part, .. } => open.push(part),
                _ => {}
            }
        }
        reached
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
                for (first, last) in ranges {
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
            Expression::Repeat { part, least: 0, more: 1 } => write!(f, "{}?", Gbnf(part, true)),
            Expression::Repeat { part, least, more: 0 } => write!(f, "{}{{{least}}}", Gbnf(part, true)),
            Expression::Repeat { part, least, more } => {
                write!(f, "{}{{{least},{}}}", Gbnf(part, true), least.saturating_add(*more))
            }
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
