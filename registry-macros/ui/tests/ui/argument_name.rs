use registry_core::prelude::*;

/// Buys a shirt.
#[tool]
async fn shirt(
    /// Its size.
    größe: u8,
    /// Its colour.
    #[arg(rename = "the colour")]
    colour: String,
    #[arg(rename = "")]
    /// Its cut.
    cut: Cut,
) -> String {
    format!("{größe}, {colour}, {}", cut.länge)
}

/// A cut.
#[args]
struct Cut {
    /// How long it is.
    länge: u8,
    /// How wide it is.
    #[serde(rename = "wide")]
    weit_geöffnet: u8,
}

fn main() {}
