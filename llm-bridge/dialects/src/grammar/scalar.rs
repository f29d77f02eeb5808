//! Texts.

use std::collections::{BTreeMap, BTreeSet};

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

/// Texts in which none of these stands.
pub(super) fn text_without(ends: &[&str], counts: (usize, Option<usize>), rules: &mut Rules) -> Written {
    match counts {
        (least @ (0 | 1), None) => {
            let piece = piece_without(ends, rules)?;
            let first = if least == 0 { Expression::nothing() } else { within_lines(&piece, rules) };
            Ok(Expression::sequence([first, text_of(piece, (0, None), rules)?]))
        }
        // Characters that are counted are one by one. Ends of lines may belong to the tags.
        _ => {
            let firsts = ends.iter().filter_map(|end| end.chars().next()).collect();
            text_of(Expression::Except { chars: firsts, lines: false }, counts, rules)
        }
    }
}

/// The same piece but for ends of lines, which may belong to the tags.
fn within_lines(piece: &Expression, rules: &Rules) -> Expression {
    let mut first = match piece {
        Expression::Rule(number) => rules.all.get(*number).unwrap_or(piece).clone(),
        _ => piece.clone(),
    };
    if let Expression::OneOf(options) = &mut first
        && let Some(Expression::Except { lines, .. }) = options.first_mut()
    {
        *lines = false;
    }
    first
}

/// A piece of a text in which none of these stands: a character, or several that begin as one of them does and do not go on as any.
///
/// The ends are a trie; a rule for each of its inner nodes says how a text goes on that has come there. Where none of the ends goes on with a
/// character, the longest suffix of the text that begins one is at another node, or the piece is whole. No piece stops within the beginning of an end:
/// the one that follows might complete it.
fn piece_without(ends: &[&str], rules: &mut Rules) -> Written {
    let mut known: Vec<&str> = ends.to_vec();
    known.sort_unstable();
    known.dedup();
    let key = known.join("\0");
    if let Some(piece) = rules.pieces.get(&key) {
        return Ok(piece.clone());
    }
    // Each node is the beginning of an end that it stands for, in which no other end stands.
    let has_end = |text: &str| known.iter().any(|end| text.contains(end));
    let begun: BTreeSet<&str> = known
        .iter()
        .flat_map(|end| end.char_indices().map(|(at, _)| end.split_at(at).0))
        .filter(|begun| !has_end(begun))
        .collect();
    let chars: BTreeSet<char> = known.iter().flat_map(|end| end.chars()).collect();
    let numbers: BTreeMap<&str, usize> = begun.iter().map(|begun| (*begun, rules.reserve())).collect();
    for (begun, number) in &numbers {
        let (mut others, mut options) = (chars.clone(), Vec::new());
        for &char in &chars {
            let text = format!("{begun}{char}");
            if has_end(&text) {
                continue;
            }
            let suffix = text.char_indices().filter_map(|(at, _)| numbers.get(text.split_at(at).1)).next();
            match suffix {
                Some(next) => {
                    options.push(Expression::sequence([Expression::text(char), Expression::Rule(*next)]))
                }
                None => {
                    others.remove(&char);
                }
            }
        }
        options.insert(0, Expression::Except { chars: others, lines: true });
        rules.define(*number, Expression::OneOf(options))?;
    }
    let piece = numbers.get("").map_or_else(Expression::nothing, |number| Expression::Rule(*number));
    rules.pieces.insert(key, piece.clone());
    Ok(piece)
}
