//! Parses an arithmetic expression and evaluates it in one pass.

use std::{f64::consts, fmt};

use crate::{
    functions::{FUNCTIONS, call, usage},
    number::{Number, Outcome},
};

/// The most characters that an expression may have.
pub(crate) const MAX_LENGTH: usize = 1000;
/// How deep parentheses, signs and powers may nest: what bounds the stack.
const MAX_DEPTH: usize = 100;

/// What is wrong with an expression, and at which character (from 1).
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    at: usize,
    message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at, self.message)
    }
}

/// Evaluates an expression.
pub(crate) fn evaluate(text: &str) -> Result<Number, Fault> {
    let mut reader = Reader { text: text.chars().collect(), at: 0, depth: 0 };
    if reader.text.len() > MAX_LENGTH {
        return Err(
            reader.fault(MAX_LENGTH, format!("the expression is longer than {MAX_LENGTH} characters"))
        );
    }
    let value = reader.expression(0)?;
    match reader.peek() {
        None => Ok(value),
        Some(',') => Err(reader.expected("an operator (numbers are written without `,`)")),
        Some(_) => Err(reader.expected("an operator")),
    }
}

struct Reader {
    text: Vec<char>,
    at: usize,
    depth: usize,
}

#[derive(Clone, Copy)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    /// `17% of 2340`.
    PercentOf,
    Power,
}

impl Operator {
    /// Its binding power on the left and on the right; that of a sign is [`SIGN`].
    const fn binding(self) -> (u8, u8) {
        match self {
            Self::Add | Self::Subtract => (1, 2),
            Self::Multiply | Self::Divide | Self::Remainder | Self::PercentOf => (3, 4),
            Self::Power => (7, 6),
        }
    }

    fn apply(self, left: &Number, right: &Number) -> Outcome {
        match self {
            Self::Add => left.add(right),
            Self::Subtract => left.sub(right),
            Self::Multiply => left.mul(right),
            Self::Divide => left.div(right),
            Self::Remainder => left.rem(right),
            Self::PercentOf => left.mul(right)?.div(&Number::integer(100)),
            Self::Power => left.pow(right),
        }
    }
}

const SIGN: u8 = 5;

impl Reader {
    fn fault(&self, at: usize, message: impl Into<String>) -> Fault {
        Fault { at: at + 1, message: message.into() }
    }

    fn expected(&self, what: &str) -> Fault {
        let found = self.text.get(self.at).map_or("the end".to_owned(), |found| format!("`{found}`"));
        self.fault(self.at, format!("expected {what}, found {found}"))
    }

    /// The next character that is no space, left where it is.
    fn peek(&mut self) -> Option<char> {
        while self.text.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// The longest run of characters that fit.
    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let taken: String = self.text.iter().skip(self.at).copied().take_while(|c| fits(*c)).collect();
        self.at += taken.chars().count();
        taken
    }

    /// The operator that comes next, and how many characters it has.
    fn operator(&mut self) -> Option<(Operator, usize)> {
        let first = self.peek()?;
        let operator = match first {
            '+' => Operator::Add,
            '-' | '−' => Operator::Subtract,
            '*' if self.text.get(self.at + 1) == Some(&'*') => return Some((Operator::Power, 2)),
            '*' | '×' | '·' => Operator::Multiply,
            '/' | '÷' => Operator::Divide,
            '%' => match self.percent_of() {
                Some(length) => return Some((Operator::PercentOf, length)),
                None => Operator::Remainder,
            },
            '^' => Operator::Power,
            _ => return None,
        };
        Some((operator, 1))
    }

    /// How many characters `% of` has, where that comes next.
    fn percent_of(&self) -> Option<usize> {
        let spaces = self.text.iter().skip(self.at + 1).take_while(|c| c.is_whitespace()).count();
        let of = self.at + 1 + spaces;
        let is_there = matches!(self.text.get(of..of + 2), Some(['o' | 'O', 'f' | 'F']));
        let goes_on = self.text.get(of + 2).is_some_and(|c| c.is_alphanumeric() || *c == '_');
        (is_there && !goes_on).then_some(spaces + 3)
    }

    /// Operands joined by operators that bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Result<Number, Fault> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(self.at, format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let mut left = self.operand()?;
        while self.peek() == Some('!') {
            let at = self.at;
            self.at += 1;
            left = left.factorial().map_err(|message| self.fault(at, message))?;
        }
        while let Some((operator, length)) = self.operator() {
            let (binds, binds_right) = operator.binding();
            if binds < least {
                break;
            }
            let at = self.at;
            self.at += length;
            let right = self.expression(binds_right)?;
            left = operator.apply(&left, &right).map_err(|message| self.fault(at, message))?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Number, Fault> {
        match self.peek() {
            Some('-' | '−') => {
                self.at += 1;
                Ok(self.expression(SIGN)?.neg())
            }
            Some('+') => {
                self.at += 1;
                self.expression(SIGN)
            }
            Some('(') => {
                self.at += 1;
                let value = self.expression(0)?;
                if self.take(')') { Ok(value) } else { Err(self.expected("an operator or `)`")) }
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() => self.name(),
            _ => Err(self.expected("a number")),
        }
    }

    fn number(&mut self) -> Result<Number, Fault> {
        let at = self.at;
        let mut written = self.take_while(|c| c.is_ascii_digit() || c == '.');
        let tail: Vec<char> = self.text.iter().skip(self.at).take(3).copied().collect();
        if let ['e' | 'E', '+' | '-', digit] | ['e' | 'E', digit, ..] = tail.as_slice()
            && digit.is_ascii_digit()
        {
            self.at += 1;
            written.push('e');
            written.push_str(&self.take_while(|c| c == '+' || c == '-'));
            written.push_str(&self.take_while(|c| c.is_ascii_digit()));
        }
        Number::parse(&written).ok_or_else(|| self.fault(at, format!("`{written}` is no number that fits")))
    }

    /// A constant, or a function with its arguments.
    fn name(&mut self) -> Result<Number, Fault> {
        let at = self.at;
        let name = self.take_while(|c| c.is_alphanumeric() || c == '_').to_lowercase();
        if !self.take('(') {
            return match name.as_str() {
                "pi" | "π" => Ok(Number::Float(consts::PI)),
                "tau" | "τ" => Ok(Number::Float(consts::TAU)),
                "e" => Ok(Number::Float(consts::E)),
                _ if usage(&name).is_some() => Err(self.expected("`(`")),
                _ => Err(self.fault(at, format!("unknown name `{name}`; the constants are pi, tau and e"))),
            };
        }
        let mut arguments = vec![self.expression(0)?];
        while self.take(',') {
            arguments.push(self.expression(0)?);
        }
        if !self.take(')') {
            return Err(self.expected("an operator, `,` or `)`"));
        }
        match call(&name, &arguments) {
            Some(outcome) => outcome.map_err(|message| self.fault(at, message)),
            None => Err(self.fault(
                at,
                match usage(&name) {
                    Some(usage) => format!("`{name}` is called as {usage}"),
                    None => format!("unknown function `{name}`; there are {}", FUNCTIONS.join(", ")),
                },
            )),
        }
    }
}

#[cfg(test)]
#[path = "_arithmetic_tests.rs"]
mod tests;
