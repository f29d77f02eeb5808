//! Texts.

use std::collections::BTreeSet;

use super::expression::{Expression, MAX_TIMES, Obstacle, Rules, Written};

/// How many characters a string has at most, in blocks of as many as may be repeated.
const BLOCKS: usize = 64;
const MAX_LENGTH: usize = BLOCKS * MAX_TIMES - 1;

/// Texts of such characters, from so many to so many.
pub(super) fn text_of(char: Expression, (least, most): (usize, Option<usize>), rules: &mut Rules) -> Written {
    let longest = most.unwrap_or(MAX_LENGTH).min(MAX_LENGTH);
    let Some(more) = longest.checked_sub(least) else {
        return Err(if most.is_some_and(|most| most < least) {
            Obstacle::NoValue
        } else {
            Obstacle::TooLarge
        });
    };
    let char = rules.rule(char)?;
    if longest <= MAX_TIMES {
        return rules.rule(char.repeated(least, more));
    }
    let block = rules.rule(char.clone().repeated(MAX_TIMES, 0))?;
    // Each length in one way: whole blocks, and what is less than another.
    let begun = [block.clone().repeated(least / MAX_TIMES, 0), char.clone().repeated(least % MAX_TIMES, 0)];
    let (blocks, rest) = (more / MAX_TIMES, more % MAX_TIMES);
    let full = char.clone().repeated(0, MAX_TIMES - 1);
    let more = if rest == MAX_TIMES - 1 {
        Expression::sequence([block.repeated(0, blocks), full])
    } else {
        let last = Expression::sequence([block.clone().repeated(blocks, 0), char.repeated(0, rest)]);
        match blocks {
            0 => last,
            _ => Expression::OneOf(vec![Expression::sequence([block.repeated(0, blocks - 1), full]), last]),
        }
    };
    rules.rule(Expression::sequence(begun.into_iter().chain([more])))
}

/// A character of a text in which none of these may stand, and where one begins as they do, the next as well; where they are counted, two
/// are not one, and ends of lines may belong to the tags.
pub(super) fn char_without(ends: &[&str], are_counted: bool) -> Expression {
    let firsts: BTreeSet<char> = ends.iter().filter_map(|end| end.chars().next()).collect();
    if are_counted {
        return Expression::Except { chars: firsts, lines: false };
    }
    let mut chars = vec![Expression::Except { chars: firsts.clone(), lines: true }];
    for &first in &firsts {
        let seconds: Option<BTreeSet<char>> =
            ends.iter().filter(|end| end.starts_with(first)).map(|end| end.chars().nth(1)).collect();
        // One of them is this character alone.
        let Some(seconds) = seconds else { continue };
        let next = Expression::Except { chars: seconds.union(&firsts).copied().collect(), lines: true };
        chars.push(Expression::Sequence(vec![Expression::text(first), next]));
    }
    Expression::OneOf(chars)
}
