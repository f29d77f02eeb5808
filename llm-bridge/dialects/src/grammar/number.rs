//! Numbers between bounds.

use super::expression::{Expression, Obstacle, Rules, Written};

/// How many digits a number has before the point, and after it.
const DIGITS: usize = 15;
/// How many a whole number has to which there is no bound, as ids have them.
const WHOLE_DIGITS: usize = 19;
/// What has more of them.
const TOO_MANY: f64 = 1e15;

/// A bound of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bound {
    pub(super) value: f64,
    /// The bound is left out itself.
    pub(super) is_exclusive: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    least: Option<Bound>,
    most: Option<Bound>,
}

impl Bounds {
    pub(super) fn raise(&mut self, least: Bound) {
        let is_nearer =
            |known: Bound| least.value > known.value || least.value == known.value && least.is_exclusive;
        if self.least.is_none_or(is_nearer) {
            self.least = Some(least);
        }
    }

    pub(super) fn lower(&mut self, most: Bound) {
        let mut negated = self.negated();
        negated.raise(most.negated());
        *self = negated.negated();
    }

    pub(super) fn admit(&self, value: f64) -> bool {
        let is_over = |least: Bound| value > least.value || value == least.value && !least.is_exclusive;
        let is_under = |most: Bound| value < most.value || value == most.value && !most.is_exclusive;
        self.least.is_none_or(is_over) && self.most.is_none_or(is_under)
    }

    fn negated(self) -> Self {
        Self { least: self.most.map(Bound::negated), most: self.least.map(Bound::negated) }
    }

    /// How many digits numbers may have after the point, so that with those of the bounds before it they are no more than a float tells
    /// apart.
    fn places(&self) -> usize {
        let values = [self.least, self.most].into_iter().flatten().map(|bound| bound.value.abs().trunc());
        let digits = |value: f64| format!("{value:.0}").len();
        let most = values.filter(|value| *value < TOO_MANY).map(digits).max().unwrap_or(0);
        DIGITS.saturating_sub(most).max(1)
    }

    /// The numbers within, none below zero, in units of the last of so many places. Without a bound they have so many digits before the point.
    fn units(&self, places: usize, unbound: usize) -> Result<Option<(u128, u128)>, Obstacle> {
        let longest = |digits: usize| 10u128.pow((digits + places) as u32).checked_sub(1);
        let first = match self.least {
            Some(least) if least.value >= TOO_MANY => return Err(Obstacle::TooLarge),
            Some(least) if least.value >= 0.0 => least.units(places, true),
            _ => Some(0),
        };
        let last = match self.most {
            Some(most) if most.value < 0.0 => None,
            Some(most) if most.value < TOO_MANY => most.units(places, false),
            Some(_) => longest(DIGITS),
            None => longest(unbound),
        };
        Ok(first.zip(last).filter(|(first, last)| first <= last))
    }
}

impl Bound {
    fn negated(self) -> Self {
        Self { value: -self.value, ..self }
    }

    /// The first number within, in units of the last of so many places; for a bound that is not negative.
    fn units(self, places: usize, is_least: bool) -> Option<u128> {
        // Zero may have a sign.
        let value = self.value.abs();
        let text = format!("{value:.places$}");
        let units: u128 = text.replace('.', "").parse().ok()?;
        let rounded: f64 = text.parse().ok()?;
        let is_equal = rounded == value && self.is_exclusive;
        match is_least {
            true if is_equal || rounded < value => units.checked_add(1),
            false if is_equal || rounded > value => units.checked_sub(1),
            _ => Some(units),
        }
    }
}

/// Whole numbers within the bounds.
pub(super) fn integer(bounds: &Bounds, rules: &mut Rules) -> Written {
    let below = bounds.negated().units(0, WHOLE_DIGITS)?.map(|(first, last)| (first.max(1), last));
    let below = below.filter(|(first, last)| first <= last);
    let below = below.map(|(first, last)| Ok(negative(whole(first, last))));
    let above = bounds.units(0, WHOLE_DIGITS)?.map(|(first, last)| Ok(whole(first, last)));
    rules.one_of(above.into_iter().chain(below).collect())
}

/// Numbers within the bounds, with a fraction or without.
pub(super) fn number(bounds: &Bounds, rules: &mut Rules) -> Written {
    let places = bounds.places();
    let above = bounds.units(places, DIGITS)?.map(|range| decimal(range, places, rules));
    // Zero has no sign.
    let below = bounds.negated().units(places, DIGITS)?.filter(|(_, last)| *last > 0);
    let below = below.map(|range| decimal(range, places, rules).map(negative));
    rules.one_of(above.into_iter().chain(below).collect())
}

fn negative(magnitude: Expression) -> Expression {
    Expression::sequence([Expression::text("-"), magnitude])
}

/// Numbers of so many places, from the first to the last of these units.
fn decimal((first, last): (u128, u128), places: usize, rules: &mut Rules) -> Written {
    let unit = 10u128.pow(places as u32);
    let (low, high) = (first / unit, last / unit);
    let (from, to) = (first % unit, last % unit);
    // What stands before the point where not all may follow it.
    let edge = |whole: u128, from: u128, to: u128| {
        let fraction = match to {
            0 => Expression::nothing(),
            _ => Expression::sequence([
                Expression::text("."),
                fraction(&padded(from, places), &padded(to, places)),
            ]),
        };
        let fraction = if from == 0 { fraction.optional() } else { fraction };
        Ok(Expression::sequence([Expression::text(whole.to_string()), fraction]))
    };
    if low == high && (from, to) != (0, unit - 1) {
        return edge(low, from, to);
    }
    let mut all = Vec::new();
    let (is_raised, is_cut) = (from > 0, to < unit - 1);
    if is_raised {
        all.push(edge(low, from, unit - 1));
    }
    // Where they are cut, the last are more than the first.
    let (start, end) = (low + u128::from(is_raised), high - u128::from(is_cut));
    if start <= end {
        let any = rules.rule(Expression::sequence([Expression::text("."), digits(1, places - 1)]))?;
        all.push(Ok(Expression::sequence([rules.rule(whole(start, end))?, any.optional()])));
    }
    if is_cut {
        all.push(edge(high, 0, to));
    }
    rules.one_of(all)
}

/// Whole numbers from the first to the last.
fn whole(first: u128, last: u128) -> Expression {
    let mut options = Vec::new();
    if first == 0 {
        options.push(Expression::text("0"));
    }
    let mut low = first.max(1);
    while low <= last {
        let length = low.to_string().len();
        let nines = 10u128.pow(length as u32) - 1;
        // All numbers of some lengths are one option.
        if low == 10u128.pow(length as u32 - 1) && nines <= last {
            let longest = (last + 1).to_string().len() - 1;
            options.push(Expression::sequence([within(b'1', b'9'), digits(length - 1, longest - length)]));
            low = 10u128.pow(longest as u32);
        } else {
            let high = nines.min(last);
            options.push(between(&padded(low, length), &padded(high, length)));
            low = high + 1;
        }
    }
    one_of(options)
}

/// Digits, so many and up to so many more.
fn digits(least: usize, more: usize) -> Expression {
    within(b'0', b'9').repeated(least, more)
}

fn within(first: u8, last: u8) -> Expression {
    if first == last {
        return Expression::text(char::from(first));
    }
    Expression::Within(vec![(char::from(first), char::from(last))])
}

fn one_of(mut options: Vec<Expression>) -> Expression {
    match options.len() {
        1 => options.remove(0),
        _ => Expression::OneOf(options),
    }
}

fn padded(number: u128, length: usize) -> Vec<u8> {
    format!("{number:0length$}").into_bytes()
}

/// Digits from the first to the last of these, which are as many.
fn between(first: &[u8], last: &[u8]) -> Expression {
    ordered(first, last, false)
}

/// The same after a point, where zeros at the end may be left out, but one digit.
fn fraction(first: &[u8], last: &[u8]) -> Expression {
    ordered(first, last, true)
}

fn ordered(first: &[u8], last: &[u8], ends_early: bool) -> Expression {
    let (Some((&low, first)), Some((&high, last))) = (first.split_first(), last.split_first()) else {
        return Expression::nothing();
    };
    let is_all = |digits: &[u8], digit| digits.iter().all(|one| *one == digit);
    let (zeros, nines) = (vec![b'0'; first.len()], vec![b'9'; first.len()]);
    let then = |from: u8, to: u8, first: &[u8], last: &[u8]| {
        let rest = match (is_all(first, b'0'), is_all(last, b'9')) {
            (true, true) if ends_early => digits(0, first.len()),
            (true, true) => digits(first.len(), 0),
            (true, _) if ends_early && is_all(last, b'0') => Expression::nothing(),
            (true, false) if ends_early => ordered(first, last, ends_early).optional(),
            _ => ordered(first, last, ends_early),
        };
        Expression::sequence([within(from, to), rest])
    };
    if low == high {
        return then(low, high, first, last);
    }
    let mut options = Vec::new();
    let (mut from, mut to) = (low, high);
    if !is_all(first, b'0') {
        options.push(then(low, low, first, &nines));
        from += 1;
    }
    let is_cut = !is_all(last, b'9');
    if is_cut {
        to -= 1;
    }
    if from <= to {
        options.push(then(from, to, &zeros, &nines));
    }
    if is_cut {
        options.push(then(high, high, &zeros, last));
    }
    one_of(options)
}
