//! The functions of an expression.

use crate::number::{Number, Outcome};

/// The functions, as they are called.
pub(crate) const FUNCTIONS: [&str; 23] = [
    "abs(x)",
    "sqrt(x)",
    "cbrt(x)",
    "exp(x)",
    "ln(x)",
    "log2(x)",
    "log10(x)",
    "log(x, base)",
    "sin(x)",
    "cos(x)",
    "tan(x)",
    "asin(x)",
    "acos(x)",
    "atan(x)",
    "degrees(x)",
    "radians(x)",
    "factorial(x) or x!",
    "floor(x)",
    "ceil(x)",
    "trunc(x)",
    "round(x) or round(x, decimals)",
    "min(x, …)",
    "max(x, …)",
];

/// How a function is called; `None` where there is none of that name.
pub(crate) fn usage(name: &str) -> Option<&'static str> {
    FUNCTIONS.into_iter().find(|usage| usage.split_once('(').is_some_and(|(function, _)| function == name))
}

/// Calls a function; `None` where there is none of that name with that many arguments.
pub(crate) fn call(name: &str, arguments: &[Number]) -> Option<Outcome> {
    let float = |function: fn(f64) -> f64, x: &Number| Number::float(function(x.to_float()));
    let logarithm = |function: fn(f64) -> f64, x: &Number| {
        if x.to_float() > 0.0 { float(function, x) } else { Err("a logarithm needs a number above zero") }
    };
    Some(match (name, arguments) {
        ("abs", [x]) => Ok(x.abs()),
        ("sqrt", [x]) => x.sqrt(),
        ("cbrt", [x]) => float(f64::cbrt, x),
        ("exp", [x]) => float(f64::exp, x),
        ("ln", [x]) => logarithm(f64::ln, x),
        ("log2", [x]) => logarithm(f64::log2, x),
        ("log10", [x]) => logarithm(f64::log10, x),
        ("log", [x, base]) => {
            logarithm(f64::ln, x).and_then(|x| logarithm(f64::ln, base).and_then(|base| x.div(&base)))
        }
        ("sin", [x]) => float(f64::sin, x),
        ("cos", [x]) => float(f64::cos, x),
        ("tan", [x]) => float(f64::tan, x),
        ("asin", [x]) => float(f64::asin, x),
        ("acos", [x]) => float(f64::acos, x),
        ("atan", [x]) => float(f64::atan, x),
        ("degrees", [x]) => float(f64::to_degrees, x),
        ("radians", [x]) => float(f64::to_radians, x),
        ("factorial", [x]) => x.factorial(),
        ("floor", [x]) => Ok(x.floor()),
        ("ceil", [x]) => Ok(x.ceil()),
        ("trunc", [x]) => Ok(x.trunc()),
        ("round", [x]) => x.round(&Number::integer(0)),
        ("round", [x, decimals]) => x.round(decimals),
        ("min", [first, rest @ ..]) => {
            Ok(rest.iter().fold(first, |least, x| if x.compare(least).is_lt() { x } else { least }).clone())
        }
        ("max", [first, rest @ ..]) => {
            Ok(rest.iter().fold(first, |most, x| if x.compare(most).is_gt() { x } else { most }).clone())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_there() {
        for usage in FUNCTIONS {
            let name = usage.split('(').next().unwrap();
            let one = || Number::integer(1);
            assert!((1..=2).any(|count| call(name, &[one(), one()][..count]).is_some()), "{name}");
        }
    }
}
