//! Constants, numbers and names.

/// Whether a byte of Python can stand in a constant or a number.
pub(super) fn holds(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-') || !byte.is_ascii()
}

pub(super) fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && text.chars().all(|char| char.is_alphanumeric() || char == '_')
}

pub(super) fn is_plain_integer(text: &str) -> bool {
    text == "0" || (!text.starts_with('0') && is_digits(text))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Appends the JSON of a constant or a number; whether the notation, Python's or another, strictly has it.
pub(super) fn literal(word: &str, python: bool, out: &mut String) -> Option<bool> {
    let (json, from_python) = match word {
        "True" => ("true", true),
        "False" => ("false", true),
        "None" => ("null", true),
        "true" | "false" | "null" => (word, false),
        _ => {
            let idle = has_idle_zeros(word);
            // Without a type it may be a text that begins with zeros.
            let number = number(word).filter(|_| python || !idle)?;
            out.push_str(&number);
            return Some(number == word || python && !idle);
        }
    };
    out.push_str(json);
    Some(python == from_python)
}

/// Whether zeros stand before a number, as neither notation has it.
fn has_idle_zeros(word: &str) -> bool {
    let digits = word.trim_start_matches(['+', '-']);
    digits.len() > 1 && digits.starts_with('0') && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
}

/// A Python number as JSON has it, without the zeros before it that mean nothing.
pub(crate) fn number(word: &str) -> Option<String> {
    let negative = word.strip_prefix('-');
    let size = negative.or_else(|| word.strip_prefix('+')).unwrap_or(word);
    let sign = if negative.is_some() { "-" } else { "" };
    if let Some((radix, digits)) = radix(size) {
        // A sign would be read here as well.
        let digits = ungrouped(digits.strip_prefix('_').unwrap_or(digits), char::is_alphanumeric)?;
        return Some(format!("{sign}{}", u128::from_str_radix(&digits, radix).ok()?));
    }
    let (mantissa, exponent) = match size.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (size, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| ungrouped(text, |char| char.is_ascii_digit());
    let idle = whole.bytes().take(whole.len().saturating_sub(1)).take_while(|byte| *byte == b'0').count();
    let whole = whole.get(idle..)?;
    let mut json = String::from(sign);
    match fraction {
        Some(fraction) if !fraction.is_empty() => {
            let whole = if whole.is_empty() { "0".into() } else { digits(whole)? };
            json.push_str(&format!("{whole}.{}", digits(fraction)?));
        }
        Some(_) => json.push_str(&format!("{}.0", digits(whole)?)),
        None => json.push_str(&digits(whole)?),
    }
    if let Some(exponent) = exponent {
        let (letter, _) = size.get(mantissa.len()..)?.split_at_checked(1)?;
        let size = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let (sign, _) = exponent.split_at_checked(exponent.len() - size.len())?;
        json.push_str(&format!("{letter}{sign}{}", digits(size)?));
    }
    // What is too large is infinite, and there is no JSON for that.
    let finite = || json.parse().is_ok_and(f64::is_finite);
    ((fraction.is_none() && exponent.is_none()) || finite()).then_some(json)
}

fn radix(size: &str) -> Option<(u32, &str)> {
    let rest = size.strip_prefix('0')?;
    let radix = match rest.bytes().next()? {
        b'x' | b'X' => 16,
        b'o' | b'O' => 8,
        b'b' | b'B' => 2,
        _ => return None,
    };
    Some((radix, rest.get(1..)?))
}

/// Digits without the `_` between them.
fn ungrouped(text: &str, is_digit: impl Fn(char) -> bool) -> Option<String> {
    let groups = text.split('_');
    let good = |group: &str| !group.is_empty() && group.chars().all(&is_digit);
    groups.clone().all(good).then(|| groups.collect())
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_become_json() {
        for (python, json) in [
            ("0", "0"),
            ("-7", "-7"),
            ("+1", "1"),
            ("1_000", "1000"),
            (
                "123456789012345678901234567890123456789012345",
                "123456789012345678901234567890123456789012345",
            ),
            ("1.", "1.0"),
            (".5", "0.5"),
            ("-.5e-3", "-0.5e-3"),
            ("1.e5", "1.0e5"),
            ("2E+8", "2E+8"),
            ("007", "7"),
            ("-01.5", "-1.5"),
            ("00", "0"),
            ("1e1_0", "1e10"),
            ("5.0", "5.0"),
            ("0xFF", "255"),
            ("-0x_f", "-15"),
            ("0b101", "5"),
            ("0o17", "15"),
            ("0xffffffffffffffffffffffffffffffff", "340282366920938463463374607431768211455"),
        ] {
            assert_eq!(number(python).as_deref(), Some(json), "{python}");
        }
        for none in [
            "",
            "-",
            ".",
            "e5",
            "1e",
            "1_",
            "_1",
            "1__0",
            "1.2.3",
            "1-2",
            "--1",
            "1j",
            "0x",
            "0x+f",
            "0xg",
            "NaN",
            "Infinity",
            "inf",
            "1e999",
            "0xfffffffffffffffffffffffffffffffff",
            "٣",
        ] {
            assert_eq!(number(none), None, "{none}");
        }
    }
}
