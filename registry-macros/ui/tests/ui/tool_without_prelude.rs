/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    name: &str,
) -> String {
    name.to_owned()
}

fn main() {}
