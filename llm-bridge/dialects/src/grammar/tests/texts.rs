//! Texts that a grammar lets through, and whether it lets one through.

use std::collections::BTreeSet;

use super::super::expression::{Expression, Rules};

/// Numbers that look random and are the same each time.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }

    /// A text that the grammar lets through.
    pub(super) fn write(&mut self, expression: &Expression, rules: &Rules, out: &mut String) {
        match expression {
            Expression::Text(text) => out.push_str(text),
            Expression::Within(ranges) => {
                let (first, last) = ranges[self.below(ranges.len())];
                let many = u32::from(last) - u32::from(first) + 1;
                let offset = u32::try_from(self.below(many as usize)).unwrap();
                out.push(char::from_u32(u32::from(first) + offset).unwrap());
            }
            Expression::Except { chars, lines } => {
                // What the dialects have a meaning for, often.
                const FREQUENT: &[char] = &[
                    '<', '>', '/', '"', '\'', '\\', '\n', ' ', '{', '}', '[', ']', '|', '=', ':', ',', 'a',
                    'ｆ', '｜',
                ];
                let char = loop {
                    let char = FREQUENT[self.below(FREQUENT.len())];
                    if !chars.contains(&char) && (*lines || char != '\n') {
                        break char;
                    }
                };
                out.push(char);
            }
            Expression::Sequence(parts) => parts.iter().for_each(|part| self.write(part, rules, out)),
            Expression::OneOf(parts) => {
                let at = self.below(parts.len());
                self.write(&parts[at], rules, out);
            }
            Expression::Repeat { part, least, more } => {
                let more = self.below((more + 1).min(4));
                (0..least + more).for_each(|_| self.write(part, rules, out));
            }
            Expression::Rule(number) => self.write(&rules.all[*number], rules, out),
        }
    }
}

/// Whether the whole text is let through.
pub(super) fn lets_through(expression: &Expression, rules: &Rules, text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    ends(expression, rules, &chars, &BTreeSet::from([0])).contains(&chars.len())
}

/// Where the expression may end that begins at one of these.
fn ends(expression: &Expression, rules: &Rules, text: &[char], starts: &BTreeSet<usize>) -> BTreeSet<usize> {
    // Rules may refer to each other in circles.
    if starts.is_empty() {
        return BTreeSet::new();
    }
    let char = |is: &dyn Fn(char) -> bool| {
        starts.iter().filter(|at| text.get(**at).is_some_and(|char| is(*char))).map(|at| at + 1).collect()
    };
    match expression {
        Expression::Text(wanted) => {
            let wanted: Vec<char> = wanted.chars().collect();
            starts.iter().filter(|at| text[**at..].starts_with(&wanted)).map(|at| at + wanted.len()).collect()
        }
        Expression::Within(ranges) => {
            char(&|char| ranges.iter().any(|(first, last)| (*first..=*last).contains(&char)))
        }
        Expression::Except { chars, lines } => char(&|char| {
            !chars.contains(&char) && (!char.is_ascii_control() || *lines && matches!(char, '\n' | '\t'))
        }),
        Expression::Sequence(parts) => {
            parts.iter().fold(starts.clone(), |starts, part| ends(part, rules, text, &starts))
        }
        Expression::OneOf(parts) => parts.iter().flat_map(|part| ends(part, rules, text, starts)).collect(),
        Expression::Repeat { part, least, more } => {
            let mut at = starts.clone();
            for _ in 0..*least {
                at = ends(part, rules, text, &at);
            }
            let mut all = at.clone();
            for _ in 0..*more {
                at = ends(part, rules, text, &at);
                if at.is_empty() {
                    break;
                }
                all.extend(&at);
            }
            all
        }
        Expression::Rule(number) => ends(&rules.all[*number], rules, text, starts),
    }
}
