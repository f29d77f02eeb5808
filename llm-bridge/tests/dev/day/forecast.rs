use registry_core::prelude::*;

/// Get the weather forecast of a city.
#[tool]
async fn forecast(
    /// City name.
    #[arg(length = 1..=80)]
    city: &str,
    /// Days ahead.
    #[arg(default = 3, range = 1..=14)]
    days: u8,
    /// How temperatures are written.
    unit: Option<Unit>,
) -> String {
    format!("{city}, {days} days, in {:?}: rain", unit.unwrap_or(Unit::Celsius))
}

/// How temperatures are written.
#[args]
#[derive(Debug)]
enum Unit {
    /// Degrees Celsius.
    Celsius,
    /// Degrees Fahrenheit.
    Fahrenheit,
}
