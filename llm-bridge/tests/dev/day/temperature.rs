use registry_core::prelude::*;

/// A temperature in two units.
#[output]
struct Temperature {
    celsius: f64,
    fahrenheit: f64,
}

/// Convert a temperature such as "20 C" to Celsius and Fahrenheit.
#[tool]
async fn temperature(
    /// The temperature with its unit, C or F.
    text: &str,
) -> Result<Temperature, ToolError> {
    let wrong = || ToolError::invalid("`text` is not a temperature; write a number and C or F, as in 20 C");
    let (number, unit) = text.trim().split_once(' ').ok_or_else(wrong)?;
    let number: f64 = number.parse()?;
    match unit {
        "C" => Ok(Temperature { celsius: number, fahrenheit: number * 1.8 + 32.0 }),
        "F" => Ok(Temperature { celsius: (number - 32.0) / 1.8, fahrenheit: number }),
        _ => Err(wrong()),
    }
}
