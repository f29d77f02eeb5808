//! What expressions come to, and what is wrong with those that come to nothing.

use super::*;

fn shown(text: &str) -> String {
    match evaluate(text) {
        Ok(number) => number.to_string(),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn operators_bind_as_they_should() {
    for (text, expected) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 4 - 3", "3"),
        ("100 / 5 / 2", "10"),
        ("2 ^ 3 ^ 2", "512"),
        ("2 ** 10", "1024"),
        ("-2 ^ 2", "-4"),
        ("(-2) ^ 2", "4"),
        ("2 ^ -1", "0.5"),
        ("--3", "3"),
        ("-+-3", "3"),
        ("2 * -3", "-6"),
        ("7 % 3", "1"),
        ("-7 % 3", "2"),
        ("7 % -3", "-2"),
        ("5.5 % 2", "1.5"),
        ("6 × 7", "42"),
        ("1 ÷ 4", "0.25"),
        ("5 − 7", "-2"),
        (" ( ( 1 ) ) ", "1"),
        ("2^-1^2", "0.5"),
        ("-3 % 2 ^ 2", "1"),
        ("17% of 2340", "397.8"),
        ("1 + 20 % of (40 + 10) * 2", "21"),
        ("-10% of 5", "-0.5"),
        ("3! ^ 2", "36"),
        ("2 ^ 3!", "64"),
        ("-3!", "-6"),
        ("3!!", "720"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn what_can_be_exact_is() {
    for (text, expected) in [
        ("2^53 + 1", "9007199254740993"),
        ("0.1 + 0.2", "0.3"),
        ("1/3 + 1/3 + 1/3", "1"),
        ("19.99 * 3", "59.97"),
        ("2^126 + 1", "85070591730234615865843651857942052865"),
        ("1e3", "1000"),
        ("1.5e-3", "0.0015"),
        ("1e-20", "0.00000000000000000001"),
        ("sqrt(16/9) * 3", "4"),
        ("4 ^ 0.5", "2"),
        ("(2/3) ^ -2 * 4", "9"),
        ("1 ^ 1e30", "1"),
        ("(-1) ^ 1e30", "1"),
        ("0 ^ 0", "1"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.345, 2)", "2.35"),
        ("round(1234, -2)", "1200"),
        ("floor(-1.5)", "-2"),
        ("ceil(-1.5)", "-1"),
        ("trunc(-1.5)", "-1"),
        ("max(1, 3, 2)", "3"),
        ("min(2^53 + 1, 2^53)", "9007199254740992"),
        (".5", "0.5"),
        ("5.", "5"),
        ("abs(-0.25)", "0.25"),
        ("-0.05", "-0.05"),
        ("0 * -1", "0"),
        ("2^200", "1606938044258990275541962092341162602522202993782792835301376"),
        ("170141183460469231731687303715884105727 + 1", "170141183460469231731687303715884105728"),
        ("2^1000 / 2^998", "4"),
        ("25! / 23!", "600"),
        ("factorial(0)", "1"),
        ("2 ^ 2 ^ 9 % 1000", "96"),
        ("(1/3) ^ 500 * 3 ^ 500", "1"),
        ("sqrt(10^40 + 2 * 10^20 + 1)", "100000000000000000001"),
        ("2 ^ -40", "0.0000000000009094947017729282379150390625"),
        ("0 ^ 1e30", "0"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
        assert!(evaluate(text).unwrap().is_exact(), "{text}");
    }
}

#[test]
fn the_rest_is_as_near_as_floating_point_is() {
    for (text, expected) in [
        ("1/3", "0.333333333333333"),
        ("sqrt(2)", "1.4142135623731"),
        ("2^-200", "6.22301527786114e-61"),
        ("sin(pi/6)", "0.5"),
        ("cos(0)", "1"),
        ("ln(e)", "1"),
        ("log10(1000)", "3"),
        ("log2(8)", "3"),
        ("log(8, 2)", "3"),
        ("cbrt(27)", "3"),
        ("degrees(π)", "180"),
        ("2 * PI", "6.28318530717959"),
        ("exp(1) - e", "0"),
        ("atan(1) * 4", "3.14159265358979"),
        ("1e300 * 1e7 * pi", "3.14159265358979e307"),
        ("2^1000 * 3 + 1/3", "3.2145258215588e301"),
        ("1e-200 * 1e-100", "1e-300"),
        ("floor(pi)", "3"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
    assert!(!evaluate("1/3").unwrap().is_exact());
}

#[test]
fn faults_say_where_and_what() {
    for (text, expected) in [
        ("", "at character 1: expected a number, found the end"),
        ("2 +", "at character 4: expected a number, found the end"),
        ("2 + * 3", "at character 5: expected a number, found `*`"),
        ("2(3)", "at character 2: expected an operator, found `(`"),
        ("(1 + 2", "at character 7: expected an operator or `)`, found the end"),
        ("1,000 + 1", "at character 2: expected an operator (numbers are written without `,`), found `,`"),
        ("1 / (2 - 2)", "at character 3: division by zero"),
        ("5 % 0", "at character 3: division by zero"),
        ("0 ^ -1", "at character 3: division by zero"),
        ("sqrt(-1)", "at character 1: the result is not a real number"),
        ("(-8) ^ (1/3)", "at character 6: the result is not a real number"),
        ("1 + ln(0)", "at character 5: a logarithm needs a number above zero"),
        ("9 ^ 9 ^ 9", "at character 3: the number is too large"),
        ("1e999", "at character 1: `1e999` is no number that fits"),
        ("1.2.3", "at character 1: `1.2.3` is no number that fits"),
        ("20 of 50", "at character 4: expected an operator, found `o`"),
        ("20% off 50", "at character 5: unknown name `off`; the constants are pi, tau and e"),
        ("2 * 171!", "at character 8: a factorial needs a whole number from 0 to 170"),
        ("(-1)!", "at character 5: a factorial needs a whole number from 0 to 170"),
        ("2.5!", "at character 4: a factorial needs a whole number from 0 to 170"),
        ("10 ^ 10 ^ 10", "at character 4: the number is too large"),
        ("2 ^ 1024", "at character 3: the number is too large"),
        ("log(100)", "at character 1: `log` is called as log(x, base)"),
        ("sin", "at character 4: expected `(`, found the end"),
        ("x + 1", "at character 1: unknown name `x`; the constants are pi, tau and e"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
    assert!(shown("foo(1)").starts_with("at character 1: unknown function `foo`; there are abs(x), sqrt(x)"));
}

#[test]
fn k22_no_expression_is_too_much() {
    let operands = [
        "170141183460469231731687303715884105727",
        "1e-38",
        "0.5",
        "3",
        "-1",
        "0",
        "1e300",
        "e",
        "sqrt(3)",
        "round(0.5, 1)",
        "max(3, 0",
    ];
    let rest = ["+", "-", "*", "/", "%", "% of", "^", "! *", "(", ")", ","];
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut numbers = 0;
    for _ in 0..3_000 {
        let mut text = String::new();
        for place in 0..7 {
            let is_operand = if random(8) == 0 { random(2) == 0 } else { place % 2 == 0 };
            text += if is_operand { operands[random(operands.len())] } else { rest[random(rest.len())] };
        }
        text += &")".repeat(text.matches('(').count().saturating_sub(text.matches(')').count()));
        match evaluate(&text) {
            // What is shown is a number again, the same one where it is exact.
            Ok(number) => {
                numbers += 1;
                let shown = number.to_string();
                let again = evaluate(&shown).unwrap();
                assert!(again.to_float().is_finite(), "{text}: {shown}");
                assert!(!number.is_exact() || again == number, "{text}: {shown}");
            }
            Err(fault) => {
                assert!((1..=text.chars().count() + 1).contains(&fault.at), "{text}: {fault}");
            }
        }
    }
    assert!(numbers > 300, "{numbers}");
}

#[test]
fn the_work_is_bounded() {
    assert_eq!(shown(&"(".repeat(900)), "at character 101: nested more than 100 deep");
    assert_eq!(shown(&"-".repeat(900)), "at character 101: nested more than 100 deep");
    assert!(shown(&"2^".repeat(400)).ends_with("nested more than 100 deep"));
    assert!(shown(&"1".repeat(1001)).ends_with("longer than 1000 characters"));
    assert_eq!(shown(&format!("1{}", "+1".repeat(499))), "500");
    assert!(shown(&format!("3{}", "!".repeat(900))).ends_with("a whole number from 0 to 170"));
    let thirds: String = (3..150).map(|n| format!("+1/{n}.")).collect();
    assert_eq!(shown(&thirds), "4.08451392197721");
    assert!(shown(&"9".repeat(400)).ends_with("is no number that fits"));
}
