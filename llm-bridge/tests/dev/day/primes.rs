use registry_core::prelude::*;

/// Count the primes below a number.
#[tool(timeout = secs(20), max_concurrent = 2)]
fn primes(
    ctx: &ToolContext,
    /// The number.
    #[arg(range = 0..=100_000)]
    below: u64,
) -> Result<u64, ToolError> {
    let mut primes = 0;
    for number in 2..below {
        if ctx.is_cancelled() {
            return Err(ToolError::failed("stopped"));
        }
        primes += u64::from(
            (2..number)
                .take_while(|divisor| divisor * divisor <= number)
                .all(|divisor| number % divisor != 0),
        );
    }
    Ok(primes)
}
