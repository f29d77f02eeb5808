use registry_core::prelude::*;

/// Says hello.
#[tool(text_tag = TextTag::new("HELLO").pattern(r"(\S+) (.+)").groups(&["name", "tone"]))]
async fn hello(
    /// To whom.
    name: String,
) -> String {
    name
}

fn main() {}
