use registry_core::prelude::*;

struct Place;

/// Where it is.
#[args]
struct City {
    /// Its name.
    name: String,
    /// Its place.
    place: Place,
}

/// Gets the weather.
#[tool]
async fn weather(
    /// The city.
    city: City,
) -> String {
    city.name
}

fn main() {}
