use registry_core::prelude::*;

#[args]
struct Hello {
    /// To whom.
    name: String,
}

/// Says hello.
#[tool]
async fn hello(
    #[args] hello: Hello,
    /// How often.
    times: u8,
) -> String {
    hello.name.repeat(times.into())
}

fn main() {}
