use registry_core::prelude::*;

/// How a greeting sounds.
#[args]
enum Tone {
    /// To friends.
    Warm,
    Cool,
}

/// Whom it is for.
#[args]
enum Whom {
    Somebody {
        /// The name.
        name: String,
    },
    Nobody,
}

/// Says hello.
#[tool]
async fn hello(
    /// How.
    tone: Tone,
    /// Whom.
    whom: Whom,
) -> String {
    let _ = (tone, whom);
    String::new()
}

fn main() {}
