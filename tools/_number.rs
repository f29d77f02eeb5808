//! Numbers that are exact as long as they can be: fractions of 128-bit integers, and floating point from there on.

use std::{cmp::Ordering, fmt};

/// A number. `0.1 + 0.2` is `0.3` here, and `2^53 + 1` is odd.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// A fraction in lowest terms; the denominator is positive.
    Exact(i128, i128),
    /// Finite.
    Float(f64),
}

use Number::{Exact, Float};

pub(crate) type Outcome = Result<Number, &'static str>;

const BY_ZERO: &str = "division by zero";
const TOO_LARGE: &str = "the number is too large";
/// Digits that floating point holds for sure; what comes after them is noise, as in `sin(pi/6) = 0.49999999999999994`.
const DIGITS: usize = 15;

impl Number {
    pub(crate) const ZERO: Self = Exact(0, 1);

    pub(crate) const fn integer(value: i128) -> Self {
        Exact(value, 1)
    }

    /// A fraction; `None` where it needs more than 128 bits.
    fn ratio(over: i128, under: i128) -> Option<Self> {
        let common = gcd(over.unsigned_abs(), under.unsigned_abs());
        let common = i128::try_from(common).ok().filter(|common| *common != 0)?;
        let sign = under.signum();
        Some(Exact((over / common).checked_mul(sign)?, (under / common).checked_mul(sign)?))
    }

    /// A number as written: digits with at most one point, and a power of ten. `None` where it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Self::parse_exact(whole, fraction, exponent)
            .or_else(|| text.parse().ok().filter(|value: &f64| value.is_finite()).map(Float))
    }

    fn parse_exact(whole: &str, fraction: &str, exponent: &str) -> Option<Self> {
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let shift = exponent.parse::<i32>().ok()?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let scale = 10_i128.checked_pow(shift.unsigned_abs())?;
        if shift < 0 { Self::ratio(digits, scale) } else { Some(Self::integer(digits.checked_mul(scale)?)) }
    }

    pub(crate) fn float(value: f64) -> Outcome {
        match value {
            value if value.is_finite() => Ok(Float(value)),
            value if value.is_nan() => Err("the result is not a real number"),
            _ => Err(TOO_LARGE),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the nearest is what is asked for")]
    pub(crate) fn to_float(self) -> f64 {
        match self {
            Exact(over, under) => over as f64 / under as f64,
            Float(value) => value,
        }
    }

    /// Computes with fractions where both are and the result fits, else with floating point.
    fn either(
        self,
        other: Self,
        exact: impl FnOnce((i128, i128), (i128, i128)) -> Option<Self>,
        float: impl FnOnce(f64, f64) -> f64,
    ) -> Outcome {
        if let (Exact(a, b), Exact(c, d)) = (self, other)
            && let Some(result) = exact((a, b), (c, d))
        {
            return Ok(result);
        }
        Self::float(float(self.to_float(), other.to_float()))
    }

    pub(crate) fn is_zero(self) -> bool {
        self.to_float() == 0.0
    }

    pub(crate) fn add(self, other: Self) -> Outcome {
        self.either(
            other,
            |(a, b), (c, d)| {
                Self::ratio(a.checked_mul(d)?.checked_add(c.checked_mul(b)?)?, b.checked_mul(d)?)
            },
            |a, b| a + b,
        )
    }

    pub(crate) fn neg(self) -> Outcome {
        Self::ZERO.sub(self)
    }

    pub(crate) fn sub(self, other: Self) -> Outcome {
        self.either(
            other,
            |(a, b), (c, d)| {
                Self::ratio(a.checked_mul(d)?.checked_sub(c.checked_mul(b)?)?, b.checked_mul(d)?)
            },
            |a, b| a - b,
        )
    }

    pub(crate) fn mul(self, other: Self) -> Outcome {
        self.either(other, |(a, b), (c, d)| Self::ratio(a.checked_mul(c)?, b.checked_mul(d)?), |a, b| a * b)
    }

    pub(crate) fn div(self, other: Self) -> Outcome {
        if other.is_zero() {
            return Err(BY_ZERO);
        }
        self.either(other, |(a, b), (c, d)| Self::ratio(a.checked_mul(d)?, b.checked_mul(c)?), |a, b| a / b)
    }

    /// The remainder, which has the sign of the divisor.
    pub(crate) fn rem(self, other: Self) -> Outcome {
        self.sub(other.mul(self.div(other)?.floor()?)?)
    }

    pub(crate) fn pow(self, exponent: Self) -> Outcome {
        if self.is_zero() && exponent.to_float() < 0.0 {
            return Err(BY_ZERO);
        }
        match (self, exponent) {
            (Exact(1, 1), _) => Ok(self),
            (_, Exact(1, 2)) => self.sqrt(),
            (Exact(over, under), Exact(power, 1)) if let Some(result) = raise(over, under, power) => {
                Ok(result)
            }
            _ => Self::float(self.to_float().powf(exponent.to_float())),
        }
    }

    pub(crate) fn sqrt(self) -> Outcome {
        if let Exact(over, under) = self
            && let (Some(over), Some(under)) = (root(over), root(under))
        {
            return Ok(Exact(over, under));
        }
        Self::float(self.to_float().sqrt())
    }

    pub(crate) fn abs(self) -> Outcome {
        if self.to_float() < 0.0 { self.neg() } else { Ok(self) }
    }

    pub(crate) fn floor(self) -> Outcome {
        match self {
            Exact(over, under) => Ok(Self::integer(over.div_euclid(under))),
            Float(value) => Ok(whole(value.floor())),
        }
    }

    pub(crate) fn ceil(self) -> Outcome {
        self.neg()?.floor()?.neg()
    }

    pub(crate) fn trunc(self) -> Outcome {
        if self.to_float() < 0.0 { self.ceil() } else { self.floor() }
    }

    /// To a number of decimals; a half goes away from zero.
    pub(crate) fn round(self, decimals: Self) -> Outcome {
        let Exact(_, 1) = decimals else { return Err("the number of decimals is a whole number") };
        let scale = Self::integer(10).pow(decimals)?;
        let scaled = self.mul(scale)?;
        let rounded = scaled.abs()?.add(Exact(1, 2))?.floor()?;
        (if scaled.to_float() < 0.0 { rounded.neg()? } else { rounded }).div(scale)
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        if let (Exact(a, b), Exact(c, d)) = (self, other)
            && let (Some(left), Some(right)) = (a.checked_mul(d), c.checked_mul(b))
        {
            return left.cmp(&right);
        }
        self.to_float().total_cmp(&other.to_float())
    }

    /// The number in decimals where they end and are not too many.
    fn decimals(self) -> Option<String> {
        let Exact(over, mut under) = self else { return None };
        let full = under;
        let mut places = [0_u32; 2];
        for (prime, count) in [2, 5].into_iter().zip(&mut places) {
            while under % prime == 0 {
                under /= prime;
                *count += 1;
            }
        }
        let places = places.into_iter().max().filter(|_| under == 1)?;
        let scaled = over.checked_mul(10_i128.checked_pow(places)? / full)?;
        if places == 0 {
            return Some(scaled.to_string());
        }
        let places = usize::try_from(places).ok()?;
        let digits = format!("{:0>1$}", scaled.unsigned_abs(), places + 1);
        let (whole, fraction) = digits.split_at_checked(digits.len().checked_sub(places)?)?;
        Some(format!("{}{whole}.{fraction}", if over < 0 { "-" } else { "" }))
    }

    /// Whether what is displayed is the number itself and not the nearest that can be written.
    pub(crate) fn is_exact(self) -> bool {
        self.decimals().is_some()
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(decimals) = self.decimals() {
            return f.write_str(&decimals);
        }
        let value = self.to_float();
        let rounded: f64 = format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value);
        match rounded.abs() {
            0.0 => f.write_str("0"),
            1e-6..1e21 => write!(f, "{rounded}"),
            _ => write!(f, "{rounded:e}"),
        }
    }
}

/// A float without a fraction, as an integer where it is surely that one.
#[expect(clippy::cast_possible_truncation, reason = "it fits and has no fraction")]
fn whole(value: f64) -> Number {
    if value.abs() < 2_f64.powi(53) { Number::integer(value as i128) } else { Float(value) }
}

/// An integer power of a fraction by squaring; `None` as soon as it does not fit, so at most 128 steps.
fn raise(over: i128, under: i128, power: i128) -> Option<Number> {
    let (mut over, mut under) = if power < 0 { (under, over) } else { (over, under) };
    let mut power = power.unsigned_abs();
    let mut result = (1_i128, 1_i128);
    while power > 0 {
        if power & 1 == 1 {
            result = (result.0.checked_mul(over)?, result.1.checked_mul(under)?);
        }
        power >>= 1;
        if power > 0 {
            (over, under) = (over.checked_mul(over)?, under.checked_mul(under)?);
        }
    }
    Number::ratio(result.0, result.1)
}

/// The square root of a square.
fn root(square: i128) -> Option<i128> {
    let root = square.checked_isqrt()?;
    (root * root == square).then_some(root)
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
