#[tool(gate, gate)]
async fn hello(
    name: String,
    /// How often.
    times: u8,
) -> String {
    name.repeat(times.into())
}
