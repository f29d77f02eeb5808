use registry_core::prelude::*;

use crate::arithmetic::evaluate;

/// What an expression comes to.
#[output]
#[derive(Debug)]
struct Calculation {
    /// The number.
    result: String,
    /// Whether that is all of it; otherwise it is rounded to 15 digits.
    exact: bool,
}

/// Evaluate an arithmetic expression exactly. Use it for every calculation that is not trivial. Returns the number, and whether it is exact.
///
/// Integers and fractions are exact up to 1024 bits (308 digits), so `0.1 + 0.2` is `0.3`; what is no fraction, or a
/// larger one, is floating point, rounded to 15 digits.
#[tool(
    title = "Calculator",
    version = "1.0.0",
    tags = ["math"],
    reads = nothing,
    sends = nothing,
    timeout = secs(2),
    example = "What is 123456789 times 987654321?" => {"expression": "123456789 * 987654321"}
)]
async fn calculate(
    /// For example "(17.5 + 3) * 2^10 / sqrt(2)". Operators: + - * / ^ ! and % (remainder; 17% of 80 is a part). Functions: sqrt, abs, round, floor, ceil, min, max, exp, ln, log10, log(x, base), sin, cos, tan (radians). Constants: pi, e.
    expression: &str,
) -> Result<Calculation, ToolError> {
    let number = evaluate(expression).map_err(|fault| ToolError::invalid(format!("`expression` {fault}")))?;
    Ok(Calculation { result: number.to_string(), exact: number.is_exact() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_result_says_whether_it_is_exact() {
        let calculation = calculate("2^53 + 1").await.unwrap();
        assert_eq!((calculation.result.as_str(), calculation.exact), ("9007199254740993", true));
        let calculation = calculate("2^100").await.unwrap();
        assert_eq!(
            (calculation.result.as_str(), calculation.exact),
            ("1267650600228229401496703205376", true)
        );
        let calculation = calculate("2 / 3").await.unwrap();
        assert_eq!((calculation.result.as_str(), calculation.exact), ("0.666666666666667", false));
    }

    #[tokio::test]
    async fn a_fault_is_reported_with_its_place() {
        let error = calculate("2 * (3 +").await.unwrap_err();
        assert_eq!(error.feedback(), "`expression` at character 9: expected a number, found the end");
    }
}
