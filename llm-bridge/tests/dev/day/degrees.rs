use registry_core::prelude::*;

/// A measurement.
#[derive(Serialize)]
struct Measurement {
    hour: u8,
    degrees: f64,
}

/// List the temperatures of a day.
#[tool]
async fn degrees() -> Table {
    Table::of([Measurement { hour: 6, degrees: -2.0 }, Measurement { hour: 12, degrees: 3.5 }])
}
