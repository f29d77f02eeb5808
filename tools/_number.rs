//! Numbers that are exact as long as they can be: fractions, and floating point where those grow too large.

use std::{cmp::Ordering, fmt};

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// A number. `0.1 + 0.2` is `0.3` here, and `2^53 + 1` is odd.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Number {
    /// A fraction whose parts have at most [`MAX_BITS`].
    Exact(BigRational),
    /// Finite.
    Float(f64),
}

use Number::{Exact, Float};

pub(crate) type Outcome = Result<Number, &'static str>;

const BY_ZERO: &str = "division by zero";
const TOO_LARGE: &str = "the number is too large";
/// How large the parts of a fraction may be, which bounds the work of a step: floating point reaches no further.
const MAX_BITS: u64 = 1024;
/// The largest number whose factorial is within [`MAX_BITS`].
const MAX_FACTORIAL: u8 = 170;
/// Digits that floating point holds for sure; what comes after them is noise, as in `sin(pi/6) = 0.49999999999999994`.
const DIGITS: usize = 15;
/// More decimals than this are not written out.
const MAX_PLACES: u32 = 40;

impl Number {
    pub(crate) fn integer(value: impl Into<BigInt>) -> Self {
        Exact(BigRational::from_integer(value.into()))
    }

    /// A fraction, unless it is too large.
    fn exact(value: BigRational) -> Option<Self> {
        (value.numer().bits() <= MAX_BITS && value.denom().bits() <= MAX_BITS).then_some(Exact(value))
    }

    /// A number as written: digits with at most one point, and a power of ten. `None` where it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Self::parse_exact(whole, fraction, exponent)
            .or_else(|| text.parse().ok().filter(|value: &f64| value.is_finite()).map(Float))
    }

    fn parse_exact(whole: &str, fraction: &str, exponent: &str) -> Option<Self> {
        let digits: BigInt = format!("{whole}{fraction}").parse().ok()?;
        let shift = exponent.parse::<i32>().ok()?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        Self::exact(BigRational::from_integer(digits) * raise(&ten(), &shift.into())?)
    }

    pub(crate) fn float(value: f64) -> Outcome {
        match value {
            value if value.is_finite() => Ok(Float(value)),
            value if value.is_nan() => Err("the result is not a real number"),
            _ => Err(TOO_LARGE),
        }
    }

    pub(crate) fn to_float(&self) -> f64 {
        match self {
            Exact(value) => value.to_f64().unwrap_or(f64::NAN),
            Float(value) => *value,
        }
    }

    /// Computes with fractions where both are and the result fits, else with floating point.
    fn either(
        &self,
        other: &Self,
        exact: impl FnOnce(&BigRational, &BigRational) -> BigRational,
        float: impl FnOnce(f64, f64) -> f64,
    ) -> Outcome {
        if let (Exact(a), Exact(b)) = (self, other)
            && let Some(result) = Self::exact(exact(a, b))
        {
            return Ok(result);
        }
        Self::float(float(self.to_float(), other.to_float()))
    }

    fn is_zero(&self) -> bool {
        match self {
            Exact(value) => value.is_zero(),
            Float(value) => *value == 0.0,
        }
    }

    fn is_negative(&self) -> bool {
        match self {
            Exact(value) => value.is_negative(),
            Float(value) => *value < 0.0,
        }
    }

    pub(crate) fn add(&self, other: &Self) -> Outcome {
        self.either(other, |a, b| a + b, |a, b| a + b)
    }

    pub(crate) fn sub(&self, other: &Self) -> Outcome {
        self.either(other, |a, b| a - b, |a, b| a - b)
    }

    pub(crate) fn mul(&self, other: &Self) -> Outcome {
        self.either(other, |a, b| a * b, |a, b| a * b)
    }

    pub(crate) fn div(&self, other: &Self) -> Outcome {
        if other.is_zero() {
            return Err(BY_ZERO);
        }
        self.either(other, |a, b| a / b, |a, b| a / b)
    }

    pub(crate) fn neg(&self) -> Self {
        match self {
            Exact(value) => Exact(-value),
            Float(value) => Float(-value),
        }
    }

    pub(crate) fn abs(&self) -> Self {
        if self.is_negative() { self.neg() } else { self.clone() }
    }

    /// The remainder, which has the sign of the divisor.
    pub(crate) fn rem(&self, other: &Self) -> Outcome {
        self.sub(&other.mul(&self.div(other)?.floor())?)
    }

    pub(crate) fn pow(&self, exponent: &Self) -> Outcome {
        if self.is_zero() && exponent.is_negative() {
            return Err(BY_ZERO);
        }
        if let (Exact(base), Exact(power)) = (self, exponent) {
            if base.is_one() {
                return Ok(self.clone());
            }
            if *power == BigRational::new(1.into(), 2.into()) {
                return self.sqrt();
            }
            if power.is_integer()
                && let Some(result) = raise(base, power.numer()).and_then(Self::exact)
            {
                return Ok(result);
            }
        }
        Self::float(self.to_float().powf(exponent.to_float()))
    }

    pub(crate) fn sqrt(&self) -> Outcome {
        if let Exact(value) = self
            && !value.is_negative()
        {
            let root = BigRational::new(value.numer().sqrt(), value.denom().sqrt());
            if &root * &root == *value {
                return Ok(Exact(root));
            }
        }
        Self::float(self.to_float().sqrt())
    }

    pub(crate) fn factorial(&self) -> Outcome {
        let Exact(value) = self else { return Err("a factorial needs a whole number") };
        match value.to_u8().filter(|count| value.is_integer() && *count <= MAX_FACTORIAL) {
            Some(count) => Ok(Self::integer((1..=count).map(BigInt::from).product::<BigInt>())),
            None => Err("a factorial needs a whole number from 0 to 170"),
        }
    }

    pub(crate) fn floor(&self) -> Self {
        self.to_whole(BigRational::floor, f64::floor)
    }

    pub(crate) fn ceil(&self) -> Self {
        self.to_whole(BigRational::ceil, f64::ceil)
    }

    pub(crate) fn trunc(&self) -> Self {
        self.to_whole(BigRational::trunc, f64::trunc)
    }

    /// A float without a fraction becomes an integer where it is surely that one.
    fn to_whole(&self, exact: fn(&BigRational) -> BigRational, float: fn(f64) -> f64) -> Self {
        match self {
            Exact(value) => Exact(exact(value)),
            Float(value) => {
                let whole = float(*value);
                let surely = Some(whole).filter(|whole| whole.abs() < 2_f64.powi(53));
                surely.and_then(BigRational::from_float).map_or(Float(whole), Exact)
            }
        }
    }

    /// To a number of decimals; a half goes away from zero.
    pub(crate) fn round(&self, decimals: &Self) -> Outcome {
        if !matches!(decimals, Exact(decimals) if decimals.is_integer()) {
            return Err("the number of decimals is a whole number");
        }
        let scale = Exact(ten()).pow(decimals)?;
        self.mul(&scale)?.to_whole(BigRational::round, f64::round).div(&scale)
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Exact(a), Exact(b)) => a.cmp(b),
            _ => self.to_float().total_cmp(&other.to_float()),
        }
    }

    /// The number in decimals where they end and are not too many.
    fn decimals(&self) -> Option<String> {
        let Exact(value) = self else { return None };
        let places =
            (0..=MAX_PLACES).find(|places| (BigInt::from(10).pow(*places) % value.denom()).is_zero())?;
        let scaled = (value * BigInt::from(10).pow(places)).to_integer();
        let places = usize::try_from(places).ok()?;
        let digits = format!("{:0>1$}", scaled.magnitude().to_string(), places + 1);
        let (whole, fraction) = digits.split_at_checked(digits.len().checked_sub(places)?)?;
        let sign = if scaled.is_negative() { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        Some(format!("{sign}{whole}{point}{fraction}"))
    }

    /// Whether what is displayed is the number itself and not the nearest that can be written.
    pub(crate) fn is_exact(&self) -> bool {
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

fn ten() -> BigRational {
    BigRational::from_integer(10.into())
}

/// An integer power of a fraction; `None` where it surely does not fit. The base of a negative power is not zero.
fn raise(base: &BigRational, power: &BigInt) -> Option<BigRational> {
    let bits = base.numer().bits().max(base.denom().bits());
    if bits <= 1 && !power.is_zero() {
        // 0, 1 and -1: it only matters whether the power is odd.
        return Some(if power.bit(0) { base.clone() } else { base * base });
    }
    let power = power.to_i32()?;
    let grows_to = bits.saturating_sub(1).checked_mul(power.unsigned_abs().into())?;
    (grows_to <= MAX_BITS).then(|| base.pow(power))
}
