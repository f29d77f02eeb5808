use registry_core::prelude::*;

struct Greeter;

impl Greeter {
    /// Says hello.
    #[tool]
    async fn hello(&self) -> String {
        String::new()
    }
}

fn main() {}
