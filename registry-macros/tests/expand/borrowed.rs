/// Joins words.
#[tool]
async fn join(
    /// What stands between.
    #[arg(default = ", ", pattern = "^[ ,;]*$", length = ..=3)]
    between: &str,
    /// The words.
    #[arg(rename = "list", example = ["a", "b"])]
    words: &[String],
    /// What stands before.
    before: Option<&str>,
    /// How.
    how: &How,
) -> String {
    words.join(between)
}
