//! Texts and numbers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::expression::{Expression, Rules};

/// How many characters a string has, where the schema does not say: so many blocks of so many. Model servers have a bound for each.
const BLOCKS: usize = 64;
const BLOCK: usize = 256;
/// How many digits a number has before the point, and after it.
pub(super) const DIGITS: usize = 15;
/// Up to so many numbers of a range are listed.
const MAX_LISTED: i64 = 512;

const DIGIT: &[(char, char)] = &[('0', '9')];
const NO_ZERO: &[(char, char)] = &[('1', '9')];

/// Text of such characters, as long as the schema allows.
pub(super) fn text_of(char: Expression, schema: &Value, rules: &mut Rules) -> Option<Expression> {
    let number = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let (least, most) = (number("minLength").unwrap_or(0), number("maxLength").unwrap_or(BLOCK * BLOCKS));
    let char = rules.rule(char)?;
    let chars = |least, most| Expression::Repeat(Box::new(char.clone()), least, most);
    if most <= BLOCK {
        return rules.rule(chars(least.min(most), most));
    }
    let begun = least.min(BLOCK);
    let block = rules.rule(chars(BLOCK, BLOCK))?;
    let blocks = Expression::Repeat(Box::new(block), 0, (most - begun).min(BLOCK * BLOCKS) / BLOCK);
    rules.rule(Expression::Sequence(vec![chars(begun, begun), blocks, chars(0, BLOCK - 1)]))
}

/// A character of a text in which none of these may stand, and where one begins as they do, the next as well.
pub(super) fn char_without(ends: &[&str], schema: &Value) -> Expression {
    let firsts: BTreeSet<char> = ends.iter().filter_map(|end| end.chars().next()).collect();
    // Where they are counted, two are not one, and ends of lines may belong to the tags.
    if ["minLength", "maxLength"].iter().any(|key| schema.get(key).is_some()) {
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

/// Digits, from so many to so many.
pub(super) fn digits(least: usize, most: usize) -> Expression {
    Expression::Repeat(Box::new(Expression::Within(DIGIT)), least, most)
}

/// Whole numbers. Bounds beyond a sign are kept where the numbers between them can be listed.
pub(super) fn integer(schema: &Value) -> Expression {
    let bound = |key: &str, step: i64, exclusive: &str| {
        let exclusive = schema.get(exclusive).and_then(Value::as_i64).map(|bound| bound + step);
        schema.get(key).and_then(Value::as_i64).or(exclusive)
    };
    let (least, most) = (bound("minimum", 1, "exclusiveMinimum"), bound("maximum", -1, "exclusiveMaximum"));
    if let (Some(least), Some(most)) = (least, most)
        && (0..MAX_LISTED).contains(&most.saturating_sub(least))
    {
        return Expression::OneOf(
            (least..=most).map(|number| Expression::text(number.to_string())).collect(),
        );
    }
    let positive = Expression::Sequence(vec![Expression::Within(NO_ZERO), digits(0, DIGITS - 1)]);
    if least.is_some_and(|least| least > 0) {
        return positive;
    }
    let whole = Expression::OneOf(vec![Expression::text("0"), positive]);
    match least {
        Some(0) => whole,
        _ => Expression::Sequence(vec![Expression::text("-").optional(), whole]),
    }
}
